"""Functions of single coordinates and of pairs, of any order: a basis that grows slowly with d."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from vectorfield import _backend
from vectorfield._settings import check_integer, check_real
from vectorfield.kernels.features import ExplicitKernel, FeatureMap

__all__ = ["InteractionMap", "Interactions"]

DECAY = 0.7  # of a feature's weight with each order


@dataclass(frozen=True)
class Interactions(ExplicitKernel):
    """Sums of functions of one coordinate and of products of two: sum_j g_j(x_j) + g_jk(x_j, x_k).

    The features are 1, T_a(u_j) for a up to ``main`` and T_a(u_j) T_b(u_k) for a + b up to
    ``pair``, with the Chebyshev polynomials T and u = x / length_scale, each times
    0.7^(order - 1), so that the ridge holds high orders down: 1 + main d + pair (pair - 1) / 2 *
    d (d - 1) / 2 of them. Fields are polynomials again, of high order in few coordinates, where
    `Monomials` of that degree in all of them would be too many. Beyond one length scale, which
    should cover the states, each T_a goes on along its tangent.

    Args:
        main: highest order in one coordinate.
        pair: highest order of products of two coordinates; 1 for none.
        length_scale: half the range on which the polynomials are well conditioned, in standard
            deviations where the model standardises.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> features = vf.kernels.Interactions(main=2, pair=2, length_scale=1.0)
        >>> features.bind(np.zeros((1, 2)))(np.array([[0.5, -1.0]]))
        array([[ 1.  ,  0.5 , -1.  , -0.35,  0.7 , -0.35]])
    """

    main: int = 8
    pair: int = 5
    length_scale: float = 3.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "main", check_integer("main", self.main, at_least=1))
        object.__setattr__(self, "pair", check_integer("pair", self.pair, at_least=1))
        length = check_real("length_scale", self.length_scale, above=0.0)
        object.__setattr__(self, "length_scale", length)

    @property
    def depends_on_nodes(self) -> bool:
        """False."""
        return False

    def count(self, d: int) -> int:
        """Return q, the number of features of d coordinates.

        >>> import vectorfield as vf
        >>> vf.kernels.Interactions(8, 5).count(6)
        199
        """
        return 1 + self.main * d + (self.pair * (self.pair - 1) // 2) * (d * (d - 1) // 2)

    def resolved(self, nodes: Any) -> Self:
        """Return the same: nothing is left open."""
        return self

    def bind(self, nodes: Any) -> InteractionMap:
        """Return the map for as many coordinates as the nodes have."""
        d = int(nodes.shape[1])
        _backend.check_memory(
            self.count(d) ** 2,
            f"the system of {self.count(d):,} interactions of {d} coordinates",
            "take lower orders",
        )
        return InteractionMap(self, d)

    def restore(self, arrays: Mapping[str, Any]) -> InteractionMap:
        """Return the map of a model file."""
        size = arrays["coordinates"]
        if size.shape != (1,) or not 1 <= size[0] <= 1e9 or size[0] != int(size[0]):
            raise ValueError("coordinates must be one whole number")
        return InteractionMap(self, int(size[0]))


@dataclass(frozen=True, eq=False)
class InteractionMap(FeatureMap):
    """The features of d coordinates: constant, orders of all coordinates, then the pairs.

    Attributes:
        settings: orders and length scale.
        coordinates: d.
    """

    settings: Interactions
    coordinates: int

    @property
    def q(self) -> int:
        """Number of features."""
        return self.settings.count(self.coordinates)

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return self.coordinates

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        return np.triu_indices(self.coordinates, k=1)

    @property
    def _orders(self) -> list[tuple[int, int]]:
        pair = self.settings.pair
        return [(a, b) for a in range(1, pair) for b in range(1, pair - a + 1)]

    def __call__(self, x: Any) -> Any:
        """Return the features, (n, q)."""
        xp = _backend.namespace(x)
        t, _ = self._tables(x)
        parts = [xp.ones_like(x[:, :1])]
        parts += [t[a] * DECAY ** (a - 1) for a in range(1, self.settings.main + 1)]
        one, two = (_backend.index(side, x) for side in self._pairs)
        if len(self._pairs[0]):
            for a, b in self._orders:
                parts.append(t[a][:, one] * t[b][:, two] * DECAY ** (a + b - 1))
        return xp.concat(parts, axis=1)

    def gradient(self, x: Any) -> Any:
        """Return the derivatives of the features, (n, d, q)."""
        xp = _backend.namespace(x)
        n, d = x.shape
        t, slope = self._tables(x)
        value = xp.zeros((n, d, self.q), dtype=x.dtype, device=_backend.device(x))
        start = 1
        for a in range(1, self.settings.main + 1):
            for j in range(d):
                value[:, j, start + j] = slope[a][:, j] * DECAY ** (a - 1)
            start += d
        for a, b in self._orders if d > 1 else []:
            weight = DECAY ** (a + b - 1)
            for place, (j, k) in enumerate(zip(*self._pairs, strict=True)):
                value[:, int(j), start + place] = slope[a][:, j] * t[b][:, k] * weight
                value[:, int(k), start + place] = t[a][:, j] * slope[b][:, k] * weight
            start += len(self._pairs[0])
        return value

    def arrays(self) -> dict[str, Any]:
        """Return the number of coordinates."""
        return {"coordinates": np.array([float(self.coordinates)])}

    def _tables(self, x: Any) -> tuple[list[Any], list[Any]]:
        """Return T_a(u) and their derivatives by x for a = 0, 1, ..., (n, d) each."""
        xp = _backend.namespace(x)
        whole = x / self.settings.length_scale
        u = xp.clip(whole, -1.0, 1.0)
        inverse = 1.0 / self.settings.length_scale
        t = [xp.ones_like(u), u]
        slope = [xp.zeros_like(u), xp.full_like(u, inverse)]
        for _ in range(2, max(self.settings.main, self.settings.pair - 1) + 1):
            slope.append(2.0 * inverse * t[-1] + 2.0 * u * slope[-1] - slope[-2])
            t.append(2.0 * u * t[-1] - t[-2])
        beyond = x - self.settings.length_scale * u
        return [value + s * beyond for value, s in zip(t, slope, strict=True)], slope
