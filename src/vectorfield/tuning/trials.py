"""What a search tried, and how it went."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from vectorfield.plan import Plan

__all__ = ["TRACKED", "Report", "Trial"]

CLEAR = 3.0  # standard errors
TRACKED = 0.1  # of the null model's Err: what leaves less needs no help


@dataclass(frozen=True, eq=False)
class Trial:
    """One plan, judged on held-out trajectories.

    Attributes:
        plan: the plan, without a ridge while the search goes on.
        level: the ridge, in units of `ridge_unit`.
        refined_level: that of the refinement, where there is one.
        stage: where in the search.
        observations: how many observations it was fitted to, the mean over the folds.
        score: what the objective makes of the errors; smaller is better, and the model that stands
            still has 1.
        spread: standard error of the score over held-out trajectories.
        ratios: error over that of the null model for each length of window; infinite scores are
            those of plans that could not be fitted.
        errors: (levels, trajectories) sums of Err over the windows.
        status: "ok", or why there is no score.
        seconds: what it took; many ridges together are counted once.
        substeps: steps of the integrator in one step of the data that paths were followed with.
    """

    plan: Plan
    level: float
    refined_level: float | None
    stage: str
    observations: int
    score: float
    spread: float
    ratios: tuple[float, ...]
    errors: np.ndarray | None
    status: str
    seconds: float
    substeps: int = 1

    @property
    def ok(self) -> bool:
        """Whether there is a score."""
        return bool(np.isfinite(self.score))

    @property
    def tracks(self) -> bool:
        """Whether whole held-out trajectories are followed, to a tenth of the null model's Err."""
        return self.ratios[-1] <= TRACKED


@dataclass(frozen=True, eq=False)
class Report:
    """What `Search` found. Print it for a table.

    Attributes:
        best: the trial that was chosen.
        runner_up: the best trial of another kernel, loss, prior or refinement at the same stage,
            or from before it where all others were far behind; None if there is none. Where a
            `Blend` was chosen, the best plan by itself.
        trials: all trials, in their order.
        lengths: samples of the windows of each level.
        null: error of the null model for each length, the mean over windows.
        noise: (d,) the estimated noise of the snapshots, in units of the data.
        folds: how many.
        seconds: wall time of the search.
        notes: what the user should know.
        null_spread: standard errors of ``null`` over held-out trajectories.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 6.0, 61)
        >>> xs = [a * np.stack([np.cos(t), -np.sin(t)], axis=1) for a in (0.5, 1.0, 1.5, 2.0)]
        >>> report = vf.MOCK(vf.kernels.Linear(), search=vf.Search(folds=2)).fit(xs, t).report_
        >>> report.best.score < 1e-3
        True
    """

    best: Trial
    runner_up: Trial | None
    trials: tuple[Trial, ...]
    lengths: tuple[int, ...]
    null: tuple[float, ...]
    noise: np.ndarray
    folds: int
    seconds: float
    notes: tuple[str, ...] = field(default=())
    null_spread: tuple[float, ...] = field(default=())

    @property
    def skill(self) -> float:
        """1 - Err / null Err over the longest held-out windows."""
        return 1.0 - self.best.ratios[-1]

    @property
    def beats_null(self) -> bool:
        """Whether the chosen plan has a score more than three standard errors below 1."""
        return beats_null(self.best)

    @property
    def verdict(self) -> str:
        """Say in a sentence how the chosen plan compares with the null model."""
        return verdict(self.best)

    def with_ridge(self, plan: Plan) -> Report:
        """Return the report with the plan that was fitted in the end: the best, its ridge raised.

        Where the system of all training data cannot be solved at the ridge that was judged.
        """
        ridge, before = plan.ridge or 1.0, self.best.plan.ridge or 1.0
        note = (
            f"the ridge was raised to {ridge:.3g}, since the system of all training data is too "
            "close to singular for the one that was judged"
        )
        best = replace(self.best, plan=plan, level=self.best.level * ridge / before)
        kept = [text for text in self.notes if not text.startswith("the ridge was raised")]
        return replace(self, best=best, notes=(*kept, note))

    def frame(self) -> list[dict[str, Any]]:
        """Return one dictionary a trial, for a table of pandas or polars."""
        rows = []
        for trial in self.trials:
            plan = trial.plan
            rows.append(
                {
                    "stage": trial.stage,
                    "score": trial.score,
                    "spread": trial.spread,
                    "kernel": repr(plan.kernel),
                    "level": trial.level,
                    "rule": repr(plan.rule),
                    "noise": repr(plan.noise),
                    "prior": repr(plan.prior),
                    "smoother": repr(plan.smoother),
                    "robust": repr(plan.robust),
                    "refine": repr(plan.refine),
                    "blend": repr(plan.blend),
                    "observations": trial.observations,
                    "seconds": trial.seconds,
                    "status": trial.status,
                }
            )
        return rows

    def __str__(self) -> str:
        lines = [
            f"{len(self.trials)} trials in {self.seconds:.1f} s, {self.folds} "
            f"{'fold' if self.folds == 1 else 'folds'}; errors on held-out trajectories over the "
            "null model's",
            "",
        ]
        heads = ["", "score", "+-", *(f"{k} samples" for k in self.lengths)]
        spreads = self.null_spread or (float("nan"),) * len(self.null)
        null = [f"({_with_error(v, e)})" for v, e in zip(self.null, spreads, strict=True)]
        rows = [["null model", "1", "", *null]]
        named = [("chosen", self.best)]
        if self.runner_up is not None:
            second = "runner-up" if self.best.plan.blend is None else "best single"
            named.append((second, self.runner_up))
        for name, trial in named:
            shares = [f"{v:.3g}" for v in trial.ratios]
            error = f"{trial.spread:.1g}" if np.isfinite(trial.spread) else ""
            rows.append([name, f"{trial.score:.3g}", error, *shares])
        widths = [max(len(row[j]) for row in [heads, *rows]) for j in range(len(heads))]
        lines += [
            "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True))
            for row in [heads, *rows]
        ]
        lines.append("")
        lines += [f"{name}: {describe(trial.plan)}" for name, trial in named]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(line.rstrip() for line in lines)

    __repr__ = __str__


