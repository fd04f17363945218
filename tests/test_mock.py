"""`MOCK` as users meet it: scikit-learn's manners, any data that makes sense, the same result."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import vectorfield as vf
from vectorfield.kernels import Constant, Gaussian, Linear, Matern, Polynomial, Separable
from vectorfield.linalg import Dense, Status
from vectorfield.occupation import Lagrange, SnapshotNoise, Spline, Trapezoid, White, Windows


def spiral(x: np.ndarray) -> np.ndarray:
    """A stable limit cycle of radius 1."""
    r2 = np.sum(x**2, axis=1, keepdims=True)
    return x * (1 - r2) + np.stack([-x[:, 1], x[:, 0]], axis=1)


def data(n: int = 8, seed: int = 0) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Ragged, irregular, exact trajectories of the spiral."""
    rng = np.random.default_rng(seed)
    starts = rng.uniform(-1.5, 1.5, size=(n, 2))
    ts = [np.cumsum(rng.uniform(0.05, 0.2, size=k)) for k in rng.integers(20, 40, size=n)]
    return vf.simulate(spiral, starts, ts, rtol=1e-10).x, ts


def places(n: int = 20) -> np.ndarray:
    return np.random.default_rng(9).uniform(-1.0, 1.0, size=(n, 2))


SETTINGS = {
    "default": {"search": False},
    "everything": {
        "kernel": Separable(0.5 * Gaussian(0.8) + Linear(), [[1.0, 0.2], [0.2, 0.7]]),
        "ridge": 1e-6,
        "rule": Lagrange(4),
        "noise": SnapshotNoise(),
        "standardize": False,
        "solver": Dense("float64"),
    },
    "prior": {"kernel": Gaussian(0.7), "ridge": 1e-5, "prior": vf.prior.LinearPrior()},
    "windows": {
        "kernel": Matern(2.5),
        "rule": Windows(4, Spline(2)),
        "noise": SnapshotNoise(),
        "search": False,
    },
}


@pytest.fixture(params=SETTINGS)
def model(request: pytest.FixtureRequest) -> vf.MOCK:
    return vf.MOCK(**SETTINGS[request.param])


# scikit-learn's manners


def test_get_and_set_params_nested():
    kernel = Gaussian(1.0) + 2.0 * Matern(1.5, 0.5)
    model = vf.MOCK(kernel, rule=Lagrange(4), search=False)
    params = model.get_params()
    assert params["kernel"] is kernel
    assert params["kernel__left__length_scale"] == 1.0
    assert params["kernel__right__kernel__nu"] == 1.5
    assert params["rule__samples"] == 4
    assert set(model.get_params(deep=False)) == {
        "kernel", "ridge", "rule", "noise", "standardize", "solver", "prior", "robust", "smoother",
        "refine", "blend", "search", "structure",
    }  # fmt: skip
    returned = model.set_params(
        kernel__left__length_scale=3.0, kernel__right__factor=5.0, rule__samples=6, ridge=1e-3
    )
    assert returned is model
    assert model.kernel == Gaussian(3.0) + 5.0 * Matern(1.5, 0.5)
    assert model.rule == Lagrange(6)
    assert model.ridge == 1e-3
    assert kernel == Gaussian(1.0) + 2.0 * Matern(1.5, 0.5)  # the caller's is as it was


def test_a_new_kernel_and_its_setting_at_once():
    model = vf.MOCK(Gaussian(1.0), search=False).set_params(kernel__nu=3.5, kernel=Matern(1.5, 2.0))
    assert model.kernel == Matern(3.5, 2.0)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"kernal": 1}, "Invalid parameter 'kernal'"),
        ({"kernal__nu": 1}, "Invalid parameter 'kernal'"),
        ({"kernel__nu": 1.5}, r"Gaussian has no parameter 'nu'; it has \['length_scale'\]"),
        ({"kernel__length_scale": -1.0}, "length_scale must be a finite number > 0"),
        ({"rule__samples": 4}, "rule is None and has no parameters to set; set rule first"),
    ],
)
def test_bad_parameters_are_refused(params, message):
    model = vf.MOCK(Gaussian(1.0), search=False)
    with pytest.raises(ValueError, match=message):
        model.set_params(**params)
    assert model.kernel == Gaussian(1.0)


