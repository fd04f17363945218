"""Families of kernels, then the length scales and sums of the better ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vectorfield.kernels import Gaussian
from vectorfield.tuning import candidates
from vectorfield.tuning.context import CONTENDER, MEDIUM, Context
from vectorfield.tuning.judge import ranked
from vectorfield.tuning.stages.lengths import stretch
from vectorfield.tuning.trials import Trial

__all__ = ["choose_kernel"]

FED = 4.0  # observations for each coefficient of a polynomial that is to be judged


def choose_kernel(context: Context, best: Sequence[Trial]) -> list[Trial]:
    """Judge the kernels to begin with, then length scales and sums of the better ones."""
    plan, steps = context.plan, context.small
    found = context.try_all(
        ((replace(plan, kernel=kernel), context.ladder) for kernel in _kernels(context)),
        "kernels",
        steps,
        done=0.2,
    )
    if not found or context.is_settled(found[0]):
        return found
    if "kernel" in context.open:
        starved = _fed(context)
        if starved and starved[0].score * CONTENDER <= found[0].score:
            return starved
        local = [t for t in found if candidates.lengths_of(t.plan.kernel)]
        within = [t for t in local if t.score <= CONTENDER * found[0].score]
        found += stretch(context, within[:2], steps)
        found = ranked([t] for t in found)
        found += _sums(context, found, steps)
    elif _has_open_length(context):
        found += stretch(context, found[:1], steps)
    return ranked([t] for t in found)


def _fed(context: Context) -> list[Trial]:
    """Judge the polynomials that more data can determine and the screening could not.

    A screening with hardly more observations than a polynomial has coefficients says nothing of
    it, however right it is. Where one wins, the search goes on with so much data.
    """
    if context.noisy or context.bench.steps <= context.small:
        return []
    plans = []
    for kernel in candidates.polynomials(context.train.d):
        count = candidates.unknowns(kernel, context.train.d)
        if count is not None and context.small < FED * count <= MEDIUM:
            plans.append(replace(context.plan, kernel=kernel))
    pairs = [(plan, context.ladder) for plan in plans]
    found = context.try_all(pairs, "kernels", MEDIUM, done=0.25)
    if found and found[0].tracks:
        context.small = MEDIUM
        return found
    return []


def _kernels(context: Context) -> list:
    plan = context.plan
    nodes = plan.prepare(context.bench.train(context.small)[0]).occupations.nodes
    if "kernel" not in context.open:
        return [plan.kernel.resolved(nodes)]
    middle = float(Gaussian().resolved(nodes).length_scale)  # type: ignore[arg-type]
    local = [context.by_features(kernel) for kernel in candidates.families(middle)]
    return [*local, *candidates.polynomials(context.train.d)]


def _sums(context: Context, found: Sequence[Trial], steps: int) -> list[Trial]:
    """Judge sums of a polynomial and the best local kernel."""
    best = next((t for t in found if candidates.local_part(t.plan.kernel)), None)
    part = None if best is None else candidates.local_part(best.plan.kernel)
    if best is None or part is None or best.score > CONTENDER * found[0].score:
        return []
    mixed = [context.by_features(kernel) for kernel in candidates.mixtures(part, context.train.d)]
    plans = [replace(context.plan, kernel=kernel) for kernel in mixed]
    ladder = context.near(best)
    return context.try_all(((plan, ladder) for plan in plans), "sums", steps, done=0.4)


def _has_open_length(context: Context) -> bool:
    return any(
        name.endswith("length_scale") and value is None
        for name, value in context.plan.kernel.get_params().items()
    )
