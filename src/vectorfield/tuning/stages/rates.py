"""Walks along the rate of a prior that has one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vectorfield.prior import MeanReverting
from vectorfield.tuning import candidates
from vectorfield.tuning.context import Context
from vectorfield.tuning.trials import Trial

__all__ = ["choose_rate"]


def choose_rate(context: Context, best: Sequence[Trial]) -> list[Trial]:
    """Walk to the best rate by factors of 2, where the best plan's prior has an open one."""
    first = best[0]
    if "prior" in context.jointly:
        return list(best)
    for factor in (2.0, 0.5):
        while isinstance(first.plan.prior, MeanReverting) and "prior" in context.open:
            prior = candidates.faster(first.plan.prior, factor)
            if (prior.rate or 0.0) * context.facts.step > 1.0:
                break  # back within a step: no rate that the data could tell
            plan = replace(first.plan, prior=prior)
            found = context.try_all([(plan, context.near(first))], "rates", context.small, done=0.6)
            if not found or not found[0].score < first.score:
                break
            first = found[0]
    return [first]
