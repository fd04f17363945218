"""Figure 1: the fast fit equals the paper's algorithm, written out with loops."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import vectorfield as vf
from vectorfield.kernels import Constant, Gaussian, Linear, Matern, Polynomial, Separable
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
    Lagrange(4),
    Lagrange(8),
    Spline(3),
    Windows(samples=4, rule=Lagrange(4), stride=2),
    WeakForm(samples=5, degree=2, stride=2),
    ForwardDifference(),
    CentralDifference(),
]
COUPLED = [[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.7]]
SINGULAR = [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 3.0]]
REPEATED = [[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]
LENGTHS = {1: (5, 2, 12, 7), 2: (3, 11, 6), 3: (2, 2, 9, 4, 8)}


def close(got: np.ndarray, expected: np.ndarray, relative: float = 1e-10) -> None:
    np.testing.assert_allclose(got, expected, rtol=0, atol=relative * np.abs(expected).max())


def places(d: int, n: int = 7) -> np.ndarray:
    return np.random.default_rng(9).normal(size=(n, d))


def paper(k, data, ridge, at):
    """Algorithm 1 and the field of algorithm 2, as printed."""
    z, h = [], []
    for t, x in data:
        for j in range(len(t) - 1):
            z.append((x[j].tolist(), x[j + 1].tolist()))
            h.append(t[j + 1] - t[j])
    n = len(z)
    delta = np.array([np.subtract(end, start) for start, end in z])
    m = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            m[i, j] = (h[i] * h[j] / 4) * (
                k(z[i][0], z[j][0])
                + k(z[i][0], z[j][1])
                + k(z[i][1], z[j][0])
                + k(z[i][1], z[j][1])
            )
    alpha = np.linalg.solve(m + ridge * n * np.eye(n), delta)
    values = np.zeros((len(at), delta.shape[1]))
    for row, y in enumerate(at.tolist()):
        for i in range(n):
            values[row] += h[i] / 2 * (k(y, z[i][0]) + k(y, z[i][1])) * alpha[i]
    return values, m, alpha, delta


@pytest.mark.parametrize("d", [1, 2, 3])
def test_predictions_are_the_papers(make_kernel, formula, irregular, d):
    kernel, data, ridge = make_kernel(d), irregular(d, LENGTHS[d]), 3e-3
    model = vf.MOCK(kernel, ridge, rule=Trapezoid(), standardize=False).fit(data)
    expected, m, alpha, delta = paper(lambda x, y: formula(kernel, x, y), data, ridge, places(d))
    close(model.predict(places(d)), expected)
    assert model.rkhs_norm_ == pytest.approx(np.sqrt(np.sum(alpha * (m @ alpha))), rel=1e-9)
    close(model.residuals_, delta - m @ alpha, 1e-9)


@pytest.mark.parametrize("kernel", [Gaussian(0.8), Matern(5.5, 0.3), Polynomial(2)], ids=repr)
def test_convolution_of_the_appendix(kernel):
    """One regular trajectory: M = h^2/4 (G[1:,1:] + G[:-1,1:] + G[1:,:-1] + G[:-1,:-1])."""
    h, ridge = 0.2, 1e-3
    x = np.cumsum(0.3 * np.random.default_rng(4).normal(size=(25, 2)), axis=0)
    g = kernel(x, x)
    m = h**2 / 4 * (g[1:, 1:] + g[:-1, 1:] + g[1:, :-1] + g[:-1, :-1])
    alpha = np.linalg.solve(m + ridge * 24 * np.eye(24), np.diff(x, axis=0))
    cross = kernel(places(2), x)
    expected = h / 2 * (cross[:, 1:] + cross[:, :-1]) @ alpha
    model = vf.MOCK(kernel, ridge, standardize=False).fit(x, h)
    close(model.predict(places(2)), expected)


def test_convolution_without_the_rows_that_mix_trajectories():
    kernel, h, ridge = Gaussian(0.8), 0.2, 1e-3
    rng = np.random.default_rng(5)
    lengths = (6, 2, 9)
    xs = [np.cumsum(0.3 * rng.normal(size=(n, 2)), axis=0) for n in lengths]
    x = np.concatenate(xs)
    within = np.ones(len(x) - 1, dtype=bool)
    within[np.cumsum(lengths)[:-1] - 1] = False
    windows = sliding_window_view(kernel(x, x), (2, 2))  # the 2 x 2 convolution
    m = h**2 / 4 * windows.sum(axis=(2, 3))[within][:, within]
    n = int(within.sum())
    alpha = np.linalg.solve(m + ridge * n * np.eye(n), np.diff(x, axis=0)[within])
    cross = kernel(places(2), x)
    expected = (h / 2 * (cross[:, 1:] + cross[:, :-1]))[:, within] @ alpha
    close(vf.MOCK(kernel, ridge, standardize=False).fit(xs, h).predict(places(2)), expected)


def naive(k, a, occupations, sigma, ridge, at):
    """(W G W^T kron A + ridge N Sigma kron I) alpha = y as one (N d, N d) system."""
    w = occupations.weights.toarray()
    nodes, y = occupations.nodes.tolist(), occupations.targets
    n, d = y.shape
    g = np.array([[k(p, q) for q in nodes] for p in nodes])
    big = np.kron(w @ g @ w.T, a)
    alpha = np.linalg.solve(big + ridge * n * np.kron(sigma, np.eye(d)), y.ravel())
    cross = np.array([[k(p, q) for q in nodes] for p in at.tolist()])
    values = np.kron(cross @ w.T, a) @ alpha
    norm = np.sqrt(alpha @ big @ alpha)
    return values.reshape(len(at), d), norm, y - (big @ alpha).reshape(n, d)


@pytest.mark.parametrize("noise", [White(), SnapshotNoise()], ids=repr)
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_every_rule_and_noise(rule, noise, formula, irregular):
    kernel, data, ridge = 1.5 * Matern(2.5, 0.7) + Linear(), irregular(2), 2e-3
    model = vf.MOCK(kernel, ridge, rule=rule, noise=noise, standardize=False).fit(data)
    occupations = rule(data)
    if noise == White():
        sigma = np.eye(len(occupations))
    else:
        sigma = occupations.differences.toarray() @ occupations.differences.toarray().T
    values, norm, residuals = naive(
        lambda x, y: formula(kernel, x, y), np.eye(2), occupations, sigma, ridge, places(2)
    )
    close(model.predict(places(2)), values, 1e-9)
    assert model.rkhs_norm_ == pytest.approx(norm, rel=1e-8)
    close(model.residuals_, residuals, 1e-8)


def test_snapshot_noise_of_increments_is_tridiagonal(irregular):
    """Sigma typed out: 2 on the diagonal, -1 where two increments share a snapshot."""
    data = irregular(2, (4, 2, 3))
    sigma = np.array(
        [
            [2, -1, 0, 0, 0, 0],
            [-1, 2, -1, 0, 0, 0],
            [0, -1, 2, 0, 0, 0],
            [0, 0, 0, 2, 0, 0],
            [0, 0, 0, 0, 2, -1],
            [0, 0, 0, 0, -1, 2],
        ]
    )
    kernel, ridge = Gaussian(0.9), 1e-3
    occupations = Trapezoid()(data)
    m = occupations.weights @ kernel(data.states) @ occupations.weights.T
    alpha = np.linalg.solve(m + ridge * 6 * sigma, occupations.targets)
    model = vf.MOCK(kernel, ridge, noise=SnapshotNoise(), standardize=False).fit(data)
    expected = kernel(places(2), data.states) @ (occupations.weights.T @ alpha)
    close(model.predict(places(2)), expected)


@pytest.mark.parametrize("noise", [White(), SnapshotNoise()], ids=repr)
@pytest.mark.parametrize("matrix", [np.eye(3), COUPLED, SINGULAR, REPEATED])
def test_separable_kernels_against_the_kronecker_system(matrix, noise, formula, irregular):
    scalar, data, ridge = Gaussian(0.9), irregular(3, LENGTHS[3]), 2e-3
    kernel = Separable(scalar, matrix)
    model = vf.MOCK(kernel, ridge, noise=noise, standardize=False).fit(data)
    occupations = Trapezoid()(data)
    d = occupations.differences.toarray()
    sigma = np.eye(len(d)) if noise == White() else d @ d.T
    values, norm, residuals = naive(
        lambda x, y: formula(scalar, x, y), np.array(matrix), occupations, sigma, ridge, places(3)
    )
    close(model.predict(places(3)), values)
    assert model.rkhs_norm_ == pytest.approx(norm, rel=1e-9)
    close(model.residuals_, residuals, 1e-9)


def test_a_singular_matrix_confines_the_field_to_its_range(irregular):
    v = np.array([1.0, -2.0, 0.5])
    model = vf.MOCK(Separable(Gaussian(1.0), np.outer(v, v)), 1e-3, standardize=False)
    values = model.fit(irregular(3)).predict(places(3))
    close(values, (values @ v)[:, None] * v / (v @ v), 1e-12)


def test_identity_matrix_is_no_matrix(irregular):
    data = irregular(3)
    one = vf.MOCK(Separable(Gaussian(1.0)), 1e-3).fit(data)
    other = vf.MOCK(Separable(Gaussian(1.0), np.eye(3)), 1e-3).fit(data)
    close(one.predict(places(3)), other.predict(places(3)))
    close(one.residuals_, other.residuals_)
    assert one.rkhs_norm_ == pytest.approx(other.rkhs_norm_, rel=1e-9)


@pytest.mark.parametrize("kernel", [Matern(3.5, 0.6), Linear() + Constant()], ids=repr)
@pytest.mark.parametrize("matrix", [None, [[1.0, 0.4], [0.4, 0.5]]])
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_residuals_are_targets_less_functionals_of_the_field(kernel, matrix, rule, irregular):
    data = irregular(2)
    model = vf.MOCK(Separable(kernel, matrix), 1e-3, rule=rule, standardize=False).fit(data)
    occupations = rule(data)
    fitted = occupations.weights @ model.predict(occupations.nodes)
    size = np.abs(occupations.targets).max()
    np.testing.assert_allclose(
        model.residuals_, occupations.targets - fitted, rtol=0, atol=1e-10 * size
    )


def test_norm_is_that_of_the_coefficients(irregular):
    data = irregular(2)
    kernel = Gaussian(0.9)
    model = vf.MOCK(kernel, 1e-3, standardize=False).fit(data)
    c = model.field_.expansion.coefficients
    squared = np.sum(c * (kernel(model.field_.expansion.nodes) @ c))
    assert model.rkhs_norm_ == pytest.approx(np.sqrt(squared), rel=1e-9)


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("kernel", [Gaussian(), Matern(1.5, (0.8, 1.4, 0.5))], ids=repr)
def test_standardisation_is_what_one_would_do_by_hand(rule, kernel, irregular):
    raw = irregular(3)
    shift, scale = np.array([100.0, 0.0, -3.0]), np.array([1e3, 1e-3, 2.0])
    xs, ts = raw.to_arrays()
    xs = [shift + x * scale for x in xs]
    states = np.concatenate(xs)
    mean, spread = states.mean(axis=0), states.std(axis=0)
    inner = vf.MOCK(kernel, 1e-3, rule=rule, standardize=False)
    inner.fit([(x - mean) / spread for x in xs], ts)
    model = vf.MOCK(kernel, 1e-3, rule=rule).fit(xs, ts)
    at = shift + places(3) * scale
    expected = inner.predict((at - mean) / spread) * spread
    np.testing.assert_allclose(model.predict(at) / spread, expected / spread, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(
        model.residuals_ / spread, inner.residuals_, rtol=0, atol=1e-9 * np.abs(raw.states).max()
    )
    assert model.rkhs_norm_ == pytest.approx(inner.rkhs_norm_, rel=1e-7)
    jacobian = inner.field_.jacobian((at - mean) / spread)
    got = model.field_.jacobian(at) * spread[None, None, :] / spread[None, :, None]
    close(got, jacobian, 1e-7)


# Fields that lie in the space


def test_exact_recovery_of_constant_fields(irregular):
    """x = x0 + v t: the trapezoid is exact, and so is the fit as the ridge goes to 0."""
    v = np.array([0.7, -1.2])
    ts = [t for t, _ in irregular(2)]
    rng = np.random.default_rng(1)
    xs = [rng.normal(size=2) + np.outer(t, v) for t in ts]
    model = vf.MOCK(Constant(), 1e-13, standardize=False).fit(xs, ts)
    close(model.predict(places(2)), np.broadcast_to(v, (7, 2)), 1e-11)
    assert np.abs(model.residuals_).max() < 1e-11


def test_recovery_of_a_linear_field_where_the_quadrature_is_exact():
    """A nilpotent, A x(t) quadratic in t: weights on 4 samples are exact, those on 2 are not."""
    a = np.diag([1.0, -2.0, 0.5], k=1)
    rng = np.random.default_rng(2)
    ts = [np.cumsum(rng.uniform(0.1, 0.5, size=n)) for n in (9, 5, 12)]
    xs = []
    for t in ts:
        flows = [np.eye(4) + s * a + s**2 / 2 * a @ a + s**3 / 6 * a @ a @ a for s in t]
        xs.append(np.stack(flows) @ rng.normal(size=4))
    at = places(4)
    for kernel, tolerance in [(Linear(), 1e-7), (Polynomial(1), 1e-7)]:
        model = vf.MOCK(kernel, 1e-10, rule=Lagrange(4), standardize=False).fit(xs, ts)
        close(model.predict(at), at @ a.T, tolerance)
        jacobian = model.field_.jacobian(at)
        np.testing.assert_allclose(jacobian, np.broadcast_to(a, (7, 4, 4)), atol=1e-7)
    rough = vf.MOCK(Linear(), 1e-10, rule=Trapezoid(), standardize=False).fit(xs, ts)
    assert np.abs(rough.predict(at) - at @ a.T).max() > 1e-4


def test_recovery_of_a_quadratic_field_improves_with_the_order_of_the_rule():
    """The logistic equation dx/dt = x - x^2, snapshots exact."""
    t = np.linspace(0.0, 4.0, 81)
    xs = [(1.0 / (1.0 + (1.0 / x0 - 1.0) * np.exp(-t)))[:, None] for x0 in (0.05, 0.3, 1.8)]
    at = np.linspace(0.1, 1.7, 9)[:, None]
    errors = []
    for rule in (Trapezoid(), Lagrange(4), Lagrange(6), Lagrange(8)):
        model = vf.MOCK(Polynomial(2), 1e-13, rule=rule, standardize=False).fit(xs, t)
        errors.append(np.abs(model.predict(at) - (at - at**2)).max())
    assert errors[0] < 2e-3
    assert all(later < 0.2 * earlier for earlier, later in pairwise(errors))
    assert errors[-1] < 1e-7


def test_the_minimiser_minimises(irregular):
    """No other coefficients give a smaller loss: the gradient vanishes and random steps cost."""
    data, ridge, kernel = irregular(2), 1e-2, Gaussian(0.8)
    occupations = Trapezoid()(data)
    model = vf.MOCK(kernel, ridge, standardize=False).fit(data)
    g, w = kernel(occupations.nodes), occupations.weights.toarray()

    def loss(c: np.ndarray) -> float:
        residual = w @ g @ c - occupations.targets
        return float(np.sum(residual**2) + ridge * len(w) * np.sum(c * (g @ c)))

    best = loss(model.field_.expansion.coefficients)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-1, 1.0):
        for _ in range(20):
            step = size * rng.normal(size=model.field_.expansion.coefficients.shape)
            assert loss(model.field_.expansion.coefficients + step) > best
