"""Nystrom features of a scalar kernel: its projection on k(., z_p) for chosen centres z_p."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from vectorfield import _backend
from vectorfield._settings import check_choice, check_integer, check_real
from vectorfield.kernels.base import ScalarKernel
from vectorfield.kernels.features import ExplicitKernel, FeatureMap, read_only
from vectorfield.kernels.lengths import divide_lengths
from vectorfield.kernels.newton import NewtonBasis
from vectorfield.kernels.operators import Evaluator
from vectorfield.kernels.radial import Gaussian, Radial
from vectorfield.kernels.separable import SeparableEvaluator

__all__ = ["Nystrom", "NystromMap"]

SINGULAR = 1e-13  # eigenvalues of K_CC below this part of the largest are rounding errors


@dataclass(frozen=True)
class Nystrom(ExplicitKernel):
    """Features phi(x) = k(x, C) R on centres C with R R^T = k(C, C)^-1.

    phi(x) . phi(y) = k(x, C) k(C, C)^-1 k(C, y) is the projection of k on its values at the
    centres: exact there, and on all nodes if all are centres. Unlike random features they know
    where the data is. Directions in which k(C, C) is singular to rounding are left out, so that q
    may be smaller than ``count``.

    Args:
        kernel: any scalar kernel; open length scales are set when a model is fitted.
        count: the largest number of centres.
        centres: ``"random"`` nodes; ``"farthest"``, each the node farthest from those before, in
            length scales where the kernel has them; or ``"pivoted"``, each the node at which the
            error k(z, z) - |phi(z)|^2 of those before is largest (Cholesky with pivots).
        tolerance: ``"pivoted"`` stops where that error is nowhere above ``tolerance`` times the
            largest k(z, z).
        candidates: centres are chosen among at most this many nodes, drawn at random.
        random_state: seed of what is random.

    Choosing costs O(m q) for ``"farthest"`` and O(m q^2) for ``"pivoted"`` among m candidates, a
    fit of N observations O(N q (q + d)), a call of the field O(n q d).

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> x = np.linspace(0.0, 1.0, 200)[:, None]
        >>> kernel = vf.kernels.Nystrom(vf.kernels.Gaussian(0.5), 50, "pivoted", tolerance=1e-6)
        >>> phi = kernel.bind(x)
        >>> phi.q < 12, bool(np.abs(np.sum(phi(x) ** 2, axis=1) - 1.0).max() < 1e-6)
        (True, True)
    """

    kernel: ScalarKernel = field(default_factory=Gaussian)
    count: int = 200
    centres: str = "farthest"
    tolerance: float = 1e-12
    candidates: int = 10_000
    random_state: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, ScalarKernel):
            raise TypeError(
                f"kernel must be a scalar kernel such as Gaussian(), got {self.kernel!r}"
            )
        check_choice("centres", self.centres, ("random", "farthest", "pivoted"))
        checked: dict[str, int | float] = {
            "count": check_integer("count", self.count, at_least=1),
            "tolerance": check_real("tolerance", self.tolerance, at_least=0.0),
            "candidates": check_integer("candidates", self.candidates, at_least=1),
            "random_state": check_integer("random_state", self.random_state, at_least=0),
        }
        if self.candidates < self.count:
            raise ValueError(
                f"candidates must be at least count = {self.count}, got {self.candidates}"
            )
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def resolved(self, nodes: Any) -> Self:
        """Set the kernel's open settings from the nodes."""
        return self.replace(kernel=self.kernel.resolved(nodes))

    def size(self, nodes: Any) -> float:
        """Return the mean of k(z, z), which that of the features approaches from below."""
        return float(_backend.namespace(nodes).mean(self.kernel.diagonal(nodes)))

    def bind(self, nodes: Any) -> NystromMap:
        """Choose the centres and factor the kernel between them. Cost as above and O(q^3)."""
        rng = np.random.default_rng(self.random_state)
        total = int(nodes.shape[0])
        drawn = np.arange(total)
        if total > self.candidates:
            drawn = np.sort(rng.choice(total, self.candidates, replace=False))
        host = _backend.to_numpy(nodes[_backend.index(drawn, nodes), :])
        most = min(self.count, len(host))
        if self.centres == "random":
            chosen = np.sort(rng.choice(len(host), most, replace=False))
        elif self.centres == "farthest":
            chosen = _farthest(host, most, getattr(self.kernel, "length_scale", None))
        else:
            chosen = _pivoted(self.kernel, host, most, self.tolerance)
        centres = host[chosen, :]
        mixing = _inverse_root(self.kernel(centres, centres))
        return NystromMap(
            self.kernel, _backend.array_like(centres, nodes), _backend.array_like(mixing, nodes)
        )

    def restore(self, arrays: Mapping[str, Any]) -> NystromMap:
        """Return the map with the centres of a model file."""
        centres, mixing = arrays["centres"], arrays["mixing"]
        if centres.ndim != 2 or mixing.ndim != 2 or mixing.shape[0] != centres.shape[0]:
            raise ValueError(f"centres {centres.shape} and mixing {mixing.shape} do not fit")
        return NystromMap(self.kernel, centres, mixing)


