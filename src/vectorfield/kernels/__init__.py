"""Kernels: scalar ones with an algebra (`+`, `*`, scaling), and operator-valued ones."""

from vectorfield.kernels.base import (
    Evaluator,
    OperatorKernel,
    Product,
    ScalarKernel,
    Scaled,
    Sum,
)
from vectorfield.kernels.dot import Constant, Linear, Polynomial
from vectorfield.kernels.radial import Gaussian, Laplace, Matern, Radial, RationalQuadratic
from vectorfield.kernels.separable import Separable

__all__ = [
    "Constant",
    "Evaluator",
    "Gaussian",
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
