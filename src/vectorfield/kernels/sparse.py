"""Diagonal kernels of sparse fields: every output has a scalar kernel on its own few inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from vectorfield import _backend
from vectorfield.kernels.base import ScalarKernel
from vectorfield.kernels.inputs import Inputs, check_inputs, distinct
from vectorfield.kernels.operators import Blocks, Evaluator, ImplicitKernel
from vectorfield.kernels.tiles import Tile, evaluate

__all__ = ["SparseBlocks", "SparseEvaluator", "SparseKernel"]


@dataclass(frozen=True)
class SparseKernel(ImplicitKernel):
    """K(x, y) = diag_i k(x[S_i], y[S_i]): output i looks at the coordinates S_i and no others.

    The outputs are fitted each on its own, those with equal inputs by one factorisation: S^3 / 3
    for each distinct set of inputs, one (S, S) matrix in memory at a time, coefficients linear in
    d. An output without inputs is zero under most kernels and a constant under `Constant`-like
    ones. For explicit features, and for many observations, see `SparseFeatures`.

    Args:
        kernel: the scalar kernel k, with one length scale for all coordinates; one of None is
            set to the median distance of the nodes in the inputs of the output with the median
            number of them.
        inputs: for each output the indices of its inputs; see `inputs_of` for matrices.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> kernel = vf.kernels.SparseKernel(vf.kernels.Gaussian(1.0), [(0,), (0, 1)])
        >>> t = np.linspace(0.0, 3.0, 40)
        >>> x = np.stack([np.exp(-t), np.exp(-t) * t], axis=1)  # x' = -x, y' = x - y
        >>> model = vf.MOCK(kernel, 1e-9).fit(x, t)
        >>> model.field_.sparse_jacobian(x[5]).nnz
        3
    """

    kernel: ScalarKernel
    inputs: Inputs

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, ScalarKernel):
            raise TypeError(
                f"kernel must be a scalar kernel such as Gaussian(), got {self.kernel!r}; explicit "
                "ones, such as Monomials(), are for SparseFeatures"
            )
        object.__setattr__(self, "inputs", check_inputs(self.inputs))

    def __repr__(self) -> str:
        edges = sum(map(len, self.inputs))
        return f"SparseKernel({self.kernel!r}, d={len(self.inputs)}, inputs={edges})"

    def resolved(self, nodes: Any) -> Self:
        """Set the scalar kernel's open settings from the nodes; see the class."""
        check_count(self.inputs, nodes)
        return self.replace(kernel=self.kernel.resolved(nodes[:, typical(self.inputs)]))

    def size(self, nodes: Any) -> float:
        """Return the mean of k(z[S_i], z[S_i])."""
        check_count(self.inputs, nodes)
        xp = _backend.namespace(nodes)
        total = sum(
            len(outputs) * float(xp.mean(self.kernel.diagonal(taken(nodes, own))))
            for own, outputs in distinct(self.inputs)
        )
        return total / len(self.inputs)

    def bind(self, nodes: Any, coefficients: Any) -> SparseEvaluator:
        """Return the field f_i = sum_p k(.[S_i], z_p[S_i]) c_pi."""
        check_count(self.inputs, nodes)
        return SparseEvaluator(self, nodes, coefficients)

    def blocks(self, y: Any) -> Callable[[Any], Blocks]:
        """Prepare ``y``; see `ImplicitKernel.blocks`."""
        check_count(self.inputs, y)
        groups = distinct(self.inputs)
        bound = [self.kernel.bind(taken(y, own)) for own, _ in groups]

        def at(x: Any) -> SparseBlocks:
            tiles = [one(taken(x, own)) for one, (own, _) in zip(bound, groups, strict=True)]
            return SparseBlocks(tiles, [outputs for _, outputs in groups], x)

        return at


