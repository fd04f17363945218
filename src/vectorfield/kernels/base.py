"""What a scalar kernel is, and the algebra of scalar kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from vectorfield._settings import Settings, check_real
from vectorfield.kernels.tiles import Tile

__all__ = ["Product", "ScalarKernel", "Scaled", "Sum"]


class ScalarKernel(Settings, ABC):
    """A positive semi-definite function k(x, y) of two points; values form an algebra.

    ``k1 + k2``, ``k1 * k2`` and ``2.0 * k`` are kernels again. A kernel gives its Gram matrix
    block by block (`bind`), its diagonal, and the contracted derivative that the Jacobian of a
    fitted field needs; it knows no time, no data and no ridge.
    """

    @abstractmethod
    def bind(self, y: Any) -> Callable[[Any], Tile]:
        """Prepare the points ``y`` (m, d) once; ``bind(y)(x)`` gives blocks of k(x, y)."""

    @abstractmethod
    def diagonal(self, x: Any) -> Any:
        """Return k(x_i, x_i) as an array (n,)."""

    @abstractmethod
    def derivative(self, x: Any, y: Any, c: Any, weight: Any = None) -> Any:
        """Return D[a, i, j] = sum_p weight[a, p] d k(x_a, y_p) / d x_aj  c[p, i].

        ``x`` is (n, d), ``y`` (m, d), ``c`` (m, k), ``weight`` (n, m) or None for ones; the
        result is (n, k, d). Where k is not differentiable (the kink of a Laplace kernel at
        x = y) the kink contributes zero. Cost O(n m d k).
        """

    def resolved(self, nodes: Any) -> Self:
        """Return the kernel with settings left open (a length scale of None) set from data."""
        changes = {
            name: value.resolved(nodes)
            for name, value in self.get_params(deep=False).items()
            if isinstance(value, ScalarKernel)
        }
        return self.replace(**changes)

    def __call__(self, x: Any, y: Any = None) -> Any:
        """Return the Gram matrix k(x_i, y_j), (n, m); y = x by default.

        >>> import numpy as np, vectorfield as vf
        >>> vf.kernels.Gaussian(1.0)(np.zeros((1, 2)), np.array([[1.0, 1.0]])).round(6)
        array([[0.367879]])
        """
        y = x if y is None else y
        return self.bind(y)(x)(slice(0, x.shape[0]), slice(0, y.shape[0]))

    def __add__(self, other: Any) -> Sum:
        return Sum(self, other) if isinstance(other, ScalarKernel) else NotImplemented

    def __mul__(self, other: Any) -> ScalarKernel:
        if isinstance(other, ScalarKernel):
            return Product(self, other)
        return Scaled(self, other) if isinstance(other, (int, float)) else NotImplemented

    def __rmul__(self, other: Any) -> ScalarKernel:
        return Scaled(self, other) if isinstance(other, (int, float)) else NotImplemented


def _check_kernel(name: str, value: Any) -> None:
    if not isinstance(value, ScalarKernel):
        raise TypeError(f"{name} must be a scalar kernel such as Gaussian(), got {value!r}")


@dataclass(frozen=True)
class Sum(ScalarKernel):
    """k(x, y) = left(x, y) + right(x, y); written ``left + right``.

    >>> import vectorfield as vf
    >>> vf.kernels.Linear() + vf.kernels.Gaussian(2.0)
    Sum(left=Linear(length_scale=1.0), right=Gaussian(length_scale=2.0))
    """

    left: ScalarKernel
    right: ScalarKernel

    def __post_init__(self) -> None:
        _check_kernel("left", self.left)
        _check_kernel("right", self.right)

    def bind(self, y: Any) -> Callable[[Any], Tile]:
        """Prepare ``y``; see `ScalarKernel.bind`."""
        left, right = self.left.bind(y), self.right.bind(y)

        def at(x: Any) -> Tile:
            a, b = left(x), right(x)

            def tile(rows: slice, columns: slice) -> Any:
                block = a(rows, columns)
                block += b(rows, columns)
                return block

            return tile

        return at

    def diagonal(self, x: Any) -> Any:
        """Return k(x_i, x_i)."""
        return self.left.diagonal(x) + self.right.diagonal(x)

    def derivative(self, x: Any, y: Any, c: Any, weight: Any = None) -> Any:
        """Return the contracted derivative; see `ScalarKernel.derivative`."""
        return self.left.derivative(x, y, c, weight) + self.right.derivative(x, y, c, weight)


@dataclass(frozen=True)
class Product(ScalarKernel):
    """k(x, y) = left(x, y) right(x, y); written ``left * right``.

    >>> import vectorfield as vf
    >>> vf.kernels.Linear() * vf.kernels.Gaussian(2.0)
    Product(left=Linear(length_scale=1.0), right=Gaussian(length_scale=2.0))
    """

    left: ScalarKernel
    right: ScalarKernel

    def __post_init__(self) -> None:
        _check_kernel("left", self.left)
        _check_kernel("right", self.right)

    def bind(self, y: Any) -> Callable[[Any], Tile]:
        """Prepare ``y``; see `ScalarKernel.bind`."""
        left, right = self.left.bind(y), self.right.bind(y)

        def at(x: Any) -> Tile:
            a, b = left(x), right(x)

            def tile(rows: slice, columns: slice) -> Any:
                block = a(rows, columns)
                block *= b(rows, columns)
                return block

            return tile

        return at

    def diagonal(self, x: Any) -> Any:
        """Return k(x_i, x_i)."""
        return self.left.diagonal(x) * self.right.diagonal(x)

    def derivative(self, x: Any, y: Any, c: Any, weight: Any = None) -> Any:
        """Return the contracted derivative, by the product rule."""
        left, right = self.left(x, y), self.right(x, y)
        if weight is not None:
            left, right = left * weight, right * weight
        return self.left.derivative(x, y, c, right) + self.right.derivative(x, y, c, left)


@dataclass(frozen=True)
class Scaled(ScalarKernel):
    """k(x, y) = factor * kernel(x, y), factor > 0; written ``factor * kernel``.

    >>> import vectorfield as vf
    >>> 0.5 * vf.kernels.Linear()
    Scaled(kernel=Linear(length_scale=1.0), factor=0.5)
    """

    kernel: ScalarKernel
    factor: float

    def __post_init__(self) -> None:
        _check_kernel("kernel", self.kernel)
        object.__setattr__(self, "factor", check_real("factor", self.factor, above=0.0))

    def bind(self, y: Any) -> Callable[[Any], Tile]:
        """Prepare ``y``; see `ScalarKernel.bind`."""
        inner = self.kernel.bind(y)

        def at(x: Any) -> Tile:
            a = inner(x)

            def tile(rows: slice, columns: slice) -> Any:
                block = a(rows, columns)
                block *= self.factor
                return block

            return tile

        return at

    def diagonal(self, x: Any) -> Any:
        """Return k(x_i, x_i)."""
        return self.factor * self.kernel.diagonal(x)

    def derivative(self, x: Any, y: Any, c: Any, weight: Any = None) -> Any:
        """Return the contracted derivative; see `ScalarKernel.derivative`."""
        return self.factor * self.kernel.derivative(x, y, c, weight)
