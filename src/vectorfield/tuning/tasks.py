"""Tasks: a plan to be judged for several ridges, and ladders of ridges that go on at their ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from vectorfield.plan import Plan
from vectorfield.tuning.bench import Bench
from vectorfield.tuning.objectives import HeldOutErrors
from vectorfield.tuning.trials import Trial

__all__ = ["CLEAN", "HIGHEST", "LOWEST", "NOISY", "Task", "best_ridge", "carry_out", "near"]

ALIKE = 1.01  # scores that differ by less say nothing

LOWEST, HIGHEST = 1e-18, 1e8  # ridge levels
NOISY = tuple(10.0**k for k in range(3, -6, -1))  # ridge levels; see `ridge_unit`
CLEAN = tuple(10.0**k for k in range(0, -17, -2))


@dataclass(frozen=True)
class Task:
    """One candidate: a plan with a ladder of ridges, and on what it is judged.

    Attributes:
        plan: the plan.
        levels: ridges, in units of `ridge_unit`.
        stage: where in the search.
        steps: how many steps of the data are used; None for all.
        whole: whether it is judged on all that is held out.
        evidence: whether refinements choose their ridge by marginal likelihood.
        widen: whether the ladder goes on where its end is best.
        iterations: of a plan's `Rollouts`, each judged for the first level by one run; none else.
    """

    plan: Plan
    levels: tuple[float, ...]
    stage: str
    steps: int | None = None
    whole: bool = False
    evidence: bool = False
    widen: bool = True
    iterations: tuple[int, ...] = ()

    def plan_of(self, place: int) -> Plan:
        """Return the plan of the trial at that place."""
        if not self.iterations or self.plan.refine is None:
            return self.plan
        refine = self.plan.refine.replace(iterations=self.iterations[place])
        return replace(self.plan, refine=refine)


def carry_out(
    bench: Bench, task: Task, substeps: int, over: Callable[[], bool]
) -> tuple[list[Trial], bool]:
    """Judge a task, and say whether time allowed for all of it.

    ``substeps`` are those of the integrator to begin with, and ``over`` says when to stop. Nothing
    else enters, so that tasks may be carried out in any order and anywhere.
    """

    def judge(levels: Sequence[float], substeps: int) -> list[Trial]:
        return bench.judge(
            task.plan,
            levels,
            task.stage,
            steps=task.steps,
            whole=task.whole,
            evidence=task.evidence,
            substeps=substeps,
        )

    if task.iterations:
        objective = bench.objective
        if not isinstance(objective, HeldOutErrors):
            raise TypeError(f"{objective!r} cannot compare refinements; see Objective.compares")
        path = bench.follow_path(
            task.plan,
            task.levels[0],
            task.iterations,
            task.stage,
            objective.score,
            steps=task.steps,
            whole=task.whole,
            substeps=substeps,
        )
        return path, True
    found = judge(task.levels, substeps)
    best = best_ridge(found)
    ladder = list(task.levels)
    while task.widen and best.ok and len(ladder) > 1 and best.level in (max(ladder), min(ladder)):
        factor = 10.0 if best.level == max(ladder) else 0.1  # an optimum at the end: go on
        level = best.level * factor
        if not LOWEST <= level <= HIGHEST:
            break
        if over():
            return found, False
        found += judge([level], best.substeps)
        ladder.append(level)
        if not ALIKE * found[-1].score < best.score:
            break
        best = found[-1]
    return found, True


def near(level: float, *, noisy: bool, span: int = 2) -> tuple[float, ...]:
    """Return a ladder around a level, ``span`` rungs to each side.

    >>> near(1.0, noisy=True, span=1)
    (10.0, 1.0, 0.1)
    """
    step = 10.0 if noisy else 100.0
    rungs = (level * step**k for k in range(span, -span - 1, -1))
    return tuple(v for v in rungs if LOWEST <= v <= HIGHEST) or (level,)


def best_ridge(group: Sequence[Trial]) -> Trial:
    """Return the best trial of a ladder of ridges; of those as good to a percent, the largest."""
    best = min(group, key=lambda t: t.score)
    alike = [t for t in group if t.score <= ALIKE * best.score]
    return max(alike, key=lambda t: t.level) if best.ok else best
