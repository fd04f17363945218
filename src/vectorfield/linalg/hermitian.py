"""A family of Hermitian systems, real or complex, factored in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import blas, lapack

from vectorfield import _backend

__all__ = ["Hermitian"]

CORNER = 512


class Hermitian:
    """M + shift Sigma with M Hermitian, and its factor, in one array.

    As in `DenseSystem`: the strict upper triangle and a copy of the diagonal keep M, the lower
    triangle is the workspace of the factor. LAPACK takes the transpose of a row-major array, which
    is the conjugate of M: right sides and solutions here are those of the conjugate system,
    conj(M + shift Sigma) x = b. The factor is NumPy's, which releases the interpreter lock where
    SciPy's does not: several systems can be factored side by side.

    Args:
        matrix: M, (S, S), real or complex, of which the upper triangle is read; taken over.
        covariance: Sigma, (S, S) sparse and real.

    Example:
        >>> import numpy as np, scipy.sparse as sp
        >>> system = Hermitian(np.array([[2.0, 1j], [-1j, 2.0]]), sp.csr_array(np.eye(2)))
        >>> system.factor(1.0)
        0
        >>> np.abs(system.apply(np.array([3.0, 1j]))).round(6)
        array([1., 0.])
    """

    def __init__(self, matrix: np.ndarray, covariance: sp.csr_array) -> None:
        self._a = matrix
        self.is_complex = np.iscomplexobj(matrix)
        self._diagonal = matrix.diagonal().real.copy()
        self._covariance = covariance
        below = sp.coo_array(sp.tril(covariance, k=-1))
        self._below = (*below.coords, below.data)
        self._potrf, self._potrs = lapack.get_lapack_funcs(("potrf", "potrs"), (matrix,))
        self._multiply = blas.zhemv if self.is_complex else blas.dsymv
        self.shift = 0.0

    def factor(self, shift: float) -> int:
        """Factor; 0, or the 1-based row where it stopped. Cost S^3 / 3, complex 4 times that."""
        self._restore()
        self.shift = shift
        rows, columns, values = self._below
        self._a[rows, columns] += shift * values
        np.fill_diagonal(self._a, self._diagonal + shift * self._covariance.diagonal())
        try:
            self._write_lower(np.linalg.cholesky(self._a))
        except np.linalg.LinAlgError:  # it does not say where; this does
            return int(self._potrf(self._a.T, lower=0, clean=0, overwrite_a=1)[1])
        return 0

    def _restore(self) -> None:
        """Copy the upper triangle over the lower one, where an older factor may lie."""
        n = len(self._a)
        for start in range(0, n, CORNER):
            stop = min(start + CORNER, n)
            self._a[stop:, start:stop] = self._a[start:stop, stop:].conj().T
            corner = self._a[start:stop, start:stop]
            _backend.write_lower(corner, corner.conj().T)

    def _write_lower(self, lower: np.ndarray) -> None:
        n = len(self._a)
        for start in range(0, n, CORNER):
            stop = min(start + CORNER, n)
            self._a[start:stop, :start] = lower[start:stop, :start]
            _backend.write_lower(self._a[start:stop, start:stop], lower[start:stop, start:stop])

    def apply(self, rhs: np.ndarray) -> np.ndarray:
        """Return the solution by the factor. Cost 2 S^2, 4 times complex."""
        value, _ = self._potrs(self._a.T, rhs, lower=0)
        return np.asarray(value).reshape(-1)

    def product(self, x: np.ndarray) -> np.ndarray:
        """Return conj(M) x."""
        factors = self._a.diagonal().copy()  # about the roots of M's, and not of its order
        np.fill_diagonal(self._a, self._diagonal)
        value = self._multiply(1.0, self._a.T, x, lower=1)
        np.fill_diagonal(self._a, factors)
        return np.asarray(value)

    def residual(self, x: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        """Return rhs - conj(M + shift Sigma) x."""
        return np.asarray(rhs - self.product(x) - self.shift * (self._covariance @ x))

    def largest_noise(self) -> float:
        """Bound the largest eigenvalue of Sigma by its largest absolute row sum."""
        return float(abs(self._covariance).sum(axis=1).max())

    def largest_eigenvalue(self, steps: int = 8) -> float:
        """Estimate that of M by power iteration, from below."""
        return self._iterate(self.product, steps)

    def largest_of_inverse(self, steps: int = 4) -> float:
        """Estimate that of (M + shift Sigma)^-1 by inverse iteration, from below."""
        return self._iterate(self.apply, steps)

    def _iterate(self, operator: Any, steps: int) -> float:
        x = np.random.default_rng(0).normal(size=len(self._a)).astype(self._a.dtype)
        value = float(np.linalg.norm(x))
        for _ in range(steps):
            if value == 0.0:
                return 0.0
            x = operator(x / value)
            value = float(np.linalg.norm(x))
        return value
