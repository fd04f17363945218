"""Searches: what is held out, how it is judged, and that what was chosen can be had again."""

import dataclasses
import warnings

import numpy as np
import pytest
import scipy.optimize

import vectorfield as vf
from vectorfield.kernels import Gaussian, Linear, Monomials, Nystrom, Polynomial, Separable
from vectorfield.occupation import Lagrange, SnapshotNoise, Trapezoid, White
from vectorfield.plan import Plan
from vectorfield.tuning import Both, OneStep, Rollout, Windowed, candidates
from vectorfield.tuning.bench import Bench, ridge_unit
from vectorfield.tuning.bundle import Bundle
from vectorfield.tuning.folds import Fold, blocks, folds, thin
from vectorfield.tuning.heldout import HeldOut, levels
from vectorfield.tuning.search import Search

OPEN = frozenset(("kernel", "ridge", "rule", "noise", "prior", "smoother", "refine"))


def orbits(count=8, samples=40, noise=0.0, seed=0):
    """Trajectories of a damped rotation at times 0.15 apart."""
    rng = np.random.default_rng(seed)
    matrix = np.array([[-0.1, 1.0], [-1.0, -0.1]])
    t = 0.15 * np.arange(samples)
    run = vf.simulate(vf.systems.Linear(matrix), rng.normal(size=(count, 2)), t, rtol=1e-10)
    xs = run.x + noise * rng.normal(size=run.x.shape)
    return vf.Trajectories.from_arrays(list(xs), t), matrix


def test_folds_hold_every_trajectory_out_once():
    data, _ = orbits(9)
    parts = folds(data, None, 4, random_state=3)
    held = sorted(int(i) for part in parts for i in part.held.ids)
    assert held == list(range(9))
    for part in parts:
        assert not set(part.train.ids) & set(part.held.ids)
        assert len(part.train) + len(part.held) == 9
    again = folds(data, None, 4, random_state=3)
    assert all(a.held.equals(b.held) for a, b in zip(parts, again, strict=True))


def test_validation_trajectories_are_the_only_fold():
    data, _ = orbits(4)
    (fold,) = folds(data, data[:1], 4)
    assert fold.train is data
    assert fold.held.equals(data[:1])
    other = dataclasses.replace(data[:1], feature_names=("a", "b"))
    with pytest.raises(vf.DataError, match="same columns in the same order"):
        folds(data, other, 4)


def test_one_long_trajectory_is_held_out_by_stretches_of_time():
    data, _ = orbits(1, 100)
    parts = folds(data, None, 3)
    assert len(parts) == 3
    rows = np.concatenate([x for part in parts for _, x in part.held])
    assert len(np.unique(rows, axis=0)) == len(rows) == 100
    with pytest.raises(vf.DataError, match="cannot be held out in part"):
        folds(vf.Trajectories.from_arrays(np.ones((2, 1)), 1.0), None, 4)


def test_thinning_keeps_about_the_steps_asked_for():
    data, _ = orbits(20, 21)
    assert thin(data, 10_000) is data
    assert 100 <= (thin(data, 100).lengths - 1).sum() <= 130
    single, _ = orbits(1, 500)
    assert 100 <= (thin(single, 100).lengths - 1).sum() <= 140
    assert (blocks(single, 7).lengths >= 2).all()


def test_objectives_are_geometric_means_over_levels():
    rng = np.random.default_rng(0)
    errors, null = rng.uniform(0.1, 1.0, (3, 7)), rng.uniform(1.0, 2.0, (3, 7))
    ratio = errors.sum(axis=1) / null.sum(axis=1)
    for objective, expected in (
        (Windowed(), np.prod(ratio) ** (1 / 3)),
        (Rollout(), ratio[2]),
        (OneStep(), ratio[0]),
        (Both(), np.sqrt(ratio[0] * ratio[2])),
    ):
        score, spread = objective.score(errors, null)
        assert score == pytest.approx(expected)
        left = []
        for i in range(7):
            rest = np.delete(errors, i, 1), np.delete(null, i, 1)
            left.append(objective.score(*rest)[0])
        expected_spread = np.sqrt(6 / 7 * np.sum((np.array(left) - np.mean(left)) ** 2))
        assert spread == pytest.approx(expected_spread)
    assert np.isnan(Windowed().score(errors[:, :1], null[:, :1])[1])


@pytest.mark.parametrize(
    "kernel",
    [Gaussian(1.5), Nystrom(Gaussian(1.5), 20), Monomials(2), Separable(Linear(), np.eye(2))],
    ids=["nodes", "nystrom", "monomials", "one by one"],
)
@pytest.mark.parametrize("drift", [None, vf.systems.VanDerPol()], ids=["alone", "drift"])
def test_a_bundle_is_its_fields_side_by_side(kernel, drift):
    data, _ = orbits(4)
    prepared = Plan(kernel, standardize=False).prepare(data)
    fields = [fit.expansion for fit in prepared.path([1e-3, 1e-5, 1e-7])]
    x = np.random.default_rng(0).normal(size=(50, 6))
    value = Bundle(fields, drift)(x).reshape(50, 3, 2)
    for r, one in enumerate(fields):
        part = x.reshape(50, 3, 2)[:, r]
        expected = one(part) if drift is None else one(part) + drift(part)
        np.testing.assert_allclose(value[:, r], expected, atol=1e-9 * np.abs(expected).max())


