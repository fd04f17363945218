"""Kernels: scalar ones with an algebra (`+`, `*`, scaling), and operator-valued ones."""

from vectorfield.kernels.base import Product, ScalarKernel, Scaled, Sum
from vectorfield.kernels.dot import Constant, Linear, Polynomial
from vectorfield.kernels.equivariant import Equivariant
from vectorfield.kernels.expansion import Expansion, FeatureExpansion, KernelExpansion
from vectorfield.kernels.feature_sums import FeatureScaled, FeatureSum
from vectorfield.kernels.features import ExplicitKernel, FeatureMap
from vectorfield.kernels.fourier import FourierMap, RandomFourier
from vectorfield.kernels.groups import (
    CyclicShifts,
    Elements,
    Group,
    Reflection,
    SignedPermutations,
)
from vectorfield.kernels.inputs import inputs_of
from vectorfield.kernels.interactions import InteractionMap, Interactions
from vectorfield.kernels.matrix_features import GradientFeatures, HamiltonianFeatures
from vectorfield.kernels.mixture import MixedKernel, Mixture
from vectorfield.kernels.monomials import MonomialMap, Monomials
from vectorfield.kernels.nystrom import Nystrom, NystromMap
from vectorfield.kernels.operators import (
    Blocks,
    Evaluator,
    ImplicitKernel,
    OperatorKernel,
    OperatorScaled,
    OperatorSum,
)
from vectorfield.kernels.physics import CurlFree, DivergenceFree, Gradient, Hamiltonian
from vectorfield.kernels.radial import Gaussian, Laplace, Matern, Radial, RationalQuadratic
from vectorfield.kernels.separable import Separable
from vectorfield.kernels.sparse import SparseKernel
from vectorfield.kernels.sparse_features import SparseFeatures, SparseMap

__all__ = [
    "Blocks",
    "Constant",
    "CurlFree",
    "CyclicShifts",
    "DivergenceFree",
    "Elements",
    "Equivariant",
    "Evaluator",
    "Expansion",
    "ExplicitKernel",
    "FeatureExpansion",
    "FeatureMap",
    "FeatureScaled",
    "FeatureSum",
    "FourierMap",
    "Gaussian",
    "Gradient",
    "GradientFeatures",
    "Group",
    "Hamiltonian",
    "HamiltonianFeatures",
    "ImplicitKernel",
    "InteractionMap",
    "Interactions",
    "KernelExpansion",
    "Laplace",
    "Linear",
    "Matern",
    "MixedKernel",
    "Mixture",
    "MonomialMap",
    "Monomials",
    "Nystrom",
    "NystromMap",
    "OperatorKernel",
    "OperatorScaled",
    "OperatorSum",
    "Polynomial",
    "Product",
    "Radial",
    "RandomFourier",
    "RationalQuadratic",
    "Reflection",
    "ScalarKernel",
    "Scaled",
    "Separable",
    "SignedPermutations",
    "SparseFeatures",
    "SparseKernel",
    "SparseMap",
    "Sum",
    "inputs_of",
]
