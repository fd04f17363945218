"""What a kernel is: scalar kernels and their algebra, operator-valued kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from vectorfield import _backend
from vectorfield._settings import Settings, check_real

__all__ = ["Evaluator", "OperatorKernel", "Product", "ScalarKernel", "Scaled", "Sum", "Tile"]

Tile = Callable[[slice, slice], Any]
"""``tile(rows, columns)`` returns that block of a Gram matrix in fresh memory."""


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


class Evaluator(ABC):
    """A field f(x) = sum_p K(x, z_p) c_p with everything about z and c prepared."""

    @abstractmethod
    def __call__(self, x: Any) -> Any:
        """Return f(x), (n, d) -> (n, d)."""

    @abstractmethod
    def jacobian(self, x: Any) -> Any:
        """Return d f_i / d x_j at every point, (n, d) -> (n, d, d)."""


class OperatorKernel(Settings, ABC):
    """A kernel K(x, y) whose values are positive semi-definite (d, d) matrices."""

    @abstractmethod
    def bind(self, nodes: Any, coefficients: Any) -> Evaluator:
        """Return the field sum_p K(., z_p) c_p; ``nodes`` and ``coefficients`` are (m, d)."""

    @abstractmethod
    def resolved(self, nodes: Any) -> Self:
        """Return the kernel with settings left open set from the nodes."""

    @abstractmethod
    def size(self, nodes: Any) -> float:
        """Return the mean over nodes and coordinates of K(z, z)'s diagonal."""


def row_blocks(n: int, size: int) -> list[slice]:
    """Cut 0 ... n into slices of at most ``size``.

    >>> row_blocks(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def contract(slope: Any, c: Any, v: Any, u: Any = None) -> Any:
    """Return sum_p slope[a, p] c[p, i] v[p, j], (n, k, d), one a at a time to spare memory.

    With ``u`` (n, d) the last factor is u[a, j] - v[p, j]: where the slope has a pole at u = v,
    two sums whose difference is taken afterwards would lose its digits.
    """
    xp = _backend.namespace(v)
    parts = [
        xp.matmul(c.T * slope[a, :], v if u is None else u[a, :] - v) for a in range(slope.shape[0])
    ]
    if not parts:
        return xp.zeros((0, c.shape[1], v.shape[1]), dtype=v.dtype, device=_backend.device(v))
    return xp.stack(parts)


def evaluate(at: Callable[[Any], Tile], x: Any, c: Any) -> Any:
    """Return sum_p k(x_a, y_p) c[p, :] for a bound kernel, in cache-sized blocks on all cores.

    ``x`` is (n, d), ``c`` (m, k); the result (n, k). Cost O(n m (d + k)), memory a few blocks.
    """
    n, m = x.shape[0], c.shape[0]
    xp = _backend.namespace(x)
    elements, widest = (2**16, 1024) if _backend.is_numpy(x) else (2**27, 2**14)
    rows = max(1, min(n, elements // max(1, min(m, widest))))
    columns = elements // rows
    tile = at(x)

    def block(chosen: slice) -> Any:
        total = None
        for part in row_blocks(m, columns):
            value = tile(chosen, part) @ c[part, :]
            total = value if total is None else total + value
        return total

    blocks = row_blocks(n, rows) or [slice(0, 0)]
    if _backend.is_numpy(x) and n * m >= 2**17:
        values = _backend.run_parallel(block, blocks)
    else:
        values = [block(chosen) for chosen in blocks]
    return values[0] if len(values) == 1 else xp.concat(values, axis=0)
