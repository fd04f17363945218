"""`LogGrid`: length scale and ridge of a kernel regression, out of all pairs of a grid."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vectorfield._errors import DataError
from vectorfield._settings import check_integer, check_real
from vectorfield.comparators.attempts import ENOUGH, spread
from vectorfield.plan import Plan
from vectorfield.smoothing import noise_level
from vectorfield.trajectories import Trajectories
from vectorfield.tuning import Report, Rollout
from vectorfield.tuning.bench import Bench, ridge_unit
from vectorfield.tuning.budget import Budget
from vectorfield.tuning.candidates import lengths_of, stretched
from vectorfield.tuning.folds import folds
from vectorfield.tuning.judge import Judge
from vectorfield.tuning.searcher import Searcher
from vectorfield.tuning.tasks import Task

__all__ = ["LogGrid"]


@dataclass(frozen=True)
class LogGrid(Searcher):
    """Every length scale with every ridge, 40 pairs by default, judged by Err of rollouts.

    What `tuning.BayesianSearch` looks for by a Gaussian process, looked for on a grid around what
    the data suggest. All other parts of the plan stay as they are.

    Args:
        lengths: length scales, over that of the kernel where it has one, else over the median
            distance of the training nodes. A kernel without any is tried as it is.
        levels: ridges, such that ridge N = level mean(h^2) mean k(z, z) with h the durations of
            the N observations; they do not depend on units or the number of data.
        folds: how many, where there are no validation trajectories.
        max_time: seconds after which nothing more is tried; None for no limit.
        random_state: seed of who is held out.

    Cost: the matrix once for each length scale and fold, a factorisation for each pair.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 6.0, 61)
        >>> xs = [a * np.stack([np.cos(t), -np.sin(t)], axis=1) for a in (0.5, 1.0, 1.5, 2.0)]
        >>> search = vf.comparators.LogGrid(lengths=(1.0, 4.0), levels=(1e-2, 1e-6), folds=2)
        >>> report = vf.MOCK(search=search).fit(xs, t).report_
        >>> [trial.level for trial in report.trials]
        [0.01, 1e-06, 0.01, 1e-06]
    """

    lengths: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0)
    levels: tuple[float, ...] = (1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10)
    folds: int = 4
    max_time: float | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        for name in ("lengths", "levels"):
            values = tuple(getattr(self, name))
            if not values:
                raise ValueError(f"{name} must hold at least one value, got {values!r}")
            found = tuple(check_real(name, value, above=0.0) for value in values)
            object.__setattr__(self, name, found)
        check_integer("folds", self.folds, at_least=2)
        if self.max_time is not None:
            check_real("max_time", self.max_time, above=0.0)
        check_integer("random_state", self.random_state, at_least=0)

    def __call__(
        self,
        plan: Plan,
        left_open: frozenset[str],
        train: Trajectories,
        validation: Trajectories | None = None,
    ) -> Report:
        """Choose length scale and ridge; a ridge that ``left_open`` does not name is kept."""
        kernel = plan.prepare(train).kernel
        factors = self.lengths if lengths_of(kernel) else (1.0,)
        plans = [replace(plan, kernel=stretched(kernel, factor)) for factor in factors]
        splits = folds(train, validation, self.folds, self.random_state)
        if (train.lengths - 1).sum() > ENOUGH:
            splits = splits[:1]
        longest = max(int(fold.held.lengths.max()) for fold in splits)
        bench = Bench(splits, Rollout(), (longest,), spread(train), estimate=False)
        judge = Judge(Budget(self.max_time))
        for k, candidate in enumerate(plans):
            levels = self.levels
            if "ridge" not in left_open and plan.ridge is not None:
                levels = (plan.ridge / ridge_unit(candidate.prepare(train)),)
            task = Task(candidate, levels, "grid", whole=True, widen=False)
            judge(bench, [task], done=(k + 1) / len(plans))
        judge.close()
        best = min(judge.trials, key=lambda trial: trial.score)
        if not best.ok:
            raise DataError(
                f"none of {len(judge.trials)} candidates could be fitted; the first: "
                f"{judge.trials[0].status}. Give more or longer trajectories"
            )
        ridge = best.level * ridge_unit(best.plan.prepare(train))
        null, null_spread = bench.null()
        return Report(
            best=replace(best, plan=replace(best.plan, ridge=ridge)),
            runner_up=None,
            trials=tuple(judge.trials),
            lengths=bench.lengths,
            null=tuple(null.tolist()),
            null_spread=tuple(null_spread.tolist()),
            noise=noise_level(train),
            folds=len(splits),
            seconds=judge.budget.seconds,
        )
