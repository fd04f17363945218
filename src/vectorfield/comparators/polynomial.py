"""Polynomial fields: a table of exponents and one of coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

__all__ = ["PolynomialField"]


@dataclass(frozen=True, eq=False)
class PolynomialField:
    """f_i(x) = sum_k coefficients[i, k] prod_j x_j^exponents[k, j].

    Only monomials with a coefficient are kept, and those on the way to them: each is one of a
    lower degree times a coordinate. Cost O(n q d) for q of them.

    Attributes:
        exponents: (q, d) whole numbers.
        coefficients: (d, q).
        feature_names: d names, for `equations`.
        spread: (d,) size of the coordinates in the data, by which `simulate` sets its tolerance.

    Example:
        >>> import numpy as np
        >>> from vectorfield.comparators.polynomial import PolynomialField
        >>> exponents = np.array([[0, 0], [0, 1], [2, 1]])
        >>> field = PolynomialField(exponents, np.array([[0.0, 1, 0], [3, 0, -2]]), ("x", "y"))
        >>> print(*field.equations(), sep="; ")
        x' = y; y' = 3 - 2 x^2 y
        >>> field(np.array([[2.0, 1.0]]))
        array([[ 1., -5.]])
    """

    exponents: np.ndarray
    coefficients: np.ndarray
    feature_names: tuple[str, ...]
    spread: np.ndarray | None = None

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return int(self.coefficients.shape[0])

    def __call__(self, x: Any) -> np.ndarray:
        """Return f at points (n, d), as (n, d); infinite or NaN where powers overflow."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(self._monomials(np.asarray(x))[0] @ self._ladder.coefficients.T)

    def jacobian(self, x: Any) -> np.ndarray:
        """Return df_i/dx_j at points (n, d), as (n, d, d)."""
        points = np.asarray(x, dtype=np.float64)
        values, ladder = self._monomials(points)
        slopes = np.zeros((*values.shape, self.d))
        for level in ladder.levels:  # (parent x_v)' = parent' x_v + parent
            parent, variable = ladder.parents[level], ladder.variables[level]
            slopes[:, level] = slopes[:, parent] * points[:, variable, None]
            slopes[:, level, variable] += values[:, parent]
        return np.asarray(np.einsum("ik,nkj->nij", ladder.coefficients, slopes))

    def equations(self, digits: int = 3) -> list[str]:
        """Return one line a coordinate, with that many significant digits."""
        lines = []
        for name, row in zip(self.feature_names, self.coefficients, strict=True):
            text = ""
            for value, powers in zip(row, self.exponents, strict=True):
                if value == 0.0:
                    continue
                factors = [
                    other if power == 1 else f"{other}^{power}"
                    for other, power in zip(self.feature_names, powers, strict=True)
                    if power
                ]
                size = f"{abs(value):.{digits}g}"
                parts = factors if size == "1" and factors else [size, *factors]
                sign = ("-" if value < 0 else "") if not text else (" - " if value < 0 else " + ")
                text += sign + " ".join(parts)
            lines.append(f"{name}' = {text or '0'}")
        return lines

    def _monomials(self, x: np.ndarray) -> tuple[np.ndarray, _Ladder]:
        ladder = self._ladder
        values = np.ones((len(x), ladder.coefficients.shape[1]))
        for level in ladder.levels:
            values[:, level] = values[:, ladder.parents[level]] * x[:, ladder.variables[level]]
        return values, ladder

    @cached_property
    def _ladder(self) -> _Ladder:
        return _Ladder.of(self.exponents, self.coefficients)


@dataclass(frozen=True, eq=False)
class _Ladder:
    """Monomials by degree, each a product of an earlier one (``parents``) and a coordinate.

    The first is 1; ``levels`` are the columns of degree 1, 2, ... as arrays of places.
    """

    levels: tuple[np.ndarray, ...]
    parents: np.ndarray
    variables: np.ndarray
    coefficients: np.ndarray

    @classmethod
    def of(cls, exponents: np.ndarray, coefficients: np.ndarray) -> _Ladder:
        d = exponents.shape[1]
        given = {
            tuple(int(p) for p in row): column
            for row, column in zip(exponents, coefficients.T, strict=True)
            if np.any(column != 0.0)
        }
        needed = {(0,) * d}
        for powers in given:
            while powers not in needed:
                needed.add(powers)
                powers = _parent(powers)[0]  # noqa: PLW2901 - down the ladder
        order = sorted(needed, key=lambda powers: (sum(powers), powers))
        place = {powers: k for k, powers in enumerate(order)}
        parents = np.zeros(len(order), dtype=np.int64)
        variables = np.zeros(len(order), dtype=np.int64)
        kept = np.zeros((coefficients.shape[0], len(order)))
        for powers, k in place.items():
            if k > 0:
                below, variables[k] = _parent(powers)
                parents[k] = place[below]
            if powers in given:
                kept[:, k] = given[powers]
        degrees = np.array([sum(powers) for powers in order])
        levels = tuple(np.flatnonzero(degrees == k) for k in range(1, int(degrees.max()) + 1))
        return cls(levels, parents, variables, kept)


def _parent(powers: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """Return the monomial without one factor of its first coordinate, and that coordinate."""
    j = next(j for j, power in enumerate(powers) if power)
    return (*powers[:j], powers[j] - 1, *powers[j + 1 :]), j
