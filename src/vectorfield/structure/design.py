"""Trajectories as regressions, one for each output: coordinates, quadrature and folds, prepared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from vectorfield import _backend
from vectorfield._errors import DataError
from vectorfield.occupation import Occupations, Rule
from vectorfield.structure.metric import Metric
from vectorfield.structure.operator import Operator
from vectorfield.structure.polynomials import Polynomials
from vectorfield.trajectories import Trajectories

__all__ = ["Design", "cut", "drawn"]

LONGEST = 256  # samples of a piece: the whitened quadrature of one is a dense matrix
SHORTEST = 9  # samples of a piece, where the trajectories are cut to have folds
GROUPS = 40  # sums of squared errors by which held-out errors are compared


@dataclass(frozen=True, eq=False)
class Design:
    """Everything that no choice of inputs changes.

    Rows are the whitened observations L^-1 (W f - y) with Sigma = L L^T, ordered by fold.

    Attributes:
        states: (d, Q) standardised coordinates of the nodes, one row for each coordinate.
        polynomials: orthonormal polynomials of each coordinate.
        operator: functions at the nodes to rows.
        check: the same by a rule of another order, by which the error of the first is judged.
        targets: (d, S) whitened increments of each output.
        folds: slices of the rows.
        starts: where each group of rows begins, for sums by group.
        observed, compared: the observations by the two rules.
        ends: where the rows of each piece end.
    """

    states: np.ndarray
    polynomials: Polynomials
    operator: Operator
    check: Operator
    targets: np.ndarray
    folds: tuple[slice, ...]
    starts: np.ndarray
    observed: Occupations
    compared: Occupations
    ends: np.ndarray

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return int(self.states.shape[0])

    @property
    def rows(self) -> int:
        """Number of observations S."""
        return int(self.targets.shape[1])

    @classmethod
    def of(
        cls,
        trajectories: Trajectories,
        *,
        rule: Rule,
        check: Rule,
        folds: int,
        random_state: int,
        order: int,
    ) -> Design:
        """Prepare trajectories, of which pieces are folds and groups, with the increments' metric.

        Errors of the first models are what is left of the increments: see `Metric`.
        """
        pieces = cut(trajectories, folds)
        mixed = np.random.default_rng(random_state).permutation(len(pieces))
        pieces = pieces[mixed]
        states = _backend.to_numpy(pieces.states)
        scale = states.std(axis=0)
        scale = np.where(scale > 1e-12 * np.abs(states).max(axis=0), scale, 1.0)
        scaled = Trajectories(
            (states - states.mean(axis=0)) / scale,
            pieces.times,
            pieces.offsets,
            pieces.ids,
            pieces.feature_names,
        )
        observed, other = rule(scaled), check(scaled)
        if observed.weights.shape != other.weights.shape:
            raise DataError(f"{rule!r} and {check!r} have other nodes: their errors do not compare")
        ends = np.concatenate([[0], np.cumsum(np.bincount(observed.owner))])
        parts = [p for p in np.array_split(np.arange(len(pieces)), folds) if len(p)]
        slices = tuple(slice(int(ends[p[0]]), int(ends[p[-1] + 1])) for p in parts)
        each = np.ascontiguousarray(observed.nodes.T)
        targets = np.ascontiguousarray(observed.targets.T)
        metric = Metric.of(targets, observed.durations, ends)
        return cls(
            each,
            Polynomials.of(each, order),
            Operator.of(observed),
            Operator.of(other),
            targets,
            slices,
            _group_starts(ends, slices),
            observed,
            other,
            ends,
        ).in_metric(metric)

    def in_metric(self, metric: Metric) -> Design:
        """Return the same data with other errors."""
        operator = Operator.of(self.observed, metric)
        return replace(
            self,
            operator=operator,
            check=Operator.of(self.compared, metric),
            targets=operator.whiten(np.ascontiguousarray(self.observed.targets.T)),
        )

    def sums(self, squares: np.ndarray) -> np.ndarray:
        """Return sums by group, (G,), of something about the rows, (S,)."""
        return np.asarray(np.add.reduceat(squares, self.starts))


def cut(trajectories: Trajectories, folds: int) -> Trajectories:
    """Cut trajectories into pieces of at most 256 samples, and enough of them for the folds."""
    total = len(trajectories.states)
    size = LONGEST
    if len(trajectories) < 2 * folds:
        size = max(SHORTEST, min(LONGEST, -(-total // (4 * folds))))
    if int(trajectories.lengths.max()) <= size:
        return trajectories
    xs: list[Any] = []
    ts: list[np.ndarray] = []
    for t, x in trajectories:
        count = -(-len(t) // size)
        ends = np.linspace(0, len(t), count + 1).round().astype(int)
        for a, b in pairwise(ends):
            if b - a >= 2:
                xs.append(x[a:b])
                ts.append(t[a:b])
    return Trajectories.from_arrays(xs, ts, feature_names=trajectories.feature_names)


def drawn(trajectories: Trajectories, most: int, random_state: int) -> Trajectories:
    """Return trajectories with at most about ``most`` steps, pieces of them drawn at random."""
    if int((trajectories.lengths - 1).sum()) <= most:
        return trajectories
    pieces = cut(trajectories, 1)
    order = np.random.default_rng(random_state).permutation(len(pieces))
    until = np.cumsum(pieces.lengths[order] - 1)
    kept = order[: max(1, int(np.searchsorted(until, most, side="right")))]
    return pieces[np.sort(kept)]


def _group_starts(ends: np.ndarray, folds: tuple[slice, ...]) -> np.ndarray:
    """Return where groups begin: pieces, or parts of them where there are few pieces."""
    total = int(ends[-1])
    size = max(1, total // GROUPS)
    starts: list[int] = []
    for a, b in pairwise(ends):
        if b > a:
            count = max(1, round((b - a) / size))
            starts += np.linspace(a, b, count + 1).round().astype(int)[:-1].tolist()
    return np.unique(np.array(starts + [f.start for f in folds]))
