"""Kernels that couple the outputs, and their Gram matrix of observations from the definition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

from vectorfield.kernels import (
    CurlFree,
    CyclicShifts,
    DivergenceFree,
    Equivariant,
    Gaussian,
    Gradient,
    Hamiltonian,
    Matern,
    RationalQuadratic,
    Reflection,
    Separable,
    SignedPermutations,
)
from vectorfield.kernels.operators import ImplicitKernel


class Coupled(NamedTuple):
    """A kernel and the number of coordinates that it is tried in."""

    kernel: ImplicitKernel
    d: int


COUPLED = {
    "divergence-free": Coupled(DivergenceFree(Gaussian((0.9, 1.4, 1.1))), 3),
    "curl-free": Coupled(CurlFree(Matern(3.5, 0.8)), 2),
    "gradient": Coupled(Gradient(Gaussian(1.2), [[2.0, 0.5], [0.5, 1.0]]), 2),
    "hamiltonian": Coupled(Hamiltonian(RationalQuadratic(1.5, 1.3)), 4),
    "sum": Coupled(DivergenceFree(Gaussian(1.0)) + 0.3 * CurlFree(Matern(2.5, 1.2)), 2),
    "matrix": Coupled(Separable(Matern(1.5, 0.8), [[2.0, 0.6, 0], [0.6, 1, 0], [0, 0, 0.5]]), 3),
    "ring": Coupled(Equivariant(Matern(2.5, 1.1), CyclicShifts()), 3),
    "quarter": Coupled(Equivariant(DivergenceFree(Gaussian(1)), SignedPermutations([(-2, 1)])), 2),
    "odd": Coupled(Equivariant(Matern(1.5, 0.9), Reflection()), 1),
}


@pytest.fixture(params=COUPLED)
def coupled(request: pytest.FixtureRequest) -> Coupled:
    """One kernel of each kind."""
    return COUPLED[request.param]


@pytest.fixture
def definition() -> Callable[[ImplicitKernel, np.ndarray, sp.csr_array], np.ndarray]:
    """Return M, (S, d, S, d), for a kernel, nodes and W; the field of one node is a column."""
    return _definition


def _definition(kernel: ImplicitKernel, nodes: Any, weights: sp.csr_array) -> np.ndarray:
    q, d = nodes.shape
    values = np.empty((q, d, q, d))
    for j in range(q):
        for b in range(d):
            values[:, :, j, b] = kernel.bind(nodes[j : j + 1], np.eye(d)[b : b + 1])(nodes)
    dense = weights.toarray()
    half = np.tensordot(dense, values, axes=(1, 0))  # (s, a, j, b)
    return np.moveaxis(np.tensordot(half, dense, axes=(2, 1)), 3, 2)