def test_the_constructor_only_stores():
    model = vf.MOCK("nonsense", ridge=-1, rule=3)
    assert (model.kernel, model.ridge, model.rule) == ("nonsense", -1, 3)
    assert repr(vf.MOCK()) == "MOCK()"
    assert repr(vf.MOCK(Linear(), 1e-3)) == "MOCK(kernel=Linear(length_scale=1.0), ridge=0.001)"
    assert "MOCK" in vf.MOCK(Gaussian(1.0), search=False)._repr_html_()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": "Gaussian"}, "kernel must be a kernel such as .*, got 'Gaussian'"),
        ({"kernel": Gaussian}, "kernel must be a kernel such as .*, got <class"),
        ({"ridge": 0.0}, "ridge must be a finite number > 0, got 0.0"),
        ({"ridge": math.nan}, "ridge must be a finite number > 0, got nan"),
        ({"ridge": "small"}, "ridge must be a number, got 'small'"),
        ({"rule": "trapezoid"}, "rule must be a Rule .*, got 'trapezoid'"),
        ({"rule": Trapezoid}, "rule must be a Rule .*, got <class"),
        ({"noise": 0.1}, "noise must be a Noise .*, got 0.1"),
        ({"solver": "dense"}, "solver must be a Solver .*, got 'dense'"),
        ({"prior": "linear"}, "prior must be a Prior .*, got 'linear'"),
        ({"robust": True}, "robust must be a Huber .*, got True"),
        ({"smoother": 0.1}, "smoother must be a Smoother .*, got 0.1"),
        ({"standardize": "yes"}, "standardize must be True or False, got 'yes'"),
        ({"kernel": Gaussian((1.0, 2.0, 3.0))}, "length_scale has 3 entries but the states have 2"),
        ({"kernel": Separable(Linear(), np.eye(3))}, "matrix is 3 x 3 but the states have 2"),
    ],
)
def test_bad_settings_are_refused_by_fit(settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        vf.MOCK(**{"search": False, **settings}).fit(*data(2))


def test_clone(model):
    xs, ts = data(3)
    model.fit(xs, ts)
    other = clone(model)
    assert other.get_params() == model.get_params()
    assert not hasattr(other, "field_")
    np.testing.assert_array_equal(other.fit(xs, ts).predict(places()), model.predict(places()))


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_and_pickles(model, copier):
    xs, ts = data(3)
    unfitted = copier(model)
    assert unfitted.get_params() == model.get_params()
    model.fit(xs, ts)
    model.predict(places())
    other = copier(model)
    np.testing.assert_array_equal(other.predict(places()), model.predict(places()))
    np.testing.assert_array_equal(other.field_.jacobian(places()), model.field_.jacobian(places()))
    assert other.score(xs, ts) == model.score(xs, ts)
    assert other.solution_.status is model.solution_.status
    assert other.ridge_ == model.ridge_


def test_methods_need_a_fit():
    model = vf.MOCK(search=False)
    xs, ts = data(2)
    for call in (
        lambda: model.predict(places()),
        lambda: model.simulate(xs[0][0], ts[0]),
        lambda: model.score(xs, ts),
        lambda: model.save("nowhere.vf"),
    ):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            call()


def test_a_fit_that_failed_is_no_fit():
    model = vf.MOCK(Gaussian(10.0), ridge=1e-30, standardize=False)
    with pytest.raises(vf.SolveError):
        model.fit(np.linspace(1.0, 1.001, 60)[:, None], 0.1)
    with pytest.raises(NotFittedError):
        model.predict([[1.0]])


def test_a_refit_that_failed_leaves_nothing_of_the_old_fit():
    model = vf.MOCK(Gaussian(10.0), standardize=False, search=False)
    model.fit(np.linspace(1.0, 2.0, 60)[:, None], 0.1)
    with pytest.raises(vf.SolveError):
        model.set_params(ridge=1e-30).fit(np.linspace(1.0, 1.001, 60)[:, None], 0.1)
    with pytest.raises(NotFittedError):
        model.predict([[1.0]])


def test_fitted_attributes():
    xs, ts = data(3)
    model = vf.MOCK(search=False).fit(xs, ts)
    count = sum(len(t) - 1 for t in ts)
    assert model.residuals_.shape == (count, 2)
    assert model.n_features_in_ == 2
    assert model.feature_names_in_.tolist() == ["x0", "x1"]
    assert model.kernel_.kernel.length_scale > 0
    assert model.ridge_ > 0
    assert model.rkhs_norm_ > 0
    assert model.solution_.status is Status.SOLVED
    assert dict(model.field_.info) == {
        "ridge": model.ridge_, "rule": "Trapezoid()", "noise": repr(White()), "observations": count,
    }  # fmt: skip
    assert model.fit(xs[:1], ts[:1]).residuals_.shape == (len(ts[0]) - 1, 2)  # nothing is kept


GRID = {"kernel__length_scale": [0.05, 1.0], "ridge": [1e-6, 1e2]}


def test_grid_search_over_a_list_of_trajectories():
    xs, ts = data()
    search = GridSearchCV(vf.MOCK(Gaussian(1.0), search=False), GRID, cv=KFold(4)).fit(xs, ts)
    assert search.best_params_ == {"kernel__length_scale": 1.0, "ridge": 1e-6}
    assert search.best_score_ > 0.8
    assert search.best_estimator_.kernel == Gaussian(1.0)
    assert search.score(xs, ts) > 0.9
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_grid_search_over_trajectories():
    xs, ts = data()
    trajectories = vf.Trajectories.from_arrays(xs, ts, feature_names=["a", "b"])
    search = GridSearchCV(vf.MOCK(Gaussian(1.0), search=False), GRID, cv=KFold(4)).fit(trajectories)
    lists = GridSearchCV(vf.MOCK(Gaussian(1.0), search=False), GRID, cv=KFold(4)).fit(xs, ts)
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], lists.cv_results_["mean_test_score"]
    )
    assert search.best_estimator_.feature_names_in_.tolist() == ["a", "b"]


