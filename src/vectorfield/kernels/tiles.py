"""Gram matrices in tiles: what a tile is, and sums over them in cache-sized blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vectorfield import _backend

__all__ = ["Tile", "contract", "evaluate", "row_blocks"]

TOGETHER = 2**22  # numbers of a matrix that is made to turn many small products into one

Tile = Callable[[slice, slice], Any]
"""``tile(rows, columns)`` returns that block of a Gram matrix in fresh memory."""


def row_blocks(n: int, size: int) -> list[slice]:
    """Cut 0 ... n into slices of at most ``size``.

    >>> row_blocks(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def contract(slope: Any, c: Any, v: Any, u: Any = None) -> Any:
    """Return sum_p slope[a, p] c[p, i] v[p, j], (n, k, d).

    With ``u`` (n, d) the last factor is u[a, j] - v[p, j]: where the slope has a pole at u = v,
    two sums whose difference is taken afterwards would lose its digits. Without it this is one
    product with the (p, k d) matrix of all c v where that is small.
    """
    xp = _backend.namespace(v)
    n, (m, k), d = slope.shape[0], c.shape, v.shape[1]
    if u is None and m * k * d <= TOGETHER:
        both = xp.reshape(c[:, :, None] * v[:, None, :], (m, k * d))
        return xp.reshape(slope @ both, (n, k, d))
    parts = [xp.matmul(c.T * slope[a, :], v if u is None else u[a, :] - v) for a in range(n)]
    if not parts:
        return xp.zeros((0, k, d), dtype=v.dtype, device=_backend.device(v))
    return xp.stack(parts)


def evaluate(at: Callable[[Any], Tile], x: Any, c: Any) -> Any:
    """Return sum_p k(x_a, y_p) c[p, :] for a bound kernel, in cache-sized blocks on all cores.

    ``x`` is (n, d), ``c`` (m, k); the result (n, k). Cost O(n m (d + k)), memory a few blocks.
    """
    n, m = x.shape[0], c.shape[0]
    xp = _backend.namespace(x)
    elements, widest = (2**16, 1024) if _backend.is_numpy(x) else (2**27, 2**14)
    rows = max(1, min(n, elements // max(1, min(m, widest))))
    columns = elements // rows
    tile = at(x)

    def block(chosen: slice) -> Any:
        total = None
        for part in row_blocks(m, columns):
            value = tile(chosen, part) @ c[part, :]
            total = value if total is None else total + value
        return total

    blocks = row_blocks(n, rows) or [slice(0, 0)]
    if _backend.is_numpy(x) and n * m >= 2**17:
        values = _backend.run_parallel(block, blocks)
    else:
        values = [block(chosen) for chosen in blocks]
    return values[0] if len(values) == 1 else xp.concat(values, axis=0)
