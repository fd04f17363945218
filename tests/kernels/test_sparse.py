"""Sparse kernels: against one dense fit for each output, finite differences, and files."""

import numpy as np
import pytest
import scipy.sparse as sp

import vectorfield as vf
from vectorfield.kernels import (
    Gaussian,
    Interactions,
    Monomials,
    Nystrom,
    RandomFourier,
    Separable,
    SparseFeatures,
    SparseKernel,
    inputs_of,
)
from vectorfield.kernels.inputs import matrix_of
from vectorfield.linalg import prepare, regress
from vectorfield.occupation import SnapshotNoise, Trapezoid, White

INPUTS = ((0, 1), (1, 2, 3), (0, 1), (), (2, 4))
FEATURES = (
    Monomials(2),
    RandomFourier(Gaussian(2.0), 20),
    Nystrom(Gaussian(2.0), 12),
    Interactions(4, 3),
    Monomials(1) + 0.5 * RandomFourier(Gaussian(1.0), 8),
)


@pytest.fixture(scope="module")
def occupations():
    rng = np.random.default_rng(0)
    xs = [np.cumsum(rng.normal(size=(n, 5)), axis=0) / 3 for n in (9, 14, 11)]
    return Trapezoid()(vf.Trajectories.from_arrays(xs, 0.1))


def alone(kernel, own, i, occupations, noise, ridge):
    """The fit of output i with a separable or explicit kernel on its inputs and no others."""
    d = max(1, len(own))
    nodes = occupations.nodes[:, list(own)] if own else np.zeros((len(occupations.nodes), 1))
    targets = np.repeat(occupations.targets[:, [i]], d, axis=1)
    part = type(occupations)(
        nodes,
        occupations.weights,
        occupations.differences,
        targets,
        occupations.owner,
        occupations.node_owner,
    )
    fit = regress(kernel, part, ridge=ridge, covariance=noise.covariance(part))
    x = np.random.default_rng(3).normal(size=(6, 5))
    points = x[:, list(own)] if own else np.zeros((6, 1))
    return fit.expansion(points)[:, 0], fit.residuals[:, 0]


@pytest.mark.parametrize("noise", [White(), SnapshotNoise(0.2)])
def test_exact_fit_is_that_of_each_output_alone(occupations, noise):
    kernel = SparseKernel(Gaussian(1.5), INPUTS)
    covariance = noise.covariance(occupations)
    fit = regress(kernel, occupations, ridge=1e-4, covariance=covariance)
    x = np.random.default_rng(3).normal(size=(6, 5))
    for i, own in enumerate(INPUTS):
        value, residuals = alone(Separable(Gaussian(1.5)), own, i, occupations, noise, 1e-4)
        np.testing.assert_allclose(fit.expansion(x)[:, i], value, atol=1e-9)
        np.testing.assert_allclose(fit.residuals[:, i], residuals, atol=1e-9)


