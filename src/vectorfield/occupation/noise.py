"""Noise models: the covariance of the targets, which is the metric of the loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import scipy.sparse as sp

from vectorfield._settings import Settings
from vectorfield.occupation.occupations import Occupations

__all__ = ["Noise", "SnapshotNoise", "White"]


class Noise(Settings, ABC):
    """A model of the errors in the targets y.

    The loss is (L f - y)^T Sigma^-1 (L f - y), summed over the coordinates, with Sigma the
    ``covariance``; its scale does not matter beyond that of the ridge.

    Example:
        >>> from vectorfield.occupation import Noise, White
        >>> isinstance(White(), Noise)
        True
    """

    __slots__ = ()

    @abstractmethod
    def covariance(self, occupations: Occupations) -> sp.csr_array:
        """Return Sigma, (S, S) sparse, block diagonal over trajectories."""


@dataclass(frozen=True)
class White(Noise):
    """The paper's loss: errors of unit variance, independent over observations.

    Sigma = I. Right where the error of the quadrature, or noise in the dynamics, is what
    matters; for overlapping windows or noisy snapshots it counts the same error many times.
    Cost: O(S).

    Example:
        >>> from vectorfield.occupation import Trapezoid, White
        >>> from vectorfield.trajectories import Trajectories
        >>> data = Trajectories.from_arrays([[[0.0], [1.0], [4.0]]], 0.5)
        >>> White().covariance(Trapezoid()(data)).toarray()
        array([[1., 0.],
               [0., 1.]])
    """

    def covariance(self, occupations: Occupations) -> sp.csr_array:
        """Return the identity, (S, S)."""
        return sp.csr_array(sp.eye_array(len(occupations), format="csr"))


@dataclass(frozen=True)
class SnapshotNoise(Noise):
    """Independent noise of unit variance in every coordinate of every snapshot.

    Sigma = D D^T, exactly, since y = D x: two successive increments share a sample and have
    covariance -1 beside variances of 2. Noise in the places where f is observed (W f at noisy
    nodes) is not part of it. For increments this loss is that of least squares on the snapshots
    themselves with an unknown start for each trajectory, because D^T (D D^T)^-1 D takes the mean
    over the trajectory away and does nothing else.

    Sigma is positive definite if and only if the rows of D are independent:

    - Increments, `ForwardDifference`, `CentralDifference` and `Windows` of any length and stride:
      positive definite, because no two rows begin at the same sample. The condition number
      grows as (2 n_i / (pi w))^2 for windows of w steps (w = 1 for increments) on even grids.
    - `WeakForm`: so with linear interpolation. With wider stencils the first few windows of a
      trajectory begin at the same sample, and independence rests on the values of the weights:
      nothing but coincidence makes Sigma singular. But smooth windows at a small stride all leave
      the same high frequencies out: at the defaults, n_i = 300 and even steps, the condition
      number is 2e7 with stride 1, 2e3 with stride 2 and 9 with stride 4, and 1e12 with stride 1
      for ``samples=13, degree=6``. Take such a Sigma as semi-definite to rounding, or a stride
      of half a window.

    Cost: O(S b^2) for rows of D with b entries.

    Example:
        >>> from vectorfield.occupation import SnapshotNoise, Trapezoid
        >>> from vectorfield.trajectories import Trajectories
        >>> data = Trajectories.from_arrays([[[0.0], [1.0], [4.0]]], 0.5)
        >>> SnapshotNoise().covariance(Trapezoid()(data)).toarray()
        array([[ 2., -1.],
               [-1.,  2.]])
    """

    def covariance(self, occupations: Occupations) -> sp.csr_array:
        """Return D D^T, (S, S)."""
        return occupations.covariance
