"""What every rival has to do, whatever is inside: one battery for all of them."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import vectorfield as vf
from vectorfield.comparators import (
    PAPER_KERNELS,
    Differences,
    GradientMatching,
    LogGrid,
    NullModel,
    Paper,
    Rival,
    SINDy,
    Splines,
)

MATRIX = np.array([[-0.2, 1.5], [-1.0, -0.2]])
SMALL = LogGrid(lengths=(1.0, 4.0), levels=(1e-1, 1e-4, 1e-8), folds=2)

TUNED: dict[str, Rival] = {
    "sindy": SINDy((1, 2, 3), (0.01, 0.1, 0.3), derivatives=(Differences(4), Splines()), folds=2),
    "matching": GradientMatching(search=SMALL),
    "ockG": Paper(search=SMALL),
    "ockF": Paper(PAPER_KERNELS["ockF"], search=SMALL),
}
EVERY: dict[str, Rival] = {"null": NullModel(), **TUNED}


@pytest.fixture(params=EVERY)
def rival(request: pytest.FixtureRequest) -> Rival:
    return clone(EVERY[request.param])


@pytest.fixture(params=TUNED)
def tuned(request: pytest.FixtureRequest) -> Rival:
    return clone(TUNED[request.param])


def spirals(count: int = 8, seed: int = 0, scale: Any = 1.0) -> tuple[list, list]:
    """Exact trajectories of a damped rotation, ragged and at irregular times."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(25, 40, size=count)
    ts = [1.0 + np.cumsum(rng.uniform(0.04, 0.12, size=n)) for n in lengths]
    starts = rng.normal(size=(count, 2))
    run = vf.simulate(vf.systems.Linear(MATRIX), starts, ts, rtol=1e-11)
    return [x * scale for x in run.x], ts


def places(n: int = 30) -> np.ndarray:
    return np.random.default_rng(9).uniform(-0.7, 0.7, size=(n, 2))


def test_a_linear_field_is_recovered(tuned):
    xs, ts = spirals()
    model = tuned.fit(xs[:6], ts[:6], validation=(xs[6:], ts[6:]))
    truth = places() @ MATRIX.T
    assert np.linalg.norm(model.predict(places()) - truth) < 0.02 * np.linalg.norm(truth)
    assert model.score(xs[6:], ts[6:]) > 0.98
    x0, t = np.array([[0.5, 0.3], [-0.4, 0.2]]), np.linspace(0.0, 2.0, 9)
    exact = vf.simulate(vf.systems.Linear(MATRIX), x0, t).x
    assert np.abs(model.simulate(x0, t) - exact).max() < 0.03
    np.testing.assert_allclose(model.simulate(x0[0], t), model.simulate(x0, t)[0], atol=1e-6)
    assert model.report_.best.score == min(attempt.score for attempt in model.report_)
    assert abs(model.report_.skill - model.score(xs[6:], ts[6:])) < 0.01


def test_the_null_model_stands_still_and_has_no_skill():
    xs, ts = spirals()
    model = NullModel().fit(xs, ts)
    assert model.report_ is None
    np.testing.assert_array_equal(model.predict(places()), np.zeros((30, 2)))
    np.testing.assert_array_equal(model.simulate([1.0, 2.0], [0.0, 3.0]), [[1.0, 2.0]] * 2)
    assert model.score(xs, ts) == 0.0


def test_what_is_passed_in_is_not_changed(rival):
    xs, ts = spirals(5)
    before = pickle.dumps((xs, ts, rival.get_params()))
    held = vf.Trajectories.from_arrays(xs[3:], ts[3:])
    model = rival.fit(xs[:3], ts[:3], validation=held)
    model.score(xs, ts)
    assert pickle.dumps((xs, ts, rival.get_params())) == before
    assert held.equals(vf.Trajectories.from_arrays(xs[3:], ts[3:]))


def test_the_same_seed_gives_the_same_result(rival):
    xs, ts = spirals(6)
    first, second = (clone(rival).fit(xs, ts) for _ in range(2))
    np.testing.assert_array_equal(first.predict(places()), second.predict(places()))
    if first.report_ is not None:
        assert [a.score for a in first.report_] == [a.score for a in second.report_]
        assert first.report_.folds == 2


def test_clone_parameters_and_pickle(rival):
    xs, ts = spirals(5)
    fitted = rival.fit(xs[:4], ts[:4], validation=(xs[4:], ts[4:]))
    fresh = clone(fitted)
    assert repr(fresh.get_params()) == repr(rival.get_params())
    assert not hasattr(fresh, "field_")
    with pytest.raises(NotFittedError):
        fresh.predict(places())
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(places()), fitted.predict(places()))
    assert fitted.n_features_in_ == 2
    assert list(fitted.feature_names_in_) == ["x0", "x1"]
    for name, value in rival.get_params(deep=False).items():
        assert clone(rival).set_params(**{name: value}).get_params()[name] is value


