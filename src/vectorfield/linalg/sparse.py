"""Sparse kernels: a small system for each distinct set of inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from vectorfield import _backend
from vectorfield._progress import report
from vectorfield.kernels.expansion import FeatureExpansion
from vectorfield.kernels.inputs import distinct
from vectorfield.kernels.sparse import SparseKernel, taken
from vectorfield.kernels.sparse_features import SparseFeatures
from vectorfield.linalg.dense import Dense, DenseSystem
from vectorfield.linalg.gram import assemble
from vectorfield.linalg.normal import Normal
from vectorfield.linalg.regression import Problem, Regression, expand, prepare
from vectorfield.linalg.solution import Solution
from vectorfield.linalg.solver import Solver, chosen
from vectorfield.linalg.whitening import Whitener
from vectorfield.occupation import Occupations

__all__ = ["SparseFeatureProblem", "SparseProblem"]


class SparseProblem(Problem):
    """(M_i + shift Sigma) a_i = y_i with M_i = W k(z[S_i], z[S_i]) W^T, for each set of inputs.

    Cost S^3 / 3 and the assembly of one Gram matrix for each distinct set, of which one is in
    memory at a time; a path of ridges shares the Gram matrices.
    """

    def __init__(
        self,
        kernel: SparseKernel,
        occupations: Occupations,
        covariance: sp.csr_array,
        solver: Dense,
    ) -> None:
        self._kernel, self._occupations = kernel, occupations
        self._covariance, self._solver = covariance, solver

    def solve(self, ridge: float) -> Regression:
        """Factor every system for this ridge."""
        return next(self.path([ridge]))

    def path(self, ridges: Iterable[float]) -> Iterator[Regression]:
        """Solve for many ridges, set of inputs by set of inputs."""
        y = self._occupations.targets
        xp = _backend.namespace(y)
        shifts = [ridge * len(self._occupations) for ridge in ridges]
        values = [xp.empty_like(y) for _ in shifts]
        worst: list[Solution | None] = [None] * len(shifts)
        groups = distinct(self._kernel.inputs)
        for done, (own, outputs) in enumerate(groups):
            nodes = taken(self._occupations.nodes, own)
            assembly = assemble(self._kernel.kernel, nodes, self._occupations.weights)
            system = DenseSystem(assembly.matrix, self._covariance)
            index = _backend.index(outputs, y)
            for k, shift in enumerate(shifts):
                factor = system.factor(shift, self._solver.precision, len(outputs))
                solution = factor.solve(y[:, index])
                if solution.value is not None:
                    values[k][:, index] = solution.value
                worst[k] = _worse(worst[k], solution)
            report("sparse systems", (done + 1) / len(groups))
        for shift, value, outcome in zip(shifts, values, worst, strict=True):
            solution = _solved(outcome)
            if solution.value is None:
                yield Regression.failed(solution)
                continue
            residuals = shift * _backend.sparse_apply(self._covariance, value)
            whole = replace(solution, value=value)
            yield expand(self._kernel, self._occupations, residuals, whole)


class SparseFeatureProblem(Problem):
    """(B_i^T Sigma^-1 B_i + shift I) c_i = B_i^T Sigma^-1 y_i with B_i = W phi(z[S_i]).

    Cost N q^2 once and q^3 / 3 for each ridge, for each distinct set of inputs; memory q^2 for each
    and N q at work.
    """

    def __init__(
        self,
        kernel: SparseFeatures,
        occupations: Occupations,
        covariance: sp.csr_array,
        solver: Normal,
    ) -> None:
        self._kernel, self._occupations, self._solver = kernel, occupations, solver
        start = perf_counter()
        self._map = kernel.bind(occupations.nodes)
        self._whitener = Whitener(covariance)
        self._targets = self._whitener.forward(occupations.targets)
        self._places: dict[int, tuple[int, int]] = {}  # output: group, row
        for k, group in enumerate(self._map.groups):
            self._places |= {int(i): (k, row) for row, i in enumerate(group.outputs)}
        self._sets = distinct(kernel.inputs)
        self._systems = _backend.run_parallel(self._system, self._sets)
        self._seconds = {"products": perf_counter() - start}

    def solve(self, ridge: float) -> Regression:
        """Factor every system for this ridge."""
        shift = ridge * len(self._occupations)
        start = perf_counter()

        def work(item: tuple[DenseSystem, Any]) -> Solution:
            system, right = item
            return system.factor(shift, self._solver.precision, right.shape[1]).solve(right)

        solutions = _backend.run_parallel(work, self._systems)
        y = self._occupations.targets
        xp = _backend.namespace(y)
        worst: Solution | None = None
        parts = [
            xp.empty((len(group.outputs), group.features.q), dtype=y.dtype)
            for group in self._map.groups
        ]
        for (_, outputs), solution in zip(self._sets, solutions, strict=True):
            worst = _worse(worst, solution)
            if solution.value is None:
                continue
            for column, i in enumerate(outputs):
                k, row = self._places[int(i)]
                parts[k][row, :] = solution.value[:, column]
        if worst is None or worst.value is None:
            return Regression.failed(_solved(worst))
        coefficients = xp.concat([xp.reshape(part, (-1,)) for part in parts], axis=0)
        expansion = FeatureExpansion(self._kernel, self._map, coefficients)
        nodes = self._occupations.nodes
        residuals = y - _backend.sparse_apply(self._occupations.weights, expansion(nodes))
        seconds = self._seconds | {"solve": perf_counter() - start}
        solution = replace(worst, value=coefficients[:, None], seconds=seconds)
        norm = float(xp.sqrt(xp.sum(coefficients * coefficients)))
        return Regression(expansion, residuals, norm, solution)

    def _system(self, item: tuple[tuple[int, ...], np.ndarray]) -> tuple[DenseSystem, Any]:
        own, outputs = item
        features = self._map.groups[self._places[int(outputs[0])][0]].features
        phi = features(taken(self._occupations.nodes, own))
        white = self._whitener.forward(_backend.sparse_apply(self._occupations.weights, phi))
        right = white.T @ self._targets[:, _backend.index(outputs, white)]
        identity = sp.csr_array(sp.eye_array(features.q, format="csr"))
        count = len(self._occupations)
        return DenseSystem(white.T @ white, identity, count=count, rows="features"), right


def _worse(one: Solution | None, other: Solution) -> Solution:
    """Return the solution that has no value, or is not to be used, or has the larger residual."""
    if one is None:
        return other
    key = [(s.value is None, not s.status.ok, s.residual) for s in (one, other)]
    return other if key[1] > key[0] else one


def _solved(solution: Solution | None) -> Solution:
    if solution is None:
        raise ValueError("a sparse kernel has at least one output")
    return solution


@prepare.register
def _(
    kernel: SparseKernel,
    occupations: Occupations,
    *,
    covariance: sp.csr_array,
    solver: Solver | None = None,
) -> Problem:
    return SparseProblem(kernel, occupations, covariance, chosen(solver, Dense(), kernel))


@prepare.register
def _(
    kernel: SparseFeatures,
    occupations: Occupations,
    *,
    covariance: sp.csr_array,
    solver: Solver | None = None,
) -> Problem:
    return SparseFeatureProblem(kernel, occupations, covariance, chosen(solver, Normal(), kernel))
