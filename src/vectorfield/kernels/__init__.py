"""Kernels: scalar ones with an algebra (`+`, `*`, scaling), and operator-valued ones."""

from vectorfield.kernels.base import Product, ScalarKernel, Scaled, Sum
from vectorfield.kernels.dot import Constant, Linear, Polynomial
from vectorfield.kernels.equivariant import Equivariant
from vectorfield.kernels.expansion import Expansion, KernelExpansion
from vectorfield.kernels.groups import (
    CyclicShifts,
    Elements,
    Group,
    Reflection,
    SignedPermutations,
)
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
    "Gaussian",
    "Gradient",
    "Group",
    "Hamiltonian",
    "ImplicitKernel",
    "KernelExpansion",
    "Laplace",
    "Linear",
    "Matern",
    "OperatorKernel",
    "OperatorScaled",
    "OperatorSum",
    "Polynomial",
    "Product",
    "Radial",
    "RationalQuadratic",
    "Reflection",
    "ScalarKernel",
    "Scaled",
    "Separable",
    "SignedPermutations",
    "Sum",
]
