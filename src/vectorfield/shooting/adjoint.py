"""Derivatives of a loss of paths by the field: one sweep forward, one backward.

The paths are those of the classical Runge-Kutta method, and so are the derivatives: exact for the
discrete scheme, to rounding. With lambda = dJ / dx_(k+1) the stages k_1 ... k_4 of a step have

    v_4 = h/6 lambda,            v_3 = h/3 lambda + h   J_4^T v_4,
    v_2 = h/3 lambda + h/2 J_3^T v_3,   v_1 = h/6 lambda + h/2 J_2^T v_2,

and dJ / dx_k = lambda + sum_s J_s^T v_s. A change e_s of the field at stage s moves the loss by
v_s . e_s, so that points and v together are the derivative by anything that the field depends on.
The cost does not grow with the number of coefficients beyond that of calling the field.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from vectorfield.shooting.paths import WEIGHTS
from vectorfield.shooting.windows import Windows

__all__ = ["Pullable", "Tape", "ordered", "record"]


class Pullable(Protocol):
    """A field with products of its transposed Jacobian."""

    def __call__(self, x: Any) -> Any:
        """Return f(x), (n, d) to (n, d)."""

    def pull(self, x: Any, v: Any) -> Any:
        """Return J(x)^T v for each of n points, (n, d) and (n, d) to (n, d)."""


@dataclass(frozen=True, eq=False)
class Tape:
    """Paths and where their stages called the field.

    Attributes:
        states: (n, L, d) the paths; a window that has ended keeps its last state.
        points: for each substep of each step (4, a, d), with a the windows still under way.
    """

    states: np.ndarray
    points: list[np.ndarray]
    _steps: np.ndarray
    _active: np.ndarray
    _substeps: int

    def pull(self, flow: Pullable, slopes: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield points and v, (4, a, d) each, for dJ / dx ``slopes`` (n, L, d), from the end.

        Where all slopes from a step on are zero v is too, wherever the path went.
        """
        n, _, d = slopes.shape
        adjoint = np.zeros((n, d))
        place = len(self.points)
        for k in range(len(self._active) - 1, -1, -1):
            a = int(self._active[k])
            adjoint[:a] += slopes[:a, k + 1]
            h = (self._steps[:a, k] / self._substeps)[:, None]
            quiet = np.asarray(~adjoint[:a].any(axis=1))
            for _ in range(self._substeps):
                place -= 1
                points = self.points[place]
                if quiet.any():  # they may have run away: any point will do for J^T 0
                    points = np.where(quiet[None, :, None], self.states[None, :a, 0], points)
                v = np.empty_like(points)
                back = adjoint[:a]
                v[3] = WEIGHTS[3] * h * back
                turned = flow.pull(points[3], v[3])
                total = turned
                for stage, reach in ((2, 1.0), (1, 0.5), (0, 0.5)):
                    v[stage] = WEIGHTS[stage] * h * back + reach * h * turned
                    turned = flow.pull(points[stage], v[stage])
                    total = total + turned
                adjoint[:a] = back + total
                yield points, v


def ordered(windows: Windows) -> tuple[Windows, np.ndarray]:
    """Return the windows from the longest to the shortest, and how many take each step (L - 1,).

    A batch of them then gets smaller as it goes, and no step of length zero is taken.
    """
    order = np.argsort(-windows.present.sum(axis=1), kind="stable")
    sorted_ = Windows(
        windows.observed[order], windows.steps[order], windows.present[order], windows.places[order]
    )
    return sorted_, sorted_.present[:, 1:].sum(axis=0).astype(int)


def record(
    flow: Pullable,
    starts: np.ndarray,
    steps: np.ndarray,
    active: np.ndarray,
    substeps: int = 1,
) -> Tape:
    """Follow the flow from starts (n, d) along steps (n, L - 1), and keep what it takes to go back.

    ``active`` says how many windows, the first ones, take each step; see `ordered`. Cost
    4 ``substeps`` calls of the flow a step; memory 4 ``substeps`` d numbers for each.
    """
    n, d = starts.shape
    states = np.empty((n, len(active) + 1, d))
    states[:] = starts[:, None]
    kept = []
    with np.errstate(all="ignore"):
        for k, a in enumerate(active.tolist()):
            x = states[:a, k]
            h = (steps[:a, k] / substeps)[:, None]
            for _ in range(substeps):
                points = np.empty((4, a, d))
                points[0] = x
                one = flow(points[0])
                points[1] = x + 0.5 * h * one
                two = flow(points[1])
                points[2] = x + 0.5 * h * two
                three = flow(points[2])
                points[3] = x + h * three
                four = flow(points[3])
                x = x + h / 6.0 * (one + 2.0 * (two + three) + four)
                kept.append(points)
            states[:a, k + 1] = x
            states[a:, k + 1] = states[a:, k]
    return Tape(states, kept, steps, active, substeps)
