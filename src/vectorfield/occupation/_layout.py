"""Index arithmetic over ragged trajectories: segments, windows and banded sparse rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

__all__ = ["Segments", "Spans", "banded", "segments", "windows"]


class Segments(NamedTuple):
    """The steps [t_k, t_{k+1}]: their left samples k and their trajectories, both (M,)."""

    left: np.ndarray
    owner: np.ndarray


class Spans(NamedTuple):
    """Runs of samples first ... first + counts - 1 and their trajectories, all (S,)."""

    first: np.ndarray
    counts: np.ndarray
    owner: np.ndarray


def segments(offsets: np.ndarray) -> Segments:
    """Return the M = P - n steps between successive samples of n trajectories.

    >>> segments(np.array([0, 3, 5])).left
    array([0, 1, 3])
    """
    lengths = np.diff(offsets)
    owner = np.repeat(np.arange(len(lengths)), lengths - 1)
    # Every earlier trajectory has one sample more than it has steps.
    return Segments(np.arange(len(owner)) + owner, owner)


def windows(offsets: np.ndarray, samples: int, stride: int) -> Spans:
    """Return windows of ``samples`` samples, every ``stride`` samples, inside trajectories.

    A shorter trajectory is one window. Where the stride does not meet the end, one more window
    ends there, so that every sample lies in a window if stride < samples.

    >>> windows(np.array([0, 6, 8]), samples=3, stride=2)
    Spans(first=array([0, 2, 3, 6]), counts=array([3, 3, 3, 2]), owner=array([0, 0, 0, 1]))
    """
    lengths = np.diff(offsets)
    sizes = np.minimum(lengths, samples)
    slack = lengths - sizes
    repeats = -(-slack // stride) + 1
    owner = np.repeat(np.arange(len(lengths)), repeats)
    rank = np.arange(len(owner)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    first = offsets[owner] + np.minimum(rank * stride, slack[owner])
    return Spans(first, sizes[owner], owner)


def banded(
    first: np.ndarray, counts: np.ndarray, values: np.ndarray, n_columns: int
) -> sp.csr_array:
    """Return the sparse rows that hold values[:counts[s], s] from column first[s] on.

    Args:
        first: (S,) first column of each row.
        counts: (S,) entries of each row, at most B.
        values: (B, S); entries beyond the count are ignored.
        n_columns: columns of the matrix.

    >>> banded(np.array([0, 1]), np.array([2, 1]), np.array([[1., 2.], [3., 0.]]), 2).toarray()
    array([[1., 3.],
           [0., 2.]])
    """
    reach = np.arange(len(values))
    columns, entries = first[:, None] + reach, values.T
    if counts.min() < len(values):
        inside = reach < counts[:, None]
        columns, entries = columns[inside], entries[inside]
    pointers = np.concatenate([[0], np.cumsum(counts)])
    return sp.csr_array((entries.ravel(), columns.ravel(), pointers), shape=(len(first), n_columns))
