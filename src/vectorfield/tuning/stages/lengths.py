"""Walks along the length scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from vectorfield.plan import Plan
from vectorfield.tuning import candidates
from vectorfield.tuning.context import Context
from vectorfield.tuning.trials import Trial

__all__ = ["stretch"]

FARTHEST = 64.0  # times the length scale to begin with, and its inverse


def stretch(context: Context, trials: Sequence[Trial], steps: int) -> list[Trial]:
    """Walk to the best length scale of each trial, by factors of 2, then of sqrt(2).

    The walks go side by side: each round judges what all of them ask for.
    """
    walks = [_Walk(trial) for trial in trials]
    for factor in (2.0, math.sqrt(2.0)):
        moving = walks
        while moving and not context.out_of_time():
            asked = [(walk, at) for walk in moving for at in walk.ways(factor)]
            found = context.try_each(
                [(walk.plan(at), context.near(walk.best)) for walk, at in asked],
                "lengths",
                steps,
                done=0.3,
            )
            moved = [
                walk.go(at, trial)
                for (walk, at), trial in zip(asked, found, strict=True)
                if trial is not None
            ]
            moving = [walk for walk in walks if walk in moved]
    return [walk.best for walk in walks]


class _Walk:
    """Where a walk has come to, as a multiple of the length scale that it began with."""

    def __init__(self, trial: Trial) -> None:
        self.best = self._first = trial
        self._place, self._tried = 1.0, {1.0}

    def ways(self, factor: float) -> list[float]:
        """Return the places a factor away that have not been tried; they count as tried then."""
        places = [round(self._place * way, 6) for way in (factor, 1.0 / factor)]
        new = [p for p in places if p not in self._tried and 1 / FARTHEST <= p <= FARTHEST]
        self._tried.update(new)
        return new

    def plan(self, place: float) -> Plan:
        """Return the plan at a place."""
        kernel = candidates.stretched(self._first.plan.kernel, place)
        return replace(self.best.plan, kernel=kernel)

    def go(self, place: float, trial: Trial) -> _Walk | None:
        """Go there if it is better; return the walk if it has moved."""
        if not trial.score < self.best.score:
            return None
        self.best, self._place = trial, place
        return self
