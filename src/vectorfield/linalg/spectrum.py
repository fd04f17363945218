"""The whitened Gram matrix of the observations by its eigenvalues, which serve every ridge.

With Sigma = L L^T, M_w = L^-1 M L^-T = U diag(s) U^T and white targets y_w = L^-1 y, the matrix of
every ridge is L U diag(s + shift) U^T L^T, shift = ridge N. What is made of it for one more ridge
needs products with U alone: the density of y under a Gaussian process, and the residuals of
observations that are predicted from all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, singledispatch

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, eigh, solve, svd

from vectorfield import _backend
from vectorfield._errors import DataError
from vectorfield.kernels.features import ExplicitKernel
from vectorfield.kernels.operators import ImplicitKernel, OperatorKernel
from vectorfield.kernels.separable import Separable
from vectorfield.linalg.block import assemble_blocks, by_coordinate, by_observation
from vectorfield.linalg.gram import assemble
from vectorfield.linalg.whitening import Whitener
from vectorfield.occupation import Occupations

__all__ = ["Spectrum", "spectrum"]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """U, s and the whitened targets; from `spectrum`.

    Attributes:
        vectors: U, (n, r) with orthonormal columns; n = S, or S d where the outputs are coupled.
        values: s >= 0, (r,); M_w has no others but zeros.
        white: y_w, (n, k): a column for each output, or one where they are coupled.
        gains: (k,) by which s counts in each column: the eigenvalues of A for k A, else 1.
        owner: (n,) trajectory of each row.
        count: N = S in shift = ridge N.
        noise_determinant: log det of the covariance of all n k targets, 0 for white noise.
        covariance: Sigma, (S, S) sparse.
        rotation: (d, d) basis of the outputs in which the columns of ``white`` are, None where it
            is their own.
        coupled: whether rows are those of all outputs, one output after the other.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 3.0, 40)
        >>> data = vf.Trajectories.from_arrays([np.exp(-t)[:, None], 2 * np.exp(-t)[:, None]], t)
        >>> fit = vf.Plan(vf.kernels.Gaussian(1.0)).prepare(data)
        >>> found = vf.linalg.spectrum(fit.kernel, fit.occupations, covariance=fit.covariance)
        >>> likely = [found.log_likelihood(ridge) for ridge in (1e-2, 1e-4, 1e-6)]
        >>> bool(likely[0] < likely[1] < likely[2])
        True
        >>> errors = found.left_out(1e-6)  # of each trajectory by the other
        >>> [round(float(np.sum(e**2) ** 0.5), 3) for e in errors]
        [0.005, 0.492]
    """

    vectors: np.ndarray
    values: np.ndarray
    white: np.ndarray
    gains: np.ndarray
    owner: np.ndarray
    count: int
    noise_determinant: float
    covariance: sp.csr_array
    rotation: np.ndarray | None = None
    coupled: bool = False

    def resolves(self, ridge: float) -> bool:
        """Whether the ridge is above what rounding adds to M_w; below, results mean nothing."""
        top = float(self.values.max(initial=0.0)) * float(self.gains.max())
        return ridge * self.count > float(np.finfo(float).eps) * top

    def log_likelihood(self, ridge: float) -> float:
        """Return log p(y) of the Gaussian process that the fit is the mean of.

        y ~ N(0, tau^2 (Sigma kron I + M / shift)) in all n k targets, tau^2 = y^T (Sigma + M /
        shift)^-1 y / (n k), which makes it largest. Cost O(r k).
        """
        shift, size = ridge * self.count, self.white.size
        power = self.values[:, None] * self.gains / shift  # signal over noise, (r, k)
        squares = self._projected**2
        variance = (self._outside + float((squares / (1.0 + power)).sum())) / size
        if variance == 0.0:
            return float("inf")
        spread = self.noise_determinant + float(np.log1p(power).sum())
        return -0.5 * (size * (float(np.log(2.0 * np.pi * variance)) + 1.0) + spread)

    def left_out(self, ridge: float, *, white: bool = True) -> list[np.ndarray]:
        """Return y_b less its prediction from all other trajectories, for each trajectory b.

        e_b = ([A^-1]_bb)^-1 (A^-1 y)_b with A = M + shift Sigma, the shift that of all data: what a
        fit without b at the ridge shift / (N - n_b) leaves, without that fit. ``white`` gives
        L_b^-1 e_b, whose squares are those of the loss, (rows of b, k); else e_b, (n_b, d). Cost
        O(sum_b n_b^2 (r + n_b)) for each distinct gain; memory the largest n_b^2.

        Raises:
            DataError: there is one trajectory, or the ridge is lost in rounding.
        """
        if len(np.unique(self.owner)) < 2:
            raise DataError(
                "left-out errors need two trajectories or more; cut the one there is into stretches"
            )
        if not self.resolves(ridge):
            raise DataError(f"ridge={ridge:g} is lost in the rounding of the Gram matrix; raise it")
        found = [np.empty_like(self.white[rows]) for rows in self._groups()]
        for gain in np.unique(self.gains):
            columns = np.flatnonzero(self.gains == gain)
            shift = ridge * self.count
            # I - H = U diag(kept) U^T + what U does not reach, H the hat matrix
            kept = shift / (gain * self.values + shift)
            for value, rows in zip(found, self._groups(), strict=True):
                part = self.vectors[rows]
                if self._is_square:  # a sum of positive parts: no digits are lost where f fits all
                    weights = kept / kept.max()
                    block = (part * weights) @ part.T
                    rhs = (part * weights) @ self._projected[:, columns]
                else:
                    block = np.eye(len(rows)) - (part * (1.0 - kept)) @ part.T
                    rhs = self.white[np.ix_(rows, columns)]
                    rhs = rhs - (part * (1.0 - kept)) @ self._projected[:, columns]
                try:
                    value[:, columns] = solve(block, rhs, assume_a="pos", check_finite=False)
                except LinAlgError as error:
                    raise DataError(
                        f"the fit follows a trajectory of {len(rows)} rows exactly at "
                        f"ridge={ridge:g}, and what the others say of it is lost; raise the ridge"
                    ) from error
        return found if white else self._coloured(found)

    @cached_property
    def _projected(self) -> np.ndarray:
        return np.asarray(self.vectors.T @ self.white)

    @property
    def _is_square(self) -> bool:
        rows, columns = self.vectors.shape
        return bool(rows == columns)

    @cached_property
    def _outside(self) -> float:
        """|y_w|^2 of the part that no field reaches."""
        if self._is_square:
            return 0.0
        return float(((self.white - self.vectors @ self._projected) ** 2).sum())

    def _groups(self) -> Iterator[np.ndarray]:
        for name in np.unique(self.owner):
            yield np.flatnonzero(self.owner == name)

    def _coloured(self, parts: list[np.ndarray]) -> list[np.ndarray]:
        """Return L_b times the whitened residuals, (n_b, d), in the outputs' own basis."""
        found = []
        owner = self.owner[: self.count]
        for name, part in zip(np.unique(owner), parts, strict=True):
            rows = np.flatnonzero(owner == name)
            own = by_observation(part, len(part) // len(rows)) if self.coupled else part
            lower = np.linalg.cholesky(self.covariance[rows][:, rows].toarray())
            value = lower @ own
            found.append(value if self.rotation is None else value @ self.rotation.T)
        return found


@singledispatch
def spectrum(
    kernel: OperatorKernel, occupations: Occupations, *, covariance: sp.csr_array
) -> Spectrum:
    """Return the `Spectrum` of a resolved kernel on observations, in NumPy arrays.

    Arguments are those of `prepare`. Cost and memory, once for all ridges: for k I and k A some
    10 S^3 and 2 S^2; for q scalar features 6 S q^2 and S q (S d in place of S where they are
    matrices); for kernels that couple the outputs 10 (S d)^3 and 2 (S d)^2.

    Raises:
        DataError: Sigma is not positive definite, or the arrays are not NumPy's.
        MemoryError: the matrix does not fit.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> data = vf.Trajectories.from_arrays([np.exp(-np.linspace(0, 3, 40))[:, None]], 1 / 13)
        >>> fit = vf.Plan(vf.kernels.Monomials(2)).prepare(data)
        >>> found = vf.linalg.spectrum(fit.kernel, fit.occupations, covariance=fit.covariance)
        >>> found.vectors.shape, found.white.shape
        ((39, 3), (39, 1))
    """
    raise TypeError(f"no spectrum for kernels of type {type(kernel).__name__}")


@spectrum.register
def _(kernel: Separable, occupations: Occupations, *, covariance: sp.csr_array) -> Spectrum:
    whitener, y = _whitened(occupations, covariance)
    matrix = assemble(kernel.kernel, occupations.nodes, occupations.weights).matrix
    values, vectors = _decomposed(matrix, whitener)
    gains, rotation = np.ones(y.shape[1]), None
    if kernel.matrix is not None:
        gains, rotation = np.linalg.eigh(kernel.mixing(occupations.nodes))
        gains = np.where(gains > 1e-12 * gains[-1], gains, 0.0)
        y = y @ rotation
    return Spectrum(
        vectors,
        values,
        y,
        gains,
        occupations.owner,
        len(occupations),
        occupations.d * whitener.log_determinant,
        covariance,
        rotation,
    )


@spectrum.register
def _(kernel: ImplicitKernel, occupations: Occupations, *, covariance: sp.csr_array) -> Spectrum:
    d = occupations.d
    wide = sp.csr_array(sp.kron(sp.eye_array(d), covariance, format="csr"))
    whitener, y = _whitened(occupations, covariance)
    matrix = assemble_blocks(kernel, occupations.nodes, occupations.weights).matrix
    values, vectors = _decomposed(matrix, Whitener(wide))
    return _coupled(vectors, values, y, occupations, covariance=covariance, whitener=whitener)


@spectrum.register
def _(kernel: ExplicitKernel, occupations: Occupations, *, covariance: sp.csr_array) -> Spectrum:
    whitener, y = _whitened(occupations, covariance)
    features = kernel.bind(occupations.nodes)
    count, nodes = len(occupations), occupations.nodes
    outputs = 1 if features.separable else features.d
    rows = max(count, nodes.shape[0])
    _backend.check_memory(
        2 * rows * outputs * features.q, f"the spectrum of {count:,} observations and features"
    )
    design = occupations.weights @ features(nodes).reshape(nodes.shape[0], -1)
    design = whitener.forward(design)
    if not features.separable:
        design = design.reshape(count, outputs, -1).swapaxes(0, 1).reshape(count * outputs, -1)
    vectors, singular, _ = svd(design, full_matrices=False, check_finite=False)
    if not features.separable:
        values = singular**2
        return _coupled(vectors, values, y, occupations, covariance=covariance, whitener=whitener)
    return Spectrum(
        vectors,
        singular**2,
        y,
        np.ones(y.shape[1]),
        occupations.owner,
        count,
        occupations.d * whitener.log_determinant,
        covariance,
    )


def _whitened(occupations: Occupations, covariance: sp.csr_array) -> tuple[Whitener, np.ndarray]:
    if not _backend.is_numpy(occupations.targets):
        raise DataError("spectrum runs on NumPy arrays; pass the states as such")
    whitener = Whitener(covariance)
    return whitener, whitener.forward(occupations.targets)


def _decomposed(matrix: np.ndarray, whitener: Whitener) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues, none negative, and eigenvectors of L^-1 M L^-T."""
    white = whitener.forward(np.ascontiguousarray(whitener.forward(matrix).T))
    values, vectors = eigh(white, overwrite_a=True, check_finite=False, driver="evd")
    return np.maximum(values, 0.0), vectors


def _coupled(
    vectors: np.ndarray,
    values: np.ndarray,
    y: np.ndarray,
    occupations: Occupations,
    *,
    covariance: sp.csr_array,
    whitener: Whitener,
) -> Spectrum:
    return Spectrum(
        vectors,
        values,
        by_coordinate(y),
        np.ones(1),
        np.tile(occupations.owner, occupations.d),
        len(occupations),
        occupations.d * whitener.log_determinant,
        covariance,
        coupled=True,
    )
