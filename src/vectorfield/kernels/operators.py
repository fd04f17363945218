"""What an operator-valued kernel is, and the fields that it makes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import scipy.sparse as sp

from vectorfield import _backend
from vectorfield._settings import Settings, check_real

__all__ = [
    "Blocks",
    "Evaluator",
    "ImplicitKernel",
    "OperatorKernel",
    "OperatorScaled",
    "OperatorSum",
]


class Evaluator(ABC):
    """A field with everything about its nodes and coefficients prepared."""

    @abstractmethod
    def __call__(self, x: Any) -> Any:
        """Return f(x), (n, d) -> (n, d)."""

    @abstractmethod
    def jacobian(self, x: Any) -> Any:
        """Return d f_i / d x_j at every point, (n, d) -> (n, d, d)."""

    def sparse_jacobian(self, x: Any) -> list[sp.csr_array]:
        """Return the Jacobian at each point as a sparse (d, d) matrix."""
        return [sp.csr_array(_backend.to_numpy(one)) for one in self.jacobian(x)]

    def energy(self, x: Any) -> Any:
        """Return the scalar function behind f, (n, d) -> (n,); see `OperatorKernel.energy`."""
        raise TypeError("this field is not made of a potential or Hamiltonian")


class OperatorKernel(Settings, ABC):
    """A kernel K(x, y) whose values are (d, d) matrices, K(x, y) = K(y, x)^T, positive definite.

    What all of them share, whether they are known pair by pair (`ImplicitKernel`) or by features.
    A fit happens in standardised coordinates u = (x - shift) / scale, where the learned field is
    f(x) = scale g(u) with g in the kernel's space. A kernel whose fields obey a law says which
    shifts and scales keep it (`standardisation`).
    """

    energy: ClassVar[str | None] = None
    """``"potential"`` where f = -grad V, ``"hamiltonian"`` where f = J grad H, None elsewhere."""

    @abstractmethod
    def resolved(self, nodes: Any) -> Self:
        """Return the kernel with settings left open set from the nodes."""

    @abstractmethod
    def size(self, nodes: Any) -> float:
        """Return the mean over nodes and coordinates of K(z, z)'s diagonal."""

    def standardisation(self, shift: Any, scale: Any) -> tuple[Any, Any]:
        """Return the shift and scale (d,) nearest to these under which f keeps the kernel's law.

        The same as given for kernels whose space any shift and scale map into itself.
        """
        return shift, scale

    def energy_unit(self, scale: Any) -> float:
        """Return e such that the energy of f is e times that of g; see `energy`."""
        raise TypeError(f"fields of {type(self).__name__} have no potential or Hamiltonian")


class ImplicitKernel(OperatorKernel):
    """An operator-valued kernel known pair by pair: fields are f = sum_p K(., z_p) c_p.

    ``K1 + K2`` and ``2.0 * K`` are kernels again: fields f1 + f2, of which ``field.parts`` gives
    each, and fields for which the ridge counts half as much.
    """

    @abstractmethod
    def bind(self, nodes: Any, coefficients: Any) -> Evaluator:
        """Return the field sum_p K(., z_p) c_p; ``nodes`` and ``coefficients`` are (m, d)."""

    @abstractmethod
    def blocks(self, y: Any) -> Callable[[Any], Blocks]:
        """Prepare the points ``y`` (m, d) once; ``blocks(y)(x)`` gives K(x, y) tile by tile."""

    def terms(self) -> tuple[ImplicitKernel, ...]:
        """Return the kernels whose sum this one is; itself alone where it is none."""
        return (self,)

    def __add__(self, other: Any) -> ImplicitKernel:
        return OperatorSum(self, other) if isinstance(other, ImplicitKernel) else NotImplemented

    def __rmul__(self, factor: Any) -> OperatorScaled:
        return OperatorScaled(self, factor) if isinstance(factor, (int, float)) else NotImplemented

    __mul__ = __rmul__


