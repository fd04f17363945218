"""Kernels to and from plain dictionaries, for model files and the command line."""

from __future__ import annotations

from typing import Any

from vectorfield._settings import Settings
from vectorfield.kernels.base import Product, ScalarKernel, Scaled, Sum
from vectorfield.kernels.dot import Constant, Linear, Polynomial
from vectorfield.kernels.equivariant import Equivariant
from vectorfield.kernels.feature_sums import FeatureScaled, FeatureSum
from vectorfield.kernels.fourier import RandomFourier
from vectorfield.kernels.groups import CyclicShifts, Group, Reflection, SignedPermutations
from vectorfield.kernels.interactions import Interactions
from vectorfield.kernels.matrix_features import GradientFeatures, HamiltonianFeatures
from vectorfield.kernels.monomials import Monomials
from vectorfield.kernels.nystrom import Nystrom
from vectorfield.kernels.operators import OperatorKernel, OperatorScaled, OperatorSum
from vectorfield.kernels.physics import CurlFree, DivergenceFree, Gradient, Hamiltonian
from vectorfield.kernels.radial import Gaussian, Laplace, Matern, RationalQuadratic
from vectorfield.kernels.separable import Separable
from vectorfield.kernels.sparse import SparseKernel
from vectorfield.kernels.sparse_features import SparseFeatures

__all__ = ["decode", "encode"]

DEEPEST = 100

_CLASSES: dict[str, type[ScalarKernel] | type[OperatorKernel] | type[Group]] = {
    cls.__name__: cls
    for cls in (
        Constant,
        CurlFree,
        CyclicShifts,
        DivergenceFree,
        Equivariant,
        FeatureScaled,
        FeatureSum,
        Gaussian,
        Gradient,
        GradientFeatures,
        Hamiltonian,
        HamiltonianFeatures,
        Interactions,
        Laplace,
        Linear,
        Matern,
        Monomials,
        Nystrom,
        OperatorScaled,
        OperatorSum,
        Polynomial,
        Product,
        RandomFourier,
        RationalQuadratic,
        Reflection,
        Scaled,
        Separable,
        SignedPermutations,
        SparseFeatures,
        SparseKernel,
        Sum,
    )
}


def encode(kernel: Settings, depth: int = 0) -> dict[str, Any]:
    """Return the kernel as nested dictionaries of names, numbers and lists.

    ``depth`` is that of the kernel inside others; beyond 100 it is a ValueError, here and in
    `decode`, before the recursion limit is one.

    >>> import vectorfield as vf
    >>> encode(vf.kernels.Gaussian(2.0))
    {'type': 'Gaussian', 'length_scale': 2.0}
    """
    _check_depth(depth)
    name = type(kernel).__name__
    if _CLASSES.get(name) is not type(kernel):
        raise TypeError(
            f"{name} is not one of the library's kernels and cannot be written to a model file; "
            "use pickle for kernels of your own"
        )
    plain: dict[str, Any] = {"type": name}
    for key, value in kernel.get_params(deep=False).items():
        plain[key] = encode(value, depth + 1) if isinstance(value, Settings) else value
    return plain


def decode(plain: Any, depth: int = 0) -> Any:
    """Return the kernel that `encode` described; ValueError or TypeError if it is none."""
    _check_depth(depth)
    if not isinstance(plain, dict) or plain.get("type") not in _CLASSES:
        raise ValueError(f"not a kernel: {plain!r:.80}")
    settings = {
        key: decode(value, depth + 1) if isinstance(value, dict) else value
        for key, value in plain.items()
        if key != "type"
    }
    return _CLASSES[plain["type"]](**settings)


def _check_depth(depth: int) -> None:
    if depth > DEEPEST:
        raise ValueError(f"kernels nested more than {DEEPEST} deep cannot be stored")
