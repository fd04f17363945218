"""Forward selection and backward pruning of the inputs of many outputs, side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vectorfield import _backend
from vectorfield._progress import report
from vectorfield.structure.basis import LEVELS
from vectorfield.structure.design import Design
from vectorfield.structure.model import (
    Model,
    empty,
    extend,
    fit_on,
    join,
    joint_functions,
    unlinked,
)
from vectorfield.structure.scores import Screen
from vectorfield.structure.stopping import improvement, threshold

__all__ = ["Chosen", "Limits", "select"]

TOGETHER = 64  # outputs whose fits are in memory at once
ENTERS = 1.0  # standard errors by which a step has to lower held-out errors
CLEAR = 1.645  # standard errors by which a basis of more functions has to be better
JOINED = 2  # pairs of inputs whose interaction is fitted, of those that promise most
WIDER = 3  # times as many candidates before a search stops
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
        needed: the z that each gain had to reach.
        null: sum of squared held-out errors of the constant.
    """

    model: Model
    gains: np.ndarray
    needed: float
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
            ranked = screen([models[k] for k in active])
            turns = [
                _Turn(models[k], scores, partners, limits, screen)
                for k, scores, partners in zip(active, *ranked, strict=True)
            ]
            moved = []
            for k, after in zip(active, _backend.run_parallel(_step, turns), strict=True):
                if after is not None:
                    models[k] = after
                    if len(after.inputs) < limits.most_inputs:
                        moved.append(k)
            active = moved
        chosen += _backend.run_parallel(lambda model: _prune(model, limits), models)
        report("structure", len(chosen) / len(outputs))
    return chosen


def _begin(design: Design, output: int) -> Model:
    """Return the model of the output's own coordinate: what interacts does so with it, often."""
    own = extend(empty(design, output, 0), output)
    return empty(design, output, 0) if own is None else own


@dataclass(frozen=True, eq=False)
class _Turn:
    """One output whose model is to go a step on: scores and partners are (d,), see `Screen`."""

    model: Model
    scores: np.ndarray
    partners: np.ndarray
    limits: Limits
    screen: Screen

    def better(self, new: Model | None) -> Model | None:
        """Return a model if it is better than the present one by more than chance."""
        return new if new is not None and _better(self.model, new, self.limits) else None

    def candidates(self, most: int) -> list[int]:
        """Return the inputs that promise most."""
        return _candidates(self.model, self.scores, most)


def _step(turn: _Turn) -> Model | None:
    """Return the model one step on, the first of the moves that is better; None where none is."""
    if turn.model.total <= SPENT * turn.model.floor:
        return None
    for move in (_joined, _widened_or_richer, _widened_late, _widened_richly, _widened_by_pair):
        after = move(turn)
        if after is not None:
            return after
    return None


def _joined(turn: _Turn) -> Model | None:
    """Let two inputs interact: nothing new is looked at."""
    return turn.better(_best_join(turn.model, unlinked(turn.model)))


def _widened_or_richer(turn: _Turn) -> Model | None:
    """Take one more input, or functions of higher order of those that there are."""
    model = turn.model
    wider = _best(model, turn.candidates(turn.limits.candidates), turn.partners)
    richer = None
    if model.level + 1 < len(LEVELS):
        level = model.level + 1
        deeper = fit_on(model.design, model.output, level, model.inputs, model.links)
        richer = turn.better(deeper)
    if richer is not None and (wider is None or richer.total <= wider.total):
        return richer
    accepted = turn.better(wider)
    return richer if accepted is None else accepted


def _widened_late(turn: _Turn) -> Model | None:
    """Take an input that ranks low."""
    few = turn.limits.candidates
    return turn.better(_best(turn.model, turn.candidates(WIDER * few)[few:], turn.partners))


def _widened_richly(turn: _Turn) -> Model | None:
    """Take an input that only a richer basis shows."""
    model, few = turn.model, turn.candidates(turn.limits.candidates)
    for level in range(model.level + 1, len(LEVELS)):
        base = fit_on(model.design, model.output, level, model.inputs, model.links)
        if base is not None:
            after = turn.better(_best(base, few, turn.partners, brief=True))
            if after is not None:
                return after
    return None


def _widened_by_pair(turn: _Turn) -> Model | None:
    """Take two inputs of which neither helps alone."""
    if turn.model.design.d > turn.limits.pairs_up_to:
        return None
    return turn.better(_best_pair(turn.model, turn.screen, turn.limits))


def _candidates(model: Model, scores: np.ndarray, most: int) -> list[int]:
    order = np.argsort(scores)[::-1][:most]
    best = float(scores[order[0]])
    return [int(j) for j in order if scores[j] > 0.0 and scores[j] >= FAINT * best]


def _best(
    model: Model, candidates: list[int], partners: np.ndarray, *, brief: bool = False
) -> Model | None:
    """Return the best model with one more input: alone, with its partner, or with all inputs.

    More interactions have to show in held-out errors; ``brief`` tries the partner alone.
    """
    best = None
    for j in candidates:
        own = None
        for way in _ways(model, j, partners, brief):
            trial = extend(model, j, way)
            if trial is None:
                continue
            if own is None or (
                trial.total < own.total and improvement(own.sums, trial.sums) > CLEAR
            ):
                own = trial
        if own is not None and (best is None or own.total < best.total):
            best = own
    return best


def _ways(model: Model, j: int, partners: np.ndarray, brief: bool) -> list[tuple[int, ...]]:
    if not model.inputs:
        return [()]
    partner = (model.inputs[partners[j]],)
    if brief:
        return [partner]
    return [(), partner] if len(model.inputs) == 1 else [(), partner, model.inputs]


def _best_join(model: Model, places: list[tuple[int, int]]) -> Model | None:
    """Return the best model in which two of the inputs interact, of those that promise most."""
    scores = []
    for a, b in places:
        rows = model.design.operator.apply(joint_functions(model, a, b))
        sizes = np.einsum("qs,qs->q", rows, rows)
        gain = (rows @ model.errors) ** 2 / np.where(sizes > 0, sizes, 1.0)
        scores.append(float(gain.sum()))
    best = None
    for k in np.argsort(scores)[::-1][:JOINED]:
        trial = join(model, *places[k])
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
    return best


def _better(old: Model, new: Model, limits: Limits) -> bool:
    if not old.total - new.total > new.floor:
        return False
    return improvement(old.sums, new.sums) > ENTERS  # strict at the end: see `_prune`


def _prune(model: Model, limits: Limits) -> Chosen:
    """Drop inputs one by one as long as held-out errors do not grow by it."""
    design = model.design
    null = empty(design, model.output, 0).total
    while True:
        without = [_without(model, k) for k in model.inputs]
        kept = [m for m in without if m is not None]
        needed = threshold(limits.level, design.d, len(model.sums))
        worth = np.array([improvement(m.sums, model.sums) for m in kept])
        above = np.array([m.total - model.total > model.floor for m in kept], dtype=bool)
        loose = np.flatnonzero(~((worth > needed) & above))
        if len(loose) == 0:
            gains = np.array([m.sums - model.sums for m in kept])
            gains = gains.reshape(len(kept), len(model.sums))
            return Chosen(model, gains, needed, null)
        model = kept[loose[np.argmin(worth[loose])]]


def _without(model: Model, k: int) -> Model | None:
    kept = [(j, links) for j, links in zip(model.inputs, model.links, strict=True) if j != k]
    inputs, links = tuple(j for j, _ in kept), tuple(other for _, other in kept)
    return fit_on(model.design, model.output, model.level, inputs, links)
