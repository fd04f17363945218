"""Robust regression: observations that the others contradict count for less."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from vectorfield import _backend
from vectorfield._settings import Settings, check_integer, check_real
from vectorfield.kernels import OperatorKernel
from vectorfield.linalg import Regression, Solver, prepare
from vectorfield.occupation import Occupations

__all__ = ["Huber", "RobustRegression"]

NORMAL = 1.4826  # standard deviation over median absolute value, for normal errors
TINY = 1e-12  # of the largest target: residuals below are rounding


@dataclass(frozen=True, eq=False)
class RobustRegression:
    """What reweighted fits end with.

    Attributes:
        regression: the last fit.
        weights: w, (S,) in (0, 1], those of the last fit.
        rounds: how many fits there were.
        settled: whether the weights had stopped changing.
    """

    regression: Regression
    weights: np.ndarray
    rounds: int
    settled: bool


@dataclass(frozen=True)
class Huber(Settings):
    """Huber's loss, by fits in which every observation has a weight.

    The size of a residual r_s is its root mean square over the features, each in units of its
    own robust scale,

        e_s = sqrt(mean_i (r_si / (t_i sqrt(Sigma_ss)))^2),
        t_i = 1.4826 median_s |r_si| / sqrt(Sigma_ss).

    Observations get the weight w_s = min(1, threshold / e_s), Sigma becomes
    diag(w^-1/2) Sigma diag(w^-1/2), the field is fitted again, and so on until the weights settle.
    Errors up to the threshold count squared, larger ones linearly. The ridge is that of the
    plain fit. Cost: one fit a round; a dense Gram matrix is made once.

    Outliers are found by their residuals. Where the ridge is so small that f goes through every
    observation, none has any; a robust fit wants the ridge that the good observations need. A
    wrong snapshot spoils the observations on both of its sides, which both lose weight.

    Args:
        threshold: > 0. With 1.345 the fit of one feature keeps 95 % of its efficiency under normal
            errors.
        iterations: the most rounds after the plain fit.
        tolerance: largest change of a weight at which they count as settled. ``field_.info`` says
            in ``rounds`` how many fits there were, and in ``settled`` whether this was reached.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 6.0, 121)
        >>> circle = np.stack([np.cos(t), np.sin(t)], axis=1)
        >>> circle[40] += 2.0  # one sample is wrong
        >>> model = vf.MOCK(vf.kernels.Linear(), 1e-6, robust=vf.Huber(), standardize=False)
        >>> model.fit(circle, t).predict([[1.0, 0.0]]).round(2) + 0.0
        array([[0., 1.]])
        >>> np.flatnonzero(model.observation_weights_ < 0.1)
        array([39, 40])
    """

    threshold: float = 1.345
    iterations: int = 20
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        checked = {
            "threshold": check_real("threshold", self.threshold, above=0.0),
            "iterations": check_integer("iterations", self.iterations, at_least=1),
            "tolerance": check_real("tolerance", self.tolerance, above=0.0),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def regress(
        self,
        kernel: OperatorKernel,
        occupations: Occupations,
        *,
        ridge: float,
        covariance: sp.csr_array,
        solver: Solver | None = None,
    ) -> RobustRegression:
        """Return the field that reweighted fits arrive at; arguments are those of `regress`."""
        problem = prepare(kernel, occupations, covariance=covariance, solver=solver)
        regression = problem.solve(ridge)
        weights = np.ones(len(occupations))
        rounds, settled = 1, False
        while regression.expansion is not None and regression.solution.status.ok:
            wanted = self.weights(regression.residuals, occupations, covariance)
            settled = bool(np.max(np.abs(wanted - weights)) <= self.tolerance)
            if settled or rounds > self.iterations:
                break
            weights = wanted
            inflate = sp.diags_array(1.0 / np.sqrt(weights), format="csr")
            weighted = sp.csr_array(inflate @ covariance @ inflate)
            weighted.sort_indices()
            problem = problem.reweighted(weighted) or prepare(
                kernel, occupations, covariance=weighted, solver=solver
            )
            regression = problem.solve(ridge)
            rounds += 1
        weights.flags.writeable = False
        return RobustRegression(regression, weights, rounds, settled)

    def weights(
        self, residuals: Any, occupations: Occupations, covariance: sp.csr_array
    ) -> np.ndarray:
        """Return w = min(1, threshold / e), (S,), for residuals (S, d)."""
        own = np.sqrt(covariance.diagonal())[:, None]
        r = np.abs(_backend.to_numpy(residuals)) / own
        rounding = TINY * np.max(np.abs(_backend.to_numpy(occupations.targets)) / own, axis=0)
        scale = np.maximum(NORMAL * np.median(r, axis=0), rounding)
        sizes = np.sqrt(np.mean((r / np.where(scale > 0, scale, 1.0)) ** 2, axis=1))
        value: np.ndarray = np.minimum(1.0, self.threshold / np.maximum(sizes, self.threshold))
        return value
