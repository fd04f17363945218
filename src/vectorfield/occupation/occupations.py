"""`Occupations`: sparse linear functionals of the field, and the protocol that makes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from vectorfield import _backend
from vectorfield._settings import Settings
from vectorfield.trajectories import Trajectories

__all__ = ["Occupations", "Rule", "observe"]


@dataclass(frozen=True, eq=False, repr=False)
class Occupations:
    """S observations of a field f, each linear in f and in the snapshots x of the data.

    (L f)_s = sum_q W[s, q] f(z_q)   is compared with   y_s = sum_p D[s, p] x_p.

    An increment over [a, b], say, has W f ~ int_a^b f(x(t)) dt and D x = x(b) - x(a); the
    gradient matching at a sample has W f = f(x_k) and D x a difference quotient. Rows and nodes
    are ordered by trajectory and by time, so that W and D are block diagonal and banded.

    Attributes:
        nodes: (Q, d) points z_q, in the array library of the states.
        weights: W, (S, Q) sparse.
        differences: D, (S, P) sparse; its rows sum to zero.
        targets: y = D x, (S, d), in the array library of the states.
        owner: (S,) position of each observation's trajectory, never decreasing.
        node_owner: (Q,) position of each node's trajectory, never decreasing.

    Example:
        >>> from vectorfield.occupation import Trapezoid
        >>> from vectorfield.trajectories import Trajectories
        >>> data = Trajectories.from_arrays([[[0.0], [1.0], [3.0]]], 0.5)
        >>> occupations = Trapezoid()(data)
        >>> occupations
        Occupations(observations=2, nodes=3, d=1)
        >>> occupations.weights.toarray()
        array([[0.25, 0.25, 0.  ],
               [0.  , 0.25, 0.25]])
        >>> occupations.targets
        array([[1.],
               [2.]])
    """

    nodes: Any
    weights: sp.csr_array
    differences: sp.csr_array
    targets: Any
    owner: np.ndarray
    node_owner: np.ndarray

    @property
    def n_observations(self) -> int:
        """Number of observations S."""
        return len(self.owner)

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return int(self.targets.shape[1])

    @property
    def durations(self) -> np.ndarray:
        """(S,) total weight h = W 1: what f = 1 would give.

        The length of an increment in time, the integral of a weak form's test function, 1 for
        gradient matching.
        """
        return np.asarray(self.weights.sum(axis=1))

    @property
    def covariance(self) -> sp.csr_array:
        """(S, S) sparse D D^T, the covariance of each column of y.

        It is exact under snapshot noise of unit variance, independent over samples and
        coordinates; block diagonal over trajectories and banded. Cost: O(S b^2) for rows of D
        with b entries. `SnapshotNoise` says when it is positive definite.
        """
        product = sp.csr_array(self.differences @ self.differences.T)
        product.sort_indices()
        return product

    def __len__(self) -> int:
        return self.n_observations

    def __repr__(self) -> str:
        return f"Occupations(observations={len(self)}, nodes={len(self.node_owner)}, d={self.d})"


class Rule(Settings, ABC):
    """How trajectories are observed: a call turns `Trajectories` into `Occupations`.

    Rules are frozen dataclasses: comparable, hashable, and changed by `replace` only. They copy
    no state and change nothing that they are given.

    Example:
        >>> from vectorfield.occupation import Lagrange, Rule
        >>> isinstance(Lagrange(), Rule), Lagrange().replace(samples=6)
        (True, Lagrange(samples=6))
    """

    __slots__ = ()

    @abstractmethod
    def __call__(self, trajectories: Trajectories) -> Occupations:
        """Return the observations of the trajectories."""


def observe(
    trajectories: Trajectories,
    weights: sp.csr_array,
    differences: sp.csr_array,
    owner: np.ndarray,
    *,
    nodes: Any = None,
    node_owner: np.ndarray | None = None,
) -> Occupations:
    """Join W and D, which are ours to sort, to `Occupations` on the snapshots or ``nodes``."""
    if nodes is None:
        nodes = trajectories.states
    if node_owner is None:
        node_owner = np.repeat(np.arange(len(trajectories)), trajectories.lengths)
    weights.sort_indices()
    differences.sort_indices()
    targets = _backend.sparse_apply(differences, trajectories.states)
    for array in (targets, owner, node_owner):
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    return Occupations(nodes, weights, differences, targets, owner, node_owner)
