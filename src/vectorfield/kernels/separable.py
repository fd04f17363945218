"""Separable operator-valued kernels K(x, y) = k(x, y) A."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from vectorfield import _backend
from vectorfield.kernels.base import ScalarKernel
from vectorfield.kernels.operators import Blocks, Evaluator, ImplicitKernel
from vectorfield.kernels.tiles import Tile, evaluate, row_blocks

__all__ = ["Separable", "check_matrix"]


@dataclass(frozen=True)
class Separable(ImplicitKernel):
    """K(x, y) = k(x, y) A with a scalar kernel k and a positive semi-definite matrix A.

    A = None is the identity (an *I-separable* kernel): the d outputs then share one
    factorisation. Otherwise A is diagonalised and the rotated outputs are solved one by one;
    A couples the outputs, and a singular A confines f to its range. A acts in the coordinates
    in which the model is fitted: standardised ones unless ``standardize=False``.

    Args:
        kernel: the scalar kernel k.
        matrix: A, (d, d) symmetric positive semi-definite; stored as a tuple of tuples.

    Example:
        >>> import vectorfield as vf
        >>> vf.kernels.Separable(vf.kernels.Gaussian(1.0), [[1.0, 0.5], [0.5, 1.0]]).matrix
        ((1.0, 0.5), (0.5, 1.0))
    """

    kernel: ScalarKernel
    matrix: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, ScalarKernel):
            raise TypeError(f"kernel must be a scalar kernel, got {self.kernel!r}")
        if self.matrix is not None:
            object.__setattr__(self, "matrix", check_matrix(self.matrix))

    def resolved(self, nodes: Any) -> Self:
        """Set the scalar kernel's open settings from the nodes."""
        return self.replace(kernel=self.kernel.resolved(nodes))

    def size(self, nodes: Any) -> float:
        """Return mean k(z, z) times the mean of A's diagonal."""
        trace = 1.0 if self.matrix is None else float(np.mean(np.diag(np.asarray(self.matrix))))
        return trace * float(_backend.namespace(nodes).mean(self.kernel.diagonal(nodes)))

    def bind(self, nodes: Any, coefficients: Any) -> SeparableEvaluator:
        """Return the field sum_p k(., z_p) A c_p."""
        if self.matrix is not None:
            coefficients = coefficients @ self.mixing(coefficients)
        return SeparableEvaluator(self.kernel, nodes, coefficients)

    def blocks(self, y: Any) -> Callable[[Any], Blocks]:
        """Prepare ``y``; see `ImplicitKernel.blocks`."""
        at, mixing = self.kernel.bind(y), self.mixing(y)
        return lambda x: SeparableBlocks(at(x), mixing)

    def mixing(self, like: Any) -> Any:
        """Return A, (d, d), in the array library of the states ``like`` (n, d)."""
        d = like.shape[1]
        matrix = np.eye(d) if self.matrix is None else np.asarray(self.matrix)
        if matrix.shape[0] != d:
            raise ValueError(
                f"matrix is {matrix.shape[0]} x {matrix.shape[0]} but the states have {d} features"
            )
        return _backend.array_like(matrix, like)


class SeparableEvaluator(Evaluator):
    """f(x) = sum_p k(x, z_p) c_p, with the nodes prepared once."""

    def __init__(self, kernel: ScalarKernel, nodes: Any, coefficients: Any) -> None:
        self._kernel, self._nodes, self._coefficients = kernel, nodes, coefficients
        self._at = kernel.bind(nodes)

    def __call__(self, x: Any) -> Any:
        """Return f(x), (n, d). Cost O(n m d)."""
        return evaluate(self._at, x, self._coefficients)

    def jacobian(self, x: Any) -> Any:
        """Return the Jacobian, (n, d, d). Cost O(n m d^2)."""
        xp = _backend.namespace(x)
        rows = max(32, 2**16 // self._nodes.shape[0])  # stays in a cache
        parts = [
            self._kernel.derivative(x[chosen, :], self._nodes, self._coefficients)
            for chosen in row_blocks(x.shape[0], rows) or [slice(0, 0)]
        ]
        return parts[0] if len(parts) == 1 else xp.concat(parts, axis=0)


class SeparableBlocks(Blocks):
    """Tiles k(x, y) A."""

    def __init__(self, tile: Tile, mixing: Any) -> None:
        self._scalar, self._mixing = tile, mixing

    def tile(self, rows: slice, columns: slice) -> Any:
        """Return the tile, (d, d, rows, columns)."""
        return self._mixing[:, :, None, None] * self._scalar(rows, columns)

    def product(self, rows: slice, columns: slice, right: Any) -> Any:
        """Return k(x, y) right A."""
        return self._scalar(rows, columns) @ (right @ self._mixing)

    def products(self, rows: slice, columns: slice, right: Any, left: Any) -> tuple[Any, Any]:
        """Return k(x, y) right A and k(x, y)^T left A."""
        scalar = self._scalar(rows, columns)
        return scalar @ (right @ self._mixing), scalar.T @ (left @ self._mixing)


def check_matrix(matrix: Any, name: str = "matrix") -> tuple[tuple[float, ...], ...]:
    """Return a symmetric positive semi-definite matrix, not zero, as a tuple of rows."""
    try:
        a = np.asarray(matrix, dtype=np.float64)
    except OverflowError as error:  # a Python integer may have any number of digits
        raise ValueError(f"{name} must be finite: {error}") from error
    if a.ndim != 2 or a.shape[0] != a.shape[1] or not np.isfinite(a).all():
        raise ValueError(f"{name} must be a finite square (d, d) array, got shape {a.shape}")
    size = float(np.abs(a).max(initial=0.0))
    if size == 0.0:
        raise ValueError(f"{name} is zero: the kernel would hold no field but f = 0")
    if np.abs(a - a.T).max() > 1e-12 * size:
        raise ValueError(f"{name} must be symmetric; pass (A + A.T) / 2 if that is what you mean")
    lowest = float(np.linalg.eigvalsh(a)[0])
    if lowest < -1e-10 * size:
        raise ValueError(
            f"{name} must be positive semi-definite; its lowest eigenvalue is {lowest:g}"
        )
    return tuple(tuple(row) for row in a.tolist())
