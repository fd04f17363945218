"""One output on some inputs: least squares in folds, and errors on what each fold held out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vectorfield.structure.basis import (
    DECAY,
    LEVELS,
    extra_columns,
    extra_weights,
    pair_columns,
    pair_orders,
)
from vectorfield.structure.design import Design

__all__ = ["Model", "empty", "extend", "fit_on", "join", "joint_functions", "unlinked"]

RIDGES = (1e-10, 1e-3, 1e-2, 1e-1)  # of the mean diagonal; the least held-out error chooses
ROUNDING = 1e-10  # of the targets' sum of squares
MOST = 0.2  # functions for each row of a fit


@dataclass(frozen=True, eq=False)
class Model:
    """Least squares of one output on the basis of some inputs.

    Attributes:
        design: the data.
        output: i.
        level: index of `LEVELS`.
        inputs: those chosen, in order.
        links: the inputs that each interacts with, of those before it.
        known: (order, Q) polynomials of each input.
        functions: (q, Q) the basis at the nodes.
        rows: (q, S) A of the basis.
        grams: (K, q, q) products of the rows with each other, for each fold.
        rights: (K, q) products with the targets.
    """

    design: Design
    output: int
    level: int
    inputs: tuple[int, ...]
    links: tuple[tuple[int, ...], ...]
    known: tuple[np.ndarray, ...]
    functions: np.ndarray
    rows: np.ndarray
    grams: np.ndarray
    rights: np.ndarray

    @cached_property
    def _solved(self) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients and held-out errors of the best ridge."""
        gram, right = self.grams.sum(axis=0), (self.rights.sum(axis=0) - self.rights)[:, :, None]
        size = max(float(np.trace(gram)) / len(gram), np.finfo(float).tiny)
        penalty = size * np.eye(len(gram))
        best = (np.inf, right[:, :, 0], self.design.targets[self.output])
        for ridge in RIDGES:
            c = np.linalg.solve(gram - self.grams + ridge * penalty, right)[:, :, 0]
            left = np.array(self.design.targets[self.output])
            for fold, own in zip(self.design.folds, c, strict=True):
                left[fold] -= own @ self.rows[:, fold]
            total = float(left @ left)
            if total < best[0]:
                best = (total, c, left)
        return best[1], best[2]

    @property
    def coefficients(self) -> np.ndarray:
        """(K, q) those that each fold's rows were held out of."""
        return self._solved[0]

    @property
    def errors(self) -> np.ndarray:
        """(S,) what is left of the targets, each by the fit that held it out."""
        return self._solved[1]

    @cached_property
    def sums(self) -> np.ndarray:
        """(G,) sums of squared errors by group."""
        return self.design.sums(self.errors**2)

    @property
    def total(self) -> float:
        """The sum of squared held-out errors."""
        return float(self.sums.sum())

    @cached_property
    def floor(self) -> float:
        """What another rule of quadrature would change: gains below it are no evidence."""
        value = self.coefficients.mean(axis=0) @ self.functions
        gap = self.design.check.apply(value[None, :]) - self.design.operator.apply(value[None, :])
        rounding = ROUNDING * float(np.sum(self.design.targets[self.output] ** 2))
        return max(float(np.sum(gap * gap)), rounding)


def empty(design: Design, output: int, level: int) -> Model:
    """Return the model of no inputs, a constant."""
    ones = np.ones((1, design.states.shape[1]))
    rows = design.operator.apply(ones)
    grams, rights = _products(design, output, rows, rows)
    return Model(design, output, level, (), (), (), ones, rows, grams, rights)


def extend(model: Model, j: int, partners: tuple[int, ...] | None = None) -> Model | None:
    """Return the model with one more input; None where there are too few rows for its basis.

    ``partners`` are the inputs that it interacts with, all by default.
    """
    design, level = model.design, LEVELS[model.level]
    partners = model.inputs if partners is None else partners
    at = [model.inputs.index(k) for k in partners]
    joined = [
        (a, b)
        for b in range(len(at))
        for a in range(b)
        if partners[a] in model.links[at[b]] or partners[b] in model.links[at[a]]
    ]
    weights = extra_weights(level, len(at), len(joined))
    if len(model.functions) + len(weights) > _most(design):
        return None
    new = design.polynomials(design.states[j], j, max(level.main, level.pair - 1))
    functions = extra_columns(level, [model.known[a] for a in at], joined, new)
    return _appended(
        model,
        functions * weights[:, None],
        (*model.inputs, j),
        (*model.links, partners),
        (*model.known, new),
    )


def join(model: Model, a: int, b: int) -> Model | None:
    """Return the model in which the inputs at places a < b interact, too."""
    functions = joint_functions(model, a, b)
    if len(model.functions) + len(functions) > _most(model.design):
        return None
    links = list(model.links)
    links[b] = (*links[b], model.inputs[a])
    return _appended(model, functions, model.inputs, tuple(links), model.known)


def joint_functions(model: Model, a: int, b: int) -> np.ndarray:
    """Return the products of two inputs, weighted, (q, Q)."""
    level = LEVELS[model.level]
    weights = DECAY ** (np.array(pair_orders(level)) - 1.0)
    return pair_columns(level, model.known[a], model.known[b]) * weights[:, None]


def unlinked(model: Model) -> list[tuple[int, int]]:
    """Return the places a < b of inputs that do not interact."""
    return [
        (a, b)
        for b in range(len(model.inputs))
        for a in range(b)
        if model.inputs[a] not in model.links[b]
    ]


def _most(design: Design) -> float:
    return MOST * design.rows * (1.0 - 1.0 / len(design.folds))


def _appended(
    model: Model,
    functions: np.ndarray,
    inputs: tuple[int, ...],
    links: tuple[tuple[int, ...], ...],
    known: tuple[np.ndarray, ...],
) -> Model:
    design = model.design
    rows = design.operator.apply(functions)
    own, rights = _products(design, model.output, rows, rows)
    cross, _ = _products(design, model.output, model.rows, rows)
    upper = np.concatenate([model.grams, cross], axis=2)
    lower = np.concatenate([cross.transpose(0, 2, 1), own], axis=2)
    return Model(
        design,
        model.output,
        model.level,
        inputs,
        links,
        known,
        np.concatenate([model.functions, functions]),
        np.concatenate([model.rows, rows]),
        np.concatenate([upper, lower], axis=1),
        np.concatenate([model.rights, rights], axis=1),
    )


def fit_on(
    design: Design,
    output: int,
    level: int,
    inputs: tuple[int, ...],
    links: tuple[tuple[int, ...], ...] | None = None,
) -> Model | None:
    """Return the model of some inputs; None where there are too few rows for its basis.

    ``links`` are the partners of each input among those before it, all by default; partners that
    are no inputs are left out.
    """
    model: Model | None = empty(design, output, level)
    for place, j in enumerate(inputs):
        if model is None:
            return None
        partners = None
        if links is not None:
            partners = tuple(k for k in links[place] if k in model.inputs)
        model = extend(model, j, partners)
    return model


def _products(
    design: Design, output: int, left: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return left right^T and right y for every fold."""
    y = design.targets[output]
    grams = np.stack([left[:, fold] @ right[:, fold].T for fold in design.folds])
    rights = np.stack([right[:, fold] @ y[fold] for fold in design.folds])
    return grams, rights
