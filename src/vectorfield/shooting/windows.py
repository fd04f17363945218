"""Trajectories cut into windows of samples, padded to one length for a batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vectorfield import _backend
from vectorfield.trajectories import Trajectories

__all__ = ["Windows", "cut", "overlapping"]


@dataclass(frozen=True, eq=False)
class Windows:
    """n windows of at most L samples each; a padded place has a step of zero and no weight.

    Attributes:
        observed: (n, L, d) samples; the last one again where a window is shorter.
        steps: (n, L - 1) steps in time; zero where padded.
        present: (n, L) 1.0 for samples, 0.0 for padding.
        places: (n, L) row of each sample in the trajectories' states.
    """

    observed: np.ndarray
    steps: np.ndarray
    present: np.ndarray
    places: np.ndarray

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def count(self) -> int:
        """Number of samples, those that two windows share counted in both."""
        return int(self.present.sum())

    def gathered(self, states: np.ndarray) -> np.ndarray:
        """Return values (P, d) at all samples as windows (n, L, d)."""
        return np.asarray(states[self.places])

    def merged(self, values: np.ndarray, samples: int) -> np.ndarray:
        """Return values (n, L, d) of windows as (samples, d), the mean where windows meet."""
        total = np.zeros((samples, values.shape[2]))
        times = np.zeros((samples, 1))
        np.add.at(total, self.places, values * self.present[:, :, None])
        np.add.at(times, self.places, self.present[:, :, None])
        return total / np.maximum(times, 1.0)


def cut(trajectories: Trajectories, samples: int | None) -> Windows:
    """Cut every trajectory into pieces of nearly equal length, of at most ``samples`` samples.

    Neighbouring pieces share a sample, so that no step is lost; None leaves trajectories whole.

    >>> from vectorfield.trajectories import Trajectories
    >>> data = Trajectories.from_arrays([[[0.0], [1.0], [2.0], [3.0]]], 0.5)
    >>> windows = cut(data, 3)
    >>> windows.places
    array([[0, 1, 2],
           [2, 3, 3]])
    >>> windows.steps
    array([[0.5, 0.5],
           [0.5, 0. ]])
    """
    first: list[int] = []
    last: list[int] = []
    for begin, end in zip(trajectories.offsets[:-1], trajectories.offsets[1:], strict=True):
        gaps = int(end - begin) - 1
        pieces = 1 if samples is None else -(-gaps // (samples - 1))
        edges = int(begin) + np.linspace(0, gaps, pieces + 1).round().astype(int)
        first += edges[:-1].tolist()
        last += edges[1:].tolist()
    return _between(trajectories, first, last)


def overlapping(trajectories: Trajectories, samples: int | None, starts: int) -> Windows:
    """Return windows of at most ``samples`` samples that begin all along every trajectory.

    Within the reach of a window ``starts`` others begin, itself included, at even distances; the
    last ones of a trajectory are shorter. None: a window reaches as far as the trajectory does.

    >>> from vectorfield.trajectories import Trajectories
    >>> data = Trajectories.from_arrays([[[0.0], [1.0], [2.0], [3.0], [4.0]]], 0.5)
    >>> overlapping(data, None, 2).places
    array([[0, 1, 2, 3, 4],
           [2, 3, 4, 4, 4]])
    >>> overlapping(data, 3, 1).places
    array([[0, 1, 2],
           [2, 3, 4]])
    """
    first: list[int] = []
    last: list[int] = []
    for begin, end in zip(trajectories.offsets[:-1], trajectories.offsets[1:], strict=True):
        gaps = int(end - begin) - 1
        reach = gaps if samples is None else min(samples - 1, gaps)
        places = np.unique((np.arange(starts * -(-gaps // reach)) * reach) // starts)
        places = places[places < gaps]
        first += (int(begin) + places).tolist()
        last += (int(begin) + np.minimum(places + reach, gaps)).tolist()
    return _between(trajectories, first, last)


def _between(trajectories: Trajectories, first: list[int], last: list[int]) -> Windows:
    starts, ends = np.asarray(first), np.asarray(last)
    longest = int((ends - starts).max()) + 1
    reach = starts[:, None] + np.arange(longest)
    places = np.minimum(reach, ends[:, None])
    states = _backend.to_numpy(trajectories.states)
    return Windows(
        observed=states[places],
        steps=np.diff(trajectories.times[places], axis=1),
        present=(reach <= ends[:, None]).astype(np.float64),
        places=places,
    )
