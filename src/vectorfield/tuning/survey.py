"""What a search has to know of the data before it begins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vectorfield.smoothing import noise_level
from vectorfield.trajectories import Trajectories

__all__ = ["Survey", "survey"]

MATERIAL = 1e-4  # share of noise in the increments' variance from which on it is reckoned with
UNEVEN = 3.0  # steps differ by more than this factor: rules of high order amplify errors


@dataclass(frozen=True, eq=False)
class Survey:
    """Facts about training data.

    Attributes:
        noise: (d,) standard deviation of the noise of the snapshots.
        noisy: whether it matters beside the increments.
        even: whether steps are about alike.
        step: the median time between samples.
        unit: (d,) standard deviations of the features, 1 for constant ones.
    """

    noise: np.ndarray
    noisy: bool
    even: bool
    step: float
    unit: np.ndarray


def survey(train: Trajectories) -> Survey:
    """Look at training data.

    >>> import vectorfield as vf
    >>> facts = survey(vf.datasets.load("nfhn").train)
    >>> facts.noisy, facts.even, facts.noise.round(2)
    (True, True, array([0.12, 0.12]))
    """
    noise = np.nan_to_num(noise_level(train))
    gaps = np.concatenate([np.diff(t) for t, _ in train])
    low, high = np.quantile(gaps, [0.01, 0.99])
    squares = np.mean(np.concatenate([np.diff(x, axis=0) for _, x in train]) ** 2, axis=0)
    moving = squares > 0
    share = 2.0 * noise[moving] ** 2 / squares[moving]
    spread = train.states.std(axis=0)
    return Survey(
        noise=noise,
        noisy=bool(moving.any() and np.median(share) > MATERIAL),
        even=bool(high <= UNEVEN * low),
        step=float(np.median(gaps)),
        unit=np.where(spread > 0, spread, 1.0),
    )
