"""The best plans on more data, fewer of them each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vectorfield.kernels import OperatorKernel, ScalarKernel
from vectorfield.tuning import candidates
from vectorfield.tuning.context import MANY, MEDIUM, Context, distinct
from vectorfield.tuning.trials import Trial

__all__ = ["grow"]

BEHIND = 3.0  # times the least error: more data do not make up for it


def grow(context: Context, best: Sequence[Trial]) -> list[Trial]:
    """Judge the best plans on more data; return them, best first."""
    leaders = context.leaders(best[0])
    total = context.bench.steps
    if context.noisy:
        leaders = [
            replace(t, plan=replace(t.plan, kernel=_by_features(context, t.plan.kernel)))
            for t in leaders
        ]
    for steps, keep, span in ((max(MEDIUM, context.small), 2, 2), (total, 1, 1)):
        if total <= context.small or (steps < total <= 1.5 * steps):
            continue
        whole = steps == total
        pairs = [
            (
                t.plan,
                context.near(t, span) if not whole or total <= MEDIUM * 2 else (t.level,),
            )
            for t in leaders
        ]
        grown = context.try_all(pairs, f"{steps} steps", steps, done=0.7, whole=whole, final=whole)
        leaders = (distinct(grown) or leaders)[: max(keep, 2)]
        leaders = [t for t in leaders if t.score <= BEHIND * leaders[0].score]
    if total <= context.small:
        pairs = [(t.plan, context.near(t)) for t in leaders]
        found = context.try_all(pairs, "all", None, done=0.7, whole=True, final=True)
        leaders = found or leaders
    return distinct(leaders)


def _by_features(
    context: Context, kernel: ScalarKernel | OperatorKernel
) -> ScalarKernel | OperatorKernel:
    """The kernel of a noisy set for more data: exact where these are few."""
    if "kernel" not in context.open:
        return kernel
    bare = candidates.without_features(kernel)
    few = context.bench.steps <= MEDIUM
    return bare if few else candidates.with_features(bare, MANY)
