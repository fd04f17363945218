"""Searches on data with outliers: they are noticed, and a robust loss is chosen."""

import numpy as np
import pytest

import vectorfield as vf
from vectorfield.occupation import SnapshotNoise, Trapezoid, WeakForm, White, Windows
from vectorfield.tuning import Search, candidates
from vectorfield.tuning.bench import ridge_unit
from vectorfield.tuning.outliers import are_suspect, share_of_outliers

MATRIX = np.array([[-0.1, 1.0], [-1.0, -0.1]])


def orbits(share, count=10, samples=30, seed=0):
    """A damped rotation with 1 % noise, and a share of samples that are wrong altogether."""
    rng = np.random.default_rng(seed)
    t = 0.15 * np.arange(samples)
    x = vf.simulate(vf.systems.Linear(MATRIX), rng.normal(size=(count, 2)), t, rtol=1e-9).x
    noisy = x + 0.01 * rng.normal(size=x.shape)
    wrong = rng.random(x.shape[:2]) < share
    noisy[wrong] += 3.0 * rng.normal(size=(int(wrong.sum()), 2))
    return vf.Trajectories.from_arrays(list(noisy), t), x.reshape(-1, 2)


def field_error(field, x):
    return np.linalg.norm(field(x) - x @ MATRIX.T) / np.linalg.norm(x @ MATRIX.T)


def test_outliers_are_seen_and_normal_noise_is_none():
    shares = []
    for share in (0.0, 0.02):
        data, x = orbits(share)
        prepared = vf.Plan(vf.kernels.Monomials(1), noise=SnapshotNoise()).prepare(data)
        shares.append(share_of_outliers(prepared, ridge_unit(prepared)))
    assert shares[0] == 0.0
    wrong = (np.abs(data.states - x) > 0.5).any(axis=1).reshape(10, 30)
    spoiled = np.mean(wrong[:, 1:] | wrong[:, :-1])
    assert spoiled > 0.02
    assert shares[1] == pytest.approx(spoiled, rel=0.15)
    assert are_suspect(shares[1], 290)
    assert not are_suspect(0.004, 10_000)
    assert not are_suspect(0.02, 100)  # two: no telling


def test_long_tails_of_tiny_errors_are_no_outliers():
    """Clean swings: the rule errs most at the ends of trajectories, where stencils lean over."""
    data = vf.datasets.load("pendulum").train[[0, 3, 4, 5, 8, 11]]
    plan = vf.Plan(vf.kernels.Gaussian(3.7), rule=vf.occupation.Lagrange(4))
    prepared = plan.prepare(data)
    ridge = 1e-12 * ridge_unit(prepared)
    (fit,) = prepared.path([ridge])
    far = vf.Huber(threshold=5.0).weights(fit.residuals, prepared.occupations, prepared.covariance)
    assert are_suspect(float(np.mean(far < 1.0)), len(far))
    assert share_of_outliers(prepared, ridge) == 0.0


def test_with_outliers_a_search_takes_a_robust_loss():
    data, x = orbits(0.02)
    model = vf.MOCK(search=Search(folds=2)).fit(data)
    best = model.report_.best
    assert isinstance(best.plan.robust, vf.Huber)
    assert best.plan.refine is None
    plain = min((t for t in model.report_.trials if t.plan.robust is None), key=lambda t: t.score)
    prepared = plain.plan.prepare(data)
    field = prepared.solve(plain.level * ridge_unit(prepared)).field
    assert field_error(model.field_, x) < 0.3 * field_error(field, x)
    assert field_error(model.field_, x) < 0.05
    assert any(row["robust"].startswith("Huber") for row in model.report_.frame())


def test_without_outliers_none_is_tried_and_a_given_one_is_kept():
    data, _ = orbits(0.0, count=6)
    kernel = vf.kernels.Monomials(1)
    report = vf.MOCK(kernel, 1e-6, search=Search(folds=2)).fit(data).report_
    assert {t.plan.robust for t in report.trials} == {None}
    given = vf.Huber(threshold=2.0)
    report = vf.MOCK(kernel, 1e-6, robust=given, search=Search(folds=2)).fit(data).report_
    assert {t.plan.robust for t in report.trials} == {given}


def test_candidates_follow_what_is_known_of_the_data():
    assert White(power=2.0) not in candidates.noises(noisy=True)
    uneven = candidates.noises(noisy=True, even=False)
    assert uneven[0] == SnapshotNoise()
    assert {White(), White(power=1.0), White(power=2.0)} <= set(uneven)
    assert candidates.noises(noisy=False, even=False)[0] == White()
    kinds = {type(rule) for rule in candidates.rules(even=True, noisy=True)}
    assert {Trapezoid, Windows, WeakForm} <= kinds
    assert not {Windows, WeakForm} & {type(r) for r in candidates.rules(even=True, noisy=False)}
    data, _ = orbits(0.0, count=3)
    for rule in candidates.rules(even=True, noisy=True):  # each with the noise that suits it
        vf.Plan(vf.kernels.Monomials(1), 1e-4, rule=rule, noise=SnapshotNoise()).fit(data)


def test_on_uneven_steps_errors_that_grow_with_them_are_tried():
    rng = np.random.default_rng(0)
    t = np.cumsum(np.tile([0.05, 0.4], 12))
    x = vf.simulate(vf.systems.Linear(MATRIX), rng.normal(size=(3, 2)), t - t[0], rtol=1e-9).x
    model = vf.MOCK(vf.kernels.Monomials(1), 1e-6, search=Search(folds=2)).fit(list(x), t)
    assert {White(1.0), White(2.0)} <= {trial.plan.noise for trial in model.report_.trials}
