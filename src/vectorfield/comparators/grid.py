"""`LogGrid`: length scale and ridge of a kernel regression, out of all pairs of a grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vectorfield._errors import SolveError
from vectorfield._settings import Settings, check_integer, check_real
from vectorfield.comparators.attempts import Attempts, Proposals, tune
from vectorfield.field import VectorField
from vectorfield.plan import Plan, Prepared
from vectorfield.trajectories import Trajectories
from vectorfield.tuning.bench import ridge_unit
from vectorfield.tuning.candidates import lengths_of, stretched

__all__ = ["LogGrid"]

FINALISTS = 10  # pairs of the first rule that others are tried with


@dataclass(frozen=True)
class LogGrid(Settings):
    """Every length scale with every ridge, 40 pairs by default, judged by Err of rollouts.

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
        >>> model = vf.comparators.Paper(search=search).fit(xs, t)
        >>> [attempt.settings["level"] for attempt in model.report_]
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
        self, plans: Sequence[Plan], train: Trajectories, validation: Trajectories | None = None
    ) -> tuple[VectorField, Attempts]:
        """Return the best of some plans, their length scales and ridges taken from the grid.

        The plans differ in their rule. The first one has the whole grid, others its best ten pairs.
        """
        field, attempts = tune(
            self._proposals(plans, train),
            _Fits(plans),
            train,
            validation,
            count=self.folds,
            random_state=self.random_state,
            max_time=self.max_time,
        )
        return field, attempts  # type: ignore[return-value]

    def _proposals(self, plans: Sequence[Plan], train: Trajectories) -> Proposals:
        scores: dict[tuple[Any, float], float] = {}
        kernel = plans[0].prepare(train).kernel
        for factor in self.lengths if lengths_of(kernel) else (1.0,):
            choice = stretched(kernel, factor)
            for level in self.levels:
                settings = {"rule": plans[0].rule, "kernel": choice, "level": level}
                scores[choice, level] = yield settings
        best = sorted(scores, key=lambda pair: scores[pair])[:FINALISTS]
        best.sort(key=lambda pair: repr(pair[0]))  # the ridges of a kernel in a row
        for plan in plans[1:]:
            for choice, level in best:
                yield {"rule": plan.rule, "kernel": choice, "level": level}


class _Fits:
    """Fits candidates; all ridges of a kernel in a row share its matrix."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        self._plans = {plan.rule: plan for plan in plans}
        self._last: dict[int, tuple[Any, Trajectories, Prepared]] = {}

    def __call__(self, train: Trajectories, settings: Mapping[str, Any]) -> VectorField:
        rule, kernel = settings["rule"], settings["kernel"]
        kept = self._last.get(id(train))
        if kept is None or kept[0] != (rule, kernel):
            prepared = replace(self._plans[rule], kernel=kernel).prepare(train)
            kept = self._last[id(train)] = (rule, kernel), train, prepared
        prepared = kept[2]
        regression = prepared.problem.solve(settings["level"] * ridge_unit(prepared))
        if regression.expansion is None or not regression.solution.status.ok:
            raise SolveError(regression.solution.detail, regression.solution)
        return prepared.field(regression.expansion)
