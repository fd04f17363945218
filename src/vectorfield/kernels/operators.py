"""What an operator-valued kernel is, and the fields that it makes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

from vectorfield import _backend
from vectorfield._settings import Settings

__all__ = ["Blocks", "Evaluator", "ImplicitKernel", "OperatorKernel"]


class Evaluator(ABC):
    """A field with everything about its nodes and coefficients prepared."""

    @abstractmethod
    def __call__(self, x: Any) -> Any:
        """Return f(x), (n, d) -> (n, d)."""

    @abstractmethod
    def jacobian(self, x: Any) -> Any:
        """Return d f_i / d x_j at every point, (n, d) -> (n, d, d)."""

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

    energy: str | None = None
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
    """An operator-valued kernel known pair by pair: fields are f = sum_p K(., z_p) c_p."""

    @abstractmethod
    def bind(self, nodes: Any, coefficients: Any) -> Evaluator:
        """Return the field sum_p K(., z_p) c_p; ``nodes`` and ``coefficients`` are (m, d)."""

    @abstractmethod
    def blocks(self, y: Any) -> Callable[[Any], Blocks]:
        """Prepare the points ``y`` (m, d) once; ``blocks(y)(x)`` gives K(x, y) tile by tile."""

    def terms(self) -> tuple[ImplicitKernel, ...]:
        """Return the kernels whose sum this one is; itself alone where it is none."""
        return (self,)


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
