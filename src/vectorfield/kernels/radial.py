"""Radial scalar kernels k(x, y) = phi(|x - y| / sigma), with derivatives in closed form."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from vectorfield import _backend
from vectorfield._settings import check_real
from vectorfield.kernels.base import ScalarKernel
from vectorfield.kernels.lengths import (
    LengthScale,
    check_length_scale,
    divide_lengths,
    median_distance,
)
from vectorfield.kernels.tiles import Tile, contract

__all__ = ["Gaussian", "Laplace", "Matern", "Radial", "RationalQuadratic"]


class Radial(ScalarKernel):
    """Base of the kernels that depend on r = |x - y| / sigma alone.

    With F_0 = phi and F_m = (1/r d/dr) F_(m-1), all derivatives of k are polynomials in F_m and
    the coordinates: grad k = F_1 u / sigma and hess k = (F_1 I + F_2 u u^T) / sigma^2 with
    u = (x - y) / sigma. A subclass gives F_m in closed form (`profile`), which is all it needs.
    """

    length_scale: LengthScale

    def __post_init__(self) -> None:
        object.__setattr__(self, "length_scale", check_length_scale(self.length_scale))

    @abstractmethod
    def profile(self, squared: Any, order: int = 0) -> Any:
        """Return F_order at r^2 = ``squared``; may overwrite its argument."""

    def profiles(self, squared: Any, orders: tuple[int, ...]) -> tuple[Any, ...]:
        """Return F_order for several orders, not to be changed; ``squared`` is kept."""
        return tuple(self.profile(squared * 1.0, order) for order in orders)

    @abstractmethod
    def is_rough(self, order: int) -> bool:
        """Whether F_order has a kink or pole at r = 0, so that small r must be exact."""

    def phi(self, r: Any, derivative: int = 0) -> Any:
        """Return phi, phi' or phi'' at r >= 0 (in length scales), exact at r = 0.

        >>> import numpy as np, vectorfield as vf
        >>> vf.kernels.Matern(1.5, length_scale=1.0).phi(np.array([0.0, 1.0]), derivative=1)
        array([-0.        , -0.36787944])
        """
        if derivative == 0:
            return self.profile(r * r)
        if derivative == 1:
            return r * self.profile(r * r, 1)
        if derivative == 2:
            return self.profile(r * r, 1) + r * r * self.profile(r * r, 2)
        raise ValueError(f"derivative must be 0, 1 or 2, got {derivative!r}")

    def resolved(self, nodes: Any) -> Self:
        """Set a length scale of None to the median distance between the nodes."""
        if self.length_scale is not None:
            return self
        return self.replace(length_scale=median_distance(nodes))

    def diagonal(self, x: Any) -> Any:
        """Return ones: k(x, x) = phi(0) = 1."""
        xp = _backend.namespace(x)
        return xp.ones_like(x[:, 0])

    def bind(self, y: Any) -> Callable[[Any], Tile]:
        """Prepare ``y``; see `ScalarKernel.bind`."""
        distances = self.bind_squared(y, self.is_rough(0))

        def at(x: Any) -> Tile:
            squared = distances(x)
            return lambda rows, columns: self.profile(squared(rows, columns))

        return at

    def derivative(self, x: Any, y: Any, c: Any, weight: Any = None) -> Any:
        """Return the contracted derivative; see `ScalarKernel.derivative`."""
        everything = slice(0, x.shape[0]), slice(0, y.shape[0])
        slope = self.profile(self.bind_squared(y, self.is_rough(1))(x)(*everything), 1)
        if weight is not None:
            slope = slope * weight
        if self.is_rough(1):
            gradient = contract(slope, c, y, x)
        else:  # no pole: the difference of two sums, about the middle of the points
            origin = _backend.namespace(y).mean(y, axis=0)
            gradient = (slope @ c)[:, :, None] * (x - origin)[:, None, :]
            gradient = gradient - contract(slope, c, y - origin)
        gradient = divide_lengths(gradient, self.length_scale)
        return divide_lengths(gradient, self.length_scale)

    def bind_squared(self, y: Any, exact: bool) -> Callable[[Any], Tile]:
        """Blocks of squared distances, in length scales, by one matrix product a block.

        |u - v|^2 = [u, |u|^2, 1] . [-2 v, 1, |v|^2] loses digits where u and v nearly agree;
        with ``exact`` such entries are computed again from the difference.
        """
        xp = _backend.namespace(y)
        origin = xp.mean(y, axis=0)  # less cancellation, and the distance does not change
        v = divide_lengths(y - origin, self.length_scale)
        v_squared = xp.sum(v * v, axis=1)
        one = xp.ones_like(v_squared)
        right = xp.concat([-2.0 * v, one[:, None], v_squared[:, None]], axis=1)

        def at(x: Any) -> Tile:
            u = divide_lengths(x - origin, self.length_scale)
            u_squared = xp.sum(u * u, axis=1)
            left = xp.concat([u, u_squared[:, None], xp.ones_like(u_squared)[:, None]], axis=1)

            def tile(rows: slice, columns: slice) -> Any:
                block = left[rows, :] @ right[columns, :].T
                if exact and 0 not in block.shape:
                    close = 4e-6 * (xp.max(u_squared[rows]) + xp.max(v_squared[columns]))
                    i, j = xp.nonzero(block <= close)
                    difference = x[rows, :][i, :] - y[columns, :][j, :]  # exact where it matters
                    difference = divide_lengths(difference, self.length_scale)
                    block[i, j] = xp.sum(difference * difference, axis=1)
                return block

            return tile

        return at


@dataclass(frozen=True)
class Gaussian(Radial):
    """k(x, y) = exp(-|x - y|^2 / (2 sigma^2)).

    Args:
        length_scale: sigma, or one for each coordinate; None: the median distance of the
            training nodes, set when a model is fitted.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> k = vf.kernels.Gaussian(length_scale=2.0)
        >>> float(k(np.zeros((1, 1)), 2 * np.ones((1, 1)))[0, 0].round(6))
        0.606531
    """

    length_scale: LengthScale = None

    def profile(self, squared: Any, order: int = 0) -> Any:
        """Return F_m = (-1)^m exp(-r^2 / 2)."""
        squared *= -0.5
        value = _backend.exp_inplace(squared)
        if order % 2:
            value *= -1.0
        return value

    def profiles(self, squared: Any, orders: tuple[int, ...]) -> tuple[Any, ...]:
        """Return F_order for several orders by one exponential; equal ones are one array."""
        even = _backend.exp_inplace(squared * -0.5)
        odd = -even if any(order % 2 for order in orders) else even
        return tuple(odd if order % 2 else even for order in orders)

    def is_rough(self, order: int) -> bool:
        """Never: the profile is analytic in r^2."""
        return False


@dataclass(frozen=True)
class Matern(Radial):
    """Matern kernels of half-integer smoothness nu = p + 1/2 in the paper's scaling.

    phi(r) = exp(-r) q_p(r), r = |x - y| / sigma, q_p(0) = 1: nu = 1/2 is the Laplace kernel and
    nu = 11/2 the paper's C^10 kernel. There is no factor sqrt(2 nu) on r, which other libraries
    have: their length scale is sqrt(2 nu) times this one.

    Args:
        nu: 0.5, 1.5, ..., 5.5.
        length_scale: sigma, as in `Gaussian`.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> k = vf.kernels.Matern(nu=2.5, length_scale=1.0)
        >>> float(k(np.zeros((1, 1)), np.ones((1, 1)))[0, 0].round(6))
        0.858385
    """

    nu: float = 2.5
    length_scale: LengthScale = None

    def __post_init__(self) -> None:
        super().__post_init__()
        nu = check_real("nu", self.nu)
        if nu not in (0.5, 1.5, 2.5, 3.5, 4.5, 5.5):
            raise ValueError(f"nu must be one of 0.5, 1.5, ..., 5.5, got {self.nu!r}")
        object.__setattr__(self, "nu", nu)

    def profile(self, squared: Any, order: int = 0) -> Any:
        """Return F_m = (-1)^m phi_(p-m) / ((2p-1)(2p-3)...), as phi_p' / r = -phi_(p-1)/(2p-1)."""
        return _matern_profile(squared, round(self.nu - 0.5), order)

    def phi(self, r: Any, derivative: int = 0) -> Any:
        """Return phi, phi' or phi'' at r >= 0; for nu = 1/2 at 0 the one-sided derivatives."""
        if self.nu == 0.5:  # phi'' = F_1 + r^2 F_2 is a difference of two poles there
            return Laplace(self.length_scale).phi(r, derivative)
        return super().phi(r, derivative)

    def is_rough(self, order: int) -> bool:
        """Whether nu - order is 1/2 or less."""
        return self.nu - order <= 0.5


