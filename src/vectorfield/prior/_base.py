"""What every prior and every drift offers, and how a prior is taken out of the observations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from vectorfield import _backend
from vectorfield._errors import DataError
from vectorfield._settings import Settings
from vectorfield.linalg.whitening import Whitener
from vectorfield.occupation import Occupations
from vectorfield.trajectories import Trajectories

__all__ = ["Drift", "Prior", "Spread", "centred", "spread_of", "whitened"]

JITTER = 1e-9  # of the mean variance: nearly dependent windows then do a fit of few numbers no harm


class Drift(ABC):
    """A field f0 that is known before the learned rest: an immutable function of the state.

    States and values are in the units of the data. A model file keeps what ``describe`` returns,
    and `restore` takes it back.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> drift = vf.prior.MeanReversion(rate=2.0, centre=np.array([1.0]))
        >>> isinstance(drift, vf.prior.Drift), drift(np.array([[3.0]]))
        (True, array([[-4.]]))
    """

    @abstractmethod
    def __call__(self, x: Any) -> Any:
        """Return f0(x), (n, d) -> (n, d)."""

    @abstractmethod
    def jacobian(self, x: Any) -> Any:
        """Return d f0_i / d x_j, (n, d) -> (n, d, d)."""

    def pull(self, x: Any, v: Any) -> Any:
        """Return J(x)^T v for each point, (n, d); by the Jacobian unless there is a shorter way."""
        xp = _backend.namespace(x)
        return xp.matmul(v[:, None, :], self.jacobian(x))[:, 0, :]

    @abstractmethod
    def describe(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return header (JSON values, with the key ``kind``) and arrays by name.

        Raises:
            TypeError: the drift cannot be written; the message says what to do.
        """

    @classmethod
    @abstractmethod
    def restored(cls, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Self:
        """Return the drift that ``describe`` gave; ValueError or KeyError if it is none."""

    @abstractmethod
    def check(self, d: int) -> None:
        """Raise ValueError if arrays that came from a file do not make a field of d coordinates."""


class Prior(Settings, ABC):
    """Settings of a prior mean field: ``bind`` fits or makes the `Drift`.

    Example:
        >>> import vectorfield as vf
        >>> isinstance(vf.prior.MeanReverting(), vf.prior.Prior)
        True
    """

    __slots__ = ()

    @abstractmethod
    def bind(
        self,
        trajectories: Trajectories,
        occupations: Occupations,
        *,
        covariance: sp.csr_array | None = None,
    ) -> Drift:
        """Return f0 for these data.

        Args:
            trajectories: the training data.
            occupations: their observations, nodes and targets in the units of the data.
            covariance: Sigma, (S, S) sparse, of the loss that is to be fitted; None for I.
        """


class Spread(NamedTuple):
    """Mean and standard deviation of the training states, (d,) NumPy; 1 for constant features."""

    mean: np.ndarray
    scale: np.ndarray


def spread_of(trajectories: Trajectories) -> Spread:
    """Return mean and standard deviation of each feature."""
    states = _backend.to_numpy(trajectories.states)
    scale = states.std(axis=0)
    constant = scale <= 1e-12 * np.abs(states).max(axis=0)  # rounding alone
    return Spread(states.mean(axis=0), np.where(constant, 1.0, scale))


def whitened(columns: np.ndarray, covariance: sp.csr_array | None) -> np.ndarray:
    """Return Sigma^(-1/2) times columns (S, k): least squares then minimise the loss of the fit."""
    if covariance is None:
        return columns
    tiny = JITTER * float(covariance.diagonal().mean())
    if covariance.nnz > covariance.shape[0]:
        covariance = sp.csr_array(covariance + tiny * sp.eye_array(covariance.shape[0]))
    return np.asarray(Whitener(covariance).forward(columns))


def centred(
    prior: Prior,
    trajectories: Trajectories,
    occupations: Occupations,
    *,
    shift: Any,
    scale: Any,
    covariance: sp.csr_array | None = None,
) -> tuple[Drift, Occupations]:
    """Bind a prior and take it out of observations in standardised coordinates.

    ``occupations`` are those of (x - shift) / scale. What is left for g = f - f0 to explain is
    y - W f0(z); only the targets change. Cost: one call of f0 on the Q nodes.
    """
    nodes = occupations.nodes * scale + shift
    physical = replace(occupations, nodes=nodes, targets=occupations.targets * scale)
    drift = prior.bind(trajectories, physical, covariance=covariance)
    values = drift(nodes)
    xp = _backend.namespace(values)
    if not bool(xp.all(xp.isfinite(values))):
        bad = np.flatnonzero(~np.isfinite(_backend.to_numpy(values)).all(axis=1))
        first = _backend.to_numpy(nodes[int(bad[0]), :]).tolist()
        raise DataError(
            f"the prior {prior!r} is not finite at {len(bad)} of {nodes.shape[0]} nodes, first at "
            f"x = {first!s:.120}; it must be finite on all of the training data: mend the "
            "function, or leave these samples out"
        )
    known = _backend.sparse_apply(occupations.weights, values) / scale
    return drift, replace(occupations, targets=occupations.targets - known)
