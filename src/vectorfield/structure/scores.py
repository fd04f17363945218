"""Scores of all candidates for many outputs at once, as matrix products.

With r the held-out errors of an output and v = A^T r, the gain of a function g of the state is
about (g . v)^2 / |A g|^2: a product of all functions with all v, for functions of one coordinate
and, with x_s v in place of v, for their products with a coordinate s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vectorfield.structure.design import Design
from vectorfield.structure.model import Model

__all__ = ["Screen"]

MAINS = 4
PRODUCTS = ((1, 1), (2, 1), (1, 2))  # orders of the known input's and the candidate's polynomial
BLOCK = 128  # outputs, and coordinates, at a time


@dataclass(frozen=True, eq=False)
class Screen:
    """Polynomials of all coordinates in single precision: scores only choose what is fitted.

    Attributes:
        design: the data.
        values: (MAINS, d, Q).
        sizes: (MAINS, d) |A p_a(x_j)|^2.
    """

    design: Design
    values: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(cls, design: Design) -> Screen:
        """Prepare the functions."""
        d, nodes = design.states.shape
        values = np.empty((MAINS, d, nodes), dtype=np.float32)
        sizes = np.empty((MAINS, d))
        for start in range(0, d, BLOCK):
            span = slice(start, min(start + BLOCK, d))
            values[:, span] = design.polynomials(design.states[span], span, MAINS)
            for a in range(MAINS):
                rows = design.operator.apply(values[a, span])
                sizes[a, span] = np.einsum("js,js->j", rows, rows)
        return cls(design, values, np.maximum(sizes, 1e-6 * sizes.mean() + 1e-30))

    def __call__(self, models: list[Model]) -> tuple[np.ndarray, np.ndarray]:
        """Return scores and partners, (models, d) each.

        The score is the gain in the sum of squares that a candidate promises, alone and with the
        known input with which it promises most: its partner, as a place among the inputs. Cost
        2 Q d for each model and each of 4 + 3 p functions with p inputs.
        """
        errors = np.stack([model.errors for model in models])
        pulled = self.design.operator.adjoint(errors).astype(np.float32)  # (models, Q)
        alone = np.zeros((len(models), self.design.d))
        for a in range(MAINS):
            alone += (pulled @ self.values[a].T) ** 2 / self.sizes[a]
        typical = float(self.sizes[0].mean())
        together, partners = np.zeros_like(alone), np.zeros(alone.shape, dtype=np.int64)
        for slot in range(max(len(model.inputs) for model in models)):
            having = np.array([k for k, m in enumerate(models) if len(m.inputs) > slot])
            chosen = np.array([models[k].inputs[slot] for k in having])
            value = np.zeros((len(having), self.design.d))
            for of_known, of_new in PRODUCTS:
                weighted = self.values[of_known - 1, chosen] * pulled[having]
                value += (weighted @ self.values[of_new - 1].T) ** 2 / typical
            more = value > together[having]
            together[having] = np.where(more, value, together[having])
            partners[having] = np.where(more, slot, partners[having])
        scores = alone + together
        for k, model in enumerate(models):
            scores[k, list(model.inputs)] = -1.0
        return scores, partners

    def pairs(self, model: Model, most: int) -> list[tuple[int, int]]:
        """Return the pairs of coordinates whose products promise most, neither of them chosen.

        All pairs by three products of (d, Q) matrices, 6 Q d^2 operations in all.
        """
        pulled = self.design.operator.adjoint(model.errors[None, :]).astype(np.float32)
        d = self.design.d
        total = np.zeros((d, d), dtype=np.float32)
        for a, b in PRODUCTS:
            total += ((self.values[a - 1] * pulled) @ self.values[b - 1].T) ** 2
        total += total.T.copy()
        total[list(model.inputs)] = -1.0
        total[:, list(model.inputs)] = -1.0
        upper = np.triu_indices(d, k=1)
        best = np.argsort(total[upper])[::-1][:most]
        found = [(int(upper[0][k]), int(upper[1][k])) for k in best]
        return [pair for pair in found if total[pair] > 0.0]
