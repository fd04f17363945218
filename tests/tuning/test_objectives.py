"""Objectives: scores against refits and dense densities, and a whole search with each."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import vectorfield as vf
from vectorfield.kernels import DivergenceFree, Gaussian, Monomials, Nystrom
from vectorfield.occupation import Lagrange, SnapshotNoise, Trapezoid, WeakForm, White, Windows
from vectorfield.tuning import (
    Both,
    LeftOut,
    MarginalLikelihood,
    OneStep,
    Rollout,
    Search,
    Windowed,
)
from vectorfield.tuning.bench import Bench, ridge_unit
from vectorfield.tuning.folds import folds
from vectorfield.tuning.heldout import levels

MATRIX = np.array([[-0.1, 1.0], [-1.0, -0.1]])
OBJECTIVES = [Windowed(), Rollout(), OneStep(), Both(), LeftOut(), MarginalLikelihood()]
LADDER = [10.0**k for k in range(3, -7, -1)]


def orbits(count=8, samples=30, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    t = 0.15 * np.arange(samples)
    x = vf.simulate(vf.systems.Linear(MATRIX), rng.normal(size=(count, 2)), t, rtol=1e-9).x
    xs = list(x + noise * rng.normal(size=x.shape))
    return vf.Trajectories.from_arrays(xs, t), x.reshape(-1, 2)


def bench(data, objective):
    unit = np.ones(data.d)
    splits = folds(data, None, 2)
    return Bench(splits, objective, levels(data), unit, estimate=False, data=data)


def field_error(field, x):
    return np.linalg.norm(field(x) - x @ MATRIX.T) / np.linalg.norm(x @ MATRIX.T)


@pytest.mark.parametrize("metric", [None, White()], ids=["own", "white"])
@pytest.mark.parametrize("noise", [White(), SnapshotNoise()], ids=repr)
@pytest.mark.parametrize("prior", [None, vf.prior.Known(lambda x: -x)], ids=["zero", "prior"])
def test_left_out_scores_are_those_of_refits(metric, noise, prior):
    data, _ = orbits(5, 12)
    plan = vf.Plan(Gaussian(1.5), noise=noise, prior=prior, standardize=False)
    objective = LeftOut(metric, pieces=5)
    (trial,) = bench(data, objective).judge(plan, [0.1], "x")
    whole = plan.prepare(data)
    shift = 0.1 * ridge_unit(whole) * len(whole.occupations)
    above = below = 0.0
    for b in range(len(data)):
        rest = data[np.delete(np.arange(len(data)), b)]
        count = int((rest.lengths - 1).sum())
        field = plan.prepare(rest).solve(shift / count).field
        own = Trapezoid()(data[b : b + 1])
        sigma = (noise if metric is None else metric).covariance(own).toarray()
        error = own.targets - own.weights @ field(own.nodes)
        above += np.sum(error * np.linalg.solve(sigma, error))
        below += np.sum(own.targets * np.linalg.solve(sigma, own.targets))
    assert trial.status == "ok"
    assert trial.score == pytest.approx(np.sqrt(above / below), rel=1e-7)
    assert trial.errors.sum() == pytest.approx(above, rel=1e-7)
    assert 0 < trial.spread < trial.score


@pytest.mark.parametrize("noise", [White(), SnapshotNoise()], ids=repr)
def test_likelihoods_are_beside_that_of_white_noise_alone(noise):
    data, _ = orbits(3, 9)
    plan = vf.Plan(Gaussian(1.5), noise=noise, rule=Lagrange(4), standardize=False)
    (trial,) = bench(data, MarginalLikelihood()).judge(plan, [0.1], "x")
    fit = plan.prepare(data)
    y, w = fit.occupations.targets, fit.occupations.weights.toarray()
    every = slice(0, len(fit.occupations.nodes))
    gram = w @ Gaussian(1.5).bind(fit.occupations.nodes)(fit.occupations.nodes)(every, every) @ w.T
    shift = 0.1 * ridge_unit(fit) * len(y)
    covariance = fit.covariance.toarray() + gram / shift
    variance = np.sum(y * np.linalg.solve(covariance, y)) / y.size
    own = multivariate_normal(cov=variance * covariance)
    null = multivariate_normal(cov=np.mean(y**2) * np.eye(len(y)))
    gap = sum(null.logpdf(column) - own.logpdf(column) for column in y.T) / y.size
    assert trial.score == pytest.approx(np.exp(gap), rel=1e-8)


@pytest.mark.parametrize("objective", [LeftOut(), MarginalLikelihood()], ids=repr)
@pytest.mark.parametrize(
    "kernel",
    [Gaussian(2.0), Nystrom(Gaussian(2.0), 40), Monomials(3), DivergenceFree(Gaussian(2.0))],
    ids=["exact", "nystrom", "monomials", "coupled"],
)
def test_the_ridge_is_near_the_best_one_for_every_kind_of_kernel(objective, kernel):
    data, x = orbits()
    plan = vf.Plan(kernel, noise=SnapshotNoise())
    trials = bench(data, objective).judge(plan, LADDER, "x")
    fit = plan.prepare(data)
    errors = [field_error(fit.solve(k * ridge_unit(fit)).field, x) for k in LADDER]
    chosen = int(np.argmin([t.score for t in trials]))
    assert trials[chosen].score < 1.0
    assert errors[chosen] < 1.5 * min(errors)
    assert errors[chosen] < 0.5 * max(errors)


def test_ridges_below_rounding_and_plans_that_fail_are_trials():
    data, _ = orbits(4, 10)
    for objective in (LeftOut(), MarginalLikelihood()):
        own = bench(data, objective)
        good, lost = own.judge(vf.Plan(Gaussian(4.0)), [1e-2, 1e-25], "x")
        assert good.ok
        assert (lost.ok, lost.status) == (False, "lost in rounding")
        (failed,) = own.judge(vf.Plan(Gaussian((1.0, 2.0, 3.0))), [1e-2], "x")
        assert "length_scale has 3 entries" in failed.status


def test_few_trajectories_are_cut_and_large_data_thinned():
    data, _ = orbits(1, 81)
    (trial,) = bench(data, LeftOut()).judge(vf.Plan(Gaussian(2.0)), [1e-1], "x")
    assert trial.errors.shape[0] == 1
    assert 6 <= trial.errors.shape[1] <= 10
    data, _ = orbits(20, 21)
    own = bench(data, LeftOut(most=100))
    assert own.judge(vf.Plan(Gaussian(2.0)), [1e-1], "x")[0].observations <= 130
    coupled = vf.Plan(DivergenceFree(Gaussian(2.0)))
    assert own.judge(coupled, [1e-1], "x")[0].observations <= 70
    assert own.judge(coupled, [1e-1], "x", steps=40)[0].observations <= 60


def test_the_least_sum_of_ranks_is_first_and_failures_last():
    ratios = [(0.1, 0.9), (0.2, 0.3), (np.inf, np.inf), (0.4, 0.2), (0.3, 0.4)]
    trials = [
        SimpleNamespace(ok=bool(np.isfinite(a)), score=np.sqrt(a * b), ratios=(a, 7.0, b))
        for a, b in ratios
    ]
    # ranks: 1 + 4, 2 + 2, -, 4 + 1, 3 + 3; the tie of the first and the fourth goes by score
    assert Both().order(trials) == [1, 3, 0, 4, 2]
    assert Windowed().order(trials) == [1, 3, 0, 4, 2]
    assert Both().order(trials[2:3]) == [0]


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: type(o).__name__)
def test_a_whole_search_finds_a_field_with_each_and_repeats(objective):
    data, x = orbits(6, 24)
    kernel = Nystrom(Gaussian(3.0), 40)
    reports = []
    for _ in range(2):
        model = vf.MOCK(
            kernel, rule=Trapezoid(), smoother=None, search=Search(objective, folds=2)
        ).fit(data)
        reports.append(model.report_)
    first, second = reports
    assert [t.score for t in first.trials] == [t.score for t in second.trials]
    assert first.best.plan == second.best.plan
    assert first.best.score < 1.0
    assert all(0 < r < 1.5 for r in first.best.ratios)  # followed on held-out windows, by all
    assert first.skill > 0.4
    assert field_error(model.field_, x) < 0.25
    assert model.ridge_ > 0


def test_what_an_objective_cannot_compare_is_not_varied():
    data, _ = orbits(6, 24)
    report = vf.MOCK(Monomials(1), 1e-4, search=Search(MarginalLikelihood())).fit(data).report_
    plans = [trial.plan for trial in report.trials]
    assert {(p.smoother, p.refine, p.robust) for p in plans} == {(None, None, None)}
    assert len({p.noise for p in plans}) > 1
    assert not any(isinstance(p.rule, (Windows, WeakForm)) for p in plans)
    report = vf.MOCK(Monomials(1), 1e-4, search=Search(LeftOut())).fit(data).report_
    assert {t.plan.noise for t in report.trials} == {SnapshotNoise()}
    report = vf.MOCK(Monomials(1), 1e-4, search=Search(LeftOut(White()))).fit(data).report_
    assert len({t.plan.noise for t in report.trials}) > 1
    with pytest.raises(ValueError, match=r"LeftOut judges linear fits, and robust=Huber"):
        vf.MOCK(robust=vf.Huber(), search=Search(LeftOut())).fit(data)
    for wrong, error in (({"metric": "white"}, TypeError), ({"pieces": 1}, ValueError)):
        with pytest.raises(error, match="must be"):
            LeftOut(**wrong)
    with pytest.raises(ValueError, match="most must be at least 10"):
        MarginalLikelihood(most=1)


def test_data_that_do_not_move_have_the_score_of_the_null_model():
    data, _ = orbits(8, 10)
    still = replace(data, states=np.ones_like(data.states))
    for objective in (LeftOut(), MarginalLikelihood()):
        (trial,) = bench(still, objective).judge(vf.Plan(Gaussian(1.0)), [1e-2], "x")
        assert trial.score in (0.0, 1.0, pytest.approx(0.0, abs=1e-7))


@pytest.mark.parametrize("objective", [LeftOut(), MarginalLikelihood()], ids=repr)
def test_a_study_keeps_the_trials_of_closed_forms_too(objective, tmp_path):
    pytest.importorskip("optuna")
    data, _ = orbits(6, 12)
    search = Search(objective, study=vf.tuning.Study(tmp_path / "trials.db"))
    model = vf.MOCK(Monomials(1), 1e-4, noise=White(), search=search)
    first, again = (model.fit(data).report_ for _ in range(2))
    assert [t.score for t in first.trials] == [t.score for t in again.trials]
    assert [t.seconds for t in first.trials] == [t.seconds for t in again.trials]  # not judged
    assert first.best.plan == again.best.plan
    assert first.best.ratios == again.best.ratios
