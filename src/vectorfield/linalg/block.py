"""Kernels that couple the outputs, exactly: the Gram matrix of all coordinates at once."""

from __future__ import annotations

import copy
from dataclasses import replace
from time import perf_counter
from typing import Any

import scipy.sparse as sp

from vectorfield import _backend
from vectorfield._progress import report
from vectorfield.kernels.operators import ImplicitKernel
from vectorfield.linalg.dense import Dense, DenseSystem
from vectorfield.linalg.gram import TILE, Assembly, node_strips
from vectorfield.linalg.regression import Problem, Regression, expand
from vectorfield.occupation import Occupations

__all__ = ["BlockProblem", "assemble_blocks", "by_coordinate", "by_observation"]


def by_coordinate(y: Any) -> Any:
    """Return (S, d) as one column (S d, 1) of d blocks, coordinate after coordinate."""
    return _backend.namespace(y).reshape(y.T, (-1, 1))


def by_observation(column: Any, d: int) -> Any:
    """Return (S d, 1) as (S, d); the inverse of `by_coordinate`."""
    return _backend.namespace(column).reshape(column, (d, -1)).T


def assemble_blocks(kernel: ImplicitKernel, nodes: Any, weights: sp.csr_array) -> Assembly:
    """Return M, (S d, S d), with entry (a S + s, b S + t) = (W G_ab W^T)_st.

    ``nodes`` is (Q, d), ``weights`` W (S, Q), G_ab entry (a, b) of K on all pairs of nodes.
    Cost O(Q^2 d^2), half of it thanks to symmetry; memory (S d)^2 and a tile for each core.
    """
    xp = _backend.namespace(nodes)
    count, d = weights.shape[0], nodes.shape[1]
    if _backend.is_numpy(nodes):
        _backend.check_memory(
            (count * d) ** 2,
            f"the dense fit of {count:,} observations in {d} coupled coordinates",
            "use vf.linalg.ConjugateGradient(), which never forms the matrix",
        )
    matrix = xp.empty((count * d, count * d), dtype=nodes.dtype, device=_backend.device(nodes))
    blocked = xp.reshape(matrix, (d, count, d, count))  # a view
    blocks = kernel.blocks(nodes)(nodes)
    strips = node_strips(weights, max(16, TILE // d))
    finished: list[int] = []
    total = len(strips) * (len(strips) + 1) // 2

    def work(index: int) -> tuple[float, float]:
        kernel_time = quadrature_time = 0.0
        left = strips[index]
        for right in strips[index:]:
            start = perf_counter()
            tile = blocks.tile(left.nodes, right.nodes)
            middle = perf_counter()
            for a in range(d):
                for b in range(d):
                    half = _backend.sparse_apply(left.weights, tile[a, b, :, :]).T
                    value = _backend.sparse_apply(right.weights, half)
                    blocked[b, right.rows, a, left.rows] = value
                    blocked[a, left.rows, b, right.rows] = value.T
            kernel_time += middle - start
            quadrature_time += perf_counter() - middle
        finished.append(len(strips) - index)
        report("Gram matrix", sum(finished) / total)
        return kernel_time, quadrature_time

    start = perf_counter()
    if _backend.is_numpy(nodes):
        times = _backend.run_parallel(work, range(len(strips)))
    else:
        times = [work(index) for index in range(len(strips))]
    return Assembly.shared(matrix, perf_counter() - start, times)


class BlockProblem(Problem):
    """(M + shift I kron Sigma) a = y in all coordinates at once, by a dense factor."""

    def __init__(
        self,
        kernel: ImplicitKernel,
        occupations: Occupations,
        covariance: sp.csr_array,
        solver: Dense,
    ) -> None:
        self._kernel, self._occupations, self._solver = kernel, occupations, solver
        assembly = assemble_blocks(kernel, occupations.nodes, occupations.weights)
        self._seconds = assembly.seconds
        noise = self._in_all_coordinates(covariance)
        self._system = DenseSystem(assembly.matrix, noise, count=len(occupations), rows="unknowns")

    def reweighted(self, covariance: sp.csr_array) -> BlockProblem:
        """Return the problem with another Sigma and the same Gram matrix."""
        other = copy.copy(self)
        other._system = self._system.with_covariance(self._in_all_coordinates(covariance))
        return other

    def _in_all_coordinates(self, covariance: sp.csr_array) -> sp.csr_array:
        return sp.csr_array(sp.kron(sp.eye_array(self._occupations.d), covariance, format="csr"))

    def solve(self, ridge: float) -> Regression:
        """Factor for this ridge. Cost (S d)^3 / 3."""
        y = self._occupations.targets
        shift = ridge * len(self._occupations)
        factor = self._system.factor(shift, self._solver.precision)
        solution = factor.solve(by_coordinate(y))
        solution.seconds.update(self._seconds)
        if solution.value is None:
            return Regression.failed(solution)
        a = by_observation(solution.value, y.shape[1])
        residuals = by_observation(shift * self._system.covary(solution.value), y.shape[1])
        solution = replace(solution, value=a)
        return expand(self._kernel, self._occupations, residuals, solution)
