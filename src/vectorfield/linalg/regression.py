"""Ridge regression of linear functionals: from observations and a kernel to a field.

`prepare` does what does not depend on the ridge and `Problem.solve` the rest. Each kind of
operator-valued kernel registers its own way with `prepare`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import scipy.sparse as sp

from vectorfield import _backend
from vectorfield.kernels.expansion import Expansion, KernelExpansion
from vectorfield.kernels.operators import ImplicitKernel, OperatorKernel
from vectorfield.linalg.solution import Solution
from vectorfield.linalg.solver import Solver
from vectorfield.occupation import Occupations

__all__ = ["Problem", "Regression", "expand", "prepare", "regress"]


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

    @classmethod
    def failed(cls, solution: Solution) -> Regression:
        """Return the outcome of a solve that has no value."""
        return cls(None, None, float("nan"), solution)


class Problem(ABC):
    """One kernel, observations and noise, ready to be solved for any ridge."""

    @abstractmethod
    def solve(self, ridge: float) -> Regression:
        """Return the minimiser for a ridge > 0."""

    def path(self, ridges: Iterable[float]) -> Iterator[Regression]:
        """Solve for many ridges, one after the other."""
        for ridge in ridges:
            yield self.solve(ridge)

    def reweighted(self, covariance: sp.csr_array) -> Problem | None:
        """Return this problem with another Sigma, all that does not depend on Sigma kept.

        None where it has to be prepared anew. The two may share memory: this one is not to be
        solved again.
        """
        return None


@singledispatch
def prepare(
    kernel: OperatorKernel,
    occupations: Occupations,
    *,
    covariance: sp.csr_array,
    solver: Solver | None = None,
) -> Problem:
    """Return the `Problem` of a resolved operator-valued kernel.

    ``covariance`` is Sigma, (S, S) sparse, the identity for the paper's loss; with N = S
    observations the system is (W G W^T + ridge N Sigma) a = y and c = W^T a. ``solver`` None is
    the best one for the kernel and the size.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 3.0, 40)
        >>> data = vf.Trajectories.from_arrays([np.exp(-t)[:, None]], t)
        >>> occupations = vf.occupation.Trapezoid()(data)
        >>> noise = vf.occupation.White().covariance(occupations)
        >>> kernel = vf.kernels.Separable(vf.kernels.Gaussian(1.0))
        >>> problem = vf.linalg.prepare(kernel, occupations, covariance=noise)
        >>> [round(fit.norm, 2) for fit in problem.path([1e-4, 1e-8])]
        [0.92, 1.71]
    """
    raise TypeError(f"no solver for kernels of type {type(kernel).__name__}")


def regress(
    kernel: OperatorKernel,
    occupations: Occupations,
    *,
    ridge: float,
    covariance: sp.csr_array,
    solver: Solver | None = None,
) -> Regression:
    """Return the minimiser for one ridge; see `prepare`."""
    return prepare(kernel, occupations, covariance=covariance, solver=solver).solve(ridge)


def expand(
    kernel: ImplicitKernel, occupations: Occupations, residuals: Any, solution: Solution
) -> Regression:
    """Return the field of a = ``solution.value``, with |f|^2 = a . (y - residuals)."""
    a = solution.value
    xp = _backend.namespace(a)
    squared = float(xp.sum(a * (occupations.targets - residuals)))
    coefficients = _backend.sparse_apply(sp.csr_array(occupations.weights.T), a)
    expansion = KernelExpansion(kernel, occupations.nodes, coefficients)
    return Regression(expansion, residuals, max(squared, 0.0) ** 0.5, solution)
