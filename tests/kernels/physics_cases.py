"""Kernels from physics and their formulas, typed out for one pair of points with loops."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from vectorfield.kernels import (
    CurlFree,
    DivergenceFree,
    Gaussian,
    Gradient,
    Hamiltonian,
    ImplicitKernel,
    Matern,
    RationalQuadratic,
)

OWN = (0.7, 1.3, 2.1, 0.9, 1.6, 1.1)
RADIAL = {
    "gaussian": lambda d: Gaussian(1.3),
    "gaussian-own": lambda d: Gaussian(OWN[:d]),
    "matern-2.5": lambda d: Matern(2.5, 0.8),
    "matern-2.5-own": lambda d: Matern(2.5, OWN[:d]),
    "matern-3.5": lambda d: Matern(3.5, 0.6),
    "matern-4.5-own": lambda d: Matern(4.5, OWN[:d]),
    "matern-5.5": lambda d: Matern(5.5, 0.5),
    "rational": lambda d: RationalQuadratic(0.7, 1.2),
    "rational-own": lambda d: RationalQuadratic(3.0, OWN[:d]),
}
"""Radial kernels for d coordinates."""


def mobility(d: int) -> np.ndarray:
    """A full matrix M of which one eigenvalue is 0."""
    a = np.random.default_rng(d).normal(size=(d, d - 1))
    return a @ a.T


def mixed_pairs(d: int) -> tuple[tuple[int, int], ...]:
    """(d - 1, 0), (1, 2), (3, 4), ...: neither the default nor in order."""
    inner = range(1, d - 1)
    return ((d - 1, 0), *zip(inner[::2], inner[1::2], strict=True))


LAWS: dict[str, tuple[Callable[..., ImplicitKernel], tuple[int, ...]]] = {
    "curl-free": (lambda k, d: CurlFree(k), (1, 2, 3, 5)),
    "divergence-free": (lambda k, d: DivergenceFree(k), (2, 3, 5)),
    "gradient": (lambda k, d: Gradient(k), (2,)),
    "mobility": (lambda k, d: Gradient(k, mobility(d)), (2, 3, 5)),
    "hamiltonian": (lambda k, d: Hamiltonian(k), (2, 4, 6)),
    "pairs": (lambda k, d: Hamiltonian(k, mixed_pairs(d)), (2, 4)),
}
"""Kernels of a radial one, and numbers of coordinates."""

CASES = {
    f"{law}-{radial}-{d}": (make(RADIAL[radial](d), d), d)
    for law, (make, dims) in LAWS.items()
    for radial in RADIAL
    for d in dims
}
FEW = {
    name: case
    for name, case in CASES.items()
    if case[1] in (3, 4) and ("matern-2.5" in name or "rational-own" in name)
}
"""One or two of each law, for what does not depend on the profile."""


def q(p: int, r: float) -> float:
    """The polynomials of the Matern kernels, from the guide."""
    coefficients = [
        [1],
        [1, 1],
        [1, 1, 1 / 3],
        [1, 1, 2 / 5, 1 / 15],
        [1, 1, 3 / 7, 2 / 21, 1 / 105],
        [1, 1, 4 / 9, 1 / 9, 1 / 63, 1 / 945],
    ]
    return math.fsum(c * r**i for i, c in enumerate(coefficients[p]))


def slopes_of_profile(kernel, r: float) -> tuple[float, float]:
    """F_1 = phi' / r and F_2 = F_1' / r."""
    match kernel:
        case Gaussian():
            return -math.exp(-(r**2) / 2), math.exp(-(r**2) / 2)
        case RationalQuadratic(alpha=a):
            base = 1 + r**2 / (2 * a)
            return -(base ** (-a - 1)), (a + 1) / a * base ** (-a - 2)
        case Matern(nu=nu):
            p = round(nu - 0.5)
            e = math.exp(-r)
            return (
                -q(p - 1, r) * e / (2 * p - 1),
                q(p - 2, r) * e / ((2 * p - 1) * (2 * p - 3)),
            )
    raise AssertionError(f"no formula for {kernel!r}")


def hessian(kernel, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """grad grad^T k(x - y), entry by entry."""
    d = len(x)
    s = kernel.length_scale
    sigma = [s] * d if isinstance(s, float) else list(s)
    u = [(float(x[a]) - float(y[a])) / sigma[a] for a in range(d)]
    first, second = slopes_of_profile(kernel, math.sqrt(math.fsum(v * v for v in u)))
    h = np.empty((d, d))
    for a in range(d):
        for b in range(d):
            h[a, b] = ((a == b) * first + second * u[a] * u[b]) / (sigma[a] * sigma[b])
    return h


def symplectic(pairs, d: int) -> np.ndarray:
    """J, (d, d): (J grad H)_q = dH/dp and (J grad H)_p = -dH/dq."""
    j = np.zeros((d, d))
    for place, p in pairs or [(i, i + d // 2) for i in range(d // 2)]:
        j[place, p], j[p, place] = 1.0, -1.0
    return j


def from_hessian(kernel: ImplicitKernel, h: np.ndarray) -> np.ndarray:
    """K(x, y) of one pair of points from the Hessian of its scalar kernel."""
    d = len(h)
    match kernel:
        case CurlFree() | Gradient(mobility=None):
            return -h
        case DivergenceFree():
            return h - sum(h[a, a] for a in range(d)) * np.eye(d)
        case Gradient(mobility=m):
            return np.array(m) @ -h @ np.array(m)
        case Hamiltonian(pairs=pairs):
            j = symplectic(pairs, d)
            return j @ -h @ j.T
    raise AssertionError(f"no formula for {kernel!r}")


def naive(kernel: ImplicitKernel, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(d, d, n, m) from the definition."""
    pairs = [[from_hessian(kernel, hessian(kernel.kernel, a, b)) for b in y] for a in x]
    return np.array(pairs).transpose(2, 3, 0, 1)


def whole(kernel: ImplicitKernel, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(d, d, n, m), the library's tile between all points."""
    return kernel.blocks(y)(x).tile(slice(0, len(x)), slice(0, len(y)))


def points(d: int, *counts: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, d)) for n in counts]


def slopes(function, x: np.ndarray, h=1e-5) -> np.ndarray:
    """Central differences of function, (n, ...) -> (n, ..., d); h is one step or one each."""
    steps = np.diag(np.broadcast_to(h, x.shape[1]))
    return np.stack([(function(x + s) - function(x - s)) / (2 * s.max()) for s in steps], axis=-1)


def close(got, expected, relative: float) -> None:
    """Agreement relative to the largest entry."""
    np.testing.assert_allclose(got, expected, rtol=0, atol=relative * np.abs(expected).max())
