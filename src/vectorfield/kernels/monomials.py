"""Monomials of any degree, weighted so that their kernel is the polynomial one exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from vectorfield import _backend
from vectorfield.kernels.dot import Polynomial
from vectorfield.kernels.features import ExplicitKernel, FeatureMap, in_blocks, read_only
from vectorfield.kernels.lengths import LengthScale, divide_lengths
from vectorfield.kernels.operators import Evaluator

__all__ = ["MonomialMap", "Monomials"]


@dataclass(frozen=True)
class Monomials(ExplicitKernel):
    """All monomials up to a degree, with phi(x) . phi(y) = (x . y / sigma^2 + offset)^degree.

    The features are sqrt(p! / (a! (p - |a|)!) c^(p - |a|)) u^a with u = x / sigma, p the degree, c
    the offset and a multi-index a: binomial(d + p, p) of them, or binomial(d + p - 1, p), those of
    degree p exactly, for an offset of 0. Fields are the polynomials; the kernel is that of
    `Polynomial` with the same settings, to rounding.

    Args:
        degree, offset, length_scale: as in `Polynomial`.

    A fit of N observations costs N q^2 + q^3 / 3.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> x = np.array([[0.5, -1.0, 2.0], [1.0, 0.0, 3.0]])
        >>> phi = vf.kernels.Monomials(degree=3).bind(x)(x)
        >>> phi.shape, bool(np.allclose(phi @ phi.T, vf.kernels.Polynomial(degree=3)(x)))
        ((2, 20), True)
    """

    degree: int = 2
    offset: float = 1.0
    length_scale: LengthScale = 1.0

    def __post_init__(self) -> None:
        checked = Polynomial(self.degree, self.offset, self.length_scale)
        for name, value in checked.get_params(deep=False).items():
            object.__setattr__(self, name, value)

    def count(self, d: int) -> int:
        """Return q, the number of monomials of d coordinates.

        >>> import vectorfield as vf
        >>> vf.kernels.Monomials(degree=2).count(16)
        153
        """
        below = 0 if self.offset > 0.0 else 1
        return math.comb(d + self.degree - below, self.degree)

    @property
    def depends_on_nodes(self) -> bool:
        """False."""
        return False

    def resolved(self, nodes: Any) -> Self:
        """Return the same: nothing is left open."""
        return self

    def size(self, nodes: Any) -> float:
        """Return the mean of (|z|^2 / sigma^2 + offset)^degree."""
        polynomial = Polynomial(self.degree, self.offset, self.length_scale)
        return float(_backend.namespace(nodes).mean(polynomial.diagonal(nodes)))

    def bind(self, nodes: Any) -> MonomialMap:
        """Return the map for as many coordinates as the nodes have.

        Raises:
            MemoryError: the (q, q) system would not fit into memory.
        """
        d = int(nodes.shape[1])
        q = self.count(d)
        _backend.check_memory(
            q * q,
            f"the system of q = {q:,} monomials of degree {self.degree} in {d} coordinates",
            "take a lower degree, RandomFourier or Nystrom features, or the kernel Polynomial",
        )
        xp = _backend.namespace(nodes)
        inverse = divide_lengths(xp.ones_like(nodes[0, :]), self.length_scale)
        return MonomialMap(self, 1.0 / inverse)

    def restore(self, arrays: Mapping[str, Any]) -> MonomialMap:
        """Return the map with the length scales of a model file."""
        lengths = arrays["lengths"]
        if lengths.ndim != 1:
            raise ValueError(f"lengths have shape {lengths.shape}, expected (d,)")
        own = 1.0 / divide_lengths(np.ones_like(lengths), self.length_scale)
        if not np.array_equal(own, lengths):
            raise ValueError(f"lengths are not those of length_scale={self.length_scale!r}")
        return MonomialMap(self, lengths)


@dataclass(frozen=True, eq=False)
class MonomialMap(FeatureMap):
    """The monomials of d coordinates, degree by degree.

    Attributes:
        settings: degree and offset.
        lengths: sigma, (d,).

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> vf.kernels.Monomials(degree=2).bind(np.zeros((1, 2))).exponents.tolist()
        [[0, 0], [1, 0], [0, 1], [2, 0], [1, 1], [0, 2]]
    """

    settings: Monomials
    lengths: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", read_only(self.lengths))

    @property
    def q(self) -> int:
        """Number of features."""
        return self.settings.count(self.d)

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return int(self.lengths.shape[0])

    @property
    def exponents(self) -> np.ndarray:
        """The multi-indices a, (q, d)."""
        return self._table.exponents[self._table.first :, :]

    @cached_property
    def _table(self) -> _Table:
        return _Table(self.settings, self.d)

    def __call__(self, x: Any) -> Any:
        """Return phi(x), (n, q). Cost O(n (q + d))."""
        value = self.powers(x)[:, self._table.first :]
        return value * _backend.array_like(self._table.weights, x)

    def powers(self, x: Any) -> Any:
        """Return u^a for all multi-indices up to the degree, (n, all), u = x / lengths."""
        xp = _backend.namespace(x)
        u = x / self.lengths
        level = xp.ones_like(x[:, :1])
        levels = [level]
        for parents, variables in self._table.levels:
            chosen = _backend.index(parents, x), _backend.index(variables, x)
            level = xp.take(level, chosen[0], axis=1) * xp.take(u, chosen[1], axis=1)
            levels.append(level)
        return xp.concat(levels, axis=1)

    def gradient(self, x: Any) -> Any:
        """Return the derivatives of the features, (n, d, q)."""
        xp = _backend.namespace(x)
        powers, first = self.powers(x), self._table.first
        weights = self._table.weights
        columns = []
        for j in range(self.d):
            lower = _backend.index(self._table.lower[first:, j], x)
            factor = self._table.exponents[first:, j] * weights
            value = xp.take(powers, lower, axis=1) * _backend.array_like(factor, x)
            columns.append(value / self.lengths[j])
        return xp.stack(columns, axis=1)

    def hessian(self, x: Any, c: Any) -> Any:
        """Return the second derivatives of phi(x) . c, (n, d, d). Cost O(n q d^2)."""
        xp = _backend.namespace(x)
        once = self._lowered(self._plain(c[:, None]))[:, 0, :]
        twice = self._lowered(once)  # (all, d, d)
        value = self.powers(x) @ xp.reshape(twice, (twice.shape[0], -1))
        return xp.reshape(value, (-1, self.d, self.d))

    def jacobian(self, x: Any, c: Any) -> Any:
        """Return the Jacobian, (n, k, d). Cost O(n q d k)."""
        return _apply(self.powers(x), self._lowered(self._plain(c)))

    def bind(self, coefficients: Any) -> Evaluator:
        """Return the field, the coefficients of its derivatives prepared once."""
        return _PolynomialEvaluator(self, coefficients)

    def derivatives(self, coefficients: Any) -> Any:
        """Return those of d f_i / d x_j on the powers, (all, k, d), for coefficients (q, k)."""
        return self._lowered(self._plain(coefficients))

    def arrays(self) -> dict[str, Any]:
        """Return the length scales."""
        return {"lengths": self.lengths}

    def _plain(self, c: Any) -> Any:
        """Return coefficients on the unweighted powers of all degrees, (all, k)."""
        xp = _backend.namespace(c)
        weighted = c * _backend.array_like(self._table.weights, c)[:, None]
        if not self._table.first:
            return weighted
        empty = xp.zeros((self._table.first, c.shape[1]), dtype=c.dtype, device=_backend.device(c))
        return xp.concat([empty, weighted], axis=0)

    def _lowered(self, plain: Any) -> Any:
        """Return the coefficients of the derivatives by every coordinate, (all, k, d)."""
        xp = _backend.namespace(plain)
        parts = [
            _backend.sparse_apply(self._table.lowering(j), plain) / self.lengths[j]
            for j in range(self.d)
        ]
        return xp.stack(parts, axis=2)

    def __getstate__(self) -> dict[str, Any]:
        return {"settings": self.settings, "lengths": self.lengths}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


class _PolynomialEvaluator(Evaluator):
    def __init__(self, features: MonomialMap, coefficients: Any) -> None:
        self._map, self._c = features, coefficients

    def __call__(self, x: Any) -> Any:
        return in_blocks(lambda part: self._map(part) @ self._c, x, self._map.q)

    @cached_property
    def _slopes(self) -> Any:
        return self._map.derivatives(self._c)

    def jacobian(self, x: Any) -> Any:
        slopes = self._slopes
        return in_blocks(lambda part: _apply(self._map.powers(part), slopes), x, self._map.q)


def _apply(powers: Any, slopes: Any) -> Any:
    xp = _backend.namespace(powers)
    value = powers @ xp.reshape(slopes, (slopes.shape[0], -1))
    return xp.reshape(value, (-1, *slopes.shape[1:]))


class _Table:
    """All multi-indices up to the degree, in levels: each is one of the level before times x_v.

    Within a level, the children of a monomial are its products with the variables from its last
    one on, so that every monomial comes once and lies at a place that can be computed.
    """

    def __init__(self, settings: Monomials, d: int) -> None:
        degree, offset = settings.degree, settings.offset
        last = np.zeros(1, dtype=np.int64)
        exponents = [np.zeros((1, d), dtype=np.int64)]
        lower = [np.zeros((1, d), dtype=np.int64)]
        multinomial = [np.ones(1)]
        self.levels: list[tuple[np.ndarray, np.ndarray]] = []
        start, before = 0, 0  # where this level and the one before it begin
        places = np.zeros(0, dtype=np.int64)  # of the first child of each in the level before
        lasts = np.zeros(0, dtype=np.int64)
        for power in range(1, degree + 1):
            children = d - last
            parents = np.repeat(np.arange(len(last)), children)
            first_child = np.cumsum(children) - children
            variables = np.arange(len(parents)) - first_child[parents] + last[parents]
            raised = exponents[-1][parents, :].copy()
            raised[np.arange(len(parents)), variables] += 1
            # x_j lowered in parent * x_v: the parent itself for j = v, else its own, times x_v
            lowered = np.zeros_like(raised)
            if power > 1:
                old = np.maximum(lower[-1][parents, :] - before, 0)  # unused where x_j is absent
                lowered = start + places[old] + variables[:, None] - lasts[old]
            lowered[np.arange(len(parents)), variables] = start + parents
            lower.append(np.where(raised > 0, lowered, 0))
            multinomial.append(
                multinomial[-1][parents] * power / raised[np.arange(len(parents)), variables]
            )
            exponents.append(raised)
            self.levels.append((parents, variables))
            before, start = start, start + len(last)
            places, lasts, last = first_child, last, variables
        self.exponents = np.concatenate(exponents)
        self.lower = np.concatenate(lower)
        self.first = 0 if offset > 0.0 else start
        weights = [
            m * math.comb(degree, power) * offset ** (degree - power)
            for power, m in enumerate(multinomial)
        ]
        self.weights = np.sqrt(np.concatenate(weights))[self.first :]

    def lowering(self, j: int) -> sp.csr_array:
        """Return the matrix that takes coefficients of f to those of d f / d u_j."""
        source = np.flatnonzero(self.exponents[:, j])
        entries = self.exponents[source, j].astype(np.float64), (self.lower[source, j], source)
        return sp.csr_array(sp.coo_array(entries, shape=(len(self.lower),) * 2))
