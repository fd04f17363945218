"""What a search proposes: kernels, and the variations of a plan that are worth a trial."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from vectorfield.kernels import (
    ExplicitKernel,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Monomials,
    Nystrom,
    OperatorKernel,
    Polynomial,
    RationalQuadratic,
    ScalarKernel,
    Separable,
)
from vectorfield.occupation import (
    Lagrange,
    Noise,
    Rule,
    SnapshotNoise,
    Spline,
    Trapezoid,
    WeakForm,
    White,
    Windows,
)
from vectorfield.plan import Plan
from vectorfield.prior import LinearPrior, MeanReverting, Prior
from vectorfield.robust import Huber

__all__ = [
    "families",
    "faster",
    "is_explicit",
    "lengths_of",
    "local_part",
    "mixtures",
    "noises",
    "polynomials",
    "priors",
    "robusts",
    "rules",
    "stretched",
    "unknowns",
    "variations",
    "with_features",
    "without_features",
]

MOST_MONOMIALS = 1500
LOCAL = "length_scale"


def families(middle: float) -> list[ScalarKernel | OperatorKernel]:
    """Return local kernels whose length scale ``middle`` is the median distance of the nodes.

    Matern kernels are brought to the width of the Gaussian, r / sqrt(2 nu); for their scaling see
    `Matern`.
    """
    return [
        Gaussian(middle),
        Matern(5.5, middle / math.sqrt(11.0)),
        Matern(2.5, middle / math.sqrt(5.0)),
        RationalQuadratic(length_scale=middle),
        Laplace(middle),
    ]


def polynomials(d: int) -> list[ScalarKernel | OperatorKernel]:
    """Return polynomials of degree 1 to 3, by their features where these are few."""
    length = math.sqrt(d)
    found: list[ScalarKernel | OperatorKernel] = []
    for degree in (1, 2, 3):
        features = Monomials(degree, length_scale=length)
        if features.count(d) <= MOST_MONOMIALS:
            found.append(features)
        elif degree <= 2:
            found.append(Polynomial(degree, length_scale=length))
    return found


def unknowns(kernel: ScalarKernel | OperatorKernel, d: int) -> int | None:
    """Return the coefficients of each output of a polynomial; None for other kernels."""
    if isinstance(kernel, (Polynomial, Monomials)):
        return math.comb(d + kernel.degree, d)
    return None


def mixtures(kernel: ScalarKernel, d: int) -> list[ScalarKernel | OperatorKernel]:
    """Return sums of a polynomial and a local kernel: what is global, and what is left."""
    length = math.sqrt(d)
    return [
        10.0 * (Linear(length_scale=length)) + kernel,
        Polynomial(2, length_scale=length) + 0.1 * kernel,
    ]


def stretched(
    kernel: ScalarKernel | OperatorKernel, factor: float | tuple[float, ...]
) -> ScalarKernel | OperatorKernel:
    """Return the kernel with every length scale of a local part times ``factor``.

    With a factor for each coordinate there are as many length scales.
    """
    if isinstance(kernel, (Polynomial, Linear, Monomials)):
        return kernel
    changes: dict[str, object] = {}
    for name, value in kernel.get_params(deep=False).items():
        if isinstance(value, (ScalarKernel, OperatorKernel)):
            changes[name] = stretched(value, factor)
        elif name == LOCAL and value is not None:
            scaled = np.asarray(factor) * np.asarray(value, dtype=float)
            changes[name] = float(scaled) if scaled.ndim == 0 else tuple(scaled.tolist())
    return kernel.replace(**changes)


def lengths_of(kernel: ScalarKernel | OperatorKernel) -> tuple[float, ...]:
    """Return the length scales of the local parts, which a search may change."""
    if isinstance(kernel, (Polynomial, Linear, Monomials)):
        return ()
    found: list[float] = []
    for name, value in kernel.get_params(deep=False).items():
        if isinstance(value, (ScalarKernel, OperatorKernel)):
            found += lengths_of(value)
        elif name == LOCAL and value is not None:
            found += np.atleast_1d(np.asarray(value, dtype=float)).tolist()
    return tuple(found)


def with_features(
    kernel: ScalarKernel | OperatorKernel, count: int
) -> ScalarKernel | OperatorKernel:
    """Return the kernel by features: as it is where it has them, else of Nystrom's kind."""
    if isinstance(kernel, Separable) and kernel.matrix is None:
        kernel = kernel.kernel
    if isinstance(kernel, ScalarKernel):
        return Nystrom(kernel, count, "pivoted", tolerance=1e-10)
    return kernel


def without_features(kernel: ScalarKernel | OperatorKernel) -> ScalarKernel | OperatorKernel:
    """Return the kernel that Nystrom features stand for; others as they are."""
    return kernel.kernel if isinstance(kernel, Nystrom) else kernel


def local_part(kernel: ScalarKernel | OperatorKernel) -> ScalarKernel | None:
    """Return a scalar kernel with a length scale that may be mixed with others, if it is one."""
    bare = without_features(kernel)
    return bare if isinstance(bare, ScalarKernel) and lengths_of(bare) else None


def is_explicit(kernel: ScalarKernel | OperatorKernel) -> bool:
    """Whether the kernel is known by features."""
    return isinstance(kernel, ExplicitKernel)


def rules(even: bool, noisy: bool) -> list[Rule]:
    """Return rules, the likeliest first.

    Of high order where samples are clean and steps alike; where they are noisy also windows and
    the weak form, whose rows see more of the signal against the same noise.
    """
    if noisy:
        return [Trapezoid(), Lagrange(4), Windows(5, stride=2), WeakForm(9, stride=4)]
    if not even:
        return [Spline(), Trapezoid()]
    return [Lagrange(6), Lagrange(8), Lagrange(4), Spline(), Trapezoid()]


def noises(noisy: bool, even: bool = True) -> list[Noise]:
    """Return noise models, the likeliest first.

    On uneven steps also errors that grow with the duration of a step: as those of noise in the
    dynamics do (power 1), and those of a wrong slope (power 2).
    """
    mixed = SnapshotNoise(model_error=0.1)
    found: list[Noise] = [SnapshotNoise(), mixed, White()] if noisy else [White(), mixed]
    return found if even else [*found, White(power=1.0), White(power=2.0)]


def robusts() -> list[Huber]:
    """Return robust losses, for data with outliers.

    Ten rounds: what later ones change is small beside the errors that are left.
    """
    return [Huber(iterations=10)]


def priors(step: float, *, tracked: bool = False) -> list[Prior]:
    """Return prior fields, besides zero, for data with that time between samples.

    Fields that return to the data are for those that no field tracks.
    """
    if tracked:
        return [LinearPrior()]
    slow, fast = 0.03 / step, 0.3 / step
    reverting = [MeanReverting(rate, width) for width in (None, 0.5, 1.5) for rate in (slow, fast)]
    return [LinearPrior(), *reverting]


def faster(prior: MeanReverting, factor: float) -> MeanReverting:
    """Return the prior with its rate times ``factor``."""
    rate = 0.0 if prior.rate is None else prior.rate
    return prior.replace(rate=float(f"{factor * rate:.3g}"))


def variations(plan: Plan, changes: dict[str, list]) -> Iterator[Plan]:
    """Yield the plans that differ in one part."""
    for name, values in changes.items():
        for value in values:
            if value != getattr(plan, name):
                yield replace(plan, **{name: value})
