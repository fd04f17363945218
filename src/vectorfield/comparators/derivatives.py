"""Derivatives estimated from samples, which regressions on slopes begin with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

from vectorfield._errors import MissingExtraError
from vectorfield._settings import Settings, check_integer
from vectorfield.smoothing import SplineSmoother
from vectorfield.trajectories import Trajectories

__all__ = ["Derivatives", "Differences", "Slopes", "SmoothedDifferences", "Splines", "pysindy"]


class Slopes(NamedTuple):
    """States (n_i, d) and their time derivatives (n_i, d), a list of each over trajectories."""

    states: list[np.ndarray]
    slopes: list[np.ndarray]


class Derivatives(Settings, ABC):
    """How time derivatives are estimated; a call takes `Trajectories` to `Slopes`.

    Example:
        >>> from vectorfield.comparators import Derivatives, Differences
        >>> isinstance(Differences(), Derivatives)
        True
    """

    __slots__ = ()

    @abstractmethod
    def __call__(self, trajectories: Trajectories) -> Slopes:
        """Return states, smoothed or not, and slopes at the same times."""


@dataclass(frozen=True)
class Differences(Derivatives):
    """pysindy's `FiniteDifference` of an order of accuracy, on any times.

    Trajectories too short for the order get the highest even one that they allow; two samples
    give their midpoint and the slope between them, which is of order 2 as well.

    Example:
        >>> import vectorfield as vf
        >>> data = vf.Trajectories.from_arrays([[[0.0], [1.0], [9.0]]], [[0.0, 1.0, 3.0]])
        >>> vf.comparators.Differences()(data).slopes[0][1]  # the parabola t^2 at t = 1
        array([2.])
    """

    order: int = 2

    def __post_init__(self) -> None:
        if check_integer("order", self.order, at_least=2) % 2:
            raise ValueError(f"order must be even, got {self.order}")

    def __call__(self, trajectories: Trajectories) -> Slopes:
        """Return the samples as they are and their difference quotients. Cost O(P d order)."""
        found = [_differences(x, t, self.order) for t, x in trajectories]
        return Slopes([x for x, _ in found], [v for _, v in found])


@dataclass(frozen=True)
class SmoothedDifferences(Derivatives):
    """pysindy's `SmoothedFiniteDifference`: Savitzky and Golay's filter, then differences.

    The filter counts samples and knows no times: steps that differ are smoothed as if they did
    not. On trajectories shorter than the window it is as wide as they allow.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 6.0, 121)
        >>> noisy = np.sin(t)[:, None] + 0.05 * np.random.default_rng(0).normal(size=(121, 1))
        >>> data = vf.Trajectories.from_arrays(noisy, t)
        >>> errors = [
        ...     np.abs(rule(data).slopes[0][:, 0] - np.cos(t)).mean()
        ...     for rule in (vf.comparators.Differences(), vf.comparators.SmoothedDifferences(21))
        ... ]
        >>> bool(errors[1] < 0.2 * errors[0])
        True
    """

    window: int = 11
    degree: int = 3

    def __post_init__(self) -> None:
        check_integer("degree", self.degree, at_least=1)
        if check_integer("window", self.window, at_least=self.degree + 1) % 2 == 0:
            raise ValueError(f"window must be odd, got {self.window}")

    def __call__(self, trajectories: Trajectories) -> Slopes:
        """Return filtered samples and their differences. Cost O(P d window)."""
        states, slopes = [], []
        for t, x in trajectories:
            window = min(self.window, len(t) - 1 + len(t) % 2)
            if window <= self.degree:  # nothing to average over
                x, v = _differences(x, t, 2)  # noqa: PLW2901
            else:
                method = pysindy().SmoothedFiniteDifference(
                    smoother_kws={"window_length": window, "polyorder": self.degree}
                )
                v = np.asarray(method(np.array(x), np.array(t)))
                x = np.asarray(method.smoothed_x_)  # noqa: PLW2901
            states.append(x)
            slopes.append(v)
        return Slopes(states, slopes)


@dataclass(frozen=True)
class Splines(Derivatives):
    """Values and slopes of `SplineSmoother`'s curves: cubic smoothing splines on their own times.

    The penalty is chosen for each feature by generalised cross-validation over all trajectories.
    Those below five samples are not smoothed, and get differences.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.sort(np.random.default_rng(1).uniform(0.0, 6.0, size=120))
        >>> data = vf.Trajectories.from_arrays(np.sin(t)[:, None], t)
        >>> slopes = vf.comparators.Splines()(data).slopes[0][:, 0]
        >>> bool(np.abs(slopes - np.cos(t))[5:-5].max() < 1e-2)
        True
    """

    def __call__(self, trajectories: Trajectories) -> Slopes:
        """Return the splines at the samples' times. Cost O(P d), some 40 times."""
        states, slopes = [], []
        for t, x in SplineSmoother()(trajectories).trajectories:
            if len(t) < 5:
                x, v = _differences(x, t, 2)  # noqa: PLW2901
            else:  # a smoothing spline is the natural spline through its own values
                v = CubicSpline(t, x, bc_type="natural")(t, 1)
            states.append(x)
            slopes.append(np.asarray(v))
        return Slopes(states, slopes)


def _differences(x: np.ndarray, t: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    if len(t) == 2:
        return x.mean(axis=0, keepdims=True), (x[1:] - x[:1]) / (t[1] - t[0])
    order = min(order, 2 * ((len(t) - 1) // 2))
    method = pysindy().FiniteDifference(order=order)
    return x, np.asarray(method(np.array(x), np.array(t)))


def pysindy() -> Any:
    """Return the package pysindy, or say which extra brings it."""
    try:
        import pysindy as package
    except ImportError as error:
        raise MissingExtraError("pysindy", "sindy", "SINDy") from error
    return package
