"""Assembly by tiles equals W G W^T, whatever the rule, the kernel and the shape of W."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from vectorfield._backend import machine
from vectorfield.kernels import Constant, Gaussian, Laplace, Linear, Matern
from vectorfield.linalg import assemble, gram
from vectorfield.occupation import (
    CentralDifference,
    ForwardDifference,
    Lagrange,
    Spline,
    Trapezoid,
    WeakForm,
    Windows,
)

RULES = [
    Trapezoid(),
    Lagrange(6),
    Spline(1),
    Spline(4),
    Windows(samples=9, stride=1),
    Windows(samples=30, rule=Spline(2), stride=11),
    WeakForm(),
    ForwardDifference(),
    CentralDifference(),
]


def check(kernel, nodes, weights) -> None:
    assembly = assemble(kernel, nodes, weights)
    dense = weights.toarray()
    expected = dense @ kernel(nodes) @ dense.T
    size = np.abs(dense) @ np.abs(kernel(nodes)) @ np.abs(dense).T
    assert assembly.matrix.shape == expected.shape
    assert (np.abs(assembly.matrix - expected) <= 1e-12 * size.max()).all()
    assert set(assembly.seconds) == {"gram", "quadrature"}
    assert all(seconds >= 0 for seconds in assembly.seconds.values())


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_every_rule_in_one_tile(rule, make_kernel, irregular):
    occupations = rule(irregular(2))
    check(make_kernel(2), occupations.nodes, occupations.weights)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_every_rule_in_many_tiles(rule, irregular, monkeypatch):
    monkeypatch.setattr(gram, "TILE", 40)
    occupations = rule(irregular(2, (30, 3, 70, 2, 2, 55)))
    check(Matern(1.5, 2.0) + Linear(), occupations.nodes, occupations.weights)


def test_both_triangles_agree(irregular):
    occupations = Lagrange(4)(irregular(3, (250, 300)))
    matrix = assemble(Laplace(1.0), occupations.nodes, occupations.weights).matrix
    assert len(matrix) > gram.TILE  # several tiles
    np.testing.assert_allclose(matrix, matrix.T, rtol=0, atol=1e-13 * np.abs(matrix).max())
    assert np.linalg.eigvalsh(matrix)[0] > -1e-10 * np.abs(matrix).max()


def test_the_result_repeats_bit_for_bit(irregular):
    occupations = Trapezoid()(irregular(3, (250, 300)))
    once, again = (
        assemble(Gaussian(1.0), occupations.nodes, occupations.weights).matrix for _ in range(2)
    )
    np.testing.assert_array_equal(once, again)


def test_any_sparse_weights():
    """Rows that touch far and no nodes: the library's rules are banded, the algebra need not be."""
    rng = np.random.default_rng(0)
    nodes = rng.normal(size=(900, 2))
    dense = rng.normal(size=(70, 900)) * (rng.uniform(size=(70, 900)) < 0.01)
    dense[5] = 0.0
    dense[69] = 0.0
    check(Gaussian(0.7), nodes, sp.csr_array(dense))
    check(Gaussian(0.7), nodes[:1], sp.csr_array(np.array([[2.0], [0.0], [1.0]])))


def test_nodes_that_no_row_touches():
    nodes = np.random.default_rng(0).normal(size=(6, 1))
    weights = sp.csr_array(np.array([[0.0, 0.0, 1.0, 0.0, 0.0, 0.0]]))
    matrix = assemble(Constant(2.0), nodes, weights).matrix
    np.testing.assert_array_equal(matrix, [[2.0]])


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_torch_agrees(rule, irregular):
    torch = pytest.importorskip("torch")
    occupations = rule(irregular(2, (40, 3, 70)))
    kernel = Gaussian(0.8) + Laplace(1.0)
    expected = assemble(kernel, occupations.nodes, occupations.weights).matrix
    got = assemble(kernel, torch.tensor(occupations.nodes), occupations.weights).matrix
    assert isinstance(got, torch.Tensor)
    np.testing.assert_allclose(got.numpy(), expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_a_matrix_beyond_the_memory_is_refused_at_once(monkeypatch):
    monkeypatch.setattr(machine, "_available_memory", lambda: 2**20)
    weights = sp.csr_array(sp.eye_array(400, format="csr"))
    with pytest.raises(MemoryError, match=r"400 observations needs .* fewer trajectories"):
        assemble(Gaussian(1.0), np.zeros((400, 1)), weights)
    assert assemble(Gaussian(1.0), np.zeros((300, 1)), weights[:300, :300]) is not None