@pytest.mark.parametrize("features", FEATURES, ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("noise", [White(), SnapshotNoise(0.2)])
def test_feature_fit_is_that_of_each_output_alone(occupations, features, noise):
    kernel = SparseFeatures(features, INPUTS)
    covariance = noise.covariance(occupations)
    fit = regress(kernel, occupations, ridge=1e-4, covariance=covariance)
    x = np.random.default_rng(3).normal(size=(6, 5))
    for i, own in enumerate(INPUTS):
        value, residuals = alone(features, own, i, occupations, noise, 1e-4)
        np.testing.assert_allclose(fit.expansion(x)[:, i], value, atol=1e-8)
        np.testing.assert_allclose(fit.residuals[:, i], residuals, atol=1e-8)


def test_exact_and_features_agree(occupations):
    covariance = White().covariance(occupations)
    options = {"ridge": 1e-5, "covariance": covariance}
    exact = regress(SparseKernel(vf.kernels.Polynomial(2), INPUTS), occupations, **options)
    features = regress(SparseFeatures(Monomials(2), INPUTS), occupations, **options)
    x = np.random.default_rng(1).normal(size=(4, 5))
    np.testing.assert_allclose(exact.expansion(x), features.expansion(x), atol=1e-6)
    assert exact.norm == pytest.approx(features.norm, rel=1e-5)


def test_full_inputs_are_the_separable_kernel(occupations):
    covariance = White().covariance(occupations)
    everything = [tuple(range(5))] * 5
    options = {"ridge": 1e-4, "covariance": covariance}
    sparse = regress(SparseKernel(Gaussian(2.0), everything), occupations, **options)
    dense = regress(Separable(Gaussian(2.0)), occupations, **options)
    x = np.random.default_rng(1).normal(size=(4, 5))
    np.testing.assert_allclose(sparse.expansion(x), dense.expansion(x), atol=1e-12)


def test_path_is_solve_after_solve(occupations):
    covariance = White().covariance(occupations)
    for kernel in (SparseKernel(Gaussian(2.0), INPUTS), SparseFeatures(Monomials(2), INPUTS)):
        ridges = [1e-3, 1e-5]
        path = prepare(kernel, occupations, covariance=covariance).path(ridges)
        for ridge, fit in zip(ridges, path, strict=True):
            one = regress(kernel, occupations, ridge=ridge, covariance=covariance)
            np.testing.assert_allclose(fit.residuals, one.residuals, atol=1e-12)


@pytest.mark.parametrize(
    "kernel",
    [SparseKernel(Gaussian(1.5), INPUTS)] + [SparseFeatures(f, INPUTS) for f in FEATURES],
    ids=repr,
)
def test_jacobian_by_differences_and_sparse(kernel, occupations):
    fit = regress(
        kernel, occupations, ridge=1e-3, covariance=White().covariance(occupations)
    ).expansion
    x, h = np.random.default_rng(2).normal(size=(3, 5)), 1e-6
    dense = fit.jacobian(x)
    for j in range(5):
        step = h * np.eye(5)[j]
        slope = (fit(x + step) - fit(x - step)) / (2 * h)
        np.testing.assert_allclose(dense[:, :, j], slope, atol=1e-6)
    for one, other in zip(dense, fit.sparse_jacobian(x), strict=True):
        assert sp.issparse(other)
        assert other.nnz <= sum(map(len, INPUTS))
        np.testing.assert_allclose(other.toarray(), one, atol=1e-13)


def test_dense_features_are_those_of_the_kernel(occupations):
    features = SparseFeatures(Monomials(2), INPUTS).bind(occupations.nodes)
    x = np.random.default_rng(5).normal(size=(4, 5))
    c = np.random.default_rng(6).normal(size=features.q)
    np.testing.assert_allclose(features(x) @ c, features.bind(c)(x), atol=1e-12)
    blocks = np.einsum("nap,mbp->abnm", features(x), features(x))
    tiles = SparseKernel(vf.kernels.Polynomial(2), INPUTS).blocks(x)(x)
    np.testing.assert_allclose(tiles.tile(slice(0, 4), slice(0, 4)), blocks, atol=1e-12)
    right, left = np.random.default_rng(7).normal(size=(2, 4, 5))
    everything = slice(0, 4)
    forward, back = tiles.products(everything, everything, right, left)
    np.testing.assert_allclose(forward, np.einsum("abnm,mb->na", blocks, right), atol=1e-12)
    np.testing.assert_allclose(back, np.einsum("abnm,na->mb", blocks, left), atol=1e-12)
    product = tiles.product(everything, everything, right)
    np.testing.assert_allclose(product, forward, atol=1e-12)


@pytest.mark.parametrize(
    "kernel",
    [SparseKernel(Gaussian(), INPUTS)] + [SparseFeatures(f, INPUTS) for f in FEATURES],
    ids=repr,
)
def test_models_survive_their_files(kernel, tmp_path):
    rng = np.random.default_rng(0)
    xs = [np.cumsum(rng.normal(size=(12, 5)), axis=0) for _ in range(3)]
    model = vf.MOCK(kernel, 1e-4).fit(xs, 0.1)
    model.save(tmp_path / "sparse.vf")
    field = vf.load(tmp_path / "sparse.vf")
    assert np.array_equal(field(xs[0]), model.predict(xs[0]))
    jacobian = field.sparse_jacobian(xs[0][0])
    np.testing.assert_allclose(jacobian.toarray(), field.jacobian(xs[0][0]), atol=1e-12)
    assert (jacobian.toarray()[3] == 0).all()


def test_inputs_from_matrices_and_back():
    dense = np.array([[True, False, True], [False, False, False], [True, True, False]])
    assert inputs_of(dense) == inputs_of(sp.csr_array(dense)) == ((0, 2), (), (0, 1))
    assert (matrix_of(inputs_of(dense)).toarray() == dense).all()


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ([(0,), (2,)], "inputs\\[1\\] must hold indices of the 2 coordinates"),
        ([(0, 0), (1,)], "twice"),
        ([], "got none"),
        ([(True,), (0,)], "indices"),
    ],
)
def test_inputs_are_checked(inputs, words):
    with pytest.raises(ValueError, match=words):
        SparseKernel(Gaussian(), inputs)


def test_wrong_parts_are_named():
    with pytest.raises(TypeError, match="SparseFeatures"):
        SparseKernel(Monomials(), INPUTS)
    with pytest.raises(TypeError, match="SparseKernel"):
        SparseFeatures(Gaussian(), INPUTS)
    with pytest.raises(TypeError, match="inputs_of"):
        SparseKernel(Gaussian(), np.eye(3))
    with pytest.raises(ValueError, match="both d"):
        inputs_of(np.ones((2, 3)))
    with pytest.raises(ValueError, match="5 outputs"):
        vf.MOCK(SparseKernel(Gaussian(), INPUTS), search=False).fit(
            np.random.default_rng(0).random((9, 3)), 0.1
        )


def test_interactions_hold_functions_of_one_and_of_two_coordinates():
    """Products up to the order are in their span, products of three coordinates are not."""
    x = np.random.default_rng(0).uniform(-2.0, 2.0, size=(300, 3))
    kernel = Interactions(main=5, pair=4)
    phi = kernel.bind(x)(x)
    assert phi.shape == (300, kernel.count(3))

    def missed(y):
        return np.linalg.norm(y - phi @ np.linalg.lstsq(phi, y, rcond=None)[0])

    a, b, c = x.T
    assert missed(a**5 - 2.0 * b**2 + a * b**3 + c**2 * b**2) < 1e-9
    assert missed(a * b * c) > 1.0
    assert missed(a**6) > 1.0


@pytest.mark.parametrize("orders", [(0, 1), (2, 0)])
def test_orders_of_interactions_are_checked(orders):
    with pytest.raises(ValueError, match="at least 1"):
        Interactions(*orders)


def test_interactions_go_on_along_tangents():
    features = Interactions(main=4, pair=3, length_scale=1.0).bind(np.zeros((1, 2)))
    x = np.array([[1.5, 0.2], [2.0, 0.2], [2.5, 0.2]])
    phi = features(x)
    np.testing.assert_allclose(phi[2] - phi[1], phi[1] - phi[0], atol=1e-12)
    step = 1e-6 * np.array([[1.0, 0.0]])
    slope = (features(x + step) - features(x - step)) / 2e-6
    np.testing.assert_allclose(features.gradient(x)[:, 0], slope, atol=1e-6)
