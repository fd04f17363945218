"""Classic systems: oscillators and the two of Lorenz."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from vectorfield._settings import check_integer, check_real
from vectorfield.systems._base import System

__all__ = ["FitzHughNagumo", "Lorenz63", "Lorenz96", "Pendulum", "VanDerPol"]


@final
@dataclass(frozen=True)
class FitzHughNagumo(System):
    """FitzHugh-Nagumo: v' = v - v^3 / 3 - w + current,  tau w' = v + a - b w.

    Example:
        >>> from vectorfield.systems import FitzHughNagumo
        >>> FitzHughNagumo()([0.0, 0.5])
        array([0.   , 0.024])
    """

    a: float = 0.7
    b: float = 0.8
    tau: float = 12.5
    current: float = 0.5

    def __post_init__(self) -> None:
        check_real("a", self.a)
        check_real("b", self.b)
        check_real("tau", self.tau, above=0.0)
        check_real("current", self.current)

    @property
    def d(self) -> int:
        """2."""
        return 2

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Membrane potential v and recovery w."""
        return ("v", "w")

    def _field(self, x: np.ndarray) -> np.ndarray:
        v, w = x.T
        return np.stack(
            [v - v**3 / 3 - w + self.current, (v + self.a - self.b * w) / self.tau], axis=1
        )

    def _jacobian(self, x: np.ndarray) -> np.ndarray:
        jacobian = np.empty((len(x), 2, 2))
        jacobian[:, 0, 0] = 1 - x[:, 0] ** 2
        jacobian[:, 0, 1] = -1.0
        jacobian[:, 1, 0] = 1 / self.tau
        jacobian[:, 1, 1] = -self.b / self.tau
        return jacobian


@final
@dataclass(frozen=True)
class Lorenz63(System):
    """Lorenz (1963): x' = sigma (y - x),  y' = x (rho - z) - y,  z' = x y - beta z.

    Example:
        >>> from vectorfield.systems import Lorenz63
        >>> Lorenz63(beta=2.0)([[1.0, 2.0, 3.0]])
        array([[10., 23., -4.]])
    """

    sigma: float = 10.0
    rho: float = 28.0
    beta: float = 8.0 / 3.0

    def __post_init__(self) -> None:
        check_real("sigma", self.sigma)
        check_real("rho", self.rho)
        check_real("beta", self.beta)

    @property
    def d(self) -> int:
        """3."""
        return 3

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The usual x, y and z."""
        return ("x", "y", "z")

    def _field(self, x: np.ndarray) -> np.ndarray:
        a, b, c = x.T
        return np.stack(
            [self.sigma * (b - a), a * (self.rho - c) - b, a * b - self.beta * c], axis=1
        )

    def _jacobian(self, x: np.ndarray) -> np.ndarray:
        a, b, c = x.T
        jacobian = np.zeros((len(x), 3, 3))
        jacobian[:, 0, 0], jacobian[:, 0, 1] = -self.sigma, self.sigma
        jacobian[:, 1, 0], jacobian[:, 1, 1], jacobian[:, 1, 2] = self.rho - c, -1.0, -a
        jacobian[:, 2, 0], jacobian[:, 2, 1], jacobian[:, 2, 2] = b, a, -self.beta
        return jacobian


@final
@dataclass(frozen=True)
class Lorenz96(System):
    """Lorenz (1995) on a ring: x_k' = (x_{k+1} - x_{k-2}) x_{k-1} - x_k + forcing.

    Example:
        >>> from vectorfield.systems import Lorenz96
        >>> Lorenz96(d=4)([1.0, 2.0, 3.0, 4.0])
        array([ 3.,  5., 11.,  1.])
    """

    d: int = 16
    forcing: float = 8.0

    def __post_init__(self) -> None:
        check_integer("d", self.d, at_least=4)
        check_real("forcing", self.forcing)

    @property
    def name(self) -> str:
        """Lorenz96 with the number of coordinates."""
        return f"Lorenz96-{self.d}"

    def _field(self, x: np.ndarray) -> np.ndarray:
        # Column k of the widened ring is x_{k-2}: three slices in place of three rolls.
        ring = np.concatenate([x[:, -2:], x, x[:, :1]], axis=1)
        advection: np.ndarray = (ring[:, 3:] - ring[:, :-3]) * ring[:, 1:-2]
        return np.asarray(advection - x + self.forcing)

    def _jacobian(self, x: np.ndarray) -> np.ndarray:
        k = np.arange(self.d)
        after, before, second = (k + 1) % self.d, (k - 1) % self.d, (k - 2) % self.d
        jacobian = np.zeros((len(x), self.d, self.d))
        jacobian[:, k, after] = x[:, before]
        jacobian[:, k, second] = -x[:, before]
        jacobian[:, k, before] = x[:, after] - x[:, second]
        jacobian[:, k, k] = -1.0
        return jacobian


@final
@dataclass(frozen=True)
class Pendulum(System):
    """Pendulum without friction: angle' = rate,  rate' = -(gravity / length) sin(angle).

    Example:
        >>> from vectorfield.systems import Pendulum
        >>> Pendulum()([0.0, 2.0])
        array([ 2., -0.])
    """

    length: float = 1.0
    gravity: float = 9.8

    def __post_init__(self) -> None:
        check_real("length", self.length, above=0.0)
        check_real("gravity", self.gravity, above=0.0)

    @property
    def d(self) -> int:
        """2."""
        return 2

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Angle from below, and its rate."""
        return ("angle", "rate")

    def energy(self, x: Any) -> np.ndarray:
        """Return H = rate^2 / 2 - (gravity / length) cos(angle), constant along solutions.

        Takes points (n, 2) to (n,), or one point (2,) to a number; f = (dH/drate, -dH/dangle).

        >>> from vectorfield.systems import Pendulum
        >>> float(Pendulum().energy([0.0, 2.0]))
        -7.800000000000001
        """
        points = self._points(x)
        energy = points[..., 1] ** 2 / 2 - self.gravity / self.length * np.cos(points[..., 0])
        return np.asarray(energy)

    def _field(self, x: np.ndarray) -> np.ndarray:
        return np.stack([x[:, 1], -self.gravity / self.length * np.sin(x[:, 0])], axis=1)

    def _jacobian(self, x: np.ndarray) -> np.ndarray:
        jacobian = np.zeros((len(x), 2, 2))
        jacobian[:, 0, 1] = 1.0
        jacobian[:, 1, 0] = -self.gravity / self.length * np.cos(x[:, 0])
        return jacobian


@final
@dataclass(frozen=True)
class VanDerPol(System):
    """Van der Pol: x' = y,  y' = mu (1 - x^2) y - x.

    Example:
        >>> from vectorfield.systems import VanDerPol
        >>> VanDerPol(mu=2.0)([2.0, 1.0])
        array([ 1., -8.])
    """

    mu: float = 1.0

    def __post_init__(self) -> None:
        check_real("mu", self.mu)

    @property
    def d(self) -> int:
        """2."""
        return 2

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Position x and velocity y."""
        return ("x", "y")

    def _field(self, x: np.ndarray) -> np.ndarray:
        a, b = x.T
        return np.stack([b, self.mu * (1 - a**2) * b - a], axis=1)

    def _jacobian(self, x: np.ndarray) -> np.ndarray:
        a, b = x.T
        jacobian = np.zeros((len(x), 2, 2))
        jacobian[:, 0, 1] = 1.0
        jacobian[:, 1, 0] = -2 * self.mu * a * b - 1
        jacobian[:, 1, 1] = self.mu * (1 - a**2)
        return jacobian
