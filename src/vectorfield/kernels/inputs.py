"""Which coordinates each output looks at: sparse patterns as plain tuples."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["Inputs", "check_inputs", "distinct", "inputs_of", "matrix_of"]

Inputs = tuple[tuple[int, ...], ...]


def inputs_of(matrix: Any) -> Inputs:
    """Return the inputs of every output from a matrix whose entries that are not zero say which.

    ``matrix`` is (d, d), dense or SciPy sparse: output i looks at x_j where [i, j] is not zero.

    Example:
        >>> import numpy as np
        >>> from vectorfield.kernels.inputs import inputs_of
        >>> inputs_of(np.array([[1, 1], [0, 1]]))
        ((0, 1), (1,))
    """
    if sp.issparse(matrix):
        table = sp.csr_array(matrix)
        table.eliminate_zeros()
    else:
        dense = np.asarray(matrix)
        if dense.ndim != 2 or dense.dtype.kind not in "biuf":
            raise ValueError(
                f"structure must be a (d, d) matrix, boolean or of numbers, got shape {dense.shape}"
            )
        table = sp.csr_array(dense != 0)
    rows, columns = table.shape
    if rows != columns or rows == 0:
        raise ValueError(
            "structure must have a row for each output and a column for each coordinate, both d, "
            f"got shape {table.shape}"
        )
    table.sort_indices()
    ends = table.indptr
    return tuple(tuple(table.indices[ends[i] : ends[i + 1]].tolist()) for i in range(rows))


def matrix_of(inputs: Inputs) -> sp.csr_array:
    """Return the (d, d) boolean matrix.

    >>> from vectorfield.kernels.inputs import matrix_of
    >>> matrix_of(((0, 1), (1,))).toarray().astype(int)
    array([[1, 1],
           [0, 1]])
    """
    counts = [len(own) for own in inputs]
    columns = np.array([j for own in inputs for j in own], dtype=np.int64)
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    entries = np.ones(len(columns), dtype=bool)
    return sp.csr_array((entries, columns, ends), shape=(len(inputs), len(inputs)))


def check_inputs(inputs: Any) -> Inputs:
    """Return inputs as tuples of distinct indices in order, or say what is wrong with them."""
    if not isinstance(inputs, Iterable) or isinstance(inputs, (str, np.ndarray)):
        raise TypeError(
            "inputs must be a sequence with the indices that each output looks at, such as "
            f"[(0, 1), (1,)]; from a matrix: vectorfield.kernels.inputs_of(matrix); got "
            f"{type(inputs).__name__}"
        )
    given = [tuple(own) for own in inputs]
    d = len(given)
    if d == 0:
        raise ValueError("inputs must have an entry for each output, got none")
    checked = []
    for i, own in enumerate(given):
        for j in own:
            whole = isinstance(j, (int, np.integer)) and not isinstance(j, (bool, np.bool_))
            if not whole or not 0 <= j < d:
                raise ValueError(
                    f"inputs[{i}] must hold indices of the {d} coordinates, 0 to {d - 1}, got {j!r}"
                )
        if len(set(own)) != len(own):
            raise ValueError(f"inputs[{i}] names a coordinate twice: {own!r}")
        checked.append(tuple(sorted(int(j) for j in own)))
    return tuple(checked)


def distinct(inputs: Inputs) -> list[tuple[tuple[int, ...], np.ndarray]]:
    """Return every set of inputs that occurs, with the outputs that have it, in order.

    >>> from vectorfield.kernels.inputs import distinct
    >>> distinct(((0, 1), (1,), (0, 1)))
    [((0, 1), array([0, 2])), ((1,), array([1]))]
    """
    outputs: dict[tuple[int, ...], list[int]] = {}
    for i, own in enumerate(inputs):
        outputs.setdefault(own, []).append(i)
    return [(own, np.array(which)) for own, which in outputs.items()]
