"""Kernels: scalar ones with an algebra (`+`, `*`, scaling), and operator-valued ones."""

from vectorfield.kernels.base import Product, ScalarKernel, Scaled, Sum
from vectorfield.kernels.dot import Constant, Linear, Polynomial
from vectorfield.kernels.expansion import Expansion, KernelExpansion
from vectorfield.kernels.operators import Blocks, Evaluator, ImplicitKernel, OperatorKernel
from vectorfield.kernels.radial import Gaussian, Laplace, Matern, Radial, RationalQuadratic
from vectorfield.kernels.separable import Separable

__all__ = [
    "Blocks",
    "Constant",
    "Evaluator",
    "Expansion",
    "Gaussian",
    "ImplicitKernel",
    "KernelExpansion",
    "Laplace",
    "Linear",
    "Matern",
    "OperatorKernel",
    "Polynomial",
    "Product",
    "Radial",
    "RationalQuadratic",
    "ScalarKernel",
    "Scaled",
    "Separable",
    "Sum",
]