def beats_null(trial: Trial) -> bool:
    """Whether the score is more than three standard errors below 1, that of the null model.

    Three, because it is the best of many: one of a hundred plans that know nothing lies two below.
    """
    margin = CLEAR * trial.spread if np.isfinite(trial.spread) else 0.0
    return trial.ok and trial.score + margin < 1.0


def verdict(trial: Trial) -> str:
    """Return a sentence on how a trial compares with the null model."""
    if not trial.ok:
        return f"no plan could be fitted; {trial.status}"
    scores = f"score {_with_error(trial.score, trial.spread)}, that of the null model 1"
    if beats_null(trial):
        return scores
    return (
        "nothing is clearly better than the null model, x(t) = x(0): the data do not show a field "
        f"({scores})"
    )


def _with_error(value: float, error: float) -> str:
    """Return "value +- error", the error left out where there is none."""
    return f"{value:.3g}" + (f" +- {error:.1g}" if np.isfinite(error) else "")


def describe(plan: Plan) -> str:
    """Return the settings that are not left out, in a line."""
    parts = [repr(plan.kernel), f"ridge={plan.ridge:.3g}" if plan.ridge else "ridge by formula"]
    for name in ("rule", "noise", "prior", "smoother", "refine", "robust"):
        value = getattr(plan, name)
        if value is not None:
            parts.append(f"{name}={value!r}")
    text = ", ".join(parts)
    if plan.blend is None:
        return text
    members = [f"{plan.blend.own:.3g} of ({text})"]
    for other, weight in zip(plan.blend.plans, plan.blend.weights, strict=True):
        members.append(f"{weight:.3g} of ({describe(other)})")
    return "blend: " + " + ".join(members)
