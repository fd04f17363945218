"""The paper's errors of predicted trajectories, their null-model values, and skill."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vectorfield import _backend
from vectorfield._errors import DataError

__all__ = ["Scores", "err", "evaluate", "null_err", "null_one_err", "one_err"]

WORST = 1e6
"""A failed prediction counts as this many times the null model's error in `Scores.skill`."""


def err(t: Any, x: Any, predicted: Any) -> float:
    """Return Err = sqrt( sum_(i >= 2) (t_i - t_(i-1)) |x_i - p_i|^2 ) of one trajectory.

    Args:
        t: (n,) times.
        x: (n, d) observed states.
        predicted: (n, d) states predicted from the first; one that is not finite (a simulation
            that stopped) makes the error infinite.

    Example:
        >>> from vectorfield.metrics import err
        >>> err([0.0, 1.0, 2.0], [[0.0], [1.0], [2.0]], [[0.0], [1.0], [0.0]])
        2.0
    """
    t, x, predicted = _check(t, x, predicted)
    if not np.isfinite(predicted).all():
        return float("inf")
    with np.errstate(over="ignore"):  # a rollout on its way to infinity
        squared = np.sum((x[1:] - predicted[1:]) ** 2, axis=1)
        return float(np.sqrt(np.sum(np.abs(np.diff(t)) * squared)))


def one_err(t: Any, x: Any, predicted: Any) -> float:
    """Return 1-Err: `err` of the first step alone, sqrt(t_2 - t_1) |x_2 - p_2|.

    Example:
        >>> from vectorfield.metrics import one_err
        >>> one_err([0.0, 0.25, 2.0], [[0.0], [1.0], [2.0]], [[0.0], [3.0], [0.0]])
        1.0
    """
    t, x, predicted = _check(t, x, predicted)
    return err(t[:2], x[:2], predicted[:2])


def null_err(t: Any, x: Any) -> float:
    """Return the `err` of the null model x(t) = x(0).

    Example:
        >>> from vectorfield.metrics import null_err
        >>> null_err([0.0, 1.0], [[1.0], [3.0]])
        2.0
    """
    x = _backend.to_numpy(x)
    return err(t, x, np.broadcast_to(x[:1], np.shape(x)))


def null_one_err(t: Any, x: Any) -> float:
    """Return the `one_err` of the null model x(t) = x(0).

    Example:
        >>> from vectorfield.metrics import null_one_err
        >>> null_one_err([0.0, 1.0, 2.0], [[1.0], [3.0], [9.0]])
        2.0
    """
    x = _backend.to_numpy(x)
    return one_err(t, x, np.broadcast_to(x[:1], np.shape(x)))


@dataclass(frozen=True, eq=False)
class Scores:
    """Errors of predictions for a set of trajectories; every array has one entry for each.

    Attributes:
        errs, one_errs: `err` and `one_err`; infinite where a prediction failed.
        null_errs, null_one_errs: those of the null model.
    """

    errs: np.ndarray
    one_errs: np.ndarray
    null_errs: np.ndarray
    null_one_errs: np.ndarray

    @property
    def err(self) -> float:
        """Mean Err over the trajectories."""
        return float(self.errs.mean())

    @property
    def one_err(self) -> float:
        """Mean 1-Err over the trajectories."""
        return float(self.one_errs.mean())

    @property
    def null_err(self) -> float:
        """Mean Err of the null model."""
        return float(self.null_errs.mean())

    @property
    def null_one_err(self) -> float:
        """Mean 1-Err of the null model."""
        return float(self.null_one_errs.mean())

    @property
    def skill(self) -> float:
        """1 - Err / null Err: 1 is perfect, 0 no better than x(t) = x(0), below 0 worse.

        Always finite, so that searches can rank it: a failed prediction counts as a million
        times its null error.
        """
        return _skill(self.errs, self.null_errs)

    @property
    def one_skill(self) -> float:
        """The same for 1-Err."""
        return _skill(self.one_errs, self.null_one_errs)


def evaluate(trajectories: Iterable[tuple[Any, Any]], predictions: Sequence[Any]) -> Scores:
    """Score predictions of a ragged set of trajectories.

    Args:
        trajectories: a `Trajectories`, or any pairs ``(t, x)``.
        predictions: one (n_i, d) array for each, its first row the start.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> data = vf.Trajectories.from_arrays([[[0.0], [1.0]], [[0.0], [2.0], [4.0]]], 1.0)
        >>> scores = vf.metrics.evaluate(data, [np.array([[0.0], [1.0]]), np.zeros((3, 1))])
        >>> scores.errs.round(3), round(scores.skill, 3)
        (array([0.   , 4.472]), 0.183)
    """
    pairs = list(trajectories)
    if len(pairs) == 0 or len(pairs) != len(predictions):
        raise DataError(f"{len(predictions)} predictions for {len(pairs)} trajectories")
    both = [(t, x, p) for (t, x), p in zip(pairs, predictions, strict=True)]
    return Scores(
        errs=np.asarray([err(t, x, p) for t, x, p in both]),
        one_errs=np.asarray([one_err(t, x, p) for t, x, p in both]),
        null_errs=np.asarray([null_err(t, x) for t, x, _ in both]),
        null_one_errs=np.asarray([null_one_err(t, x) for t, x, _ in both]),
    )


def _skill(errors: np.ndarray, null: np.ndarray) -> float:
    reference = null.sum()
    if reference == 0.0:  # nothing moves: only standing still is right
        return 1.0 if errors.sum() == 0.0 else 1.0 - WORST
    worst = WORST * np.where(null > 0, null, null.mean())
    return float(1.0 - np.minimum(errors, worst).sum() / reference)


def _check(t: Any, x: Any, predicted: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    times, states, guess = (
        np.asarray(_backend.to_numpy(v), dtype=np.float64) for v in (t, x, predicted)
    )
    if times.ndim != 1 or len(times) < 2 or states.ndim != 2 or len(states) != len(times):
        raise DataError(
            f"expected times (n,) and states (n, d) with n >= 2, got {times.shape}, {states.shape}"
        )
    if guess.shape != states.shape:
        raise DataError(f"prediction has shape {guess.shape}, the observed states {states.shape}")
    return times, states, guess
