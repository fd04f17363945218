"""Weights of a convex combination of fields, found on held-out rollouts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from vectorfield.tuning.objectives import HeldOutErrors

__all__ = ["GRAIN", "Stack", "stack"]

GRAIN = 16  # weights are multiples of 1 / 16: as fine as held-out errors can tell
SIZES = (8, 4, 2, 1)  # of the transfers from one member to another, in sixteenths
PARTS = 5  # of the trajectories, each judged with weights that the others chose
CLEAR = 2.0  # standard errors by which a combination must win
LEAST = 0.02  # and the least gain for which it is worth to evaluate several fields


@dataclass(frozen=True, eq=False)
class Stack:
    """What was found.

    Attributes:
        weights: (M,) those of the lowest score, multiples of 1 / 16 with the sum 1.
        single: the best member alone.
        errors: (levels, trajectories), each trajectory's with weights chosen on others.
        gain: log(score of the best member / score of these errors); see `HeldOutErrors.gain`.
        spread: its standard error.
        tried: how many combinations.
    """

    weights: np.ndarray
    single: int
    errors: np.ndarray
    gain: float
    spread: float
    tried: int

    @property
    def kept(self) -> bool:
        """Whether several fields are better than the best one by more than chance."""
        several = int((self.weights > 0).sum()) > 1
        return several and self.gain > max(LEAST, CLEAR * self.spread)


def stack(
    evaluate: Callable[[np.ndarray], np.ndarray],
    count: int,
    objective: HeldOutErrors,
    null: np.ndarray,
    *,
    most: int = 60,
) -> Stack:
    """Walk over the simplex of weights, from the best member on.

    Rollouts are not linear in the weights, so this is Caruana's greedy selection rather than least
    squares: a half of the weight goes from one member to another where that lowers the score, then
    quarters, eighths and sixteenths. The weights returned are the best of all tried. How good they
    are is another matter, since they were chosen on the errors that they are judged by: so each
    fifth of the trajectories is judged with those weights, among all tried, that are best on the
    other four fifths, and compared with the best member on all trajectories.

    Args:
        evaluate: weights (R, M) to errors (R, levels, trajectories).
        count: M.
        objective: from errors to a score.
        null: (levels, trajectories) the errors of the model that stands still.
        most: how many combinations at most.

    Example:
        >>> import numpy as np
        >>> from vectorfield.tuning import OneStep
        >>> bias = np.random.default_rng(0).normal([[1.0], [-1.0]], 0.1, size=(2, 40))
        >>> def evaluate(weights):  # two members, one too high and one too low
        ...     return np.abs(weights @ bias)[:, None, :]
        >>> found = stack(evaluate, 2, OneStep(), np.ones((1, 40)))
        >>> found.weights, found.kept
        (array([0.5, 0.5]), True)
    """
    found: dict[tuple[int, ...], np.ndarray] = {}
    scores: dict[tuple[int, ...], float] = {}

    def look(points: list[tuple[int, ...]]) -> None:
        fresh = [p for p in points if p not in found][: max(0, most - len(found))]
        if fresh:
            for point, errors in zip(fresh, evaluate(np.array(fresh) / GRAIN), strict=True):
                found[point], scores[point] = errors, objective.score(errors, null)[0]

    singles = [tuple((GRAIN * np.eye(count, dtype=int)[m]).tolist()) for m in range(count)]
    look(singles)
    single = best = min((p for p in singles if p in scores), key=scores.__getitem__)
    for size in SIZES:
        settled = False
        while not settled:
            look(list(_transfers(best, size)))
            following = min(scores, key=scores.__getitem__)
            best, settled = following, following == best
    errors = _cross_chosen(found, objective, null)
    gain, spread = objective.gain(found[single], errors, null)
    return Stack(np.array(best) / GRAIN, singles.index(single), errors, gain, spread, len(found))


def _transfers(point: tuple[int, ...], size: int) -> Iterator[tuple[int, ...]]:
    """Yield the points where one member has given that much to another."""
    for giver, has in enumerate(point):
        for taker in range(len(point)):
            if giver != taker and has >= size:
                moved = list(point)
                moved[giver] -= size
                moved[taker] += size
                yield tuple(moved)


def _cross_chosen(
    found: dict[tuple[int, ...], np.ndarray], objective: HeldOutErrors, null: np.ndarray
) -> np.ndarray:
    """Return errors in which nobody's weights were chosen on his own."""
    everyone = np.arange(null.shape[1])
    tables = list(found.values())
    errors = np.empty_like(tables[0])
    for part in range(min(PARTS, len(everyone))):
        own = everyone % PARTS == part
        if own.all():  # a single trajectory: there are no others, and no spread either
            return tables[0]
        rest = [objective.score(table[:, ~own], null[:, ~own])[0] for table in tables]
        errors[:, own] = tables[int(np.argmin(rest))][:, own]
    return errors
