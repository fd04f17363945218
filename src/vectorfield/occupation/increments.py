"""Rules of increments: x(t_{k+1}) - x(t_k) against a quadrature of f along the trajectory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from vectorfield import _backend
from vectorfield._settings import check_integer
from vectorfield.occupation._interpolation import (
    check_even,
    chunks,
    gauss,
    lagrange_basis,
    stencils,
)
from vectorfield.occupation._layout import Segments, banded, segments
from vectorfield.occupation._spline import spline_states
from vectorfield.occupation.occupations import Occupations, Rule, observe
from vectorfield.trajectories import Trajectories

__all__ = ["IncrementRule", "Lagrange", "Spline", "Trapezoid"]


class IncrementRule(Rule):
    """A rule with one observation for each step between successive samples, in order.

    The target is x_{k+1} - x_k, the functional a quadrature of int f(x(t)) dt over the step.

    Example:
        >>> from vectorfield.occupation import CentralDifference, IncrementRule, Spline
        >>> isinstance(Spline(), IncrementRule), isinstance(CentralDifference(), IncrementRule)
        (True, False)
    """

    __slots__ = ()


@dataclass(frozen=True)
class Trapezoid(IncrementRule):
    """The paper's two-sample rule.

    (h / 2) (f(x_k) + f(x_{k+1})) ~ x_{k+1} - x_k   with h = t_{k+1} - t_k; order 2 in h.

    Nodes are the P snapshots; S = P - n for n trajectories. Cost: O(P).

    Example:
        >>> from vectorfield.occupation import Trapezoid
        >>> from vectorfield.trajectories import Trajectories
        >>> data = Trajectories.from_arrays([[[0.0], [2.0], [6.0]]], [[0.0, 1.0, 3.0]])
        >>> Trapezoid()(data).weights.toarray()
        array([[0.5, 0.5, 0. ],
               [0. , 1. , 1. ]])
    """

    def __call__(self, trajectories: Trajectories) -> Occupations:
        """Return S = P - n observations on the P snapshots."""
        steps = segments(trajectories.offsets)
        half = 0.5 * _lengths(trajectories.times, steps.left)
        weights = banded(
            steps.left, np.full(len(half), 2), np.stack([half, half]), len(trajectories.times)
        )
        return observe(trajectories, weights, _increments(trajectories, steps), steps.owner)


@dataclass(frozen=True)
class Lagrange(IncrementRule):
    """Integrate the polynomial through f at the nearest snapshots, on any grid of times.

    sum_j w_j f(x_j) ~ x_{k+1} - x_k   with w_j = int_{t_k}^{t_{k+1}} l_j(t) dt and l_j the
    Lagrange basis on ``samples`` snapshots: centred on the step, shifted inwards at the ends,
    all there are in a shorter trajectory. The weights are exact, the rule has order ``samples``
    in h and integrates polynomials of lower degree than that. ``samples=2`` is `Trapezoid`.

    The price is sum_j |w_j| / h, by which errors in f are amplified; it is 1 for the trapezoid.
    On even grids it is at most 1.5 for 4 samples and 5 for 8 (the steps at the ends), with
    steps drawn uniformly from [0.2, 1] below 3 and below 22 for 99 steps in 100. Where steps
    differ by orders of magnitude (exponential gaps: above 50 and above 3,000 for 1 in 100)
    keep to `Trapezoid`.

    Nodes are the P snapshots; S = P - n for n trajectories. Cost: O(P samples^2).

    Args:
        samples: 2, 4, 6 or 8.

    Example:
        >>> from vectorfield.occupation import Lagrange
        >>> from vectorfield.trajectories import Trajectories
        >>> data = Trajectories.from_arrays([[[0.0], [1.0], [2.0], [3.0]]], 24.0)
        >>> Lagrange(samples=4)(data).weights.toarray().round(9)
        array([[ 9., 19., -5.,  1.],
               [-1., 13., 13., -1.],
               [ 1., -5., 19.,  9.]])
    """

    samples: int = 4

    def __post_init__(self) -> None:
        check_even("samples", self.samples)

    def __call__(self, trajectories: Trajectories) -> Occupations:
        """Return S = P - n observations on the P snapshots."""
        times = trajectories.times
        near = stencils(trajectories.offsets, self.samples)
        at, mass = gauss(self.samples // 2)
        values = np.empty((near.counts.max(), len(near.left)))
        for part in chunks(len(near.left)):
            basis = lagrange_basis(times, near, at, part)
            values[:, part] = np.einsum("g,jgm->jm", mass, basis)
        values *= _lengths(times, near.left)
        weights = banded(near.first, near.counts, values, len(times))
        steps = Segments(near.left, near.owner)
        return observe(trajectories, weights, _increments(trajectories, steps), steps.owner)


@dataclass(frozen=True)
class Spline(IncrementRule):
    """Gauss-Legendre nodes inside each step, on the cubic spline through the snapshots.

    (h / 2) sum_g w_g f(s(t_k + h (1 + u_g) / 2)) ~ x_{k+1} - x_k   with s the not-a-knot spline
    of the trajectory: the parabola through three samples, the line through two. Order 4 in h
    (3 and 2 for such short trajectories); `Lagrange` interpolates f, this rule interpolates x,
    which asks less of an f that varies faster along the path than the path itself. As in
    `Lagrange`, steps that differ by orders of magnitude make the interpolation unstable: at
    exponential gaps errors in x are amplified more than 50-fold at 1 node in 100.

    There are Q = S ``points`` nodes, none of them a snapshot; S = P - n for n trajectories.
    Cost: O(P d) for one tridiagonal solve, on the host, and O(Q d).

    Args:
        points: nodes in each step; 1 is the midpoint rule and has order 2.

    Example:
        >>> from vectorfield.occupation import Spline
        >>> from vectorfield.trajectories import Trajectories
        >>> data = Trajectories.from_arrays([[[0.0], [1.0], [8.0], [27.0]]], 1.0)
        >>> occupations = Spline(points=1)(data)
        >>> occupations.nodes[:, 0].round(9)
        array([ 0.125,  3.375, 15.625])
        >>> occupations.durations
        array([1., 1., 1.])
    """

    points: int = 3

    def __post_init__(self) -> None:
        check_integer("points", self.points, at_least=1)

    def __call__(self, trajectories: Trajectories) -> Occupations:
        """Return S = P - n observations on S ``points`` nodes between the snapshots."""
        steps = segments(trajectories.offsets)
        at, mass = gauss(self.points)
        n_steps = len(steps.left)
        weights = banded(
            self.points * np.arange(n_steps),
            np.full(n_steps, self.points),
            mass[:, None] * _lengths(trajectories.times, steps.left),
            self.points * n_steps,
        )
        states = _backend.to_numpy(trajectories.states)
        nodes = spline_states(trajectories.times, states, trajectories.offsets, at)
        return observe(
            trajectories,
            weights,
            _increments(trajectories, steps),
            steps.owner,
            nodes=_backend.array_like(nodes, trajectories.states),
            node_owner=np.repeat(steps.owner, self.points),
        )


def _lengths(times: np.ndarray, left: np.ndarray) -> np.ndarray:
    lengths: np.ndarray = times[left + 1] - times[left]
    return lengths


def _increments(trajectories: Trajectories, steps: Segments) -> sp.csr_array:
    """D with rows -1, +1 on the ends of each step."""
    n = len(steps.left)
    signs = np.broadcast_to(np.array([[-1.0], [1.0]]), (2, n))
    return banded(steps.left, np.full(n, 2), signs, len(trajectories.times))
