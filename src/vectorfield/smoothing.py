"""The noise of snapshots: how large it is, and trajectories with less of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_solve_banded, cholesky_banded

from vectorfield import _backend
from vectorfield._settings import Settings, check_real
from vectorfield.trajectories import Trajectories

__all__ = ["Smoothed", "Smoother", "SplineSmoother", "noise_level"]

HIGHEST = 8  # order of differences; more reach further and cost more samples at the ends
SHORTEST = 5  # samples: shorter trajectories are not smoothed
EXACT = 256  # samples up to which the trace is exact
PROBES = 32  # beyond: random vectors for the trace
LARGEST = 1e20  # penalty in cubes of the mean step: straight lines through 10^5 samples
EXPONENTS = np.arange(-8.0, 12.25, 0.5)  # log10 of the penalties tried, in cubes of the mean step


def noise_level(trajectories: Trajectories) -> np.ndarray:
    """Return the standard deviation of the noise in each feature, (d,).

    A divided difference of order p leaves polynomials of degree below p out. With its weights
    scaled to a sum of squares of one, its mean square is the variance of independent noise plus
    what is left of the signal, which falls with p where the signal is smooth. The order is raised
    from 2 to at most 8 as long as the mean square falls by more than chance would make it, for
    each feature on its own, pooled over all trajectories. Any times will do. On clean, smooth and
    well sampled data the result is a tiny fraction of the increments.

    What it cannot tell apart from noise: a signal that jumps from sample to sample. What it takes
    for signal: noise that is smooth in time.

    Trajectories of two samples say nothing and are left out; where there are no others the result
    is NaN. Cost O(P d).

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.sort(np.random.default_rng(0).uniform(0.0, 9.0, size=500))
        >>> clean = np.stack([np.cos(t), np.sin(t)], axis=1)
        >>> noisy = clean + np.random.default_rng(1).normal(size=(500, 2)) * [0.1, 0.02]
        >>> vf.noise_level(vf.Trajectories.from_arrays(noisy, t)).round(2)
        array([0.1 , 0.02])
        >>> bool((vf.noise_level(vf.Trajectories.from_arrays(clean, t)) < 1e-6).all())
        True
    """
    states = _backend.to_numpy(trajectories.states)
    variance = np.full(states.shape[1], np.nan)
    rising = np.zeros(states.shape[1], dtype=bool)
    for order in range(2, HIGHEST + 1):
        squares, count = _difference_squares(trajectories, states, order)
        if count == 0:
            break
        if order == 2:
            variance = squares
            continue
        smaller = squares < variance * (1.0 - 2.0 / np.sqrt(count))
        rising |= ~smaller
        variance = np.where(rising, variance, squares)
        if rising.all():
            break
    level: np.ndarray = np.sqrt(variance)
    return level


def _difference_squares(
    trajectories: Trajectories, states: np.ndarray, order: int
) -> tuple[np.ndarray, int]:
    """Return mean squares (d,) of scaled divided differences, and how many there are."""
    counts = np.maximum(trajectories.lengths - order, 0)
    owner = np.repeat(np.arange(len(counts)), counts)
    rank = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    first = trajectories.offsets[:-1][owner] + rank
    if len(first) == 0:
        return np.zeros(states.shape[1]), 0
    reach = np.arange(order + 1)
    times = trajectories.times[first + reach[:, None]]
    times = (times - times[0]) / (times[-1] - times[0])
    gaps = times[:, None] - times[None, :]
    gaps[reach, reach] = 1.0
    weights = 1.0 / np.prod(gaps, axis=1)
    weights /= np.sqrt(np.sum(weights**2, axis=0))
    difference = np.zeros((len(first), states.shape[1]))
    for k in reach[1:]:  # from the first sample on, so that a far origin costs no digits
        difference += weights[k][:, None] * (states[first + k] - states[first])
    squares: np.ndarray = np.mean(difference**2, axis=0)
    return squares, len(first)


class Smoothed(NamedTuple):
    """Smoothed ``trajectories``, the ``noise`` (d,) taken out, and the ``penalties`` (d,) used."""

    trajectories: Trajectories
    noise: np.ndarray
    penalties: np.ndarray


class Smoother(Settings, ABC):
    """How states are smoothed before a fit: a call takes `Trajectories` to `Smoothed`.

    Example:
        >>> import vectorfield as vf
        >>> isinstance(vf.SplineSmoother(), vf.smoothing.Smoother)
        True
    """

    __slots__ = ()

    @abstractmethod
    def __call__(self, trajectories: Trajectories) -> Smoothed:
        """Return trajectories at the same times, with less noise in their states."""


@dataclass(frozen=True)
class SplineSmoother(Smoother):
    """A cubic smoothing spline through every trajectory and feature, on its own times.

    The spline s minimises sum_k (x_k - s(t_k))^2 + penalty int s''(t)^2 dt. One penalty serves a
    feature in all trajectories; it minimises generalised cross-validation over all of them,

        P RSS / (P - tr S)^2,     S the matrix that takes samples to smoothed samples.

    One trajectory alone leaves so little to choose by that its own minimum often follows the
    noise. The noise is sqrt(RSS / (P - tr S)). Where it is next to nothing so is the penalty,
    and the samples stay what they are. Trajectories below five samples are left as they are.

    Smoothing bends the curve a little everywhere. For noisy samples `SnapshotNoise` on the samples
    as they are is the other way; `MOCK` can be given both, and validation decides.

    Cost O(P (d + 32)) for each of some 40 penalties. The trace is exact up to 256 samples and
    estimated from 32 random vectors, always the same ones, beyond.

    Args:
        penalty: >= 0, in the third power of the unit of time; None chooses it for each feature.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 60.0, 2000)
        >>> clean = np.sin(t)[:, None]
        >>> noisy = clean + 0.1 * np.random.default_rng(0).normal(size=clean.shape)
        >>> smoothed, noise, _ = vf.SplineSmoother()(vf.Trajectories.from_arrays(noisy, t))
        >>> float(np.sqrt(np.mean((smoothed.states - clean) ** 2)).round(2)), noise.round(2)
        (0.02, array([0.1]))
    """

    penalty: float | None = None

    def __post_init__(self) -> None:
        if self.penalty is not None:
            value = check_real("penalty", self.penalty, at_least=0.0)
            object.__setattr__(self, "penalty", value)

    def __call__(self, trajectories: Trajectories) -> Smoothed:
        """Return the splines at the samples' times."""
        states = np.array(_backend.to_numpy(trajectories.states))
        d = states.shape[1]
        chosen = np.flatnonzero(trajectories.lengths >= SHORTEST)
        if len(chosen) == 0:
            return Smoothed(trajectories, np.full(d, np.nan), np.full(d, np.nan))
        lengths = trajectories.lengths[chosen]
        rows = np.concatenate([np.arange(*trajectories.offsets[i : i + 2]) for i in chosen])
        times = trajectories.times[rows]
        ends = np.cumsum(lengths)
        inner = np.delete(np.diff(times), ends[:-1] - 1)
        unit = float(inner.mean())
        centre = states[rows].mean(axis=0)
        values = states[rows] - centre
        splines = _Splines(times / unit, ends, values)
        if self.penalty is not None and self.penalty > LARGEST * unit**3:
            raise ValueError(
                f"penalty must be at most {LARGEST:g} cubes of the mean step, "
                f"{LARGEST * unit**3:g}, got {self.penalty:g}; that is a straight line already"
            )
        given = self.penalty
        penalties = splines.best() if given is None else np.full(d, given / unit**3)
        noise = np.empty(d)
        for penalty in np.unique(penalties):
            same = penalties == penalty
            values[:, same], noise[same] = splines.smooth(same, float(penalty))
        states[rows] = values + centre
        states.flags.writeable = False
        smoothed = _backend.array_like(states, trajectories.states)
        return Smoothed(replace(trajectories, states=smoothed), noise, penalties * unit**3)


