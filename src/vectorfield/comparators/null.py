"""The null model: nothing moves."""

from __future__ import annotations

from typing import Any

import numpy as np

from vectorfield.comparators.rival import Rival
from vectorfield.trajectories import Trajectories

__all__ = ["NullModel"]


class NullModel(Rival):
    """f(x) = 0, so that x(t) = x(0): the mark below which nothing was learned.

    It has no settings; validation trajectories are not looked at. Cost: none.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 3.0, 31)
        >>> null = vf.comparators.NullModel().fit(np.exp(-t)[:, None], t)
        >>> null.simulate([0.7], [0.0, 5.0]), null.score(np.exp(-t)[:, None], t)
        (array([[0.7],
               [0.7]]), 0.0)
    """

    def _learn(self, train: Trajectories, validation: Trajectories | None) -> tuple[Any, None]:
        return _still, None


def _still(x: Any) -> np.ndarray:
    return np.zeros(np.shape(x))
