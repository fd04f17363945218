"""Matrix-valued features made of the gradients of scalar ones: fields that obey a law."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from vectorfield import _backend
from vectorfield.kernels.features import ExplicitKernel, FeatureMap, in_blocks
from vectorfield.kernels.laws import (
    Pairs,
    check_pairs,
    paired_scale,
    paired_unit,
    resolve_pairs,
    symplectic_matrix,
    uniform_scale,
    uniform_unit,
)
from vectorfield.kernels.operators import Evaluator

__all__ = ["GradientFeatures", "HamiltonianFeatures"]


class _Derived(ExplicitKernel):
    """psi = B grad phi with a (d, d) matrix B, -I or J, for scalar features phi."""

    features: ExplicitKernel

    def __post_init__(self) -> None:
        if not isinstance(self.features, ExplicitKernel):
            raise TypeError(
                f"features must be an explicit kernel such as Monomials(), got {self.features!r}"
            )

    @abstractmethod
    def _mixing(self, d: int) -> np.ndarray:
        """Return B; ValueError if the law needs another d."""

    def resolved(self, nodes: Any) -> Self:
        """Resolve the features; check that the law fits the number of coordinates."""
        self._mixing(nodes.shape[1])
        return self.replace(features=self.features.resolved(nodes))

    def bind(self, nodes: Any) -> FeatureMap:
        """Return the map made of that of the features."""
        return self._wrap(self.features.bind(nodes))

    def restore(self, arrays: Mapping[str, Any]) -> FeatureMap:
        """Return the map; the arrays are those of the features."""
        return self._wrap(self.features.restore(arrays))

    def _wrap(self, inner: FeatureMap) -> FeatureMap:
        if not inner.separable:
            raise TypeError(
                f"{type(self).__name__} needs scalar features, got {type(self.features).__name__}"
            )
        return _DerivedMap(inner, self._mixing(inner.d))


@dataclass(frozen=True)
class GradientFeatures(_Derived):
    """psi(x) = -grad phi(x): curl-free fields f = -grad V with the potential V = phi . c.

    The explicit relative of `CurlFree`. ``field.potential(x)`` is V, up to a constant.
    Standardised coordinates share one scale, since a gradient is none any more where they do not.

    Args:
        features: a kernel with scalar features.

    A fit of N observations costs N d q^2 + q^3 / 3.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 2.0, 41)
        >>> sink = np.exp(-np.outer(t, [1.0, 2.0]))  # V = x^2 / 2 + y^2
        >>> kernel = vf.kernels.GradientFeatures(vf.kernels.Monomials(2))
        >>> model = vf.MOCK(kernel, 1e-10, rule=vf.occupation.Lagrange(4)).fit(sink, t)
        >>> potential = model.potential(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
        >>> (potential - potential[0]).round(3)
        array([0. , 0.5, 1. ])
    """

    features: ExplicitKernel
    energy: ClassVar[str | None] = "potential"

    def _mixing(self, d: int) -> np.ndarray:
        return -np.eye(d)

    def standardisation(self, shift: Any, scale: Any) -> tuple[Any, Any]:
        """Return one scale for all coordinates, the root mean square of theirs."""
        return shift, uniform_scale(scale)

    def energy_unit(self, scale: Any) -> float:
        """Return the square of the scale."""
        return uniform_unit(scale)


@dataclass(frozen=True)
class HamiltonianFeatures(_Derived):
    """psi(x) = J grad phi(x): Hamiltonian fields f = J grad H with the energy H = phi . c.

    dq/dt = dH/dp and dp/dt = -dH/dq for every pair (q, p) of coordinates. The explicit relative of
    `Hamiltonian`; ``field.hamiltonian(x)`` is H, up to a constant. In standardised coordinates
    the product of the scales of every pair is the same.

    Args:
        features: a kernel with scalar features.
        pairs: ((q, p), ...), positions and their momenta; by default the first half and the
            second half of the coordinates.

    A fit of N observations costs N d q^2 + q^3 / 3.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 6.0, 61)
        >>> orbit = np.stack([np.cos(t), -np.sin(t)], axis=1)  # H = (q^2 + p^2) / 2
        >>> kernel = vf.kernels.HamiltonianFeatures(vf.kernels.Monomials(2))
        >>> model = vf.MOCK(kernel, 1e-10, rule=vf.occupation.Lagrange(4)).fit(orbit, t)
        >>> energy = model.hamiltonian(orbit)
        >>> bool(np.ptp(energy) < 1e-3)
        True
    """

    features: ExplicitKernel
    pairs: Pairs = None
    energy: ClassVar[str | None] = "hamiltonian"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "pairs", check_pairs(self.pairs))

    def _mixing(self, d: int) -> np.ndarray:
        resolve_pairs(self.pairs, d)
        return symplectic_matrix(self.pairs, d)

    def standardisation(self, shift: Any, scale: Any) -> tuple[Any, Any]:
        """Return scales whose products over the pairs are equal."""
        return shift, paired_scale(scale, self.pairs)

    def energy_unit(self, scale: Any) -> float:
        """Return the product of the scales of a pair."""
        return paired_unit(scale, self.pairs)


class _DerivedMap(FeatureMap):
    def __init__(self, inner: FeatureMap, mixing: np.ndarray) -> None:
        self.inner = inner
        # B has one entry a row, so that a product with it is a choice of rows and signs
        self.source = np.argmax(np.abs(mixing), axis=1)
        self.signs = mixing[np.arange(len(mixing)), self.source]

    @property
    def q(self) -> int:
        return self.inner.q

    @property
    def d(self) -> int:
        return self.inner.d

    @property
    def separable(self) -> bool:
        return False

    def __call__(self, x: Any) -> Any:
        return self.mix(self.inner.gradient(x))

    def jacobian(self, x: Any, c: Any) -> Any:
        return self.mix(self.inner.hessian(x, c))

    def bind(self, coefficients: Any) -> Evaluator:
        return _DerivedEvaluator(self, coefficients)

    def arrays(self) -> dict[str, Any]:
        return self.inner.arrays()

    def mix(self, rows: Any) -> Any:
        """Return B times an array (n, d, ...)."""
        xp = _backend.namespace(rows)
        value = xp.take(rows, _backend.index(self.source, rows), axis=1)
        signs = xp.reshape(_backend.array_like(self.signs, rows), (-1,) + (1,) * (rows.ndim - 2))
        value *= signs
        return value


class _DerivedEvaluator(Evaluator):
    def __init__(self, features: _DerivedMap, coefficients: Any) -> None:
        self._map, self._c = features, coefficients
        self._scalar = features.inner.bind(coefficients[:, None])

    def __call__(self, x: Any) -> Any:
        return self._map.mix(self._scalar.jacobian(x)[:, 0, :])

    def jacobian(self, x: Any) -> Any:
        width = self._map.q * self._map.d
        return in_blocks(lambda part: self._map.jacobian(part, self._c), x, width)

    def energy(self, x: Any) -> Any:
        return self._scalar(x)[:, 0]
