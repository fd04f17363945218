"""A plan: every choice of a fit as one value, and what comes of it on trajectories."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp

from vectorfield import _backend
from vectorfield._errors import SolveError
from vectorfield._settings import Settings, check_real
from vectorfield.blend import Blend, mix
from vectorfield.field import VectorField
from vectorfield.kernels import Gaussian, OperatorKernel, ScalarKernel, Separable
from vectorfield.linalg import Problem, Regression, Solver, prepare
from vectorfield.occupation import Noise, Occupations, Rule, Trapezoid, White
from vectorfield.prior import Drift, Prior, centred
from vectorfield.robust import Huber
from vectorfield.shooting import Flow, Outcome, Refinement
from vectorfield.shooting.adjustable import pulled_by
from vectorfield.smoothing import Smoothed, Smoother
from vectorfield.trajectories import Trajectories

__all__ = ["Fitted", "Plan", "Prepared", "as_operator"]

RELATIVE_RIDGE = 1e-3


@dataclass(frozen=True)
class Plan(Settings):
    """How a field is learned, nothing left to choose but what the data gives by a formula.

    The parts are those of `MOCK`, which makes a plan of its settings, or has a search choose one.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 3.0, 40)
        >>> data = vf.Trajectories.from_arrays([np.exp(-t)[:, None]], t)
        >>> plan = vf.Plan(vf.kernels.Gaussian(2.0), 1e-8, rule=vf.occupation.Lagrange(4))
        >>> plan.fit(data).field([[0.5]]).round(3)
        array([[-0.5]])
    """

    kernel: ScalarKernel | OperatorKernel = field(default_factory=Gaussian)
    ridge: float | None = None
    rule: Rule = field(default_factory=Trapezoid)
    noise: Noise = field(default_factory=White)
    prior: Prior | None = None
    smoother: Smoother | None = None
    refine: Refinement | None = None
    robust: Huber | None = None
    standardize: bool = True
    solver: Solver | None = None
    blend: Blend | None = None

    def __post_init__(self) -> None:
        as_operator(self.kernel)
        for name, kind, optional in (
            ("rule", Rule, False),
            ("noise", Noise, False),
            ("prior", Prior, True),
            ("smoother", Smoother, True),
            ("refine", Refinement, True),
            ("robust", Huber, True),
            ("solver", Solver, True),
            ("blend", Blend, True),
        ):
            value = getattr(self, name)
            if not isinstance(value, kind) and not (optional and value is None):
                raise TypeError(
                    f"{name} must be a {kind.__name__} such as those in vf, got {value!r}"
                )
        if self.ridge is not None:
            check_real("ridge", self.ridge, above=0.0)
        if not isinstance(self.standardize, (bool, np.bool_)):
            raise TypeError(f"standardize must be True or False, got {self.standardize!r}")

    def prepare(self, trajectories: Trajectories) -> Prepared:
        """Do what does not depend on the ridge."""
        observed = trajectories
        smoothed = None if self.smoother is None else self.smoother(trajectories)
        if smoothed is not None:
            trajectories = smoothed.trajectories
        operator = as_operator(self.kernel)
        shift, scale = self._standardisation(operator, trajectories.states)
        scaled = dataclasses.replace(trajectories, states=(trajectories.states - shift) / scale)
        occupations = self.rule(scaled)
        covariance = self.noise.covariance(occupations)
        drift = None
        if self.prior is not None:
            drift, occupations = centred(
                self.prior,
                trajectories,
                occupations,
                shift=shift,
                scale=scale,
                covariance=covariance,
            )
        kernel = operator.resolved(occupations.nodes)
        return Prepared(
            self, observed, smoothed, occupations, covariance, kernel, drift, shift, scale
        )

    def fit(self, trajectories: Trajectories) -> Fitted:
        """Learn the field; SolveError where the linear system cannot be solved."""
        prepared = self.prepare(trajectories)
        ridge = prepared.default_ridge() if self.ridge is None else float(self.ridge)
        return prepared.solve(ridge)

    def _standardisation(self, kernel: OperatorKernel, states: Any) -> tuple[Any, Any]:
        xp = _backend.namespace(states)
        if not self.standardize:
            return xp.zeros_like(states[0, :]), xp.ones_like(states[0, :])
        shift = xp.mean(states, axis=0)
        spread = xp.std(states, axis=0)
        size = xp.max(xp.abs(states), axis=0)
        constant = spread <= 1e-12 * size  # rounding alone
        return kernel.standardisation(shift, xp.where(constant, xp.ones_like(spread), spread))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A learned field and what was found on the way.

    Attributes:
        field: the `VectorField`.
        kernel, ridge: those used, nothing left open.
        norm: |g| in the kernel's space.
        residuals: y - L f, (S, d), in the units of the data.
        weights: (S,) those of the robust fit, 1 elsewhere.
        regression: the linear fit, before any refinement; its solution says how well it went.
        smoothed: what the smoother made of the trajectories; None without.
        refined: what the refinement found (`Refined`, `RolledOut`), in standardised coordinates;
            None without.
        others: the fits of the plans of a `Blend`. The field and the residuals are those of the
            blend then, all the rest of the plan's own part.
    """

    field: VectorField
    kernel: OperatorKernel
    ridge: float
    norm: float
    residuals: Any
    weights: np.ndarray
    regression: Regression
    smoothed: Smoothed | None
    refined: Outcome | None
    others: tuple[Fitted, ...] = ()