def test_search_over_kernels_rules_and_noise():
    xs, ts = data(4)
    kernel = Gaussian(1.0)
    grid = {
        "kernel": [kernel, Matern(1.5, 1.0), Polynomial(3)],
        "rule": [Trapezoid(), Lagrange(4)],
        "noise": [White(), None],
    }
    search = GridSearchCV(vf.MOCK(ridge=1e-6, search=False), grid, cv=2).fit(xs, ts)
    assert search.best_params_["rule"] in grid["rule"]
    assert search.best_params_["kernel"] == Polynomial(3)  # it holds the spiral
    assert kernel == Gaussian(1.0)


def test_cross_val_score():
    scores = cross_val_score(vf.MOCK(search=False), *data(6), cv=3)
    assert scores.shape == (3,)
    assert (scores > 0.5).all()


# Data


def test_all_forms_of_the_same_data():
    xs, ts = data(4)
    trajectories = vf.Trajectories.from_arrays(xs, ts)
    expected = vf.MOCK(search=False).fit(xs, ts).predict(places())
    forms = [(trajectories,), (list(trajectories),), (tuple(xs), tuple(ts))]
    forms += [(trajectories.to_frame(backend),) for backend in ("pandas", "polars", "pyarrow")]
    forms += [([x.tolist() for x in xs], [t.tolist() for t in ts])]
    for form in forms:
        np.testing.assert_array_equal(vf.MOCK(search=False).fit(*form).predict(places()), expected)
    one = vf.MOCK(search=False).fit(xs[0], ts[0]).predict(places())
    np.testing.assert_array_equal(
        vf.MOCK(search=False).fit([xs[0]], [ts[0]]).predict(places()), one
    )
    np.testing.assert_array_equal(vf.MOCK(search=False).fit(trajectories[0]).predict(places()), one)


def test_a_step_for_times():
    x = data(1)[0][0]
    t = 0.25 * np.arange(len(x))
    np.testing.assert_array_equal(
        vf.MOCK(search=False).fit(x, 0.25).predict(places()),
        vf.MOCK(search=False).fit(x, t).predict(places()),
    )


def test_inputs_are_unchanged(model):
    xs, ts = data(3)
    before = copy.deepcopy((xs, ts))
    for array in (*xs, *ts):
        array.flags.writeable = False
    model.fit(xs, ts)
    x0, at = xs[0][0].copy(), places()
    at.flags.writeable = x0.flags.writeable = False
    model.predict(at)
    model.simulate(x0, ts[0])
    model.score(xs, ts)
    for now, then in zip((*xs, *ts), (*before[0], *before[1]), strict=True):
        np.testing.assert_array_equal(now, then)
    np.testing.assert_array_equal(at, places())


