"""Ridge regression of linear functionals: from observations and a kernel to a field.

`regress` chooses by the kind of operator-valued kernel; a further kind registers its own way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
import scipy.sparse as sp

from vectorfield import _backend
from vectorfield.kernels.expansion import Expansion, KernelExpansion
from vectorfield.kernels.operators import OperatorKernel
from vectorfield.kernels.separable import Separable
from vectorfield.linalg.dense import Dense, DenseSystem
from vectorfield.linalg.gram import assemble
from vectorfield.linalg.solution import Solution
from vectorfield.linalg.solver import Solver, chosen
from vectorfield.occupation import Occupations

__all__ = ["Regression", "regress"]


@dataclass(frozen=True, eq=False)
class Regression:
    """The minimiser f of |Sigma^(-1/2) (L f - y)|^2 + ridge N |f|^2.

    Attributes:
        expansion: f as a function; None when the solve failed.
        residuals: y - L f, (S, d).
        norm: |f| in the kernel's space.
        solution: the linear solve with its status.
    """

    expansion: Expansion | None
    residuals: Any
    norm: float
    solution: Solution


@singledispatch
def regress(
    kernel: OperatorKernel,
    occupations: Occupations,
    *,
    ridge: float,
    covariance: sp.csr_array,
    solver: Solver | None,
) -> Regression:
    """Return the minimiser for a resolved operator-valued kernel.

    ``covariance`` is Sigma, (S, S) sparse, the identity for the paper's loss; with N = S
    observations the system is (W G W^T + ridge N Sigma) a = y and c = W^T a. ``solver`` None is
    the best one for the kernel and the size.
    """
    raise TypeError(f"no solver for kernels of type {type(kernel).__name__}")


@regress.register
def _(
    kernel: Separable,
    occupations: Occupations,
    *,
    ridge: float,
    covariance: sp.csr_array,
    solver: Solver | None,
) -> Regression:
    solver = chosen(solver, Dense(), kernel)
    assembly = assemble(kernel.kernel, occupations.nodes, occupations.weights)
    system = DenseSystem(assembly.matrix, covariance)
    shift = ridge * len(occupations)
    y = occupations.targets
    if kernel.matrix is None:
        solution = system.factor(shift, solver.precision, y.shape[1]).solve(y)
        a = mixed = solution.value
    else:
        solution, a, mixed = _solve_rotated(kernel.matrix, system, shift, y, solver)
    solution.seconds.update(assembly.seconds)
    if a is None:
        return Regression(None, None, float("nan"), solution)
    if kernel.matrix is None:  # then M a = y - shift Sigma a costs nothing
        residuals = system.covary(a)
        residuals *= shift
    else:
        residuals = y - system.product(mixed)
    xp = _backend.namespace(a)
    squared = float(xp.vecdot(xp.reshape(a, (-1,)), xp.reshape(y - residuals, (-1,))))
    coefficients = _backend.sparse_apply(sp.csr_array(occupations.weights.T), a)
    expansion = KernelExpansion(kernel, occupations.nodes, coefficients)
    return Regression(expansion, residuals, max(squared, 0.0) ** 0.5, solution)


def _solve_rotated(
    matrix: Any, system: DenseSystem, shift: float, y: Any, solver: Dense
) -> tuple[Solution, Any, Any]:
    """Solve (M kron A + shift Sigma kron I) a = y in the eigenbasis of A; also return a A.

    With A = U diag(mu) U^T the columns of a U obey (mu_i M + shift Sigma) a_i = (y U)_i: one
    factor for each distinct mu_i > 0; where mu_i = 0 the field has no part, a_i = Sigma^-1 y_i /
    shift, and that column contributes nothing to A a and is left at zero.
    """
    xp = _backend.namespace(y)
    mu, u = np.linalg.eigh(np.asarray(matrix))
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
        factor = system.factor(shift / level, solver.precision, len(group))
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
