"""Normal equations of features: against a naive dense formulation, and the exact kernel."""

from __future__ import annotations

import numpy as np
import pytest

import vectorfield as vf
from vectorfield.kernels import (
    Gaussian,
    GradientFeatures,
    HamiltonianFeatures,
    Matern,
    Monomials,
    Nystrom,
    RandomFourier,
    Separable,
)
from vectorfield.linalg import Normal, Status, prepare, regress
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

RULES = {
    "trapezoid": Trapezoid(),
    "lagrange": Lagrange(4),
    "spline": Spline(),
    "windows": Windows(3),
    "weak": WeakForm(samples=5, stride=2),
    "forward": ForwardDifference(),
    "central": CentralDifference(),
}
KERNELS = {
    "fourier": RandomFourier(Gaussian(1.5), 12),
    "phase": RandomFourier(Matern(1.5, 1.0), 9, "phase"),
    "sum": Monomials(1) + 0.5 * Nystrom(Gaussian(1.0), 8),
    "gradient": GradientFeatures(Monomials(3)),
    "hamiltonian": HamiltonianFeatures(RandomFourier(Gaussian(1.5), 8)),
}


def naive(kernel, occupations, covariance, ridge):
    """Every matrix written out: W, Sigma^-1, I kron phi."""
    nodes, y = np.asarray(occupations.nodes), np.asarray(occupations.targets)
    features = kernel.bind(occupations.nodes)
    psi = features(nodes)
    if features.separable:
        psi = np.stack([np.kron(np.eye(features.d), row) for row in psi])  # (Q, d, d q)
    count, d = y.shape
    design = np.tensordot(occupations.weights.toarray(), psi, axes=1).reshape(count * d, -1)
    precision = np.kron(np.linalg.inv(covariance.toarray()), np.eye(d))
    shift = ridge * count * np.eye(design.shape[1])
    c = np.linalg.solve(design.T @ precision @ design + shift, design.T @ precision @ y.reshape(-1))
    residuals = y - (design @ c).reshape(count, d)
    coefficients = c.reshape(d, features.q).T if features.separable else c
    return coefficients, residuals, np.linalg.norm(c)


