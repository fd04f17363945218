"""Linear algebra of the fit: Gram assembly, factorisations, and the regression they serve."""

from vectorfield.linalg.dense import Dense, DenseFactor, DenseSystem
from vectorfield.linalg.gram import assemble
from vectorfield.linalg.regression import Problem, Regression, prepare, regress
from vectorfield.linalg.separable import SeparableProblem
from vectorfield.linalg.solution import Solution, Status
from vectorfield.linalg.solver import Solver

__all__ = [
    "Dense",
    "DenseFactor",
    "DenseSystem",
    "Problem",
    "Regression",
    "SeparableProblem",
    "Solution",
    "Solver",
    "Status",
    "assemble",
    "prepare",
    "regress",
]
