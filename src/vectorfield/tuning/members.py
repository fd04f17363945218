"""The fields of several plans, followed on held-out trajectories as weighted sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vectorfield.plan import ScaledDrift
from vectorfield.shooting import Flow
from vectorfield.tuning.bench import FAILURES, Bench, ridge_unit
from vectorfield.tuning.bundle import Weighted
from vectorfield.tuning.trials import Trial

__all__ = ["Members", "flows"]


class Members:
    """Plans with their ridges, fitted on the training part of every fold.

    Args:
        bench: where.
        trials: the plans and ridges; those that cannot be fitted are left out.
        steps: how many steps of the data they are fitted to; None for all.
        whole: whether they are followed on all that is held out.

    Attributes:
        trials: those that could be fitted.
        null: (levels, trajectories) errors of the model that stands still.
    """

    def __init__(
        self, bench: Bench, trials: Sequence[Trial], steps: int | None, *, whole: bool
    ) -> None:
        fitted = [(trial, flows(bench, trial, steps)) for trial in trials]
        good = [(trial, found) for trial, found in fitted if found is not None]
        self.trials = [trial for trial, _ in good]
        self.null = bench.null_errors(whole=whole)
        self._bench, self._held = bench, bench.held_out(whole=whole)
        self._folds = [tuple(found[k] for _, found in good) for k in range(len(bench.folds))]
        self._substeps = max([1, *(trial.substeps for trial in self.trials)])

    def __len__(self) -> int:
        return len(self.trials)

    def errors(self, weights: np.ndarray) -> np.ndarray:
        """Return the errors of weighted sums, (R, M) -> (R, levels, trajectories).

        Paths are followed in steps as small as any call so far has needed.
        """
        unit, columns = self._bench.unit, []
        for members, held in zip(self._folds, self._held, strict=True):
            sums = [Weighted(members, w) for w in weights]
            found, self._substeps = held.errors(
                sums, np.zeros_like(unit), unit, substeps=self._substeps, halve=False
            )
            columns.append(found)
        return np.concatenate(columns, axis=2)


def flows(bench: Bench, trial: Trial, steps: int | None) -> list[Flow] | None:
    """Return the field of a trial's plan and ridge on every fold; None where one fails.

    They are functions of x in units of the features' spread, x / unit.
    """
    found: list[Flow] = []
    for train in bench.train(steps):
        try:
            prepared = trial.plan.prepare(train)
            unit = ridge_unit(prepared)
            if trial.plan.refine is not None and trial.refined_level is not None:
                refine = trial.plan.refine.replace(ridge=trial.refined_level * unit)
                prepared = replace(prepared, plan=replace(trial.plan, refine=refine))
            field = prepared.solve(trial.level * unit).field
        except FAILURES:
            return None
        found.append(ScaledDrift(field, np.zeros_like(bench.unit), bench.unit))
    return found
