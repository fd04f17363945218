"""Objectives: what is made of the errors on held-out windows of several lengths."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from vectorfield._settings import Settings

__all__ = ["Both", "Objective", "OneStep", "Rollout", "Windowed"]


class Objective(Settings, ABC):
    """From errors over those of the null model to a score; smaller is better, 1 is no better.

    Levels are windows of growing length, from one step to whole trajectories.
    """

    @abstractmethod
    def weights(self, levels: int) -> np.ndarray:
        """Return the weight of each level, (levels,), their sum 1."""

    def score(self, errors: np.ndarray, null: np.ndarray) -> tuple[float, float]:
        """Return the score and its standard error over trajectories.

        The weighted geometric mean over levels of sum Err / sum null Err, with sums over windows;
        the error by the jackknife. ``errors`` and ``null`` are (levels, trajectories).
        """
        weights = self.weights(len(errors))
        count = errors.shape[1]
        value = _mean(errors.sum(axis=1), null.sum(axis=1), weights)
        if count < 2:
            return float(value), float("nan")
        rest = (
            errors.sum(axis=1)[:, None] - errors,
            null.sum(axis=1)[:, None] - null,
        )
        left = _mean(rest[0], rest[1], weights[:, None])
        return float(value), _jackknife(left)

    def gain(self, before: np.ndarray, after: np.ndarray, null: np.ndarray) -> tuple[float, float]:
        """Return log(score before / score after) and its standard error over trajectories.

        Positive where ``after`` is better. The error is the jackknife's of the difference, with the
        same trajectory left out of both: what makes a trajectory hard for both fields cancels. NaN,
        which is larger than nothing, where there is but one trajectory. All are
        (levels, trajectories).

        Example:
            >>> import numpy as np
            >>> null = np.ones((1, 3))
            >>> hard = np.array([[0.1, 0.2, 0.9]])
            >>> gain, spread = OneStep().gain(hard, 0.5 * hard, null)
            >>> round(gain, 3), round(spread, 3)  # half of everything: no doubt
            (0.693, 0.0)
        """
        weights, count = self.weights(len(before)), before.shape[1]
        whole = [_mean(e.sum(axis=1), null.sum(axis=1), weights) for e in (before, after)]
        value = float(np.log(whole[0]) - np.log(whole[1]))
        if count < 2:
            return value, float("nan")
        rest = null.sum(axis=1)[:, None] - null
        left = [_mean(e.sum(axis=1)[:, None] - e, rest, weights[:, None]) for e in (before, after)]
        return value, _jackknife(np.log(left[0]) - np.log(left[1]))


def _mean(errors: np.ndarray, null: np.ndarray, weights: np.ndarray) -> np.ndarray:
    ratio = np.where(null > 0, errors / np.where(null > 0, null, 1.0), np.where(errors > 0, 1.0, 0))
    return np.asarray(np.exp((weights * np.log(np.maximum(ratio, 1e-15))).sum(axis=0)))


def _jackknife(left: np.ndarray) -> float:
    """Return the standard error of a figure from its values with one trajectory left out."""
    count = len(left)
    return float(np.sqrt((count - 1) / count * ((left - left.mean()) ** 2).sum()))


@dataclass(frozen=True)
class Windowed(Objective):
    """Err over windows of several lengths, from one step to whole trajectories, alike.

    The default. On chaotic flows whole trajectories alone would favour fields that hardly move,
    single steps alone fields that run away.
    """

    def weights(self, levels: int) -> np.ndarray:
        """Return equal weights."""
        return np.full(levels, 1.0 / levels)


@dataclass(frozen=True)
class Rollout(Objective):
    """Err over whole trajectories, as the paper tunes."""

    def weights(self, levels: int) -> np.ndarray:
        """Return the last level alone."""
        return np.asarray(np.eye(levels)[-1])


@dataclass(frozen=True)
class OneStep(Objective):
    """1-Err: over single steps."""

    def weights(self, levels: int) -> np.ndarray:
        """Return the first level alone."""
        return np.asarray(np.eye(levels)[0])


@dataclass(frozen=True)
class Both(Objective):
    """Err and 1-Err: single steps and whole trajectories alike."""

    def weights(self, levels: int) -> np.ndarray:
        """Return the first and the last level."""
        return np.asarray(0.5 * (np.eye(levels)[0] + np.eye(levels)[-1]))
