"""The paper's procedure: near the optimum of a grid, and honest about what failed."""

import sys

import numpy as np
import pytest

import vectorfield as vf
from vectorfield.kernels import Gaussian, Laplace, Linear
from vectorfield.occupation import Lagrange, Trapezoid, White
from vectorfield.plan import Plan
from vectorfield.tuning import BayesianSearch, OneStep, Rollout, Study
from vectorfield.tuning.bench import Bench, ridge_unit
from vectorfield.tuning.folds import Fold

pytest.importorskip("skopt")


def test_it_comes_near_the_optimum_of_a_grid(orbits):
    train, held = orbits(6, 20, noise=0.1), orbits(4, 20, noise=0.1, seed=1)
    search = BayesianSearch(evaluations=24, initial=10, random_state=1)
    model = vf.MOCK(search=search).fit(train, validation=held)
    report, plan = model.report_, model.report_.best.plan
    assert (type(plan.kernel), plan.rule, plan.noise) == (Gaussian, Trapezoid(), White())
    assert (plan.prior, plan.smoother, plan.refine) == (None, None, None)
    assert len(report.trials) == 24

    bench = Bench([Fold(train, held)], Rollout(), (2, 20), train.states.std(axis=0), estimate=False)
    grid = []
    for length in 10.0 ** np.linspace(-1.0, 2.0, 10):
        candidate = Plan(Gaussian(length))
        unit = ridge_unit(candidate.prepare(train))
        levels = 10.0 ** np.arange(-12.0, 0.0, 2.0) / unit
        grid += [bench.judge(candidate, [v], "grid", whole=True)[0].score for v in levels]
    assert report.best.score <= 1.05 * min(grid)
    assert np.median(grid) > 1.2 * min(grid)  # not every choice would do


def test_its_score_is_the_error_of_rollouts_of_the_model_it_names(orbits):
    train, held = orbits(6, 20), orbits(4, 20, seed=1)
    search = BayesianSearch(evaluations=3, initial=3)
    model = vf.MOCK(search=search).fit(train, validation=held)
    run = vf.rollout(model.field_, held, rtol=1e-9)
    unit = train.states.std(axis=0)
    scaled = vf.Trajectories.from_arrays([x / unit for _, x in held], [t for t, _ in held])
    scores = vf.metrics.evaluate(scaled, [x / unit for x in run.x])
    assert model.report_.best.score == pytest.approx(scores.err / scores.null_err, rel=1e-2)
    assert model.report_.skill == pytest.approx(1.0 - model.report_.best.score)
    again = vf.MOCK(**model.report_.best.plan.get_params(deep=False)).fit(train)
    np.testing.assert_array_equal(again.predict(held.states), model.predict(held.states))


def test_what_is_given_stays(orbits):
    data = orbits()
    search = BayesianSearch(evaluations=3, initial=3, folds=2, objective=OneStep())
    model = vf.MOCK(Laplace(), rule=Lagrange(4), search=search).fit(data)
    plans = [trial.plan for trial in model.report_.trials]
    assert {type(plan.kernel) for plan in plans} == {Laplace}
    assert {plan.rule for plan in plans} == {Lagrange(4)}
    assert len({plan.kernel.length_scale for plan in plans}) == 3
    kernel = 0.5 * Linear(1.0) + Gaussian(2.0)
    report = vf.MOCK(kernel, search=search).fit(data).report_
    assert {trial.plan.kernel for trial in report.trials} == {kernel}
    assert len({trial.level for trial in report.trials}) == 3
    report = vf.MOCK(kernel, 1e-3, search=search).fit(data).report_
    assert [trial.plan.ridge for trial in report.trials] == [1e-3]
    report = vf.MOCK(Linear(), 1e-3, search=search).fit(data).report_
    lengths = [trial.plan.kernel.length_scale for trial in report.trials]
    assert all(0.05 <= length <= 200.0 for length in lengths)
    assert report.best.plan.ridge == 1e-3


def fails(x):
    raise ValueError("outside of what is known")


def test_failures_are_trials_and_do_not_end_it(orbits):
    data = orbits()
    search = BayesianSearch(evaluations=4, initial=2, folds=2)
    plan = Plan(prior=vf.prior.Known(fails))
    report = search(plan, frozenset(("ridge",)), data)
    assert [t.status for t in report.trials] == ["ValueError: outside of what is known"] * 4
    assert any("no plan could be fitted" in note for note in report.notes)
    wide = BayesianSearch(evaluations=6, initial=6, folds=2, ridges=(1e-30, 1e-25))
    report = wide(Plan(), frozenset(("ridge",)), data)
    assert len(report.trials) == 6
    assert all(t.ok or t.status != "ok" for t in report.trials)


def test_one_seed_gives_one_search_and_a_study_goes_on(orbits, same_reports, tmp_path):
    pytest.importorskip("optuna")
    data = orbits()
    options = {"initial": 3, "folds": 2, "random_state": 4}
    study = Study(tmp_path / "a.db")
    left_open = frozenset(("ridge",))
    short = BayesianSearch(evaluations=4, study=study, **options)(Plan(), left_open, data)
    longer = BayesianSearch(evaluations=6, study=study, **options)(Plan(), left_open, data)
    plain = BayesianSearch(evaluations=6, **options)(Plan(), left_open, data)
    same_reports(longer, plain)
    assert [t.seconds for t in longer.trials[:4]] == [t.seconds for t in short.trials]
    other = BayesianSearch(evaluations=6, **{**options, "random_state": 5})(Plan(), left_open, data)
    assert [t.level for t in other.trials] != [t.level for t in plain.trials]


def test_time_is_kept_and_ends_are_named(orbits):
    data = orbits()
    search = BayesianSearch(evaluations=20, initial=20, folds=2, max_time=1e-6)
    report = search(Plan(), frozenset(("ridge",)), data)
    assert len(report.trials) == 1
    assert any("max_time" in note for note in report.notes)
    narrow = BayesianSearch(evaluations=12, initial=4, folds=2, ridges=(1e-2, 1.0))
    report = narrow(Plan(Gaussian(2.0)), frozenset(("ridge",)), data)
    assert report.best.plan.ridge < 1.1e-2
    assert report.notes[-1] == "the best ridge lies at the end of its range: widen ridges"


def test_wrong_settings_are_refused(monkeypatch):
    for wrong, error, message in (
        ({"evaluations": 0}, ValueError, "evaluations must be at least 1"),
        ({"evaluations": 5, "initial": 6}, ValueError, "initial must be at most evaluations = 5"),
        ({"objective": "err"}, TypeError, "objective must be an Objective"),
        ({"ridges": (1.0, 0.1)}, ValueError, "ridges must be a finite number > 1"),
        ({"length_scales": [1.0, 2.0]}, TypeError, "length_scales must be a pair"),
        ({"folds": 1}, ValueError, "folds must be at least 2"),
        ({"study": "a.db"}, TypeError, "study must be a Study"),
    ):
        with pytest.raises(error, match=message):
            BayesianSearch(**wrong)
    monkeypatch.setitem(sys.modules, "skopt", None)
    with pytest.raises(vf.MissingExtraError, match=r"vectorfield\[bayes\]"):
        vf.MOCK(search=BayesianSearch()).fit(np.ones((10, 1)), 1.0)