def test_fits_repeat_bit_for_bit(model):
    xs, ts = data(4)
    one = model.fit(xs, ts).predict(places())
    np.testing.assert_array_equal(model.fit(xs, ts).predict(places()), one)
    np.testing.assert_array_equal(clone(model).fit(xs, ts).predict(places()), one)
    np.testing.assert_array_equal(model.predict(places()), one)


def test_the_order_of_the_trajectories_does_not_matter(model):
    xs, ts = data(4)
    one = model.fit(xs, ts).predict(places())
    other = model.fit(xs[::-1], ts[::-1]).predict(places())
    np.testing.assert_allclose(other, one, rtol=0, atol=1e-7)


def test_times_may_start_anywhere(model):
    xs, ts = data(4)
    one = model.fit(xs, ts).predict(places())
    other = model.fit(xs, [t - 64.0 * i for i, t in enumerate(ts)]).predict(places())
    np.testing.assert_allclose(other, one, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("time", "state"), [(1e3, 1.0), (1.0, 1e-3), (1e3, 1e-3), (1e-6, 1e9)])
@pytest.mark.parametrize(
    "settings", [SETTINGS["default"], SETTINGS["windows"], {"rule": Spline(), "search": False}]
)
def test_units_do_not_matter_to_the_defaults(settings, time, state):
    """dx/dt in new units is the old one times state / time."""
    xs, ts = data(4)
    model = vf.MOCK(**settings).fit(xs, ts)
    shift = np.array([3.0, -1.0]) * state
    other = vf.MOCK(**settings).fit([shift + state * x for x in xs], [time * t for t in ts])
    factor = state / time
    expected = model.predict(places())
    np.testing.assert_allclose(
        other.predict(shift + state * places()) / factor, expected, rtol=0, atol=1e-8
    )
    np.testing.assert_allclose(other.residuals_ / state, model.residuals_, rtol=0, atol=1e-9)
    assert other.ridge_ == pytest.approx(model.ridge_ * time**2, rel=1e-9)
    # and so do simulations, tolerances and all
    x0 = places(3)
    ours = model.simulate(x0, ts[0])
    theirs = other.simulate(shift + state * x0, time * ts[0])
    np.testing.assert_allclose((theirs - shift) / state, ours, rtol=0, atol=1e-5)


def test_own_units_for_each_coordinate():
    xs, ts = data(4)
    units = np.array([1e6, 1e-6])
    one = vf.MOCK(search=False).fit(xs, ts).predict(places())
    other = vf.MOCK(search=False).fit([x * units for x in xs], ts).predict(places() * units)
    np.testing.assert_allclose(other / units, one, rtol=0, atol=1e-9)


def test_constant_columns_are_only_centred():
    xs, ts = data(4)
    wide = [np.column_stack([np.full(len(x), 0.1), x, np.full(len(x), -1e12)]) for x in xs]
    model = vf.MOCK(ridge=1e-8, search=False).fit(wide, ts)
    narrow = vf.MOCK(ridge=1e-8, search=False).fit(xs, ts)
    np.testing.assert_array_equal(model.field_.scale[[0, 3]], 1.0)
    at = np.column_stack([np.full(20, 0.1), places(), np.full(20, -1e12)])
    value = model.predict(at)
    np.testing.assert_array_equal(value[:, [0, 3]], 0.0)
    np.testing.assert_allclose(value[:, 1:3], narrow.predict(places()), rtol=0, atol=1e-7)
    run = model.simulate(at[0], np.linspace(0.0, 1.0, 4))
    np.testing.assert_array_equal(run[:, [0, 3]], np.tile(at[0, [0, 3]], (4, 1)))


def test_nothing_moves():
    for kernel in (None, Gaussian(), Linear(), Constant(), Polynomial(2)):
        model = vf.MOCK(kernel, search=False).fit(np.full((6, 2), 3.0), 0.1)
        np.testing.assert_array_equal(model.predict([[3.0, 3.0], [5.0, 0.0]]), np.zeros((2, 2)))
        assert model.score(np.full((6, 2), 3.0), 0.1) == 1.0
        assert model.rkhs_norm_ == 0.0


