"""One search: its stages in order, and the report of what was found."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from vectorfield.plan import Plan
from vectorfield.shooting import Shooting
from vectorfield.trajectories import Trajectories
from vectorfield.tuning.context import Context
from vectorfield.tuning.stages import STAGES
from vectorfield.tuning.trials import Report, Trial, beats_null, verdict

if TYPE_CHECKING:
    from vectorfield.tuning.search import Search

__all__ = ["run"]


def run(
    search: Search,
    plan: Plan,
    left_open: frozenset[str],
    train: Trajectories,
    validation: Trajectories | None,
) -> Report:
    """Search stage by stage, each beginning from what the one before it found."""
    with nullcontext() if search.study is None else search.study.open() as record:
        context = Context(search, plan, left_open, train, validation, record=record)
        best: list[Trial] = []
        for stage in STAGES:
            best = stage(context, best)
    context.judge.close()
    chosen = best[0]
    runner = next(iter(best[1:]), None) or context.runner_up(chosen)
    bench = context.bench if len(chosen.ratios) == len(context.lengths) else context.estimated

    def settled(trial: Trial) -> Trial:
        reported = search.objective.reported(bench, trial)
        return replace(reported, plan=context.with_ridge(trial))

    null, null_spread = bench.null()
    return Report(
        best=settled(chosen),
        runner_up=None if runner is None else settled(runner),
        trials=tuple(context.trials),
        lengths=bench.lengths,
        null=tuple(null.tolist()),
        null_spread=tuple(null_spread.tolist()),
        noise=context.facts.noise,
        folds=len(context.splits),
        seconds=context.judge.budget.seconds,
        notes=tuple(_notes(context, chosen)),
    )


def _notes(context: Context, chosen: Trial) -> list[str]:
    notes = []
    if not beats_null(chosen):
        notes.append(verdict(chosen))
    if isinstance(chosen.plan.refine, Shooting) and "refine" in context.open:
        notes.append(
            "snapshots are noisy: these errors are from starts that were estimated on each "
            "window, and have the noise of the samples in them, as the true field's would"
        )
    if context.out_of_time():
        notes.append(f"stopped after max_time = {context.search.max_time:g} s")
    return notes
