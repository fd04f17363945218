"""Fits of whole windows, where snapshots are noisy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from vectorfield.kernels import Monomials
from vectorfield.occupation import SnapshotNoise, Trapezoid
from vectorfield.plan import Plan
from vectorfield.shooting import Shooting
from vectorfield.tuning import candidates
from vectorfield.tuning.context import REFINED, Context, distinct
from vectorfield.tuning.judge import ranked
from vectorfield.tuning.tasks import Task
from vectorfield.tuning.trials import Trial

__all__ = ["fit_windows"]

COEFFICIENTS = 1400  # the most that shooting is tried with
FEATURES = 250
WINDOWS = (60, 20)  # samples; whole trajectories too where they are longer


def fit_windows(context: Context, best: Sequence[Trial]) -> list[Trial]:
    """Judge fits of windows from estimated starts; return the best and what it is compared with.

    Where none is better than the best plan without, the trials are returned as they came.
    """
    finalists = list(best)
    if not context.noisy or not {"refine", "noise"} <= context.open:
        return finalists
    robust = finalists[0].plan.robust is not None  # outliers would count in full again
    astray = "prior" in context.jointly  # no field follows these data: no window is a path of one
    if robust or astray or not context.comparable("refine", [Shooting()]):
        return finalists
    d = context.train.d
    count = min(FEATURES, COEFFICIENTS // d, max(20, context.bench.steps // 8))
    if count < 3 * d or not finalists[0].ok:
        return finalists
    longest = int(np.median(context.train.lengths))
    plain = _judged(context, [(finalists[0].plan, finalists[0].level)])
    if not plain:  # time is over
        return finalists
    plans = _plans(context, finalists[0], count, min(WINDOWS[0], longest))
    first = next((t for t in _judged(context, plans) if t.ok), None)
    if first is None or first.score >= plain[0].score:
        return finalists
    if longest > WINDOWS[1]:
        others = (WINDOWS[1], None if longest > WINDOWS[0] else WINDOWS[0])
        changed = [(replace(first.plan, refine=Shooting(k)), first.level) for k in others]
        first = ranked([t] for t in (first, *_judged(context, changed)))[0]
    return [first, plain[0]]


def _plans(context: Context, best: Trial, count: int, window: int) -> Iterable[tuple[Plan, float]]:
    """Yield plans for the leading kernels by features, and for the polynomials."""
    seen = set()
    for trial in [*context.leaders(best, 2), *_smooth_polynomials(context, best)]:
        kernel = candidates.without_features(trial.plan.kernel)
        kernel = candidates.with_features(kernel, count)
        if not candidates.is_explicit(kernel) or kernel in seen:
            continue
        seen.add(kernel)
        plan = trial.plan
        plan = replace(
            plan,
            kernel=kernel,
            rule=Trapezoid() if "rule" in context.open else plan.rule,
            noise=SnapshotNoise(),
            smoother=None if "smoother" in context.open else plan.smoother,
            prior=None if "prior" in context.open else plan.prior,
            refine=Shooting(window),
        )
        yield plan, trial.level


def _judged(context: Context, plans: Iterable[tuple[Plan, float]]) -> list[Trial]:
    batch = [
        Task(
            plan,
            (level,),
            "windows" if plan.refine is None else "shooting",
            REFINED,
            evidence=plan.refine is not None,
        )
        for plan, level in plans
    ]
    return ranked(context.judge(context.estimated, batch, done=0.9))


def _smooth_polynomials(context: Context, best: Trial) -> list[Trial]:
    """Polynomials that did not fail: with the noise out of the way one may be all there is."""
    found = ranked([t] for t in context.trials if t.ok and t.stage == "kernels")
    plans = [t for t in distinct(found) if isinstance(t.plan.kernel, Monomials)]
    return [
        replace(t, plan=replace(best.plan, kernel=t.plan.kernel))
        for t in plans
        if t.plan.kernel.degree > 1  # type: ignore[union-attr]
    ]