def test_one_coordinate():
    t = np.linspace(0.0, 3.0, 40)
    xs = [x0 * np.exp(-t)[:, None] for x0 in (1.0, -2.0)]
    model = vf.MOCK(ridge=1e-9, search=False).fit(xs, t)
    at = np.linspace(-1.5, 0.9, 7)[:, None]
    np.testing.assert_allclose(model.predict(at), -at, rtol=0, atol=2e-3)
    assert model.simulate([0.5], [0.0, 1.0])[1, 0] == pytest.approx(0.5 * np.exp(-1), abs=1e-3)
    assert model.score(xs, t) > 0.99


def test_two_samples():
    for ridge in (None, 1e-6):
        model = vf.MOCK(Constant(), ridge, search=False)
        model.fit(np.array([[0.0, 1.0], [1.0, 3.0]]), 0.5)
        np.testing.assert_allclose(model.predict([[7.0, 7.0]]), [[2.0, 4.0]], rtol=2e-3)
    assert vf.MOCK(search=False).fit(np.array([[0.0], [1.0]]), 0.5).predict([[0.5]]).shape == (1, 1)


def test_many_short_trajectories_equal_their_increments():
    """Two-sample trajectories: what the paper makes of every data set."""
    xs, ts = data(3)
    pairs = [x[k : k + 2] for x in xs for k in range(len(x) - 1)]
    steps = [t[k : k + 2] for t in ts for k in range(len(t) - 1)]
    settings = {"kernel": Gaussian(1.0), "ridge": 1e-6, "standardize": False}
    one, other = vf.MOCK(**settings).fit(xs, ts), vf.MOCK(**settings).fit(pairs, steps)
    np.testing.assert_allclose(other.predict(places()), one.predict(places()), rtol=0, atol=1e-7)


def test_data_that_cannot_be_used():
    xs, ts = data(2)
    for x, t, message in [
        (xs, None, "no times given"),
        (xs, ts[:1], "1 arrays of times for 2 trajectories"),
        ([xs[0][:1]], [ts[0][:1]], "at least two are needed"),
        ([xs[0], xs[1][:, :1]], ts, "has 1 features where the trajectories before it have 2"),
        ([np.where(np.arange(len(xs[0]))[:, None] == 3, np.nan, xs[0])], ts[:1], "value is nan"),
        (vf.Trajectories.from_arrays(xs, ts), ts, "times were given twice"),
    ]:
        with pytest.raises(vf.DataError, match=message):
            vf.MOCK(search=False).fit(x, t)


# Predictions, simulations, scores


def test_predict_reads_tables_by_name():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    xs, ts = data(3)
    trajectories = vf.Trajectories.from_arrays(xs, ts, feature_names=["v", "w"])
    model = vf.MOCK(search=False).fit(trajectories)
    at = places()
    expected = model.predict(at)
    columns = {"w": at[:, 1], "note": np.arange(20), "v": at[:, 0]}
    for frame in (pandas.DataFrame(columns, index=np.arange(20)[::-1]), polars.DataFrame(columns)):
        np.testing.assert_array_equal(model.predict(frame), expected)
    with pytest.raises(vf.DataError, match="'w'"):
        model.predict(pandas.DataFrame({"v": at[:, 0], "x": at[:, 1]}))
    gap = pandas.DataFrame(columns)
    gap.loc[4, "v"] = np.nan
    with pytest.raises(vf.DataError):
        model.predict(gap)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([[np.nan, 0.0]], "not finite"),
        ([[0.0, np.inf]], "not finite"),
        (np.array([[1, None]], dtype=object), "not finite"),
        ([0.0, -np.inf], "not finite"),
        ([[0.0, 0.0, 0.0]], r"must have shape \(n, 2\) or \(2,\), got \(1, 3\)"),
        ([[0.0], [1.0]], r"got \(2, 1\)"),
        (None, r"got \(\)"),
        ([["a", "b"]], "must be an array of numbers"),
        ([["1", "2"]], "must be an array of numbers"),
        ([[1j, 0.0]], "must be an array of numbers"),
        ([[0.0, 0.0], [1.0]], "must be an array of numbers"),
        (np.array([["a", object()]], dtype=object), "must be an array of numbers"),
    ],
)
def test_states_that_cannot_be_predicted(x, message):
    model = vf.MOCK(search=False).fit(*data(2))
    with pytest.raises(vf.DataError, match=message):
        model.predict(x)


