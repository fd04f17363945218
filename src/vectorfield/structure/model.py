"""One output on some inputs: least squares in folds, and errors on what each fold held out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vectorfield.structure.basis import LEVELS, extra_columns
from vectorfield.structure.design import Design

__all__ = ["Model", "empty", "extend", "fit_on"]

RIDGE = 1e-9  # of the mean diagonal: keeps singular systems solvable and changes nothing else
MOST = 0.2  # functions for each row of a fit


@dataclass(frozen=True, eq=False)
class Model:
    """Least squares of one output on the basis of some inputs.

    Attributes:
        design: the data.
        output: i.
        level: index of `LEVELS`.
        inputs: those chosen, in order.
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
    known: tuple[np.ndarray, ...]
    functions: np.ndarray
    rows: np.ndarray
    grams: np.ndarray
    rights: np.ndarray

    @cached_property
    def coefficients(self) -> np.ndarray:
        """(K, q) those that each fold's rows were held out of."""
        gram, right = self.grams.sum(axis=0), self.rights.sum(axis=0)
        systems = gram - self.grams
        size = max(float(np.trace(gram)) / len(gram), np.finfo(float).tiny)
        systems += RIDGE * size * np.eye(len(gram))
        return np.asarray(np.linalg.solve(systems, (right - self.rights)[:, :, None])[:, :, 0])

    @cached_property
    def errors(self) -> np.ndarray:
        """(S,) what is left of the targets, each by the fit that held it out."""
        left = np.array(self.design.targets[self.output])
        for fold, c in zip(self.design.folds, self.coefficients, strict=True):
            left[fold] -= c @ self.rows[:, fold]
        return left

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
        return float(np.sum(gap * gap))


def empty(design: Design, output: int, level: int) -> Model:
    """Return the model of no inputs, a constant."""
    ones = np.ones((1, design.states.shape[1]))
    rows = design.operator.apply(ones)
    grams, rights = _products(design, output, rows, rows)
    return Model(design, output, level, (), (), ones, rows, grams, rights)


def extend(model: Model, j: int) -> Model | None:
    """Return the model with one more input; None where there are too few rows for its basis."""
    design, level = model.design, LEVELS[model.level]
    count = level.count(len(model.inputs) + 1)
    if count > MOST * design.rows * (1.0 - 1.0 / len(design.folds)):
        return None
    new = design.polynomials(design.states[j], j, max(level.main, level.pair - 1))
    functions = extra_columns(level, list(model.known), new)
    rows = design.operator.apply(functions)
    own, rights = _products(design, model.output, rows, rows)
    cross, _ = _products(design, model.output, model.rows, rows)
    grams = np.concatenate(
        [
            np.concatenate([model.grams, cross], axis=2),
            np.concatenate([cross.transpose(0, 2, 1), own], axis=2),
        ],
        axis=1,
    )
    return Model(
        design,
        model.output,
        model.level,
        (*model.inputs, j),
        (*model.known, new),
        np.concatenate([model.functions, functions]),
        np.concatenate([model.rows, rows]),
        grams,
        np.concatenate([model.rights, rights], axis=1),
    )


def fit_on(design: Design, output: int, level: int, inputs: tuple[int, ...]) -> Model | None:
    """Return the model of some inputs; None where there are too few rows for its basis."""
    model: Model | None = empty(design, output, level)
    for j in inputs:
        if model is None:
            return None
        model = extend(model, j)
    return model


def _products(
    design: Design, output: int, left: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return left right^T and right y for every fold."""
    y = design.targets[output]
    grams = np.stack([left[:, fold] @ right[:, fold].T for fold in design.folds])
    rights = np.stack([right[:, fold] @ y[fold] for fold in design.folds])
    return grams, rights
