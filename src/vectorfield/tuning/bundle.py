"""Many fields that differ in their coefficients alone, followed as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vectorfield import _backend
from vectorfield.kernels import KernelExpansion, Separable
from vectorfield.kernels.expansion import Expansion, FeatureExpansion
from vectorfield.kernels.nystrom import NystromMap
from vectorfield.kernels.tiles import row_blocks
from vectorfield.shooting import Flow

__all__ = ["Bundle", "Weighted"]

BLOCK = 2**17  # kernel values at once


@dataclass(frozen=True, eq=False)
class Weighted:
    """A weighted sum of flows, (n, d) -> (n, d).

    Attributes:
        flows: M of them.
        weights: (M,); flows of weight 0 are not called.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> turn = vf.systems.Linear(np.array([[0.0, 1.0], [-1.0, 0.0]]))
        >>> Weighted((turn, turn), np.array([0.5, 1.0]))(np.array([[2.0, 0.0]]))
        array([[ 0., -3.]])
    """

    flows: tuple[Flow, ...]
    weights: np.ndarray

    def __call__(self, x: Any) -> Any:
        """Return the value, (n, d)."""
        return sum(w * f(x) for w, f in zip(self.weights, self.flows, strict=True) if w)

    def jacobian(self, x: Any) -> Any:
        """Return the Jacobian, (n, d, d)."""
        return sum(w * f.jacobian(x) for w, f in zip(self.weights, self.flows, strict=True) if w)


class Bundle:
    """R fields of d coordinates as one of R d: what is dear is done for all of them at once.

    Fields of one map of features, or of one scalar kernel on the same nodes, share every value of
    these at a point; those of one set of flows, `Weighted`, call each flow once; others are called
    one after the other. ``drift`` is added to each.
    """

    def __init__(self, expansions: Sequence[Expansion | Flow], drift: Flow | None = None) -> None:
        self._expansions, self._drift = list(expansions), drift
        self._basis: Any = None
        mixing: Any = None
        first = self._expansions[0]
        self._flows: tuple[Flow, ...] | None = None
        if isinstance(first, FeatureExpansion) and first.features.separable:
            features = first.features
            if all(isinstance(e, FeatureExpansion) and e.features is features for e in expansions):
                self._basis = features
                if isinstance(features, NystromMap):  # k(x, C) (R c) in place of (k(x, C) R) c
                    bound = features.kernel.bind(features.centres)
                    every = slice(0, features.centres.shape[0])
                    self._basis = lambda x: bound(x)(slice(0, x.shape[0]), every)
                    mixing = features.mixing
        elif (
            isinstance(first, KernelExpansion)
            and isinstance(first.kernel, Separable)
            and first.kernel.matrix is None
        ):
            nodes = first.nodes
            if all(isinstance(e, KernelExpansion) and e.nodes is nodes for e in expansions):
                bound = first.kernel.kernel.bind(nodes)
                every = slice(0, nodes.shape[0])
                self._basis = lambda x: bound(x)(slice(0, x.shape[0]), every)
        elif isinstance(first, Weighted):
            flows = first.flows
            if all(isinstance(e, Weighted) and e.flows is flows for e in expansions):
                self._flows = flows
                self._shares = np.stack([e.weights for e in expansions])  # type: ignore[union-attr]
        if self._basis is not None:
            found = np.stack([e.coefficients for e in self._expansions])  # type: ignore[attr-defined]
            self._stack = found if mixing is None else mixing @ found

    def __len__(self) -> int:
        return len(self._expansions)

    def __call__(self, x: Any) -> Any:
        """Return the values (n, R d) at (n, R d): field r at columns r d ... (r + 1) d."""
        count = len(self)
        n, d = x.shape[0], x.shape[1] // count
        points = x.reshape(n, count, d)
        if self._flows is not None:
            value = np.zeros((n, count, d))
            for flow, weights in zip(self._flows, self._shares.T, strict=True):
                who = np.flatnonzero(weights)
                if len(who):
                    part = flow(points[:, who].reshape(-1, d)).reshape(n, len(who), d)
                    value[:, who] += weights[who, None] * part
        elif self._basis is None:
            value = np.stack([e(points[:, r]) for r, e in enumerate(self._expansions)], axis=1)
        else:
            value = np.empty((n, count, d))
            size = max(1, BLOCK // (count * self._stack.shape[1]))

            def work(rows: slice) -> None:
                part = points[rows]
                basis = self._basis(part.reshape(-1, d)).reshape(len(part), count, -1)
                value[rows] = np.swapaxes(np.swapaxes(basis, 0, 1) @ self._stack, 0, 1)

            _backend.run_parallel(work, row_blocks(n, size))
        if self._drift is not None:
            value = value + self._drift(points.reshape(-1, d)).reshape(n, count, d)
        return value.reshape(n, count * d)

    def jacobian(self, x: Any) -> Any:
        """Return the Jacobian of the only field of a bundle of one."""
        (only,) = self._expansions
        value = only.jacobian(x)
        return value if self._drift is None else value + self._drift.jacobian(x)
