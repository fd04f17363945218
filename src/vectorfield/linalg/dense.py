"""The dense solver: factor M + shift Sigma once, solve for many right-hand sides."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from vectorfield import _backend
from vectorfield._settings import check_choice
from vectorfield.linalg.cholesky import BLOCK, factor_lower, solve_lower, symmetric_product
from vectorfield.linalg.solution import Solution, Status
from vectorfield.linalg.solver import Solver

__all__ = ["Dense", "DenseFactor", "DenseSystem"]

REFINABLE = 1e5  # a float32 factor then leaves at most a few per cent of the error per step
WORTHWHILE = 2000  # below this many rows a float64 factor takes a fraction of a second
GOAL = 1e-13
REFINE_ABOVE = 1e-10  # a float64 factor rarely leaves more; where it does, try to mend it
ACCEPTABLE = 1e-8
STABLE = 1e-12
SKETCH = 16
STEPS = 20


@dataclass(frozen=True)
class Dense(Solver):
    """Settings of the dense Cholesky solver.

    Args:
        precision: ``"float64"`` factors in float64; ``"mixed"`` factors in float32 and refines
            the solution to float64 accuracy, at about half the time; ``"auto"`` takes the mixed
            way where the ridge bounds the condition number enough for it and the system is
            large. When refinement does not converge, a float64 factor follows and the status
            says so.

    Example:
        >>> import vectorfield as vf
        >>> vf.linalg.Dense(precision="float64")
        Dense(precision='float64')
    """

    precision: str = "auto"

    def __post_init__(self) -> None:
        check_choice("precision", self.precision, ("auto", "float64", "mixed"))


class DenseSystem:
    """The family of systems (M + shift Sigma) a = y, shift > 0.

    Takes over ``matrix``: the strict upper triangle and a copy of the diagonal keep M, the lower
    triangle becomes the workspace of the factor, so that one (S, S) array serves both.

    Args:
        matrix: M, (S, S), symmetric positive semi-definite, both triangles filled.
        covariance: Sigma, (S, S) sparse.
        count: N in shift = ridge N, by which errors name the ridge that would do; S by default.
        rows: what the rows of M belong to, for errors.
    """

    def __init__(
        self,
        matrix: Any,
        covariance: sp.csr_array,
        *,
        count: int | None = None,
        rows: str = "observations",
    ) -> None:
        if covariance.shape != tuple(matrix.shape):
            raise ValueError(f"covariance is {covariance.shape}, the matrix {tuple(matrix.shape)}")
        xp = _backend.namespace(matrix)
        self.matrix = matrix
        self.diagonal = xp.asarray(xp.linalg.diagonal(matrix), copy=True)
        self.covariance = covariance
        self.count = len(self) if count is None else count
        self.rows = rows
        self._fresh = True
        self._largest: dict[int, float] = {}

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def with_covariance(self, covariance: sp.csr_array) -> DenseSystem:
        """Return the family with another Sigma on the same array, which is no longer this one's."""
        if covariance.shape != self.covariance.shape:
            raise ValueError(f"covariance is {covariance.shape}, not {self.covariance.shape}")
        other = copy.copy(self)
        other.covariance = covariance
        return other

    def product(self, x: Any, shift: float = 0.0) -> Any:
        """Return (M + shift Sigma) x. Cost 2 S^2 k."""
        value = symmetric_product(self.matrix, self.diagonal, x)
        if shift:
            value += shift * self.covary(x)
        return value

    def covary(self, x: Any) -> Any:
        """Return Sigma x."""
        return _backend.sparse_apply(self.covariance, x)

    def largest_eigenvalue(self, steps: int = 8) -> float:
        """Estimate the largest eigenvalue of M by power iteration (from below, within some %).

        Made once: a path of ridges asks again and again.
        """
        if steps not in self._largest:
            self._largest[steps] = self._power_iteration(steps)
        return self._largest[steps]

    def _power_iteration(self, steps: int) -> float:
        xp = _backend.namespace(self.matrix)
        start = np.random.default_rng(0).normal(size=(len(self), 2))
        start[:, 0] = 1.0  # a Gram matrix of positive kernels leans this way
        x = _backend.array_like(start / np.linalg.norm(start, axis=0), self.matrix)
        value = 0.0
        for _ in range(steps):
            y = symmetric_product(self.matrix, self.diagonal, x)
            norms = xp.sqrt(xp.sum(y * y, axis=0))
            value = float(xp.max(norms))
            if value == 0.0:
                return 0.0
            x = y / xp.where(norms > 0, norms, xp.ones_like(norms))
        return value

    def smallest_noise(self) -> float:
        """Return the smallest eigenvalue of Sigma (0 where it is singular or not found)."""
        own = self.covariance.diagonal()
        if self.covariance.nnz == len(own) and (own != 0).all():
            return float(own.min())
        start = np.random.default_rng(0).normal(size=len(self))
        try:
            low = eigsh(self.covariance, k=1, sigma=0.0, v0=start, return_eigenvectors=False)
        except (RuntimeError, ValueError, TypeError):  # singular factor, or too small for Lanczos
            return 0.0
        return max(float(low[0]), 0.0)

    def largest_noise(self) -> float:
        """Bound the largest eigenvalue of Sigma by its largest absolute row sum."""
        return float(abs(self.covariance).sum(axis=1).max())

    def factor(self, shift: float, precision: str = "auto", columns: int = 1) -> DenseFactor:
        """Factor M + shift Sigma; see `Dense` for ``precision``.

        ``columns`` says how many right-hand sides are to come, which ``"auto"`` weighs.
        """
        start = perf_counter()
        factor = None
        if precision == "mixed" or (precision == "auto" and self._is_refinable(shift, columns)):
            factor = self._factor_single(shift)
        if factor is None:
            factor = self._factor_double(shift, precision == "mixed")
        factor.seconds["factor"] = perf_counter() - start
        return factor

    def _is_refinable(self, shift: float, columns: int) -> bool:
        """Whether the noise term bounds the condition number enough for a float32 factor.

        Refining costs some 9 S^2 operations a column where a float64 solve costs 2, and the
        float32 factor saves some 0.4 S^3 / 3, of which passes over the matrix for the condition
        and the residuals take a part: many columns are better off without.
        """
        if len(self) < max(WORTHWHILE, 150 * columns):
            return False
        highest = REFINABLE * shift * self.smallest_noise()
        # one step bounds the largest eigenvalue from below, which often settles it
        return all(self.largest_eigenvalue(steps) <= highest for steps in (1, 4))

    def _factor_single(self, shift: float) -> DenseFactor | None:
        xp = _backend.namespace(self.matrix)
        self._restore()
        single = xp.empty(self.matrix.shape, dtype=xp.float32, device=_backend.device(self.matrix))
        for start in range(0, len(self), BLOCK):
            stop = start + BLOCK
            single[start:stop, :stop] = xp.astype(self.matrix[start:stop, :stop], xp.float32)
        _fill(single, self.diagonal, self.covariance, shift)
        failed = factor_lower(single)
        return None if failed else DenseFactor(self, shift, single, 0, fell_back=False)

    def _factor_double(self, shift: float, fell_back: bool) -> DenseFactor:
        self._restore()
        self._fresh = False
        _fill(self.matrix, self.diagonal, self.covariance, shift)
        return DenseFactor(self, shift, self.matrix, factor_lower(self.matrix), fell_back)

    def _restore(self) -> None:
        """Copy the upper triangle back over a lower one that holds an old factor."""
        if self._fresh:
            return
        for start in range(0, len(self), BLOCK):
            stop = min(start + BLOCK, len(self))
            self.matrix[stop:, start:stop] = self.matrix[start:stop, stop:].T
            corner = self.matrix[start:stop, start:stop]
            _backend.write_lower(corner, corner.T)
        _backend.write_diagonal(self.matrix, self.diagonal)
        self._fresh = True


