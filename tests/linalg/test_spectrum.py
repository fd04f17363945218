"""Spectra against refits without each trajectory, and against dense normal densities."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import vectorfield as vf
from vectorfield.kernels import (
    CyclicShifts,
    DivergenceFree,
    Equivariant,
    Gaussian,
    HamiltonianFeatures,
    Linear,
    Matern,
    Monomials,
    Nystrom,
    RandomFourier,
    Separable,
)
from vectorfield.linalg import spectrum
from vectorfield.occupation import Lagrange, SnapshotNoise, Trapezoid, White

KERNELS = {
    "scalar": Gaussian(1.3),
    "low rank": Linear(),
    "matrix": Separable(Matern(2.5, 1.0), [[2.0, 0.6], [0.6, 1.0]]),
    "singular matrix": Separable(Matern(2.5, 1.0), [[1.0, 1.0], [1.0, 1.0]]),
    "features": Monomials(2),
    "more features than observations": RandomFourier(Gaussian(1.3), 120),
    "matrix features": HamiltonianFeatures(Monomials(3)),
    "coupled": DivergenceFree(Gaussian(1.5)),
    "ring": Equivariant(Matern(2.5, 1.1), CyclicShifts()),
}
NOISES = {"white": White(), "snapshots": SnapshotNoise()}


def orbits(lengths=(9, 14, 6, 11), noise=0.02):
    """Noisy trajectories of a swing with friction, of several lengths."""
    rng = np.random.default_rng(1)
    xs, ts = [], []
    for number, length in enumerate(lengths):
        t = 0.2 * np.arange(length)
        x0 = rng.normal(size=2) + 0.1 * number
        x = vf.simulate(vf.systems.Pendulum(), x0, t, rtol=1e-9).x
        xs.append(x + noise * rng.normal(size=x.shape))
        ts.append(t)
    return vf.Trajectories.from_arrays(xs, ts)


def prepared(kernel, noise, data, **parts):
    return vf.Plan(kernel, noise=noise, standardize=False, **parts).prepare(data)


def found(fit):
    return spectrum(fit.kernel, fit.occupations, covariance=fit.covariance)


@pytest.fixture(params=KERNELS)
def kernel(request):
    return KERNELS[request.param]


@pytest.fixture(params=NOISES)
def noise(request):
    return NOISES[request.param]


@pytest.mark.parametrize("shift", [1e-1, 1e-5])
def test_left_out_errors_are_those_of_fits_without_each_trajectory(kernel, noise, shift):
    data = orbits()
    fit = prepared(kernel, noise, data)
    count = len(fit.occupations)
    errors = found(fit).left_out(shift / count, white=False)
    assert len(errors) == len(data)
    for b in range(len(data)):
        rest = data[np.delete(np.arange(len(data)), b)]
        steps = int((rest.lengths - 1).sum())
        field = prepared(kernel, noise, rest).solve(shift / steps).field
        own = Trapezoid()(data[b : b + 1])
        expected = own.targets - own.weights @ field(own.nodes)
        np.testing.assert_allclose(errors[b], expected, atol=1e-8 * np.abs(own.targets).max())


def test_whitened_left_out_errors_have_the_metric_of_the_loss(kernel, noise):
    fit = prepared(kernel, noise, orbits())
    spec = found(fit)
    owner = fit.occupations.owner
    pairs = zip(spec.left_out(1e-4), spec.left_out(1e-4, white=False), strict=True)
    for b, (white, plain) in enumerate(pairs):
        rows = np.flatnonzero(owner == b)
        own = np.linalg.inv(fit.covariance[rows][:, rows].toarray())
        assert (white**2).sum() == pytest.approx(np.sum(plain * (own @ plain)), rel=1e-8)


@pytest.mark.parametrize("shift", [1e1, 1e-2, 1e-6])
def test_the_likelihood_is_that_of_a_dense_normal_distribution(kernel, noise, shift):
    data = orbits((7, 5))
    fit = prepared(kernel, noise, data)
    spec, count = found(fit), len(fit.occupations)
    y = fit.occupations.targets.T.reshape(-1)
    sigma = np.kron(np.eye(2), fit.covariance.toarray())
    covariance = sigma + gram(fit) / shift
    variance = y @ np.linalg.solve(covariance, y) / len(y)
    dense = multivariate_normal(cov=variance * covariance, allow_singular=False)
    assert spec.log_likelihood(shift / count) == pytest.approx(dense.logpdf(y), rel=1e-8)
    for factor in (0.8, 1.25):  # the noise's variance is the likeliest one
        other = multivariate_normal(cov=factor * variance * covariance)
        assert other.logpdf(y) < dense.logpdf(y)


def gram(fit):
    """Return (W kron I) G (W kron I)^T by output, from fields of one coefficient each."""
    nodes, weights = fit.occupations.nodes, fit.occupations.weights
    d = nodes.shape[1]
    if hasattr(fit.kernel, "blocks"):
        every = slice(0, len(nodes))
        tile = fit.kernel.blocks(nodes)(nodes).tile(every, every)
    else:
        features = fit.kernel.bind(nodes)
        psi = features(nodes)
        if features.separable:
            psi = np.einsum("nq,ab->naqb", psi, np.eye(d)).reshape(len(nodes), d, -1)
        tile = np.einsum("iaq,jbq->abij", psi, psi)
    value = np.einsum("si,abij,tj->asbt", weights.toarray(), tile, weights.toarray())
    return value.reshape(d * len(fit.occupations), -1)


def test_uneven_weights_and_high_orders_make_no_difference():
    data = orbits()
    fit = prepared(Nystrom(Gaussian(1.0), 15), SnapshotNoise(0.3), data, rule=Lagrange(4))
    spec = found(fit)
    lower = np.linalg.cholesky(fit.covariance.toarray())
    white = np.linalg.solve(lower, fit.occupations.targets)
    np.testing.assert_allclose(spec.white, white, atol=1e-10)
    sign, log = np.linalg.slogdet(fit.covariance.toarray())
    assert sign == 1
    assert spec.noise_determinant == pytest.approx(2 * log)


def test_what_has_no_answer_is_refused():
    data = orbits()
    alone = found(prepared(Gaussian(1.0), White(), data[:1]))
    with pytest.raises(vf.DataError, match="cut the one there is"):
        alone.left_out(1e-3)
    spec = found(prepared(Gaussian(3.0), White(), data))
    assert spec.resolves(1e-3)
    assert not spec.resolves(1e-20)
    with pytest.raises(vf.DataError, match="lost in the rounding"):
        spec.left_out(1e-20)
    still = replace(data, states=np.ones_like(data.states))
    assert found(prepared(Gaussian(1.0), White(), still)).log_likelihood(1e-3) == np.inf