def test_predict_one_state_many_and_none():
    model = vf.MOCK(search=False).fit(*data(2))
    many = model.predict(places())
    assert many.shape == (20, 2)
    np.testing.assert_allclose(model.predict(places()[3]), many[3], rtol=1e-12)
    np.testing.assert_allclose(model.predict(places().tolist()), many, rtol=1e-12)
    assert model.predict(np.empty((0, 2))).shape == (0, 2)


def test_simulate_shapes_and_options():
    model = vf.MOCK(search=False).fit(*data())
    t = np.linspace(0.0, 1.0, 5)
    x0 = places(3)
    batch = model.simulate(x0, t)
    assert batch.shape == (3, 5, 2)
    assert model.simulate(x0[0], t).shape == (5, 2)
    np.testing.assert_allclose(model.simulate(x0[0], t), batch[0], rtol=1e-8, atol=1e-10)
    assert [x.shape for x in model.simulate(x0, [t, t[:2], t[::-1]])] == [(5, 2), (2, 2), (5, 2)]
    with pytest.warns(vf.SimulationWarning, match="max_steps"):
        assert np.isnan(model.simulate(x0, [0.0, 1e3], max_steps=3)[:, 1]).all()
    with pytest.raises(vf.SimulationError):
        model.simulate(x0, [0.0, 1e3], max_steps=3, on_failure="raise")
    with pytest.raises(vf.DataError, match="x0 has 3 coordinates where the field has 2"):
        model.simulate(np.zeros(3), t)
    with pytest.raises(vf.DataError, match="x0 has 1 coordinates where the field has 2"):
        model.score(np.zeros((4, 1)), 0.1)


def test_score_is_the_skill_of_rollouts():
    xs, ts = data(4)
    held_xs, held_ts = data(3, seed=5)
    model = vf.MOCK(search=False).fit(xs, ts)
    errors, null = 0.0, 0.0
    for x, t in zip(held_xs, held_ts, strict=True):
        path = model.simulate(x[0], t)
        errors += vf.metrics.err(t, x, path)
        null += vf.metrics.null_err(t, x)
    assert model.score(held_xs, held_ts) == pytest.approx(1 - errors / null, rel=1e-6)
    assert model.score(vf.Trajectories.from_arrays(held_xs, held_ts)) == model.score(
        held_xs, held_ts
    )


def test_score_is_finite_where_rollouts_fail():
    """A cubic field fitted to a corner of the plane escapes to infinity elsewhere."""
    t = np.linspace(0.0, 0.5, 20)
    grow = (1.0 / (1.0 - t))[:, None]  # dx/dt = x^2
    model = vf.MOCK(Polynomial(2), 1e-9).fit(grow, t)
    far = np.linspace(2.0, 3.0, 30)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score = model.score([far, grow], [np.linspace(0.0, 5.0, 30), t])
    assert math.isfinite(score)
    assert score < -1000.0
    assert model.score(grow, t) > 0.99


def test_defaults_have_skill():
    xs, ts = data(10)
    model = vf.MOCK(search=False).fit(xs[:7], ts[:7])
    assert model.score(xs[7:], ts[7:]) > 0.9
    relative = np.abs(model.predict(places()) - spiral(places())).max()
    assert relative < 0.3


def test_defaults_have_skill_on_noisy_data():
    rng = np.random.default_rng(3)
    xs, ts = data(12)
    noisy = [x + 0.03 * rng.normal(size=x.shape) for x in xs]
    assert vf.MOCK(search=False).fit(noisy[:9], ts[:9]).score(xs[9:], ts[9:]) > 0.7


def test_an_ill_conditioned_fit_warns_with_the_remedy():
    rng = np.random.default_rng(0)
    x = np.linspace(0.0, 1.0, 80)[:, None] + 0.1 * rng.normal(size=(80, 1))
    with pytest.warns(vf.SolveWarning, match="raise ridge to at least about") as caught:
        model = vf.MOCK(Gaussian(1.0), 1e-13).fit(x, 1.0)
    assert caught[0].filename == __file__
    assert model.solution_.status is Status.ILL_CONDITIONED
    assert np.isfinite(model.predict(x)).all()


# PyTorch, end to end


