"""Products with the Gram matrix of coupled outputs against the matrix itself."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from vectorfield.kernels import CurlFree, DivergenceFree, Equivariant, Gaussian, Matern, Reflection
from vectorfield.kernels.tiles import row_blocks
from vectorfield.linalg import Gramian, assemble_blocks, gramian
from vectorfield.occupation import (
    CentralDifference,
    ForwardDifference,
    Lagrange,
    SnapshotNoise,
    Spline,
    Trapezoid,
    WeakForm,
    White,
    Windows,
)

RULES = [
    Trapezoid(),
    Lagrange(6),
    Spline(4),
    Windows(samples=5, stride=1),
    Windows(samples=30, rule=Spline(2), stride=11),
    WeakForm(),
    ForwardDifference(),
    CentralDifference(),
]
HELMHOLTZ = DivergenceFree(Gaussian(1.5)) + 0.5 * CurlFree(Matern(2.5, 1.0))


def agree(got, expected, relative=1e-11) -> None:
    np.testing.assert_allclose(got, expected, rtol=0, atol=relative * np.abs(expected).max())


@pytest.fixture(params=["one-tile", "many-tiles"])
def tiles(request, monkeypatch):
    """Every loop over tiles as it is, or in steps of 7."""
    if request.param == "many-tiles":
        monkeypatch.setattr(gramian, "row_blocks", lambda n, size: row_blocks(n, min(size, 7)))


def check_products(operator, m) -> None:
    count, d = m.shape[:2]
    sigma = operator.covariance.toarray()
    a = np.random.default_rng(5).normal(size=(count, d))
    a.flags.writeable = False
    expected = np.einsum("satb,tb->sa", m, a)
    assert len(operator) == count
    assert operator.d == d
    agree(operator.product(a), expected)
    agree(operator.product(a, 0.3), expected + 0.3 * sigma @ a)


def check_corners(operator, m) -> None:
    count, d = m.shape[:2]
    cuts = [(0, count), (0, 1), (count - 1, count), (count // 3, count // 2 + 1)]
    for rows in (slice(*cut) for cut in cuts):
        size = (rows.stop - rows.start) * d
        expected = m[rows][:, :, rows].reshape(size, size)
        np.testing.assert_allclose(
            operator.corner(rows), expected, rtol=0, atol=1e-11 * np.abs(m).max()
        )


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.usefixtures("tiles")
def test_every_rule(rule, irregular, definition):
    occupations = rule(irregular(2, (20, 3, 31, 2)))
    covariance = SnapshotNoise().covariance(occupations)
    operator = Gramian(HELMHOLTZ, occupations.nodes, occupations.weights, covariance)
    m = definition(HELMHOLTZ, occupations.nodes, occupations.weights)
    check_products(operator, m)
    check_corners(operator, m)
    columns = operator.columns(occupations.nodes)
    every = sp.csr_array(sp.eye_array(len(occupations.nodes), format="csr"))
    g = definition(HELMHOLTZ, occupations.nodes, every)
    expected = np.tensordot(occupations.weights.toarray(), g, axes=1)
    agree(columns, expected.reshape(columns.shape))


@pytest.mark.parametrize("noise", [White(), SnapshotNoise()], ids=repr)
@pytest.mark.usefixtures("tiles")
def test_every_kernel(coupled, noise, irregular, definition):
    occupations = Lagrange(4)(irregular(coupled.d))
    nodes, weights = occupations.nodes, occupations.weights
    operator = Gramian(coupled.kernel, nodes, weights, noise.covariance(occupations))
    m = definition(coupled.kernel, nodes, weights)
    check_products(operator, m)
    check_corners(operator, m)
    centres = np.random.default_rng(2).normal(size=(9, coupled.d))
    columns = operator.columns(centres)
    assert columns.shape == (len(weights.indptr[1:]) * coupled.d, 9 * coupled.d)
    for j in range(9):
        for b in range(coupled.d):
            unit = np.eye(coupled.d)[b : b + 1]
            field = coupled.kernel.bind(centres[j : j + 1], unit)(nodes)
            agree(columns[:, j * coupled.d + b], (weights @ field).reshape(-1), 1e-10)


@pytest.mark.usefixtures("tiles")
def test_the_same_as_the_dense_matrix(coupled, irregular):
    """Unit vectors give its columns, which are symmetric and positive semi-definite."""
    occupations = Trapezoid()(irregular(coupled.d))
    count, d = occupations.targets.shape
    white = White().covariance(occupations)
    operator = Gramian(coupled.kernel, occupations.nodes, occupations.weights, white)
    units = np.eye(count * d).reshape(-1, count, d)
    got = np.stack([operator.product(unit).reshape(-1) for unit in units], axis=1)
    matrix = assemble_blocks(coupled.kernel, occupations.nodes, occupations.weights).matrix
    by_observation = matrix.reshape(d, count, d, count).transpose(1, 0, 3, 2)
    agree(got, by_observation.reshape(got.shape), 1e-12)
    agree(got, got.T, 1e-13)
    assert np.linalg.eigvalsh(got)[0] > -1e-12 * np.abs(got).max()


@pytest.mark.usefixtures("tiles")
def test_any_sparse_weights(coupled, definition):
    """Rows that touch far and no nodes, as `assemble` allows them."""
    rng = np.random.default_rng(0)
    nodes = rng.normal(size=(40, coupled.d))
    dense = rng.normal(size=(9, 40)) * (rng.uniform(size=(9, 40)) < 0.1)
    dense[3] = dense[8] = 0.0
    weights = sp.csr_array(dense)
    identity = sp.csr_array(sp.eye_array(9, format="csr"))
    operator = Gramian(coupled.kernel, nodes, weights, identity)
    m = definition(coupled.kernel, nodes, weights)
    check_products(operator, m)
    check_corners(operator, m)
    np.testing.assert_array_equal(operator.corner(slice(8, 9)), 0.0 * np.eye(coupled.d))
    columns = operator.columns(nodes[:3])
    assert columns.shape == (9 * coupled.d, 3 * coupled.d)
    np.testing.assert_array_equal(columns[-coupled.d :], 0.0)


def test_more_nodes_than_a_tile(irregular):
    """The tile sizes as they are: two strips for products, several parts for columns."""
    kernel = Equivariant(Matern(1.5, 2.0), Reflection())
    occupations = Trapezoid()(irregular(1, (400, 2, 250)))
    assert len(occupations.nodes) > gramian.TILE
    white = White().covariance(occupations)
    operator = Gramian(kernel, occupations.nodes, occupations.weights, white)
    matrix = assemble_blocks(kernel, occupations.nodes, occupations.weights).matrix
    a = np.random.default_rng(0).normal(size=(len(operator), 1))
    agree(operator.product(a, 2.0), matrix @ a + 2.0 * a)
    once, again = operator.product(a), operator.product(a)
    np.testing.assert_array_equal(once, again)
    # kernel columns gathered by W on the other side too are M
    gathered = operator.columns(occupations.nodes) @ occupations.weights.T.toarray()
    agree(gathered, matrix)


@pytest.mark.usefixtures("tiles")
def test_torch_agrees(coupled, irregular):
    torch = pytest.importorskip("torch")
    occupations = Lagrange(4)(irregular(coupled.d))
    covariance = SnapshotNoise().covariance(occupations)
    nodes, weights = occupations.nodes, occupations.weights
    one = Gramian(coupled.kernel, nodes, weights, covariance)
    other = Gramian(coupled.kernel, torch.tensor(nodes), weights, covariance)
    a = np.random.default_rng(5).normal(size=(len(one), coupled.d))
    centres, rows = np.array(nodes[::3]), slice(2, 9)
    pairs = [
        (other.product(torch.tensor(a), 0.7), one.product(a, 0.7)),
        (other.corner(rows), one.corner(rows)),
        (other.columns(torch.tensor(centres)), one.columns(centres)),
    ]
    for got, expected in pairs:
        assert isinstance(got, torch.Tensor)
        agree(got.numpy(), expected, 1e-12)
