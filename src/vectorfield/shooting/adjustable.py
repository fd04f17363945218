"""Fields with coordinates to change them by, in which the kernel's norm is the plain one.

f = f_0 + delta, where delta has coordinates g with |delta|_H = |g|. For features these are changes
of the coefficients. For an expansion on nodes z,

    delta = sum_p k(., z_p) (B g A^(1/2))_p,   B = k(C, C)^(-1/2) on chosen nodes C, 0 elsewhere,

A the kernel's matrix: the sum is again an expansion on the same nodes. Where all nodes are chosen
it is any field that they hold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np

from vectorfield._errors import DataError
from vectorfield.kernels import KernelExpansion, Nystrom, ScalarKernel, Separable
from vectorfield.kernels.expansion import Expansion, FeatureExpansion
from vectorfield.kernels.nystrom import NystromMap
from vectorfield.kernels.tiles import evaluate, row_blocks
from vectorfield.shooting.paths import Flow

__all__ = ["Adjustable", "adjustable", "pulled_by"]

BLOCK = 2**18  # kernel values or features at once


class Adjustable(ABC):
    """A field f_0 + delta + a known part, at coordinates ``g`` of delta.

    ``shape`` is that of g. `move` changes g; calls, `pull` and `gather` are at the current one.
    """

    shape: tuple[int, ...]

    def __init__(self, drift: Flow | None) -> None:
        self._drift = drift

    def __call__(self, x: Any) -> Any:
        """Return f(x), (n, d)."""
        value = self._value(x)
        return value if self._drift is None else value + self._drift(x)

    def pull(self, x: Any, v: Any) -> Any:
        """Return J(x)^T v, (n, d)."""
        value = self._pull(x, v)
        return value if self._drift is None else value + pulled_by(self._drift, x, v)

    @abstractmethod
    def move(self, g: np.ndarray) -> None:
        """Go to the coordinates g."""

    @abstractmethod
    def gather(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the derivative by g of sum_n v_n . f(x_n)."""

    @abstractmethod
    def expansion(self, g: np.ndarray) -> Expansion:
        """Return the learned part at g as an expansion like the first."""

    @abstractmethod
    def _value(self, x: Any) -> Any: ...

    @abstractmethod
    def _pull(self, x: Any, v: Any) -> Any: ...


def adjustable(expansion: Expansion, drift: Flow | None, count: int) -> Adjustable:
    """Return the field of an expansion with coordinates; at most ``count`` nodes are chosen."""
    if isinstance(expansion, FeatureExpansion):
        if isinstance(expansion.features, NystromMap):
            return _OfCentres(expansion, drift)
        return _OfFeatures(expansion, drift)
    if isinstance(expansion, KernelExpansion) and isinstance(expansion.kernel, Separable):
        return _OfNodes(expansion, drift, count)
    raise DataError(
        f"Rollouts needs a separable kernel or one with features, got {expansion.kernel!r}; take "
        "its features, such as vf.kernels.HamiltonianFeatures(vf.kernels.RandomFourier(...))"
    )


def pulled_by(flow: Any, x: Any, v: Any) -> Any:
    """Return J(x)^T v of any flow: by its own ``pull``, else from its Jacobian."""
    pull = getattr(flow, "pull", None)
    if pull is not None:
        return pull(x, v)
    return np.einsum("nij,ni->nj", flow.jacobian(x), v)


