"""Linear algebra of the fit: Gram assembly, factorisations, and the regression they serve."""

from vectorfield.linalg.block import BlockProblem, assemble_blocks
from vectorfield.linalg.circulant import Circulant, CirculantProblem
from vectorfield.linalg.coupled import LARGEST_DENSE
from vectorfield.linalg.dense import Dense, DenseFactor, DenseSystem
from vectorfield.linalg.gram import assemble
from vectorfield.linalg.gramian import Gramian
from vectorfield.linalg.iterative import ConjugateGradient, GramianProblem
from vectorfield.linalg.normal import Normal, NormalProblem
from vectorfield.linalg.preconditioners import BlockJacobi, NystromPreconditioner, Preconditioner
from vectorfield.linalg.regression import Problem, Regression, prepare, regress
from vectorfield.linalg.separable import SeparableProblem
from vectorfield.linalg.solution import Solution, Status
from vectorfield.linalg.solver import Solver
from vectorfield.linalg.sparse import SparseFeatureProblem, SparseProblem
from vectorfield.linalg.spectrum import Spectrum, spectrum

__all__ = [
    "LARGEST_DENSE",
    "BlockJacobi",
    "BlockProblem",
    "Circulant",
    "CirculantProblem",
    "ConjugateGradient",
    "Dense",
    "DenseFactor",
    "DenseSystem",
    "Gramian",
    "GramianProblem",
    "Normal",
    "NormalProblem",
    "NystromPreconditioner",
    "Preconditioner",
    "Problem",
    "Regression",
    "SeparableProblem",
    "Solution",
    "Solver",
    "SparseFeatureProblem",
    "SparseProblem",
    "Spectrum",
    "Status",
    "assemble",
    "assemble_blocks",
    "prepare",
    "regress",
    "spectrum",
]
