"""Objectives: what makes one plan better than another.

Those of this module are made of the errors of fields that were fitted to one part of the data and
followed on another; those of `vectorfield.tuning.closed_form` come from the fit itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata

from vectorfield._settings import Settings

if TYPE_CHECKING:
    from vectorfield.plan import Plan
    from vectorfield.tuning.bench import Bench
    from vectorfield.tuning.trials import Trial

__all__ = ["Both", "HeldOutErrors", "Objective", "OneStep", "Rollout", "Windowed", "jackknifed"]


class Objective(Settings, ABC):
    """From a plan and a ridge to a score; smaller is better, and the null model has 1.

    Example:
        >>> from vectorfield.tuning import LeftOut, Objective, Rollout
        >>> isinstance(Rollout(), Objective), isinstance(LeftOut(), Objective)
        (True, True)
    """

    @abstractmethod
    def judge(
        self, bench: Bench, plan: Plan, levels: Sequence[float], stage: str, **options: Any
    ) -> list[Trial]:
        """Return a trial for each ridge level; the options are those of `Bench.judge`."""

    def compares(self, part: str, value: object) -> bool:
        """Whether plans with this value for a part have scores that mean the same.

        A search does not vary what its objective cannot compare.
        """
        return True

    def check(self, plan: Plan) -> None:
        """Raise ValueError where a plan has a given part that cannot be judged."""

    def order(self, trials: Sequence[Trial]) -> list[int]:
        """Return the places of the trials of a final choice, best first; by score."""
        return [int(k) for k in np.argsort([t.score for t in trials], kind="stable")]

    def reported(self, bench: Bench, trial: Trial) -> Trial:
        """Return the trial with its errors on held-out windows, for the report."""
        return trial


class HeldOutErrors(Objective):
    """Made of errors over those of the null model, on windows of held-out trajectories.

    Levels are windows of growing length, from one step to whole trajectories.
    """

    @abstractmethod
    def weights(self, levels: int) -> np.ndarray:
        """Return the weight of each level, (levels,), their sum 1."""

    def judge(
        self, bench: Bench, plan: Plan, levels: Sequence[float], stage: str, **options: Any
    ) -> list[Trial]:
        """Fit on each fold, and follow the fields on what it holds out."""
        return bench.follow(plan, levels, stage, self.score, **options)

    def score(self, errors: np.ndarray, null: np.ndarray) -> tuple[float, float]:
        """Return the score and its standard error over trajectories.

        The weighted geometric mean over levels of sum Err / sum null Err, with sums over windows;
        the error by the jackknife. ``errors`` and ``null`` are (levels, trajectories).
        """
        return jackknifed(errors, null, self.weights(len(errors)))

    def gain(self, before: np.ndarray, after: np.ndarray, null: np.ndarray) -> tuple[float, float]:
        """Return log(score before / score after) and its standard error over trajectories.

        Positive where ``after`` is better. The error is the jackknife's of the difference, with the
        same trajectory left out of both: what makes a trajectory hard for both fields cancels. It
        is NaN, than which nothing is larger, for a single trajectory. All are
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
        total = null.sum(axis=1)
        whole = [_mean(e.sum(axis=1), total, weights) for e in (before, after)]
        value = float(np.log(whole[0]) - np.log(whole[1]))
        if count < 2:
            return value, float("nan")
        rest = total[:, None] - null
        one, other = (
            _mean(e.sum(axis=1)[:, None] - e, rest, weights[:, None]) for e in (before, after)
        )
        return value, _jackknife(np.log(one) - np.log(other))


def jackknifed(errors: np.ndarray, null: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Return prod_j (sum_i errors_ji / sum_i null_ji)^weights_j and its standard error over i.

    The error is the jackknife's, NaN for a single trajectory. ``errors`` and ``null`` are (levels,
    trajectories).
    """
    count = errors.shape[1]
    total, still = errors.sum(axis=1), null.sum(axis=1)
    value = float(_mean(total, still, weights))
    if count < 2:
        return value, float("nan")
    left = _mean(total[:, None] - errors, still[:, None] - null, weights[:, None])
    return value, _jackknife(left)


def _jackknife(left: np.ndarray) -> float:
    """Return the standard error of a figure from its values with one trajectory left out."""
    count = len(left)
    return float(np.sqrt((count - 1) / count * ((left - left.mean()) ** 2).sum()))


def _mean(errors: np.ndarray, null: np.ndarray, weights: np.ndarray) -> np.ndarray:
    ratio = np.where(null > 0, errors / np.where(null > 0, null, 1.0), np.where(errors > 0, 1.0, 0))
    return np.asarray(np.exp((weights * np.log(np.maximum(ratio, 1e-15))).sum(axis=0)))


@dataclass(frozen=True)
class Windowed(HeldOutErrors):
    """Err over windows of several lengths, from one step to whole trajectories, alike.

    The default. On chaotic flows whole trajectories alone would favour fields that hardly move,
    single steps alone fields that run away.
    """

    def weights(self, levels: int) -> np.ndarray:
        """Return equal weights."""
        return np.full(levels, 1.0 / levels)


@dataclass(frozen=True)
class Rollout(HeldOutErrors):
    """Err over whole trajectories, as the paper tunes."""

    def weights(self, levels: int) -> np.ndarray:
        """Return the last level alone."""
        return np.asarray(np.eye(levels)[-1])


@dataclass(frozen=True)
class OneStep(HeldOutErrors):
    """1-Err: over single steps."""

    def weights(self, levels: int) -> np.ndarray:
        """Return the first level alone."""
        return np.asarray(np.eye(levels)[0])


@dataclass(frozen=True)
class Both(HeldOutErrors):
    """Err and 1-Err: the least sum of ranks.

    At a final choice each plan, with each of its ridges, has a rank by whole trajectories and one
    by single steps; that of the smallest sum is chosen, and of equal sums that of the smaller
    score. A rank depends on who else is compared, so that it can steer no search: on the way, and
    in the report, the score is the geometric mean of the two ratios.

    Example:
        >>> from types import SimpleNamespace
        >>> ratios = [(0.1, 0.9), (0.2, 0.3), (0.4, 0.2), (0.5, 0.5)]  # single steps, whole
        >>> trials = [SimpleNamespace(ok=True, score=(a * b) ** 0.5, ratios=(a, b))
        ...           for a, b in ratios]
        >>> Both().order(trials)  # ranks 1 + 4, 2 + 2, 3 + 1, 4 + 3
        [1, 2, 0, 3]
    """

    def weights(self, levels: int) -> np.ndarray:
        """Return the first and the last level."""
        return np.asarray(0.5 * (np.eye(levels)[0] + np.eye(levels)[-1]))

    def order(self, trials: Sequence[Trial]) -> list[int]:
        """Return the places of the trials, the least sum of ranks first, failures last."""
        good = [k for k, t in enumerate(trials) if t.ok]
        ends = np.array([[trials[k].ratios[0], trials[k].ratios[-1]] for k in good]).reshape(-1, 2)
        ranks = rankdata(ends, axis=0).sum(axis=1)
        placed = sorted(zip(ranks, [trials[k].score for k in good], good, strict=True))
        failed = [k for k, t in enumerate(trials) if not t.ok]
        return [k for _, _, k in placed] + failed
