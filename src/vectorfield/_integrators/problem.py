"""What an integrator is given and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vectorfield import _backend

__all__ = ["TINY", "Ended", "Problem"]

TINY = 1e-300  # a tolerance of zero would divide by zero


@dataclass(frozen=True, eq=False)
class Problem:
    """dx/dt = f(x) from starts (b, d), over one monotone array of times for each start."""

    field: Callable[[Any], Any]
    starts: Any
    times: Sequence[np.ndarray]
    rtol: float
    atol: Any  # (d,), in the array library of the starts

    def rate(self, x: Any) -> Any:
        """Return f(x), checked for its shape, in the states' precision.

        It is a copy, so that a field may return the same buffer again and again.
        """
        value = self.field(x)
        shape = tuple(value.shape) if _backend.is_array(value) else type(value).__name__
        if shape != tuple(x.shape):
            raise ValueError(f"the field returned shape {shape} for states {tuple(x.shape)}")
        return _backend.namespace(x).astype(value, x.dtype, copy=True)


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