class DenseFactor:
    """A Cholesky factor of M + shift Sigma; it is valid until the system is factored again."""

    def __init__(
        self, system: DenseSystem, shift: float, lower: Any, failed: int, fell_back: bool
    ) -> None:
        self.system, self.shift = system, shift
        self.failed_row = failed
        self.fell_back = fell_back
        self.seconds: dict[str, float] = {}
        self._lower = lower

    @property
    def is_single(self) -> bool:
        """Whether the factor is held in float32."""
        return self._lower is not self.system.matrix

    def solve(self, rhs: Any) -> Solution:
        """Solve for the columns of ``rhs`` (S, k). Cost 4 S^2 k, each refinement the same."""
        if self.failed_row:
            return self._failure()
        start = perf_counter()
        xp = _backend.namespace(rhs)
        scale = xp.max(xp.abs(rhs), axis=0)
        scale = xp.where(scale > 0, scale, xp.ones_like(scale))
        y = rhs / scale
        value, steps = self._apply(y), 0
        status = Status.FELL_BACK if self.fell_back else Status.SOLVED
        residual = self._sketched_residual(value, y)
        if self.is_single or residual > REFINE_ABOVE:
            value, residual, steps = self._refine(value, y)
        self.seconds["solve"] = perf_counter() - start
        if self.is_single:
            if not residual <= ACCEPTABLE * 1e-2:
                return self._retry(rhs)
            status = Status.REFINED
        detail, condition = "", None
        if not residual <= ACCEPTABLE:
            condition = self.condition()
            stable = self._backward_error(value, y) <= STABLE
            status = Status.ILL_CONDITIONED if stable else Status.INACCURATE
            detail = (
                f"relative residual {residual:.1e}, condition number about {condition:.1e}; "
                f"{self._remedy()}"
            )
        value *= scale
        return Solution(value, status, residual, steps, condition, detail, dict(self.seconds))

    def _sketched_residual(self, value: Any, y: Any) -> float:
        """Relative residual, from a few random combinations of the columns where there are many."""
        count = y.shape[1]
        if count > 2 * SKETCH:
            draws = np.random.default_rng(2).normal(size=(count, SKETCH))
            draw = _backend.array_like(draws, y)
            value, y = value @ draw, y @ draw
        return _relative(y - self.system.product(value, self.shift), y)

    def _refine(self, value: Any, y: Any) -> tuple[Any, float, int]:
        """Add corrections from the residual in float64 while each at least halves it."""
        error = y - self.system.product(value, self.shift)
        residual = _relative(error, y)
        for step in range(STEPS):
            if residual <= GOAL:
                return value, residual, step
            trial = value + self._apply(error)
            error = y - self.system.product(trial, self.shift)
            smaller = _relative(error, y)
            if not smaller < 0.5 * residual:
                return (trial, smaller, step + 1) if smaller < residual else (value, residual, step)
            value, residual = trial, smaller
        return value, residual, STEPS

    def _backward_error(self, value: Any, y: Any) -> float:
        """Largest |y - A a| / (|A| |a| + |y|) over the columns: rounding alone leaves about eps."""
        xp = _backend.namespace(y)
        error = y - self.system.product(value, self.shift)
        size = self.system.largest_eigenvalue() + self.shift * self.system.largest_noise()
        above, a, b = (xp.sqrt(xp.sum(v * v, axis=0)) for v in (error, value, y))
        return float(xp.max(above / (size * a + b)))

    def condition(self, steps: int = 4) -> float:
        """Estimate the 2-norm condition number by power iteration on the matrix and its inverse."""
        if self.failed_row:
            return float("inf")
        xp = _backend.namespace(self.system.matrix)
        start = np.random.default_rng(1).normal(size=(len(self.system), 2))
        x = _backend.array_like(start, self.system.matrix)
        inverse = 0.0
        for _ in range(steps):
            x = x / xp.sqrt(xp.sum(x * x, axis=0))
            x = self._apply(x)
            inverse = float(xp.max(xp.sqrt(xp.sum(x * x, axis=0))))
        noise = self.shift * self.system.largest_noise()
        return (self.system.largest_eigenvalue() + noise) * inverse

    def _apply(self, rhs: Any) -> Any:
        xp = _backend.namespace(rhs)
        if not self.is_single:
            return solve_lower(self._lower, rhs)
        size = xp.max(xp.abs(rhs))
        size = xp.where(size > 0, size, xp.ones_like(size))  # residuals would underflow in float32
        single = solve_lower(self._lower, xp.astype(rhs / size, xp.float32))
        return xp.astype(single, rhs.dtype) * size

    def _retry(self, rhs: Any) -> Solution:
        double = self.system._factor_double(self.shift, fell_back=True)
        double.seconds = dict(self.seconds)
        return double.solve(rhs)

    def _failure(self) -> Solution:
        detail = (
            f"the matrix of {len(self.system)} {self.system.rows} stopped being positive definite "
            f"at row {self.failed_row}; its largest eigenvalue is about "
            f"{self.system.largest_eigenvalue():.1e} and the noise term is {self.shift:.1e}: the "
            f"condition number is above {1 / np.finfo(float).eps:.0e}; {self._remedy()}"
        )
        return Solution(
            None, Status.NOT_POSITIVE_DEFINITE, np.inf, 0, np.inf, detail, dict(self.seconds)
        )

    def _remedy(self) -> str:
        n = self.system.count
        rounding = float(np.finfo(float).eps) * self.system.largest_eigenvalue()
        needed = max(100 * rounding, 10 * self.shift) / n
        return (
            f"raise ridge to at least about {needed:.0e}, or use a less smooth kernel or a shorter "
            "length_scale"
        )


def _fill(target: Any, diagonal: Any, covariance: sp.csr_array, shift: float) -> None:
    """Write the diagonal of M and add shift Sigma to the lower triangle of ``target``."""
    xp = _backend.namespace(target)
    own = _backend.array_like(covariance.diagonal(), diagonal)
    _backend.write_diagonal(target, xp.astype(diagonal + shift * own, target.dtype))
    below = sp.coo_array(sp.tril(covariance, k=-1))
    if below.nnz:
        _backend.add_entries(target, below.coords[0], below.coords[1], shift * below.data)


def _relative(error: Any, rhs: Any) -> float:
    """Largest ratio of the columns' norms; columns of zeros count as solved."""
    xp = _backend.namespace(error)
    above = xp.sqrt(xp.sum(error * error, axis=0))
    below = xp.sqrt(xp.sum(rhs * rhs, axis=0))
    ratio = xp.where(below > 0, above / xp.where(below > 0, below, xp.ones_like(below)), above)
    return float(xp.max(ratio))
