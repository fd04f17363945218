"""One part of the plan changed after the other."""

from __future__ import annotations

from collections.abc import Sequence

from vectorfield.smoothing import SplineSmoother
from vectorfield.tuning import candidates
from vectorfield.tuning.context import Context
from vectorfield.tuning.judge import ranked
from vectorfield.tuning.trials import Trial

__all__ = ["vary_parts"]


def vary_parts(context: Context, best: Sequence[Trial]) -> list[Trial]:
    """Judge noise models and rules, then smoothing, then priors; each group from the best so far.

    A part is only changed where it is open, and where the objective can tell.
    """
    first, noisy = best[0], context.noisy
    groups: list[dict[str, list]] = [
        {
            "noise": list(candidates.noises(noisy, context.facts.even)),
            "rule": list(candidates.rules(context.facts.even, noisy)),
        },
        {"smoother": [None, SplineSmoother()] if noisy else []},
        {"prior": [None, *candidates.priors(context.facts.step, tracked=first.tracks)]},
    ]
    for group in groups:
        if context.is_settled(first):
            break
        changes = {
            name: context.comparable(name, values)
            for name, values in group.items()
            if name not in context.jointly
        }
        ladder = context.near(first, 3 if first.plan.robust is None else 1)  # many fits a ridge
        plans = candidates.variations(first.plan, changes)
        found = context.try_all(
            ((plan, ladder) for plan in plans), "parts", context.small, done=0.5
        )
        first = ranked([t] for t in (first, *found))[0]
    return [first]
