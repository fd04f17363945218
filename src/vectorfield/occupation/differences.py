"""Gradient matching: values of f against difference quotients of the snapshots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vectorfield.occupation._layout import banded, segments
from vectorfield.occupation.occupations import Occupations, Rule, observe
from vectorfield.trajectories import Trajectories

__all__ = ["CentralDifference", "ForwardDifference"]


@dataclass(frozen=True)
class ForwardDifference(Rule):
    """The paper's ablation: match f at a sample with the slope to the next one.

    f(x_k) ~ (x_{k+1} - x_k) / h   with h = t_{k+1} - t_k; order 1 in h.

    Nodes are the P snapshots, the last of each trajectory unused; S = P - n. Cost: O(P).

    Example:
        >>> from vectorfield.occupation import ForwardDifference
        >>> from vectorfield.trajectories import Trajectories
        >>> data = Trajectories.from_arrays([[[0.0], [1.0], [4.0]]], 0.5)
        >>> occupations = ForwardDifference()(data)
        >>> occupations.targets
        array([[2.],
               [6.]])
        >>> occupations.weights.toarray()
        array([[1., 0., 0.],
               [0., 1., 0.]])
    """

    def __call__(self, trajectories: Trajectories) -> Occupations:
        """Return S = P - n observations on the P snapshots."""
        times = trajectories.times
        left, owner = segments(trajectories.offsets)
        rate = 1.0 / (times[left + 1] - times[left])
        one, two = np.ones(len(left), dtype=np.int64), np.full(len(left), 2)
        weights = banded(left, one, np.ones((1, len(left))), len(times))
        differences = banded(left, two, np.stack([-rate, rate]), len(times))
        return observe(trajectories, weights, differences, owner)


@dataclass(frozen=True)
class CentralDifference(Rule):
    """Match f at interior samples with the derivative of the parabola through three samples.

    f(x_k) ~ (h_0 / h_1 (x_{k+1} - x_k) + h_1 / h_0 (x_k - x_{k-1})) / (h_0 + h_1)
    with h_0 = t_k - t_{k-1} and h_1 = t_{k+1} - t_k; order 2 in h on any grid. A trajectory of
    two samples has no interior and gives (f(x_0) + f(x_1)) / 2 ~ (x_1 - x_0) / h, of order 2
    as well.

    Nodes are the P snapshots; a trajectory of n_i samples gives max(n_i - 2, 1) observations.
    Cost: O(P).

    Example:
        >>> from vectorfield.occupation import CentralDifference
        >>> from vectorfield.trajectories import Trajectories
        >>> data = Trajectories.from_arrays([[[0.0], [1.0], [9.0]]], [[0.0, 1.0, 3.0]])
        >>> occupations = CentralDifference()(data)  # the parabola t^2 at t = 1
        >>> occupations.targets.round(9)
        array([[2.]])
        >>> occupations.weights.toarray()
        array([[0., 1., 0.]])
    """

    def __call__(self, trajectories: Trajectories) -> Occupations:
        """Return max(n_i - 2, 1) observations for each trajectory, on the P snapshots."""
        times, offsets = trajectories.times, trajectories.offsets
        lengths = trajectories.lengths
        repeats = np.maximum(lengths - 2, 1)
        owner = np.repeat(np.arange(len(lengths)), repeats)
        rank = np.arange(len(owner)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        first = offsets[owner] + rank
        counts = np.minimum(lengths[owner], 3)
        pair = counts == 2

        before = times[first + 1] - times[first]
        after = times[first + counts - 1] - times[first + counts - 2]
        low = np.where(pair, -1.0 / before, -after / (before * (before + after)))
        high = np.where(pair, 1.0 / before, before / (after * (before + after)))
        middle = np.where(pair, high, -(low + high))
        differences = banded(first, counts, np.stack([low, middle, high]), len(times))

        share = np.where(pair, 0.5, 1.0)
        weights = banded(
            np.where(pair, first, first + 1),
            np.where(pair, 2, 1),
            np.stack([share, share]),
            len(times),
        )
        return observe(trajectories, weights, differences, owner)
