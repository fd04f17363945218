"""Separable kernels: one scalar Gram matrix, and a factor for each eigenvalue of A."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from vectorfield import _backend
from vectorfield.kernels.separable import Separable
from vectorfield.linalg.dense import Dense, DenseSystem
from vectorfield.linalg.gram import assemble
from vectorfield.linalg.regression import Problem, Regression, expand, prepare
from vectorfield.linalg.solution import Solution
from vectorfield.linalg.solver import Solver, chosen
from vectorfield.occupation import Occupations

__all__ = ["SeparableProblem"]


class SeparableProblem(Problem):
    """(M + shift Sigma) a = y for K = k I, the same in the eigenbasis of A for K = k A."""

    def __init__(
        self, kernel: Separable, occupations: Occupations, covariance: sp.csr_array, solver: Dense
    ) -> None:
        self._kernel, self._occupations, self._solver = kernel, occupations, solver
        assembly = assemble(kernel.kernel, occupations.nodes, occupations.weights)
        self._seconds = assembly.seconds
        self._system = DenseSystem(assembly.matrix, covariance)

    def solve(self, ridge: float) -> Regression:
        """Factor for this ridge. Cost S^3 / 3, once for each distinct eigenvalue of A."""
        y = self._occupations.targets
        shift = ridge * len(self._occupations)
        if self._kernel.matrix is None:
            factor = self._system.factor(shift, self._solver.precision, y.shape[1])
            solution = factor.solve(y)
            a = mixed = solution.value
        else:
            solution, a, mixed = self._solve_rotated(shift)
        solution.seconds.update(self._seconds)
        if a is None:
            return Regression.failed(solution)
        if self._kernel.matrix is None:  # then M a = y - shift Sigma a costs nothing
            residuals = self._system.covary(a)
            residuals *= shift
        else:
            residuals = y - self._system.product(mixed)
        return expand(self._kernel, self._occupations, residuals, replace(solution, value=a))

    def reweighted(self, covariance: sp.csr_array) -> SeparableProblem:
        """Return the problem with another Sigma and the same Gram matrix."""
        other = copy.copy(self)
        other._system = self._system.with_covariance(covariance)
        return other

    def _solve_rotated(self, shift: float) -> tuple[Solution, Any, Any]:
        """Solve (M kron A + shift Sigma kron I) a = y in the eigenbasis of A; also return a A.

        With A = U diag(mu) U^T the columns of a U obey (mu_i M + shift Sigma) a_i = (y U)_i: one
        factor for each distinct mu_i > 0; where mu_i = 0 the field has no part,
        a_i = Sigma^-1 y_i / shift, and that column contributes nothing to A a and is left at zero.
        """
        y = self._occupations.targets
        xp = _backend.namespace(y)
        mu, u = np.linalg.eigh(np.asarray(self._kernel.matrix))
        if len(mu) != y.shape[1]:
            raise ValueError(
                f"matrix is {len(mu)} x {len(mu)} but the states have {y.shape[1]} features"
            )
        rotated = y @ _backend.array_like(u, y)
        value = xp.zeros_like(rotated)
        kept = mu > 1e-12 * mu[-1]
        ends = np.flatnonzero(np.diff(mu[kept]) > 1e-12 * mu[-1]) + 1
        worst: Solution | None = None
        for group in np.split(np.flatnonzero(kept), ends):
            level = float(mu[group].mean())
            columns = slice(int(group[0]), int(group[-1]) + 1)
            factor = self._system.factor(shift / level, self._solver.precision, len(group))
            solution = factor.solve(rotated[:, columns] / level)
            if solution.value is None:
                return solution, None, None
            value[:, columns] = solution.value
            if worst is None or solution.residual > worst.residual:
                worst = solution
        if worst is None:
            raise ValueError("matrix has no positive eigenvalue")
        basis = _backend.array_like(u, y)
        scaled = value * _backend.array_like(np.where(kept, mu, 0.0), y)
        return worst, value @ basis.T, scaled @ basis.T


@prepare.register
def _(
    kernel: Separable,
    occupations: Occupations,
    *,
    covariance: sp.csr_array,
    solver: Solver | None = None,
) -> Problem:
    return SeparableProblem(kernel, occupations, covariance, chosen(solver, Dense(), kernel))
