"""Explicit kernels: K(x, y) = psi(x) psi(y)^T with finitely many features psi."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from vectorfield import _backend
from vectorfield.kernels.operators import Evaluator, OperatorKernel
from vectorfield.kernels.tiles import row_blocks

if TYPE_CHECKING:
    from vectorfield.kernels.feature_sums import FeatureScaled, FeatureSum

__all__ = ["ExplicitKernel", "FeatureEvaluator", "FeatureMap", "in_blocks", "read_only"]

SAMPLE = 1000  # nodes from which the mean of |psi|^2 is taken; it only sets a default ridge


class FeatureMap(ABC):
    """Features bound to data: x -> psi(x), an immutable value that holds every array it needs.

    There are two kinds. *Separable* ones have scalar features phi(x), (n, q), which all outputs
    share: f(x) = phi(x) C with coefficients C (q, d). Others have a matrix psi(x) at every point,
    (n, d, q), and coefficients (q,): f(x) = psi(x) c.

    To write your own, give ``q``, ``d`` and ``__call__``; for Jacobians `gradient` where the map
    is separable and `jacobian` where it is not; for `GradientFeatures` of it `hessian` too.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> x = np.array([[1.0, 2.0]])
        >>> features = vf.kernels.Monomials(degree=2, offset=0.0).bind(x)
        >>> features.q, features.separable
        (3, True)
        >>> features(x).round(3)  # x^2, sqrt(2) x y, y^2
        array([[1.   , 2.828, 4.   ]])
    """

    @property
    @abstractmethod
    def q(self) -> int:
        """Number of features."""

    @property
    @abstractmethod
    def d(self) -> int:
        """Number of coordinates."""

    @property
    def separable(self) -> bool:
        """Whether the outputs share scalar features."""
        return True

    @abstractmethod
    def __call__(self, x: Any) -> Any:
        """Return phi(x), (n, d) -> (n, q); psi(x), (n, d, q), where the map is not separable."""

    def gradient(self, x: Any) -> Any:
        """Return d phi_j / d x_i, (n, d) -> (n, d, q), of separable features."""
        raise TypeError(f"{type(self).__name__} has no derivatives")

    def hessian(self, x: Any, c: Any) -> Any:
        """Return the second derivatives of phi(x) . c, (n, d) -> (n, d, d), for ``c`` (q,)."""
        raise TypeError(f"{type(self).__name__} has no second derivatives")

    def jacobian(self, x: Any, c: Any) -> Any:
        """Return d f_i / d x_j, (n, k, d), of the field with coefficients ``c``.

        Cost O(n q d k) by `gradient` unless the map knows a shorter way.
        """
        if not self.separable:
            raise TypeError(f"{type(self).__name__} has no derivatives")
        xp = _backend.namespace(x)
        return xp.permute_dims(xp.matmul(self.gradient(x), c), (0, 2, 1))

    def bind(self, coefficients: Any) -> Evaluator:
        """Return the field with these coefficients."""
        return FeatureEvaluator(self, coefficients)

    def arrays(self) -> dict[str, Any]:
        """Return the arrays that `ExplicitKernel.restore` makes the map from again."""
        raise TypeError(
            f"{type(self).__name__} is not one of the library's feature maps and cannot be "
            "written to a model file; use pickle for maps of your own"
        )


class ExplicitKernel(OperatorKernel):
    """A kernel known by finitely many features: K(x, y) = psi(x) psi(y)^T.

    Values are settings; `bind` draws, chooses or counts what the features need and gives a
    `FeatureMap`. A fit is one (q, q) system, whatever the number of observations. Where the
    features are scalar, K = phi(x) . phi(y) I, and I kron phi is never formed.

    ``left + right`` joins the features of both, so that the kernels add up, and ``2.0 * features``
    is twice the kernel, its features times sqrt(2).

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> kernel = vf.kernels.Monomials(1) + 0.5 * vf.kernels.RandomFourier(
        ...     vf.kernels.Gaussian(1.0), 100
        ... )
        >>> kernel.bind(np.zeros((1, 3)))(np.zeros((5, 3))).shape
        (5, 104)
    """

    @property
    def depends_on_nodes(self) -> bool:
        """Whether `bind` looks at more of the nodes than how many coordinates they have."""
        return True

    @abstractmethod
    def bind(self, nodes: Any) -> FeatureMap:
        """Return the features; ``nodes`` (m, d) give the coordinates, and centres if need be."""

    def restore(self, arrays: Mapping[str, Any]) -> FeatureMap:
        """Return the map whose `FeatureMap.arrays` these are; ValueError if they do not fit."""
        raise ValueError(f"features of {type(self).__name__} cannot be read from a model file")

    def size(self, nodes: Any) -> float:
        """Return the mean of K(z, z)'s diagonal, over at most 1000 of the nodes."""
        sample = nodes[:: max(1, nodes.shape[0] // SAMPLE), :]
        features = self.bind(nodes)
        outputs = 1 if features.separable else features.d
        value = features(sample)
        xp = _backend.namespace(value)
        return float(xp.sum(value * value)) / float(outputs * sample.shape[0])

    def split(
        self, features: FeatureMap, coefficients: Any
    ) -> tuple[tuple[ExplicitKernel, FeatureMap, Any], ...]:
        """Return the terms of a sum, each with its own map and coefficients."""
        return ((self, features, coefficients),)

    def __add__(self, other: Any) -> FeatureSum:
        from vectorfield.kernels.feature_sums import FeatureSum

        return FeatureSum(self, other) if isinstance(other, ExplicitKernel) else NotImplemented

    def __rmul__(self, factor: Any) -> FeatureScaled:
        from vectorfield.kernels.feature_sums import FeatureScaled

        return FeatureScaled(self, factor) if isinstance(factor, (int, float)) else NotImplemented

    __mul__ = __rmul__


class FeatureEvaluator(Evaluator):
    """f(x) = psi(x) c, in cache-sized blocks on all cores."""

    def __init__(self, features: FeatureMap, coefficients: Any) -> None:
        self._map, self._c = features, coefficients

    def __call__(self, x: Any) -> Any:
        """Return f(x). Cost O(n q d)."""
        width = self._map.q * (1 if self._map.separable else self._map.d)
        return in_blocks(lambda part: self._map(part) @ self._c, x, width)

    def jacobian(self, x: Any) -> Any:
        """Return the Jacobian, (n, d, d). Cost O(n q d^2)."""
        return in_blocks(
            lambda part: self._map.jacobian(part, self._c), x, self._map.q * self._map.d
        )


def in_blocks(function: Callable[[Any], Any], x: Any, width: int) -> Any:
    """Return ``function(x)``, rows of x independent of each other, some rows at a time.

    ``width`` is how many numbers are made for each row on the way; a block holds as many as a
    core's cache, or on accelerators half a gigabyte.
    """
    elements = 2**16 if _backend.is_numpy(x) else 2**26
    blocks = row_blocks(x.shape[0], max(1, elements // max(1, width)))
    if len(blocks) <= 1:
        return function(x)

    def work(rows: slice) -> Any:
        return function(x[rows, :])

    if _backend.is_numpy(x):
        values = _backend.run_parallel(work, blocks)
    else:
        values = [work(rows) for rows in blocks]
    return _backend.namespace(x).concat(values, axis=0)


def read_only(array: Any) -> Any:
    """Return the array; of NumPy's a view, or row-major copy, that cannot be written to.

    Model files hold rows: with any other layout the last bits of sums would change on the way.
    """
    if isinstance(array, np.ndarray):
        array = np.ascontiguousarray(array).view()
        array.flags.writeable = False
    return array
