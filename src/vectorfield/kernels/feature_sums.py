"""Sums and multiples of explicit kernels: features side by side, features times a number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from vectorfield import _backend
from vectorfield._settings import check_real
from vectorfield.kernels.features import ExplicitKernel, FeatureMap
from vectorfield.kernels.operators import Evaluator

__all__ = ["FeatureScaled", "FeatureSum"]

Terms = tuple[tuple[ExplicitKernel, FeatureMap, Any], ...]


@dataclass(frozen=True)
class FeatureSum(ExplicitKernel):
    """K(x, y) = left(x, y) + right(x, y), its features those of both; written ``left + right``.

    Both are separable, or neither is. ``field.parts`` of a fitted field are the two summands.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> kernel = vf.kernels.Monomials(1) + vf.kernels.RandomFourier(vf.kernels.Gaussian(1.0))
        >>> t = np.linspace(0.0, 3.0, 40)
        >>> model = vf.MOCK(kernel, 1e-8).fit(np.exp(-t)[:, None], t)
        >>> [type(part.kernel).__name__ for part in model.field_.parts]
        ['Monomials', 'RandomFourier']
    """

    left: ExplicitKernel
    right: ExplicitKernel

    def __post_init__(self) -> None:
        _check_explicit("left", self.left)
        _check_explicit("right", self.right)

    @property
    def energy(self) -> str | None:  # type: ignore[override]
        """That of both terms, where it is the same; see `OperatorKernel.energy`."""
        one_law = len(_pairings(self)) == 1  # J grad H + J' grad H' is of no one Hamiltonian
        return self.left.energy if one_law and self.left.energy == self.right.energy else None

    @property
    def depends_on_nodes(self) -> bool:
        """Whether one of them does."""
        return self.left.depends_on_nodes or self.right.depends_on_nodes

    def resolved(self, nodes: Any) -> Self:
        """Resolve both."""
        return self.replace(left=self.left.resolved(nodes), right=self.right.resolved(nodes))

    def size(self, nodes: Any) -> float:
        """Return the sum of their sizes."""
        return self.left.size(nodes) + self.right.size(nodes)

    def bind(self, nodes: Any) -> FeatureMap:
        """Return both maps side by side."""
        return _SumMap(self.left.bind(nodes), self.right.bind(nodes))

    def restore(self, arrays: Mapping[str, Any]) -> FeatureMap:
        """Return the map; the names of the terms' arrays begin with ``left.`` and ``right.``."""
        return _SumMap(
            self.left.restore(_under("left.", arrays)), self.right.restore(_under("right.", arrays))
        )

    def split(self, features: FeatureMap, coefficients: Any) -> Terms:
        """Return the terms of both."""
        if not isinstance(features, _SumMap):
            raise TypeError(f"expected the features of {self!r}, got {features!r}")
        left, right = features.divide(coefficients)
        return (
            *self.left.split(features.left, left),
            *self.right.split(features.right, right),
        )

    def standardisation(self, shift: Any, scale: Any) -> tuple[Any, Any]:
        """Return a shift and scale that suit both; ValueError where none does."""
        suited = self.right.standardisation(*self.left.standardisation(shift, scale))
        again = self.left.standardisation(*suited)
        xp = _backend.namespace(scale)
        for a, b in zip(suited, again, strict=True):
            if not bool(xp.all(xp.abs(a - b) <= 1e-12 * xp.max(xp.abs(a)))):
                raise ValueError(
                    "the terms of the sum ask for different standardisations; scale the data "
                    "yourself and pass standardize=False"
                )
        return suited

    def energy_unit(self, scale: Any) -> float:
        """Return the unit of both, which is the same where they have one."""
        return self.left.energy_unit(scale)


@dataclass(frozen=True)
class FeatureScaled(ExplicitKernel):
    """K(x, y) = factor * kernel(x, y), factor > 0; written ``factor * kernel``.

    The features are sqrt(factor) times those of the kernel.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> twice = 2.0 * vf.kernels.Monomials(1)
        >>> twice.size(np.ones((1, 3))), vf.kernels.Monomials(1).size(np.ones((1, 3)))
        (8.0, 4.0)
    """

    kernel: ExplicitKernel
    factor: float

    def __post_init__(self) -> None:
        _check_explicit("kernel", self.kernel)
        object.__setattr__(self, "factor", check_real("factor", self.factor, above=0.0))

    @property
    def energy(self) -> str | None:  # type: ignore[override]
        """What the fields are made of; see `OperatorKernel.energy`."""
        return self.kernel.energy

    @property
    def depends_on_nodes(self) -> bool:
        """Whether the kernel does."""
        return self.kernel.depends_on_nodes

    def resolved(self, nodes: Any) -> Self:
        """Resolve the kernel."""
        return self.replace(kernel=self.kernel.resolved(nodes))

    def size(self, nodes: Any) -> float:
        """Return its size, scaled."""
        return self.factor * self.kernel.size(nodes)

    def bind(self, nodes: Any) -> FeatureMap:
        """Return its map, scaled."""
        return _ScaledMap(self.kernel.bind(nodes), self.factor**0.5)

    def restore(self, arrays: Mapping[str, Any]) -> FeatureMap:
        """Return the map; the arrays are those of the kernel alone."""
        return _ScaledMap(self.kernel.restore(arrays), self.factor**0.5)

    def split(self, features: FeatureMap, coefficients: Any) -> Terms:
        """Return the terms of the kernel, each scaled."""
        if not isinstance(features, _ScaledMap):
            raise TypeError(f"expected the features of {self!r}, got {features!r}")
        return tuple(
            (FeatureScaled(kernel, self.factor), _ScaledMap(inner, features.root), c)
            for kernel, inner, c in self.kernel.split(features.inner, coefficients)
        )

    def standardisation(self, shift: Any, scale: Any) -> tuple[Any, Any]:
        """Return what the kernel asks for."""
        return self.kernel.standardisation(shift, scale)

    def energy_unit(self, scale: Any) -> float:
        """Return the kernel's own; the factor is in the features."""
        return self.kernel.energy_unit(scale)


