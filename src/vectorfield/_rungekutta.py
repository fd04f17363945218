"""Embedded Runge-Kutta pairs for a batch of starts, each with a step size of its own.

The tableaux are SciPy's (`scipy.integrate.DOP853` and `RK45`), so that there is one source of
their digits. Every start runs forward in tau = |t - t_0| with the field's sign turned where it
goes back in time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import DOP853, RK45

from vectorfield import _backend

__all__ = ["Ended", "integrate"]

SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0


@dataclass(frozen=True, eq=False)
class Ended:
    """States at the times asked (a list, one (m_i, d) array a start), and how each start ended."""

    x: list[Any]
    outcomes: list[str]
    reached: np.ndarray
    steps: np.ndarray
    evaluations: int


class _Pair:
    """A tableau, its error estimate and its interpolant."""

    def __init__(self, name: str) -> None:
        tableau = {"DOP853": DOP853, "RK45": RK45}[name]
        self.is_dop853 = name == "DOP853"
        self.stages = int(tableau.n_stages)
        self.a, self.b = tableau.A, tableau.B
        self.exponent = -1.0 / (tableau.error_estimator_order + 1)
        self.extra = tableau.A_EXTRA if self.is_dop853 else np.zeros((0, 0))
        self.errors = (tableau.E5, tableau.E3) if self.is_dop853 else (tableau.E,)
        self.dense = tableau.D if self.is_dop853 else tableau.P.T

    def error_norm(self, k: Any, h: np.ndarray, scale: Any) -> np.ndarray:
        """Root-mean-square local error in units of the tolerance, (n,)."""
        xp = _backend.namespace(k)
        norms = []
        for weights in self.errors:
            error = _combine(weights, k) / scale
            norms.append(_backend.to_numpy(xp.mean(error * error, axis=1)))
        if not self.is_dop853:
            return np.asarray(np.abs(h) * np.sqrt(norms[0]))
        below = np.sqrt(norms[0] + 0.01 * norms[1])
        ratio = np.divide(norms[0], below, out=np.zeros_like(below), where=below != 0)
        return np.asarray(np.abs(h) * ratio)

    def interpolate(self, s: Any, h: Any, y_old: Any, y_new: Any, k: Any) -> Any:
        """States at the fractions s (n, 1) of steps h (n, 1); ``k`` (stages, n, d), one a row."""
        if not self.is_dop853:
            powers = s
            value = None
            for row in self.dense:
                term = _combine(row, k) * powers
                value = term if value is None else value + term
                powers = powers * s
            return y_old + h * value
        delta = y_new - y_old
        terms = [delta, h * k[0] - delta, 2 * delta - h * (k[self.stages] + k[0])]
        terms += [h * _combine(row, k) for row in self.dense]
        value = terms[-1] * s
        for i, term in enumerate(reversed(terms[:-1]), start=1):
            value = (value + term) * (s if i % 2 == 0 else 1.0 - s)
        return y_old + value


def _combine(weights: np.ndarray, k: Any) -> Any:
    """sum_j weights[j] k[j], as one product."""
    xp = _backend.namespace(k)
    count = len(weights)
    flat = xp.reshape(k[:count], (count, -1))
    return xp.reshape(_backend.array_like(weights, k) @ flat, k.shape[1:])


class _Batch:
    """The starts still running, compacted as others end."""

    def __init__(self, field: Callable[[Any], Any], starts: Any, times: Sequence[np.ndarray]):
        self.field = field
        self.evaluations = 0
        self.times = times
        self.shared = all(t is times[0] for t in times)
        self.sign = np.asarray([1.0 if t[-1] >= t[0] else -1.0 for t in times])
        self.origin = np.asarray([t[0] for t in times])
        self.taus = [s * (t - t[0]) for s, t in zip(self.sign, times, strict=True)]
        if self.shared:
            self.taus = [self.taus[0]] * len(times)
        self.end = np.asarray([tau[-1] for tau in self.taus])
        self.offsets = np.concatenate([[0], np.cumsum([len(t) for t in times])])
        xp = _backend.namespace(starts)
        self.out = xp.full(
            (int(self.offsets[-1]), starts.shape[1]),
            float("nan"),
            dtype=starts.dtype,
            device=_backend.device(starts),
        )
        self.write(self.offsets[:-1], starts)
        count = len(times)
        self.outcomes = np.full(count, "FINISHED", dtype=object)
        self.reached = self.origin.copy()
        self.steps = np.zeros(count, dtype=int)
        self.index = np.arange(count)
        self.y, self.tau = starts, np.zeros(count)
        self.done = np.ones(count, dtype=int)  # samples written

    def rate(self, y: Any, rows: np.ndarray | None = None) -> Any:
        """sign * f(y) for the running starts, or for some of them."""
        self.evaluations += 1
        value = self.field(y)
        if tuple(value.shape) != tuple(y.shape):
            raise ValueError(
                f"the field returned shape {tuple(value.shape)} for states {tuple(y.shape)}"
            )
        sign = self.sign[self.index if rows is None else self.index[rows]]
        return value if (sign > 0).all() else value * _column(sign, y)

    def write(self, rows: np.ndarray, values: Any) -> None:
        self.out[_backend.index(rows, self.out)] = values

    def until(self, rows: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Number of samples of each row at or before tau."""
        if self.shared:
            return np.searchsorted(self.taus[0], tau, side="right")
        owners = self.index[rows]
        found = [
            np.searchsorted(self.taus[i], v, side="right") for i, v in zip(owners, tau, strict=True)
        ]
        return np.asarray(found, dtype=int)

    def result(self) -> Ended:
        x = [self.out[int(a) : int(b)] for a, b in zip(self.offsets, self.offsets[1:], strict=False)]
        return Ended(x, self.outcomes.tolist(), self.reached, self.steps, self.evaluations)


