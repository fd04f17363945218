"""Linear algebra of the fit: Gram assembly, factorisations, and the regression they serve."""

from vectorfield.linalg.dense import Dense, DenseFactor, DenseSystem
from vectorfield.linalg.gram import assemble
from vectorfield.linalg.regression import Regression, regress
from vectorfield.linalg.solution import Solution, Status
from vectorfield.linalg.solver import Solver

__all__ = [
    "Dense",
    "DenseFactor",
    "DenseSystem",
    "Regression",
    "Solution",
    "Solver",
    "Status",
    "assemble",
    "regress",
]
