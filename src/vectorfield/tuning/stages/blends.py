"""A convex combination of the best few plans, where it is better than each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vectorfield._progress import report
from vectorfield.blend import Blend
from vectorfield.tuning.bench import Bench
from vectorfield.tuning.context import MEDIUM, REFINED, Context, distinct
from vectorfield.tuning.members import Members
from vectorfield.tuning.objectives import HeldOutErrors
from vectorfield.tuning.stacking import Stack, stack
from vectorfield.tuning.trials import Trial

__all__ = ["blend"]

MEMBERS = 4
NEGLIGIBLE = 1e-4  # of the null model's error: what is left is not the kernel's fault
SHARE = 0.25  # of the work of the search so far
EACH, MOST = 5, 60  # combinations a member, at least, and in all, at most
ESTIMATED = ("windows", "shooting")  # stages that judge from starts that are estimated


def blend(context: Context, best: Sequence[Trial]) -> list[Trial]:
    """Judge weighted sums of the fields of the best plans; put the best first if it is better.

    The members are fitted on the training part of every fold and followed on what was held out,
    like any plan. Work is counted in observations that paths are followed through, not in
    seconds, so that a search does the same on any machine.
    """
    first = best[0] if best else None
    if first is None or not first.ok or first.score <= NEGLIGIBLE or context.out_of_time():
        return list(best)
    judged = isinstance(context.search.objective, HeldOutErrors)
    if first.stage == "rollouts":  # refined on rollouts for long: each member would be, again
        return list(best)
    if not judged or not {"kernel", "blend"} <= context.open:
        return list(best)
    bench = context.estimated if first.stage in ESTIMATED else context.bench
    members = _members(context, first)
    for steps, whole in _sizes(context, first):
        most = _allowance(context, bench, steps, whole=whole)
        chosen = members[: most // EACH]
        if len(chosen) > 1:
            found = _stacked(context, bench, chosen, steps, whole=whole, most=most)
            return list(best) if found is None else [found, *best]
    return list(best)


def _members(context: Context, first: Trial) -> list[Trial]:
    """Return the chosen plan, and the best others that were judged with as much data."""
    same = [t for t in context.trials if t.ok and t.stage == first.stage]
    same.sort(key=lambda t: t.score)
    other = [t for t in context.trials if t.ok and t.stage == "parts"]
    other = [t for t in other if t.plan.prior != first.plan.prior and first.plan.refine is None]
    other.sort(key=lambda t: t.score)
    return distinct([first, *same[: 8 * MEMBERS], *other[:1]])[:MEMBERS]


def _sizes(context: Context, first: Trial) -> list[tuple[int | None, bool]]:
    """Return steps of the data, and whether all that is held out is followed: largest first."""
    if first.plan.refine is not None or first.stage == "windows":
        return [(REFINED, False)]
    return [(None, True), (MEDIUM, False)]


def _allowance(context: Context, bench: Bench, steps: int | None, *, whole: bool) -> int:
    """Return how many combinations a quarter of the work so far on this bench is worth.

    Where starts are estimated a combination costs far more, and only such trials are counted.
    """
    estimated = bench is context.estimated
    trials = [t for t in context.trials if (t.stage in ESTIMATED) == estimated]
    done = sum(t.observations for t in trials)
    total = bench.steps if steps is None else min(steps, bench.steps)
    each = total * _windows(bench, whole=whole) / _windows(bench, whole=False)
    return min(MOST, int(SHARE * done / each))


def _windows(bench: Bench, *, whole: bool) -> int:
    return sum(len(level.windows) for held in bench.held_out(whole=whole) for level in held.levels)


def _stacked(
    context: Context,
    bench: Bench,
    trials: Sequence[Trial],
    steps: int | None,
    *,
    whole: bool,
    most: int,
) -> Trial | None:
    report("search: blend", 0.95)
    objective = context.search.objective
    members = Members(bench, trials, steps, whole=whole)
    if len(members) < 2 or not isinstance(objective, HeldOutErrors):
        return None
    found = stack(members.errors, len(members), objective, members.null, most=most)
    return _trial(context, objective, members, found) if found.kept else None


def _trial(context: Context, objective: HeldOutErrors, members: Members, found: Stack) -> Trial:
    """Return the trial of the heaviest member with the others as its blend."""
    order = [m for m in np.argsort(-found.weights, kind="stable") if found.weights[m] > 0]
    own, others = members.trials[order[0]], [members.trials[m] for m in order[1:]]
    plans = tuple(context.with_ridge(trial) for trial in others)
    mixed = Blend(plans, tuple(float(found.weights[m]) for m in order[1:]))
    score, spread = objective.score(found.errors, members.null)
    ratios = found.errors.sum(axis=1) / np.maximum(members.null.sum(axis=1), 1e-300)
    trial: Trial = replace(
        own,
        plan=replace(own.plan, blend=mixed),
        stage="blend",
        score=score,
        spread=spread,
        ratios=tuple(ratios.tolist()),
        errors=found.errors,
    )
    context.judge.trials.append(trial)
    return trial
