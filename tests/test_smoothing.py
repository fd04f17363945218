"""How large the noise of snapshots is, and splines that take it out."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import make_smoothing_spline
from sklearn.base import clone

import vectorfield as vf
from vectorfield.smoothing import EXACT, Smoothed, Smoother, SplineSmoother, noise_level

Trajectories = vf.Trajectories


def waves(
    lengths: tuple[int, ...] = (60, 9, 140, 5, 33), noise: float = 0.1, seed: int = 0
) -> tuple[Trajectories, Trajectories]:
    """Smooth curves at uneven times, clean and noisy."""
    rng = np.random.default_rng(seed)
    ts = [rng.normal() + np.cumsum(rng.uniform(0.02, 0.1, n)) for n in lengths]
    clean = [np.stack([np.sin(t), 2.0 * np.cos(0.7 * t)], axis=1) for t in ts]
    noisy = [x + noise * rng.normal(size=x.shape) for x in clean]
    return Trajectories.from_arrays(clean, ts), Trajectories.from_arrays(noisy, ts)


def penalised(t: np.ndarray, penalty: float) -> np.ndarray:
    """The hat matrix of the smoothing spline, by SciPy, one unit vector after the other."""
    return np.stack([make_smoothing_spline(t, e, lam=penalty)(t) for e in np.eye(len(t))], axis=1)


# The noise level


@pytest.mark.parametrize("name", ["nfhn", "lorenz63"])
def test_the_noise_of_the_data_sets_is_recovered(name):
    data = vf.datasets.load(name)
    truth = (data.train.states - data.clean.train.states).std(axis=0)
    np.testing.assert_allclose(noise_level(data.train), truth, rtol=0.1)
    np.testing.assert_allclose(SplineSmoother()(data.train).noise, truth, rtol=0.1)


def test_the_noise_of_nfhn_is_the_number_of_its_recipe():
    np.testing.assert_allclose(noise_level(vf.datasets.load("nfhn").train), 0.12, rtol=0.02)


@pytest.mark.parametrize("name", ["pendulum", "lorenz96-16"])
def test_clean_data_have_next_to_none(name):
    train = vf.datasets.load(name).train
    spread = train.states.std(axis=0)
    assert (noise_level(train) < 1e-7 * spread).all()
    smoothed = SplineSmoother()(train)
    assert (smoothed.noise < 1e-6 * spread).all()
    assert (abs(smoothed.trajectories.states - train.states) < 1e-6 * spread).all()


@pytest.mark.parametrize("sigma", [0.3, 0.03, 0.003])
def test_any_size_of_noise_at_uneven_times(sigma):
    _, noisy = waves((400, 400), sigma)
    np.testing.assert_allclose(noise_level(noisy), sigma, rtol=0.1)


def test_features_are_judged_one_by_one():
    clean, noisy = waves((300,), 0.1)
    states = np.stack([clean.states[:, 0], noisy.states[:, 0], np.full(300, 7.0)], axis=1)
    level = noise_level(Trajectories.from_arrays(states, clean.times))
    assert level[0] < 1e-5
    assert level[1] == pytest.approx(0.1, rel=0.15)
    assert level[2] == 0.0


def test_second_differences_are_their_formula():
    t = np.array([0.0, 1.0, 3.0])
    x = np.array([[1.0], [4.0], [2.0]])
    c = np.array([2.0, -3.0, 1.0])  # no polynomial of degree one is left
    assert c @ t == pytest.approx(0.0)
    expected = abs(c @ x[:, 0]) / np.linalg.norm(c)
    np.testing.assert_allclose(noise_level(Trajectories.from_arrays(x, t)), expected, rtol=1e-12)


def test_two_samples_say_nothing():
    pairs = Trajectories.from_arrays([np.eye(2), np.zeros((2, 2))], 0.1)
    assert np.isnan(noise_level(pairs)).all()
    _, noisy = waves((200, 200))
    xs, ts = noisy.to_arrays()
    with_pairs = Trajectories.from_arrays([np.eye(2), *xs], [[0.0, 1.0], *ts])
    np.testing.assert_array_equal(noise_level(with_pairs), noise_level(noisy))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(2, 12), min_size=1, max_size=5),
    st.floats(1e-6, 1e6),
    st.floats(1e-6, 1e6),
    st.integers(0, 1000),
)
def test_units_scale_the_level_and_any_times_do(lengths, unit, step, seed):
    rng = np.random.default_rng(seed)
    xs = [rng.normal(size=(n, 2)) for n in lengths]
    ts = [np.cumsum(10.0 ** rng.uniform(-4, 0, n)) for n in lengths]
    level = noise_level(Trajectories.from_arrays(xs, ts))
    other = noise_level(Trajectories.from_arrays([unit * x for x in xs], [step * t for t in ts]))
    np.testing.assert_allclose(other, unit * level, rtol=1e-4)
    assert (np.isnan(level).all() and max(lengths) < 3) or (level >= 0).all()


# Splines


@pytest.mark.parametrize("penalty", [0.0, 1e-6, 1e-3, 1.0])
def test_the_spline_is_scipys(penalty):
    _, noisy = waves()
    smoothed = SplineSmoother(penalty)(noisy)
    assert isinstance(smoothed, Smoothed)
    for (t, x), (_, s) in zip(noisy, smoothed.trajectories, strict=True):
        for j in range(2):
            expected = make_smoothing_spline(t, x[:, j], lam=penalty)(t)
            np.testing.assert_allclose(s[:, j], expected, rtol=0, atol=1e-8)
    np.testing.assert_allclose(smoothed.penalties, penalty, rtol=1e-12)


def test_the_noise_is_its_formula():
    """RSS / (P - tr S), the trace from SciPy's splines; exact for few samples."""
    _, noisy = waves((30, 12, 9))
    assert len(noisy.times) <= EXACT
    penalty = 0.01
    free = sum(len(t) - np.trace(penalised(t, penalty)) for t, _ in noisy)
    smoothed = SplineSmoother(penalty)(noisy)
    rss = np.sum((smoothed.trajectories.states - noisy.states) ** 2, axis=0)
    np.testing.assert_allclose(smoothed.noise, np.sqrt(rss / free), rtol=1e-6)


