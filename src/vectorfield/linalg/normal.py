"""Explicit kernels: the normal equations of their features, one pass over blocks of observations.

With psi the features at the nodes and B = W psi, the coefficients c minimise
|Sigma^(-1/2) (B c - y)|^2 + ridge N |c|^2:

    (B^T Sigma^-1 B + ridge N I) c = B^T Sigma^-1 y.

Both sides are sums over blocks of rows. B is made block by block, whitened and added up; all of
it exists only where it is small.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from vectorfield import _backend
from vectorfield._progress import report
from vectorfield._settings import check_choice, check_real
from vectorfield.kernels.expansion import FeatureExpansion
from vectorfield.kernels.features import ExplicitKernel, FeatureMap
from vectorfield.kernels.tiles import row_blocks
from vectorfield.linalg.dense import ACCEPTABLE, DenseSystem
from vectorfield.linalg.regression import Problem, Regression, prepare
from vectorfield.linalg.solution import Solution, Status
from vectorfield.linalg.solver import Solver, chosen
from vectorfield.linalg.whitening import Whitener
from vectorfield.occupation import Occupations

__all__ = ["Normal", "NormalProblem"]

MEBI = 2**20
TILE = 2**16  # numbers a tile: features and their quadrature stay within a core's L2 cache
OVERLAP = 4  # a tile has at least as many times the rows of which one touches nodes


@dataclass(frozen=True)
class Normal(Solver):
    """Settings of the solver of explicit kernels, by normal equations.

    Args:
        block: MiB of a block of observations by features; large enough for matrix products to
            run at their best rate, small beside the memory.
        keep: MiB up to which the blocks are kept for the residuals; beyond it the field is
            evaluated at the nodes again.
        precision: how the (q, q) system is factored; see `Dense`.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 3.0, 40)
        >>> solver = vf.linalg.Normal(block=16.0)
        >>> model = vf.MOCK(vf.kernels.Monomials(1), 1e-9, solver=solver)
        >>> model.fit(np.exp(-t)[:, None], t).predict(np.array([[2.0]])).round(2)
        array([[-2.]])
    """

    block: float = 64.0
    keep: float = 256.0
    precision: str = "auto"

    def __post_init__(self) -> None:
        object.__setattr__(self, "block", check_real("block", self.block, above=0.0))
        object.__setattr__(self, "keep", check_real("keep", self.keep, at_least=0.0))
        check_choice("precision", self.precision, ("auto", "float64", "mixed"))


class NormalProblem(Problem):
    """(B^T Sigma^-1 B + shift I) c = B^T Sigma^-1 y. Cost N q^2 once, q^3 / 3 for each ridge.

    Matrix-valued features count each of the d outputs as an observation: N d q^2.

    Args:
        kernel: an explicit kernel, nothing left open.
        occupations: the observations.
        covariance: Sigma, (S, S) sparse, positive definite.
        solver: the settings.
    """

    def __init__(
        self,
        kernel: ExplicitKernel,
        occupations: Occupations,
        covariance: sp.csr_array,
        solver: Normal,
    ) -> None:
        self._kernel, self._occupations, self._solver = kernel, occupations, solver
        start = perf_counter()
        self._map = kernel.bind(occupations.nodes)
        self._design = _Design(self._map, occupations)
        self._seconds = {"bind": perf_counter() - start, "features": 0.0, "products": 0.0}
        q = self._map.q
        _backend.check_memory(
            2 * q * q, f"the system of q = {q:,} features", "fit with fewer features"
        )
        self._blocks: list[tuple[slice, Any]] | None = None
        self._weigh(covariance)

    def reweighted(self, covariance: sp.csr_array) -> NormalProblem:
        """Return the problem with another Sigma and the same features. Cost N q^2."""
        other = copy.copy(self)
        other.__dict__.pop("_spectrum", None)
        other._seconds = {"bind": 0.0, "features": 0.0, "products": 0.0}
        other._weigh(covariance)
        return other

    def _weigh(self, covariance: sp.csr_array) -> None:
        matrix, self._rhs, self._blocks = self._accumulate(Whitener(covariance))
        identity = sp.csr_array(sp.eye_array(self._map.q, format="csr"))
        count = len(self._occupations)
        self._system = DenseSystem(matrix, identity, count=count, rows="features")

    def _accumulate(self, whitener: Whitener) -> tuple[Any, Any, list[tuple[slice, Any]] | None]:
        """Return B^T Sigma^-1 B, B^T Sigma^-1 y, and the blocks of B if they may be kept."""
        y, q = self._occupations.targets, self._map.q
        count, width = y.shape[0], self._design.width
        xp = _backend.namespace(y)
        white_y = whitener.forward(y)
        columns = y.shape[1] if self._map.separable else 1
        options = {"dtype": y.dtype, "device": _backend.device(y)}
        matrix, rhs = xp.zeros((q, q), **options), xp.zeros((q, columns), **options)
        kept: list[tuple[slice, Any]] | None = []
        if 8 * count * width > self._solver.keep * MEBI:
            kept = None
        before = None
        size = max(1, int(self._solver.block * MEBI / (8 * width)))
        made = dict(enumerate(block for _, block in self._blocks or ()))
        for number, rows in enumerate(row_blocks(count, size)):
            start = perf_counter()
            block = made[number] if number in made else self._design.block(rows)
            if kept is not None:
                kept.append((rows, block))
            middle = perf_counter()
            white = whitener.forward(block, rows.start, before)
            if whitener.reach:
                tail = white if before is None else xp.concat([before, white], axis=0)
                before = tail[-whitener.reach :, :]
            white = xp.reshape(white, (-1, q))
            matrix += white.T @ white  # one triangle of it, where BLAS sees that it is symmetric
            rhs += white.T @ xp.reshape(white_y[rows, :], (-1, columns))
            self._seconds["features"] += middle - start
            self._seconds["products"] += perf_counter() - middle
            report("features", rows.stop / count)
        return matrix, rhs, kept

    def solve(self, ridge: float) -> Regression:
        """Factor for this ridge. Cost q^3 / 3, and 2 N q d for the residuals."""
        shift = ridge * len(self._occupations)
        factor = self._system.factor(shift, self._solver.precision, self._rhs.shape[1])
        return self._regression(factor.solve(self._rhs))

    def path(self, ridges: Iterable[float]) -> Iterator[Regression]:
        """Solve for many ridges from one eigendecomposition, some 10 q^3 and 4 q^2 d for each.

        Where it leaves too large a residual, that ridge has a factor of its own.
        """
        values, vectors = self._spectrum
        projected = vectors.T @ self._rhs
        rounding = float(np.finfo(float).eps) * float(values[-1])
        for ridge in ridges:
            start = perf_counter()
            shift = ridge * len(self._occupations)
            if shift <= rounding:
                yield self.solve(ridge)
                continue
            value = vectors @ (projected / (values + shift)[:, None])
            error = self._rhs - self._system.product(value, shift)
            value += vectors @ ((vectors.T @ error) / (values + shift)[:, None])
            error = self._rhs - self._system.product(value, shift)
            residual = _largest_ratio(error, self._rhs)
            if residual <= ACCEPTABLE:
                seconds = {"solve": perf_counter() - start}
                yield self._regression(Solution(value, Status.SOLVED, residual, 1, seconds=seconds))
            else:
                yield self.solve(ridge)

    @cached_property
    def _spectrum(self) -> tuple[Any, Any]:
        """Eigenvalues and eigenvectors of the matrix, from its upper triangle."""
        xp = _backend.namespace(self._rhs)
        upper = xp.triu(self._system.matrix, k=1)
        full = upper + upper.T
        _backend.write_diagonal(full, self._system.diagonal)
        values, vectors = xp.linalg.eigh(full)
        return xp.where(values > 0.0, values, xp.zeros_like(values)), vectors

    def _regression(self, solution: Solution) -> Regression:
        solution.seconds.update(self._seconds)
        c = solution.value
        if c is None:
            return Regression.failed(solution)
        xp = _backend.namespace(c)
        start = perf_counter()
        coefficients = c if self._map.separable else c[:, 0]
        expansion = FeatureExpansion(self._kernel, self._map, coefficients)
        residuals = self._residuals(expansion, c)
        solution.seconds["residuals"] = perf_counter() - start
        return Regression(expansion, residuals, float(xp.sqrt(xp.sum(c * c))), solution)

    def _residuals(self, expansion: FeatureExpansion, c: Any) -> Any:
        """Return y - B c."""
        y = self._occupations.targets
        xp = _backend.namespace(y)
        if self._blocks is None:
            fitted = _backend.sparse_apply(
                self._occupations.weights, expansion(self._occupations.nodes)
            )
            return y - fitted
        residuals = xp.empty_like(y)
        for rows, block in self._blocks:
            value = xp.reshape(block, (-1, self._map.q)) @ c
            residuals[rows, :] = y[rows, :] - xp.reshape(value, (-1, y.shape[1]))
        return residuals


class _Design:
    """B = W psi, (S, q), or (S, d q) for matrix-valued features; any rows of it when asked.

    Rows of W touch nodes in a narrow band. Those that two blocks share are computed twice.
    """

    def __init__(self, features: FeatureMap, occupations: Occupations) -> None:
        self._map, self._nodes = features, occupations.nodes
        self._weights = occupations.weights
        self.width = features.q * (1 if features.separable else features.d)
        indices, ends = self._weights.indices, self._weights.indptr
        filled = np.flatnonzero(np.diff(ends))
        reach = int((indices[ends[filled + 1] - 1] - indices[ends[filled]]).max(initial=0)) + 1
        self._rows = max(1, TILE // self.width, OVERLAP * reach)

    def block(self, rows: slice) -> Any:
        """Return these rows of B. Cost that of the features, on all cores."""
        if not _backend.is_numpy(self._nodes):
            return self._tile(rows)
        value = np.empty((rows.stop - rows.start, self.width))

        def work(part: slice) -> None:
            chosen = slice(rows.start + part.start, rows.start + part.stop)
            value[part, :] = self._tile(chosen)

        _backend.run_parallel(work, row_blocks(len(value), self._rows))
        return value

    def _tile(self, rows: slice) -> Any:
        xp = _backend.namespace(self._nodes)
        part = self._weights[rows, :]
        low = int(part.indices.min(initial=self._nodes.shape[0] - 1))
        high = max(int(part.indices.max(initial=0)) + 1, low + 1)
        features = self._map(self._nodes[low:high, :])
        band = sp.csr_array(part[:, low:high])
        return _backend.sparse_apply(band, xp.reshape(features, (high - low, -1)))


def _largest_ratio(error: Any, rhs: Any) -> float:
    """Return the largest ratio of the columns' norms; columns of zeros count as solved."""
    xp = _backend.namespace(error)
    above, below = (xp.sqrt(xp.sum(v * v, axis=0)) for v in (error, rhs))
    return float(xp.max(above / xp.where(below > 0, below, xp.ones_like(below))))


@prepare.register
def _(
    kernel: ExplicitKernel,
    occupations: Occupations,
    *,
    covariance: sp.csr_array,
    solver: Solver | None = None,
) -> Problem:
    return NormalProblem(kernel, occupations, covariance, chosen(solver, Normal(), kernel))