@dataclass(frozen=True)
class Laplace(Radial):
    """k(x, y) = exp(-|x - y| / sigma), the Matern kernel of nu = 1/2.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> float(vf.kernels.Laplace(1.0)(np.zeros((1, 1)), np.ones((1, 1)))[0, 0].round(6))
        0.367879
    """

    length_scale: LengthScale = None

    def profile(self, squared: Any, order: int = 0) -> Any:
        """Return exp(-r) and its derivatives."""
        return _matern_profile(squared, 0, order)

    def is_rough(self, order: int) -> bool:
        """Always: exp(-r) has a kink at r = 0."""
        return True

    def phi(self, r: Any, derivative: int = 0) -> Any:
        """Return phi, phi' or phi'' at r >= 0; at 0 the one-sided derivatives."""
        xp = _backend.namespace(r)
        if derivative not in (0, 1, 2):
            raise ValueError(f"derivative must be 0, 1 or 2, got {derivative!r}")
        return (-1.0) ** derivative * xp.exp(-r)


@dataclass(frozen=True)
class RationalQuadratic(Radial):
    """k(x, y) = (1 + r^2 / (2 alpha))^(-alpha), a mixture of Gaussians over length scales.

    Args:
        alpha: > 0; the Gaussian kernel as alpha grows.
        length_scale: sigma, as in `Gaussian`.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> k = vf.kernels.RationalQuadratic(alpha=1.0, length_scale=1.0)
        >>> float(k(np.zeros((1, 1)), np.ones((1, 1)))[0, 0].round(6))
        0.666667
    """

    alpha: float = 1.0
    length_scale: LengthScale = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "alpha", check_real("alpha", self.alpha, above=0.0))

    def profile(self, squared: Any, order: int = 0) -> Any:
        """Return F_m = (-1)^m prod_(j<m) (alpha + j)/alpha (1 + r^2/(2 alpha))^(-alpha - m)."""
        factor = math.prod(-(self.alpha + j) / self.alpha for j in range(order))
        squared *= 0.5 / self.alpha
        squared += 1.0
        value = squared ** (-self.alpha - order)
        if order:
            value *= factor
        return value

    def is_rough(self, order: int) -> bool:
        """Never: the profile is analytic in r^2."""
        return False