@dataclass(frozen=True, eq=False)
class NystromMap(FeatureMap):
    """phi(x) = k(x, C) R.

    Attributes:
        kernel: k, nothing left open.
        centres: C, (m, d).
        mixing: R, (m, q), with R R^T = k(C, C)^-1 but for directions that rounding has.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> nodes = np.array([[0.0], [1.0]])
        >>> phi = vf.kernels.Nystrom(vf.kernels.Gaussian(1.0)).bind(nodes)
        >>> (phi(nodes) @ phi(nodes).T).round(3)
        array([[1.   , 0.607],
               [0.607, 1.   ]])
    """

    kernel: ScalarKernel
    centres: Any
    mixing: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "centres", read_only(self.centres))
        object.__setattr__(self, "mixing", read_only(self.mixing))

    @property
    def q(self) -> int:
        """Number of features."""
        return int(self.mixing.shape[1])

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return int(self.centres.shape[1])

    def __call__(self, x: Any) -> Any:
        """Return phi(x), (n, q). Cost O(n m (q + d))."""
        return self.kernel(x, self.centres) @ self.mixing

    def gradient(self, x: Any) -> Any:
        """Return the derivatives of the features, (n, d, q). Cost O(n m q d)."""
        value = self.kernel.derivative(x, self.centres, self.mixing)
        return _backend.namespace(x).permute_dims(value, (0, 2, 1))

    def jacobian(self, x: Any, c: Any) -> Any:
        """Return the Jacobian, (n, k, d). Cost O(n m d k)."""
        return self.kernel.derivative(x, self.centres, self.mixing @ c)

    def hessian(self, x: Any, c: Any) -> Any:
        """Return the second derivatives of phi(x) . c, (n, d, d), for radial kernels."""
        k = self.kernel
        if not isinstance(k, Radial):
            raise TypeError(
                f"second derivatives of Nystrom features need a radial kernel, got {k!r}"
            )
        xp = _backend.namespace(x)
        weights = self.mixing @ c
        everything = slice(0, x.shape[0]), slice(0, self.centres.shape[0])
        squared = k.bind_squared(self.centres, k.is_rough(2))(x)(*everything)
        first, second = k.profiles(squared, (1, 2))
        value = []
        for a in range(x.shape[0]):
            u = divide_lengths(x[a, :] - self.centres, k.length_scale)
            value.append(xp.matmul(u.T * (second[a, :] * weights), u))
        inverse = divide_lengths(xp.ones_like(x[0, :]), k.length_scale)
        identity = xp.eye(self.d, dtype=x.dtype, device=_backend.device(x))
        total = xp.stack(value) + (first @ weights)[:, None, None] * identity
        return total * inverse[:, None] * inverse

    def bind(self, coefficients: Any) -> Evaluator:
        """Return the field, which is one of the kernel with the centres for nodes."""
        return SeparableEvaluator(self.kernel, self.centres, self.mixing @ coefficients)

    def arrays(self) -> dict[str, Any]:
        """Return centres and mixing."""
        return {"centres": self.centres, "mixing": self.mixing}


def _inverse_root(gram: np.ndarray) -> np.ndarray:
    """Return R (m, q) with R R^T the inverse of a Gram matrix on its numerical range."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > SINGULAR * max(values[-1], 0.0)
    if not kept.any():
        raise ValueError("the kernel is zero at all centres, so that it has no features there")
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))[:, ::-1].copy()


def _farthest(nodes: np.ndarray, most: int, length_scale: Any) -> np.ndarray:
    """Return nodes each farthest from those before, from the one nearest to the mean on."""
    u = nodes - nodes.mean(axis=0)
    if length_scale is not None:
        u = divide_lengths(u, length_scale)
    sizes = np.einsum("ij,ij->i", u, u)
    chosen = [int(np.argmin(sizes))]
    distance = np.full(len(u), np.inf)
    while len(chosen) < most:
        last = chosen[-1]
        distance = np.minimum(distance, sizes + sizes[last] - 2.0 * (u @ u[last]))
        distance[last] = -np.inf  # never twice, even where nodes are equal
        chosen.append(int(np.argmax(distance)))
    return np.asarray(chosen)


def _pivoted(kernel: ScalarKernel, nodes: np.ndarray, most: int, tolerance: float) -> np.ndarray:
    """Return pivots of the Gram matrix until its diagonal is matched to the tolerance."""
    basis = NewtonBasis(kernel, nodes, most)
    goal = tolerance * float(basis.power.max())
    while basis.power.max() > goal and basis.grow() is not None:
        pass
    if not basis.chosen:
        raise ValueError("the kernel is zero at all nodes, so that it has no features there")
    return np.asarray(basis.chosen)