class _Splines:
    """Smoothing splines through many trajectories at once, one below the other (Reinsch's form).

    With Q the second differences and R the Gram matrix of hats, s = x - penalty Q c at the samples,
    (R + penalty Q^T Q) c = Q^T x: banded, of reach 2, and block diagonal over trajectories.
    RSS = penalty^2 |Q c|^2 and P - tr S = penalty tr(Q B^-1 Q^T), so that neither is a difference.
    """

    def __init__(self, times: np.ndarray, ends: np.ndarray, values: np.ndarray) -> None:
        total = len(times)
        first = np.arange(total - 2)  # the leftmost of three samples, both steps in one trajectory
        outside = np.concatenate([ends[:-1] - 2, ends[:-1] - 1])
        first = np.setdiff1d(first, outside, assume_unique=True)
        left, right = times[first + 1] - times[first], times[first + 2] - times[first + 1]
        columns = np.arange(len(first))
        entries = np.concatenate([1.0 / left, -1.0 / left - 1.0 / right, 1.0 / right])
        places = np.concatenate([first, first + 1, first + 2])
        self._q = sp.csr_array((entries, (places, np.tile(columns, 3))), (total, len(first)))
        next_to = np.diff(first) == 1
        self._hats = np.zeros((3, len(first)))
        self._hats[0] = (left + right) / 3.0
        self._hats[1, :-1] = np.where(next_to, right[:-1], 0.0) / 6.0
        squares = self._q.T @ self._q
        self._squares = np.zeros_like(self._hats)
        for k in range(3):
            self._squares[k, : len(first) - k] = squares.diagonal(-k)
        if total <= EXACT:
            probes = np.eye(total)
        else:
            probes = np.random.default_rng(0).choice([-1.0, 1.0], size=(total, PROBES))
        self._values = values
        self._rhs = self._q.T @ values
        self._probes = self._q.T @ probes
        self._repeats = 1 if total <= EXACT else PROBES

    def best(self) -> np.ndarray:
        """Return the penalty of the least cross-validation score for each feature, (d,)."""
        scores = np.array([self._scores(10.0**exponent) for exponent in EXPONENTS])
        tiny = np.finfo(float).tiny
        heights = np.log(np.maximum(scores, tiny))
        lowest = np.argmin(heights, axis=0)
        inside = np.clip(lowest, 1, len(EXPONENTS) - 2)
        below, at, above = (
            np.take_along_axis(heights, (inside + k)[None], axis=0)[0] for k in (-1, 0, 1)
        )
        bend = below - 2.0 * at + above
        step = np.where(bend > 0, 0.5 * (below - above) / np.where(bend > 0, bend, 1.0), 0.0)
        step = np.where(lowest == inside, np.clip(step, -0.5, 0.5), 0.0)
        # tenths of a grid step are fine enough, and let features share their factors
        exponents = EXPONENTS[lowest] + np.round(step, 1) * (EXPONENTS[1] - EXPONENTS[0])
        penalties: np.ndarray = 10.0**exponents
        return penalties

    def smooth(self, which: np.ndarray, penalty: float) -> tuple[np.ndarray, np.ndarray]:
        """Return some features smoothed, (P, k), and the spread of what was taken out, (k,)."""
        factor = self._factor(penalty)
        taken = self._q @ cho_solve_banded((factor, True), self._rhs[:, which])
        noise = np.sqrt(penalty * np.sum(taken * taken, axis=0) / self._trace(factor))
        return self._values[:, which] - penalty * taken, noise

    def _scores(self, penalty: float) -> np.ndarray:
        factor = self._factor(penalty)
        taken = self._q @ cho_solve_banded((factor, True), self._rhs)
        scores: np.ndarray = np.sum(taken * taken, axis=0) / self._trace(factor) ** 2
        return scores

    def _factor(self, penalty: float) -> np.ndarray:
        bands = self._hats + penalty * self._squares
        return np.asarray(cholesky_banded(bands, lower=True, check_finite=False))

    def _trace(self, factor: np.ndarray) -> float:
        """Return tr(Q B^-1 Q^T), by |z|^2-weighted sums over the probes z."""
        solved = cho_solve_banded((factor, True), self._probes, check_finite=False)
        return float(np.sum(self._probes * solved)) / self._repeats
