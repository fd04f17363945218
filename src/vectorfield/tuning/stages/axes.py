"""Walks along the length scale of each coordinate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vectorfield.tuning import candidates
from vectorfield.tuning.context import Context
from vectorfield.tuning.judge import ranked
from vectorfield.tuning.objectives import HeldOutErrors
from vectorfield.tuning.trials import Trial

__all__ = ["choose_axes"]

MOST_COORDINATES = 6
TRIALS = 12  # plans for each coordinate, at most
FARTHEST = 12  # half octaves from the common length scale: 64 times it, or a 64th
BEHIND = 3.0  # times the best score: a local kernel worse than that is not walked with
NEGLIGIBLE = 1e-6  # of the null model's error: nothing is left to be gained


def choose_axes(context: Context, best: Sequence[Trial]) -> list[Trial]:
    """Change the length scale of one coordinate after the other, by factors of 2, then sqrt(2).

    A change is kept where the held-out error is lower by more than the standard error of the
    difference, over trajectories. Coordinates that do not matter get long, those along which the
    field varies fast get short.
    """
    d = context.train.d
    if "kernel" not in context.open or not 2 <= d <= MOST_COORDINATES:
        return list(best)
    if not isinstance(context.search.objective, HeldOutErrors):
        return list(best)
    local = [t for t in best if t.ok and candidates.lengths_of(t.plan.kernel)]
    if not local or local[0].score > BEHIND * best[0].score or best[0].score <= NEGLIGIBLE:
        return list(best)
    walked = _Walk(context, context.search.objective, local[0]).run()
    return ranked([t] for t in (walked, *best))


class _Walk:
    """A walk from a trial on; places are half octaves (d,) away from its length scales."""

    def __init__(self, context: Context, objective: HeldOutErrors, start: Trial) -> None:
        self._objective = objective
        self._context, self._kernel, self._best = context, start.plan.kernel, start
        self._place = (0,) * context.train.d
        self._tried = {self._place}
        self._null = context.bench.null_errors(whole=False)

    def run(self) -> Trial:
        for stride in (2, 1):  # factors of 2, then of sqrt(2)
            moved = True
            while moved:
                moved = False
                for j in range(len(self._place)):
                    moved |= self._along(j, stride)
        return self._best

    def _along(self, j: int, stride: int) -> bool:
        """Go on in the better direction as long as it helps; whether it did."""
        ways, moved = [stride, -stride], False
        while ways:
            places = [p for p in (self._moved(j, way) for way in ways) if self._allowed(p)]
            self._tried |= set(places)
            plans = [
                replace(self._best.plan, kernel=candidates.stretched(self._kernel, _factors(place)))
                for place in places
            ]
            ladder = self._context.near(self._best, 1)
            found = self._context.try_each(
                [(plan, ladder) for plan in plans], "axes", self._context.small, done=0.45
            )
            judged = [(t, p) for t, p in zip(found, places, strict=True) if t is not None]
            if not judged:
                break
            trial, place = min(judged, key=lambda pair: pair[0].score)
            if not self._clear(trial):
                break
            ways = [way for way in ways if self._moved(j, way) == place]
            self._best, self._place, moved = trial, place, True
        return moved

    def _moved(self, j: int, way: int) -> tuple[int, ...]:
        return tuple(v + way * (i == j) for i, v in enumerate(self._place))

    def _allowed(self, place: tuple[int, ...]) -> bool:
        near = all(abs(v) <= FARTHEST for v in place)
        few = len(self._tried) < TRIALS * len(place)
        return near and few and place not in self._tried and not self._context.out_of_time()

    def _clear(self, trial: Trial) -> bool:
        before, after = self._best.errors, trial.errors
        if before is None or after is None:
            return False
        gain, spread = self._objective.gain(before, after, self._null)
        return gain > max(spread, 0.0)


def _factors(place: tuple[int, ...]) -> tuple[float, ...]:
    return tuple(2.0 ** (v / 2) for v in place)
