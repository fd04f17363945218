"""Whitening by a banded noise covariance: Sigma = L L^T, applied a block of rows at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cholesky_banded

from vectorfield import _backend
from vectorfield._errors import DataError

__all__ = ["Whitener"]

BLOCK = 128  # rows a triangular solve: all but the corner of a banded L is then a matrix product


class Whitener:
    """L^-1 and L^-T for a banded, positive definite Sigma = L L^T.

    Rows may come in pieces, since row s of L^-1 x needs the ``reach`` rows before it only. Cost
    of the factor S reach^2, of a solve some 128 S k operations for k columns, at the rate of
    matrix products; nothing at all where Sigma is the identity.

    Args:
        covariance: Sigma, (S, S) sparse.

    Raises:
        DataError: Sigma is not positive definite (see `vectorfield.occupation.SnapshotNoise`).

    Example:
        >>> import numpy as np, scipy.sparse as sp
        >>> white = Whitener(sp.csr_array([[2.0, -1.0], [-1.0, 2.0]]))
        >>> half = white.forward(np.eye(2))
        >>> (half.T @ half).round(3)  # the inverse of Sigma
        array([[0.667, 0.333],
               [0.333, 0.667]])
    """

    def __init__(self, covariance: sp.csr_array) -> None:
        entries = sp.coo_array(covariance)
        below = entries.coords[0] - entries.coords[1]
        self.size = int(covariance.shape[0])
        self.reach = int(below.max(initial=0))
        self.is_identity = self.reach == 0 and bool((covariance.diagonal() == 1.0).all())
        bands = np.zeros((self.reach + 1, self.size))
        kept = below >= 0
        bands[below[kept], entries.coords[1][kept]] = entries.data[kept]
        try:
            self._bands = cholesky_banded(bands, lower=True, check_finite=False)
        except LinAlgError as error:
            raise DataError(
                "the covariance of the observations is singular to working precision, so that "
                "they cannot be whitened one by one: use a larger stride in the rule, White() "
                "noise, or an implicit kernel with Dense() or BlockJacobi()"
            ) from error

    @property
    def log_determinant(self) -> float:
        """log det Sigma."""
        return 2.0 * float(np.log(self._bands[0]).sum())

    def forward(self, x: Any, start: int = 0, before: Any = None) -> Any:
        """Return rows ``start`` and on of L^-1 x.

        ``x`` is (rows, k); ``before`` the last ``reach`` whitened rows before ``start``, None
        where there are none.
        """
        if self.is_identity:
            return x
        value = _backend.namespace(x).empty_like(x)
        for begin in range(0, x.shape[0], BLOCK):
            end = min(begin + BLOCK, x.shape[0])
            part = x[begin:end, :]
            tail = value[max(0, begin - self.reach) : begin, :]
            if begin < self.reach and before is not None:
                tail = _backend.namespace(x).concat([before, tail], axis=0)[-self.reach :, :]
            if self.reach and tail.shape[0]:
                part = part - self._corner(start + begin, end - begin, tail.shape[0], x) @ tail
            value[begin:end, :] = _backend.solve_triangle(
                self._corner(start + begin, end - begin, 0, x), part
            )
        return value

    def backward(self, x: Any) -> Any:
        """Return L^-T x, (S, k)."""
        if self.is_identity:
            return x
        value = _backend.namespace(x).empty_like(x)
        for begin in reversed(range(0, self.size, BLOCK)):
            end = min(begin + BLOCK, self.size)
            part = x[begin:end, :]
            later = value[end : end + self.reach, :]
            if later.shape[0]:
                # rows below, columns of this block: as the corner of the block that follows
                width = min(self.reach, end - begin)
                link = self._corner(end, later.shape[0], width, x)
                part = _backend.namespace(x).asarray(part, copy=True)
                part[end - begin - width :, :] -= link.T @ later
            value[begin:end, :] = _backend.solve_triangle(
                self._corner(begin, end - begin, 0, x), part, transpose=True
            )
        return value

    def _corner(self, start: int, rows: int, before: int, like: Any) -> Any:
        """Return L[start : start + rows, start - before : start], the diagonal block for 0."""
        first, width = (start, rows) if before == 0 else (start - before, before)
        columns = np.arange(first, first + width)
        below = np.arange(start, start + rows)[:, None] - columns
        inside = (below >= 0) & (below <= self.reach)
        dense = np.where(inside, self._bands[np.clip(below, 0, self.reach), columns], 0.0)
        return _backend.array_like(dense, like)