def test_errors_are_those_of_rollouts():
    data, _matrix = orbits(5, 31, noise=0.05)
    held = HeldOut(data, levels(data), np.ones(2))
    assert levels(data) == (2, 4, 11, 31)
    plan = Plan(Gaussian(2.0), rule=Lagrange(4))
    prepared = plan.prepare(data)
    fields = [fit.expansion for fit in prepared.path([1e-3, 1e-6])]
    found = held.errors(fields, prepared.shift, prepared.scale).sums
    for r, expansion in enumerate(fields):
        run = vf.rollout(prepared.field(expansion), data, rtol=1e-9)
        scores = vf.metrics.evaluate(data, run.x)
        np.testing.assert_allclose(found[r, -1], scores.errs, rtol=1e-3)
        assert (found[r, 0] > scores.one_errs).all()
    np.testing.assert_allclose(held.null()[-1], scores.null_errs)


def test_estimated_starts_leave_the_noise_alone():
    data, _matrix = orbits(20, 31, noise=0.1)
    truth = Plan(Linear(), 1e-12, standardize=False).fit(orbits(20, 31)[0]).field.expansion
    given, estimated = (
        HeldOut(data, (31,), np.ones(2), estimate).errors([truth], np.zeros(2), np.ones(2)).sums
        for estimate in (False, True)
    )
    floor = 0.1 * np.sqrt(2 * 31 * 0.15)  # noise alone
    assert abs(estimated.mean() - floor) < 0.05 * floor
    assert given.mean() > 1.2 * floor


def test_with_estimated_starts_the_null_model_has_its_best_start_too():
    data, _ = orbits(3, 31, noise=0.1)
    held = HeldOut(data, (31,), np.array([1.0, 2.0]), estimate=True)
    t, x = data[1]
    weights = np.concatenate([np.diff(t)[:1], np.diff(t)])[:, None]

    def err(start):
        return np.sqrt((weights * ((x - start) / np.array([1.0, 2.0])) ** 2).sum())

    best = scipy.optimize.minimize(err, x[0], tol=1e-10)
    assert held.null()[0, 1] == pytest.approx(best.fun)
    given = HeldOut(data, (31,), np.array([1.0, 2.0]))
    assert given.null()[0, 1] == pytest.approx(err_after_first(t, x))


def err_after_first(t, x):
    gaps = (x[1:] - x[0]) / np.array([1.0, 2.0])
    return np.sqrt((np.diff(t)[:, None] * gaps**2).sum())


def test_runaways_are_capped_and_failures_are_trials():
    data, _ = orbits(6)
    bench = Bench([Fold(data[:4], data[4:])], Windowed(), levels(data), np.ones(2), estimate=False)
    trials = bench.judge(Plan(Gaussian(1.0)), [1e-3, 1e-18], "x")
    assert trials[0].ok
    assert trials[0].score < 1.0
    failed = bench.judge(Plan(Gaussian((1.0, 2.0, 3.0))), [1e-3], "x")[0]
    assert not failed.ok
    assert "length_scale has 3 entries" in failed.status
    prepared = Plan(Gaussian(1.0)).prepare(data)
    assert ridge_unit(prepared) == pytest.approx(1e3 * prepared.default_ridge())


def test_length_scales_are_stretched_where_they_are_local():
    kernel = 2.0 * Linear(length_scale=3.0) + Gaussian((1.0, 2.0))
    assert candidates.lengths_of(kernel) == (1.0, 2.0)
    longer = candidates.stretched(kernel, 2.0)
    assert candidates.lengths_of(longer) == (2.0, 4.0)
    assert longer.left == kernel.left
    assert candidates.stretched(Polynomial(2), 5.0) == Polynomial(2)


@pytest.fixture(scope="module")
def clean():
    data, matrix = orbits(8)
    model = vf.MOCK(search=Search(folds=2)).fit(data)
    return data, matrix, model


def test_clean_data_are_learned_to_many_digits(clean):
    data, matrix, model = clean
    points = 0.5 * data.states
    assert np.abs(model.predict(points) - points @ matrix.T).max() < 1e-5
    assert model.report_.best.score < 1e-5
    assert not isinstance(model.report_.best.plan.rule, Trapezoid)
    assert model.report_.best.plan.refine is None


def test_what_was_chosen_can_be_had_again(clean):
    data, _, model = clean
    again = vf.MOCK(**model.report_.best.plan.get_params(deep=False))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vf.SolveWarning)  # with a search there is none
        again.fit(data)
    np.testing.assert_array_equal(again.predict(data.states), model.predict(data.states))
    assert not hasattr(again, "report_")


