"""`LinearPrior`: an affine field, fitted by ridge least squares to the observations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from vectorfield import _backend
from vectorfield._settings import check_real
from vectorfield.occupation import Occupations
from vectorfield.prior._base import Drift, Prior, spread_of, whitened
from vectorfield.trajectories import Trajectories

__all__ = ["AffineDrift", "LinearPrior"]

SAFE = 1e-8  # ridges from here on bound the condition number of the normal equations enough


@dataclass(frozen=True, eq=False)
class AffineDrift(Drift):
    """f0(x) = A (x - centre) + offset.

    Attributes:
        matrix: A, (d, d).
        centre, offset: (d,).

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> turn = np.array([[0.0, -1.0], [1.0, 0.0]])
        >>> vf.prior.AffineDrift(turn, np.zeros(2), np.zeros(2))(np.array([[1.0, 2.0]]))
        array([[-2.,  1.]])
    """

    matrix: Any
    centre: Any
    offset: Any

    def __call__(self, x: Any) -> Any:
        """Return f0(x). Cost O(n d^2)."""
        return (x - self.centre) @ self.matrix.T + self.offset

    def jacobian(self, x: Any) -> Any:
        """Return A for every point."""
        xp = _backend.namespace(x)
        d = self.matrix.shape[0]
        return xp.asarray(xp.broadcast_to(self.matrix[None, :, :], (x.shape[0], d, d)), copy=True)

    def describe(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the three arrays."""
        arrays = {"matrix": self.matrix, "centre": self.centre, "offset": self.offset}
        return {"kind": "affine"}, arrays

    @classmethod
    def restored(cls, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Self:
        """Return the drift that `describe` gave."""
        return cls(arrays["matrix"], arrays["centre"], arrays["offset"])

    def check(self, d: int) -> None:
        """Check shapes."""
        for name, shape in (("matrix", (d, d)), ("centre", (d,)), ("offset", (d,))):
            if getattr(self, name).shape != shape:
                raise ValueError(
                    f"{name} of the prior has shape {getattr(self, name).shape}, expected {shape}"
                )


@dataclass(frozen=True)
class LinearPrior(Prior):
    """f0(x) = A x + b, the affine field that explains the observations best.

    With states standardised to u = (x - m) / s, A and b minimise

        |Sigma^(-1/2) (W (U A~^T + 1 b~^T) - y~)|^2 + ridge N mean(h^2) |A~|^2,

    b~ without a penalty, h = W 1 the durations. The learned rest then holds only what is not
    linear, and far from the data f goes on linearly. Cost O(S d^2), memory O(S d).

    Args:
        ridge: >= 0, without units: the weight of |A~|^2 counted for each observation. 0 is plain
            least squares (the smallest solution where there are many).

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 6.0, 61)
        >>> circle = np.stack([np.cos(t), np.sin(t)], axis=1)
        >>> prior, rule = vf.prior.LinearPrior(ridge=0.0), vf.occupation.Lagrange(4)
        >>> model = vf.MOCK(vf.kernels.Gaussian(1.0), 1e-6, prior=prior, rule=rule).fit(circle, t)
        >>> model.predict([[0.0, 100.0]]).round(1) + 0.0  # far from all data
        array([[-100.,    0.]])
    """

    ridge: float = 1e-3

    def __post_init__(self) -> None:
        object.__setattr__(self, "ridge", check_real("ridge", self.ridge, at_least=0.0))

    def bind(
        self,
        trajectories: Trajectories,
        occupations: Occupations,
        *,
        covariance: sp.csr_array | None = None,
    ) -> AffineDrift:
        """Return the least-squares fit."""
        mean, scale = spread_of(trajectories)
        d, durations = occupations.d, occupations.durations
        nodes = (_backend.to_numpy(occupations.nodes) - mean) / scale
        columns = np.column_stack(
            [
                occupations.weights @ nodes,
                durations,
                _backend.to_numpy(occupations.targets) / scale,
            ]
        )
        columns = whitened(columns, covariance)
        design, targets = columns[:, : d + 1], columns[:, d + 1 :]
        weights = np.full(d + 1, self.ridge * len(durations) * np.mean(durations**2))
        weights[d] = 0.0  # none on the offset
        solution = _ridge_solution(design, targets, weights, well_posed=self.ridge >= SAFE)
        like = occupations.nodes
        return AffineDrift(
            matrix=_backend.array_like(scale[:, None] * solution[:d].T / scale, like),
            centre=_backend.array_like(mean, like),
            offset=_backend.array_like(scale * solution[d], like),
        )


def _ridge_solution(
    design: np.ndarray, targets: np.ndarray, weights: np.ndarray, *, well_posed: bool
) -> np.ndarray:
    """Return the minimiser c of |design c - targets|^2 + sum_i weights_i |c_i|^2.

    Normal equations, refined once, are matrix products; a pivoted QR takes ten times as long and
    is for systems that may be singular.
    """
    if not well_posed:
        design = np.concatenate([design, np.diag(np.sqrt(weights))])
        targets = np.concatenate([targets, np.zeros((len(weights), targets.shape[1]))])
        return np.asarray(scipy.linalg.lstsq(design, targets, lapack_driver="gelsy")[0])
    normal = design.T @ design
    normal[np.diag_indices_from(normal)] += weights
    factor = scipy.linalg.cho_factor(normal)
    value = scipy.linalg.cho_solve(factor, design.T @ targets)
    left = design.T @ (targets - design @ value) - weights[:, None] * value
    return np.asarray(value + scipy.linalg.cho_solve(factor, left))