def integrate(
    field: Callable[[Any], Any],
    starts: Any,
    times: Sequence[np.ndarray],
    method: str,
    rtol: float,
    atol: Any,
    max_steps: int,
) -> Ended:
    """Integrate a batch of starts (b, d) over one array of times each."""
    pair = _Pair(method)
    batch = _Batch(field, starts, times)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        rate = batch.rate(starts)
        h = _first_step(batch, rate, pair, rtol, atol)
        tried = np.zeros(len(times), dtype=int)
        grow = np.full(len(times), GROW)
        # starts whose only time is the first, or whose field is not finite there, end at once
        ended = batch.end <= 0
        broken = ~_all_finite(rate)
        rate, (h, tried, grow) = _retire(batch, ended, broken, rate, h, tried, grow)
        while len(batch.index):
            h = np.minimum(h, batch.end[batch.index] - batch.tau)
            k, y_new = _stages(batch, pair, rate, h)
            xp = _backend.namespace(y_new)
            scale = atol + rtol * xp.maximum(xp.abs(batch.y), xp.abs(y_new))
            scale = xp.where(scale > 0, scale, xp.full_like(scale, 1e-300))
            error = pair.error_norm(k, h, scale)
            finite = np.isfinite(error) & _all_finite(y_new) & _all_finite(k[pair.stages])
            accepted = finite & (error < 1.0)
            factor = SAFETY * np.maximum(np.where(finite, error, 1.0), 1e-30) ** pair.exponent
            factor = np.where(accepted, np.minimum(factor, grow), np.maximum(factor, SHRINK))
            factor = np.where(finite, factor, 0.1)
            rate = _advance(batch, pair, accepted, k, y_new, h, rate)
            tried += 1
            h = h * factor
            grow = np.where(accepted, GROW, 1.0)
            ended = accepted & (batch.tau >= batch.end[batch.index])
            now = batch.origin[batch.index] + batch.sign[batch.index] * batch.tau
            small = ~ended & (h < 4 * np.spacing(np.abs(now)))
            spent = ~ended & (tried >= max_steps)
            batch.outcomes[batch.index[spent]] = "TOO_MANY_STEPS"
            batch.outcomes[batch.index[small]] = "STEP_TOO_SMALL"
            broken = small & ~finite
            rate, (h, tried, grow) = _retire(
                batch, ended | spent | small, broken, rate, h, tried, grow
            )
    return batch.result()


def _stages(batch: _Batch, pair: _Pair, rate: Any, h: np.ndarray) -> tuple[Any, Any]:
    """All stages k (stages + 1, n, d) of one step, and the new states."""
    xp = _backend.namespace(rate)
    step = _column(h, rate)
    k = xp.empty(
        (pair.stages + 1 + len(pair.extra), *rate.shape),
        dtype=rate.dtype,
        device=_backend.device(rate),
    )
    k[0] = rate
    for s in range(1, pair.stages):
        k[s] = batch.rate(batch.y + step * _combine(pair.a[s, :s], k))
    y_new = batch.y + step * _combine(pair.b, k)
    k[pair.stages] = batch.rate(y_new)
    return k, y_new


def _advance(
    batch: _Batch, pair: _Pair, accepted: np.ndarray, k: Any, y_new: Any, h: np.ndarray, rate: Any
) -> Any:
    """Write the samples that accepted steps passed, move those starts on, return their rates."""
    rows = np.flatnonzero(accepted)
    if len(rows) == 0:
        return rate
    remaining = batch.end[batch.index[rows]] - batch.tau[rows]
    tau_new = np.where(h[rows] >= remaining, batch.end[batch.index[rows]], batch.tau[rows] + h[rows])
    until = batch.until(rows, tau_new)
    passed = until - batch.done[rows]
    _write_passed(batch, pair, rows, passed, tau_new, k, y_new, h)
    batch.done[rows] = until
    batch.tau[rows] = tau_new
    owners = batch.index[rows]
    batch.steps[owners] += 1
    batch.reached[owners] = batch.origin[owners] + batch.sign[owners] * tau_new
    xp = _backend.namespace(y_new)
    keep = _backend.index(accepted, y_new)[:, None]
    batch.y = xp.where(keep, y_new, batch.y)
    return xp.where(keep, k[pair.stages], rate)


