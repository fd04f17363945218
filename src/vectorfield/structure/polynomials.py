"""Orthonormal polynomials of every coordinate, on the values that it takes in the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Polynomials"]

BLOCK = 64  # coordinates at a time, so that the work stays in a cache


@dataclass(frozen=True, eq=False)
class Polynomials:
    """p_0 = 1, p_1, ... of every coordinate, with mean p_a p_b = delta_ab over the nodes.

    By the three-term recurrence (Stieltjes): beta_(a+1) p_(a+1) = (x - alpha_a) p_a - beta_a
    p_(a-1). A coordinate of few distinct values has that many polynomials; the others are zero.

    Attributes:
        alpha, beta: (order + 1, d) the coefficients.

    Example:
        >>> import numpy as np
        >>> from vectorfield.structure.polynomials import Polynomials
        >>> x = np.linspace(-1.0, 1.0, 101)[None, :]
        >>> p = Polynomials.of(x, 3)(x[0], 0, 3)
        >>> bool(np.allclose(p @ p.T / 101, np.eye(3)))
        True
    """

    alpha: np.ndarray
    beta: np.ndarray

    @classmethod
    def of(cls, states: np.ndarray, order: int) -> Polynomials:
        """Return the coefficients for states (d, Q)."""
        d, count = states.shape
        alpha, beta = np.zeros((order + 1, d)), np.zeros((order + 1, d))
        for start in range(0, d, BLOCK):
            x = states[start : start + BLOCK]
            span = slice(start, start + len(x))
            before, now = np.zeros_like(x), np.ones_like(x)
            for a in range(order):
                alpha[a, span] = np.einsum("jq,jq,jq->j", x, now, now) / count
                after = (x - alpha[a, span, None]) * now - beta[a, span, None] * before
                size = np.sqrt(np.mean(after * after, axis=1))
                kept = size > 1e-6
                beta[a + 1, span] = np.where(kept, size, 0.0)
                after *= np.where(kept, 1.0 / np.where(kept, size, 1.0), 0.0)[:, None]
                before, now = now, after
        return cls(alpha, beta)

    def __call__(self, x: np.ndarray, which: int | slice, order: int) -> np.ndarray:
        """Return p_1 ... p_order of coordinate ``which`` at its values ``x`` (Q,), (order, Q).

        With a slice of k coordinates and x (k, Q), the result is (order, k, Q).
        """
        alpha, beta = self.alpha[:, which], self.beta[:, which]
        value = np.empty((order, *x.shape))
        before: np.ndarray | float = 0.0
        now: np.ndarray | float = 1.0
        for a in range(order):
            size = beta[a + 1]
            inverse = np.where(size > 0, 1.0 / np.where(size > 0, size, 1.0), 0.0)
            np.subtract(x, alpha[a][..., None], out=value[a])
            value[a] *= now
            value[a] -= beta[a][..., None] * before
            value[a] *= inverse[..., None]
            before, now = now, value[a]
        return value