def test_the_penalty_minimises_cross_validation_over_all_trajectories():
    _, noisy = waves((40, 25, 30))

    def score(penalty: float) -> np.ndarray:
        rss, free = np.zeros(2), 0.0
        for t, x in noisy:
            hat = penalised(t, penalty)
            rss += np.sum((x - hat @ x) ** 2, axis=0)
            free += len(t) - np.trace(hat)
        return rss / free**2

    chosen = SplineSmoother()(noisy).penalties
    for j in range(2):
        best = score(chosen[j])[j]
        assert all(best <= 1.002 * score(chosen[j] * f)[j] for f in (0.1, 0.3, 0.6, 1.6, 3.0, 10.0))


def test_the_estimated_trace_is_close(monkeypatch):
    _, noisy = waves((200, 150))
    assert len(noisy.times) > EXACT
    estimated = SplineSmoother()(noisy)
    monkeypatch.setattr("vectorfield.smoothing.EXACT", 10_000)
    exact = SplineSmoother()(noisy)
    np.testing.assert_allclose(estimated.noise, exact.noise, rtol=0.02)
    np.testing.assert_allclose(
        estimated.trajectories.states, exact.trajectories.states, rtol=0, atol=0.02
    )


def test_smoothing_brings_the_states_nearer():
    clean, noisy = waves((300, 200), 0.2)
    smoothed = SplineSmoother()(noisy)
    before, after = (
        np.sqrt(np.mean((s - clean.states) ** 2, axis=0))
        for s in (noisy.states, smoothed.trajectories.states)
    )
    assert (after < 0.4 * before).all()
    np.testing.assert_allclose(smoothed.noise, 0.2, rtol=0.1)


def test_cubics_stay_what_they_are():
    t = np.sort(np.random.default_rng(0).uniform(0.0, 5.0, 50))
    x = np.stack([t**3 - t, t**2, 2.0 * t + 1.0, np.full(50, 3.0)], axis=1)
    data = Trajectories.from_arrays(x, t)
    smoothed = SplineSmoother()(data)
    size = np.abs(x).max(axis=0)
    np.testing.assert_allclose(smoothed.trajectories.states / size, x / size, rtol=0, atol=1e-9)
    assert (smoothed.noise < 1e-8 * size).all()
    assert (noise_level(data) < 1e-12 * size).all()


