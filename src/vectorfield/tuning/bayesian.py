"""`BayesianSearch`: the paper's own procedure, to compare with."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from vectorfield import _backend
from vectorfield._errors import DataError, MissingExtraError
from vectorfield._settings import check_integer, check_real
from vectorfield.plan import Plan
from vectorfield.trajectories import Trajectories
from vectorfield.tuning.bench import Bench, ridge_unit
from vectorfield.tuning.budget import Budget
from vectorfield.tuning.folds import folds
from vectorfield.tuning.heldout import CAP
from vectorfield.tuning.judge import Judge
from vectorfield.tuning.objectives import Objective, Rollout
from vectorfield.tuning.searcher import Searcher
from vectorfield.tuning.study import Record, Study
from vectorfield.tuning.survey import survey
from vectorfield.tuning.tasks import Task
from vectorfield.tuning.trials import Report, Trial, beats_null, verdict

__all__ = ["BayesianSearch"]

FAILED = CAP  # what a fit that failed counts as: one whose paths have all run away
EDGE = 0.02  # of a range: an optimum so near its end is not one to trust


@dataclass(frozen=True)
class BayesianSearch(Searcher):
    """The procedure of the MOCK paper: Bayesian optimisation of length scale and ridge alone.

    A Gaussian process over log sigma and log lambda proposes one pair after the other
    (``gp_minimize`` of scikit-optimize, with its defaults), each is fitted exactly to all training
    data and judged by rollouts from the first samples of what is held out. All other parts of the
    plan stay as they are: left out, they are the paper's, a Gaussian kernel, the trapezoid and the
    white loss. It is here to compare with; `Search` also chooses the other parts, and is cheaper.

    What cannot be fitted counts as a fit whose paths all run away, and is a trial with its status.
    Cost: ``evaluations`` times a fit of all data for each fold.

    Args:
        evaluations: how many pairs are tried.
        initial: how many of them are drawn at random first.
        objective: by default Err over whole trajectories, as in the paper; `OneStep` for 1-Err.
        length_scales: the least and the largest, in standardised coordinates.
        ridges: the least and the largest, in units of ``MOCK(ridge=...)``.
        folds: how many, where there are no validation trajectories.
        max_time: seconds after which no further evaluation begins; None for no limit.
        random_state: seed of the proposals, and of who is held out.
        study: `Study`, to keep the trials and to go on where an earlier run was stopped.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 6.0, 61)
        >>> xs = [a * np.stack([np.cos(t), -np.sin(t)], axis=1) for a in (0.5, 1.0, 1.5, 2.0)]
        >>> search = vf.tuning.BayesianSearch(evaluations=5, initial=5, folds=2)
        >>> report = vf.MOCK(search=search).fit(xs, t).report_
        >>> len(report.trials), report.best.plan.kernel.length_scale is None
        (5, False)
    """

    evaluations: int = 40
    initial: int = 10
    objective: Objective = field(default_factory=Rollout)
    length_scales: tuple[float, float] = (0.05, 200.0)
    ridges: tuple[float, float] = (1e-14, 1.0)
    folds: int = 4
    max_time: float | None = None
    random_state: int = 0
    study: Study | None = None

    def __post_init__(self) -> None:
        check_integer("evaluations", self.evaluations, at_least=1)
        check_integer("initial", self.initial, at_least=1)
        if self.initial > self.evaluations:
            raise ValueError(
                f"initial must be at most evaluations = {self.evaluations}, got {self.initial}"
            )
        if not isinstance(self.objective, Objective):
            raise TypeError(
                f"objective must be an Objective such as Rollout(), got {self.objective!r}"
            )
        for name in ("length_scales", "ridges"):
            value = getattr(self, name)
            if not isinstance(value, tuple) or len(value) != 2:
                raise TypeError(f"{name} must be a pair (least, largest), got {value!r}")
            check_real(name, value[1], above=check_real(name, value[0], above=0.0))
        check_integer("folds", self.folds, at_least=2)
        if self.max_time is not None:
            check_real("max_time", self.max_time, above=0.0)
        check_integer("random_state", self.random_state, at_least=0)
        if self.study is not None and not isinstance(self.study, Study):
            raise TypeError(f"study must be a Study such as vf.tuning.Study(), got {self.study!r}")

    def __call__(
        self,
        plan: Plan,
        left_open: frozenset[str],
        train: Trajectories,
        validation: Trajectories | None = None,
    ) -> Report:
        """Choose the length scales that are None, and the ridge if it is named in ``left_open``.

        ``report.best.plan`` has all parts, its ridge that for fitting all of ``train``.
        """
        self.objective.check(plan)
        minimise = _gp_minimize()
        for part in (train, validation):
            if part is not None and not _backend.is_numpy(part.states):
                raise DataError("BayesianSearch runs on NumPy arrays; pass the states as such")
        space = _Space(self, plan, left_open)
        splits = folds(train, validation, self.folds, self.random_state)
        facts = survey(train)
        lengths = (2, int(max(fold.held.lengths.max() for fold in splits)))
        bench = Bench(
            splits,
            self.objective,
            tuple(sorted(set(lengths))),
            facts.unit,
            estimate=False,
            data=train,
        )
        with nullcontext() if self.study is None else self.study.open() as record:
            judge, plans = self._minimised(minimise, space, bench, train, record)
        judge.close()
        chosen = min(range(len(plans)), key=lambda k: judge.trials[k].score)
        reported = self.objective.reported(bench, judge.trials[chosen])
        best = replace(reported, plan=plans[chosen])
        null, null_spread = bench.null()
        return Report(
            best=best,
            runner_up=None,
            trials=tuple(judge.trials),
            lengths=bench.lengths,
            null=tuple(null.tolist()),
            null_spread=tuple(null_spread.tolist()),
            noise=facts.noise,
            folds=len(splits),
            seconds=judge.budget.seconds,
            notes=tuple(self._notes(best, space, judge)),
        )

    def _minimised(
        self,
        minimise: Callable[..., Any],
        space: _Space,
        bench: Bench,
        train: Trajectories,
        record: Record | None,
    ) -> tuple[Judge, list[Plan]]:
        """Return the judge with its trials, and the plan of each with its ridge."""
        judge = Judge(Budget(self.max_time), record=record)
        plans: list[Plan] = []

        def value(point: Sequence[float]) -> float:
            plan = space.plan(point)
            done = (len(plans) + 1) / self.evaluations
            try:
                ridge = plan.ridge or 0.0
                levels: tuple[float, ...] = (ridge / ridge_unit(plan.prepare(train)),)
            except (ArithmeticError, TypeError, ValueError):  # judging says what is wrong
                levels = (1.0,)
            task = Task(plan, levels, "bayesian", whole=True, widen=False)
            plans.append(plan)
            (trial,) = judge(bench, [task], done=done)[0]
            return min(trial.score, FAILED) if trial.ok else FAILED

        if not space.bounds:
            value([])
            return judge, plans
        with warnings.catch_warnings():
            # proposals that come twice, and Gaussian processes whose own settings meet a bound
            warnings.simplefilter("ignore")
            minimise(
                value,
                space.bounds,
                n_calls=self.evaluations,
                n_initial_points=self.initial,
                random_state=self.random_state,
                callback=lambda _: judge.budget.over(),
            )
        return judge, plans

    def _notes(self, best: Trial, space: _Space, judge: Judge) -> list[str]:
        notes = []
        if not beats_null(best):
            notes.append(verdict(best))
        notes += [
            f"the best {name} lies at the end of its range: widen {name}s"
            for name in space.at_the_end(best.plan)
        ]
        if judge.budget.over():
            notes.append(f"stopped after max_time = {self.max_time:g} s")
        return notes


class _Space:
    """What is open of a plan, as logarithms to base 10: length scale, ridge, or both."""

    def __init__(self, search: BayesianSearch, plan: Plan, left_open: frozenset[str]) -> None:
        self._base = plan
        params = plan.kernel.get_params()
        self._lengths = [
            name
            for name, value in params.items()
            if value is None and name.split("__")[-1] == "length_scale"
        ]
        self._ranges: dict[str, tuple[float, float]] = {}
        if self._lengths:
            self._ranges["length_scale"] = search.length_scales
        if "ridge" in left_open:
            self._ranges["ridge"] = search.ridges
        self.bounds = [(math.log10(a), math.log10(b)) for a, b in self._ranges.values()]

    def plan(self, point: Sequence[float]) -> Plan:
        """Return the plan at a point."""
        values = dict(zip(self._ranges, (10.0 ** float(p) for p in point), strict=True))
        plan = self._base
        if "length_scale" in values:
            changes = dict.fromkeys(self._lengths, values["length_scale"])
            plan = replace(plan, kernel=plan.kernel.replace(**changes))
        return plan if "ridge" not in values else replace(plan, ridge=values["ridge"])

    def at_the_end(self, plan: Plan) -> list[str]:
        """Return the names of those that lie at an end of their range."""
        found = []
        for name, (low, high) in self._ranges.items():
            value = plan.ridge if name == "ridge" else plan.kernel.get_params()[self._lengths[0]]
            share = math.log(float(value or low) / low) / math.log(high / low)
            if not EDGE < share < 1.0 - EDGE:
                found.append(name)
        return found


def _gp_minimize() -> Callable[..., Any]:
    try:
        from skopt import gp_minimize
    except ImportError:
        raise MissingExtraError("scikit-optimize", "bayes", "a BayesianSearch") from None
    return gp_minimize  # type: ignore[no-any-return]
