"""The Gauss-Newton system of whole windows: how every sample moves with the coefficients.

Along a path, a change of the coefficients by dc and of the start by da moves sample k by
S_k dc + T_k da. With B and A all rows of a window, weighted, the starts are eliminated by the
orthogonal factor of A, and the windows add up to one system for dc.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.linalg

from vectorfield import _backend
from vectorfield.kernels.features import FeatureMap, in_blocks
from vectorfield.kernels.tiles import row_blocks
from vectorfield.shooting.paths import Flow, Linearised, linearise
from vectorfield.shooting.windows import Windows

__all__ = ["System", "assemble", "best_shift", "best_starts", "factor"]

FARTHEST = 4  # half decades
RUNAWAY = 1e7  # a path that moves its start by that much is not asked where it began
GROUP = 2**20  # numbers in the sensitivities of the windows that are made at once


@dataclass(frozen=True, eq=False)
class System:
    """H dc = g for the coefficients as one vector, and da for the starts given dc.

    Attributes:
        matrix: H (P, P), sum over windows of B^T (I - Q Q^T) B with A = Q R.
        rhs: g (P,), the same with the residuals for the last B.
        misfit: the same with the residuals for both.
    """

    matrix: np.ndarray
    rhs: np.ndarray
    misfit: float
    _factors: np.ndarray
    _mixed: np.ndarray
    _projected: np.ndarray

    def starts(self, change: np.ndarray) -> np.ndarray:
        """Return da (n, d) for a change dc (P,) of the coefficients."""
        right = self._projected - self._mixed @ change
        return np.asarray(np.linalg.solve(self._factors, right[:, :, None])[:, :, 0])


def assemble(
    flow: Flow,
    features: FeatureMap,
    windows: Windows,
    starts: np.ndarray,
    *,
    weights: np.ndarray,
    substeps: int,
) -> System:
    """Return the system at the paths of ``flow`` from the starts (n, d).

    ``weights`` (d,) divide residuals: one over the standard deviation of the noise. Coefficients
    (q, d) of scalar features count output by output. Cost O(M d P^2) for M samples, P = q d.
    """
    paths = linearise(flow, starts, windows.steps, substeps)
    n, length, d = windows.observed.shape
    count = features.q * (d if features.separable else 1)
    matrix, rhs = np.zeros((count, count)), np.zeros(count)
    factors, mixed = np.empty((n, d, d)), np.empty((n, d, count))
    projected = np.empty((n, d))
    scale = weights * windows.present[:, :, None]
    residuals = (windows.observed - paths.states) * scale
    lock = threading.Lock()

    def work(rows: slice) -> None:
        own = rows.stop - rows.start
        moved, turned = _sensitivities(features, paths, rows)
        moved *= scale[rows, :, :, None]
        turned *= scale[rows, :, :, None]
        b = moved.reshape(own, length * d, count)
        a = turned.reshape(own, length * d, d)
        r = residuals[rows].reshape(own, length * d)
        q, r_factor = np.linalg.qr(a)
        tiny = np.finfo(float).eps * np.abs(r_factor).max(axis=(1, 2))
        factors[rows] = r_factor + np.where(r_factor == 0.0, tiny[:, None, None], 0.0) * np.eye(d)
        back = np.swapaxes(q, 1, 2)
        mixed[rows] = back @ b
        projected[rows] = (back @ r[:, :, None])[:, :, 0]
        flat, flat_r = b.reshape(-1, count), r.reshape(-1)
        inner, inner_r = mixed[rows].reshape(-1, count), projected[rows].reshape(-1)
        part = flat.T @ flat
        part -= inner.T @ inner
        vector = flat.T @ flat_r - inner.T @ inner_r
        with lock:
            np.add(matrix, part, out=matrix)
            np.add(rhs, vector, out=rhs)

    size = max(1, GROUP // (length * d * count))
    _backend.run_parallel(work, row_blocks(n, size))
    misfit = float((residuals**2).sum() - (projected**2).sum())
    return System(matrix, rhs, misfit, factors, mixed, projected)


def best_starts(
    flow: Flow, windows: Windows, starts: np.ndarray, weights: np.ndarray, substeps: int
) -> np.ndarray:
    """Return the starts one Gauss-Newton step nearer to the samples, the flow held fixed."""
    paths = linearise(flow, starts, windows.steps, substeps)
    n, length, d = windows.observed.shape
    scale = weights * windows.present[:, :, None]
    turned = _turned(paths, slice(0, n)) * scale[:, :, :, None]
    a = turned.reshape(n, length * d, d)
    r = ((windows.observed - paths.states) * scale).reshape(n, length * d, 1)
    with np.errstate(invalid="ignore"):
        calm = (np.abs(a) < RUNAWAY).all(axis=(1, 2)) & (np.abs(r) < RUNAWAY).all(axis=(1, 2))
    change = np.zeros((n, d))
    gram = np.swapaxes(a[calm], 1, 2) @ a[calm]
    side = np.swapaxes(a[calm], 1, 2) @ r[calm]
    change[calm] = np.linalg.solve(gram, side)[:, :, 0]
    return np.asarray(starts + change)


def best_shift(system: System, current: np.ndarray, count: int, shift: float) -> float:
    """Return the ridge term of the highest marginal likelihood in the linear model.

    Read as a Gaussian process of variance s^2 / shift and samples with noise s, the logarithm of
    the likelihood of ``count`` residuals, s^2 at its best, is

        -1/2 [ log det(I + H / shift) + count log J(shift) ] + const

    with J the least value of the quadratic objective about the coefficients ``current`` (P,). The
    search walks from ``shift`` by factors of sqrt(10), at most 100 times as far. Cost P^3 / 3 for
    each place, three of them where it stays.
    """
    side = system.rhs + system.matrix @ current
    whole = system.misfit + float((system.rhs + side) @ current)

    @cache
    def badness(place: int) -> float:
        value = shift * 10.0 ** (0.5 * place)
        lower = factor(system.matrix, value)
        if lower is None:
            return float("inf")
        half = scipy.linalg.solve_triangular(lower, side, lower=True)
        least = max(whole - float(half @ half), 1e-12 * max(whole, 1e-300))  # rounding
        volume = 2.0 * float(np.log(np.diag(lower)).sum()) - len(side) * np.log(value)
        return float(volume + count * np.log(least))

    place = 0
    while abs(place) < FARTHEST:
        best = min((place - 1, place, place + 1), key=badness)
        if best == place:
            break
        place = best
    return float(shift * 10.0 ** (0.5 * place))


def factor(matrix: np.ndarray, shift: float) -> np.ndarray | None:
    """Return the Cholesky factor of H + shift I; None where it is not positive definite."""
    shifted = matrix.copy()
    shifted[np.diag_indices_from(shifted)] += shift
    try:
        return np.asarray(scipy.linalg.cholesky(shifted, lower=True, overwrite_a=True))
    except scipy.linalg.LinAlgError:
        return None


def _turned(paths: Linearised, rows: slice) -> np.ndarray:
    """Return T_k, (n, L, d, d), the derivatives of the samples by the start."""
    carry = paths.carry[rows]
    n, gaps, d = carry.shape[:3]
    turned = np.empty((n, gaps + 1, d, d))
    turned[:, 0] = np.eye(d)
    with np.errstate(all="ignore"):  # paths that run away; whoever asks looks
        for k in range(gaps):
            turned[:, k + 1] = carry[:, k] @ turned[:, k]
    return turned


def _sensitivities(
    features: FeatureMap, paths: Linearised, rows: slice
) -> tuple[np.ndarray, np.ndarray]:
    """Return S_k (n, L, d, P) and T_k (n, L, d, d) of some windows."""
    gain, carry, points = paths.gain[rows], paths.carry[rows], paths.points[rows]
    n, gaps, stages, d, _ = gain.shape
    psi: Any = in_blocks(features, points.reshape(-1, d), features.q)
    if features.separable:
        phi = psi.reshape(n, gaps, stages, -1)
        by_stage = gain.transpose(0, 1, 3, 4, 2).reshape(n, gaps, d * d, stages)
        kicks = (by_stage @ phi).reshape(n, gaps, d, -1)
    else:
        wide = psi.reshape(n, gaps, stages * d, -1)
        kicks = gain.transpose(0, 1, 3, 2, 4).reshape(n, gaps, d, stages * d) @ wide
    moved = np.empty((n, gaps + 1, d, kicks.shape[3]))
    moved[:, 0] = 0.0
    with np.errstate(all="ignore"):
        for k in range(gaps):
            np.matmul(carry[:, k], moved[:, k], out=moved[:, k + 1])
            moved[:, k + 1] += kicks[:, k]
    return moved, _turned(paths, rows)
