"""Kernels whose fields obey a law: curl-free, divergence-free, gradient flows, Hamiltonian.

All are made of second derivatives of one radial scalar kernel k; see `vectorfield.kernels.hessian`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from vectorfield import _backend
from vectorfield.kernels.hessian import HessianBlocks, HessianSums
from vectorfield.kernels.laws import (
    Pairs,
    check_pairs,
    paired_scale,
    paired_unit,
    symplectic_matrix,
    uniform_scale,
    uniform_unit,
)
from vectorfield.kernels.lengths import divide_lengths
from vectorfield.kernels.operators import Blocks, Evaluator, ImplicitKernel
from vectorfield.kernels.radial import Gaussian, Laplace, Matern, Radial
from vectorfield.kernels.separable import check_matrix

__all__ = ["CurlFree", "DivergenceFree", "Gradient", "Hamiltonian"]


class _Derived(ImplicitKernel):
    """K = B (-H) B^T with H = grad grad^T k, or H - tau I, for one radial kernel k."""

    kernel: Radial
    _traceless: ClassVar[bool] = False
    _energy_sign: ClassVar[float | None] = None  # f = -B grad e: V is e, but H is -e

    def __post_init__(self) -> None:
        _check_smooth(type(self).__name__, self.kernel)

    @abstractmethod
    def _mixing(self, d: int) -> np.ndarray | None:
        """Return B, (d, d); None for the identity. ValueError if the law needs another d."""

    def resolved(self, nodes: Any) -> Self:
        """Set an open length scale from the nodes; check that the law fits their number."""
        self._mixing(nodes.shape[1])
        return self.replace(kernel=self.kernel.resolved(nodes))

    def size(self, nodes: Any) -> float:
        """Return the mean of K(z, z)'s diagonal, the same at every z."""
        xp = _backend.namespace(nodes)
        inverse = divide_lengths(xp.ones_like(nodes[0, :]), self.kernel.length_scale)
        curvature = -float(self.kernel.profile(0.0 * nodes[:1, 0], 1)[0])
        squares = _backend.to_numpy(inverse) ** 2
        if self._traceless:
            return curvature * float(np.mean(squares.sum() - squares))
        mixing = self._mixing(len(squares))
        if mixing is not None:
            squares = np.diag((mixing * squares) @ mixing.T)
        return curvature * float(np.mean(squares))

    def bind(self, nodes: Any, coefficients: Any) -> Evaluator:
        """Return the field sum_p K(., z_p) c_p."""
        mixing = self._mixing(nodes.shape[1])
        if mixing is not None:
            mixing = _backend.array_like(mixing, nodes)
            coefficients = coefficients @ mixing  # B^T c
        sign = 1.0 if self._traceless else -1.0
        sums = HessianSums(self.kernel, nodes, coefficients, sign=sign, traceless=self._traceless)
        return _DerivedEvaluator(sums, mixing, self._energy_sign)

    def blocks(self, y: Any) -> Callable[[Any], Blocks]:
        """Prepare ``y``; see `ImplicitKernel.blocks`."""
        mixing = self._mixing(y.shape[1])
        sign = 1.0 if self._traceless else -1.0

        def at(x: Any) -> Blocks:
            inner = HessianBlocks(self.kernel, x, y, sign=sign, traceless=self._traceless)
            return inner if mixing is None else _MixedBlocks(inner, _backend.array_like(mixing, y))

        return at


@dataclass(frozen=True)
class CurlFree(_Derived):
    """K(x, y) = -grad grad^T k(x - y): every field is a gradient, f = -grad V.

    Its Jacobians are symmetric. ``field.potential(x)`` is V, up to a constant. Standardised
    coordinates share one scale, since a gradient is none any more where they do not.

    Args:
        kernel: a radial scalar kernel with four derivatives: `Gaussian`, `RationalQuadratic`, or
            `Matern` of nu >= 5/2.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 2.0, 41)
        >>> sink = np.exp(-np.outer(t, [1.0, 2.0]))  # f = -grad (x^2 / 2 + y^2)
        >>> model = vf.MOCK(vf.kernels.CurlFree(vf.kernels.Gaussian(2.0)), 1e-9).fit(sink, t)
        >>> jacobian = model.field_.jacobian(sink[::8])
        >>> bool(np.allclose(jacobian, jacobian.transpose(0, 2, 1), atol=1e-12))
        True
    """

    kernel: Radial = field(default_factory=Gaussian)
    energy: ClassVar[str | None] = "potential"
    _energy_sign: ClassVar[float | None] = 1.0

    def _mixing(self, d: int) -> np.ndarray | None:
        return None

    def standardisation(self, shift: Any, scale: Any) -> tuple[Any, Any]:
        """Return one scale for all coordinates, the root mean square of theirs."""
        return shift, uniform_scale(scale)

    def energy_unit(self, scale: Any) -> float:
        """Return the square of the scale."""
        return uniform_unit(scale)