def _matern_coefficients(p: int) -> list[float]:
    """Coefficients of q_p, from the highest power down, with q_p(0) = 1."""
    scale = math.factorial(2 * p) / math.factorial(p)
    return [
        math.factorial(p + i) / (math.factorial(i) * math.factorial(p - i)) * 2.0 ** (p - i) / scale
        for i in range(p + 1)
    ]


def _matern_profile(squared: Any, p: int, order: int) -> Any:
    """F_order of the Matern kernel of nu = p + 1/2; zero at r = 0 where it has no limit."""
    xp = _backend.namespace(squared)
    q = p - order
    r = _backend.sqrt_inplace(squared)
    if q < -1:
        raise ValueError(f"a Matern kernel of nu = {p + 0.5} has no derivative of order {order}")
    if q == -1:  # phi_(-1) = -e^-r / r: near 0 only the direction of x - y has a limit
        at_zero = r == 0.0
        polynomial = -1.0 / xp.where(at_zero, xp.ones_like(r), r)
        polynomial[at_zero] = 0.0
    else:
        first, *others = _matern_coefficients(q)
        polynomial = xp.full_like(r, first)
        for c in others:
            polynomial *= r
            polynomial += c
    if order:
        polynomial *= math.prod(-1.0 / (2 * (p - j) - 1) for j in range(order))
    r *= -1.0
    value = _backend.exp_inplace(r)
    value *= polynomial
    return value
