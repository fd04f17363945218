"""Separable kernels k(x, y) A: fields, Jacobians, and matrices that are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.base import clone

from vectorfield.kernels import Constant, Gaussian, Laplace, Linear, Matern, Separable

MATRICES = {
    "identity": None,
    "coupled": [[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.7]],
    "singular": [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 3.0]],
    "one-direction": [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [3.0, 6.0, 9.0]],
}


def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return tuple(rng.normal(size=(n, 3)) for n in (6, 8, 8))


@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)
def test_field_is_the_sum(make_kernel, formula, matrix):
    kernel = make_kernel(3)
    x, nodes, c = arrays()
    a = np.eye(3) if matrix is None else np.array(matrix)
    expected = np.zeros((6, 3))
    for i in range(6):
        for p in range(8):
            expected[i] += formula(kernel, x[i].tolist(), nodes[p].tolist()) * (a @ c[p])
    got = Separable(kernel, matrix).bind(nodes, c)(x)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)
def test_jacobian_against_differences(make_kernel, matrix):
    x, nodes, c = arrays()
    field = Separable(make_kernel(3), matrix).bind(nodes, c)
    got = field.jacobian(x)
    assert got.shape == (6, 3, 3)
    h = 1e-5
    for j in range(3):
        e = h * np.eye(3)[j]
        expected = (field(x + e) - field(x - e)) / (2 * h)
        size = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(got[:, :, j], expected, rtol=0, atol=1e-7 * size)


def test_jacobian_in_several_blocks():
    rng = np.random.default_rng(0)
    nodes, c, x = rng.normal(size=(3000, 2)), rng.normal(size=(3000, 2)), rng.normal(size=(800, 2))
    kernel = Gaussian(0.8)
    field = Separable(kernel).bind(nodes, c)
    expected = kernel.derivative(x, nodes, c)
    np.testing.assert_allclose(field.jacobian(x), expected, rtol=0, atol=1e-10)


def test_no_points():
    _, nodes, c = arrays()
    for kernel in (Gaussian(1.0), Laplace(1.0), Linear(), Constant()):
        field = Separable(kernel).bind(nodes, c)
        assert field(np.empty((0, 3))).shape == (0, 3)
        assert field.jacobian(np.empty((0, 3))).shape == (0, 3, 3)


def test_identity_and_no_matrix_are_the_same_field():
    x, nodes, c = arrays()
    one, other = Separable(Matern(2.5, 1.0)), Separable(Matern(2.5, 1.0), np.eye(3))
    np.testing.assert_allclose(one.bind(nodes, c)(x), other.bind(nodes, c)(x), rtol=1e-14)
    np.testing.assert_array_equal(one.size(nodes), other.size(nodes))


def test_size_is_the_mean_diagonal():
    _, nodes, _ = arrays()
    a = np.array(MATRICES["coupled"])
    expected = np.mean([np.diag((z @ z) * a).mean() for z in nodes])
    assert Separable(Linear(), a).size(nodes) == pytest.approx(expected, rel=1e-14)
    assert Separable(3.0 * Gaussian(1.0)).size(nodes) == pytest.approx(3.0)


def test_settings():
    kernel = Separable(Gaussian(1.0), np.array([[2, 1], [1, 2]]))
    assert kernel.matrix == ((2.0, 1.0), (1.0, 2.0))
    assert kernel == Separable(Gaussian(1), [[2.0, 1.0], [1.0, 2.0]])
    assert hash(kernel) == hash(Separable(Gaussian(1), [[2.0, 1.0], [1.0, 2.0]]))
    assert clone(kernel) is kernel
    assert kernel.replace(kernel__length_scale=3.0, matrix=None) == Separable(Gaussian(3.0))


def test_the_matrix_passed_in_stays_its_owners():
    a = np.eye(2)
    kernel = Separable(Gaussian(1.0), a)
    a[0, 0] = 5.0
    assert kernel.matrix == ((1.0, 0.0), (0.0, 1.0))


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1.0, 0.0]], r"square \(d, d\) array, got shape \(1, 2\)"),
        ([1.0, 2.0], r"square \(d, d\) array, got shape \(2,\)"),
        (2.0, r"square \(d, d\) array, got shape \(\)"),
        (np.ones((2, 2, 2)), r"got shape \(2, 2, 2\)"),
        ([[1.0, math.nan], [math.nan, 1.0]], "finite"),
        ([[math.inf]], "finite"),
        ([[10**400]], "finite"),
        ([[0.0, 0.0], [0.0, 0.0]], "matrix is zero"),
        ([[1.0, 0.5], [0.2, 1.0]], r"must be symmetric; pass \(A \+ A\.T\) / 2"),
        ([[1.0, 2.0], [2.0, 1.0]], r"semi-definite; its lowest eigenvalue is -1"),
        ([[-1.0]], r"semi-definite; its lowest eigenvalue is -1"),
    ],
)
def test_bad_matrices_are_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        Separable(Gaussian(1.0), matrix)


def test_matrices_semidefinite_up_to_rounding_are_taken():
    v = np.random.default_rng(0).normal(size=(5, 2))
    matrix = v @ v.T  # rank 2 of 5
    assert np.linalg.eigvalsh(matrix)[0] < 1e-12
    assert Separable(Gaussian(1.0), matrix).matrix == tuple(map(tuple, matrix.tolist()))


def test_the_matrix_must_fit_the_states():
    _, nodes, c = arrays()
    with pytest.raises(ValueError, match="matrix is 2 x 2 but the states have 3 features"):
        Separable(Gaussian(1.0), np.eye(2)).bind(nodes, c)


@pytest.mark.parametrize("kernel", [None, 1.0, "Gaussian", Separable(Gaussian(1.0))])
def test_the_inner_kernel_must_be_scalar(kernel):
    with pytest.raises(TypeError, match="kernel must be a scalar kernel, got"):
        Separable(kernel)


@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)
def test_torch_agrees_with_numpy(matrix):
    torch = pytest.importorskip("torch")
    x, nodes, c = arrays()
    kernel = Separable(Gaussian(0.9) + Linear(), matrix)
    field = kernel.bind(nodes, c)
    other = kernel.bind(torch.asarray(nodes), torch.asarray(c))
    np.testing.assert_allclose(other(torch.asarray(x)).numpy(), field(x), rtol=1e-12)
    np.testing.assert_allclose(
        other.jacobian(torch.asarray(x)).numpy(), field.jacobian(x), rtol=1e-10, atol=1e-12
    )
