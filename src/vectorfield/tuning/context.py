"""What the stages of a search share: the data, the benches, the trials so far, and what is open."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vectorfield import _backend
from vectorfield._errors import DataError
from vectorfield.kernels import (
    CurlFree,
    DivergenceFree,
    Equivariant,
    Gaussian,
    Gradient,
    Hamiltonian,
    OperatorKernel,
    OperatorScaled,
    OperatorSum,
    ScalarKernel,
)
from vectorfield.plan import Plan
from vectorfield.trajectories import Trajectories
from vectorfield.tuning import candidates
from vectorfield.tuning.bench import Bench, ridge_unit
from vectorfield.tuning.budget import Budget
from vectorfield.tuning.folds import folds
from vectorfield.tuning.heldout import levels
from vectorfield.tuning.judge import Judge, ranked
from vectorfield.tuning.objectives import Windowed
from vectorfield.tuning.study import Record
from vectorfield.tuning.survey import survey
from vectorfield.tuning.tasks import CLEAN, NOISY, Task, best_ridge, near
from vectorfield.tuning.trials import Trial

if TYPE_CHECKING:
    from vectorfield.tuning.search import Search

__all__ = ["CONTENDER", "FEW", "MANY", "MEDIUM", "REFINED", "SMALL", "Context", "distinct"]

LAWS = (CurlFree, DivergenceFree, Equivariant, Gradient, Hamiltonian, OperatorScaled, OperatorSum)
SMALL, MEDIUM = 1200, 4000  # steps of the data that a screening and its second round use
REFINED = 3 * MEDIUM // 2  # steps that fits of whole windows are judged with
CHEAP = 3000  # steps up to which all folds are used
HELD, WIDE = 1500, 16  # samples that a screening is judged on, fewer beyond so many coordinates
CONTENDER = 10.0  # times the least error: neither a length scale nor more data make up for more
STRETCH = 30  # samples of clean trajectories that a screening learns from in one piece
NEGLIGIBLE = 1e-8  # of the null model's error
LONGEST = 80  # samples of windows whose starts are estimated
FEW, MANY = 200, 600  # features in place of exact fits to noisy data: to screen, and at the end


class Context:
    """The state of one search.

    Attributes:
        search: its settings.
        plan: the plan to begin from: open parts as the noise suggests.
        open: the names of the parts to choose.
        train: all training data.
        facts: what is known of them; see `Survey`.
        splits: the folds.
        lengths: samples of the windows of each level.
        bench, estimated: judges from first samples, and from starts that are estimated.
        small: steps of the data that a screening uses.
        ladder: ridge levels to begin with.
        jointly: parts that a stage has chosen together; later ones leave them as they are.
        judge: carries out tasks; has the trials so far and the time.
    """

    def __init__(
        self,
        search: Search,
        plan: Plan,
        left_open: frozenset[str],
        train: Trajectories,
        validation: Trajectories | None,
        *,
        record: Record | None = None,
    ) -> None:
        self.judge = Judge(Budget(search.max_time), n_jobs=search.n_jobs, record=record)
        for part in (train, validation):
            if part is not None and not _backend.is_numpy(part.states):
                raise DataError(
                    "Search runs on NumPy arrays; pass the states as such, or pass search=False "
                    "for plain defaults, or give kernel and ridge"
                )
        law = getattr(plan.kernel, "energy", None) is not None
        if "kernel" not in left_open and (law or isinstance(plan.kernel, LAWS)):
            left_open -= {"prior"}  # with one, the law would hold for the learned rest alone
        search.objective.check(plan)
        self.search, self.open, self.train = search, left_open, train
        splits = folds(train, validation, search.folds, search.random_state)
        self._all_splits = splits
        self.jointly: frozenset[str] = frozenset()
        if (train.lengths - 1).sum() > CHEAP:
            splits = splits[:1]
        self.splits = splits
        self.lengths = levels(splits[0].held)
        self.facts = survey(train)
        self.bench, self.estimated = self._bench(estimate=False), self._bench(estimate=True)
        self.small = 4 * SMALL if self.noisy else SMALL  # features cost less than exact fits
        self.ladder = NOISY if self.noisy else CLEAN
        self.plan = self._base(plan)

    @property
    def noisy(self) -> bool:
        """Whether the noise of the snapshots matters."""
        return self.facts.noisy

    @property
    def trials(self) -> list[Trial]:
        """All trials so far."""
        return self.judge.trials

    def is_settled(self, trial: Trial) -> bool:
        """Whether errors are so small that nothing which is left to choose could matter."""
        return trial.score <= NEGLIGIBLE

    def out_of_time(self) -> bool:
        """Whether no further trial should begin."""
        return self.judge.budget.over()

    def try_all(
        self,
        tasks: Iterable[tuple[Plan, Iterable[float]]],
        stage: str,
        steps: int | None,
        *,
        done: float,
        whole: bool = False,
        final: bool = False,
    ) -> list[Trial]:
        """Judge plans, each for its ladder of ridges; return the best ridge of each, best first.

        Fewer are returned where time did not allow all. A ``final`` choice is the objective's,
        among all plans and ridges; others are by score.
        """
        groups = self._judged(tasks, stage, steps, done=done, whole=whole)
        if not final:
            return ranked(groups)
        trials = [trial for group in groups for trial in group]
        return distinct(trials[k] for k in self.search.objective.order(trials))

    def try_each(
        self,
        tasks: Iterable[tuple[Plan, Iterable[float]]],
        stage: str,
        steps: int | None,
        *,
        done: float,
        whole: bool = False,
    ) -> list[Trial | None]:
        """Return the same in the order of the plans, None where time did not allow one.

        The plans make one batch: they are judged side by side where there are processes for it.
        """
        groups = self._judged(tasks, stage, steps, done=done, whole=whole)
        return [best_ridge(group) if group else None for group in groups]

    def _judged(
        self,
        tasks: Iterable[tuple[Plan, Iterable[float]]],
        stage: str,
        steps: int | None,
        *,
        done: float,
        whole: bool,
    ) -> list[list[Trial]]:
        given = "ridge" not in self.open
        batch = [
            Task(
                plan,
                (self._fixed_level(plan, steps),) if given else tuple(ladder),
                stage,
                steps,
                whole,
            )
            for plan, ladder in tasks
        ]
        return self.judge(self.bench, batch, done=done)

    def comparable(self, name: str, values: Iterable[Any]) -> list[Any]:
        """Return those values of a part that may be tried: it is open, and scores can tell."""
        if name not in self.open:
            return []
        return [value for value in values if self.search.objective.compares(name, value)]

    def widen(self, held: int) -> None:
        """Judge on all folds from now on, fitted to all of the data, ``held`` samples held out.

        Of windows of all lengths (`Windowed`) single steps and whole trajectories are left. Scores
        from before do not compare with those that follow.
        """
        self.splits = self._all_splits
        if isinstance(self.search.objective, Windowed):
            self.lengths = tuple(sorted({self.lengths[0], self.lengths[-1]}))
        self.bench = self._bench(estimate=False, most=held)
        self.small = max(self.small, self.bench.steps)

    def near(self, trial: Trial, span: int = 2) -> tuple[float, ...]:
        """Return the ladder around a trial's ridge."""
        return near(trial.level, noisy=self.noisy, span=span)

    def leaders(self, best: Trial, count: int = 3) -> list[Trial]:
        """Return the best plan, and the best of other kinds of kernels with its other parts.

        Those that are far behind are left out.
        """
        others = distinct(ranked([t] for t in self.trials if t.ok))
        kinds = {_kind(best.plan.kernel)}
        found = [best]
        for trial in others:
            if trial.score > CONTENDER * best.score or len(found) == count:
                break
            if _kind(trial.plan.kernel) not in kinds:
                kinds.add(_kind(trial.plan.kernel))
                found.append(replace(trial, plan=replace(best.plan, kernel=trial.plan.kernel)))
        return found

    def runner_up(self, chosen: Trial) -> Trial | None:
        """Return the best trial of another kind of kernel, on windows of the same lengths."""
        kind = _kind(candidates.without_features(chosen.plan.kernel))
        for trial in ranked([t] for t in self.trials if t.ok):
            other = _kind(candidates.without_features(trial.plan.kernel))
            if other != kind and len(trial.ratios) == len(chosen.ratios):
                return trial
        return None

    def by_features(
        self, kernel: ScalarKernel | OperatorKernel, count: int = FEW
    ) -> ScalarKernel | OperatorKernel:
        """Return the kernel by features where snapshots are noisy, else as it is.

        What is smooth beside the noise loses nothing by them, and is far cheaper.
        """
        return candidates.with_features(kernel, count) if self.noisy else kernel

    def with_ridge(self, trial: Trial) -> Plan:
        """Return the plan of a trial with its ridge for all of the training data."""
        if "ridge" not in self.open:
            return trial.plan
        unit = ridge_unit(trial.plan.prepare(self.train))
        plan = replace(trial.plan, ridge=trial.level * unit)
        if plan.refine is None or trial.refined_level is None:  # it has no ridge of the fit's kind
            return plan
        return replace(plan, refine=plan.refine.replace(ridge=trial.refined_level * unit))

    def _fixed_level(self, plan: Plan, steps: int | None) -> float:
        ridge = 1.0 if plan.ridge is None else plan.ridge
        return ridge / ridge_unit(plan.prepare(self.bench.train(steps)[0]))

    def _bench(self, estimate: bool, most: int | None = None) -> Bench:
        if most is None:
            most = round(HELD * min(1.0, WIDE / self.train.d))
        lengths = self.lengths
        if estimate:  # over longer windows a start is hard to find, however good the field
            lengths = tuple(k for k in lengths if k <= LONGEST) or lengths[:1]
        return Bench(
            self.splits,
            self.search.objective,
            lengths,
            self.facts.unit,
            estimate=estimate,
            most=most,
            stretch=None if self.noisy else STRETCH,
            data=self.train,
        )

    def _base(self, plan: Plan) -> Plan:
        """Set open parts to what the noise suggests."""
        changes: dict[str, object] = {}
        if "rule" in self.open:
            changes["rule"] = candidates.rules(self.facts.even, self.noisy)[0]
        if "noise" in self.open:
            changes["noise"] = candidates.noises(self.noisy, self.facts.even)[0]
        if "kernel" in self.open:
            changes["kernel"] = Gaussian()
        return replace(plan, **changes)  # type: ignore[arg-type]


def distinct(trials: Iterable[Trial]) -> list[Trial]:
    """Return the trials whose plans are not among those before."""
    seen: set[str] = set()
    kept = []
    for trial in trials:
        name = repr(replace(trial.plan, ridge=None))
        if name not in seen:
            seen.add(name)
            kept.append(trial)
    return kept


def _kind(kernel: object) -> str:
    """What a kernel is made of, whatever its length scales."""
    inner = [
        _kind(v)
        for v in kernel.get_params(deep=False).values()  # type: ignore[attr-defined]
        if hasattr(v, "get_params")
    ]
    numbers = [
        str(v)
        for k, v in kernel.get_params(deep=False).items()  # type: ignore[attr-defined]
        if k in ("nu", "degree")
    ]
    return f"{type(kernel).__name__}({', '.join(inner + numbers)})"