def _write_passed(
    batch: _Batch,
    pair: _Pair,
    rows: np.ndarray,
    passed: np.ndarray,
    tau_new: np.ndarray,
    k: Any,
    y_new: Any,
    h: np.ndarray,
) -> None:
    rows, tau_new, counts = rows[passed > 0], tau_new[passed > 0], passed[passed > 0]
    if len(rows) == 0:
        return
    chosen = _backend.index(rows, y_new)
    y_old, y_end, k = batch.y[chosen], y_new[chosen], k[:, chosen]
    step = _column(h[rows], y_new)
    samples = batch.done[rows].repeat(counts) + _within(counts)
    owners = batch.index[rows].repeat(counts)
    if batch.shared:
        tau = batch.taus[0][samples]
    else:
        tau = np.asarray([batch.taus[i][j] for i, j in zip(owners, samples, strict=True)])
    inside = tau < tau_new.repeat(counts)
    if inside.any():
        for s, weights in enumerate(pair.extra, start=pair.stages + 1):
            k[s] = batch.rate(y_old + step * _combine(weights[:s], k), rows)
    which = _backend.index(np.arange(len(rows)).repeat(counts), y_new)
    fraction = (tau - batch.tau[rows].repeat(counts)) / h[rows].repeat(counts)
    values = y_end[which]
    if inside.any():
        xp = _backend.namespace(y_new)
        between = pair.interpolate(
            _column(fraction, y_new), step[which], y_old[which], values, k[:, which]
        )
        values = xp.where(_backend.index(inside, y_new)[:, None], between, values)
    batch.write(batch.offsets[owners] + samples, values)


def _within(counts: np.ndarray) -> np.ndarray:
    """0 ... c - 1 for every count c, one after the other."""
    return np.arange(counts.sum()) - (np.cumsum(counts) - counts).repeat(counts)


def _retire(
    batch: _Batch, ended: np.ndarray, broken: np.ndarray, rate: Any, *controls: np.ndarray
) -> tuple[Any, list[np.ndarray]]:
    """Take starts that ended out of the batch; broken ones are recorded as blown up."""
    batch.outcomes[batch.index[broken]] = "BLEW_UP"
    keep = np.flatnonzero(~(ended | broken))
    if len(keep) == len(batch.index):
        return rate, list(controls)
    chosen = _backend.index(keep, batch.y)
    batch.y, batch.tau, batch.done = batch.y[chosen], batch.tau[keep], batch.done[keep]
    batch.index = batch.index[keep]
    return rate[chosen], [control[keep] for control in controls]


def _first_step(batch: _Batch, rate: Any, pair: _Pair, rtol: float, atol: Any) -> np.ndarray:
    """Hairer, Norsett and Wanner's guess of the first step, for every start."""
    xp = _backend.namespace(rate)
    y = batch.y
    scale = atol + rtol * xp.abs(y)
    scale = xp.where(scale > 0, scale, xp.full_like(scale, 1e-300))
    d0, d1 = _rms(y / scale), _rms(rate / scale)
    with np.errstate(all="ignore"):
        h0 = np.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / d1)
        h0 = np.where(np.isfinite(h0), np.minimum(h0, batch.end), 1e-6)
        trial = batch.rate(y + _column(h0, y) * rate)
        d2 = _rms((trial - rate) / scale) / np.where(h0 > 0, h0, 1.0)
        largest = np.maximum(d1, d2)
        h1 = np.where(largest <= 1e-15, np.maximum(1e-6, h0 * 1e-3), (0.01 / largest) ** -pair.exponent)
    guess = np.minimum(100 * h0, np.where(np.isfinite(h1) & (h1 > 0), h1, h0))
    return np.asarray(np.minimum(guess, batch.end))


def _rms(x: Any) -> np.ndarray:
    xp = _backend.namespace(x)
    return _backend.to_numpy(xp.sqrt(xp.mean(x * x, axis=1)))


def _all_finite(x: Any) -> np.ndarray:
    xp = _backend.namespace(x)
    return np.asarray(_backend.to_numpy(xp.all(xp.isfinite(x), axis=1)), dtype=bool)


def _column(values: np.ndarray, like: Any) -> Any:
    return _backend.array_like(values, like)[:, None]
