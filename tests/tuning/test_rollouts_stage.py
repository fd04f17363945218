"""The stage of a search that refines on rollouts: when it is tried, kept, and what it leaves."""

import dataclasses

import numpy as np
import pytest

import vectorfield as vf
from vectorfield.kernels import Gaussian, Nystrom
from vectorfield.occupation import Trapezoid, White
from vectorfield.tuning import Windowed
from vectorfield.tuning.bench import Bench
from vectorfield.tuning.folds import folds
from vectorfield.tuning.stages.rollouts import ITERATIONS

KERNEL = Nystrom(Gaussian(1.5), 30)
GIVEN = {
    "kernel": KERNEL,
    "rule": Trapezoid(),
    "noise": White(),
    "prior": vf.prior.MeanReverting(0.3),
}


def reverting(count, seed):
    """Short trajectories back to zero, with noise in the dynamics and in the snapshots."""
    rng = np.random.default_rng(seed)
    xs, ts = [], []
    for number in range(count):
        t = 0.5 * np.arange(4 + number % 5)
        x = [3.0 * rng.normal(size=2)]
        for _ in t[1:]:
            x.append(np.exp(-0.3) * x[-1] + 0.35 * rng.normal(size=2))
        xs.append(np.array(x) + 0.2 * rng.normal(size=(len(t), 2)))
        ts.append(t)
    return vf.Trajectories.from_arrays(xs, ts)


def test_a_path_of_iterations_is_judged_as_its_plans_are():
    data = reverting(24, 0)
    bench = Bench(folds(data, None, 3), Windowed(), (2, 5), np.ones(2), estimate=False)
    plan = vf.Plan(**GIVEN, refine=vf.Rollouts(starts=2))
    path = bench.follow_path(plan, 0.1, (0, 2, 4, 7, 9), "path", Windowed().score)
    for trial, iterations in zip(path, (0, 2, 4, 7, 9), strict=True):
        assert trial.plan.refine == vf.Rollouts(iterations, starts=2)
        (alone,) = bench.judge(trial.plan, [0.1], "alone")
        np.testing.assert_array_equal(alone.errors, trial.errors)
        assert alone.refined_level is trial.refined_level is None
    (plain,) = bench.judge(dataclasses.replace(plan, refine=None), [0.1], "alone")
    np.testing.assert_allclose(plain.errors, path[0].errors, rtol=1e-9)  # solved by another way
    other = dataclasses.replace(plan, refine=vf.Shooting())
    with pytest.raises(TypeError, match="must be Rollouts"):
        bench.follow_path(other, 0.1, (1,), "path", Windowed().score)


def test_a_biased_fit_is_refined_and_the_plan_repeats_it():
    data, held = reverting(60, 0), reverting(200, 1)
    search = vf.Search(folds=3)
    model = vf.MOCK(**GIVEN, ridge=1e-6, search=search).fit(data)
    best = model.report_.best
    assert isinstance(best.plan.refine, vf.Rollouts)
    assert best.plan.refine.iterations in ITERATIONS
    assert best.plan.ridge == 1e-6
    tried = [t for t in model.report_.trials if t.stage == "rollouts"]
    assert [t.plan.refine.iterations for t in tried] == list(ITERATIONS)
    assert best.score == min(t.score for t in tried) < model.report_.runner_up.score
    assert model.report_.runner_up.plan.refine is None
    again = vf.MOCK(**best.plan.get_params(deep=False)).fit(data)
    np.testing.assert_array_equal(again.predict(data.states), model.predict(data.states))
    plain = vf.MOCK(**GIVEN, ridge=1e-6).fit(data)
    assert model.score(held) > plain.score(held) + 0.05
    assert "Rollouts(" in str(model.report_)


def test_data_that_are_tracked_are_left_alone():
    t = np.linspace(0.0, 6.0, 61)
    xs = [a * np.stack([np.cos(t), -np.sin(t)], axis=1) for a in (0.5, 1.0, 1.5, 2.0)]
    report = vf.MOCK(Gaussian(1.0), search=vf.Search(folds=2)).fit(xs, t).report_
    assert report.best.plan.refine is None
    assert not any(t.stage == "rollouts" for t in report.trials)


def test_a_refinement_that_is_given_is_kept():
    data = reverting(30, 0)
    given = vf.Rollouts(5)
    model = vf.MOCK(**GIVEN, ridge=1.0, refine=given, search=vf.Search(folds=2)).fit(data)
    assert model.report_.best.plan.refine == given
    assert model.report_.best.refined_level is None
    again = vf.MOCK(**model.report_.best.plan.get_params(deep=False)).fit(data)
    np.testing.assert_array_equal(again.predict(data.states), model.predict(data.states))


@pytest.mark.filterwarnings("ignore:nothing is clearly better")  # few data, short of three errors
def test_a_study_keeps_the_path(tmp_path):
    pytest.importorskip("optuna")
    data = reverting(30, 0)
    study = vf.tuning.Study(tmp_path / "search.db")
    model = vf.MOCK(**GIVEN, ridge=1e-6, search=vf.Search(folds=2, study=study))
    first, again = (model.fit(data).report_ for _ in range(2))
    path = [[t for t in report.trials if t.stage == "rollouts"] for report in (first, again)]
    assert len(path[0]) == len(ITERATIONS)
    for one, two in zip(*path, strict=True):
        assert one.plan == two.plan
        assert one.seconds == two.seconds  # not judged again
        np.testing.assert_array_equal(one.errors, two.errors)
    assert first.best.plan == again.best.plan
