"""What all rivals share when they are tuned: who is held out, how it is judged, what is kept."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from vectorfield._errors import DataError
from vectorfield._progress import report
from vectorfield.metrics import Scores, evaluate
from vectorfield.simulate import Outcome, rollout
from vectorfield.trajectories import Trajectories
from vectorfield.tuning.bench import FAILURES
from vectorfield.tuning.folds import Fold, folds
from vectorfield.tuning.heldout import CAP
from vectorfield.tuning.trials import Report, Trial

__all__ = ["Attempt", "Attempts", "Proposals", "judge", "repeat", "spread", "tune"]

RTOL = 1e-6  # of the rollouts that candidates are judged by
MOST_STEPS = 5  # for each sample, 250 at least: a field that takes more runs away, or is stiff
ENOUGH = 3000  # steps from which on one fold is enough, as in `Search`

Flow = Callable[[Any], Any]
Learned = TypeVar("Learned")
Proposals = Generator[Mapping[str, Any], float, None]
"""Settings to try, one after the other; each ``yield`` returns the score of what it proposed."""


@dataclass(frozen=True, eq=False)
class Attempt:
    """One choice of settings, judged on held-out trajectories.

    Attributes:
        choices: what was tried, pairs of a name and a value; ``settings`` has them as a dictionary.
        score: mean Err of rollouts over that of the null model, each feature in units of its
            standard deviation. None counts for more than ten times the null model's, nor does one
            that stops early; infinite where nothing could be fitted.
        status: "ok", how many rollouts stopped early, or why there was no fit.
        seconds: of fitting and judging.
    """

    choices: tuple[tuple[str, Any], ...]
    score: float
    status: str
    seconds: float

    @property
    def settings(self) -> dict[str, Any]:
        """The choices by name."""
        return dict(self.choices)

    def __str__(self) -> str:
        return ", ".join(f"{k}={_short(v)}" for k, v in self.choices) or "no settings"


@dataclass(frozen=True, eq=False)
class Attempts:
    """All that a rival tried. Print it for the best few.

    Attributes:
        best: the attempt of the lowest score.
        attempts: all, in their order.
        folds: how many parts were held out in turn.
        seconds: of the whole tuning.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 6.0, 61)
        >>> xs = [a * np.stack([np.cos(t), -np.sin(t)], axis=1) for a in (0.5, 1.0, 1.5, 2.0)]
        >>> search = vf.comparators.LogGrid(folds=2)
        >>> report = vf.comparators.Paper(search=search).fit(xs, t).report_
        >>> report.best.score < 0.05, len(report)
        (True, 40)
    """

    best: Attempt
    attempts: tuple[Attempt, ...]
    folds: int
    seconds: float

    @classmethod
    def of(cls, reports: Sequence[Report]) -> Attempts:
        """Return what searches of `vectorfield.tuning` tried, one after the other."""

        def attempt(trial: Trial) -> Attempt:
            plan = trial.plan
            choices = (("rule", plan.rule), ("kernel", plan.kernel), ("level", trial.level))
            return Attempt(choices, trial.score, trial.status, trial.seconds)

        attempts = tuple(attempt(trial) for report in reports for trial in report.trials)
        best = min(attempts, key=lambda attempt: attempt.score)
        seconds = sum(report.seconds for report in reports)
        return cls(best, attempts, reports[0].folds, seconds)

    def __len__(self) -> int:
        return len(self.attempts)

    def __iter__(self) -> Iterator[Attempt]:
        return iter(self.attempts)

    @property
    def skill(self) -> float:
        """1 - Err / null Err of the best attempt on what was held out."""
        return 1.0 - self.best.score

    def frame(self) -> list[dict[str, Any]]:
        """Return one dictionary an attempt, for a table of pandas or polars."""
        return [
            {
                **{key: _short(value) for key, value in attempt.choices},
                "score": attempt.score,
                "status": attempt.status,
                "seconds": attempt.seconds,
            }
            for attempt in self.attempts
        ]

    def __str__(self) -> str:
        failed = sum(attempt.status != "ok" for attempt in self.attempts)
        lines = [
            f"{len(self)} attempts in {self.seconds:.1f} s, {self.folds} "
            f"{'fold' if self.folds == 1 else 'folds'}, {failed} of them with remarks; "
            "Err on held-out trajectories over the null model's",
        ]
        ranked = sorted(self.attempts, key=lambda attempt: attempt.score)
        for attempt in ranked[:5]:
            note = "" if attempt.status == "ok" else f"  ({attempt.status})"
            lines.append(f"  {attempt.score:10.3g}  {attempt}{note}")
        if not self.best.score < 1.0:
            lines.append("note: nothing tried is better than the null model, x(t) = x(0)")
        return "\n".join(lines)

    __repr__ = __str__


def tune(
    proposals: Proposals,
    learn: Callable[[Trajectories, Mapping[str, Any]], Flow],
    train: Trajectories,
    validation: Trajectories | None,
    *,
    count: int,
    random_state: int,
    max_time: float | None = None,
) -> tuple[Flow, Attempts]:
    """Judge every proposal on held-out trajectories; return the best on all of ``train``.

    ``learn(trajectories, settings)`` gives a field. What it cannot fit, and fields that run away,
    are attempts with a status, and the next proposal follows. The validation trajectories are
    held out where there are some, else ``count`` folds over the others.

    Raises:
        DataError: no proposal could be fitted; the message has the first one's reason.
    """
    began = perf_counter()
    splits = folds(train, validation, count, random_state)
    if (train.lengths - 1).sum() > ENOUGH:
        splits = splits[:1]
    unit = spread(train)
    attempts: list[Attempt] = []
    best: tuple[Attempt, list[Flow]] | None = None
    settings = next(proposals, None)
    while settings is not None:
        started = perf_counter()
        models, score, status = _attempt(learn, settings, splits, unit)
        choices = tuple(settings.items())
        attempts.append(Attempt(choices, score, status, perf_counter() - started))
        if np.isfinite(score) and (best is None or score < best[0].score):
            best = attempts[-1], models
        least = "" if best is None else f", best {best[0].score:.3g}"
        report("candidates", 0.0, f"{len(attempts)} attempts{least}")  # how many is not known
        if max_time is not None and best is not None and perf_counter() - began > max_time:
            proposals.close()
            break
        try:
            settings = proposals.send(score)
        except StopIteration:
            settings = None
    report("candidates", 1.0, f"{len(attempts)} attempts")
    if best is None:
        reason = attempts[0].status if attempts else "there was none"
        raise DataError(
            f"none of {len(attempts)} candidates could be fitted; the first: {reason}. Give more "
            "or longer trajectories"
        )
    chosen, models = best
    whole = len(splits) == 1 and splits[0].train is train
    model = models[0] if whole else repeat(learn, train, chosen.settings)
    return model, Attempts(chosen, tuple(attempts), len(splits), perf_counter() - began)


def repeat(
    learn: Callable[[Trajectories, Mapping[str, Any]], Learned],
    train: Trajectories,
    settings: Mapping[str, Any],
) -> Learned:
    """Fit what was judged already; the warnings of the libraries at work are in its status."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return learn(train, settings)


