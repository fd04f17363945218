"""Kernels that couple the outputs: a dense matrix where it is small, iterations where it is not."""

from __future__ import annotations

import scipy.sparse as sp

from vectorfield.kernels.operators import ImplicitKernel
from vectorfield.linalg.block import BlockProblem
from vectorfield.linalg.dense import Dense
from vectorfield.linalg.iterative import ConjugateGradient, GramianProblem
from vectorfield.linalg.regression import Problem, prepare
from vectorfield.linalg.solver import Solver, wrong_solver
from vectorfield.occupation import Occupations

__all__ = ["LARGEST_DENSE"]

LARGEST_DENSE = 12_000
"""Unknowns S d up to which the dense matrix is the default: 1.2 GB and some seconds."""


@prepare.register
def _(
    kernel: ImplicitKernel,
    occupations: Occupations,
    *,
    covariance: sp.csr_array,
    solver: Solver | None = None,
) -> Problem:
    if solver is None:
        small = len(occupations) * occupations.d <= LARGEST_DENSE
        solver = Dense() if small else ConjugateGradient()
    if isinstance(solver, Dense):
        return BlockProblem(kernel, occupations, covariance, solver)
    if isinstance(solver, ConjugateGradient):
        return GramianProblem(kernel, occupations, covariance, solver)
    raise wrong_solver(solver, kernel, Dense, ConjugateGradient)