def test_the_report_says_what_was_tried(clean):
    _, _, model = clean
    report = model.report_
    text = str(report)
    assert "null model" in text
    assert "chosen: " in text
    rows = report.frame()
    assert len(rows) == len(report.trials)
    assert {"kernel", "score", "status", "prior"} <= set(rows[0])
    assert report.skill > 0.999
    assert min(t.score for t in report.trials) == report.best.score
    assert {t.plan.kernel for t in report.trials} > {Monomials(2, length_scale=np.sqrt(2))}


def test_what_is_given_is_not_changed():
    data, _ = orbits(6, 30, noise=0.05)
    model = vf.MOCK(
        Gaussian(3.0), 1e-4, rule=Lagrange(4), noise=White(), search=Search(folds=2)
    ).fit(data)
    plans = [trial.plan for trial in model.report_.trials]
    assert {p.kernel for p in plans} == {Gaussian(3.0)}
    assert {p.rule for p in plans} == {Lagrange(4)}
    assert {p.noise for p in plans} == {White()}
    assert model.ridge_ == 1e-4
    assert len({repr(p.prior) for p in plans}) > 1


def test_noise_is_seen_and_whole_windows_are_fitted():
    data, matrix = orbits(16, 40, noise=0.08)
    model = vf.MOCK(search=Search()).fit(data[:12], validation=data[12:])
    np.testing.assert_allclose(model.report_.noise, 0.08, rtol=0.2)
    plan = model.report_.best.plan
    assert plan.refine is not None
    assert plan.refine.ridge > 0
    assert isinstance(plan.noise, SnapshotNoise)
    x = orbits(16, 40)[0].states
    error = np.linalg.norm(model.predict(x) - x @ matrix.T) / np.linalg.norm(x @ matrix.T)
    assert error < 0.1
    assert any("snapshots are noisy" in note for note in model.report_.notes)
    assert model.report_.folds == 1


def test_random_walks_show_no_field():
    rng = np.random.default_rng(0)
    xs = [np.cumsum(rng.normal(size=(12, 2)), axis=0) for _ in range(12)]
    model = vf.MOCK(search=Search(folds=2))
    with pytest.warns(vf.SearchWarning, match="nothing is clearly better than the null") as caught:
        model.fit(xs, 1.0)
    assert len([w for w in caught if w.category is vf.SearchWarning]) == 1
    report = model.report_
    assert report.best.score > 0.8
    assert not report.beats_null
    assert report.verdict in report.notes
    assert f"score {report.best.score:.3g} +- {report.best.spread:.1g}" in report.verdict


def test_time_is_kept_and_wrong_settings_are_refused():
    data, _ = orbits(6, 30)
    report = vf.MOCK(search=Search(folds=2, max_time=1e-3)).fit(data).report_
    assert len(report.trials) <= 20
    assert any("max_time" in note for note in report.notes)
    for wrong, error in (
        ({"folds": 1}, ValueError),
        ({"max_time": 0.0}, ValueError),
        ({"objective": "err"}, TypeError),
        ({"random_state": -1}, ValueError),
    ):
        with pytest.raises(error, match="must be"):
            Search(**wrong)
    with pytest.raises(ValueError, match=r"validation trajectories are for a search"):
        vf.MOCK(Gaussian(1.0), 1e-3).fit(data, validation=data)
    with pytest.raises(TypeError, match=r"search must be a Search"):
        vf.MOCK(search="auto").fit(data)


def test_the_same_search_twice_is_the_same():
    data, _ = orbits(5, 20, noise=0.05)
    search = Search(folds=2)
    plan = Plan(Gaussian(), rule=Trapezoid(), noise=White())
    first, second = (search(plan, frozenset(("ridge",)), data) for _ in range(2))
    assert [t.score for t in first.trials] == [t.score for t in second.trials]
    assert first.best.plan == second.best.plan
    assert first.best.plan.kernel.length_scale is not None


def test_a_law_that_was_asked_for_is_kept():
    data, _ = orbits(6, 30, noise=0.02)
    model = vf.MOCK(vf.kernels.DivergenceFree(Gaussian(2.0)), search=Search(folds=2)).fit(data)
    assert {trial.plan.prior for trial in model.report_.trials} == {None}
    jacobian = model.field_.jacobian(data.states[:20])
    assert np.abs(np.trace(jacobian, axis1=1, axis2=2)).max() < 1e-10 * np.abs(jacobian).max()


def test_pairs_without_a_field_are_not_made_worse():
    xs = [np.random.default_rng(i).normal(size=(2, 3)) for i in range(12)]
    report = vf.MOCK(search=Search()).fit(xs, 1.0).report_
    assert report.best.score < 1.1
    assert all(1e-18 <= trial.level <= 1e8 for trial in report.trials)
