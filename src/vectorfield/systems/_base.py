"""`System`: what every known ODE offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from vectorfield._errors import DataError
from vectorfield._settings import Settings

__all__ = ["System"]


class System(Settings, ABC):
    """A vector field f of dx/dt = f(x), known in closed form.

    Example:
        >>> from vectorfield.systems import Lorenz63, System
        >>> isinstance(Lorenz63(), System)
        True
    """

    __slots__ = ()

    @property
    @abstractmethod
    def d(self) -> int:
        """Number of coordinates."""

    @property
    def name(self) -> str:
        """What to call the system."""
        return type(self).__name__

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the d coordinates."""
        return tuple(f"x{j}" for j in range(self.d))

    def __call__(self, x: Any) -> np.ndarray:
        """Return f at points (n, d), as (n, d), or at one point (d,), as (d,)."""
        points = self._points(x)
        return self._field(np.atleast_2d(points)).reshape(points.shape)

    def jacobian(self, x: Any) -> np.ndarray:
        """Return df_i/dx_j at points (n, d), as (n, d, d), or at one point (d,), as (d, d)."""
        points = self._points(x)
        return self._jacobian(np.atleast_2d(points)).reshape((*points.shape, self.d))

    @abstractmethod
    def _field(self, x: np.ndarray) -> np.ndarray:
        """Return f at points (n, d)."""

    @abstractmethod
    def _jacobian(self, x: np.ndarray) -> np.ndarray:
        """Return the (n, d, d) Jacobians at points (n, d)."""

    def _points(self, x: Any) -> np.ndarray:
        points = np.asarray(x, dtype=np.float64)
        if points.ndim not in (1, 2) or points.shape[-1] != self.d:
            raise DataError(
                f"{self.name}: expected states of shape (n, {self.d}) or ({self.d},), "
                f"got {points.shape}"
            )
        return points
