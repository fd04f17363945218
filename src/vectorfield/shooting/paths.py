"""Batches of paths by Runge-Kutta methods of fixed steps, and their derivatives.

A step of the classical method for x' = f(x) over h, with the stages k_1 ... k_4, is a smooth
function of where it starts and of the values of f at its stages. Its derivatives by both are
products of (d, d) matrices; the chain of them over a path says how any change of f moves all of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.integrate import DOP853

from vectorfield import _backend
from vectorfield.kernels.tiles import row_blocks

__all__ = ["CLASSICAL", "EIGHTH", "Flow", "Linearised", "Scheme", "follow", "linearise"]

NODES = np.array([0.0, 0.5, 0.5, 1.0])  # where in the step a stage is
WEIGHTS = np.array([1.0, 2.0, 2.0, 1.0]) / 6.0


@dataclass(frozen=True, eq=False)
class Scheme:
    """An explicit Runge-Kutta method.

    k_s = f(x + h sum_j a_sj k_j) and x + h sum_s b_s k_s after a step.

    Attributes:
        a: (S, S), below the diagonal.
        b: (S,).
        order: of the error in h.
    """

    a: np.ndarray
    b: np.ndarray
    order: int


CLASSICAL = Scheme(np.diag(NODES[1:], -1), WEIGHTS, 4)
EIGHTH = Scheme(DOP853.A[:12, :12], DOP853.B, 8)  # Dormand and Prince; the digits are SciPy's


class Flow(Protocol):
    """A field with its Jacobian: (n, d) to (n, d), and to (n, d, d)."""

    def __call__(self, x: Any) -> Any:
        """Return f(x)."""

    def jacobian(self, x: Any) -> Any:
        """Return d f_i / d x_j."""


@dataclass(frozen=True, eq=False)
class Linearised:
    """Paths and what moves them.

    x_(k+1) = X(x_k, e_k1, ..., e_kS) with e_ks a change of f at stage s of step k.

    Attributes:
        states: (n, L, d) the paths.
        points: (n, L - 1, S, d) where the stages evaluate f; S = 4 substeps.
        carry: (n, L - 1, d, d) derivatives by x_k.
        gain: (n, L - 1, S, d, d) derivatives by e_ks.
    """

    states: np.ndarray
    points: np.ndarray
    carry: np.ndarray
    gain: np.ndarray


def follow(
    flow: Flow,
    starts: np.ndarray,
    steps: np.ndarray,
    substeps: int = 1,
    scheme: Scheme = CLASSICAL,
) -> np.ndarray:
    """Return the paths from starts (n, d) at the ends of steps (n, L - 1): (n, L, d).

    Paths that run away are not finite from there on. Cost S (L - 1) ``substeps`` calls of the
    flow for each batch, S the stages of the scheme; batches run side by side.
    """
    rows_of_a = [[(j, float(v)) for j, v in enumerate(row) if v != 0.0] for row in scheme.a]
    weights = [(j, float(v)) for j, v in enumerate(scheme.b) if v != 0.0]

    def run(rows: slice) -> np.ndarray:
        states = np.empty((rows.stop - rows.start, steps.shape[1] + 1, starts.shape[1]))
        states[:, 0] = x = starts[rows]
        with np.errstate(all="ignore"):
            for k in range(steps.shape[1]):
                h = (steps[rows, k] / substeps)[:, None]
                for _ in range(substeps):
                    slopes: list[np.ndarray] = []
                    for terms in rows_of_a:
                        slopes.append(flow(_moved(x, h, terms, slopes)))
                    x = _moved(x, h, weights, slopes)
                states[:, k + 1] = x
        return states

    return np.concatenate(_backend.run_parallel(run, _batches(len(starts))))


def _moved(
    x: np.ndarray, h: np.ndarray, terms: list[tuple[int, float]], slopes: list[np.ndarray]
) -> np.ndarray:
    """Return x + h sum_j v_j k_j for the pairs (j, v_j)."""
    if not terms:
        return x
    (first, value), *rest = terms
    total = value * slopes[first]
    for j, value in rest:
        total += value * slopes[j]
    total *= h
    total += x
    return total


def linearise(flow: Flow, starts: np.ndarray, steps: np.ndarray, substeps: int = 1) -> Linearised:
    """Return the paths with the derivatives of every step."""

    def run(rows: slice) -> Linearised:
        return _linearise(flow, starts[rows], steps[rows], substeps)

    parts = _backend.run_parallel(run, _batches(len(starts)))
    return Linearised(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("states", "points", "carry", "gain")
        )
    )


def _linearise(flow: Flow, starts: np.ndarray, steps: np.ndarray, substeps: int) -> Linearised:
    n, d = starts.shape
    gaps, stages = steps.shape[1], 4 * substeps
    states = np.empty((n, gaps + 1, d))
    points = np.empty((n, gaps, stages, d))
    carry = np.empty((n, gaps, d, d))
    gain = np.empty((n, gaps, stages, d, d))
    identity = np.eye(d)
    states[:, 0] = x = starts
    with np.errstate(all="ignore"):
        for k in range(gaps):
            h = (steps[:, k] / substeps)[:, None]
            wide = h[:, :, None]
            whole = np.broadcast_to(identity, (n, d, d))
            for part in range(substeps):
                at, slopes, turns = [x], [flow(x)], [flow.jacobian(x)]
                for node in NODES[1:]:
                    at.append(x + node * h * slopes[-1])
                    slopes.append(flow(at[-1]))
                    turns.append(flow.jacobian(at[-1]))
                x = x + h * np.tensordot(WEIGHTS, np.stack(slopes), 1)
                # d k_s / d x, forward; d x_new / d k_s, backward through the stages after s
                forward = [turns[0]]
                for s in range(1, 4):
                    forward.append(turns[s] @ (identity + NODES[s] * wide * forward[-1]))
                step = identity + wide * np.tensordot(WEIGHTS, np.stack(forward), 1)
                back: list[np.ndarray] = [np.broadcast_to(WEIGHTS[3] * wide * identity, step.shape)]
                for s in (2, 1, 0):
                    through = NODES[s + 1] * wide * (back[0] @ turns[s + 1])
                    back.insert(0, WEIGHTS[s] * wide * identity + through)
                before = slice(0, 4 * part)
                gain[:, k, before] = step[:, None] @ gain[:, k, before]
                gain[:, k, 4 * part : 4 * part + 4] = np.stack(back, axis=1)
                points[:, k, 4 * part : 4 * part + 4] = np.stack(at, axis=1)
                whole = step @ whole
            carry[:, k] = whole
            states[:, k + 1] = x
    return Linearised(states, points, carry, gain)


def _batches(count: int) -> list[slice]:
    """Halve the batch for two threads and so on, unless the parts would be too small to pay."""
    return row_blocks(count, max(32, -(-count // _backend.n_threads())))
