"""`MOCK`: the estimator that users meet."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from vectorfield import _backend
from vectorfield._errors import DataError, SolveError, SolveWarning
from vectorfield._intake import is_frame
from vectorfield.kernels import Gaussian, OperatorKernel, ScalarKernel
from vectorfield.linalg import Solver, Status
from vectorfield.metrics import evaluate
from vectorfield.occupation import Noise, Rule, Trapezoid, White
from vectorfield.plan import Fitted, Plan
from vectorfield.prior import Prior
from vectorfield.robust import Huber
from vectorfield.shooting import Shooting
from vectorfield.simulate import rollout, simulate
from vectorfield.smoothing import Smoother
from vectorfield.structure import (
    Dependencies,
    Structure,
    check_width,
    on_inputs,
    sparse_plan,
)
from vectorfield.tables import states_from_frame
from vectorfield.trajectories import Trajectories, as_trajectories
from vectorfield.tuning import Search

__all__ = ["MOCK"]


class MOCK(BaseEstimator):  # type: ignore[misc]
    """Learn f in dx/dt = f(x) from trajectories, by regression on occupation kernels.

    f minimises |Sigma^(-1/2) (L f - y)|^2 + ridge N |f|^2 over the space of the kernel, where the
    N rows of L are integrals of f along stretches of the data (the *rule* says which), y the
    increments over them and Sigma the metric of the *noise*. The minimiser is
    f = sum_p K(., z_p) (W^T a)_p with (W G W^T + ridge N Sigma) a = y. Cost: O(N^2 d) for the
    matrix, N^3 / 3 for one factorisation that serves all d coordinates, O(N^2 d) to solve; memory
    one N x N matrix.

    Settings are taken as given, unless there is a ``search`` for those left out.

    Args:
        kernel: a scalar kernel, or an operator-valued one such as `Separable`. By default
            `Gaussian`; a length scale of None is the median distance of the training nodes.
            Length scales are in units of the standardised coordinates.
        ridge: lambda > 0. By default 1e-3 mean(h^2) mean k(z, z) / N with h the durations of the
            observations, which does not depend on the units of time or state.
        rule: how integrals are approximated: the paper's `Trapezoid` by default; `Lagrange` is
            far more accurate where snapshots are clean and steps even.
        noise: the metric of the loss, `White` (the paper's) by default; `SnapshotNoise` is right
            where measurement noise dominates.
        standardize: subtract each feature's training mean and divide by its standard deviation
            before fitting (undone in all results; constant features are only centred).
        solver: settings of the linear solver; by default the best for the kernel and the size.
        prior: f0 of `vectorfield.prior`, towards which the ridge shrinks f; zero by default. Then
            g = f - f0 is fitted to y - L f0, and what the kernel guarantees holds for g.
        robust: `Huber` for data with outliers; all observations count in full by default.
        refine: `Shooting` for noisy snapshots: the fit goes on with whole windows of the
            trajectories, whose states are estimated along; for kernels with features.
        structure: which coordinates each output depends on, for kernels that are put on each
            output's own inputs (`SparseKernel`, `SparseFeatures`): a (d, d) matrix, dense or SciPy
            sparse, not zero at [i, j] where f_i depends on x_j; or `Structure`, to have it found,
            and what is left out of kernel, ridge, rule, noise and smoother chosen for it on
            held-out trajectories; or the `Dependencies` that were found before. Every output
            depends on all coordinates by default.
        search: `Search`, to have all that is None chosen on held-out trajectories; without it
            what is left out has the defaults named here.
        smoother: `SplineSmoother` to fit to smoothed states; none by default.

    Attributes:
        field_: the learned `VectorField`.
        kernel_, ridge_: those used, nothing left open.
        rkhs_norm_: |f|, with a prior |g|, in the kernel's space (in standardised coordinates).
        residuals_: y - L f, (N, d), in the units of the data.
        observation_weights_: (N,) those of the `Huber` fit, 1 for observations taken in full.
        smoothed_, noise_: with ``smoother`` or ``refine`` the states without their noise
            (`Trajectories`) and its standard deviation (d,).
        refined_: with ``refine``, how that went.
        report_: with ``search``, what was tried and chosen (`Report`); ``report_.best.plan`` has
            every setting.
        solution_: the linear solve: status, residual, seconds of each stage.
        n_features_in_, feature_names_in_: the coordinates.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 6.0, 61)
        >>> circle = np.stack([np.cos(t), np.sin(t)], axis=1)  # dx/dt = -y, dy/dt = x
        >>> rule = vf.occupation.Lagrange(samples=4)
        >>> model = vf.MOCK(vf.kernels.Linear(), 1e-12, rule=rule, standardize=False).fit(circle, t)
        >>> model.predict(np.array([[0.0, 2.0]])).round(3)
        array([[-2., 0.]])
        >>> model.simulate(np.array([1.0, 0.0]), np.array([0.0, np.pi / 3])).round(3)
        array([[1.   , 0.   ],
               [0.5  , 0.866]])
    """

    def __init__(
        self,
        kernel: ScalarKernel | OperatorKernel | None = None,
        ridge: float | None = None,
        *,
        rule: Rule | None = None,
        noise: Noise | None = None,
        standardize: bool = True,
        solver: Solver | None = None,
        prior: Prior | None = None,
        robust: Huber | None = None,
        refine: Shooting | None = None,
        smoother: Smoother | None = None,
        structure: Any = None,
        search: Search | None = None,
    ) -> None:
        self.kernel = kernel
        self.ridge = ridge
        self.rule = rule
        self.noise = noise
        self.standardize = standardize
        self.solver = solver
        self.prior = prior
        self.robust = robust
        self.refine = refine
        self.smoother = smoother
        self.structure = structure
        self.search = search

    def fit(self, x: Any, t: Any = None, *, validation: Any = None) -> Self:
        """Fit to trajectories.

        Args:
            x: one (n, d) array, a list of (n_i, d) arrays, a `Trajectories`, or a long table with
                columns ``trajectory``, ``time`` and the features.
            t: for arrays: the step, one array of times, or a list of them.
            validation: trajectories on which a search judges; a `Trajectories`, a table, or a pair
                of such states and times. Without any it holds out some of the others.

        Raises:
            DataError: the data cannot be used; the message names trajectory, row and remedy.
            SolveWarning: (a warning) the system was close to singular.
            SolveError: the linear system could not be solved; the message gives the condition and
                the remedy, its ``solution`` the figures.
        """
        plan = self._plan()
        trajectories = as_trajectories(x, t)
        for name in (
            "field_",
            "report_",
            "structure_",
        ):  # a fit that fails leaves none, not that of older data
            self.__dict__.pop(name, None)
        if self.search is not None and self.structure is not None:
            raise ValueError(
                "structure and search choose the same settings: pass one of them; "
                "structure=vf.Structure(known=matrix) chooses kernel and ridge for a given matrix"
            )
        if self.search is None and validation is not None:
            raise ValueError(
                "validation trajectories are for a search: pass search=vf.Search(), or leave them "
                "out"
            )
        if self.search is not None:
            held = None if validation is None else _as_validation(validation)
            self.report_ = self.search(plan, self._left_open(), trajectories, held)
            plan = self.report_.best.plan
        if self.structure is not None:
            plan = self._sparse(plan, trajectories)
        try:
            fitted = plan.fit(trajectories)
        except SolveError as error:
            self.solution_ = error.solution
            raise
        self.field_ = fitted.field
        self.solution_ = fitted.regression.solution
        if self.solution_.status is Status.ILL_CONDITIONED and self.search is None:
            warnings.warn(self.solution_.detail, SolveWarning, stacklevel=2)  # else it was judged
        self.kernel_, self.ridge_ = fitted.kernel, fitted.ridge
        self.rkhs_norm_ = fitted.norm
        self.observation_weights_ = fitted.weights
        self.residuals_ = fitted.residuals
        self._keep_states(fitted, trajectories)
        self.n_features_in_ = trajectories.d
        self.feature_names_in_ = np.asarray(trajectories.feature_names, dtype=object)
        return self

    def predict(self, x: Any) -> Any:
        """Return f(x): (n, d) -> (n, d). A table is read by its columns' names. Cost O(n N d)."""
        check_is_fitted(self, "field_")
        states = states_from_frame(x, self.field_.feature_names) if is_frame(x) else x
        points = self.field_.as_states(states)
        xp = _backend.namespace(points)
        if not bool(xp.all(xp.isfinite(points))):
            raise DataError(
                "states hold values that are not finite; fill them in or leave them out"
            )
        return self.field_(points)

    def potential(self, x: Any) -> Any:
        """Return V(x), (n,), where f = -grad V; see `VectorField.potential`."""
        check_is_fitted(self, "field_")
        return self.field_.potential(x)

    def hamiltonian(self, x: Any) -> Any:
        """Return H(x), (n,), where f = J grad H; see `VectorField.hamiltonian`."""
        check_is_fitted(self, "field_")
        return self.field_.hamiltonian(x)

    def simulate(self, x0: Any, t: Any, **options: Any) -> Any:
        """Return the states at times t of dx/dt = f(x), x(t_0) = x0.

        ``x0`` (d,) gives (len(t), d); a batch (b, d) gives (b, len(t), d). Where a start stops
        early its states are NaN from there and a `SimulationWarning` says why;
        ``on_failure="raise"`` raises instead. All options of `vectorfield.simulate` are taken;
        call that with ``model.field_`` for the statuses too.
        """
        check_is_fitted(self, "field_")
        return simulate(self.field_, x0, t, **options).x

    def score(self, x: Any, t: Any = None) -> float:
        """Return the skill of rollouts from the first samples: 1 - mean Err / mean null Err.

        1 is perfect, 0 is no better than x(t) = x(0). Rollouts that stop early count as a very
        large, finite error.
        """
        check_is_fitted(self, "field_")
        trajectories = as_trajectories(x, t)
        run = rollout(self.field_, trajectories, on_failure="ignore")
        return evaluate(trajectories, run.x).skill

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``field_`` to a model file that `vectorfield.load` reads."""
        check_is_fitted(self, "field_")
        self.field_.save(path)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, nested ones too (``kernel__length_scale=2.0``).

        Kernels and rules are immutable: a nested change puts a changed copy in their place.
        """
        nested: dict[str, dict[str, Any]] = {}
        direct: dict[str, Any] = {}
        for key, value in params.items():
            name, _, rest = key.partition("__")
            if rest and name in self.get_params(deep=False):
                nested.setdefault(name, {})[rest] = value
            else:
                direct[key] = value
        super().set_params(**direct)
        for name, changes in nested.items():
            current = getattr(self, name)
            if current is None:
                raise ValueError(f"{name} is None and has no parameters to set; set {name} first")
            setattr(self, name, current.replace(**changes))
        return self

    def _keep_states(self, fitted: Fitted, trajectories: Trajectories) -> None:
        """Keep what smoother and refinement say of the states; forget that of an older fit."""
        for name in ("smoothed_", "noise_", "refined_"):
            self.__dict__.pop(name, None)
        smoothed, refined, field = fitted.smoothed, fitted.refined, fitted.field
        if smoothed is not None:
            self.smoothed_, self.noise_ = smoothed.trajectories, smoothed.noise
        if refined is not None:
            self.refined_ = refined
            states = refined.states * field.scale + field.shift
            self.smoothed_ = replace(trajectories, states=states)
            self.noise_ = refined.noise * field.scale

    def _sparse(self, plan: Plan, trajectories: Trajectories) -> Plan:
        """Return the plan with its kernel on each output's inputs, found or given."""
        if isinstance(self.structure, (Structure, Dependencies)):
            found = self.structure
            self.structure_ = found(trajectories) if isinstance(found, Structure) else found
            check_width(self.structure_.inputs, trajectories)
            return sparse_plan(self.structure_, trajectories, plan, self._left_open())
        self.structure_ = Structure(known=self.structure)(trajectories)
        return plan.replace(kernel=on_inputs(plan.kernel, self.structure_.inputs))

    def _left_open(self) -> frozenset[str]:
        names = ("kernel", "ridge", "rule", "noise", "prior", "smoother", "refine")
        return frozenset(name for name in names if getattr(self, name) is None)

    def _plan(self) -> Plan:
        chosen = self.get_params(deep=False)
        search = chosen.pop("search")
        chosen.pop("structure")
        if search is not None and not isinstance(search, Search):
            raise TypeError(f"search must be a Search such as vf.Search(), got {search!r}")
        defaults = {"kernel": Gaussian(), "rule": Trapezoid(), "noise": White()}
        for name, value in defaults.items():
            if chosen[name] is None:
                chosen[name] = value
        return Plan(**chosen)


def _as_validation(value: Any) -> Trajectories:
    if isinstance(value, tuple) and len(value) == 2:
        return as_trajectories(*value)
    return as_trajectories(value)