class SparseEvaluator(Evaluator):
    """The field, one group of outputs with equal inputs after the other."""

    def __init__(self, kernel: SparseKernel, nodes: Any, coefficients: Any) -> None:
        self._kernel = kernel.kernel
        self._parts = []
        for own, outputs in distinct(kernel.inputs):
            places = taken(nodes, own)
            chosen = coefficients[:, _backend.index(outputs, coefficients)]
            self._parts.append((own, outputs, places, chosen, self._kernel.bind(places)))

    def __call__(self, x: Any) -> Any:
        """Return f(x), (n, d). Cost O(n m sum_i |S_i|)."""
        value = _backend.namespace(x).empty_like(x)
        for own, outputs, _, chosen, at in self._parts:
            index = _backend.index(outputs, x)
            value[:, index] = evaluate(at, taken(x, own), chosen)
        return value

    def jacobian(self, x: Any) -> Any:
        """Return the dense Jacobian, (n, d, d)."""
        xp = _backend.namespace(x)
        n, d = x.shape
        value = xp.zeros((n, d, d), dtype=x.dtype, device=_backend.device(x))
        for own, outputs, places, chosen, _ in self._parts:
            part = self._kernel.derivative(taken(x, own), places, chosen)
            for k, i in enumerate(outputs):
                for m, j in enumerate(own):
                    value[:, int(i), j] = part[:, k, m]
        return value

    def sparse_jacobian(self, x: Any) -> list[sp.csr_array]:
        """Return the Jacobian at each point, (d, d) sparse. Cost and memory linear in d."""
        n, d = x.shape
        rows, columns, entries = [], [], []
        for own, outputs, places, chosen, _ in self._parts:
            part = self._kernel.derivative(taken(x, own), places, chosen)
            rows.append(np.repeat(outputs, len(own)))
            columns.append(np.tile(np.array(own, dtype=np.int64), len(outputs)))
            flat = _backend.to_numpy(part).reshape(n, -1)
            entries.append(flat[:, : len(own) * len(outputs)])  # none of an output without inputs
        return assembled(rows, columns, entries, d)


class SparseBlocks(Blocks):
    """Tiles of a diagonal kernel."""

    def __init__(self, tiles: list[Tile], outputs: list[np.ndarray], like: Any) -> None:
        self._tiles, self._outputs, self._like = tiles, outputs, like

    def tile(self, rows: slice, columns: slice) -> Any:
        """Return the tile, (d, d, rows, columns)."""
        scalars = [tile(rows, columns) for tile in self._tiles]
        xp, d = _backend.namespace(self._like), self._like.shape[1]
        options = {"dtype": self._like.dtype, "device": _backend.device(self._like)}
        value = xp.zeros((d, d, *scalars[0].shape), **options)
        for scalar, outputs in zip(scalars, self._outputs, strict=True):
            for i in outputs:
                value[int(i), int(i), ...] = scalar
        return value

    def product(self, rows: slice, columns: slice, right: Any) -> Any:
        """Return sum_j k_i(x, y_j) right_ji."""
        value = None
        for tile, outputs in zip(self._tiles, self._outputs, strict=True):
            index = _backend.index(outputs, right)
            part = tile(rows, columns) @ right[:, index]
            if value is None:
                xp = _backend.namespace(right)
                value = xp.zeros((part.shape[0], right.shape[1]), dtype=right.dtype)
            value[:, index] = part
        return value

    def products(self, rows: slice, columns: slice, right: Any, left: Any) -> tuple[Any, Any]:
        """Return `product` and its transpose on ``left``."""
        xp = _backend.namespace(right)
        forward, back = xp.zeros_like(left), xp.zeros_like(right)
        for tile, outputs in zip(self._tiles, self._outputs, strict=True):
            index = _backend.index(outputs, right)
            scalar = tile(rows, columns)
            forward[:, index] = scalar @ right[:, index]
            back[:, index] = scalar.T @ left[:, index]
        return forward, back


def taken(x: Any, own: tuple[int, ...]) -> Any:
    """Return x[:, own], (n, |own|); a column of zeros where there are no inputs."""
    if len(own) == 0:
        return _backend.namespace(x).zeros_like(x[:, :1])
    return x[:, _backend.index(np.array(own), x)]


def typical(inputs: Inputs) -> np.ndarray:
    """Return the inputs of the output with the median number of them."""
    counts = np.array([len(own) for own in inputs])
    order = np.argsort(counts, kind="stable")
    own = inputs[int(order[len(order) // 2])]
    return np.array(own if own else (0,), dtype=np.int64)


def check_count(inputs: Inputs, x: Any) -> None:
    """Raise ValueError unless points have as many coordinates as there are outputs."""
    if x.shape[1] != len(inputs):
        raise ValueError(
            f"inputs are those of {len(inputs)} outputs but the states have {x.shape[1]} features"
        )


def assembled(
    rows: list[np.ndarray], columns: list[np.ndarray], entries: list[np.ndarray], d: int
) -> list[sp.csr_array]:
    """Return one (d, d) matrix for each row of the entries (n, nnz)."""
    i, j = np.concatenate(rows), np.concatenate(columns)
    values = np.concatenate(entries, axis=1)
    return [sp.csr_array(sp.coo_array((own, (i, j)), shape=(d, d))) for own in values]
