"""Bases on a few inputs, in three levels: quadratic, cubic, and of higher order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = [
    "DECAY",
    "LEVELS",
    "Level",
    "extra_columns",
    "extra_weights",
    "pair_columns",
    "pair_orders",
]

DECAY = 0.5  # of a function's weight with each order: a ridge holds the higher ones down more


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


def extra_columns(
    level: Level, partners: list[np.ndarray], joined: list[tuple[int, int]], new: np.ndarray
) -> np.ndarray:
    """Return what an input adds to a basis, (q, Q): its own terms, and those with its partners.

    ``partners`` and ``new`` are the polynomials of the inputs, (order, Q) each; ``joined`` the
    pairs of partners that are partners of each other, of which there are triple products.
    """
    columns = [new[: level.main]] + [pair_columns(level, other, new) for other in partners]
    if level.triple:
        for one, two in joined:
            columns.append((partners[one][0] * partners[two][0] * new[0])[None, :])
    return np.concatenate(columns)


def extra_weights(level: Level, partners: int, joined: int) -> np.ndarray:
    """Return the weights of what `extra_columns` adds, DECAY^(order - 1)."""
    orders = list(range(1, level.main + 1))
    orders += pair_orders(level) * partners
    if level.triple:
        orders += [3] * joined
    weights: np.ndarray = DECAY ** (np.array(orders) - 1.0)
    return weights


def pair_columns(level: Level, one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Return the products p_a(x_j) p_b(x_k), (q, Q)."""
    return np.concatenate([one[a - 1] * two[: level.pair - a] for a in range(1, level.pair)])


def pair_orders(level: Level) -> list[int]:
    """Return a + b of each of them."""
    return [a + b for a in range(1, level.pair) for b in range(1, level.pair - a + 1)]
