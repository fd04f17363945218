"""What keeps the law of a field under standardisation, and how coordinates are paired.

A fit happens in coordinates u = (x - shift) / scale, f(x) = scale g(u). Where g = -grad v and
the scale is one number s, f = -grad V with V = s^2 v. Where g = J grad h and the two scales of
every pair have the same product c, f = J grad H with H = c h.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from vectorfield import _backend
from vectorfield._settings import check_integer

__all__ = [
    "Pairs",
    "check_pairs",
    "paired_scale",
    "paired_unit",
    "resolve_pairs",
    "symplectic_matrix",
    "uniform_scale",
    "uniform_unit",
]

Pairs = Sequence[Sequence[int]] | None


def check_pairs(pairs: Any) -> tuple[tuple[int, int], ...] | None:
    """Return pairs (position, momentum) of coordinates as tuples, or None for the default."""
    if pairs is None:
        return None
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise TypeError(f"pairs must be pairs of coordinates such as ((0, 1),), got {pairs!r}")
    checked = []
    for pair in pairs:
        members = tuple(pair) if isinstance(pair, Iterable) else ()
        if len(members) != 2:
            raise ValueError(f"each of pairs must be a (position, momentum), got {pair!r}")
        checked.append(
            (
                check_integer("a coordinate in pairs", members[0], at_least=0),
                check_integer("a coordinate in pairs", members[1], at_least=0),
            )
        )
    flat = sorted(j for pair in checked for j in pair)
    if flat != list(range(len(flat))):
        raise ValueError(
            f"pairs must hold every coordinate 0 ... d - 1 once, got {tuple(checked)!r}"
        )
    return tuple(checked)


def resolve_pairs(pairs: Pairs, d: int) -> tuple[tuple[int, int], ...]:
    """Return the pairs for d coordinates; by default (i, i + d/2).

    >>> resolve_pairs(None, 4)
    ((0, 2), (1, 3))
    """
    if d % 2:
        raise ValueError(
            f"a Hamiltonian field has an even number of coordinates, got {d}: give the states "
            "every position and its momentum, or take another kernel"
        )
    if pairs is None:
        return tuple((i, i + d // 2) for i in range(d // 2))
    if 2 * len(pairs) != d:
        raise ValueError(
            f"pairs name {2 * len(pairs)} coordinates but the states have {d} features; give "
            f"{d // 2} pairs, or leave pairs out for the first and the second half"
        )
    return tuple((q, p) for q, p in pairs)


def symplectic_matrix(pairs: Pairs, d: int) -> np.ndarray:
    """Return J, (d, d): dq/dt = dH/dp and dp/dt = -dH/dq for every pair (q, p).

    >>> symplectic_matrix(None, 2)
    array([[ 0.,  1.],
           [-1.,  0.]])
    """
    matrix = np.zeros((d, d))
    for q, p in resolve_pairs(pairs, d):
        matrix[q, p], matrix[p, q] = 1.0, -1.0
    return matrix


def uniform_scale(scale: Any) -> Any:
    """Return one scale for all coordinates, the root mean square of the given ones (d,)."""
    xp = _backend.namespace(scale)
    return xp.sqrt(xp.mean(scale * scale)) * xp.ones_like(scale)


def uniform_unit(scale: Any) -> float:
    """Return V / v = s^2; see the module."""
    return float(scale[0]) ** 2


def paired_scale(scale: Any, pairs: Pairs) -> Any:
    """Return scales (d,) whose products over pairs are equal, each pair changed by one factor.

    The common product is the geometric mean of the given products. One pair is left as it is.
    """
    values = np.array(_backend.to_numpy(scale), dtype=np.float64)
    resolved = resolve_pairs(pairs, len(values))
    products = np.array([values[q] * values[p] for q, p in resolved])
    common = np.exp(np.mean(np.log(products)))
    for (q, p), product in zip(resolved, products, strict=True):
        values[[q, p]] *= np.sqrt(common / product)
    return _backend.array_like(values, scale)


def paired_unit(scale: Any, pairs: Pairs) -> float:
    """Return H / h = c; see the module."""
    q, p = resolve_pairs(pairs, int(scale.shape[0]))[0]
    return float(scale[q]) * float(scale[p])
