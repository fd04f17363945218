"""Forward selection and backward pruning of the inputs of many outputs, side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vectorfield import _backend
from vectorfield._progress import report
from vectorfield.structure.basis import LEVELS
from vectorfield.structure.design import Design
from vectorfield.structure.model import Model, empty, extend, fit_on
from vectorfield.structure.scores import Screen
from vectorfield.structure.stopping import improvement, threshold

__all__ = ["Chosen", "Limits", "select"]

TOGETHER = 64  # outputs whose fits are in memory at once
FAINT = 0.05  # of the best score: candidates below it are not fitted
SPENT = 2.0  # quadrature errors: held-out errors below cannot be told from them


@dataclass(frozen=True)
class Limits:
    """How far the search goes; see `vectorfield.Structure`."""

    level: float
    candidates: int
    most_inputs: int
    pairs_up_to: int


@dataclass(frozen=True, eq=False)
class Chosen:
    """The inputs of one output, and what each is worth.

    Attributes:
        model: the fit on all of them.
        gains: (p, G) by how much held-out errors grow, by group, without each.
        limits: (p,) the z that each gain had to reach.
        null: sum of squared held-out errors of the constant.
    """

    model: Model
    gains: np.ndarray
    limits: np.ndarray
    null: float


def select(design: Design, outputs: list[int], limits: Limits) -> list[Chosen]:
    """Return the inputs of some outputs."""
    screen = Screen.of(design)
    chosen: list[Chosen] = []
    for start in range(0, len(outputs), TOGETHER):
        part = outputs[start : start + TOGETHER]
        models = _backend.run_parallel(lambda i: _begin(design, i), part)
        active = list(range(len(part)))
        while active:
            scores = screen([models[k] for k in active])
            work = list(zip(active, scores, strict=True))
            after = _backend.run_parallel(
                lambda item: _step(models[item[0]], item[1], limits, screen), work
            )
            moved = []
            for k, (model, more) in zip(active, after, strict=True):
                models[k] = model
                if more:
                    moved.append(k)
            active = moved
        chosen += _backend.run_parallel(lambda model: _prune(model, limits), models)
        report("structure", len(chosen) / len(outputs))
    return chosen


def _begin(design: Design, output: int) -> Model:
    """Return the model of the output's own coordinate: what interacts does so with it, often."""
    own = extend(empty(design, output, 0), output)
    return empty(design, output, 0) if own is None else own


def _step(model: Model, scores: np.ndarray, limits: Limits, screen: Screen) -> tuple[Model, bool]:
    """Return the best model one step on, and whether there may be more."""
    if model.total <= SPENT * model.floor:
        return model, False
    wider = _best(model, _candidates(model, scores, limits))
    tried = model.design.d - len(model.inputs)
    richer = None
    if model.level + 1 < len(LEVELS):
        richer = fit_on(model.design, model.output, model.level + 1, model.inputs)
    good_wider = wider is not None and _better(model, wider, tried, limits)
    good_richer = richer is not None and _better(model, richer, 1, limits)
    if good_richer and richer is not None and (wider is None or richer.total <= wider.total):
        return richer, True
    if good_wider and wider is not None:
        return wider, len(wider.inputs) < limits.most_inputs
    if good_richer and richer is not None:
        return richer, True
    if wider is not None and richer is not None:  # what neither shows alone
        both = extend(richer, wider.inputs[-1])
        if both is not None and _better(model, both, tried, limits):
            return both, len(both.inputs) < limits.most_inputs
    if model.design.d <= limits.pairs_up_to:
        pair = _best_pair(model, screen, limits)
        if pair is not None:
            return pair, len(pair.inputs) < limits.most_inputs
    return model, False


def _candidates(model: Model, scores: np.ndarray, limits: Limits) -> list[int]:
    order = np.argsort(scores)[::-1][: limits.candidates]
    best = float(scores[order[0]])
    return [int(j) for j in order if scores[j] > 0.0 and scores[j] >= FAINT * best]


def _best(model: Model, candidates: list[int]) -> Model | None:
    if len(model.inputs) >= model.design.d:
        return None
    best = None
    for j in candidates:
        trial = extend(model, j)
        if trial is not None and (best is None or trial.total < best.total):
            best = trial
    return best


def _best_pair(model: Model, screen: Screen, limits: Limits) -> Model | None:
    best = None
    for j, k in screen.pairs(model, limits.candidates):
        first = extend(model, j)
        trial = None if first is None else extend(first, k)
        if trial is not None and (best is None or trial.total < best.total):
            best = trial
    d = model.design.d
    if best is not None and _better(model, best, d * (d - 1) // 2, limits):
        return best
    return None


def _better(old: Model, new: Model, tried: int, limits: Limits) -> bool:
    if not old.total - new.total > new.floor:
        return False
    added = max(1, len(new.functions) - len(old.functions))
    needed = threshold(limits.level, tried, added, len(old.sums))
    return improvement(old.sums, new.sums) > needed


def _prune(model: Model, limits: Limits) -> Chosen:
    """Drop inputs one by one as long as held-out errors do not grow by it."""
    design = model.design
    null = empty(design, model.output, 0).total
    while True:
        without = [
            fit_on(design, model.output, model.level, tuple(j for j in model.inputs if j != k))
            for k in model.inputs
        ]
        kept = [m for m in without if m is not None]
        tried = design.d
        needed = np.array(
            [
                threshold(
                    limits.level, tried, len(model.functions) - len(m.functions), len(m.sums)
                )
                for m in kept
            ]
        )
        worth = np.array([improvement(m.sums, model.sums) for m in kept])
        above = np.array([m.total - model.total > model.floor for m in kept], dtype=bool)
        loose = np.flatnonzero(~((worth > needed) & above))
        if len(loose) == 0:
            gains = np.array([m.sums - model.sums for m in kept]).reshape(len(kept), -1)
            return Chosen(model, gains, needed, null)
        model = kept[loose[np.argmin(worth[loose])]]
