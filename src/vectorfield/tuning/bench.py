"""The bench: plans fitted to folds of the data, at any size, and judged on what was held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from vectorfield._errors import SolveError
from vectorfield.plan import Plan, Prepared
from vectorfield.shooting import Rollouts, Shooting
from vectorfield.trajectories import Trajectories
from vectorfield.tuning.compact import compacted
from vectorfield.tuning.fingerprint import fingerprint
from vectorfield.tuning.folds import Fold, thin
from vectorfield.tuning.heldout import FEWEST, HeldOut
from vectorfield.tuning.trials import Trial

if TYPE_CHECKING:
    from vectorfield.tuning.objectives import Objective

__all__ = ["FAILURES", "Bench", "ridge_unit"]

# What numerical code and settings raise, `DataError` and `SolveError` among them. One candidate's
# failure is a trial with a status, whoever wrote the kernel.
FAILURES = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)


def ridge_unit(prepared: Prepared) -> float:
    """Return the ridge of level 1, at which ridge N is mean(h^2) mean k(z, z).

    Levels do not depend on the scale of the kernel, on units or on the number of data.
    """
    return 1e3 * prepared.default_ridge()


class Bench:
    """Fits and judges candidates.

    Args:
        folds: the splits of the data.
        objective: what makes one plan better than another.
        lengths: samples of the windows to judge on.
        unit: (d,) in units of which errors are measured.
        most: samples held out that are judged on at the sizes of a screening.
        stretch: samples of the stretches of trajectories that screenings learn from; None for
            whole trajectories.
        data: all training trajectories, for objectives that hold none out; by default those of
            the first fold.
    """

    def __init__(
        self,
        folds: Sequence[Fold],
        objective: Objective,
        lengths: tuple[int, ...],
        unit: np.ndarray,
        *,
        estimate: bool,
        most: int = 1500,
        stretch: int | None = None,
        data: Trajectories | None = None,
    ) -> None:
        self.data = folds[0].train if data is None else data
        self.folds, self.objective, self.lengths = list(folds), objective, lengths
        self.d, self.unit = self.folds[0].train.d, unit
        self._stretch = stretch
        self._identity = (self.folds, self.data, objective, lengths, unit, estimate, most, stretch)
        share = max(1, most // len(self.folds))
        self._small = [HeldOut(thin(f.held, share), lengths, unit, estimate) for f in self.folds]
        self._whole = [HeldOut(f.held, lengths, unit, estimate) for f in self.folds]
        self._thinned: dict[int, list[Any]] = {}
        self.steps = int(np.mean([(f.train.lengths - 1).sum() for f in self.folds]))

    @cached_property
    def fingerprint(self) -> str:
        """What tells this bench from others: the data, who is held out, and how it is judged."""
        return fingerprint(self._identity)

    def null(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean null error of a window of each level, and its standard error.

        The latter by the jackknife over trajectories; NaN for a single one.
        """
        totals = np.concatenate([h.null() for h in self._whole], axis=1)
        counts = np.concatenate([h.counts() for h in self._whole], axis=1)
        mean = totals.sum(axis=1) / counts.sum(axis=1)
        number = totals.shape[1]
        if number < 2:
            return mean, np.full(len(mean), np.nan)
        rest = counts.sum(axis=1, keepdims=True) - counts
        with np.errstate(all="ignore"):  # 0 / 0 where one trajectory has all windows of a length
            left = (totals.sum(axis=1, keepdims=True) - totals) / rest
        spread = np.sqrt((number - 1) * left.var(axis=1))
        return mean, spread

    def held_out(self, *, whole: bool) -> list[HeldOut]:
        """Return what each fold holds out: all of it, or as much as a screening follows."""
        return self._whole if whole else self._small

    def null_errors(self, *, whole: bool) -> np.ndarray:
        """Return the sums of the null model's Err, (levels, trajectories), as trials have them."""
        return np.concatenate([held.null() for held in self.held_out(whole=whole)], axis=1)

    def judge(self, plan: Plan, levels: Sequence[float], stage: str, **options: Any) -> list[Trial]:
        """Return a trial of the plan for each ridge level, as the objective judges.

        Options are those of `follow`.
        """
        return self.objective.judge(self, plan, levels, stage, **options)

    def follow(
        self,
        plan: Plan,
        levels: Sequence[float],
        stage: str,
        score: Callable[[np.ndarray, np.ndarray], tuple[float, float]],
        *,
        steps: int | None = None,
        whole: bool = False,
        evidence: bool = False,
        substeps: int = 1,
    ) -> list[Trial]:
        """Fit the plan for all ridge levels on every fold and follow the fields: a trial for each.

        ``score`` is taken of errors and null errors, (levels of windows, trajectories) each, and
        returns a standard error too. ``steps`` is how many steps of the data are used, all by
        default; ``whole`` judges on all that was held out, by fits that are exact; else kernels of
        low rank are fitted by features that lose nothing. Paths are followed in at least
        ``substeps`` steps to a step of the data. A ridge that one fold leaves behind is not
        followed on the next. Calls do not know of each other: the same arguments give the same
        trials.
        """
        return self._follow(
            [(plan, level) for level in levels],
            lambda prepared: self._fits(prepared, levels, evidence),
            stage,
            score,
            steps=steps,
            whole=whole,
            substeps=substeps,
        )

    def follow_path(
        self,
        plan: Plan,
        level: float,
        iterations: Sequence[int],
        stage: str,
        score: Callable[[np.ndarray, np.ndarray], tuple[float, float]],
        *,
        steps: int | None = None,
        whole: bool = False,
        substeps: int = 1,
    ) -> list[Trial]:
        """Fit a plan with `Rollouts`, and return a trial for each of these numbers of iterations.

        Each fold takes one run of the most; otherwise as `follow`.
        """
        refine = plan.refine
        if not isinstance(refine, Rollouts):
            raise TypeError(f"plan.refine must be Rollouts, got {refine!r}")

        def fits(prepared: Prepared) -> list[tuple[Any, float]]:
            regression = prepared.problem.solve(level * ridge_unit(prepared))
            if regression.expansion is None or not regression.solution.status.ok:
                return [(regression.solution.status.name, level)] * len(iterations)
            path = refine.path(
                regression.expansion, prepared.scaled, prepared.known, iterations=iterations
            )
            return [(expansion, level) for expansion in path]

        return self._follow(
            [(replace(plan, refine=refine.replace(iterations=k)), level) for k in iterations],
            fits,
            stage,
            score,
            steps=steps,
            whole=whole,
            substeps=substeps,
            together=FEWEST,  # no more than go on to the longest windows
        )

    def _follow(
        self,
        variants: Sequence[tuple[Plan, float]],
        fits_of: Callable[[Prepared], list[tuple[Any, float]]],
        stage: str,
        score: Callable[[np.ndarray, np.ndarray], tuple[float, float]],
        *,
        steps: int | None,
        whole: bool,
        substeps: int,
        together: int | None = None,
    ) -> list[Trial]:
        """Follow the fields of variants of one plan, whose fits are made together."""
        began = perf_counter()
        held = self.held_out(whole=whole)
        columns: list[np.ndarray] = []
        levels = [level for _, level in variants]
        status = ["ok"] * len(levels)
        used = list(levels)
        observations = []
        settled = substeps
        for number, (train, judge) in enumerate(zip(self.train(steps), held, strict=True)):
            try:
                prepared = variants[0][0].prepare(train)
                if not whole:
                    prepared = compacted(prepared)
                fits = fits_of(prepared)
                good = [
                    j
                    for j, (field, _) in enumerate(fits)
                    if not isinstance(field, str) and all(np.isfinite(c[j]).all() for c in columns)
                ]
                found = np.full((len(levels), len(self.lengths), judge.count), np.inf)
                for begin in range(0, len(good), together or max(1, len(good))):
                    some = good[begin : begin + together] if together else good
                    found[some], needed = judge.errors(
                        [fits[j][0] for j in some],
                        prepared.shift,
                        prepared.scale,
                        prepared.known,
                        substeps=substeps,
                    )
                    settled = max(settled, needed)
            except FAILURES as error:
                status = [f"{type(error).__name__}: {error}"] * len(levels)
                break
            observations.append(len(prepared.occupations))
            for j, (expansion, level) in enumerate(fits):
                used[j] = level if number == 0 else float(np.sqrt(used[j] * level))
                if isinstance(expansion, str):
                    status[j] = expansion
            columns.append(found)
        null = self.null_errors(whole=whole)
        seconds = (perf_counter() - began) / len(levels)
        trials = []
        for j, (plan, level) in enumerate(variants):
            errors, value, spread = None, float("inf"), float("nan")
            ratios = (float("inf"),) * len(self.lengths)
            if status[j] == "ok":
                errors = np.concatenate([c[j] for c in columns], axis=1)
            if errors is not None and not np.isfinite(errors).all():
                errors, status[j] = None, "left behind by other ridges"
            if errors is not None:
                value, spread = score(errors, null)
                ratios = tuple((errors.sum(axis=1) / np.maximum(null.sum(axis=1), 1e-300)).tolist())
            size = int(np.mean(observations)) if observations else 0
            trials.append(
                Trial(
                    plan=plan,
                    level=level,
                    refined_level=used[j] if isinstance(plan.refine, Shooting) else None,
                    stage=stage,
                    observations=size,
                    score=value,
                    spread=spread,
                    ratios=ratios,
                    errors=errors,
                    status=status[j],
                    seconds=seconds,
                    substeps=settled,
                )
            )
        return trials

    def failures(self, plan: Plan, levels: Sequence[float], stage: str, status: str) -> list[Trial]:
        """Return the trials of a plan that could not be judged at all."""
        return [
            Trial(
                plan=plan,
                level=level,
                refined_level=level if isinstance(plan.refine, Shooting) else None,
                stage=stage,
                observations=0,
                score=float("inf"),
                spread=float("nan"),
                ratios=(float("inf"),) * len(self.lengths),
                errors=None,
                status=status,
                seconds=0.0,
            )
            for level in levels
        ]

    def train(self, steps: int | None) -> list[Any]:
        """Return the training part of each fold, thinned to that many steps."""
        key = -1 if steps is None or steps >= self.steps else steps
        if key not in self._thinned:
            whole = [fold.train for fold in self.folds]
            self._thinned[key] = (
                whole if key < 0 else [thin(t, key, longest=self._stretch) for t in whole]
            )
        return self._thinned[key]

    def _fits(
        self, prepared: Prepared, levels: Sequence[float], evidence: bool
    ) -> list[tuple[Any, float]]:
        """Return an expansion, or why there is none, and the ridge level, for each level.

        The level of refined fits is that of the refinement.
        """
        unit, plan = ridge_unit(prepared), prepared.plan
        if plan.refine is None and plan.robust is None:
            order = np.argsort(levels)[::-1]  # a ridge too small for one is too small below
            fits = prepared.path([levels[j] * unit for j in order])
            linear: list[tuple[Any, float]] = [("not tried", level) for level in levels]
            for j, fit in zip(order, fits, strict=True):
                good = fit.expansion is not None and fit.solution.status.ok
                linear[j] = (fit.expansion if good else fit.solution.status.name, levels[j])
                if not good:
                    break
            return linear
        found: list[tuple[Any, float]] = []
        count = len(prepared.occupations)
        for level in levels:
            try:
                fitted = prepared.solve(level * unit, choose=evidence)
            except SolveError as error:
                found.append((error.solution.status.name, level))
                continue
            own = level if fitted.refined is None else fitted.refined.shift / count / unit
            found.append((fitted.field.expansion, own))
        return found