@pytest.mark.parametrize("block", [1e-4, 64.0], ids=["rows", "whole"])
@pytest.mark.parametrize("noise", [White(), SnapshotNoise()], ids=["white", "snapshot"])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_naive(kernel, rule, noise, block, irregular):
    occupations = rule(irregular(lengths=(7, 9, 20, 6)))
    covariance = noise.covariance(occupations)
    ridge = 1e-3
    expected, residuals, norm = naive(kernel, occupations, covariance, ridge)
    for keep in (0.0, 256.0):
        solver = Normal(block=block, keep=keep)
        fit = regress(kernel, occupations, ridge=ridge, covariance=covariance, solver=solver)
        np.testing.assert_allclose(fit.expansion.coefficients, expected, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(fit.residuals, residuals, rtol=1e-7, atol=1e-9)
        assert fit.norm == pytest.approx(norm)
        assert fit.solution.status is Status.SOLVED
        assert set(fit.solution.seconds) > {"features", "products", "factor", "solve"}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_a_path_equals_separate_solves(kernel, irregular):
    occupations = Lagrange(4)(irregular(lengths=(9, 20, 30)))
    noise = White().covariance(occupations)
    problem = prepare(kernel, occupations, covariance=noise)
    ridges = [1e-2, 1e-4, 1e-6, 1e-8]
    for ridge, fit in zip(ridges, problem.path(ridges), strict=True):
        one = problem.solve(ridge)
        assert fit.solution.status.ok
        np.testing.assert_allclose(
            fit.expansion.coefficients, one.expansion.coefficients, rtol=1e-6, atol=1e-8
        )
        np.testing.assert_allclose(fit.residuals, one.residuals, rtol=1e-6, atol=1e-8)
        assert fit.norm == pytest.approx(one.norm)


def test_a_singular_system_says_so(irregular):
    occupations = Trapezoid()(irregular(lengths=(4, 5)))
    kernel = RandomFourier(Gaussian(50.0), 60)
    noise = White().covariance(occupations)
    problem = prepare(kernel, occupations, covariance=noise)
    fit = problem.solve(1e-300)
    assert fit.expansion is None
    assert fit.solution.status is Status.NOT_POSITIVE_DEFINITE
    assert "matrix of 60 features" in fit.solution.detail
    needed = float(fit.solution.detail.split("raise ridge to at least about ")[1].split(",")[0])
    assert problem.solve(needed).solution.status.ok
    (last,) = problem.path([1e-300])
    assert not last.solution.status.ok


@pytest.mark.parametrize("centres", ["random", "farthest", "pivoted"])
@pytest.mark.parametrize("noise", [White(), SnapshotNoise()], ids=["white", "snapshot"])
def test_nystrom_with_all_nodes_is_the_exact_fit(centres, noise, irregular):
    data = irregular()
    kernel = Matern(2.5, 1.0)
    exact = vf.MOCK(kernel, 1e-4, rule=Lagrange(4), noise=noise).fit(data)
    explicit = Nystrom(kernel, len(data.states), centres)
    features = vf.MOCK(explicit, 1e-4, rule=Lagrange(4), noise=noise).fit(data)
    assert features.ridge_ == exact.ridge_
    x = data.states + 0.1
    np.testing.assert_allclose(features.predict(x), exact.predict(x), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(features.residuals_, exact.residuals_, atol=1e-7)
    assert features.rkhs_norm_ == pytest.approx(exact.rkhs_norm_, rel=1e-6)


def test_monomials_are_the_exact_fit(irregular):
    data = irregular(3)
    exact = vf.MOCK(vf.kernels.Polynomial(2), rule=Spline(), search=False).fit(data)
    features = vf.MOCK(Monomials(2), rule=Spline(), search=False).fit(data)
    assert features.ridge_ == pytest.approx(exact.ridge_)
    np.testing.assert_allclose(features.predict(data.states), exact.predict(data.states), rtol=1e-6)


def distance(kernels, exact, data, ridge=1e-2):
    """Relative distance of fits with features from the exact one, over seeds."""
    fits = [vf.MOCK(kernel, ridge).fit(data).predict(data.states) for kernel in kernels]
    return np.sqrt(np.mean([np.mean((f - exact) ** 2) for f in fits]) / np.mean(exact**2))


@pytest.mark.parametrize("form", ["paired", "phase"])
@pytest.mark.parametrize("kernel", [Gaussian(1.5), Matern(2.5, 1.5)])
def test_random_features_tend_to_the_exact_fit(kernel, form, irregular):
    data = irregular(lengths=(20, 30, 25))
    exact = vf.MOCK(kernel, 1e-2).fit(data).predict(data.states)
    few, many = (
        distance(
            [RandomFourier(kernel, count, form, random_state=s) for s in range(3)], exact, data
        )
        for count in (50, 1800)
    )
    assert many < few / 2.5  # 6 by the rate q^(-1/2)
    assert many < 0.15


def test_gradients_of_features_tend_to_the_curl_free_kernel(irregular):
    data, k = irregular(lengths=(15, 15)), Gaussian(1.5)
    exact = vf.MOCK(vf.kernels.CurlFree(k), 0.1).fit(data).predict(data.states)
    few, many = (
        distance(
            [GradientFeatures(RandomFourier(k, count, random_state=s)) for s in range(3)],
            exact,
            data,
            ridge=0.1,
        )
        for count in (100, 6400)
    )
    assert many < few / 4.0  # 8 by the rate
    assert many < 0.1


def test_progress_is_reported(irregular):
    from vectorfield._progress import listening

    heard = []
    occupations = Trapezoid()(irregular())
    with listening(lambda stage, done: heard.append((stage, done))):
        prepare(
            Monomials(1),
            occupations,
            covariance=White().covariance(occupations),
            solver=Normal(block=1e-4),
        )
    done = [share for stage, share in heard if stage == "features"]
    assert len(done) > 2
    assert done == sorted(done)
    assert done[-1] == 1.0


@pytest.mark.parametrize("settings", [{"block": 0.0}, {"keep": -1.0}, {"precision": "half"}])
def test_settings_are_checked(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        Normal(**settings)


def test_the_wrong_solver_is_named(irregular):
    data = irregular()
    with pytest.raises(TypeError, match="not by Normal"):
        vf.MOCK(Separable(Gaussian()), solver=Normal(), search=False).fit(data)


@pytest.mark.parametrize("noise", [White(), SnapshotNoise()], ids=["white", "snapshot"])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_torch_agrees(kernel, noise, irregular):
    torch = pytest.importorskip("torch")
    data = irregular(2)
    xs, ts = data.to_arrays()
    xs = [torch.asarray(np.array(x)) for x in xs]
    model = vf.MOCK(kernel, 1e-3, noise=noise, solver=Normal(block=1e-3)).fit(data)
    other = vf.MOCK(kernel, 1e-3, noise=noise, solver=Normal(block=1e-3)).fit(xs, ts)
    x = np.array(data.states[:5])
    got = other.predict(torch.asarray(x))
    assert isinstance(got, torch.Tensor)
    np.testing.assert_allclose(got.numpy(), model.predict(x), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(
        other.field_.jacobian(x).numpy(), model.field_.jacobian(x), rtol=1e-6, atol=1e-8
    )
    assert isinstance(other.field_.expansion.coefficients, torch.Tensor)