def test_short_trajectories_are_left():
    _, noisy = waves((4, 30, 2))
    smoothed = SplineSmoother(0.1)(noisy)
    for i in (0, 2):
        np.testing.assert_array_equal(smoothed.trajectories[i].x, noisy[i].x)
    assert not np.array_equal(smoothed.trajectories[1].x, noisy[1].x)
    _, short = waves((4, 2, 3))
    nothing = SplineSmoother()(short)
    assert nothing.trajectories is short
    assert np.isnan(nothing.noise).all()


def test_nothing_passed_in_changes():
    _, noisy = waves()
    before = noisy.states.copy()
    smoothed = SplineSmoother()(noisy)
    np.testing.assert_array_equal(noisy.states, before)
    assert not smoothed.trajectories.states.flags.writeable
    np.testing.assert_array_equal(smoothed.trajectories.times, noisy.times)
    again = SplineSmoother()(noisy)
    np.testing.assert_array_equal(again.trajectories.states, smoothed.trajectories.states)


@pytest.mark.parametrize(("time", "state"), [(1e3, 1.0), (1e-4, 1e5)])
def test_units_do_not_matter(time, state):
    _, noisy = waves()
    xs, ts = noisy.to_arrays()
    other = SplineSmoother()(
        Trajectories.from_arrays([state * x for x in xs], [time * t for t in ts])
    )
    one = SplineSmoother()(noisy)
    np.testing.assert_allclose(
        other.trajectories.states / state, one.trajectories.states, rtol=0, atol=1e-7
    )
    np.testing.assert_allclose(other.penalties, one.penalties * time**3, rtol=1e-4)
    np.testing.assert_allclose(other.noise, state * one.noise, rtol=1e-6)


def test_a_penalty_beyond_working_precision():
    with pytest.raises(
        ValueError, match=r"penalty must be at most 1e\+20 cubes .* 1e-07, got 1e\+30"
    ):
        SplineSmoother(1e30)(Trajectories.from_arrays([np.zeros((9, 1))], 1e-9))


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_bad_penalties_are_refused(value):
    with pytest.raises(ValueError, match="penalty must be a finite number >= 0"):
        SplineSmoother(value)


# In a fit


def test_a_fit_to_smoothed_states():
    clean, noisy = waves((150, 120, 90), 0.1)
    kernel = vf.kernels.Gaussian(1.0)
    model = vf.MOCK(kernel, 1e-5, smoother=SplineSmoother()).fit(noisy)
    by_hand = SplineSmoother()(noisy)
    expected = vf.MOCK(kernel, 1e-5).fit(by_hand.trajectories)
    np.testing.assert_array_equal(model.predict(clean.states), expected.predict(clean.states))
    assert model.smoothed_.equals(by_hand.trajectories)
    np.testing.assert_array_equal(model.noise_, by_hand.noise)
    assert model.field_.info["smoother"] == "SplineSmoother(penalty=None)"
    model.set_params(smoother=None).fit(noisy)
    assert not hasattr(model, "smoothed_")
    assert not hasattr(model, "noise_")


def test_manners(tmp_path):
    _, noisy = waves()
    smoother = SplineSmoother()
    assert isinstance(smoother, Smoother)
    model = vf.MOCK(smoother=smoother, search=False)
    assert clone(model).get_params() == model.get_params()
    model.set_params(smoother__penalty=0.1).fit(noisy)
    assert model.smoother == SplineSmoother(0.1)
    model.save(tmp_path / "model.vf")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.noise_, model.noise_)


def test_tensors_stay_tensors():
    torch = pytest.importorskip("torch")
    _, noisy = waves()
    xs, ts = noisy.to_arrays()
    tensors = Trajectories.from_arrays([torch.tensor(np.array(x)) for x in xs], ts)
    smoothed = SplineSmoother()(tensors)
    assert isinstance(smoothed.trajectories.states, torch.Tensor)
    np.testing.assert_allclose(
        smoothed.trajectories.states.numpy(), SplineSmoother()(noisy).trajectories.states
    )
    np.testing.assert_allclose(noise_level(tensors), noise_level(noisy))