class _SumMap(FeatureMap):
    def __init__(self, left: FeatureMap, right: FeatureMap) -> None:
        if left.separable != right.separable:
            raise TypeError(
                "features of a sum must all be scalar, shared by the outputs, or all matrix-valued "
                f"such as GradientFeatures, got {type(left).__name__} and {type(right).__name__}"
            )
        if left.d != right.d:
            raise ValueError(f"features of {left.d} and of {right.d} coordinates have no sum")
        self.left, self.right = left, right

    @property
    def q(self) -> int:
        return self.left.q + self.right.q

    @property
    def d(self) -> int:
        return self.left.d

    @property
    def separable(self) -> bool:
        return self.left.separable

    def __call__(self, x: Any) -> Any:
        return _backend.namespace(x).concat([self.left(x), self.right(x)], axis=-1)

    def gradient(self, x: Any) -> Any:
        xp = _backend.namespace(x)
        return xp.concat([self.left.gradient(x), self.right.gradient(x)], axis=-1)

    def hessian(self, x: Any, c: Any) -> Any:
        left, right = self.divide(c)
        return self.left.hessian(x, left) + self.right.hessian(x, right)

    def jacobian(self, x: Any, c: Any) -> Any:
        left, right = self.divide(c)
        return self.left.jacobian(x, left) + self.right.jacobian(x, right)

    def bind(self, coefficients: Any) -> Evaluator:
        left, right = self.divide(coefficients)
        return _SumEvaluator(self.left.bind(left), self.right.bind(right))

    def divide(self, coefficients: Any) -> tuple[Any, Any]:
        """Return the coefficients of the left and of the right features."""
        return coefficients[: self.left.q, ...], coefficients[self.left.q :, ...]

    def arrays(self) -> dict[str, Any]:
        named = {f"left.{name}": a for name, a in self.left.arrays().items()}
        return named | {f"right.{name}": a for name, a in self.right.arrays().items()}


class _SumEvaluator(Evaluator):
    def __init__(self, left: Evaluator, right: Evaluator) -> None:
        self._left, self._right = left, right

    def __call__(self, x: Any) -> Any:
        return self._left(x) + self._right(x)

    def jacobian(self, x: Any) -> Any:
        return self._left.jacobian(x) + self._right.jacobian(x)

    def energy(self, x: Any) -> Any:
        return self._left.energy(x) + self._right.energy(x)


class _ScaledMap(FeatureMap):
    def __init__(self, inner: FeatureMap, root: float) -> None:
        self.inner, self.root = inner, root

    @property
    def q(self) -> int:
        return self.inner.q

    @property
    def d(self) -> int:
        return self.inner.d

    @property
    def separable(self) -> bool:
        return self.inner.separable

    def __call__(self, x: Any) -> Any:
        value = self.inner(x)
        value *= self.root
        return value

    def gradient(self, x: Any) -> Any:
        return self.root * self.inner.gradient(x)

    def hessian(self, x: Any, c: Any) -> Any:
        return self.inner.hessian(x, self.root * c)

    def jacobian(self, x: Any, c: Any) -> Any:
        return self.inner.jacobian(x, self.root * c)

    def bind(self, coefficients: Any) -> Evaluator:
        return self.inner.bind(self.root * coefficients)

    def arrays(self) -> dict[str, Any]:
        return self.inner.arrays()


def _pairings(kernel: ExplicitKernel) -> set[Any]:
    """Return the ``pairs`` of all terms; None for one that has the default or none."""
    if isinstance(kernel, FeatureSum):
        return _pairings(kernel.left) | _pairings(kernel.right)
    if isinstance(kernel, FeatureScaled):
        return _pairings(kernel.kernel)
    return {getattr(kernel, "pairs", None)}


def _under(prefix: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {k[len(prefix) :]: a for k, a in arrays.items() if k.startswith(prefix)}


def _check_explicit(name: str, value: Any) -> None:
    if not isinstance(value, ExplicitKernel):
        raise TypeError(f"{name} must be an explicit kernel such as Monomials(), got {value!r}")