class Blocks(ABC):
    """The kernel between points x (n, d) and y (m, d), tile by tile.

    `tile` is all that a kernel has to give; products with a vector are made from it here, and a
    kernel that knows a faster way than forming the (d, d) matrices says so by its own.
    """

    @abstractmethod
    def tile(self, rows: slice, columns: slice) -> Any:
        """Return K(x_i, y_j)[a, b] as an array (d, d, rows, columns) in fresh memory."""

    def product(self, rows: slice, columns: slice, right: Any) -> Any:
        """Return sum_j K(x_i, y_j) right_j, (rows, d), for ``right`` (columns, d)."""
        return _apply(self.tile(rows, columns), right)

    def products(self, rows: slice, columns: slice, right: Any, left: Any) -> tuple[Any, Any]:
        """Return `product` and sum_i K(x_i, y_j)^T left_i, (columns, d), for ``left`` (rows, d).

        Both halves of a symmetric product from one tile.
        """
        tile = self.tile(rows, columns)
        xp = _backend.namespace(tile)
        return _apply(tile, right), _apply(xp.permute_dims(tile, (1, 0, 3, 2)), left)


def _apply(tile: Any, vector: Any) -> Any:
    """Return sum_{b, j} tile[a, b, i, j] vector[j, b] as (i, a)."""
    xp = _backend.namespace(tile)
    d, _, rows, _ = tile.shape
    flat = xp.reshape(xp.permute_dims(tile, (0, 2, 1, 3)), (d * rows, -1))
    value = flat @ xp.reshape(vector.T, (-1,))
    return xp.reshape(value, (d, rows)).T


@dataclass(frozen=True)
class OperatorSum(ImplicitKernel):
    """K(x, y) = left(x, y) + right(x, y); written ``left + right``.

    Fields are sums of one field of each kernel, f = sum_p left(., z_p) c_p +
    sum_p right(., z_p) c_p with the same coefficients: the split of smallest norm. ``field.parts``
    has the summands. With `DivergenceFree` and `CurlFree` it is that of Helmholtz.

    Example:
        >>> import vectorfield as vf
        >>> k = vf.kernels.Gaussian(1.0)
        >>> kernel = vf.kernels.DivergenceFree(k) + 0.1 * vf.kernels.CurlFree(k)
        >>> [type(term).__name__ for term in kernel.terms()]
        ['DivergenceFree', 'OperatorScaled']
    """

    left: ImplicitKernel
    right: ImplicitKernel

    def __post_init__(self) -> None:
        _check_implicit("left", self.left)
        _check_implicit("right", self.right)

    def resolved(self, nodes: Any) -> Self:
        """Resolve both."""
        return self.replace(left=self.left.resolved(nodes), right=self.right.resolved(nodes))

    def size(self, nodes: Any) -> float:
        """Return the sum of their sizes."""
        return self.left.size(nodes) + self.right.size(nodes)

    def bind(self, nodes: Any, coefficients: Any) -> Evaluator:
        """Return the sum of their fields."""
        return _SumEvaluator(
            self.left.bind(nodes, coefficients), self.right.bind(nodes, coefficients)
        )

    def blocks(self, y: Any) -> Callable[[Any], Blocks]:
        """Prepare ``y``; see `ImplicitKernel.blocks`."""
        left, right = self.left.blocks(y), self.right.blocks(y)
        return lambda x: _SumBlocks(left(x), right(x))

    def terms(self) -> tuple[ImplicitKernel, ...]:
        """Return all summands, those of nested sums too."""
        return (*self.left.terms(), *self.right.terms())

    def standardisation(self, shift: Any, scale: Any) -> tuple[Any, Any]:
        """Return a shift and scale that suit both; ValueError where none does."""
        for first, second in ((self.left, self.right), (self.right, self.left)):
            suited = first.standardisation(shift, scale)
            if _same(second.standardisation(*suited), suited):
                return suited  # the stricter law's own choice, whichever side it stands on
        suited = self.right.standardisation(*self.left.standardisation(shift, scale))
        if not _same(self.left.standardisation(*suited), suited):
            raise ValueError(
                "the terms of the sum ask for different standardisations; scale the data yourself "
                "and pass standardize=False"
            )
        return suited


