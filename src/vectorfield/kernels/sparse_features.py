"""Explicit kernels of sparse fields: every output has features of its own few inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from vectorfield import _backend
from vectorfield.kernels.features import ExplicitKernel, FeatureMap, in_blocks
from vectorfield.kernels.inputs import Inputs, check_inputs, distinct
from vectorfield.kernels.operators import Evaluator
from vectorfield.kernels.sparse import assembled, check_count, taken, typical

__all__ = ["SparseFeatureEvaluator", "SparseFeatures", "SparseMap"]


@dataclass(frozen=True, eq=False)
class Group:
    """Outputs whose features are one map of as many inputs each.

    ``features`` is the map, ``outputs`` (g,) and ``index`` (g, p) their inputs; ``empty`` says that
    there are none, and the map then takes a coordinate that is zero.
    """

    features: FeatureMap
    outputs: np.ndarray
    index: np.ndarray
    empty: bool


@dataclass(frozen=True)
class SparseFeatures(ExplicitKernel):
    """K(x, y) = diag_i phi(x[S_i]) . phi(y[S_i]) with explicit features phi of a few inputs.

    A fit is one (q, q) system for each distinct set of inputs, q the number of features of so few
    coordinates: N q^2 + q^3 / 3 each, memory linear in d. Features that depend on how many inputs
    there are, and not on the data, are evaluated for all outputs at once.

    Args:
        features: an explicit kernel with scalar features such as `Monomials`.
        inputs: for each output the indices of its inputs; see `inputs_of` for matrices.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> kernel = vf.kernels.SparseFeatures(vf.kernels.Monomials(1), [(0,), (0, 1)])
        >>> t = np.linspace(0.0, 3.0, 40)
        >>> x = np.stack([np.exp(-t), np.exp(-t) * t], axis=1)  # x' = -x, y' = x - y
        >>> model = vf.MOCK(kernel, 1e-12, rule=vf.occupation.Lagrange(8)).fit(x, t)
        >>> model.field_.jacobian(x[5]).round(3)
        array([[-1.,  0.],
               [ 1., -1.]])
    """

    features: ExplicitKernel
    inputs: Inputs

    def __post_init__(self) -> None:
        if not isinstance(self.features, ExplicitKernel):
            raise TypeError(
                f"features must be an explicit kernel such as Monomials(), got {self.features!r}; "
                "scalar kernels are for SparseKernel"
            )
        object.__setattr__(self, "inputs", check_inputs(self.inputs))

    def __repr__(self) -> str:
        edges = sum(map(len, self.inputs))
        return f"SparseFeatures({self.features!r}, d={len(self.inputs)}, inputs={edges})"

    def resolved(self, nodes: Any) -> Self:
        """Set the features' open settings from the inputs of a typical output."""
        check_count(self.inputs, nodes)
        return self.replace(features=self.features.resolved(nodes[:, typical(self.inputs)]))

    def size(self, nodes: Any) -> float:
        """Return the mean of |phi(z[S_i])|^2, over at most 100 sets of inputs."""
        check_count(self.inputs, nodes)
        groups = distinct(self.inputs)
        groups = groups[:: max(1, len(groups) // 100)]
        sizes = [self.features.size(taken(nodes, own)) * len(which) for own, which in groups]
        return sum(sizes) / sum(len(which) for _, which in groups)

    def bind(self, nodes: Any) -> SparseMap:
        """Return the features of all outputs."""
        check_count(self.inputs, nodes)
        bound = [
            Group(self.features.bind(taken(nodes, index[0])), outputs, index, empty)
            for outputs, index, empty in self._groups()
        ]
        if any(not group.features.separable for group in bound):
            raise TypeError(f"{self.features!r} has no scalar features: outputs cannot be sparse")
        return SparseMap(len(self.inputs), tuple(bound))

    def restore(self, arrays: Mapping[str, Any]) -> SparseMap:
        """Return the map; the names of a group's arrays begin with its number."""
        bound = []
        for k, (outputs, index, empty) in enumerate(self._groups()):
            own = {n.removeprefix(f"{k}."): a for n, a in arrays.items() if n.startswith(f"{k}.")}
            bound.append(Group(self.features.restore(own), outputs, index, empty))
        return SparseMap(len(self.inputs), tuple(bound))

    def _groups(self) -> list[tuple[np.ndarray, np.ndarray, bool]]:
        """Return outputs and their inputs: by number of inputs, or set, where data matter."""
        if self.features.depends_on_nodes:
            return [
                (which, np.tile(np.array(own, dtype=np.int64), (len(which), 1)), not own)
                for own, which in distinct(self.inputs)
            ]
        counts = np.array([len(own) for own in self.inputs])
        groups = []
        for p in np.unique(counts):
            outputs = np.flatnonzero(counts == p)
            index = np.array([self.inputs[i] for i in outputs], dtype=np.int64)
            groups.append((outputs, index.reshape(len(outputs), p), p == 0))
        return groups


@dataclass(frozen=True, eq=False)
class SparseMap(FeatureMap):
    """Matrix-valued features psi(x), (n, d, q), with one block of a row for each output.

    Attributes:
        outputs: d.
        groups: the maps; coefficients come group by group, output by output.
    """

    outputs: int
    groups: tuple[Group, ...]

    @property
    def q(self) -> int:
        """Number of features of all outputs together."""
        return sum(len(group.outputs) * group.features.q for group in self.groups)

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return self.outputs

    @property
    def separable(self) -> bool:
        """False: every output has features of its own."""
        return False

    def __call__(self, x: Any) -> Any:
        """Return psi(x), (n, d, q), nearly all of it zero: for small problems."""
        _backend.check_memory(
            x.shape[0] * self.d * self.q, "the dense features of a sparse kernel", "use bind(c)"
        )
        xp = _backend.namespace(x)
        value = xp.zeros((x.shape[0], self.d, self.q), dtype=x.dtype, device=_backend.device(x))
        start = 0
        for group in self.groups:
            for i, own in zip(group.outputs, group.index, strict=True):
                stop = start + group.features.q
                value[:, int(i), start:stop] = group.features(taken(x, tuple(own)))
                start = stop
        return value

    def divide(self, coefficients: Any) -> list[Any]:
        """Return the coefficients of each group, (g, q)."""
        parts, start = [], 0
        for group in self.groups:
            count = len(group.outputs) * group.features.q
            part = coefficients[start : start + count]
            shape = (len(group.outputs), group.features.q)
            parts.append(_backend.namespace(part).reshape(part, shape))
            start += count
        return parts

    def jacobian(self, x: Any, c: Any) -> Any:
        """Return the dense Jacobian, (n, d, d)."""
        return self.bind(c).jacobian(x)

    def bind(self, coefficients: Any) -> SparseFeatureEvaluator:
        """Return the field."""
        return SparseFeatureEvaluator(self, coefficients)

    def arrays(self) -> dict[str, Any]:
        """Return the arrays of all maps."""
        return {
            f"{k}.{name}": array
            for k, group in enumerate(self.groups)
            for name, array in group.features.arrays().items()
        }


class SparseFeatureEvaluator(Evaluator):
    """f_i(x) = phi(x[S_i]) . c_i, for all outputs with as many inputs at once."""

    def __init__(self, features: SparseMap, coefficients: Any) -> None:
        self._map = features
        self._parts = list(zip(features.groups, features.divide(coefficients), strict=True))

    def __call__(self, x: Any) -> Any:
        """Return f(x), (n, d). Cost O(n q)."""
        return in_blocks(self._values, x, self._map.q)

    def jacobian(self, x: Any) -> Any:
        """Return the dense Jacobian, (n, d, d)."""
        xp = _backend.namespace(x)
        n, d = x.shape
        value = xp.zeros((n, d, d), dtype=x.dtype, device=_backend.device(x))
        for group, c in self._parts:
            part = _slopes(group, c, x)
            for k, (i, own) in enumerate(zip(group.outputs, group.index, strict=True)):
                for m, j in enumerate(own):
                    value[:, int(i), int(j)] = part[:, k, m]
        return value

    def sparse_jacobian(self, x: Any) -> list[sp.csr_array]:
        """Return the Jacobian at each point, (d, d) sparse. Cost and memory linear in d."""
        n, d = x.shape
        rows, columns, entries = self._places
        values = [
            _backend.to_numpy(_slopes(group, c, x)).reshape(n, -1)[:, : group.index.size]
            for group, c in self._parts
        ]
        return assembled(rows, columns, values, d) if entries else []

    @cached_property
    def _places(self) -> tuple[list[np.ndarray], list[np.ndarray], bool]:
        rows = [np.repeat(g.outputs, g.index.shape[1]) for g, _ in self._parts]
        return rows, [g.index.ravel() for g, _ in self._parts], True

    def _values(self, x: Any) -> Any:
        xp = _backend.namespace(x)
        value = xp.empty_like(x)
        for group, c in self._parts:
            if len(group.outputs) > 1 and (group.index == group.index[0]).all():
                part = group.features(taken(x, tuple(group.index[0]))) @ c.T
            else:
                phi = group.features(_spread(group, x))
                phi = xp.reshape(phi, (x.shape[0], *c.shape))
                part = xp.sum(phi * c, axis=2)
            value[:, _backend.index(group.outputs, x)] = part
        return value


def _spread(group: Group, x: Any) -> Any:
    """Return the inputs of every output one below the other, (n g, p)."""
    xp = _backend.namespace(x)
    if group.empty:
        return xp.zeros_like(x[:, :1])[:, [0] * len(group.outputs)].reshape(-1, 1)
    return xp.reshape(x[:, _backend.index(group.index, x)], (-1, group.index.shape[1]))


def _slopes(group: Group, c: Any, x: Any) -> Any:
    """Return d f_i / d x_j for the inputs of each output, (n, g, p)."""
    xp = _backend.namespace(x)
    gradient = group.features.gradient(_spread(group, x))  # (n g, p, q)
    shape = (x.shape[0], len(group.outputs), *gradient.shape[1:])
    return xp.sum(xp.reshape(gradient, shape) * c[None, :, None, :], axis=3)
