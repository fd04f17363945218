"""A batch of starts stepped together, each with a step size and an end of its own.

Every start runs forward in tau = |t - t_0|, with the field's sign turned where it goes back in
time. One call of the field serves all starts still running.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vectorfield import _backend
from vectorfield._integrators.pairs import Pair, column, combine
from vectorfield._integrators.problem import TINY, Ended, Problem
from vectorfield._progress import report

__all__ = ["integrate"]

SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0


def integrate(problem: Problem, method: str, max_steps: int) -> Ended:
    """Integrate with the explicit pair ``"DOP853"`` or ``"RK45"``."""
    batch = _Batch(problem, Pair(method))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        batch.begin()
        while len(batch.index):
            batch.step(max_steps)
            report("simulation", batch.share_done())
    return Ended(batch.states(), batch.outcomes.tolist(), batch.reached, batch.steps, batch.calls)


class _Batch:
    """The starts still running, compacted as others end, and the output of all.

    ``index`` names the running starts; ``y``, ``rate``, ``tau``, ``h``, ``grow``, ``tried`` and
    ``done`` (samples written) have one row for each of them.
    """

    def __init__(self, problem: Problem, pair: Pair) -> None:
        self.problem, self.pair = problem, pair
        self.calls = 0
        times, starts = problem.times, problem.starts
        self.shared = all(t is times[0] for t in times)
        self.sign = np.asarray([1.0 if t[-1] >= t[0] else -1.0 for t in times])
        self.origin = np.asarray([t[0] for t in times])
        distinct = times[:1] if self.shared else times
        self.taus = [s * (t - t[0]) for s, t in zip(self.sign, distinct, strict=False)]
        lengths = [len(t) for t in times]
        self.offsets = np.concatenate([[0], np.cumsum(lengths)])
        self.end = np.abs(np.asarray([t[-1] for t in times]) - self.origin)
        xp = _backend.namespace(starts)
        shape = (int(self.offsets[-1]), starts.shape[1])
        place = _backend.device(starts)
        self.out = xp.full(shape, float("nan"), dtype=starts.dtype, device=place)
        self.out[_backend.index(self.offsets[:-1], self.out)] = starts
        count = len(times)
        self.outcomes = np.full(count, "FINISHED", dtype=object)
        self.reached = self.origin.copy()
        self.steps = np.zeros(count, dtype=int)
        self.index = np.arange(count)
        self.y, self.tau = starts, np.zeros(count)
        self.done = np.ones(count, dtype=int)
        self.tried = np.zeros(count, dtype=int)
        self.grow = np.full(count, GROW)

    def begin(self) -> None:
        """Evaluate the field at the starts, guess first steps, retire what ends at once."""
        self.rate = self.slope(self.y)
        self.h = self._first_step()
        only_start = self.end <= 0
        broken = ~_all_finite(self.rate) & ~only_start
        self.outcomes[broken] = "BLEW_UP"
        self._keep(~(only_start | broken))

    def step(self, max_steps: int) -> None:
        """Try one step of every running start."""
        end = self.end[self.index]
        self.h = np.minimum(self.h, end - self.tau)
        k, y_new = self._stages()
        error = self.pair.error_norm(k, self.h, self._scale(y_new))
        finite = np.isfinite(error) & _all_finite(y_new) & _all_finite(k[self.pair.stages])
        accepted = finite & (error < 1.0)
        self._advance(accepted, k, y_new)
        factor = SAFETY * np.maximum(np.where(finite, error, 1.0), 1e-30) ** self.pair.exponent
        factor = np.where(accepted, np.minimum(factor, self.grow), np.clip(factor, SHRINK, SAFETY))
        self.h = self.h * np.where(finite, factor, 0.1)
        self.grow = np.where(accepted, GROW, 1.0)
        self.tried += 1
        self._retire(finite, self.tau >= end, max_steps)

    def slope(self, y: Any, rows: np.ndarray | None = None) -> Any:
        """sign * f(y) for the running starts, or for some of them."""
        self.calls += 1
        value = self.problem.rate(y)
        sign = self.sign[self.index if rows is None else self.index[rows]]
        return value if (sign > 0).all() else value * column(sign, y)

    def share_done(self) -> float:
        """The share of all the time to simulate that is over, 1 for starts that ended early."""
        left = (self.end[self.index] - self.tau).sum()
        return float(1.0 - left / max(self.end.sum(), TINY))

    def states(self) -> list[Any]:
        """The output, cut by start."""
        cuts = zip(self.offsets[:-1], self.offsets[1:], strict=True)
        return [self.out[int(a) : int(b)] for a, b in cuts]

    def _scale(self, other: Any) -> Any:
        xp = _backend.namespace(other)
        size = xp.maximum(xp.abs(self.y), xp.abs(other))
        scale = self.problem.atol + self.problem.rtol * size
        return xp.where(scale > 0, scale, xp.full_like(scale, TINY))

    def _stages(self) -> tuple[Any, Any]:
        """All stages k (stages + 1, n, d), with room for the extra ones, and the new states."""
        xp = _backend.namespace(self.y)
        h = column(self.h, self.y)
        shape = (self.pair.stages + 1 + len(self.pair.extra), *self.y.shape)
        k = xp.empty(shape, dtype=self.y.dtype, device=_backend.device(self.y))
        k[0] = self.rate
        for s in range(1, self.pair.stages):
            k[s] = self.slope(self.y + h * combine(self.pair.a[s, :s], k))
        y_new = self.y + h * combine(self.pair.b, k)
        k[self.pair.stages] = self.slope(y_new)
        return k, y_new

    def _advance(self, accepted: np.ndarray, k: Any, y_new: Any) -> None:
        """Move the accepted starts on and write the samples that they passed."""
        rows = np.flatnonzero(accepted)
        if len(rows) == 0:
            return
        owners = self.index[rows]
        left = self.end[owners] - self.tau[rows]
        last = self.h[rows] >= left
        tau_new = np.where(last, self.end[owners], self.tau[rows] + self.h[rows])
        until = self._samples_until(owners, tau_new)
        passed = until > self.done[rows]
        if passed.any():
            self._write(rows[passed], until[passed], tau_new[passed], k, y_new)
        self.done[rows], self.tau[rows] = until, tau_new
        self.steps[owners] += 1
        self.reached[owners] = self.origin[owners] + self.sign[owners] * tau_new
        xp = _backend.namespace(y_new)
        keep = _backend.index(accepted, y_new)[:, None]
        self.y = xp.where(keep, y_new, self.y)
        self.rate = xp.where(keep, k[self.pair.stages], self.rate)

    def _samples_until(self, owners: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Number of samples of each start at or before tau."""
        if self.shared:
            return np.searchsorted(self.taus[0], tau, side="right")
        pairs = zip(owners, tau, strict=True)
        return np.asarray([np.searchsorted(self.taus[i], v, side="right") for i, v in pairs])

    def _write(
        self, rows: np.ndarray, until: np.ndarray, tau_new: np.ndarray, k: Any, y_new: Any
    ) -> None:
        """Interpolate the samples in (tau, tau_new] of the given rows."""
        first = self.done[rows]
        counts = until - first
        within = np.arange(counts.sum()) - (np.cumsum(counts) - counts).repeat(counts)
        samples = first.repeat(counts) + within
        owners = self.index[rows].repeat(counts)
        if self.shared:
            tau = self.taus[0][samples]
        else:
            tau = np.asarray([self.taus[i][j] for i, j in zip(owners, samples, strict=True)])
        chosen = _backend.index(rows, y_new)
        which = _backend.index(np.arange(len(rows)).repeat(counts), y_new)
        y_old, values = self.y[chosen], y_new[chosen][which]
        inside = tau < tau_new.repeat(counts)
        if inside.any():
            k, h = k[:, chosen], column(self.h[rows], y_new)
            for s, weights in enumerate(self.pair.extra, start=self.pair.stages + 1):
                k[s] = self.slope(y_old + h * combine(weights[:s], k), rows)
            s = (tau - self.tau[rows].repeat(counts)) / self.h[rows].repeat(counts)
            between = self.pair.interpolate(
                column(s, y_new), h[which], y_old[which], values, k[:, which]
            )
            xp = _backend.namespace(y_new)
            values = xp.where(_backend.index(inside, y_new)[:, None], between, values)
        self.out[_backend.index(self.offsets[owners] + samples, self.out)] = values

    def _retire(self, finite: np.ndarray, ended: np.ndarray, max_steps: int) -> None:
        now = self.origin[self.index] + self.sign[self.index] * self.tau
        small = ~ended & (self.h < 4 * np.spacing(np.abs(now)))
        spent = ~ended & ~small & (self.tried >= max_steps)
        self.outcomes[self.index[small]] = "STEP_TOO_SMALL"
        self.outcomes[self.index[small & ~finite]] = "BLEW_UP"
        self.outcomes[self.index[spent]] = "TOO_MANY_STEPS"
        self._keep(~(ended | small | spent))

    def _keep(self, running: np.ndarray) -> None:
        if running.all():
            return
        rows = np.flatnonzero(running)
        chosen = _backend.index(rows, self.y)
        self.y, self.rate = self.y[chosen], self.rate[chosen]
        for name in ("index", "tau", "h", "grow", "tried", "done"):
            setattr(self, name, getattr(self, name)[rows])

    def _first_step(self) -> np.ndarray:
        """Hairer, Norsett and Wanner's guess of the first step, for every start."""
        y, rate, scale = self.y, self.rate, self._scale(self.y)
        d0, d1 = _rms(y / scale), _rms(rate / scale)
        h0 = np.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / d1)
        h0 = np.where(np.isfinite(h0), np.minimum(h0, self.end), 1e-6)
        trial = self.slope(y + column(h0, y) * rate)
        d2 = _rms((trial - rate) / scale) / np.where(h0 > 0, h0, 1.0)
        largest = np.maximum(d1, d2)
        h1 = np.where(
            largest <= 1e-15,
            np.maximum(1e-6, h0 * 1e-3),
            (0.01 / np.maximum(largest, TINY)) ** -self.pair.exponent,
        )
        guess = np.minimum(100 * h0, np.where(np.isfinite(h1) & (h1 > 0), h1, h0))
        return np.asarray(np.minimum(guess, self.end))


def _rms(x: Any) -> np.ndarray:
    xp = _backend.namespace(x)
    return np.asarray(_backend.to_numpy(xp.sqrt(xp.mean(x * x, axis=1))))


def _all_finite(x: Any) -> np.ndarray:
    xp = _backend.namespace(x)
    return np.asarray(_backend.to_numpy(xp.all(xp.isfinite(x), axis=1)), dtype=bool)