@dataclass(frozen=True, eq=False)
class Prepared:
    """A plan on trajectories, ready for any ridge.

    Attributes:
        plan: the plan.
        observed: the trajectories, in the units of the data.
        smoothed: what the smoother made of them.
        occupations: the observations, the prior taken out.
        covariance: Sigma.
        kernel: nothing left open.
        drift: the prior, bound; in the units of the data.
        shift, scale: (d,).
    """

    plan: Plan
    observed: Trajectories
    smoothed: Smoothed | None
    occupations: Occupations
    covariance: sp.csr_array
    kernel: OperatorKernel
    drift: Drift | None
    shift: Any
    scale: Any

    @cached_property
    def problem(self) -> Problem:
        """The linear system but for its ridge; made when first asked for."""
        return prepare(
            self.kernel, self.occupations, covariance=self.covariance, solver=self.plan.solver
        )

    @property
    def known(self) -> ScaledDrift | None:
        """The prior in the coordinates of the fit."""
        return None if self.drift is None else ScaledDrift(self.drift, self.shift, self.scale)

    @property
    def scaled(self) -> Trajectories:
        """The observed trajectories in the coordinates of the fit."""
        states = (self.observed.states - self.shift) / self.scale
        return dataclasses.replace(self.observed, states=states)

    def default_ridge(self) -> float:
        """Return 1e-3 mean(h^2) mean k(z, z) / N with h the durations of the observations."""
        size = self.kernel.size(self.occupations.nodes) or 1.0  # 0: nothing moves under Linear()
        durations = float(np.mean(self.occupations.durations**2))
        return RELATIVE_RIDGE * size * durations / len(self.occupations)

    def path(self, ridges: Iterable[float]) -> Iterator[Regression]:
        """Yield the linear fits, neither robust nor refined, for many ridges."""
        return self.problem.path(ridges)

    def solve(self, ridge: float, *, choose: bool = False) -> Fitted:
        """Fit for a ridge, with all that the plan asks for.

        With ``choose`` a refinement goes on to the ridge of the highest marginal likelihood.
        """
        plan, weights = self.plan, np.ones(len(self.occupations))
        info: dict[str, Any] = {
            "ridge": ridge,
            "rule": repr(plan.rule),
            "noise": repr(plan.noise),
            "observations": len(self.occupations),
        }
        if plan.robust is None:
            regression = self.problem.solve(ridge)
        else:
            robust = plan.robust.regress(
                self.kernel,
                self.occupations,
                ridge=ridge,
                covariance=self.covariance,
                solver=plan.solver,
            )
            regression, weights = robust.regression, robust.weights
            info |= {"robust": repr(plan.robust), "rounds": robust.rounds}
            info |= {"settled": robust.settled}
        if regression.expansion is None or not regression.solution.status.ok:
            raise SolveError(
                f"the fit of {len(self.occupations)} observations failed: "
                f"{regression.solution.detail}",
                regression.solution,
            )
        if plan.prior is not None:
            info["prior"] = repr(plan.prior)
        if plan.smoother is not None:
            info["smoother"] = repr(plan.smoother)
        expansion, norm, residuals = regression.expansion, regression.norm, regression.residuals
        refined = None
        if plan.refine is not None:
            shift = plan.refine.shift(ridge, len(self.occupations))
            refined = plan.refine(expansion, self.scaled, shift, self.known, choose=choose)
            if refined.expansion is not expansion:
                expansion = refined.expansion
                norm = expansion.norm
                values = expansion(self.occupations.nodes)
                fitted = _backend.sparse_apply(self.occupations.weights, values)
                residuals = self.occupations.targets - fitted
            info |= {"refine": repr(plan.refine), "settled": refined.converged}
        learned = self.field(expansion, info)
        others: tuple[Fitted, ...] = ()
        if plan.blend is not None:
            others = tuple(other.fit(self.observed) for other in plan.blend.plans)
            shares = (plan.blend.own, *plan.blend.weights)
            learned = mix([learned, *(other.field for other in others)], shares)
            residuals = self._residuals(learned)
        return Fitted(
            learned,
            self.kernel,
            ridge,
            norm,
            residuals * self.scale,
            weights,
            regression,
            self.smoothed,
            refined,
            others,
        )

    def _residuals(self, field: VectorField) -> Any:
        """Return y - L f for any field, in standardised coordinates."""
        nodes = self.occupations.nodes
        values = field(nodes * self.scale + self.shift) / self.scale
        if self.known is not None:
            values = values - self.known(nodes)  # which has been taken out of the targets
        fitted = _backend.sparse_apply(self.occupations.weights, values)
        return self.occupations.targets - fitted

    def field(self, expansion: Any, info: dict[str, Any] | None = None) -> VectorField:
        """Return an expansion of this fit as a field in the units of the data."""
        return VectorField(
            expansion=expansion,
            shift=self.shift,
            scale=self.scale,
            feature_names=self.observed.feature_names,
            info=MappingProxyType(info or {}),
            prior=self.drift,
        )


class ScaledDrift:
    """A drift or field in standardised coordinates: u -> f0(shift + scale u) / scale."""

    def __init__(self, drift: Flow, shift: Any, scale: Any) -> None:
        self._drift, self._shift, self._scale = drift, shift, scale

    def __call__(self, x: Any) -> Any:
        """Return the value, (n, d)."""
        return self._drift(x * self._scale + self._shift) / self._scale

    def jacobian(self, x: Any) -> Any:
        """Return the Jacobian, (n, d, d)."""
        value = self._drift.jacobian(x * self._scale + self._shift)
        return value * self._scale[None, None, :] / self._scale[None, :, None]

    def pull(self, x: Any, v: Any) -> Any:
        """Return J(x)^T v, (n, d)."""
        return pulled_by(self._drift, x * self._scale + self._shift, v / self._scale) * self._scale


def as_operator(kernel: Any) -> OperatorKernel:
    """Return an operator-valued kernel; a scalar one is taken for every coordinate."""
    if isinstance(kernel, OperatorKernel):
        return kernel
    if isinstance(kernel, ScalarKernel):
        return Separable(kernel)
    raise TypeError(f"kernel must be a kernel such as vf.kernels.Gaussian(), got {kernel!r}")
