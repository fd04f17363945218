"""What rollouts are refined for: Err from observed starts, over that of the model at rest."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from vectorfield.shooting.adjoint import Tape, record
from vectorfield.shooting.adjustable import Adjustable
from vectorfield.shooting.windows import Windows

__all__ = ["Goal"]

ROUND = 1e-3  # of the mean null error: below it an error counts by its square
FAR = 5.0  # null errors beyond which an error counts by its logarithm
LOST = 1e3  # null errors at which a path has run away
FINEST = 8  # substeps
SETTLED = 0.01
TINY = 1e-150


@dataclass(frozen=True, eq=False)
class Goal:
    """J = sum_w rho(Err_w) / sum_w null_w over windows, with the exact derivative.

    Err_w = sqrt(sum_k (t_k - t_(k-1)) |weights (x_k - p_k)|^2) and null_w the same of x(t) = x(0).
    rho is the identity but at its ends: rho(E) = sqrt(E^2 + e^2) - e makes it smooth at zero, and
    from ``FAR`` null errors on it grows like the logarithm, so that no path decides alone. Where
    the error of a path passes ``LOST`` null errors it has run away: what it did until then counts,
    and what is left of its time counts as rho of these.

    Attributes:
        windows: from the longest to the shortest; see `ordered`.
        active: (L - 1,) how many windows take each step.
        weights: (d,) one over the units of errors.
        null, unit: (n,) null_w, and the same but for windows in which little happens.
    """

    windows: Windows
    active: np.ndarray
    weights: np.ndarray

    null: np.ndarray = field(init=False)
    unit: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        observed = self.windows.observed
        null = self.errors(np.broadcast_to(observed[:, :1], observed.shape))
        object.__setattr__(self, "null", null)
        object.__setattr__(self, "unit", np.maximum(np.maximum(null, null.mean()), TINY))

    def errors(self, paths: np.ndarray) -> np.ndarray:
        """Return Err of each window, (n,)."""
        gap = (paths - self.windows.observed)[:, 1:] * self.weights
        return np.asarray(np.sqrt(np.einsum("nkd,nkd,nk->n", gap, gap, self.windows.steps)))

    def record(self, flow: Adjustable, substeps: int) -> Tape:
        """Follow the flow from the observed starts."""
        return record(flow, self.windows.observed[:, 0], self.windows.steps, self.active, substeps)

    def value(self, paths: np.ndarray) -> float:
        """Return J."""
        return self.sloped(paths)[0]

    def sloped(self, paths: np.ndarray) -> tuple[float, np.ndarray]:
        """Return J and dJ / dx, (n, L, d); zero from where a path has run away."""
        steps = self.windows.steps
        with np.errstate(all="ignore"):
            gap = (paths - self.windows.observed)[:, 1:] * self.weights
            grown = np.cumsum(np.einsum("nkd,nkd->nk", gap, gap) * steps, axis=1)
            good = grown < (LOST * self.unit[:, None]) ** 2  # False where it is not a number
        errors = np.sqrt(np.max(np.where(good, grown, 0.0), axis=1))
        left = (steps * ~good).sum(axis=1) / steps.sum(axis=1)
        value, slope = self._counted(errors)
        worst, _ = self._counted(LOST * self.unit)
        slopes = np.zeros_like(paths)
        weight = slope[:, None] * steps
        slopes[:, 1:] = np.where(good[:, :, None], gap, 0.0) * self.weights * weight[:, :, None]
        total = max(float(self.null.sum()), TINY)
        return float((value + left * worst).sum()) / total, slopes / total

    def substeps(self, flow: Adjustable) -> int:
        """Halve the steps until J does not change by more than a hundredth."""
        count, value = 1, self.value(self.record(flow, 1).states)
        while count < FINEST:
            finer = self.value(self.record(flow, 2 * count).states)
            if abs(finer - value) <= SETTLED * abs(finer):
                break
            count, value = 2 * count, finer
        return count

    def _counted(self, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rho(E) and rho'(E) / E of each window, (n,)."""
        soft = ROUND * max(float(self.null.mean()), TINY)
        near = np.minimum(errors, FAR * self.unit)
        beyond = np.maximum(errors / (FAR * self.unit), 1.0)
        smooth = np.sqrt(near**2 + soft**2)
        return smooth - soft + near**2 / smooth * np.log(beyond), 1.0 / (smooth * beyond**2)
