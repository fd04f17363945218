"""Kernels to and from plain dictionaries, for model files and the command line."""

from __future__ import annotations

from typing import Any

from vectorfield._settings import Settings
from vectorfield.kernels.base import OperatorKernel, Product, ScalarKernel, Scaled, Sum
from vectorfield.kernels.dot import Constant, Linear, Polynomial
from vectorfield.kernels.radial import Gaussian, Laplace, Matern, RationalQuadratic
from vectorfield.kernels.separable import Separable

__all__ = ["decode", "encode"]

_CLASSES: dict[str, type[ScalarKernel] | type[OperatorKernel]] = {
    cls.__name__: cls
    for cls in (
        Constant,
        Gaussian,
        Laplace,
        Linear,
        Matern,
        Polynomial,
        Product,
        RationalQuadratic,
        Scaled,
        Separable,
        Sum,
    )
}


def encode(kernel: Settings) -> dict[str, Any]:
    """Return the kernel as nested dictionaries of names, numbers and lists.

    >>> import vectorfield as vf
    >>> encode(vf.kernels.Gaussian(2.0))
    {'type': 'Gaussian', 'length_scale': 2.0}
    """
    name = type(kernel).__name__
    if _CLASSES.get(name) is not type(kernel):
        raise TypeError(
            f"{name} is not one of the library's kernels and cannot be written to a model file; "
            "use pickle for kernels of your own"
        )
    plain: dict[str, Any] = {"type": name}
    for key, value in kernel.get_params(deep=False).items():
        plain[key] = encode(value) if isinstance(value, Settings) else value
    return plain


def decode(plain: Any) -> Any:
    """Return the kernel that `encode` described; ValueError or TypeError if it is none."""
    if not isinstance(plain, dict) or plain.get("type") not in _CLASSES:
        raise ValueError(f"not a kernel: {plain!r:.80}")
    settings = {
        key: decode(value) if isinstance(value, dict) else value
        for key, value in plain.items()
        if key != "type"
    }
    return _CLASSES[plain["type"]](**settings)