@dataclass(frozen=True)
class Gradient(_Derived):
    """K(x, y) = M (-grad grad^T k) M: gradient flows f = -M grad V with a mobility M.

    ``field.potential(x)`` is V, up to a constant; it never increases along a trajectory. With
    M = I, the default, this is `CurlFree`.

    Args:
        kernel: a radial scalar kernel, as for `CurlFree`.
        mobility: M, (d, d) symmetric positive semi-definite; None for the identity.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 2.0, 41)
        >>> sink = np.exp(-np.outer(t, [1.0, 3.0]))  # M = diag(1, 3), V = (x^2 + y^2) / 2
        >>> kernel = vf.kernels.Gradient(vf.kernels.Gaussian(2.0), mobility=[[1, 0], [0, 3]])
        >>> energy = vf.MOCK(kernel, 1e-9).fit(sink, t).potential(sink)
        >>> bool(np.all(np.diff(energy) < 0))
        True
    """

    kernel: Radial = field(default_factory=Gaussian)
    mobility: Any = None
    energy: ClassVar[str | None] = "potential"
    _energy_sign: ClassVar[float | None] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mobility is not None:
            object.__setattr__(self, "mobility", check_matrix(self.mobility, "mobility"))

    def _mixing(self, d: int) -> np.ndarray | None:
        if self.mobility is None:
            return None
        matrix = np.asarray(self.mobility)
        if len(matrix) != d:
            raise ValueError(
                f"mobility is {len(matrix)} x {len(matrix)} but the states have {d} features; give "
                f"a ({d}, {d}) matrix, or None for the identity"
            )
        return matrix

    def standardisation(self, shift: Any, scale: Any) -> tuple[Any, Any]:
        """Return one scale for all coordinates, the root mean square of theirs."""
        return shift, uniform_scale(scale)

    def energy_unit(self, scale: Any) -> float:
        """Return the square of the scale."""
        return uniform_unit(scale)


@dataclass(frozen=True)
class Hamiltonian(_Derived):
    """K(x, y) = J (-grad grad^T k) J^T: symplectic gradients, f = J grad H.

    dq/dt = dH/dp and dp/dt = -dH/dq for every pair (q, p) of coordinates: the energy H is kept
    along every trajectory, and ``field.hamiltonian(x)`` is H, up to a constant. In the plane
    this is `DivergenceFree`. In standardised coordinates the product of the scales of every pair
    is the same.

    Args:
        kernel: a radial scalar kernel, as for `CurlFree`.
        pairs: ((q, p), ...), the coordinates that are positions and their momenta; by default
            the first half and the second half of the coordinates.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 6.0, 61)
        >>> orbit = np.stack([np.cos(t), -np.sin(t)], axis=1)  # H = (q^2 + p^2) / 2
        >>> kernel = vf.kernels.Hamiltonian(vf.kernels.Gaussian(2.0))
        >>> model = vf.MOCK(kernel, ridge=1e-9).fit([orbit, 2 * orbit], t)
        >>> energy = model.hamiltonian(np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]]))
        >>> (energy - energy[0]).round(1) + 0.0
        array([0. , 0. , 1.5])
    """

    kernel: Radial = field(default_factory=Gaussian)
    pairs: Pairs = None
    energy: ClassVar[str | None] = "hamiltonian"
    _energy_sign: ClassVar[float | None] = -1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "pairs", check_pairs(self.pairs))

    def _mixing(self, d: int) -> np.ndarray | None:
        return symplectic_matrix(self.pairs, d)

    def standardisation(self, shift: Any, scale: Any) -> tuple[Any, Any]:
        """Return scales whose products over the pairs are equal."""
        return shift, paired_scale(scale, self.pairs)

    def energy_unit(self, scale: Any) -> float:
        """Return the product of the scales of a pair."""
        return paired_unit(scale, self.pairs)


