"""The Gram matrix of the observations as an operator: products without the matrix."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from vectorfield import _backend
from vectorfield.kernels.operators import ImplicitKernel
from vectorfield.kernels.tiles import row_blocks
from vectorfield.linalg.gram import touched

__all__ = ["Gramian"]

TILE = 512


class Gramian:
    """M = (W kron I) G (W kron I)^T for an operator-valued kernel, applied and never formed.

    Args:
        kernel: K, nothing left open.
        nodes: (Q, d).
        weights: W, (S, Q) sparse.
        covariance: Sigma, (S, S) sparse.

    Example:
        >>> import numpy as np, scipy.sparse as sp, vectorfield as vf
        >>> kernel = vf.kernels.CurlFree(vf.kernels.Gaussian(1.0))
        >>> one = sp.csr_array(np.ones((1, 1)))
        >>> gramian = vf.linalg.Gramian(kernel, np.zeros((1, 2)), one, one)
        >>> gramian.product(np.array([[1.0, 2.0]]))  # K(z, z) is the identity here
        array([[1., 2.]])
    """

    def __init__(
        self, kernel: ImplicitKernel, nodes: Any, weights: sp.csr_array, covariance: sp.csr_array
    ) -> None:
        self.kernel, self.nodes = kernel, nodes
        self.weights, self.covariance = weights, covariance
        self._gather = sp.csr_array(weights.T)
        self._bound = kernel.blocks(nodes)
        self._pairs = self._bound(nodes)

    def __len__(self) -> int:
        return int(self.weights.shape[0])

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return int(self.nodes.shape[1])

    def product(self, a: Any, shift: float = 0.0) -> Any:
        """Return M a + shift Sigma a, (S, d) -> (S, d).

        Every pair of nodes is visited once, in tiles, on all cores. Cost O(Q^2 d), memory a few
        tiles and Q d numbers for each core.
        """
        spread = _backend.sparse_apply(self._gather, a)
        value = _backend.sparse_apply(self.weights, self._nodes_product(spread))
        if shift:
            value += shift * _backend.sparse_apply(self.covariance, a)
        return value

    def corner(self, rows: slice) -> Any:
        """Return the block of M of some consecutive observations, (r d, r d).

        Ordered by observation, then coordinate. Cost O(r^2 d^2).
        """
        weights = self.weights[rows, :]
        nodes = touched(weights)
        tile = self._pairs.tile(nodes, nodes)
        part = sp.csr_array(weights[:, nodes])
        xp = _backend.namespace(tile)
        d, q = self.d, part.shape[1]
        half = _backend.sparse_apply(part, _rows_first(tile, d, q))  # (r, b a q)
        count = part.shape[0]
        half = xp.permute_dims(xp.reshape(half, (count, d, d, q)), (3, 0, 1, 2))
        both = _backend.sparse_apply(part, xp.reshape(half, (q, -1)))  # (r', r b a)
        both = xp.reshape(both, (count, count, d, d))
        return xp.reshape(xp.permute_dims(both, (0, 2, 1, 3)), (count * d, count * d))

    def columns(self, centres: Any) -> Any:
        """Return (W kron I) K(nodes, centres), (S d, m d), by observation, then coordinate.

        Cost O(Q m d^2).
        """
        xp = _backend.namespace(self.nodes)
        d, m = self.d, centres.shape[0]
        tiles = self.kernel.blocks(centres)(self.nodes)
        value = xp.empty((len(self), d, m, d), dtype=centres.dtype, device=_backend.device(centres))

        def work(rows: slice) -> None:
            part = self.weights[rows, :]
            nodes = touched(part)
            part = sp.csr_array(part[:, nodes])
            for columns in row_blocks(m, TILE):
                tile = tiles.tile(nodes, columns)  # (a, b, q, m)
                width = columns.stop - columns.start
                flat = xp.reshape(xp.permute_dims(tile, (2, 0, 3, 1)), (part.shape[1], -1))
                summed = _backend.sparse_apply(part, flat)
                value[rows, :, columns, :] = xp.reshape(summed, (part.shape[0], d, width, d))

        rows = row_blocks(len(self), 256)
        if _backend.is_numpy(self.nodes):
            _backend.run_parallel(work, rows)
        else:
            for part in rows:
                work(part)
        return xp.reshape(value, (len(self) * d, m * d))

    def _nodes_product(self, c: Any) -> Any:
        """Return G c, (Q, d) -> (Q, d)."""
        xp = _backend.namespace(c)
        parallel = _backend.is_numpy(c)
        strips = row_blocks(c.shape[0], TILE if parallel else 4096)

        def work(index: int) -> Any:
            total = xp.zeros_like(c)
            rows = strips[index]
            total[rows, :] = self._pairs.product(rows, rows, c[rows, :])
            for columns in strips[index + 1 :]:
                forward, back = self._pairs.products(rows, columns, c[columns, :], c[rows, :])
                total[rows, :] += forward
                total[columns, :] += back
            return total

        if parallel:
            parts = _backend.run_parallel(work, range(len(strips)))
        else:
            parts = [work(index) for index in range(len(strips))]
        total = parts[0]
        for part in parts[1:]:
            total += part
        return total


def _rows_first(tile: Any, d: int, q: int) -> Any:
    """Return K(z_i, z_j)[a, b] as (i, b a j)."""
    xp = _backend.namespace(tile)
    return xp.reshape(xp.permute_dims(tile, (2, 1, 0, 3)), (q, d * d * q))
