"""Bases on a few inputs, in three levels: quadratic, cubic, and of higher order."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

__all__ = ["LEVELS", "Level", "extra_columns"]


@dataclass(frozen=True)
class Level:
    """Which products of orthonormal polynomials a basis has.

    Attributes:
        main: p_a(x_j) up to this order, of every input.
        pair: p_a(x_j) p_b(x_k), a + b up to this order, of every pair.
        triple: whether it has p_1(x_j) p_1(x_k) p_1(x_l).
    """

    main: int
    pair: int
    triple: bool

    def count(self, inputs: int) -> int:
        """Return the number of functions on so many inputs, the constant among them.

        >>> from vectorfield.structure.basis import LEVELS
        >>> [level.count(4) for level in LEVELS]
        [15, 43, 97]
        """
        pairs = self.pair * (self.pair - 1) // 2
        value = 1 + self.main * inputs + pairs * (inputs * (inputs - 1) // 2)
        return value + (inputs * (inputs - 1) * (inputs - 2) // 6 if self.triple else 0)


LEVELS = (Level(2, 2, False), Level(5, 3, True), Level(8, 5, True))


def extra_columns(level: Level, known: list[np.ndarray], new: np.ndarray) -> np.ndarray:
    """Return what an input adds to a basis, (q, Q): its own terms, and those with known inputs.

    ``known`` and ``new`` are the polynomials of the inputs, (order, Q) each.
    """
    columns = [new[: level.main]]
    for other in known:
        for a in range(1, level.pair):
            columns.append(other[a - 1] * new[: level.pair - a])
    if level.triple:
        for one, two in combinations(known, 2):
            columns.append((one[0] * two[0] * new[0])[None, :])
    return np.concatenate(columns)
