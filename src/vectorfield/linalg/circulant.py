"""Fields on a ring: the coupled system taken apart by a Fourier transform over the coordinates.

With K(x, y) = (1/d) sum_h k(x, g_h y) g_h and g_h the shift by h, entry (a, b) of K is
k(x, g_(b-a) y) / d: every (d, d) block is circulant, and so is every block of M = W G W^T. The
discrete Fourier transform of the coordinates makes all of them diagonal at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import scipy.sparse as sp

from vectorfield import _backend
from vectorfield._progress import report
from vectorfield.kernels.base import ScalarKernel
from vectorfield.kernels.equivariant import Equivariant
from vectorfield.kernels.groups import CyclicShifts
from vectorfield.kernels.operators import ImplicitKernel
from vectorfield.linalg.dense import ACCEPTABLE, GOAL, REFINE_ABOVE, STABLE, STEPS
from vectorfield.linalg.gram import node_strips
from vectorfield.linalg.hermitian import Hermitian
from vectorfield.linalg.regression import Problem, Regression, expand, prepare
from vectorfield.linalg.solution import Solution, Status
from vectorfield.linalg.solver import Solver
from vectorfield.occupation import Occupations

__all__ = ["Circulant", "CirculantProblem", "assemble_frequencies"]

LARGEST = 5e8  # doubles, d S^2, up to which this is the default; conjugate gradients beyond
TILE = 2**19  # kernel values of a tile, d for each pair of nodes


@dataclass(frozen=True)
class Circulant(Solver):
    """Settings of the exact solver for fields that commute with cyclic shifts.

    For `vectorfield.kernels.Equivariant` of k I under `CyclicShifts`, on NumPy arrays: the
    (S d, S d) system of S observations falls apart into d // 2 + 1 complex Hermitian ones of S
    rows, of which that of frequency 0 (and of d / 2 where d is even) is real. Cost 2 d S^3 / 3 in
    place of d^3 S^3 / 3, memory d S^2 doubles in place of d^2 S^2. Taken by itself up to 4 GB;
    beyond, conjugate gradients are the default.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> ring = vf.systems.Lorenz96(d=5)
        >>> t = np.linspace(0.0, 1.5, 76)
        >>> x = vf.simulate(ring, np.array([1.0, 4.0, -2.0, 3.0, 0.5]), t, rtol=1e-9).x
        >>> kernel = vf.kernels.Equivariant(vf.kernels.Polynomial(2), vf.kernels.CyclicShifts())
        >>> model = vf.MOCK(kernel, 1e-10, rule=vf.occupation.Lagrange(samples=6),
        ...                 solver=vf.linalg.Circulant()).fit(x, t)
        >>> model.predict(np.zeros((1, 5))).round(1)
        array([[8., 8., 8., 8., 8.]])
    """


class CirculantProblem(Problem):
    """(M_w + shift Sigma) a_w = y_w for the d // 2 + 1 frequencies w of the coordinates.

    With v_w = sum_a v[a] exp(-2 pi i w a / d) the transform of a row, M_w is the conjugate of that
    of h -> (1/d) sum_pq W_sp W_tq k(z_p, g_h z_q): Hermitian and positive semi-definite.

    Args:
        kernel: `Equivariant` of k I under `CyclicShifts`, resolved.
        occupations: S observations, in NumPy arrays.
        covariance: Sigma, (S, S) sparse.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> x = np.random.default_rng(0).normal(size=(20, 3))
        >>> occupations = vf.occupation.Trapezoid()(vf.Trajectories.from_arrays([x], 0.1))
        >>> noise = vf.occupation.White().covariance(occupations)
        >>> kernel = vf.kernels.Equivariant(vf.kernels.Gaussian(1.0), vf.kernels.CyclicShifts())
        >>> fit = vf.linalg.CirculantProblem(kernel, occupations, noise).solve(1e-3)
        >>> fit.solution.value.shape, fit.solution.status.name
        ((19, 3), 'SOLVED')
    """

    def __init__(
        self, kernel: Equivariant, occupations: Occupations, covariance: sp.csr_array
    ) -> None:
        if kernel.scalar is None or kernel.group != CyclicShifts():
            raise TypeError(f"Circulant() is for k I under CyclicShifts(), got {kernel!r}")
        start = perf_counter()
        self._kernel, self._occupations = kernel, occupations
        self._covariance = covariance
        matrices = assemble_frequencies(kernel.scalar, occupations.nodes, occupations.weights)
        self._systems = [Hermitian(matrix, covariance) for matrix in matrices]
        # how often a frequency counts in sums over all d of them
        d = occupations.d
        self._counts = [1 if w in (0, d / 2) else 2 for w in range(len(matrices))]
        self._assembled = perf_counter() - start

    def solve(self, ridge: float) -> Regression:
        """Factor all frequencies for this ridge and solve. Cost 2 d S^3 / 3."""
        y = self._occupations.targets
        shift = ridge * len(self._occupations)
        seconds = {"gram": self._assembled}
        start = perf_counter()
        failures = self._factor(shift)
        for w, row in enumerate(failures):
            if row:
                return Regression.failed(self._failure(w, row, shift, seconds))
        middle = perf_counter()
        seconds["factor"] = middle - start
        size = float(np.abs(y).max(initial=0.0)) or 1.0
        rhs = self._transform(y / size)
        with _backend.one_blas():  # of single vectors, which memory bounds
            value, residual, steps = self._refined(rhs)
        seconds["solve"] = perf_counter() - middle
        status, detail, condition = Status.SOLVED, "", None
        if not residual <= ACCEPTABLE:
            condition = self._condition()
            bound = self._largest() + shift * self._systems[0].largest_noise()
            above = residual * self._norm(rhs)
            stable = above <= STABLE * (bound * self._norm(value) + self._norm(rhs))
            status = Status.ILL_CONDITIONED if stable else Status.INACCURATE
            detail = (
                f"relative residual {residual:.1e}, condition number about {condition:.1e}; "
                f"{self._remedy(shift)}"
            )
        a = size * self._restored(value)
        solution = Solution(a, status, residual, steps, condition, detail, seconds)
        # M a = y - shift Sigma a costs nothing
        residuals = shift * (self._covariance @ a)
        return expand(self._kernel, self._occupations, residuals, solution)

    def _factor(self, shift: float) -> list[int]:
        """Factor all frequencies: each on a core where there are enough, else one by one on all."""
        finished: list[Hermitian] = []

        def work(system: Hermitian) -> int:
            row = system.factor(shift)
            finished.append(system)
            report("factor", len(finished) / len(self._systems))
            return row

        if len(self._systems) >= _backend.n_threads():
            return _backend.run_parallel(work, self._systems)
        return [work(system) for system in self._systems]

    def _transform(self, y: np.ndarray) -> list[np.ndarray]:
        """(S, d) to one (S,) for each frequency: the conjugate, as `Hermitian` holds M_w's."""
        waves = np.conj(np.fft.rfft(y, axis=1))
        return [
            np.ascontiguousarray(waves[:, w] if system.is_complex else waves[:, w].real)
            for w, system in enumerate(self._systems)
        ]

    def _restored(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """The inverse of `_transform`."""
        waves = np.conj(np.stack([v.astype(np.complex128) for v in values], axis=1))
        return np.asarray(np.fft.irfft(waves, n=self._occupations.d, axis=1))

    def _norm(self, values: Sequence[np.ndarray]) -> float:
        """Parseval: sqrt(d) times the norm of what `_restored` would give."""
        squares = (
            count * float(np.vdot(v, v).real) for count, v in zip(self._counts, values, strict=True)
        )
        return math.sqrt(sum(squares))

    def _errors(self, values: Sequence[np.ndarray], rhs: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [s.residual(v, y) for s, v, y in zip(self._systems, values, rhs, strict=True)]

    def _refined(self, rhs: list[np.ndarray]) -> tuple[list[np.ndarray], float, int]:
        """Solve, and where the residual is large add corrections while each at least halves it."""
        below = self._norm(rhs) or 1.0
        value = [s.apply(y) for s, y in zip(self._systems, rhs, strict=True)]
        error = self._errors(value, rhs)
        residual, steps = self._norm(error) / below, 0
        while residual > REFINE_ABOVE and steps < STEPS:
            pairs = zip(self._systems, value, error, strict=True)
            trial = [v + s.apply(e) for s, v, e in pairs]
            error = self._errors(trial, rhs)
            smaller = self._norm(error) / below
            if not smaller < residual:
                break
            stalled = smaller > 0.5 * residual
            value, residual, steps = trial, smaller, steps + 1
            if stalled or residual <= GOAL:
                break
        return value, residual, steps

    def _largest(self) -> float:
        return max(system.largest_eigenvalue() for system in self._systems)

    def _condition(self) -> float:
        noise = self._systems[0].shift * self._systems[0].largest_noise()
        return (self._largest() + noise) * max(s.largest_of_inverse() for s in self._systems)

    def _failure(self, w: int, row: int, shift: float, seconds: dict[str, float]) -> Solution:
        detail = (
            f"the matrix of {len(self._occupations)} observations at frequency {w} of the ring "
            f"stopped being positive definite at row {row}; its largest eigenvalue is about "
            f"{self._systems[w].largest_eigenvalue():.1e} and the noise term is {shift:.1e}: the "
            f"condition number is above {1 / np.finfo(float).eps:.0e}; {self._remedy(shift)}"
        )
        return Solution(
            None, Status.NOT_POSITIVE_DEFINITE, np.inf, 0, np.inf, detail, dict(seconds)
        )

    def _remedy(self, shift: float) -> str:
        rounding = float(np.finfo(float).eps) * self._largest()
        needed = max(100 * rounding, 10 * shift) / len(self._occupations)
        return (
            f"raise ridge to at least about {needed:.0e}, or use a less smooth kernel or a shorter "
            "length_scale"
        )


def assemble_frequencies(
    kernel: ScalarKernel, nodes: np.ndarray, weights: sp.csr_array
) -> list[np.ndarray]:
    """Return M_w, (S, S), for w = 0 ... d // 2, their upper triangles; see `CirculantProblem`.

    ``nodes`` is (Q, d), ``weights`` W (S, Q). Tile by tile: d kernel values a pair of nodes by one
    matrix product, W on both sides, then the transform. Cost O(Q^2 d^2 + S^2 d log d), half of it
    thanks to symmetry; memory d S^2 doubles and some tiles for each core.
    """
    count, d = weights.shape[0], nodes.shape[1]
    _backend.check_memory(
        d * (count**2 + nodes.size) + 4 * min(d // 2 + 1, _backend.n_threads()) * count**2,
        f"the exact fit of {count:,} observations on a ring of {d} coordinates",
        "use vf.linalg.ConjugateGradient(), which never forms the matrix, or fewer trajectories",
    )
    shifts = CyclicShifts().elements(d)
    orbit = shifts.images(nodes).reshape(-1, d)  # row j d + h is g_h z_j
    tile = kernel.bind(orbit)(nodes)
    matrices = [
        np.empty((count, count), dtype=np.float64 if w in (0, d / 2) else np.complex128)
        for w in range(d // 2 + 1)
    ]
    strips = node_strips(weights, min(384, max(16, int((TILE / d) ** 0.5))))
    finished: list[int] = []
    total = len(strips) * (len(strips) + 1) // 2

    def work(index: int) -> None:
        left = strips[index]
        for right in strips[index:]:
            wide = slice(right.nodes.start * d, right.nodes.stop * d)
            half = left.weights @ tile(left.nodes, wide)
            height = half.shape[0]
            half = half.reshape(height, -1, d).transpose(1, 0, 2).reshape(-1, height * d)
            both = (right.weights @ half).reshape(-1, height, d)  # [t, s, h]
            waves = np.fft.rfft(both, axis=2) / d
            for w, matrix in enumerate(matrices):
                wave = waves[:, :, w] if np.iscomplexobj(matrix) else waves[:, :, w].real
                matrix[left.rows, right.rows] = np.conj(wave).T
        finished.append(len(strips) - index)
        report("Gram matrix", sum(finished) / total)

    _backend.run_parallel(work, range(len(strips)))
    return matrices


@prepare.register
def _(
    kernel: Equivariant,
    occupations: Occupations,
    *,
    covariance: sp.csr_array,
    solver: Solver | None = None,
) -> Problem:
    suits = kernel.scalar is not None and kernel.group == CyclicShifts()
    suits = suits and _backend.is_numpy(occupations.nodes)
    if isinstance(solver, Circulant) and not suits:
        raise TypeError(
            "solver=Circulant() is for a scalar kernel under CyclicShifts() on NumPy arrays, got "
            f"{kernel!r} on arrays of type {type(occupations.nodes).__name__}; leave solver out"
        )
    fits = occupations.d * len(occupations) ** 2 <= LARGEST
    if isinstance(solver, Circulant) or (solver is None and suits and fits):
        return CirculantProblem(kernel, occupations, covariance)
    general: Problem = prepare.dispatch(ImplicitKernel)(
        kernel, occupations, covariance=covariance, solver=solver
    )
    return general
