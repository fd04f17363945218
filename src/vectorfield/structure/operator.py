"""Whitened quadrature as dense matrices, one for every kind of trajectory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from vectorfield.occupation import Occupations
from vectorfield.structure.metric import Metric

__all__ = ["Operator"]

EQUAL = 1e-9  # matrices that differ by less, relative to the largest entry, are one


@dataclass(frozen=True, eq=False)
class _Run:
    """Trajectories that follow each other and have the same matrix."""

    count: int
    row: int
    node: int
    matrix: np.ndarray  # L^-1 W, (rows, nodes) of one
    whitener: np.ndarray | None  # L^-1, (rows, rows); None for the identity


@dataclass(frozen=True, eq=False)
class Operator:
    """A = L^-1 W, block diagonal over trajectories, with Sigma = L L^T.

    Trajectories with the same times share one dense block, so that A of k functions is one matrix
    product, 2 S n k operations for n samples a trajectory.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> from vectorfield.structure.operator import Operator
        >>> data = vf.Trajectories.from_arrays([np.ones((3, 1)), np.ones((3, 1))], 0.5)
        >>> operator = Operator.of(vf.occupation.Trapezoid()(data))
        >>> operator.apply(np.ones((1, 6)))
        array([[0.5, 0.5, 0.5, 0.5]])
    """

    rows: int
    columns: int
    runs: tuple[_Run, ...]

    @classmethod
    def of(cls, occupations: Occupations, metric: Metric | None = None) -> Operator:
        """Return the operator of observations and the metric of their errors, Sigma = I if None."""
        durations = occupations.durations
        rows = np.concatenate([[0], np.cumsum(np.bincount(occupations.owner))])
        nodes = np.concatenate([[0], np.cumsum(np.bincount(occupations.node_owner))])
        runs: list[_Run] = []
        last: tuple[np.ndarray, np.ndarray | None] | None = None
        for i in range(len(rows) - 1):
            r, n = slice(rows[i], rows[i + 1]), slice(nodes[i], nodes[i + 1])
            weights = occupations.weights[r, n].toarray()
            sigma = None if metric is None else metric.covariance(durations[r])
            if last is not None and _same(last[0], weights) and _same(last[1], sigma):
                old = runs[-1]
                runs[-1] = _Run(old.count + 1, old.row, old.node, old.matrix, old.whitener)
                continue
            last = (weights, sigma)
            whitener = None
            if sigma is not None:
                lower = np.linalg.cholesky(sigma)
                whitener = solve_triangular(lower, np.eye(len(sigma)), lower=True)
            matrix = weights if whitener is None else whitener @ weights
            runs.append(_Run(1, int(rows[i]), int(nodes[i]), matrix, whitener))
        return cls(int(rows[-1]), int(nodes[-1]), tuple(runs))

    def apply(self, functions: np.ndarray) -> np.ndarray:
        """Return A f for functions at the nodes, (k, Q) -> (k, S)."""
        value = np.empty((len(functions), self.rows), dtype=functions.dtype)
        for run in self.runs:
            m, n = run.matrix.shape
            part = functions[:, run.node : run.node + run.count * n].reshape(-1, n)
            out = part @ run.matrix.T.astype(functions.dtype, copy=False)
            value[:, run.row : run.row + run.count * m] = out.reshape(len(functions), -1)
        return value

    def adjoint(self, rows: np.ndarray) -> np.ndarray:
        """Return A^T r, (k, S) -> (k, Q)."""
        value = np.empty((len(rows), self.columns), dtype=rows.dtype)
        for run in self.runs:
            m, n = run.matrix.shape
            part = rows[:, run.row : run.row + run.count * m].reshape(-1, m)
            out = part @ run.matrix.astype(rows.dtype, copy=False)
            value[:, run.node : run.node + run.count * n] = out.reshape(len(rows), -1)
        return value

    def whiten(self, rows: np.ndarray) -> np.ndarray:
        """Return L^-1 y, (k, S) -> (k, S)."""
        value = np.array(rows)
        for run in self.runs:
            if run.whitener is not None:
                m = len(run.whitener)
                span = slice(run.row, run.row + run.count * m)
                part = rows[:, span].reshape(-1, m) @ run.whitener.T
                value[:, span] = part.reshape(len(rows), -1)
        return value


def _same(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    if one is None or other is None:
        return one is None and other is None
    if one.shape != other.shape:
        return False
    return bool(np.abs(one - other).max(initial=0.0) <= EQUAL * np.abs(one).max(initial=0.0))
