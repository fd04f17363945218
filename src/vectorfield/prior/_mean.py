"""`MeanReverting`: back to where the data are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from vectorfield import _backend
from vectorfield._settings import check_integer, check_real
from vectorfield.occupation import Occupations
from vectorfield.prior._base import Drift, Prior, spread_of, whitened
from vectorfield.trajectories import Trajectories

__all__ = ["KernelReversion", "MeanReversion", "MeanReverting"]

CELLS = 4_000_000  # numbers in a work array; larger sets of points are taken in pieces


@dataclass(frozen=True, eq=False)
class MeanReversion(Drift):
    """f0(x) = rate (centre - x).

    Attributes:
        rate: in 1 / time.
        centre: (d,).

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> vf.prior.MeanReversion(0.5, np.array([1.0, 0.0]))(np.array([[3.0, 2.0]]))
        array([[-1., -1.]])
    """

    rate: float
    centre: Any

    def __call__(self, x: Any) -> Any:
        """Return f0(x). Cost O(n d)."""
        return self.rate * (self.centre - x)

    def jacobian(self, x: Any) -> Any:
        """Return -rate I for every point."""
        xp = _backend.namespace(x)
        n, d = x.shape
        own = xp.eye(d, dtype=x.dtype, device=_backend.device(x))
        return xp.asarray(xp.broadcast_to(-self.rate * own, (n, d, d)), copy=True)

    def describe(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return rate and centre."""
        return {"kind": "mean-reversion", "rate": self.rate}, {"centre": self.centre}

    @classmethod
    def restored(cls, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Self:
        """Return the drift that `describe` gave."""
        return cls(check_real("rate", header["rate"], at_least=0.0), arrays["centre"])

    def check(self, d: int) -> None:
        """Check the shape of the centre."""
        if self.centre.shape != (d,):
            raise ValueError(f"centre of the prior has shape {self.centre.shape}, expected {(d,)}")


@dataclass(frozen=True, eq=False)
class KernelReversion(Drift):
    """f0(x) = rate (m(x) - x) with a local mean of points p_c.

    m(x) = sum_c v_c p_c, v_c ~ exp(-|(x - p_c) / lengths|^2 / 2), sum_c v_c = 1. The weights are
    those of a softmax, taken less their largest exponent: far from all points m is the point
    that is nearest, and nothing is divided by zero.

    Attributes:
        rate: in 1 / time.
        points: p, (c, d).
        lengths: (d,), the width of the average in each coordinate.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> drift = vf.prior.KernelReversion(1.0, np.array([[-1.0], [1.0]]), np.array([0.5]))
        >>> drift(np.array([[0.0], [3.0], [1e6]]))
        array([[ 0.00000e+00],
               [-2.00000e+00],
               [-9.99999e+05]])
    """

    rate: float
    points: Any
    lengths: Any

    def __call__(self, x: Any) -> Any:
        """Return f0(x). Cost O(n c d)."""
        xp = _backend.namespace(x)
        step = max(1, CELLS // self.points.shape[0])
        pieces = [x[i : i + step, :] for i in range(0, x.shape[0], step)]
        means = [self._weights(piece) @ self.points for piece in pieces]
        return self.rate * (xp.concat(means, axis=0) - x) if means else self.rate * x

    def jacobian(self, x: Any) -> Any:
        """Return rate (C(x) / lengths^2 - I), C the covariance of the points under v.

        Cost O(n c d^2).
        """
        xp = _backend.namespace(x)
        (n, d), count = x.shape, self.points.shape[0]
        value = xp.empty((n, d, d), dtype=x.dtype, device=_backend.device(x))
        own = xp.eye(d, dtype=x.dtype, device=_backend.device(x))
        step = max(1, CELLS // (count * d))
        for start in range(0, n, step):
            weights = self._weights(x[start : start + step, :])
            off = self.points[None, :, :] - (weights @ self.points)[:, None, :]
            spread = xp.matmul(xp.matrix_transpose(off), off * weights[:, :, None])
            value[start : start + step, :, :] = self.rate * (spread / self.lengths**2 - own)
        return value

    def pull(self, x: Any, v: Any) -> Any:
        """Return J(x)^T v, (n, d). Cost O(n c d)."""
        xp = _backend.namespace(x)
        step = max(1, CELLS // self.points.shape[0])
        found = []
        for start in range(0, x.shape[0], step):
            weights = self._weights(x[start : start + step, :])
            own = v[start : start + step, :]
            mean = weights @ self.points
            slopes = own @ self.points.T - xp.sum(own * mean, axis=1)[:, None]
            turned = (weights * slopes) @ (self.points - xp.mean(self.points, axis=0))
            found.append(self.rate * (turned / self.lengths**2 - own))
        return xp.concat(found, axis=0) if found else self.rate * v

    def _weights(self, x: Any) -> Any:
        """Return v, (n, c): |x|^2 is the same for all points and left out of the exponents."""
        xp = _backend.namespace(x)
        origin = xp.mean(self.points, axis=0)
        points = (self.points - origin) / self.lengths
        exponents = ((x - origin) / self.lengths) @ points.T
        exponents = exponents - 0.5 * xp.sum(points * points, axis=1)
        exponents = exponents - xp.max(exponents, axis=1, keepdims=True)
        weights = _backend.exp_inplace(exponents)
        return weights / xp.sum(weights, axis=1, keepdims=True)

    def describe(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return rate, points and lengths."""
        header = {"kind": "kernel-reversion", "rate": self.rate}
        return header, {"points": self.points, "lengths": self.lengths}

    @classmethod
    def restored(cls, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Self:
        """Return the drift that `describe` gave."""
        rate = check_real("rate", header["rate"], at_least=0.0)
        return cls(rate, arrays["points"], arrays["lengths"])

    def check(self, d: int) -> None:
        """Check shapes, and that lengths are positive."""
        if self.points.ndim != 2 or self.points.shape[0] == 0 or self.points.shape[1] != d:
            raise ValueError(
                f"points of the prior have shape {self.points.shape}, expected (c, {d}) with c >= 1"
            )
        if self.lengths.shape != (d,) or not (_backend.to_numpy(self.lengths) > 0).all():
            raise ValueError(f"lengths of the prior must be {d} positive numbers")


@dataclass(frozen=True)
class MeanReverting(Prior):
    """f0(x) = rate (m(x) - x): far from the data the state returns to them.

    A kernel's field vanishes where there are no data, and a simulation that leaves them stands
    still or drifts on. With this prior it comes back. m is the mean of the training states, or,
    with a ``width``, their average around x with Gaussian weights (Nadaraya and Watson), which
    follows a bent cloud of data and does little inside it.

    Args:
        rate: in 1 / time, >= 0. None fits it by least squares to the observations, all
            features in units of their standard deviations, and takes 0 where it would be
            negative (the data then leave their mean, and there is no prior). Data that circle for
            long within bounds go away from their mean as often as back, and the fitted rate is
            close to zero: give one, such as the inverse of the time in which the states change.
        width: None for the mean of all; else the width of the weights, in standard deviations of
            each feature.
        count: with a width, the most training states that are averaged; a random choice of them.
        random_state: seed of this choice.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 3.0, 40)
        >>> prior = vf.prior.MeanReverting(rate=1.0)
        >>> model = vf.MOCK(vf.kernels.Gaussian(1.0), 1e-6, prior=prior).fit(np.exp(-t)[:, None], t)
        >>> model.predict([[50.0]]).round(1)  # from far away, towards the mean 0.32
        array([[-49.7]])
    """

    rate: float | None = None
    width: float | None = None
    count: int = 1000
    random_state: int = 0

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "count": check_integer("count", self.count, at_least=1),
            "random_state": check_integer("random_state", self.random_state, at_least=0),
        }
        if self.rate is not None:
            checked["rate"] = check_real("rate", self.rate, at_least=0.0)
        if self.width is not None:
            checked["width"] = check_real("width", self.width, above=0.0)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def bind(
        self,
        trajectories: Trajectories,
        occupations: Occupations,
        *,
        covariance: sp.csr_array | None = None,
    ) -> Drift:
        """Return the drift, its rate fitted if none is set. Cost O(Q c d)."""
        mean, scale = spread_of(trajectories)
        unit = self._drift(1.0, trajectories, mean, scale)
        rate = self.rate
        if rate is None:
            pull = _backend.sparse_apply(occupations.weights, unit(occupations.nodes))
            both = np.column_stack(
                [_backend.to_numpy(a) / scale for a in (pull, occupations.targets)]
            )
            u, y = np.split(whitened(both, covariance), 2, axis=1)
            size = float(np.sum(u * u))
            rate = max(0.0, float(np.sum(u * y)) / size) if size > 0 else 0.0
        return self._drift(rate, trajectories, mean, scale)

    def _drift(
        self, rate: float, trajectories: Trajectories, mean: np.ndarray, scale: np.ndarray
    ) -> Drift:
        states = trajectories.states
        if self.width is None:
            return MeanReversion(rate, _backend.array_like(mean, states))
        total = states.shape[0]
        if total > self.count:
            rng = np.random.default_rng(self.random_state)
            rows = np.sort(rng.choice(total, size=self.count, replace=False))
            states = states[_backend.index(rows, states), :]
        return KernelReversion(rate, states, _backend.array_like(self.width * scale, states))
