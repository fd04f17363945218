"""`Huber`: gross errors in a few snapshots, and none."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import vectorfield as vf
from vectorfield.kernels import (
    CurlFree,
    CyclicShifts,
    Equivariant,
    Gaussian,
    Monomials,
    Separable,
)
from vectorfield.linalg import Circulant, ConjugateGradient, Dense, prepare
from vectorfield.occupation import SnapshotNoise, Trapezoid, White, Windows


def cycle(x: np.ndarray) -> np.ndarray:
    r2 = np.sum(x**2, axis=1, keepdims=True)
    return x * (1 - r2) + np.stack([-x[:, 1], x[:, 0]], axis=1)


def data(
    outliers: float = 0.05, size: float = 3.0, noise: float = 0.01, n: int = 12
) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """States, times and which samples are wrong."""
    rng = np.random.default_rng(4)
    ts = [np.cumsum(rng.uniform(0.05, 0.15, 40)) for _ in range(n)]
    xs = vf.simulate(cycle, rng.uniform(-1.3, 1.3, size=(n, 2)), ts).x
    xs = [x + noise * rng.normal(size=x.shape) for x in xs]
    wrong = [rng.uniform(size=len(x)) < outliers for x in xs]
    xs = [x + size * w[:, None] * rng.normal(size=x.shape) for x, w in zip(xs, wrong, strict=True)]
    return xs, ts, wrong


def error(model: vf.MOCK) -> float:
    at = np.concatenate(data(outliers=0.0, noise=0.0)[0])
    truth = cycle(at)
    return float(np.linalg.norm(model.predict(at) - truth) / np.linalg.norm(truth))


@pytest.mark.parametrize("noise", [White(), SnapshotNoise()], ids=repr)
def test_gross_outliers_do_little_harm(noise):
    xs, ts, wrong = data()
    settings: dict[str, Any] = {"ridge": 1e-6, "noise": noise}
    clean = error(vf.MOCK(Gaussian(1.0), **settings).fit(*data(outliers=0.0)[:2]))
    plain = error(vf.MOCK(Gaussian(1.0), **settings).fit(xs, ts))
    robust = vf.MOCK(Gaussian(1.0), **settings, robust=vf.Huber()).fit(xs, ts)
    assert clean < 0.1
    assert plain > 0.4
    assert error(robust) < 0.08
    # the observations beside a wrong sample are those that lost weight
    touched = np.concatenate([w[1:] | w[:-1] for w in wrong])
    weights = robust.observation_weights_
    assert np.median(weights[touched]) < 0.2
    assert np.median(weights[~touched]) > 0.9
    assert robust.field_.info["robust"] == repr(vf.Huber())
    assert 1 < robust.field_.info["rounds"] <= 21


def test_without_outliers_the_fit_is_nearly_the_same():
    xs, ts, _ = data(outliers=0.0)
    plain = vf.MOCK(Gaussian(1.0), 1e-6).fit(xs, ts)
    robust = vf.MOCK(Gaussian(1.0), 1e-6, robust=vf.Huber()).fit(xs, ts)
    assert error(robust) < 1.3 * error(plain)
    assert robust.observation_weights_.mean() > 0.9
    np.testing.assert_array_equal(plain.observation_weights_, 1.0)


def test_a_threshold_beyond_all_residuals_is_the_plain_fit():
    xs, ts, _ = data()
    plain = vf.MOCK(Gaussian(1.0), 1e-5).fit(xs, ts)
    robust = vf.MOCK(Gaussian(1.0), 1e-5, robust=vf.Huber(threshold=1e9)).fit(xs, ts)
    np.testing.assert_array_equal(robust.predict(xs[0]), plain.predict(xs[0]))
    assert robust.field_.info["rounds"] == 1
    assert robust.field_.info["settled"] is True


def test_weights_are_their_formula():
    xs, ts, _ = data(n=2)
    occupations = Trapezoid()(vf.Trajectories.from_arrays(xs, ts))
    sigma = White(1.0).covariance(occupations)
    r = np.random.default_rng(0).standard_t(2, size=(len(occupations), 2)) * [1.0, 100.0]
    own = np.sqrt(sigma.diagonal())
    expected = []
    for s in range(len(r)):
        e2 = 0.0
        for i in range(2):
            scale = 1.4826 * np.median(abs(r[:, i]) / own)
            e2 += (r[s, i] / own[s] / scale) ** 2 / 2
        expected.append(min(1.0, 2.0 / np.sqrt(e2)))
    weights = vf.Huber(threshold=2.0).weights(r, occupations, sigma)
    np.testing.assert_allclose(weights, expected, rtol=1e-12)


def test_settled_weights_are_a_fixed_point():
    """The fit is the weighted one, and its residuals give its weights."""
    xs, ts, _ = data()
    occupations = Trapezoid()(vf.Trajectories.from_arrays(xs, ts))
    kernel, sigma = Separable(Gaussian(1.0)), White().covariance(occupations)
    huber = vf.Huber(tolerance=1e-6, iterations=200)
    found = huber.regress(kernel, occupations, ridge=1e-4, covariance=sigma)
    assert found.settled
    weighted = sp.csr_array(sp.diags_array(1.0 / found.weights, format="csr"))
    direct = vf.linalg.regress(kernel, occupations, ridge=1e-4, covariance=weighted)
    np.testing.assert_allclose(direct.residuals, found.regression.residuals, rtol=0, atol=1e-10)
    again = huber.weights(direct.residuals, occupations, sigma)
    np.testing.assert_allclose(again, found.weights, rtol=0, atol=1e-5)


CASES = {
    "dense": (Separable(Gaussian(1.0)), Dense()),
    "mixing": (Separable(Gaussian(1.0), [[1.0, 0.2], [0.2, 0.7]]), None),
    "blocks": (CurlFree(Gaussian(1.0)), Dense()),
    "iterative": (CurlFree(Gaussian(1.0)), ConjugateGradient()),
    "ring": (Equivariant(Gaussian(1.0), CyclicShifts()), Circulant()),
    "features": (Monomials(3), None),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("noise", [White(), SnapshotNoise()], ids=repr)
def test_every_solver_takes_weights(case, noise):
    kernel, solver = CASES[case]
    xs, ts, _ = data(n=3)
    model = vf.MOCK(kernel, 1e-3, noise=noise, solver=solver, robust=vf.Huber(iterations=3))
    model.fit(xs, ts)
    assert model.observation_weights_.min() < 0.3
    occupations = Trapezoid()(vf.Trajectories.from_arrays(xs, ts))
    left = occupations.targets - occupations.weights @ model.predict(occupations.nodes)
    np.testing.assert_allclose(model.residuals_, left, rtol=0, atol=1e-6)


@pytest.mark.parametrize("case", ["dense", "mixing", "blocks", "features"])
def test_a_reweighted_problem_is_one_prepared_anew(case):
    kernel, solver = CASES[case]
    xs, ts, _ = data(n=3)
    occupations = Windows(4)(vf.Trajectories.from_arrays(xs, ts))
    first, second = (n.covariance(occupations) for n in (White(), SnapshotNoise(0.5)))
    problem = prepare(kernel, occupations, covariance=first, solver=solver)
    problem.solve(1e-3)
    changed = problem.reweighted(second)
    assert changed is not None
    anew = prepare(kernel, occupations, covariance=second, solver=solver)
    for ridge in (1e-3, 1e-5):
        one, other = changed.solve(ridge), anew.solve(ridge)
        np.testing.assert_allclose(one.residuals, other.residuals, rtol=0, atol=1e-12)
        assert one.norm == pytest.approx(other.norm)


def test_another_number_of_rows_is_refused():
    xs, ts, _ = data(n=2)
    occupations = Trapezoid()(vf.Trajectories.from_arrays(xs, ts))
    sigma = White().covariance(occupations)
    problem = prepare(Separable(Gaussian(1.0)), occupations, covariance=sigma)
    with pytest.raises(ValueError, match=r"covariance is \(3, 3\), not \(78, 78\)"):
        problem.reweighted(sp.csr_array(sp.eye_array(3, format="csr")))


def test_a_feature_that_never_moves_and_an_exact_fit():
    t = np.linspace(0.0, 3.0, 40)
    still = np.stack([np.exp(-t), np.full(40, 2.0)], axis=1)
    model = vf.MOCK(Gaussian(1.0), 1e-6, robust=vf.Huber()).fit(still, t)
    assert np.isfinite(model.predict([[0.5, 2.0]])).all()
    nothing = vf.MOCK(Gaussian(1.0), robust=vf.Huber(), search=False).fit(np.ones((9, 2)), t[:9])
    np.testing.assert_array_equal(nothing.observation_weights_, 1.0)


def test_a_prior_and_outliers():
    xs, ts, _ = data()
    prior = vf.prior.LinearPrior()
    model = vf.MOCK(Gaussian(1.0), 1e-6, prior=prior, robust=vf.Huber()).fit(xs, ts)
    plain = vf.MOCK(Gaussian(1.0), 1e-6, prior=prior).fit(xs, ts)
    assert error(model) < 0.4 * error(plain)


def test_a_failed_solve_is_reported():
    model = vf.MOCK(Gaussian(10.0), ridge=1e-30, standardize=False, robust=vf.Huber())
    with pytest.raises(vf.SolveError):
        model.fit(np.linspace(1.0, 1.001, 60)[:, None], 0.1)


def test_manners(tmp_path):
    xs, ts, _ = data(n=3)
    model = vf.MOCK(Gaussian(1.0), robust=vf.Huber(), search=False)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(robust__threshold=2.0).robust == vf.Huber(2.0)
    model.fit(xs, ts).save(tmp_path / "model.vf")
    assert vf.load(tmp_path / "model.vf").info["settled"] in (True, False)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.observation_weights_, model.observation_weights_)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": 0.0}, "threshold must be a finite number > 0"),
        ({"iterations": 0}, "iterations must be at least 1"),
        ({"tolerance": -1.0}, "tolerance must be a finite number > 0"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        vf.Huber(**settings)