def test_any_form_of_the_data_gives_the_same(rival):
    pandas = pytest.importorskip("pandas")
    xs, ts = spirals(5)
    every = vf.Trajectories.from_arrays(xs, ts)
    frame = every.to_frame("pandas")
    expected = clone(rival).fit(every[:4], validation=every[4:]).predict(places())
    chosen = frame["trajectory"] < 4
    tables = frame[chosen], frame[~chosen]
    for x, t, held in (
        (xs[:4], ts[:4], (xs[4:], ts[4:])),
        (list(every[:4]), None, every[4:]),
        (tables[0], None, tables[1]),
    ):
        model = clone(rival).fit(x, t, validation=held)
        np.testing.assert_array_equal(model.predict(places()), expected)
    named = pandas.DataFrame(places(), columns=["x0", "x1"])[["x1", "x0"]]
    np.testing.assert_array_equal(model.predict(named), expected)


def test_one_trajectory_is_held_out_by_stretches(tuned):
    t = np.linspace(0.0, 8.0, 120)
    x = vf.simulate(vf.systems.Linear(MATRIX), np.array([1.0, 0.5]), t).x
    model = tuned.fit(x, t)
    truth = x @ MATRIX.T
    assert np.linalg.norm(model.predict(x) - truth) < 0.05 * np.linalg.norm(truth)


def test_units_do_not_matter(tuned):
    scale = np.array([1e4, 1e-3])
    xs, ts = spirals(6)
    plain = clone(tuned).fit(xs[:4], ts[:4], validation=(xs[4:], ts[4:]))
    wide, _ = spirals(6, scale=scale)
    other = tuned.fit(wide[:4], ts[:4], validation=(wide[4:], ts[4:]))
    expected = plain.predict(places()) * scale
    error = np.abs(other.predict(places() * scale) - expected) / np.abs(expected).max(axis=0)
    assert error.max() < 1e-3


def test_short_trajectories_will_do(rival):
    """Two samples each, and now and then three or four: nothing to smooth, hardly a derivative."""
    rng = np.random.default_rng(4)
    lengths = np.where(rng.uniform(size=150) < 0.8, 2, rng.integers(3, 5, size=150))
    ts = [np.cumsum(rng.uniform(0.02, 0.05, size=n)) for n in lengths]
    run = vf.simulate(vf.systems.Linear(MATRIX), rng.normal(size=(150, 2)), ts, rtol=1e-11)
    model = rival.fit(run.x, ts)
    truth = places() @ MATRIX.T
    limit = 1.0 if isinstance(rival, NullModel) else 0.05
    assert np.linalg.norm(model.predict(places()) - truth) <= limit * np.linalg.norm(truth)


def test_errors_say_what_is_wrong(rival):
    xs, ts = spirals(4)
    with pytest.raises(vf.DataError, match="no times given"):
        rival.fit(xs)
    broken = [x.copy() for x in xs]
    broken[1][3, 0] = np.nan
    with pytest.raises(vf.DataError, match="trajectory 1"):
        rival.fit(broken, ts)
    if not isinstance(rival, NullModel):
        with pytest.raises(vf.DataError, match="validation has the features"):
            rival.fit(xs, ts, validation=([np.ones((3, 1))], 1.0))
    assert not hasattr(rival, "field_")
    model = rival.fit(xs, ts)
    with pytest.raises(vf.DataError, match=r"shape \(n, 2\)"):
        model.predict(np.ones((3, 4)))
    with pytest.raises(vf.DataError, match="not finite"):
        model.predict(np.full((1, 2), np.nan))


def test_candidates_that_cannot_be_judged_do_not_end_the_search(tuned):
    """A repelling cubic: most candidates run away on the way to what is held out."""
    rng = np.random.default_rng(0)
    t = np.linspace(0.0, 1.0, 25)
    xs = [vf.simulate(lambda x: x**3, rng.uniform(0.3, 0.66, size=1), t).x for _ in range(6)]
    far = vf.simulate(lambda x: x**3, np.array([[0.69], [0.7]]), t).x
    noisy = [x + 0.02 * rng.normal(size=x.shape) for x in xs]
    model = tuned.fit(noisy, t, validation=(list(far), t))
    report = model.report_
    assert all(attempt.status for attempt in report)
    assert np.isfinite(report.best.score)
    assert len(report.frame()) == len(report)
    assert {"score", "status", "seconds"} <= set(report.frame()[0])
    assert str(report).startswith(f"{len(report)} attempts")


def test_a_runaway_simulation_is_nan_with_a_warning():
    t = np.linspace(0.0, 0.9, 40)
    xs = [vf.simulate(lambda x: x**2, np.array([s]), t).x for s in (0.2, 0.5, 0.9)]
    model = SINDy((1, 2), folds=2).fit(xs, t)
    with pytest.warns(vf.SimulationWarning, match="stopped early"):
        path = model.simulate([1.0], [0.0, 0.5, 2.0])
    assert path[1, 0] == pytest.approx(2.0, abs=0.02)
    assert np.isnan(path[2, 0])
    assert model.score([np.array([[1.0], [1.3], [2.0]])], [np.array([0.0, 0.5, 2.0])]) < -1e3
