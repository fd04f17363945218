"""What an integrator is given and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Ended", "Problem"]


@dataclass(frozen=True, eq=False)
class Problem:
    """dx/dt = f(x) from starts (b, d), over one monotone array of times for each start."""

    field: Callable[[Any], Any]
    starts: Any
    times: Sequence[np.ndarray]
    rtol: float
    atol: Any  # (d,), in the array library of the starts


@dataclass(frozen=True, eq=False)
class Ended:
    """States at the times asked (a list, one (m_i, d) array a start), and how each start ended.

    ``outcomes`` are names of `vectorfield.Outcome`.
    """

    x: list[Any]
    outcomes: list[str]
    reached: np.ndarray
    steps: np.ndarray
    evaluations: int
