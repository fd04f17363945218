"""Every scalar kernel, and each one's formula typed out for one pair of points."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from vectorfield.kernels import (
    Constant,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    Product,
    RationalQuadratic,
    ScalarKernel,
    Scaled,
    Sum,
)
from vectorfield.trajectories import Trajectories


def own_lengths(d: int) -> tuple[float, ...]:
    return (0.7, 1.3, 2.1, 0.9, 1.6)[:d]


KERNELS: dict[str, Callable[[int], ScalarKernel]] = {
    "gaussian": lambda d: Gaussian(1.3),
    "gaussian-own": lambda d: Gaussian(own_lengths(d)),
    "laplace": lambda d: Laplace(1.7),
    "laplace-own": lambda d: Laplace(own_lengths(d)),
    "matern-0.5": lambda d: Matern(0.5, 0.9),
    "matern-1.5": lambda d: Matern(1.5, 0.8),
    "matern-2.5": lambda d: Matern(2.5, own_lengths(d)),
    "matern-3.5": lambda d: Matern(3.5, 0.6),
    "matern-4.5": lambda d: Matern(4.5, own_lengths(d)),
    "matern-5.5": lambda d: Matern(5.5, 0.5),
    "rational-1": lambda d: RationalQuadratic(1.0, 1.2),
    "rational-0.3": lambda d: RationalQuadratic(0.3, own_lengths(d)),
    "rational-7": lambda d: RationalQuadratic(7.0, 0.8),
    "polynomial-1": lambda d: Polynomial(1, 1.0, 1.5),
    "polynomial-1-homogeneous": lambda d: Polynomial(1, 0.0),
    "polynomial-2": lambda d: Polynomial(2, 1.0, own_lengths(d)),
    "polynomial-2-homogeneous": lambda d: Polynomial(2, 0.0, 1.5),
    "polynomial-3": lambda d: Polynomial(3, 1.0, 2.0),
    "polynomial-3-homogeneous": lambda d: Polynomial(3, 0.0, own_lengths(d)),
    "polynomial-4": lambda d: Polynomial(4, 1.0, 2.5),
    "polynomial-4-homogeneous": lambda d: Polynomial(4, 0.0, 2.5),
    "linear": lambda d: Linear(1.4),
    "linear-own": lambda d: Linear(own_lengths(d)),
    "constant": lambda d: Constant(0.6),
    "scaled": lambda d: 0.4 * Matern(2.5, 1.1),
    "sum": lambda d: Linear() + Constant(2.0) + Gaussian(0.9),
    "product": lambda d: Polynomial(2, 1.0, 2.0) * Laplace(1.5),
    "nested": lambda d: (
        2.0 * (Gaussian(own_lengths(d)) + 0.3 * Linear()) * Matern(1.5, 1.2) + Constant(0.1)
    ),
    "product-of-one": lambda d: Gaussian(1.0) * Gaussian(1.0),
}


@pytest.fixture(params=KERNELS)
def make_kernel(request: pytest.FixtureRequest) -> Callable[[int], ScalarKernel]:
    """Take the number of coordinates, return the kernel."""
    return KERNELS[request.param]


@pytest.fixture
def formula() -> Callable[[ScalarKernel, Sequence[float], Sequence[float]], float]:
    """k(x, y) of two points in pure Python, nothing shared with the library."""
    return _formula


def _formula(kernel: ScalarKernel, x: Sequence[float], y: Sequence[float]) -> float:
    match kernel:
        case Sum(left, right):
            return _formula(left, x, y) + _formula(right, x, y)
        case Product(left, right):
            return _formula(left, x, y) * _formula(right, x, y)
        case Scaled(inner, factor):
            return factor * _formula(inner, x, y)
        case Constant(value):
            return value
    lengths = kernel.length_scale
    sigma = (lengths,) * len(x) if isinstance(lengths, float) else lengths
    dot = math.fsum(a * b / s**2 for a, b, s in zip(x, y, sigma, strict=True))
    r = math.sqrt(math.fsum(((a - b) / s) ** 2 for a, b, s in zip(x, y, sigma, strict=True)))
    match kernel:
        case Gaussian():
            return math.exp(-(r**2) / 2)
        case Laplace():
            return math.exp(-r)
        case RationalQuadratic(alpha=alpha):
            return (1 + r**2 / (2 * alpha)) ** (-alpha)
        case Linear():
            return dot
        case Polynomial(degree=degree, offset=offset):
            return (dot + offset) ** degree
        case Matern(nu=nu):
            return (
                math.exp(-r)
                * {
                    0.5: 1.0,
                    1.5: 1 + r,
                    2.5: (r**2 + 3 * r + 3) / 3,
                    3.5: (r**3 + 6 * r**2 + 15 * r + 15) / 15,
                    4.5: (r**4 + 10 * r**3 + 45 * r**2 + 105 * r + 105) / 105,
                    # the paper's C^10 kernel
                    5.5: (r**5 + 15 * r**4 + 105 * r**3 + 420 * r**2 + 945 * r + 945) / 945,
                }[nu]
            )
    raise AssertionError(f"no formula for {kernel!r}")


@pytest.fixture
def irregular() -> Callable[..., Trajectories]:
    """A few random trajectories of unequal lengths on uneven grids."""

    def make(d: int = 2, lengths: Sequence[int] = (5, 2, 12, 7), seed: int = 3) -> Trajectories:
        rng = np.random.default_rng(seed)
        xs = [np.cumsum(0.4 * rng.normal(size=(n, d)), axis=0) for n in lengths]
        ts = [rng.normal() + np.cumsum(rng.uniform(0.1, 1.0, size=n)) for n in lengths]
        return Trajectories.from_arrays(xs, ts)

    return make
