"""Embedded Runge-Kutta pairs: tableau, error estimate and interpolant.

The digits are SciPy's (`scipy.integrate.DOP853` and `RK45`), so that there is one source of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import DOP853, RK45

from vectorfield import _backend

__all__ = ["Pair", "column", "combine"]


class Pair:
    """A method of ``stages`` stages; the field at the new state is stage number ``stages``."""

    def __init__(self, name: str) -> None:
        tableau = {"DOP853": DOP853, "RK45": RK45}[name]
        self.is_dop853 = name == "DOP853"
        self.stages = int(tableau.n_stages)
        self.a, self.b = tableau.A, tableau.B
        self.exponent = -1.0 / (tableau.error_estimator_order + 1)
        self.extra = tableau.A_EXTRA if self.is_dop853 else np.zeros((0, 0))
        self._errors = (tableau.E5, tableau.E3) if self.is_dop853 else (tableau.E,)
        self._dense = tableau.D if self.is_dop853 else tableau.P.T

    def error_norm(self, k: Any, h: np.ndarray, scale: Any) -> np.ndarray:
        """Root-mean-square local error in units of the tolerance ``scale`` (n, d), (n,)."""
        xp = _backend.namespace(k)
        norms = []
        for weights in self._errors:
            error = combine(weights, k) / scale
            norms.append(_backend.to_numpy(xp.mean(error * error, axis=1)))
        if not self.is_dop853:
            return np.asarray(h * np.sqrt(norms[0]))
        below = np.sqrt(norms[0] + 0.01 * norms[1])
        ratio = np.divide(norms[0], below, out=np.zeros_like(below), where=below != 0)
        return np.asarray(h * ratio)

    def interpolate(self, s: Any, h: Any, y_old: Any, y_new: Any, k: Any) -> Any:
        """States at the fractions s (n, 1) of steps h (n, 1); ``k`` (stages, n, d), one a row."""
        if not self.is_dop853:
            powers, value = s, 0.0
            for row in self._dense:
                value = value + combine(row, k) * powers
                powers = powers * s
            return y_old + h * value
        delta = y_new - y_old
        terms = [delta, h * k[0] - delta, 2 * delta - h * (k[self.stages] + k[0])]
        terms += [h * combine(row, k) for row in self._dense]
        value = 0.0
        for i, term in enumerate(reversed(terms)):
            value = (value + term) * (s if i % 2 == 0 else 1.0 - s)
        return y_old + value


def combine(weights: np.ndarray, k: Any) -> Any:
    """sum_j weights[j] k[j], term by term.

    Half the weights are zero, and a product of one row would be split over BLAS threads that wait
    for one another longer than they work.
    """
    total = 0.0
    for j in np.flatnonzero(weights):
        total = total + float(weights[j]) * k[int(j)]
    return total


def column(values: np.ndarray, like: Any) -> Any:
    """Values (n,) as an (n, 1) array beside the states."""
    return _backend.array_like(values, like)[:, None]
