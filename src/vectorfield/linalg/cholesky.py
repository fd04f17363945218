"""A blocked Cholesky factorisation that lives on matrix products.

Left-looking: each block column is updated by one product with all columns before it, then
solved against its small diagonal factor. On CPUs where matrix products run faster than the
library's Cholesky this wins, and it works in place on the lower triangle of a row-major
array, leaving the upper triangle as it was.
"""

from __future__ import annotations

from typing import Any

from vectorfield import _backend
from vectorfield._progress import report

__all__ = ["factor_lower", "solve_lower", "symmetric_product"]

BLOCK = 512


def factor_lower(a: Any, block: int = BLOCK) -> int:
    """Overwrite the lower triangle of ``a`` (n, n) by L with L L^T = A.

    Only the lower triangle is read and written. Returns 0, or the 1-based row at which the
    matrix was found not to be positive definite. Cost n^3 / 3, memory n * block.
    """
    with _backend.one_blas():
        return _factor(a, block)


def _factor(a: Any, block: int) -> int:
    n = a.shape[0]
    for start in range(0, n, block):
        stop = min(start + block, n)
        done = a[start:stop, :start]
        corner = a[start:stop, start:stop] - done @ done.T
        lower, info = _backend.cholesky(corner)
        if info:
            return start + info
        _backend.write_lower(a[start:stop, start:stop], lower)
        if stop < n:
            panel = a[stop:, :start] @ done.T
            panel *= -1.0
            panel += a[stop:, start:stop]
            a[stop:, start:stop] = _backend.solve_right(lower, panel)
        part = stop / n
        report("factor", part * part * (3.0 - 2.0 * part))  # of the operations
    return 0


def solve_lower(a: Any, rhs: Any, block: int = BLOCK) -> Any:
    """Return (L L^T)^-1 rhs for the factor in the lower triangle of ``a``. Cost 2 n^2 k."""
    with _backend.one_blas():
        return _solve(a, rhs, block)


def _solve(a: Any, rhs: Any, block: int) -> Any:
    x = _backend.namespace(rhs).astype(rhs, a.dtype, copy=True)
    n = a.shape[0]
    starts = range(0, n, block)
    for start in starts:
        stop = min(start + block, n)
        x[start:stop, :] -= a[start:stop, :start] @ x[:start, :]
        corner = a[start:stop, start:stop]
        x[start:stop, :] = _backend.solve_triangle(corner, x[start:stop, :])
    for start in reversed(starts):
        stop = min(start + block, n)
        x[start:stop, :] -= a[stop:, start:stop].T @ x[stop:, :]
        corner = a[start:stop, start:stop]
        x[start:stop, :] = _backend.solve_triangle(corner, x[start:stop, :], transpose=True)
    return x


def symmetric_product(a: Any, diagonal: Any, x: Any, block: int = 2 * BLOCK) -> Any:
    """Return A x for the symmetric A of strict upper triangle ``a`` and the given diagonal.

    Cost 2 n^2 k; the lower triangle, where a factor may lie, is not read.
    """
    xp = _backend.namespace(x)
    n = a.shape[0]
    result = diagonal[:, None] * x
    for start in range(0, n, block):
        stop = min(start + block, n)
        corner = xp.triu(a[start:stop, start:stop], k=1)
        result[start:stop, :] += (corner + corner.T) @ x[start:stop, :]
        if stop < n:
            strip = a[start:stop, stop:]
            result[start:stop, :] += strip @ x[stop:, :]
            result[stop:, :] += strip.T @ x[start:stop, :]
    return result
