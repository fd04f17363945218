"""Local polynomial interpolation on uneven grids: who the neighbours are, and their basis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from vectorfield._settings import check_integer
from vectorfield.occupation._layout import segments

__all__ = ["CHUNK", "Stencils", "check_even", "chunks", "gauss", "lagrange_basis", "stencils"]

# Segments handled at once: the work arrays of a chunk then stay in cache.
CHUNK = 8192


class Stencils(NamedTuple):
    """For each of M segments the samples that interpolate on it, all (M,).

    ``left`` is the left sample of the segment, ``owner`` its trajectory; the samples are
    ``first ... first + counts - 1``.
    """

    left: np.ndarray
    owner: np.ndarray
    first: np.ndarray
    counts: np.ndarray


def stencils(offsets: np.ndarray, samples: int) -> Stencils:
    """Return the ``samples`` (even) snapshots around each segment.

    They are centred on the segment, shifted inwards at the ends of a trajectory, and all of a
    trajectory that has fewer.

    >>> stencils(np.array([0, 6]), 4).first
    array([0, 0, 1, 2, 2])
    """
    left, owner = segments(offsets)
    lengths = np.diff(offsets)
    counts = np.minimum(lengths, samples)[owner]
    begin = offsets[:-1][owner]
    shift = np.clip(left - begin - (samples // 2 - 1), 0, lengths[owner] - counts)
    return Stencils(left, owner, begin + shift, counts)


def gauss(points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of the Gauss-Legendre rule on [0, 1], exact to 2 points - 1."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return 0.5 * (nodes + 1.0), 0.5 * weights


def chunks(n: int) -> Iterator[slice]:
    """Cut ``range(n)`` into slices of a size that stays in cache."""
    return (slice(start, min(start + CHUNK, n)) for start in range(0, n, CHUNK))


def lagrange_basis(times: np.ndarray, near: Stencils, at: np.ndarray, part: slice) -> np.ndarray:
    """Evaluate the Lagrange basis l_j of each segment's stencil inside that segment.

    l_j(t) = prod_{i != j} (t - t_i) / (t_j - t_i), in the local time (t - t_left) / h.

    Args:
        times: (P,) times of the samples.
        near: the stencils.
        at: (G,) places in the segment, from 0 (left end) to 1 (right end).
        part: which segments.

    Returns:
        (c, G, m) array, c the largest stencil of all segments; zero for j beyond the stencil.
    """
    left, first, counts = near.left[part], near.first[part], near.counts[part]
    origin = times[left]
    step = times[left + 1] - origin
    basis = np.zeros((near.counts.max(), len(at), len(left)))
    for size in np.unique(counts):
        rows = np.flatnonzero(counts == size)
        samples = times[first[rows] + np.arange(size)[:, None]]
        basis[:size, :, rows] = _basis((samples - origin[rows]) / step[rows], at)
    return basis


def _basis(nodes: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Lagrange basis on nodes (c, m) at the places (G,): (c, G, m), in O(c G m)."""
    size = len(nodes)
    gaps = at[:, None] - nodes[:, None, :]
    basis: np.ndarray = np.empty(gaps.shape)
    product = np.ones_like(gaps[0])
    for j in range(size):  # the factors before j ...
        basis[j] = product
        product = product * gaps[j]
    product = np.ones_like(gaps[0])
    for j in reversed(range(size)):  # ... and those after it
        basis[j] *= product
        product = product * gaps[j]
    between = nodes[:, None, :] - nodes[None, :, :]
    between[np.arange(size), np.arange(size)] = 1.0
    basis /= np.prod(between, axis=1)[:, None, :]
    return basis


def check_even(name: str, value: int) -> int:
    """Refuse a number of interpolating samples other than 2, 4, 6, 8.

    An odd number cannot be centred on a segment; beyond 8 the weights grow negative and large
    at the ends of a trajectory, as those of closed Newton-Cotes rules do.
    """
    number = check_integer(name, value, at_least=2)
    if number not in (2, 4, 6, 8):
        raise ValueError(f"{name} must be 2, 4, 6 or 8, got {value!r}")
    return number
