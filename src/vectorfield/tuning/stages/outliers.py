"""Robust losses, where the residuals of the best plan so far have outliers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vectorfield.tuning import candidates
from vectorfield.tuning.bench import ridge_unit
from vectorfield.tuning.context import Context
from vectorfield.tuning.judge import ranked
from vectorfield.tuning.outliers import are_suspect, share_of_outliers
from vectorfield.tuning.trials import Trial

__all__ = ["try_robust"]


def try_robust(context: Context, best: Sequence[Trial]) -> list[Trial]:
    """Judge robust losses for all ridges, where the best plan so far leaves outliers.

    All ridges, because a plain fit needs a large one to keep outliers from being followed.
    """
    first = best[0]
    losses = context.comparable("robust", candidates.robusts())
    if not losses or not first.ok:
        return list(best)
    prepared = first.plan.prepare(context.bench.train(context.small)[0])
    share = share_of_outliers(prepared, first.level * ridge_unit(prepared))
    if not are_suspect(share, len(prepared.occupations)):
        return list(best)
    plans = [replace(first.plan, robust=loss) for loss in losses]
    found = context.try_all(
        ((plan, context.ladder) for plan in plans), "outliers", context.small, done=0.45
    )
    return ranked([t] for t in (*best, *found))
