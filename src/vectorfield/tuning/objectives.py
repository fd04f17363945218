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
        spread = np.sqrt((count - 1) / count * ((left - left.mean()) ** 2).sum())
        return float(value), float(spread)

    def gain(self, errors: np.ndarray, other: np.ndarray, null: np.ndarray) -> tuple[float, float]:
        """Return by how much the score of ``errors`` is below that of ``other``, and its error.

        The standard error is that of the difference, by the jackknife over the same trajectories:
        what makes a trajectory hard for both plans cancels.
        """
        weights, parts = self.weights(len(errors)), (errors, other, null)
        one, two, still = (part.sum(axis=1) for part in parts)
        found = _mean(two, still, weights) - _mean(one, still, weights)
        count = errors.shape[1]
        if count < 2:
            return float(found), float("nan")
        one, two, still = (part.sum(axis=1)[:, None] - part for part in parts)
        left = _mean(two, still, weights[:, None]) - _mean(one, still, weights[:, None])
        spread = np.sqrt((count - 1) / count * ((left - left.mean()) ** 2).sum())
        return float(found), float(spread)


def _mean(errors: np.ndarray, null: np.ndarray, weights: np.ndarray) -> np.ndarray:
    ratio = np.where(null > 0, errors / np.where(null > 0, null, 1.0), np.where(errors > 0, 1.0, 0))
    return np.asarray(np.exp((weights * np.log(np.maximum(ratio, 1e-15))).sum(axis=0)))


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
