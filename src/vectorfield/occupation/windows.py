"""Rules over windows of many samples: sums of increments, and the weak form."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from vectorfield._settings import check_integer
from vectorfield.occupation._interpolation import (
    CHUNK,
    Stencils,
    check_even,
    gauss,
    lagrange_basis,
    stencils,
)
from vectorfield.occupation._layout import Spans, banded, windows
from vectorfield.occupation.increments import IncrementRule, Trapezoid
from vectorfield.occupation.occupations import Occupations, Rule, observe
from vectorfield.trajectories import Trajectories

__all__ = ["WeakForm", "Windows"]


@dataclass(frozen=True)
class Windows(Rule):
    """Increments over windows of several samples, any rule of increments inside.

    (L f)_s = sum of the rule's rows over the steps of window s,   y_s = x(end) - x(start):
    W -> A W and D -> A D with A the matrix of zeros and ones. The order in h is that of the
    rule. A longer window has a larger signal against the same snapshot noise; windows that
    overlap are correlated, which `SnapshotNoise` accounts for.

    A trajectory shorter than ``samples`` is one window. When the stride does not meet the end
    of a trajectory, a last window ends there.

    Nodes are those of the rule. Cost: O(S samples b) for a rule with b entries a row.

    Args:
        samples: samples in a window, at least 2; 2 with stride 1 is the rule itself.
        rule: `Trapezoid`, `Lagrange` or `Spline`.
        stride: samples from the start of one window to that of the next.

    Example:
        >>> from vectorfield.occupation import Windows
        >>> from vectorfield.trajectories import Trajectories
        >>> data = Trajectories.from_arrays([[[0.0], [1.0], [4.0], [9.0]]], 1.0)
        >>> occupations = Windows(samples=3)(data)
        >>> occupations.weights.toarray()
        array([[0.5, 1. , 0.5, 0. ],
               [0. , 0.5, 1. , 0.5]])
        >>> occupations.targets
        array([[4.],
               [8.]])
    """

    samples: int = 5
    rule: IncrementRule = field(default_factory=Trapezoid)
    stride: int = 1

    def __post_init__(self) -> None:
        check_integer("samples", self.samples, at_least=2)
        check_integer("stride", self.stride, at_least=1)
        if not isinstance(self.rule, IncrementRule):
            raise TypeError(
                "rule must be a rule of increments such as Trapezoid(), Lagrange() or Spline(), "
                f"got {self.rule!r}"
            )

    def __call__(self, trajectories: Trajectories) -> Occupations:
        """Return one observation for each window, on the nodes of the rule."""
        steps = self.rule(trajectories)
        spans = windows(trajectories.offsets, self.samples, self.stride)
        n_steps = spans.counts - 1
        ones = np.ones((n_steps.max(), len(n_steps)))
        gather = banded(spans.first - spans.owner, n_steps, ones, len(steps))
        weights, differences = gather @ steps.weights, gather @ steps.differences
        differences.eliminate_zeros()  # x_k inside a window: +1 and -1
        return observe(
            trajectories,
            weights,
            differences,
            spans.owner,
            nodes=steps.nodes,
            node_owner=steps.node_owner,
        )


@dataclass(frozen=True)
class WeakForm(Rule):
    """Test functions against f: no derivative of the data, and noise is averaged.

    int phi f(x) dt = - int phi' x dt   with phi(t) = (4 (t - a)(b - t) / (b - a)^2)^degree on
    the window [a, b], zero at its ends and 1 in the middle. f and x are replaced by their local
    interpolation f ~ sum_j f(x_j) l_j, x ~ sum_j x_j l_j (as in `Lagrange`) and the integrals
    W[s, j] = int phi_s l_j dt, D[s, j] = - int phi_s' l_j dt are exact, on any grid of times.
    A constant x gives y = 0 to rounding, and the identity is exact where x is a polynomial of
    degree < ``interpolation`` in t and f along it as well.

    The order in h is ``interpolation`` - 1, the limit being - int phi' x dt. On even grids that
    error is odd about the middle of a window and cancels: the order is ``interpolation``,
    except where the stencils of the first and last step of a trajectory take part. Linear
    interpolation is thus of first order on uneven grids; use 4 or more there.

    A trajectory shorter than ``samples`` is one window; when the stride does not meet the end
    of a trajectory, a last window ends there.

    Nodes are the P snapshots. Cost: O(S samples interpolation (degree + interpolation)), and
    rows of samples + interpolation - 2 entries.

    Args:
        samples: samples in a window, at least 2.
        degree: smoothness of phi; phi has degree - 1 continuous derivatives.
        interpolation: 2, 4, 6 or 8 samples.
        stride: samples from the start of one window to that of the next.

    Example:
        >>> from vectorfield.occupation import WeakForm
        >>> from vectorfield.trajectories import Trajectories
        >>> data = Trajectories.from_arrays([[[0.0], [1.0], [2.0]]], 1.0)
        >>> occupations = WeakForm(samples=3, degree=1, interpolation=2)(data)
        >>> occupations.weights.toarray().round(6)
        array([[0.25    , 0.833333, 0.25    ]])
        >>> occupations.differences.toarray().round(6)
        array([[-0.666667,  0.      ,  0.666667]])
    """

    samples: int = 9
    degree: int = 4
    interpolation: int = 4
    stride: int = 1

    def __post_init__(self) -> None:
        check_integer("samples", self.samples, at_least=2)
        check_integer("degree", self.degree, at_least=1)
        check_even("interpolation", self.interpolation)
        check_integer("stride", self.stride, at_least=1)

    def __call__(self, trajectories: Trajectories) -> Occupations:
        """Return one observation for each window, on the P snapshots."""
        times, offsets = trajectories.times, trajectories.offsets
        near = stencils(offsets, self.interpolation)
        spans = windows(offsets, self.samples, self.stride)
        start = spans.first - spans.owner  # first segment of each window
        last = start + spans.counts - 2
        first = near.first[start]
        counts = near.first[last] + near.counts[last] - first
        moments = np.zeros((2, counts.max(), len(start)))
        # Windows that begin in one block of segments share the Lagrange basis there.
        blocks = np.searchsorted(start, np.arange(0, len(near.left) + CHUNK, CHUNK))
        for begin, end in pairwise(blocks):
            if begin < end:
                rows = slice(begin, end)
                part = Spans(spans.first[rows], spans.counts[rows], spans.owner[rows])
                self._add_moments(times, near, part, moments[:, :, rows])
        weights = banded(first, counts, moments[0], len(times))
        differences = banded(first, counts, moments[1], len(times))
        return observe(trajectories, weights, differences, spans.owner)

    def _add_moments(
        self, times: np.ndarray, near: Stencils, spans: Spans, moments: np.ndarray
    ) -> None:
        """Add the integrals of phi l_j and - phi' l_j to ``moments`` (2, B, S)."""
        # phi l_j is a polynomial of degree 2 degree + interpolation - 1 on each segment.
        at, mass = gauss(self.degree + (self.interpolation + 1) // 2)
        start = spans.first - spans.owner
        stop = start + spans.counts - 1
        low = int(start[0])
        basis = lagrange_basis(times, near, at, slice(low, int(stop[-1])))
        opening = times[spans.first]
        duration = times[spans.first + spans.counts - 1] - opening
        corner = near.first[start]
        for position in range(int(spans.counts.max()) - 1):
            rows = np.flatnonzero(start + position < stop)
            segment = start[rows] + position
            left = near.left[segment]
            h = times[left + 1] - times[left]
            u = (times[left] - opening[rows] + h * at[:, None]) / duration[rows]
            bump = 4.0 * u * (1.0 - u)
            power = mass[:, None] * h * bump ** (self.degree - 1)
            slope = (self.degree * 4.0) * (1.0 - 2.0 * u) / duration[rows]
            tests = np.stack([power * bump, -power * slope])
            column = near.first[segment] - corner[rows]
            for j, l_j in enumerate(basis[:, :, segment - low]):
                moments[:, column + j, rows] += np.einsum("kgs,gs->ks", tests, l_j)
