"""Linear systems, and any system in shifted and scaled coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from vectorfield.systems._base import System

__all__ = ["Linear", "Scaled"]


@final
@dataclass(frozen=True, eq=False)
class Linear(System):
    """x' = A x + b, with ``matrix`` A (d, d) and ``offset`` b (d,), zero by default.

    Example:
        >>> from vectorfield.systems import Linear
        >>> Linear([[0.0, 1.0], [-1.0, 0.0]])([1.0, 2.0])
        array([ 2., -1.])
    """

    matrix: Any
    offset: Any = None

    def __post_init__(self) -> None:
        matrix = _constants("matrix", self.matrix)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) == 0:
            raise ValueError(f"matrix must be square, (d, d), got shape {matrix.shape}")
        d = len(matrix)
        offset = _vector("offset", np.zeros(d) if self.offset is None else self.offset, d)
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "offset", offset)

    @property
    def d(self) -> int:
        """Number of rows of the matrix."""
        return int(self.matrix.shape[0])

    def _field(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(x @ self.matrix.T + self.offset)

    def _jacobian(self, x: np.ndarray) -> np.ndarray:
        return np.tile(self.matrix, (len(x), 1, 1))


@final
@dataclass(frozen=True, eq=False)
class Scaled(System):
    """The flow of another system in the coordinates u = (x - shift) / scale.

    u' = f(shift + scale u) / scale, element by element; ``shift`` and ``scale`` are (d,), or
    one number for all coordinates.

    Example:
        >>> from vectorfield.systems import Linear, Scaled
        >>> decay = Linear([[-2.0]])
        >>> Scaled(decay, shift=1.0, scale=10.0)([0.5])
        array([-1.2])
    """

    system: System
    shift: Any
    scale: Any

    def __post_init__(self) -> None:
        if not isinstance(self.system, System):
            raise TypeError(f"system must be a System, got {type(self.system).__name__}")
        object.__setattr__(self, "shift", _vector("shift", self.shift, self.system.d))
        object.__setattr__(self, "scale", _vector("scale", self.scale, self.system.d))
        if not (self.scale > 0).all():
            raise ValueError(f"scale must be > 0 throughout, got {self.scale}")

    @property
    def d(self) -> int:
        """That of the system."""
        return self.system.d

    @property
    def name(self) -> str:
        """That of the system; the flow is the same."""
        return self.system.name

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Those of the system."""
        return self.system.feature_names

    def _field(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(self.system(self.shift + self.scale * x) / self.scale)

    def _jacobian(self, x: np.ndarray) -> np.ndarray:
        jacobian = self.system.jacobian(self.shift + self.scale * x)
        return np.asarray(jacobian * self.scale / self.scale[:, None])


def _constants(name: str, value: Any) -> np.ndarray:
    array = np.array(value, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {array}")
    array.flags.writeable = False
    return array


def _vector(name: str, value: Any, d: int) -> np.ndarray:
    array = _constants(name, value)
    if array.shape not in ((), (d,)):
        raise ValueError(f"{name} must have shape ({d},), got {array.shape}")
    return np.broadcast_to(array, (d,))
