"""Noise models: the covariance of the targets, which is the metric of the loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from vectorfield._errors import DataError
from vectorfield._settings import Settings, check_real
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
    """Errors that are independent over observations; the paper's loss.

    Sigma = diag((h / mean h)^power) with h the durations. Right where the error of the
    quadrature, or noise in the dynamics, is what matters; for overlapping windows or noisy
    snapshots it counts the same error many times. Cost: O(S).

    Args:
        power: >= 0, how the variance of an error grows with the duration of its observation.
            0 is the paper's: all alike, Sigma = I. 1 is noise that drives the dynamics (Brownian
            model error), 2 an error of the slope that lasts for the step. On even steps all are
            the same.

    Example:
        >>> from vectorfield.occupation import Trapezoid, White
        >>> from vectorfield.trajectories import Trajectories
        >>> data = Trajectories.from_arrays([[[0.0], [1.0], [4.0]]], [[0.0, 1.0, 4.0]])
        >>> White().covariance(Trapezoid()(data)).toarray()
        array([[1., 0.],
               [0., 1.]])
        >>> White(power=1).covariance(Trapezoid()(data)).toarray()
        array([[0.5, 0. ],
               [0. , 1.5]])
    """

    power: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "power", check_real("power", self.power, at_least=0.0))

    def covariance(self, occupations: Occupations) -> sp.csr_array:
        """Return the diagonal matrix, (S, S)."""
        if self.power == 0.0:
            return sp.csr_array(sp.eye_array(len(occupations), format="csr"))
        relative = _relative_durations(occupations)
        variances = relative**self.power
        bad = np.flatnonzero(~(np.isfinite(variances) & (variances > 0)))
        if len(bad):
            raise DataError(
                f"White(power={self.power:g}) gives observation {int(bad[0])}, of duration "
                f"{occupations.durations[bad[0]]:g}, the variance {variances[bad[0]]:g}, which "
                "must be positive and finite; take a smaller power or a rule whose rows last"
            )
        return sp.csr_array(sp.diags_array(variances, format="csr"))


@dataclass(frozen=True)
class SnapshotNoise(Noise):
    """Independent noise of unit variance in every coordinate of every snapshot.

    Sigma = D D^T + model_error diag(h / mean h), the first part exactly, since y = D x: two
    successive increments share a sample and have covariance -1 beside variances of 2. Noise in
    the places where f is observed (W f at noisy nodes) is not part of it. For increments this
    loss is that of least squares on the snapshots themselves with an unknown start for each
    trajectory, because D^T (D D^T)^-1 D takes the mean over the trajectory away and does nothing
    else.

    A ``model_error`` adds what f cannot explain even without noise in the snapshots: errors of the
    dynamics, independent from one observation to the next, whose variance grows with the duration
    h of the observation, as that of a Brownian motion does. Overlapping windows are taken as
    independent in this part.

    With a model error > 0 and durations > 0, Sigma is positive definite. Without one it is if and
    only if the rows of D are independent:

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

    Args:
        model_error: rho >= 0, the variance of the model error over an observation of mean
            duration, in units of the variance of one snapshot's noise: rho = q mean h / sigma^2
            where dx = f dt + sqrt(q) dB is seen with noise of variance sigma^2. The larger it is,
            the closer the loss is to ``White(power=1)``.

    Example:
        >>> from vectorfield.occupation import SnapshotNoise, Trapezoid
        >>> from vectorfield.trajectories import Trajectories
        >>> data = Trajectories.from_arrays([[[0.0], [1.0], [4.0]]], 0.5)
        >>> SnapshotNoise().covariance(Trapezoid()(data)).toarray()
        array([[ 2., -1.],
               [-1.,  2.]])
        >>> SnapshotNoise(model_error=0.5).covariance(Trapezoid()(data)).toarray()
        array([[ 2.5, -1. ],
               [-1. ,  2.5]])
    """

    model_error: float = 0.0

    def __post_init__(self) -> None:
        value = check_real("model_error", self.model_error, at_least=0.0)
        object.__setattr__(self, "model_error", value)

    def covariance(self, occupations: Occupations) -> sp.csr_array:
        """Return D D^T + model_error diag(h / mean h), (S, S)."""
        own = occupations.covariance
        if self.model_error == 0.0:
            return own
        extra = self.model_error * _relative_durations(occupations)
        total = sp.csr_array(own + sp.diags_array(extra, format="csr"))
        total.sort_indices()
        return total


def _relative_durations(occupations: Occupations) -> np.ndarray:
    """Return |h| / mean |h|; all 1 where no observation lasts.

    Durations are positive for every rule of the library. The absolute value is for rules of others,
    whose rows may have any sum.
    """
    lasting = np.abs(occupations.durations)
    mean = lasting.mean()
    return lasting / mean if mean > 0 else np.ones_like(lasting)
