"""Refinement on the errors of rollouts, where the data are not tracked without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vectorfield.plan import Plan
from vectorfield.shooting import Rollouts
from vectorfield.tuning import candidates
from vectorfield.tuning.context import Context
from vectorfield.tuning.objectives import HeldOutErrors
from vectorfield.tuning.tasks import HIGHEST, Task
from vectorfield.tuning.trials import TRACKED, Trial

__all__ = ["refine_rollouts"]

ITERATIONS = (3, 6, 12, 24)
FEATURES = 250  # an iteration costs as much as they are many
EVERYWHERE = 4  # starts of windows in each trajectory, where these are few samples
CHEAP = 3000  # steps up to which windows start in several places
HEAVIER = (1.0, 10.0, 100.0)  # ridges, over that which is best without


def refine_rollouts(context: Context, best: Sequence[Trial]) -> list[Trial]:
    """Judge refinements of the best plan; return the best of them and what it is compared with.

    They are tried where errors stay large both after one step and over whole trajectories: noise
    or what is no field at all is then a large part of the data, and a regression on increments is
    biased. On clean data a step is predicted well, even where the flow is chaotic. The number of
    iterations is chosen by held-out error like everything else. A refinement is kept if it is
    better by more than the standard error of the difference; else the trials are returned as they
    came.
    """
    finalists = list(best)
    objective = context.search.objective
    if not isinstance(objective, HeldOutErrors) or not _pays(context, finalists[0]):
        return finalists
    base = finalists[0]
    # the plan without, on all of the data, for the same trajectories
    judged = context.try_all([(base.plan, [base.level])], "all", None, done=0.92, whole=True)
    plain = judged[0] if judged else base
    first = _best_refined(context, base)
    if first is None or first.errors is None or plain.errors is None:
        return finalists
    null = context.bench.null_errors(whole=True)
    if first.errors.shape != null.shape or plain.errors.shape != null.shape:
        return finalists  # time did not allow the comparison
    gain, spread = objective.gain(plain.errors, first.errors, null)
    return [first, plain] if gain > spread else finalists  # NaN: one trajectory shows nothing


def _best_refined(context: Context, base: Trial) -> Trial | None:
    """Return the best number of iterations for the ridge of ``base`` and for heavier ones."""
    plan = _plan(context, base.plan)
    best: Trial | None = None
    for factor in HEAVIER if "ridge" in context.open else HEAVIER[:1]:
        level = base.level * factor
        if level > HIGHEST or context.out_of_time():
            break
        task = Task(plan, (level,), "rollouts", whole=True, iterations=ITERATIONS)
        (found,) = context.judge(context.bench, [task], done=0.97)
        if not found:
            break
        first = min(found, key=lambda t: t.score)
        if best is not None and not first.score < best.score:
            break
        best = first
    return best


def _pays(context: Context, trial: Trial) -> bool:
    """Whether a refinement is asked for, possible, and may be worth it."""
    plan = trial.plan
    if plan.refine is not None or plan.robust is not None:
        return False
    if not context.comparable("refine", [Rollouts()]):
        return False
    return trial.ok and trial.ratios[0] > TRACKED and not trial.tracks


def _plan(context: Context, plan: Plan) -> Plan:
    """Return the plan with a refinement, its kernel by features where it is to be chosen."""
    kernel = plan.kernel
    if "kernel" in context.open:
        kernel = candidates.with_features(candidates.without_features(kernel), FEATURES)
    starts = EVERYWHERE if context.bench.steps <= CHEAP else 1
    return replace(plan, kernel=kernel, refine=Rollouts(starts=starts))