@dataclass(frozen=True)
class OperatorScaled(ImplicitKernel):
    """K(x, y) = factor * kernel(x, y), factor > 0; written ``factor * kernel``.

    Example:
        >>> import vectorfield as vf
        >>> kernel = 0.5 * vf.kernels.CurlFree(vf.kernels.Gaussian(2.0))
        >>> kernel.factor, kernel.energy
        (0.5, 'potential')
    """

    kernel: ImplicitKernel
    factor: float

    def __post_init__(self) -> None:
        _check_implicit("kernel", self.kernel)
        object.__setattr__(self, "factor", check_real("factor", self.factor, above=0.0))

    @property
    def energy(self) -> str | None:  # type: ignore[override]
        """What the fields are made of; see `OperatorKernel.energy`."""
        return self.kernel.energy

    def resolved(self, nodes: Any) -> Self:
        """Resolve the kernel."""
        return self.replace(kernel=self.kernel.resolved(nodes))

    def size(self, nodes: Any) -> float:
        """Return its size, scaled."""
        return self.factor * self.kernel.size(nodes)

    def bind(self, nodes: Any, coefficients: Any) -> Evaluator:
        """Return its field, scaled."""
        return self.kernel.bind(nodes, self.factor * coefficients)

    def blocks(self, y: Any) -> Callable[[Any], Blocks]:
        """Prepare ``y``; see `ImplicitKernel.blocks`."""
        inner = self.kernel.blocks(y)
        return lambda x: _ScaledBlocks(inner(x), self.factor)

    def terms(self) -> tuple[ImplicitKernel, ...]:
        """Return the terms of the kernel, each scaled."""
        terms = self.kernel.terms()
        return (self,) if terms == (self.kernel,) else tuple(self.factor * term for term in terms)

    def standardisation(self, shift: Any, scale: Any) -> tuple[Any, Any]:
        """Return what the kernel asks for."""
        return self.kernel.standardisation(shift, scale)

    def energy_unit(self, scale: Any) -> float:
        """Return the kernel's own; the factor is in the coefficients."""
        return self.kernel.energy_unit(scale)


class _SumEvaluator(Evaluator):
    def __init__(self, left: Evaluator, right: Evaluator) -> None:
        self._left, self._right = left, right

    def __call__(self, x: Any) -> Any:
        return self._left(x) + self._right(x)

    def jacobian(self, x: Any) -> Any:
        return self._left.jacobian(x) + self._right.jacobian(x)


class _SumBlocks(Blocks):
    def __init__(self, left: Blocks, right: Blocks) -> None:
        self._left, self._right = left, right

    def tile(self, rows: slice, columns: slice) -> Any:
        return self._left.tile(rows, columns) + self._right.tile(rows, columns)

    def product(self, rows: slice, columns: slice, right: Any) -> Any:
        return self._left.product(rows, columns, right) + self._right.product(rows, columns, right)

    def products(self, rows: slice, columns: slice, right: Any, left: Any) -> tuple[Any, Any]:
        one = self._left.products(rows, columns, right, left)
        two = self._right.products(rows, columns, right, left)
        return one[0] + two[0], one[1] + two[1]


class _ScaledBlocks(Blocks):
    def __init__(self, inner: Blocks, factor: float) -> None:
        self._inner, self._factor = inner, factor

    def tile(self, rows: slice, columns: slice) -> Any:
        return self._factor * self._inner.tile(rows, columns)

    def product(self, rows: slice, columns: slice, right: Any) -> Any:
        return self._factor * self._inner.product(rows, columns, right)

    def products(self, rows: slice, columns: slice, right: Any, left: Any) -> tuple[Any, Any]:
        forward, back = self._inner.products(rows, columns, right, left)
        return self._factor * forward, self._factor * back


def _check_implicit(name: str, value: Any) -> None:
    if not isinstance(value, ImplicitKernel):
        raise TypeError(
            f"{name} must be an operator-valued kernel such as DivergenceFree(), got {value!r}; "
            "wrap a scalar kernel k as Separable(k)"
        )


def _same(one: tuple[Any, Any], other: tuple[Any, Any]) -> bool:
    """Whether two pairs of shift and scale agree to rounding."""
    xp = _backend.namespace(one[0])
    pairs = zip(one, other, strict=True)
    return all(bool(xp.all(xp.abs(a - b) <= 1e-12 * xp.max(xp.abs(a)))) for a, b in pairs)