@dataclass(frozen=True)
class DivergenceFree(_Derived):
    """K(x, y) = (grad grad^T - Laplacian I) k(x - y): every field keeps volumes, div f = 0.

    For d >= 2; any scale of the coordinates keeps the law.

    Args:
        kernel: a radial scalar kernel, as for `CurlFree`.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 6.0, 61)
        >>> orbit = np.stack([np.cos(t), -np.sin(t)], axis=1)
        >>> kernel = vf.kernels.DivergenceFree(vf.kernels.Gaussian(2.0))
        >>> field = vf.MOCK(kernel, ridge=1e-9).fit(orbit, t).field_
        >>> divergence = np.trace(field.jacobian(orbit), axis1=1, axis2=2)
        >>> bool(np.abs(divergence).max() < 1e-12)
        True
    """

    kernel: Radial = field(default_factory=Gaussian)
    _traceless: ClassVar[bool] = True

    def _mixing(self, d: int) -> np.ndarray | None:
        if d < 2:
            raise ValueError(
                f"a divergence-free field needs at least 2 coordinates, got {d}, where it is "
                "constant; take another kernel, such as Separable()"
            )
        return None


class _DerivedEvaluator(Evaluator):
    def __init__(self, sums: HessianSums, mixing: Any, energy_sign: float | None) -> None:
        self._sums, self._mixing, self._energy_sign = sums, mixing, energy_sign

    def __call__(self, x: Any) -> Any:
        """Return f(x), (n, d). Cost O(n m d)."""
        value = self._sums.value(x)
        return value if self._mixing is None else value @ self._mixing.T

    def jacobian(self, x: Any) -> Any:
        """Return the Jacobian, (n, d, d). Cost O(n m d^2)."""
        value = self._sums.jacobian(x)
        return value if self._mixing is None else self._mixing @ value

    def energy(self, x: Any) -> Any:
        """Return V or H, (n,): f = -B grad e with e = sum_p (grad k) . B^T c_p."""
        if self._energy_sign is None:
            return super().energy(x)
        return self._energy_sign * self._sums.energy(x)


class _MixedBlocks(Blocks):
    """B K B^T."""

    def __init__(self, inner: Blocks, mixing: Any) -> None:
        self._inner, self._mixing = inner, mixing

    def tile(self, rows: slice, columns: slice) -> Any:
        """Return the tile, (d, d, rows, columns)."""
        xp = _backend.namespace(self._mixing)
        tile = self._inner.tile(rows, columns)
        shape, d = tile.shape, self._mixing.shape[0]
        left = xp.reshape(self._mixing @ xp.reshape(tile, (d, -1)), shape)
        swapped = xp.reshape(xp.permute_dims(left, (1, 0, 2, 3)), (d, -1))
        return xp.permute_dims(xp.reshape(self._mixing @ swapped, shape), (1, 0, 2, 3))

    def product(self, rows: slice, columns: slice, right: Any) -> Any:
        """Return sum_j B K(x_i, y_j) B^T right_j."""
        return self._inner.product(rows, columns, right @ self._mixing) @ self._mixing.T

    def products(self, rows: slice, columns: slice, right: Any, left: Any) -> tuple[Any, Any]:
        """Return both halves of a symmetric product."""
        forward, back = self._inner.products(
            rows, columns, right @ self._mixing, left @ self._mixing
        )
        return forward @ self._mixing.T, back @ self._mixing.T


def _check_smooth(name: str, kernel: Any) -> None:
    if not isinstance(kernel, Radial):
        raise TypeError(
            f"{name} needs a radial scalar kernel such as Gaussian() or Matern(5.5), got "
            f"{kernel!r}; sums are written as sums of {name} kernels"
        )
    if isinstance(kernel, Laplace) or (isinstance(kernel, Matern) and kernel.nu < 2.5):
        raise ValueError(
            f"{name} differentiates its kernel twice for the field and once more for the field's "
            f"derivatives, and {kernel!r} has a kink at r = 0; use Matern(nu) with nu >= 2.5, or "
            "Gaussian()"
        )
