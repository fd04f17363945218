"""Kernels of the inner product x . y, and the constant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vectorfield import _backend
from vectorfield._settings import check_integer, check_real
from vectorfield.kernels.base import ScalarKernel
from vectorfield.kernels.lengths import LengthScale, check_length_scale, divide_lengths
from vectorfield.kernels.tiles import Tile, contract

__all__ = ["Constant", "Linear", "Polynomial"]


@dataclass(frozen=True)
class Polynomial(ScalarKernel):
    """k(x, y) = (x . y / sigma^2 + offset)^degree.

    Its fields are the polynomials of at most that degree (offset > 0), or exactly that degree
    (offset = 0). Coordinates may have length scales of their own.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> vf.kernels.Polynomial(degree=2)(np.ones((1, 3)), np.ones((1, 3)))
        array([[16.]])
    """

    degree: int = 2
    offset: float = 1.0
    length_scale: LengthScale = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", check_integer("degree", self.degree, at_least=1))
        object.__setattr__(self, "offset", check_real("offset", self.offset, at_least=0.0))
        object.__setattr__(self, "length_scale", check_length_scale(self.length_scale))

    def bind(self, y: Any) -> Callable[[Any], Tile]:
        """Prepare ``y``; see `ScalarKernel.bind`."""
        v = divide_lengths(y, self.length_scale)

        def at(x: Any) -> Tile:
            u = divide_lengths(x, self.length_scale)
            return lambda rows, columns: self._power(u[rows, :] @ v[columns, :].T, self.degree)

        return at

    def diagonal(self, x: Any) -> Any:
        """Return k(x_i, x_i)."""
        u = divide_lengths(x, self.length_scale)
        return self._power(_backend.namespace(x).sum(u * u, axis=1), self.degree)

    def derivative(self, x: Any, y: Any, c: Any, weight: Any = None) -> Any:
        """Return the contracted derivative; see `ScalarKernel.derivative`."""
        u = divide_lengths(x, self.length_scale)
        v = divide_lengths(y, self.length_scale)
        slope = self.degree * self._power(u @ v.T, self.degree - 1)
        if weight is not None:
            slope = slope * weight
        pulled = contract(slope, c, v)
        return divide_lengths(pulled, self.length_scale)

    def _power(self, product: Any, degree: int) -> Any:
        """(product + offset)^degree by repeated products, in place: far faster than pow."""
        xp = _backend.namespace(product)
        if degree == 0:
            return xp.ones_like(product)
        product += self.offset
        if degree == 1:
            return product
        value = product * product
        for _ in range(degree - 2):
            value *= product
        return value


@dataclass(frozen=True)
class Linear(ScalarKernel):
    """k(x, y) = x . y / sigma^2: linear fields without a constant part.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> vf.kernels.Linear()(np.ones((1, 3)), np.ones((1, 3)))
        array([[3.]])
    """

    length_scale: LengthScale = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "length_scale", check_length_scale(self.length_scale))

    def _as_polynomial(self) -> Polynomial:
        return Polynomial(degree=1, offset=0.0, length_scale=self.length_scale)

    def bind(self, y: Any) -> Callable[[Any], Tile]:
        """Prepare ``y``; see `ScalarKernel.bind`."""
        return self._as_polynomial().bind(y)

    def diagonal(self, x: Any) -> Any:
        """Return |x_i|^2 / sigma^2."""
        return self._as_polynomial().diagonal(x)

    def derivative(self, x: Any, y: Any, c: Any, weight: Any = None) -> Any:
        """Return the contracted derivative; see `ScalarKernel.derivative`."""
        return self._as_polynomial().derivative(x, y, c, weight)


@dataclass(frozen=True)
class Constant(ScalarKernel):
    """k(x, y) = value: constant fields; add it to a kernel to free the mean.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> (vf.kernels.Linear() + vf.kernels.Constant(2.0))(np.ones((1, 3)), np.ones((1, 3)))
        array([[5.]])
    """

    value: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", check_real("value", self.value, above=0.0))

    def bind(self, y: Any) -> Callable[[Any], Tile]:
        """Prepare ``y``; see `ScalarKernel.bind`."""
        xp = _backend.namespace(y)

        def at(x: Any) -> Tile:
            def tile(rows: slice, columns: slice) -> Any:
                left, right = x[rows, :1], y[columns, :1]
                return xp.full_like(left, self.value) * xp.ones_like(right).T

            return tile

        return at

    def diagonal(self, x: Any) -> Any:
        """Return the value at every point."""
        return _backend.namespace(x).full_like(x[:, 0], self.value)

    def derivative(self, x: Any, y: Any, c: Any, weight: Any = None) -> Any:
        """Return zeros (n, k, d)."""
        xp = _backend.namespace(x)
        return xp.zeros_like(x[:, None, :] * c[0, :][None, :, None])
