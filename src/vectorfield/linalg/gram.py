"""Assembly of the Gram matrix of the observations, M = W G W^T, in cache-sized tiles.

G, the kernel on all pairs of nodes, is never held: a tile of it is made, W is applied to both
of its sides while it is in the cache, and the result goes to its two places in M.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from vectorfield import _backend
from vectorfield._progress import report
from vectorfield.kernels.base import ScalarKernel
from vectorfield.kernels.tiles import Tile, row_blocks

__all__ = ["Assembly", "Strip", "assemble", "node_strips", "touched"]

TILE = 384  # nodes a side: G's tile, its halves and the workspace stay within a core's L2 cache


@dataclass(frozen=True, eq=False)
class Assembly:
    """M (S, S) with both triangles filled, and the seconds spent on kernel and quadrature."""

    matrix: Any
    seconds: dict[str, float]

    @classmethod
    def shared(cls, matrix: Any, wall: float, times: Any) -> Assembly:
        """Split the wall time as the threads' own times (n, 2), kernel and quadrature, were."""
        kernel_time, quadrature_time = np.asarray(times).sum(axis=0)
        total = max(kernel_time + quadrature_time, 1e-12)
        seconds = {
            "gram": wall * kernel_time / total,
            "quadrature": wall * quadrature_time / total,
        }
        return cls(matrix, seconds)


@dataclass(frozen=True)
class Strip:
    """Some consecutive observations, the nodes that they touch, and W between the two."""

    rows: slice
    nodes: slice
    weights: sp.csr_array


def assemble(kernel: ScalarKernel, nodes: Any, weights: sp.csr_array) -> Assembly:
    """Return M = W G W^T with G_pq = k(z_p, z_q).

    ``nodes`` is (Q, d), ``weights`` W (S, Q). Cost O(Q^2 (d + c)) with c the price of the
    profile, half of it thanks to symmetry; memory S^2 and a few tiles for each core.
    """
    tile = kernel.bind(nodes)(nodes)
    if _backend.is_numpy(nodes):
        return _assemble_tiles(tile, weights)
    return _assemble_panels(tile, nodes, weights)


def touched(weights: sp.csr_array) -> slice:
    """Return the nodes from the first to the last that some row has; one where none has any."""
    low = int(weights.indices.min(initial=weights.shape[1] - 1))
    high = int(weights.indices.max(initial=0)) + 1
    return slice(low, max(high, low + 1))


def node_strips(weights: sp.csr_array, size: int) -> list[Strip]:
    """Cut the observations, in order, so that a strip touches about ``size`` nodes."""
    count, nodes = weights.shape
    rows_each = max(1, min(count, int(size * count / max(nodes, 1)) or 1))
    strips = []
    for rows in row_blocks(count, rows_each):
        part = weights[rows, :]
        chosen = touched(part)
        strips.append(Strip(rows, chosen, sp.csr_array(part[:, chosen])))
    return strips


def _assemble_tiles(tile: Tile, weights: sp.csr_array) -> Assembly:
    count = weights.shape[0]
    _backend.check_memory(count**2, f"the exact fit of {count:,} observations")
    matrix = np.empty((count, count))
    strips = node_strips(weights, TILE)
    finished: list[int] = []  # tiles of the strips that are done; appending is safe in threads
    total = len(strips) * (len(strips) + 1) // 2

    def work(index: int) -> tuple[float, float]:
        kernel_time = quadrature_time = 0.0
        left = strips[index]
        for right in strips[index:]:
            start = perf_counter()
            block = tile(left.nodes, right.nodes)
            middle = perf_counter()
            half = np.ascontiguousarray((left.weights @ block).T)
            transposed = right.weights @ half
            matrix[right.rows, left.rows] = transposed
            matrix[left.rows, right.rows] = transposed.T
            kernel_time += middle - start
            quadrature_time += perf_counter() - middle
        finished.append(len(strips) - index)
        report("Gram matrix", sum(finished) / total)
        return kernel_time, quadrature_time

    start = perf_counter()
    times = _backend.run_parallel(work, range(len(strips)))
    return Assembly.shared(matrix, perf_counter() - start, times)


def _assemble_panels(tile: Tile, nodes: Any, weights: sp.csr_array) -> Assembly:
    """Whole rows of M at a time: the form for accelerators, whose blocks should be large."""
    xp = _backend.namespace(nodes)
    count, q = weights.shape
    matrix = xp.empty((count, count), dtype=nodes.dtype, device=_backend.device(nodes))
    kernel_time = quadrature_time = 0.0
    for rows in row_blocks(count, 4096):
        start = perf_counter()
        part = sp.csr_array(weights[rows, :])
        low, high = int(part.indices.min(initial=0)), int(part.indices.max(initial=0)) + 1
        block = tile(slice(low, high), slice(0, q))
        middle = perf_counter()
        half = _backend.sparse_apply(sp.csr_array(part[:, low:high]), block)
        matrix[rows, :] = _backend.sparse_apply(weights, half.T).T
        kernel_time += middle - start
        quadrature_time += perf_counter() - middle
        report("Gram matrix", rows.stop / count)
    return Assembly(matrix, {"gram": kernel_time, "quadrature": quadrature_time})
