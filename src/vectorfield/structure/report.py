"""`Dependencies`: the inputs of every output, with what speaks for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from vectorfield.kernels.inputs import Inputs, inputs_of, matrix_of
from vectorfield.occupation import Rule
from vectorfield.structure.selection import Chosen
from vectorfield.structure.stopping import improvements
from vectorfield.trajectories import Trajectories

__all__ = ["Dependencies", "Edge", "collected"]

BOOTSTRAPS = 200


class Edge(NamedTuple):
    """Output and input by name, the input's score, share and stability; see `Dependencies`."""

    output: str
    input: str
    score: float
    share: float
    stability: float


@dataclass(frozen=True, eq=False, repr=False)
class Dependencies:
    """Which coordinates each dx_i/dt depends on: a sparse boolean matrix, output by input.

    Attributes:
        matrix: (d, d) boolean, SciPy sparse; [i, j] where x_j is an input of f_i.
        scores: (d, d) sparse, for each edge the standard errors by which held-out errors are
            larger without it.
        shares: (d, d) sparse, the share of the held-out error without an edge that it explains,
            between 0 and 1.
        stability: (d, d) sparse, the share of resamples in which the edge is kept: of resampled
            held-out errors, or of searches on half of the data where `Structure` asks for them.
        errors: (d,) held-out error of each output, relative to that of a constant.
        levels: (d,) richness of the basis that held-out errors asked for: 0 for quadratic
            functions, 1 for cubic ones, 2 for higher orders.
        rule: the rule of quadrature; None where the structure was given.
        feature_names: d names.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 2.0, 41)
        >>> data = vf.Trajectories.from_arrays([np.exp(-t)[:, None] * [[1.0, 2.0]]], t)
        >>> vf.Structure(known=np.eye(2))(data)
        Dependencies(d=2, edges=2, inputs 1 to 1)
    """

    matrix: sp.csr_array
    scores: sp.csr_array
    shares: sp.csr_array
    stability: sp.csr_array
    errors: np.ndarray
    levels: np.ndarray
    rule: Rule | None
    feature_names: tuple[str, ...]

    @classmethod
    def given(cls, inputs: Inputs, trajectories: Trajectories) -> Dependencies:
        """Return what is known without a search: scores and shares are NaN."""
        matrix = matrix_of(inputs)
        unknown = sp.csr_array(
            (np.full(matrix.nnz, np.nan), matrix.indices, matrix.indptr), shape=matrix.shape
        )
        errors = np.full(len(inputs), np.nan)
        levels = np.full(len(inputs), -1)
        names = trajectories.feature_names
        return cls(matrix, unknown, unknown, unknown, errors, levels, None, names)

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return len(self.feature_names)

    @property
    def inputs(self) -> Inputs:
        """The indices of each output's inputs, for `SparseKernel` and `SparseFeatures`."""
        return inputs_of(self.matrix)

    def edges(self) -> list[Edge]:
        """Return all edges, output by output, each output's strongest input first."""
        names, found = self.feature_names, []
        for i, own in enumerate(self.inputs):
            rows = [
                Edge(
                    names[i],
                    names[j],
                    float(self.scores[i, j]),
                    float(self.shares[i, j]),
                    float(self.stability[i, j]),
                )
                for j in own
            ]
            found += sorted(rows, key=lambda edge: -np.nan_to_num(edge.share))
        return found

    def stencil(self, shape: Sequence[int] | None = None) -> dict[tuple[int, ...], float]:
        """Return how often each offset from output to input occurs on a ring, torus or grid.

        ``shape`` is that of the grid, (d,) by default, coordinates in row-major order; offsets
        are modulo the shape, from -n / 2 to n / 2, and come with the share of outputs that have
        them, the most frequent first. A local law has few offsets, with shares near 1.

        >>> import numpy as np, vectorfield as vf
        >>> ring = np.eye(5) + np.roll(np.eye(5), 1, axis=1)
        >>> data = vf.Trajectories.from_arrays([np.ones((3, 5))], 1.0)
        >>> vf.Structure(known=ring)(data).stencil()
        {(0,): 1.0, (1,): 1.0}
        """
        sizes = (self.d,) if shape is None else tuple(int(n) for n in shape)
        if int(np.prod(sizes)) != self.d:
            raise ValueError(f"shape {sizes} is not that of {self.d} coordinates")
        rows, columns = self.matrix.nonzero()
        steps = np.array(np.unravel_index(columns, sizes)) - np.array(np.unravel_index(rows, sizes))
        extent = np.array(sizes)[:, None]
        steps = (steps + (extent - 1) // 2) % extent - (extent - 1) // 2
        offsets, counts = np.unique(steps.T, axis=0, return_counts=True)
        order = np.lexsort((*offsets.T[::-1], -counts))
        return {tuple(offsets[k].tolist()): float(counts[k]) / self.d for k in order}

    def summary(self, most: int = 20) -> str:
        """Return a table of at most so many edges, in words and figures."""
        counts = np.diff(self.matrix.indptr)
        lines = [
            f"{self.d} outputs, {self.matrix.nnz} edges, {counts.min()} to {counts.max()} inputs; "
            f"held-out error {np.nanmedian(self.errors):.1e} of a constant's (median)"
            if np.isfinite(self.errors).any()
            else f"{self.d} outputs, {self.matrix.nnz} edges, given"
        ]
        edges = self.edges()
        lines += [
            f"  {edge.output} <- {edge.input}  score {edge.score:.1f}  share {edge.share:.2f}  "
            f"stability {edge.stability:.2f}"
            for edge in edges[:most]
        ]
        if len(edges) > most:
            lines.append(f"  and {len(edges) - most} more")
        return "\n".join(lines)

    def __repr__(self) -> str:
        counts = np.diff(self.matrix.indptr)
        extent = f"inputs {counts.min()} to {counts.max()}"
        return f"Dependencies(d={self.d}, edges={self.matrix.nnz}, {extent})"


def collected(
    chosen: list[Chosen],
    feature_names: tuple[str, ...],
    rule: Rule,
    frequency: np.ndarray | None,
    random_state: int,
) -> Dependencies:
    """Join the inputs of all outputs to one value."""
    d = len(feature_names)
    rows, columns, scores, shares, stable = [], [], [], [], []
    rng = np.random.default_rng(random_state)
    for one in chosen:
        sums = one.model.sums
        draws = rng.integers(len(sums), size=(BOOTSTRAPS, len(sums)))
        for gain, j in zip(one.gains, one.model.inputs, strict=True):
            without = sums + gain
            rows.append(one.model.output)
            columns.append(j)
            scores.append(min(float(improvements(without, sums)), 1e6))
            shares.append(float(gain.sum() / max(float(without.sum()), 1e-300)))
            if frequency is not None:
                stable.append(float(frequency[one.model.output, j]))
                continue
            stable.append(float(np.mean(improvements(without[draws], sums[draws]) > one.needed)))
    places = np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64)

    def table(values: list[float]) -> sp.csr_array:
        result = sp.csr_array(sp.coo_array((np.array(values, dtype=float), places), shape=(d, d)))
        result.sort_indices()
        return result

    names = {one.model.output: one for one in chosen}
    order = [names[i] for i in range(d)]
    null = np.array([one.null for one in order])
    totals = np.array([one.model.total for one in order])
    return Dependencies(
        matrix_of(inputs_of(sp.coo_array((np.ones(len(rows)), places), shape=(d, d)))),
        table(scores),
        table(shares),
        table(stable),
        totals / np.where(null > 0, null, 1.0),
        np.array([one.model.level for one in order]),
        rule,
        feature_names,
    )