@pytest.mark.parametrize("name", SETTINGS)
def test_torch_equals_numpy(name):
    torch = pytest.importorskip("torch")
    xs, ts = data(4)
    expected = vf.MOCK(**SETTINGS[name]).fit(xs, ts)
    model = vf.MOCK(**SETTINGS[name]).fit([torch.asarray(x) for x in xs], ts)
    assert isinstance(model.field_.expansion.nodes, torch.Tensor)
    assert model.ridge_ == pytest.approx(expected.ridge_, rel=1e-12)
    assert model.rkhs_norm_ == pytest.approx(expected.rkhs_norm_, rel=1e-7)
    pairs: list[tuple[Any, Any]] = [
        (model.predict(torch.asarray(places())), expected.predict(places())),
        (model.predict(places()), expected.predict(places())),
        (model.residuals_, expected.residuals_),
        (model.field_.jacobian(places()), expected.field_.jacobian(places())),
        (
            model.simulate(torch.asarray(places(3)), [0.0, 0.5]),
            expected.simulate(places(3), [0.0, 0.5]),
        ),
    ]
    for got, wanted in pairs:
        assert isinstance(got, torch.Tensor)
        np.testing.assert_allclose(got.numpy(), wanted, rtol=0, atol=1e-7)
    held = data(2, seed=4)
    torch_held = [torch.asarray(x) for x in held[0]]
    assert model.score(torch_held, held[1]) == pytest.approx(expected.score(*held), abs=1e-6)
    with pytest.raises(vf.DataError, match="not finite"):
        model.predict(torch.tensor([[math.nan, 0.0]]))


def test_torch_models_pickle_and_save(tmp_path):
    torch = pytest.importorskip("torch")
    xs, ts = data(2)
    model = vf.MOCK(search=False).fit([torch.asarray(x) for x in xs], ts)
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(other.predict(places()).numpy(), model.predict(places()).numpy())
    model.save(tmp_path / "model.vf")
    loaded = vf.load(tmp_path / "model.vf")
    np.testing.assert_allclose(
        loaded(places()), model.predict(places()).numpy(), rtol=0, atol=1e-10
    )


# What is left out is chosen on held-out data

NARROW = {"rule": Lagrange(4), "noise": White()}  # with a kernel the ridge alone is open, and prior


@pytest.mark.parametrize(
    ("settings", "searches"),
    [
        ({}, True),
        ({"kernel": Gaussian(1.0)}, True),
        ({"ridge": 1e-6}, True),
        ({"kernel": Gaussian(1.0), "ridge": 1e-6}, False),
        ({"kernel": Gaussian(), "ridge": 1e-6}, False),
        ({"search": False}, False),
        ({"kernel": Gaussian(1.0), "ridge": 1e-6, "search": vf.Search()}, True),
        ({"kernel": Gaussian(1.0), "ridge": 1e-6, "search": True}, True),
    ],
)
def test_a_search_is_made_where_kernel_or_ridge_is_left_out(settings, searches):
    model = vf.MOCK(**settings)
    assert model.searcher == (vf.Search() if searches else None)
    assert model.get_params(deep=False)["search"] == settings.get("search")


def test_a_search_of_the_wrong_kind_is_refused():
    for wrong in ("grid", 3, vf.Search):
        with pytest.raises(TypeError, match="search must be a Search such as"):
            vf.MOCK(search=wrong).fit(*data(2))


def test_what_is_chosen_without_a_word_is_what_search_chooses():
    xs, ts = data(3)
    model = vf.MOCK(Polynomial(3), **NARROW).fit(xs, ts)
    asked = vf.MOCK(Polynomial(3), **NARROW, search=vf.Search()).fit(xs, ts)
    np.testing.assert_array_equal(model.predict(places()), asked.predict(places()))
    assert len(model.report_.trials) == len(asked.report_.trials) > 10
    plan = model.plan_
    assert plan == model.report_.best.plan == asked.plan_
    assert (plan.rule, plan.noise) == (NARROW["rule"], NARROW["noise"])
    assert plan.kernel == Polynomial(3)
    assert model.ridge_ == plan.ridge
    assert model.get_params()["ridge"] is None  # the settings are as they were given
    again = plan.fit(vf.Trajectories.from_arrays(xs, ts)).field
    np.testing.assert_array_equal(again(places()), model.predict(places()))
    plain = vf.MOCK(Polynomial(3), search=False).fit(xs, ts)

    def error(model):
        return np.abs(model.predict(places()) - spiral(places())).max()

    assert error(model) < 0.5 * error(plain)


