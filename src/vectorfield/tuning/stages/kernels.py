"""Families of kernels, then the length scales and sums of the better ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vectorfield.kernels import Gaussian
from vectorfield.tuning import candidates
from vectorfield.tuning.context import Context
from vectorfield.tuning.judge import ranked
from vectorfield.tuning.stages.lengths import stretch
from vectorfield.tuning.trials import Trial

__all__ = ["choose_kernel"]

CONTENDER = 10.0  # times the least error: a length scale does not make up for more


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
        local = [t for t in found if candidates.lengths_of(t.plan.kernel)]
        within = [t for t in local if t.score <= CONTENDER * found[0].score]
        found += stretch(context, within[:2], steps)
        found = ranked([t] for t in found)
        found += _sums(context, found, steps)
    elif _has_open_length(context):
        found += stretch(context, found[:1], steps)
    return ranked([t] for t in found)


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
