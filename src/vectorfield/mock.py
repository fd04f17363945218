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
from vectorfield._errors import DataError, SearchWarning, SolveError, SolveWarning
from vectorfield._intake import is_frame
from vectorfield.blend import Blend
from vectorfield.kernels import Gaussian, OperatorKernel, ScalarKernel
from vectorfield.linalg import Solver, Status
from vectorfield.metrics import evaluate
from vectorfield.occupation import Noise, Rule, Trapezoid, White
from vectorfield.plan import Fitted, Plan
from vectorfield.prior import Prior
from vectorfield.robust import Huber
from vectorfield.shooting import Refined, Refinement
from vectorfield.simulate import rollout, simulate
from vectorfield.smoothing import Smoother
from vectorfield.structure import Dependencies, Structure, structured
from vectorfield.tables import states_from_frame
from vectorfield.trajectories import Trajectories, as_trajectories
from vectorfield.tuning import Search, Searcher
from vectorfield.tuning.final import RAISES, fit_chosen

__all__ = ["MOCK"]


class MOCK(BaseEstimator):  # type: ignore[misc]
    """Learn f in dx/dt = f(x) from trajectories, by regression on occupation kernels.

    f minimises |Sigma^(-1/2) (L f - y)|^2 + ridge N |f|^2 over the space of the kernel, where the
    N rows of L are integrals of f along stretches of the data (the *rule* says which), y the
    increments over them and Sigma the metric of the *noise*. The minimiser is
    f = sum_p K(., z_p) (W^T a)_p with (W G W^T + ridge N Sigma) a = y. Cost: O(N^2 d) for the
    matrix, N^3 / 3 for one factorisation that serves all d coordinates, O(N^2 d) to solve; memory
    one N x N matrix.

    With kernel and ridge given nothing is tuned. Where one of them is left out, all settings
    that are left out are chosen on held-out trajectories (`Search`), and `report_` says what
    was tried. The defaults named below are for fits without a search.

    Args:
        kernel: a scalar kernel, or an operator-valued one such as `Separable`; `Gaussian` by
            default. A length scale of None is open to a search, and else the median distance of
            the training nodes. Length scales are in units of the standardised coordinates.
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
            trajectories, whose states are estimated along; for kernels with features. `Rollouts`
            for long steps and measured data: the errors of simulations from the samples are
            lowered.
        structure: which coordinates each output depends on, for kernels that are put on each
            output's own inputs (`SparseKernel`, `SparseFeatures`): a (d, d) matrix, dense or SciPy
            sparse, not zero at [i, j] where f_i depends on x_j; `Structure`, to have it found; or
            the `Dependencies` that were found before. What is left out of kernel, ridge, rule,
            noise and smoother is chosen for it on held-out trajectories, unless kernel and ridge
            come with a matrix, or search=False. Every output depends on all coordinates by
            default.
        search: how what is left out is chosen. None is `Search` where kernel or ridge is left
            out, and no search where both are given; a `Search` chooses all that is None in any
            case; False takes the defaults named here.
        smoother: `SplineSmoother` to fit to smoothed states; none by default.
        blend: `Blend` of other plans, whose fields are mixed in with given weights; none by
            default. Fitted attributes besides the field and its residuals are those of the
            model's own part.

    Attributes:
        field_: the learned `VectorField`.
        plan_: every setting that was used, as a `Plan`; ``MOCK(**plan_.get_params(deep=False),
            search=False)`` makes the same fit again.
        kernel_, ridge_: those used, nothing left open.
        rkhs_norm_: |f|, with a prior |g|, in the kernel's space (in standardised coordinates).
        residuals_: y - L f, (N, d), in the units of the data.
        observation_weights_: (N,) those of the `Huber` fit, 1 for observations taken in full.
        smoothed_, noise_: with ``smoother`` or `Shooting` the states without their noise
            (`Trajectories`) and its standard deviation (d,).
        refined_: with ``refine``, how that went.
        report_: after a search, what was tried and chosen (`Report`).
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
        refine: Refinement | None = None,
        smoother: Smoother | None = None,
        blend: Blend | None = None,
        structure: Any = None,
        search: Searcher | bool | None = None,
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
        self.blend = blend
        self.structure = structure
        self.search = search

    @property
    def searcher(self) -> Searcher | None:
        """The search that ``fit`` makes; None where nothing is to be chosen.

        >>> import vectorfield as vf
        >>> vf.MOCK(vf.kernels.Linear()).searcher == vf.Search()
        True
        >>> vf.MOCK(vf.kernels.Linear(), 1e-6).searcher, vf.MOCK(search=False).searcher
        (None, None)
        """
        if self.search is None:
            open_ = self.structure is None and (self.kernel is None or self.ridge is None)
            return Search() if open_ else None
        if isinstance(self.search, (bool, np.bool_)):
            return Search() if self.search else None
        if not isinstance(self.search, Searcher):
            raise TypeError(
                f"search must be a Search such as vf.Search(), False or None, got {self.search!r}"
            )
        return self.search

    def fit(self, x: Any, t: Any = None, *, validation: Any = None) -> Self:
        """Fit to trajectories.

        Args:
            x: one (n, d) array, a list of (n_i, d) arrays, a `Trajectories`, or a long table with
                columns ``trajectory``, ``time`` and the features.
            t: for arrays: the step, one array of times, or a list of them.
            validation: trajectories on which a search judges; a `Trajectories`, a table, or a pair
                of such states and times. Without any it holds out some of the others. With
                ``Search(pool=True)`` they are learned from as well, and folds over all are judged.

        Raises:
            DataError: the data cannot be used; the message names trajectory, row and remedy.
            SolveWarning: (a warning) the system was close to singular.
            SearchWarning: (a warning) nothing was clearly better than the null model on held-out
                trajectories; the fit is that of the best plan none the less.
            SolveError: the linear system could not be solved; the message gives the condition and
                the remedy, its ``solution`` the figures. After a search that chose the ridge larger
                ridges are tried first, and ``report_.notes`` says which was taken.
        """
        plan, search = self._plan(), self.searcher
        if search is not None and self.blend is not None:
            raise ValueError(
                "a search finds the blend itself: give kernel and ridge, pass search=False, or "
                "leave blend out"
            )
        if search is not None and self.structure is not None:
            raise ValueError(
                "structure and search choose the same settings: leave search out, or structure"
            )
        trajectories = as_trajectories(x, t)
        # a fit that fails leaves none, not that of older data
        for name in ("field_", "report_", "structure_"):
            self.__dict__.pop(name, None)
        if search is None and validation is not None:
            raise ValueError(
                "validation trajectories are for a search, and here nothing is left to choose: "
                "leave kernel or ridge out, pass search=vf.Search(), or leave validation out"
            )
        held = None if validation is None else _as_validation(validation)
        if search is not None:
            trajectories, held = search.parts(trajectories, held)
        if self.structure is not None:
            plan = self._sparse(plan, trajectories)
        try:
            if search is None:
                fitted = plan.fit(trajectories)
            else:
                plan, fitted = self._searched(search, trajectories, held)
        except SolveError as error:
            self.solution_ = error.solution
            raise
        if search is not None and not self.report_.beats_null:
            warnings.warn(self.report_.verdict, SearchWarning, stacklevel=2)
        self.field_ = fitted.field
        self.solution_ = fitted.regression.solution
        for solution in (part.regression.solution for part in (fitted, *fitted.others)):
            if solution.status is Status.ILL_CONDITIONED and search is None:  # else judged
                warnings.warn(solution.detail, SolveWarning, stacklevel=2)
        self.plan_ = plan
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

    def _searched(
        self, search: Searcher, trajectories: Trajectories, held: Trajectories | None
    ) -> tuple[Plan, Fitted]:
        """Choose a plan and fit it; a ridge that was left open is raised until that succeeds."""
        self.report_ = search(self._plan(), self._left_open(), trajectories, held)
        raises = RAISES if self.ridge is None else 0
        self.report_, fitted = fit_chosen(self.report_, trajectories, raises=raises)
        return self.report_.best.plan, fitted

    def _keep_states(self, fitted: Fitted, trajectories: Trajectories) -> None:
        """Keep what smoother and refinement say of the states; forget that of an older fit."""
        for name in ("smoothed_", "noise_", "refined_"):
            self.__dict__.pop(name, None)
        smoothed, refined, field = fitted.smoothed, fitted.refined, fitted.field
        if smoothed is not None:
            self.smoothed_, self.noise_ = smoothed.trajectories, smoothed.noise
        if refined is not None:
            self.refined_ = refined
        if isinstance(refined, Refined):
            states = refined.states * field.scale + field.shift
            self.smoothed_ = replace(trajectories, states=states)
            self.noise_ = refined.noise * field.scale

    def _sparse(self, plan: Plan, trajectories: Trajectories) -> Plan:
        """Return the plan with its kernel on each output's inputs, and keep what was found."""
        given = self.kernel is not None and self.ridge is not None
        own = isinstance(self.structure, (Structure, Dependencies))
        choose = self.search is None and (own or not given)
        left = self._left_open() if choose else frozenset()
        self.structure_, plan = structured(self.structure, trajectories, plan, left)
        return plan

    def _left_open(self) -> frozenset[str]:
        names = (
            "kernel", "ridge", "rule", "noise", "prior", "smoother", "refine", "robust", "blend",
        )  # fmt: skip
        return frozenset(name for name in names if getattr(self, name) is None)

    def _plan(self) -> Plan:
        chosen = self.get_params(deep=False)
        chosen.pop("search")
        chosen.pop("structure")
        defaults = {"kernel": Gaussian(), "rule": Trapezoid(), "noise": White()}
        for name, value in defaults.items():
            if chosen[name] is None:
                chosen[name] = value
        return Plan(**chosen)


def _as_validation(value: Any) -> Trajectories:
    if isinstance(value, tuple) and len(value) == 2:
        return as_trajectories(*value)
    return as_trajectories(value)
