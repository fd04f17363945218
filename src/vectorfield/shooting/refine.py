"""Fits of whole windows of trajectories, by Gauss-Newton from a regression's field.

Regression on increments takes the field at observed states. Where these are noisy the noise is
in both sides of the equation, and what is learned is biased. Here the paths of the field itself
are compared with the samples, each window from a start of its own that is estimated along:

    minimise over c and the starts   sum |x_k(c, start) - z_k|^2 / s^2 + ridge N |c|^2,

s the noise of each feature. Linearised at the current paths the states move with the field by
x_k -> x_k + sum_j M(t_k, s_j) w_j df(x(s_j)): linear functionals of the change of f, as in every
other loss, with the propagators M of the flow for weights. Each step is such a regression.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from vectorfield import _backend
from vectorfield._errors import DataError
from vectorfield._progress import report
from vectorfield._settings import check_integer, check_real
from vectorfield.kernels.expansion import Expansion, FeatureExpansion
from vectorfield.shooting.normal import System, assemble, best_shift, factor
from vectorfield.shooting.paths import Flow, follow
from vectorfield.shooting.refinement import Refinement
from vectorfield.shooting.windows import Windows, cut
from vectorfield.trajectories import Trajectories

__all__ = ["Refined", "Shooting"]

FIRST = 10  # samples in the first windows; longer ones begin where shorter ones ended
GROWTH = 3
FINEST = 8  # substeps between samples
DAMPINGS = 8
NARROWEST = 1e-3  # the least noise of a feature beside the mean of all


@dataclass(frozen=True, eq=False)
class Refined:
    """What `Shooting` gives.

    Attributes:
        expansion: the field.
        states: (P, d) the estimated states at the samples, without their noise.
        noise: (d,) the estimated standard deviation of the noise of each feature.
        shift: ridge N.
        misfit: sum of the squared residuals over s^2, by the number of samples and features less
            those of starts and coefficients: near 1 by construction of s.
        freedom: effective number of coefficients, tr (H + ridge N I)^-1 H.
        history: the objective after each accepted step, from the regression's field on.
        converged: whether it settled within the iterations.
    """

    expansion: Expansion
    states: np.ndarray
    noise: np.ndarray
    shift: float
    misfit: float
    freedom: float
    history: tuple[float, ...]
    converged: bool


@dataclass(frozen=True)
class Shooting(Refinement):
    """Refine a fit by whole windows of trajectories; see the module for the loss.

    Needs features (an explicit kernel): each step is a system in all P = q d coefficients, which
    costs O(M d P^2) for M samples, so that a few thousand coefficients are the limit.

    Args:
        samples: the most samples in a window; None for whole trajectories. Longer windows use
            the data better until errors grow along them, as in chaotic flows.
        iterations: the most steps for each length of window.
        tolerance: stop where a step lowers the objective by less than this part of it.
        ridge: that of this fit, which the noise of the samples asks for; None for that of the
            regression from which it starts.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t, rng = np.linspace(0.0, 6.0, 61), np.random.default_rng(0)
        >>> truth = [r * np.stack([np.cos(t), -np.sin(t)], axis=1) for r in (0.5, 1.0, 1.5)]
        >>> noisy = [x + 0.05 * rng.normal(size=x.shape) for x in truth]
        >>> kernel, x = vf.kernels.Monomials(1), np.concatenate(truth)
        >>> noise = vf.occupation.SnapshotNoise()
        >>> plain = vf.MOCK(kernel, 1e-9, noise=noise).fit(noisy, t)
        >>> better = vf.MOCK(kernel, 1e-9, noise=noise, refine=vf.Shooting()).fit(noisy, t)
        >>> exact = np.stack([x[:, 1], -x[:, 0]], axis=1)
        >>> before, after = (np.abs(m.predict(x) - exact).max() for m in (plain, better))
        >>> bool(after < before)
        True
    """

    samples: int | None = 20
    iterations: int = 12
    tolerance: float = 1e-4
    ridge: float | None = None

    def __post_init__(self) -> None:
        if self.ridge is not None:
            check_real("ridge", self.ridge, above=0.0)
        if self.samples is not None:
            check_integer("samples", self.samples, at_least=2)
        check_integer("iterations", self.iterations, at_least=1)
        check_real("tolerance", self.tolerance, above=0.0)

    def shift(self, ridge: float, count: int) -> float:
        """Return that of its own ridge, if it has one."""
        return (ridge if self.ridge is None else self.ridge) * count

    def __call__(
        self,
        expansion: Expansion,
        trajectories: Trajectories,
        shift: float,
        drift: Flow | None = None,
        *,
        choose: bool = False,
    ) -> Refined:
        """Refine the field of ``expansion`` on trajectories in its coordinates.

        ``shift`` is ridge N, with ``choose`` only the first one: then each step goes on with that
        of the highest marginal likelihood (see `best_shift`). ``drift`` is a known part of the
        field, which is not changed.
        """
        if not isinstance(expansion, FeatureExpansion):
            raise DataError(
                "Shooting needs a kernel with features, got "
                f"{type(expansion.kernel).__name__}; take vf.kernels.Nystrom(kernel)"
            )
        if not _backend.is_numpy(trajectories.states):
            raise DataError("Shooting runs on NumPy arrays; pass the states as such")
        state = _State(expansion, trajectories, shift, drift, choose)
        lengths = self._schedule(trajectories)
        for stage, samples in enumerate(lengths):
            state.enter(cut(trajectories, samples))
            for step in range(self.iterations):
                report("shooting", (stage + step / self.iterations) / len(lengths))
                if not state.step(self.tolerance) and not state.sharpen():
                    break
        return state.result()

    def _schedule(self, trajectories: Trajectories) -> list[int | None]:
        longest = int(trajectories.lengths.max())
        final = longest if self.samples is None else min(self.samples, longest)
        lengths: list[int | None] = []
        size = FIRST
        while size < final:
            lengths.append(size)
            size *= GROWTH
        return [*lengths, None if self.samples is None else final]


class _Flow:
    """The field of the current coefficients, with the known part if there is one."""

    def __init__(self, expansion: FeatureExpansion, drift: Flow | None) -> None:
        self._expansion, self._drift = expansion, drift

    def __call__(self, x: Any) -> Any:
        value = self._expansion(x)
        return value if self._drift is None else value + self._drift(x)

    def jacobian(self, x: Any) -> Any:
        value = self._expansion.jacobian(x)
        return value if self._drift is None else value + self._drift.jacobian(x)


class _State:
    """Coefficients, starts and weights as they are improved."""

    def __init__(
        self,
        expansion: FeatureExpansion,
        trajectories: Trajectories,
        shift: float,
        drift: Flow | None,
        choose: bool,
    ) -> None:
        self._expansion, self._shift, self._drift = expansion, shift, drift
        self._choose = choose
        self._samples = len(trajectories.states)
        self._states = np.array(trajectories.states)
        self._weights = np.ones(trajectories.d)
        self._damping = 0.0
        self._system: System | None = None
        self._history: list[float] = []
        self._converged = False
        self._substeps = 1

    def enter(self, windows: Windows) -> None:
        """Go on with other windows, from the states that the last ones left."""
        self._windows = windows
        self._starts = windows.gathered(self._states)[:, 0]
        self._damping = 0.0
        self._substeps = 1
        self._paths = self._follow(self._expansion, self._starts)
        self.sharpen()
        self._weigh()

    def step(self, tolerance: float) -> bool:
        """Take a damped Gauss-Newton step; return whether another one may pay."""
        before = self._objective(self._expansion, self._paths)
        if not np.isfinite(before):
            return False
        if not self._history:
            self._history.append(before)
        self._system = system = assemble(
            self._flow(self._expansion),
            self._expansion.features,
            self._windows,
            self._starts,
            weights=self._weights,
            substeps=self._substeps,
        )
        current = self._expansion.coefficients
        flat = current.T.reshape(-1) if current.ndim == 2 else current
        if self._choose and self._damping <= self._shift:  # near enough for a linear model
            count = (self._windows.count - len(self._windows)) * len(self._weights)
            self._shift = best_shift(system, flat, count, self._shift)
            before = self._objective(self._expansion, self._paths)
        for _ in range(DAMPINGS):
            lower = factor(system.matrix, self._shift + self._damping)
            if lower is not None:
                change = scipy.linalg.cho_solve((lower, True), system.rhs - self._shift * flat)
                trial = replace(self._expansion, coefficients=_shaped(flat + change, current))
                starts = self._starts + system.starts(change)
                paths = self._follow(trial, starts)
                after = self._objective(trial, paths)
                if after < before:
                    self._damping /= 10.0
                    self._expansion, self._starts, self._paths = trial, starts, paths
                    self._history.append(after)
                    self._states = self._windows.merged(paths, self._samples)
                    self._weigh()
                    self._converged = before - after <= tolerance * before
                    return not self._converged
            self._damping = max(10.0 * self._damping, 10.0 * self._shift)
        self._converged = True  # no step lowers it: a minimum to rounding
        return False

    def result(self) -> Refined:
        """Return the field and what was found along."""
        squares, samples = self._squares(self._paths), self._windows.count
        freedom = 0.0
        if self._system is not None:
            matrix = self._system.matrix
            lower = factor(matrix, self._shift)
            if lower is not None:
                inverse = scipy.linalg.cho_solve((lower, True), np.eye(len(matrix)))
                freedom = len(matrix) - self._shift * float(np.trace(inverse))
        d = self._states.shape[1]
        left = max(1.0, samples - len(self._windows) - freedom / d)
        noise = np.sqrt(squares / left)
        misfit = float((squares * self._weights**2).sum() / (left * d))
        return Refined(
            self._expansion,
            self._states,
            noise,
            self._shift,
            misfit,
            freedom,
            tuple(self._history),
            self._converged,
        )

    def _flow(self, expansion: FeatureExpansion) -> _Flow:
        return _Flow(expansion, self._drift)

    def _follow(self, expansion: FeatureExpansion, starts: np.ndarray) -> np.ndarray:
        return follow(self._flow(expansion), starts, self._windows.steps, self._substeps)

    def _squares(self, paths: np.ndarray) -> np.ndarray:
        """Return the sums of squared residuals of each feature, (d,)."""
        with np.errstate(all="ignore"):
            error = (paths - self._windows.observed) * self._windows.present[:, :, None]
            return np.asarray(np.einsum("nkd,nkd->d", error, error))

    def _objective(self, expansion: FeatureExpansion, paths: np.ndarray) -> float:
        size = float(np.sum(expansion.coefficients**2))
        value = float((self._squares(paths) * self._weights**2).sum()) + self._shift * size
        return value if np.isfinite(value) else float("inf")

    def _weigh(self) -> None:
        """Set the weights to the inverse of the residuals, their geometric mean to 1."""
        rms = np.sqrt(self._squares(self._paths) / max(1, self._windows.count))
        if not np.isfinite(rms).all() or not (rms > 0).any():
            return
        rms = np.maximum(rms, NARROWEST * rms.max())
        self._weights = np.exp(np.mean(np.log(rms))) / rms

    def sharpen(self) -> bool:
        """Halve the steps until paths move by a tenth of the residuals; whether any was halved."""
        before = self._substeps
        while self._substeps < FINEST:
            residuals = np.sqrt(self._squares(self._paths))
            self._substeps *= 2
            finer = self._follow(self._expansion, self._starts)
            present = self._windows.present[:, :, None]
            with np.errstate(all="ignore"):
                change = np.sqrt((((finer - self._paths) * present) ** 2).sum(axis=(0, 1)))
            if np.isfinite(self._paths).all() and (change <= 0.1 * residuals).all():
                self._substeps //= 2
                break
            self._paths = finer
        return self._substeps > before


def _shaped(flat: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return coefficients of that shape from the vector of them, output by output."""
    return flat.reshape(like.shape[::-1]).T if like.ndim == 2 else flat