def spread(trajectories: Trajectories) -> np.ndarray:
    """Return the standard deviation of each feature, (d,), 1 for constant ones."""
    states = np.asarray(trajectories.states)
    deviation = states.std(axis=0)
    moving = deviation > 1e-12 * np.abs(states).max(axis=0)
    return np.where(moving, deviation, 1.0)


def judge(
    models: list[Flow], splits: list[Fold], unit: np.ndarray, rtol: float = RTOL
) -> tuple[float, str]:
    """Return Err over the null model's, pooled over the folds, and how the rollouts ended.

    ``models`` has a field for each fold; errors are in units (d,) of each feature.
    """
    found: list[Scores] = []
    outcomes: list[Outcome] = []
    for model, fold in zip(models, splits, strict=True):
        steps = MOST_STEPS * max(50, int(fold.held.lengths.max()))
        run = rollout(model, fold.held, rtol=rtol, max_steps=steps, on_failure="ignore")
        pairs = [(t, x / unit) for t, x in fold.held]
        found.append(evaluate(pairs, [x / unit for x in run.x]))
        outcomes += run.outcomes
    names = ("errs", "one_errs", "null_errs", "null_one_errs")
    pooled = Scores(*(np.concatenate([getattr(f, name) for f in found]) for name in names))
    null = pooled.null_errs
    worst = CAP * np.maximum(null, null.mean())
    score = float(np.minimum(pooled.errs, worst).sum() / max(null.sum(), 1e-300))
    early = [outcome for outcome in outcomes if outcome is not Outcome.FINISHED]
    if not early:
        return score, "ok"
    return score, (
        f"{len(early)} of {len(outcomes)} rollouts stopped early; the first: {early[0].value}"
    )


def _attempt(
    learn: Callable[[Trajectories, Mapping[str, Any]], Flow],
    settings: Mapping[str, Any],
    splits: list[Fold],
    unit: np.ndarray,
) -> tuple[list[Flow], float, str]:
    """Fit and judge one proposal. The warnings of the libraries at work are part of its status."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            models = [learn(fold.train, settings) for fold in splits]
            score, status = judge(models, splits, unit)
        except FAILURES as error:
            return [], float("inf"), f"{type(error).__name__}: {error}"
    if status == "ok" and caught:
        status = str(caught[0].message)
    return models, score, status


def _short(value: Any) -> Any:
    return value if isinstance(value, (str, int, float)) else repr(value)
