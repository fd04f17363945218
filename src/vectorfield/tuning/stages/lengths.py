"""Walks along the length scale."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vectorfield.tuning import candidates
from vectorfield.tuning.context import Context
from vectorfield.tuning.trials import Trial

__all__ = ["stretch"]

FARTHEST = 64.0  # times the length scale to begin with, and its inverse


def stretch(context: Context, trial: Trial, steps: int) -> Trial:
    """Walk to the best length scale by factors of 2, then of sqrt(2)."""
    best, tried = trial, {1.0}
    place = 1.0
    for factor in (2.0, np.sqrt(2.0)):
        moved = True
        while moved and not context.out_of_time():
            moved = False
            for way in (factor, 1.0 / factor):
                at = round(place * way, 6)
                if at in tried or not 1 / FARTHEST <= at <= FARTHEST:
                    continue
                tried.add(at)
                kernel = candidates.stretched(trial.plan.kernel, at)
                plan = replace(best.plan, kernel=kernel)
                found = context.try_all([(plan, context.near(best))], "lengths", steps, done=0.3)
                if found and found[0].score < best.score:
                    best, place, moved = found[0], at, True
                    break
    return best