class _Sum(Adjustable):
    """sum_p k(x, z_p) c_p with c = c_0 + B g S, S (d, d) symmetric."""

    def __init__(
        self,
        drift: Flow | None,
        kernel: ScalarKernel,
        nodes: np.ndarray,
        coefficients: np.ndarray,
        *,
        mixing: np.ndarray,
        rows: np.ndarray,
        root: np.ndarray | None = None,
    ) -> None:
        super().__init__(drift)
        self._kernel, self._nodes, self._first = kernel, nodes, coefficients
        self._mixing, self._rows, self._root = mixing, rows, root
        self._at = kernel.bind(nodes)
        self._ones = np.ones((len(nodes), 1))
        self._now = coefficients
        self.shape = (mixing.shape[1], coefficients.shape[1])

    def move(self, g: np.ndarray) -> None:
        change = self._mixing @ (g if self._root is None else g @ self._root)
        self._now = self._first.copy()
        np.add.at(self._now, self._rows, change)  # equal nodes may have been chosen twice

    def gather(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Cost O(n m d)."""
        total = np.zeros_like(self._first)
        tile, every = self._at(x), slice(0, len(self._nodes))
        for rows in row_blocks(len(x), max(1, BLOCK // len(self._nodes))):
            total += tile(rows, every).T @ v[rows]
        found = np.asarray(self._mixing.T @ total[self._rows])
        return found if self._root is None else found @ self._root

    def _value(self, x: Any) -> Any:
        return evaluate(self._at, x, self._now)

    def _pull(self, x: Any, v: Any) -> Any:
        size = max(32, BLOCK // len(self._nodes))
        parts = [
            self._kernel.derivative(x[rows], self._nodes, self._ones, v[rows] @ self._now.T)[:, 0]
            for rows in row_blocks(len(x), size)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate([np.zeros((0, x.shape[1])), *parts])


class _OfCentres(_Sum):
    """Nystrom features: an expansion on the centres."""

    def __init__(self, expansion: FeatureExpansion, drift: Flow | None) -> None:
        features: Any = expansion.features
        self._expansion = expansion
        first = features.mixing @ expansion.coefficients
        every = np.arange(len(first))
        super().__init__(
            drift, features.kernel, features.centres, first, mixing=features.mixing, rows=every
        )

    def expansion(self, g: np.ndarray) -> Expansion:
        return replace(self._expansion, coefficients=self._expansion.coefficients + g)


class _OfNodes(_Sum):
    """An expansion of a separable kernel on the nodes of the data."""

    def __init__(self, expansion: KernelExpansion, drift: Flow | None, count: int) -> None:
        kernel: Any = expansion.kernel
        self._expansion = expansion
        nodes, first = np.asarray(expansion.nodes), np.asarray(expansion.coefficients)
        root, self._back = None, None
        if kernel.matrix is not None:
            values, vectors = np.linalg.eigh(np.asarray(kernel.matrix))
            values = np.where(values > 1e-12 * values[-1], values, 0.0)
            inverse = np.where(values > 0, 1.0 / np.sqrt(np.where(values > 0, values, 1.0)), 0.0)
            root = (vectors * np.sqrt(values)) @ vectors.T
            self._back = (vectors * inverse) @ vectors.T
            first = first @ np.asarray(kernel.matrix)
        chosen = Nystrom(kernel.kernel, min(count, len(nodes))).bind(nodes)
        place = {row.tobytes(): p for p, row in enumerate(nodes)}
        rows = np.array([place[row.tobytes()] for row in np.asarray(chosen.centres)])
        super().__init__(
            drift, kernel.kernel, nodes, first, mixing=chosen.mixing, rows=rows, root=root
        )

    def expansion(self, g: np.ndarray) -> Expansion:
        coefficients = np.array(self._expansion.coefficients)
        np.add.at(
            coefficients, self._rows, self._mixing @ (g if self._back is None else g @ self._back)
        )
        return replace(self._expansion, coefficients=coefficients)


class _OfFeatures(Adjustable):
    """psi(x) (c_0 + g) for any features."""

    def __init__(self, expansion: FeatureExpansion, drift: Flow | None) -> None:
        super().__init__(drift)
        self._expansion = self._now = expansion
        self.shape = expansion.coefficients.shape

    def move(self, g: np.ndarray) -> None:
        self._now = replace(self._expansion, coefficients=self._expansion.coefficients + g)

    def gather(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Cost O(n q d)."""
        features = self._expansion.features
        total = np.zeros(self.shape)
        size = max(1, BLOCK // (features.q * (1 if features.separable else features.d)))
        for rows in row_blocks(len(x), size):
            psi = features(x[rows])
            if features.separable:
                total += psi.T @ v[rows]
            else:
                total += np.einsum("ndq,nd->q", psi, v[rows])
        return total

    def expansion(self, g: np.ndarray) -> Expansion:
        return replace(self._expansion, coefficients=self._expansion.coefficients + g)

    def _value(self, x: Any) -> Any:
        return self._now(x)

    def _pull(self, x: Any, v: Any) -> Any:
        return np.einsum("nij,ni->nj", self._now.jacobian(x), v)
