"""Conjugate gradients for kernels that couple the outputs, without the block matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import scipy.sparse as sp

from vectorfield import _backend
from vectorfield._progress import report
from vectorfield._settings import check_integer, check_real
from vectorfield.kernels.operators import ImplicitKernel
from vectorfield.linalg.gramian import Gramian
from vectorfield.linalg.preconditioners import Inverse, NystromPreconditioner, Preconditioner
from vectorfield.linalg.regression import Problem, Regression, expand
from vectorfield.linalg.solution import Solution, Status
from vectorfield.linalg.solver import Solver
from vectorfield.occupation import Occupations

__all__ = ["ConjugateGradient", "GramianProblem", "conjugate_gradients"]


@dataclass(frozen=True)
class ConjugateGradient(Solver):
    """Settings of preconditioned conjugate gradients, which need no matrix in memory.

    Each iteration costs one product with M, O(Q^2 d) in tiles that are made and forgotten.

    Args:
        tolerance: the relative residual |y - (M + shift Sigma) a| / |y| to reach.
        max_iterations: where to stop above it, with the status NOT_CONVERGED.
        preconditioner: `NystromPreconditioner()` by default; `BlockJacobi`.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 6.0, 61)
        >>> orbit = np.stack([np.cos(t), -np.sin(t)], axis=1)
        >>> kernel = vf.kernels.DivergenceFree(vf.kernels.Gaussian(1.0))
        >>> solver = vf.linalg.ConjugateGradient(tolerance=1e-9)
        >>> solution = vf.MOCK(kernel, 1e-6, solver=solver).fit(orbit, t).solution_
        >>> solution.status.name, solution.residual <= 1e-9
        ('CONVERGED', True)
        >>> len(solution.history) == solution.iterations
        True
    """

    tolerance: float = 1e-10
    max_iterations: int = 2000
    preconditioner: Preconditioner | None = None

    def __post_init__(self) -> None:
        check_real("tolerance", self.tolerance, above=0.0)
        check_integer("max_iterations", self.max_iterations, at_least=1)
        if self.preconditioner is not None and not isinstance(self.preconditioner, Preconditioner):
            raise TypeError(
                "preconditioner must be a Preconditioner such as NystromPreconditioner(), got "
                f"{self.preconditioner!r}"
            )


class GramianProblem(Problem):
    """(M + shift Sigma) a = y for the unknowns (S, d), by products with M alone."""

    def __init__(
        self,
        kernel: ImplicitKernel,
        occupations: Occupations,
        covariance: sp.csr_array,
        solver: ConjugateGradient,
    ) -> None:
        self._kernel, self._occupations, self._solver = kernel, occupations, solver
        start = perf_counter()
        self._gramian = Gramian(kernel, occupations.nodes, occupations.weights, covariance)
        chosen = solver.preconditioner or NystromPreconditioner()
        self._inverse = chosen.prepare(self._gramian)
        self._seconds = {"precondition": perf_counter() - start}

    def solve(self, ridge: float) -> Regression:
        """Iterate for this ridge."""
        y = self._occupations.targets
        shift = ridge * len(self._occupations)
        solution = conjugate_gradients(
            self._gramian,
            shift,
            y,
            self._inverse(shift),
            tolerance=self._solver.tolerance,
            max_iterations=self._solver.max_iterations,
        )
        solution.seconds.update(self._seconds)
        residuals = y - self._gramian.product(solution.value)
        return expand(self._kernel, self._occupations, residuals, solution)


def conjugate_gradients(
    gramian: Gramian,
    shift: float,
    y: Any,
    inverse: Inverse,
    *,
    tolerance: float,
    max_iterations: int,
) -> Solution:
    """Solve (M + shift Sigma) a = y for (S, d) unknowns, starting from zero.

    The residual of the recurrence drifts from the true one: where it meets the tolerance the true
    one is computed, and the iteration starts again from there if that does not. Returns the
    value with the true residual, and every iteration's in ``history``.
    """
    start = perf_counter()
    xp = _backend.namespace(y)
    size = _norm(y)
    history: list[float] = []

    def record(norm: float) -> None:
        share = norm / size
        history.append(share)
        done = 1.0  # where nothing is left there is no logarithm either
        if not share <= tolerance:
            done = math.log(min(share, 1.0)) / math.log(min(tolerance, 0.5))
        report("conjugate gradients", min(1.0, done))

    def operator(x: Any) -> Any:
        return gramian.product(x, shift)

    a, left = xp.zeros_like(y), y
    residual = 0.0 if size == 0.0 else 1.0
    while residual > tolerance and len(history) < max_iterations:
        most, before = max_iterations - len(history), residual
        a = a + _correction(
            operator, inverse, left, goal=tolerance * size, most=most, record=record
        )
        left = y - operator(a)
        residual = _norm(left) / size
        if not residual < 0.5 * before:  # rounding allows no better
            break
    converged = residual <= tolerance
    detail = (
        f"relative residual {residual:.1e} after {len(history)} iterations, {tolerance:.1e} was "
        f"asked for; {Status.NOT_CONVERGED.value}"
    )
    return Solution(
        a,
        Status.CONVERGED if converged else Status.NOT_CONVERGED,
        residual,
        len(history),
        None,
        "" if converged else detail,
        {"solve": perf_counter() - start},
        tuple(history),
    )


def _correction(
    operator: Callable[[Any], Any],
    inverse: Inverse,
    left: Any,
    *,
    goal: float,
    most: int,
    record: Callable[[float], None],
) -> Any:
    """Return e with |left - A e| <= goal by the recurrence's count, or after ``most`` steps."""
    xp = _backend.namespace(left)
    e, r = xp.zeros_like(left), left
    z = inverse(r)
    p, rho = z, float(xp.sum(r * z))
    for _ in range(most):
        q = operator(p)
        curvature = float(xp.sum(p * q))
        if not curvature > 0.0:  # p is lost in rounding
            break
        e = e + (rho / curvature) * p
        r = r - (rho / curvature) * q
        norm = _norm(r)
        record(norm)
        if norm <= goal:
            break
        z = inverse(r)
        rho, before = float(xp.sum(r * z)), rho
        p = z + (rho / before) * p
    return e


def _norm(x: Any) -> float:
    return math.sqrt(float(_backend.namespace(x).sum(x * x)))
