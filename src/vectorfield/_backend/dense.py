"""Small dense factors and triangular solves, and writing into parts of a matrix."""

from __future__ import annotations

from typing import Any

import array_api_compat
import numpy as np
from scipy.linalg import blas, lapack

from vectorfield._backend.arrays import array_like, namespace

__all__ = [
    "add_entries",
    "cholesky",
    "solve_right",
    "solve_triangle",
    "write_diagonal",
    "write_lower",
]


def cholesky(a: Any) -> tuple[Any, int]:
    """Return the lower factor of a small matrix and 0, or something and the failing row (1-based).

    Only the lower triangle is read.
    """
    if isinstance(a, np.ndarray):
        (potrf,) = lapack.get_lapack_funcs(("potrf",), (a,))
        upper, info = potrf(a.T, lower=0, clean=1)  # the transpose of a row-major array is free
        return upper.T, int(info)
    if array_api_compat.is_torch_array(a):
        import torch

        lower, info = torch.linalg.cholesky_ex(a)
        return lower, int(info)
    lower = namespace(a).linalg.cholesky(a)  # CuPy marks failure by NaN
    return lower, 0 if bool(namespace(a).isfinite(lower[-1, -1])) else 1


def write_lower(target: Any, lower: Any) -> None:
    """Copy the lower triangle of ``lower`` into ``target``, whose strict upper part stays."""
    xp = namespace(target)
    target[...] = xp.triu(target, k=1) + xp.tril(lower)


def write_diagonal(target: Any, values: Any) -> None:
    """Overwrite the diagonal of a square matrix."""
    index = np.arange(target.shape[0])
    target[index, index] = values


def add_entries(target: Any, rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> None:
    """Add ``values`` to distinct entries of a matrix."""
    target[rows, columns] += namespace(target).astype(array_like(values, target), target.dtype)


def solve_right(lower: Any, panel: Any) -> Any:
    """Return panel L^-T for a lower triangular L; may overwrite ``panel`` (m, b)."""
    if isinstance(panel, np.ndarray):
        (trsm,) = blas.get_blas_funcs(("trsm",), (panel,))
        # L X^T = panel^T, on the column-major views of row-major arrays
        solved = trsm(1.0, lower.T, panel.T, side=0, lower=0, trans_a=1, overwrite_b=1)
        return solved.T
    return _solve_triangular(lower, panel.T, transpose=False).T


def solve_triangle(lower: Any, rhs: Any, transpose: bool = False) -> Any:
    """Return L^-1 rhs, or L^-T rhs with ``transpose``; only the lower triangle is read."""
    if isinstance(rhs, np.ndarray):
        (trsm,) = blas.get_blas_funcs(("trsm",), (rhs,))
        # x^T L^T = rhs^T, on the column-major views of row-major arrays
        return trsm(1.0, lower.T, rhs.T, side=1, lower=0, trans_a=1 if transpose else 0).T
    return _solve_triangular(lower, rhs, transpose)


def _solve_triangular(lower: Any, rhs: Any, transpose: bool) -> Any:
    if array_api_compat.is_torch_array(rhs):
        import torch

        a = torch.tril(lower)
        return torch.linalg.solve_triangular(a.T if transpose else a, rhs, upper=transpose)
    if array_api_compat.is_cupy_array(rhs):
        from cupyx.scipy.linalg import solve_triangular

        return solve_triangular(lower, rhs, lower=True, trans=1 if transpose else 0)
    raise TypeError(f"no triangular solve for arrays of type {type(rhs).__name__}")