def test_with_noise_a_search_without_hints_is_far_better_than_the_defaults():
    rng = np.random.default_rng(3)
    xs, ts = data(6)
    noisy = [x + 0.05 * rng.normal(size=x.shape) for x in xs]
    model = vf.MOCK(Polynomial(3), rule=Trapezoid(), noise=SnapshotNoise()).fit(noisy, ts)
    plain = vf.MOCK(search=False).fit(noisy, ts)
    errors = [
        np.sqrt(np.mean((m.predict(places()) - spiral(places())) ** 2)) for m in (model, plain)
    ]
    assert errors[0] < 0.6 * errors[1]
    np.testing.assert_allclose(model.report_.noise, 0.05, rtol=0.3)
    assert model.report_.beats_null


def test_validation_trajectories_judge_and_are_not_learned_from():
    xs, ts = data(4)
    train, held = (xs[:3], ts[:3]), (xs[3:], ts[3:])
    model = vf.MOCK(Polynomial(3), **NARROW).fit(*train, validation=held)
    assert model.report_.folds == 1
    assert len(model.residuals_) == sum(len(t) - 1 for t in ts[:3])
    trajectories = vf.Trajectories.from_arrays(*held)
    same = vf.MOCK(Polynomial(3), **NARROW).fit(*train, validation=trajectories)
    assert same.plan_ == model.plan_


@pytest.mark.parametrize("settings", [{"search": False}, {"kernel": Gaussian(1.0), "ridge": 1e-6}])
def test_validation_with_nothing_to_choose_is_refused(settings):
    xs, ts = data(3)
    with pytest.raises(ValueError, match=r"nothing is left to choose.*leave validation out"):
        vf.MOCK(**settings).fit(xs[:2], ts[:2], validation=(xs[2:], ts[2:]))


@pytest.mark.parametrize("x", [[[0.0], [1.0]], [[0.0], [1.0], [3.0]]])
def test_data_too_short_to_hold_any_out_say_what_to_do(x):
    with pytest.raises(vf.DataError, match=r"cannot be held out in part; pass search=False"):
        vf.MOCK().fit(np.array(x), 0.5)
    for model in (vf.MOCK(search=False), vf.MOCK(Gaussian(1.0), 1e-6)):  # both remedies work
        assert np.isfinite(model.fit(np.array(x), 0.5).predict([[0.5]])).all()


def test_torch_tensors_are_not_searched_on():
    torch = pytest.importorskip("torch")
    xs, ts = data(2)
    with pytest.raises(vf.DataError, match=r"NumPy arrays; pass .* or pass search=False"):
        vf.MOCK().fit([torch.asarray(x) for x in xs], ts)


class Reckless(vf.tuning.Searcher):
    """A search whose ridge is too small by far."""

    def __call__(self, plan, left_open, train, validation=None):
        report = vf.Search(max_time=0.01)(plan, left_open, train, validation)
        reckless = replace(report.best.plan, kernel=Gaussian(10.0), ridge=1e-20)
        return replace(report, best=replace(report.best, plan=reckless))


def test_a_ridge_too_low_for_all_data_is_raised_and_the_report_says_so():
    x = np.linspace(1.0, 2.0, 60)[:, None]
    open_ = {"rule": Trapezoid(), "noise": White(), "prior": vf.prior.MeanReverting(1.0)}
    model = vf.MOCK(Gaussian(10.0), **open_, search=Reckless()).fit(x, 0.1)
    ridge, plan = model.ridge_, model.plan_
    assert model.solution_.status.ok
    assert math.log10(ridge / 1e-20) == pytest.approx(round(math.log10(ridge / 1e-20)))
    assert plan == model.report_.best.plan
    assert plan.ridge == ridge == model.field_.info["ridge"]
    raised = [note for note in model.report_.notes if "ridge was raised" in note]
    assert len(raised) == 1
    assert raised[0].startswith(f"the ridge was raised to {ridge:.3g}, since")
    assert "the ridge was raised" in str(model.report_)
    with pytest.raises(vf.SolveError):  # the next smaller one would not have done
        replace(plan, ridge=ridge / 10).fit(vf.Trajectories.from_arrays([x], 0.1))


def test_a_given_ridge_is_never_raised():
    x = np.linspace(1.0, 2.0, 60)[:, None]
    model = vf.MOCK(Gaussian(10.0), 1e-20, search=Reckless())
    with pytest.raises(vf.SolveError):
        model.fit(x, 0.1)
    assert not model.solution_.status.ok
    assert not hasattr(model, "field_")
