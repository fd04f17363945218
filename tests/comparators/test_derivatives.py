"""Estimated slopes against pysindy called by hand, and against what they must be exact for."""

import numpy as np
import pytest
from scipy.interpolate import make_smoothing_spline

import vectorfield as vf
from vectorfield.comparators import Differences, SmoothedDifferences, Splines

pysindy = pytest.importorskip("pysindy")


def uneven(n=40, seed=0):
    return np.cumsum(np.random.default_rng(seed).uniform(0.05, 0.15, size=n))


@pytest.mark.parametrize("order", [2, 4])
def test_differences_are_exact_for_polynomials_on_any_times(order):
    t = uneven()
    x = np.stack([t**order, 1.0 - t], axis=1)
    slopes = Differences(order)(vf.Trajectories.from_arrays([x, x[:25]], [t, t[:25]])).slopes
    exact = np.stack([order * t ** (order - 1), -np.ones_like(t)], axis=1)
    np.testing.assert_allclose(slopes[0], exact, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(slopes[1], exact[:25], rtol=1e-7, atol=1e-9)


def test_differences_are_those_of_pysindy():
    t, x = uneven(), np.random.default_rng(1).normal(size=(40, 3))
    found = Differences(4)(vf.Trajectories.from_arrays(x, t))
    np.testing.assert_array_equal(found.states[0], x)
    np.testing.assert_array_equal(found.slopes[0], pysindy.FiniteDifference(order=4)(x, t))


def test_smoothed_differences_are_those_of_pysindy_and_do_not_share_settings():
    t, x = 0.1 * np.arange(40), np.random.default_rng(1).normal(size=(40, 2))
    data = vf.Trajectories.from_arrays(x, t)
    wide = SmoothedDifferences(21)(data)
    found = SmoothedDifferences(9, 2)(data)  # pysindy keeps defaults in one dictionary for all
    method = pysindy.SmoothedFiniteDifference(smoother_kws={"window_length": 9, "polyorder": 2})
    np.testing.assert_array_equal(found.slopes[0], method(x, t))
    np.testing.assert_array_equal(found.states[0], method.smoothed_x_)
    np.testing.assert_array_equal(SmoothedDifferences(21)(data).slopes[0], wide.slopes[0])


def test_splines_are_smoothing_splines():
    t = uneven()
    x = np.sin(t)[:, None] + 0.05 * np.random.default_rng(2).normal(size=(40, 1))
    data = vf.Trajectories.from_arrays(x, t)
    penalty = float(vf.SplineSmoother()(data).penalties[0])
    spline = make_smoothing_spline(t, x[:, 0], lam=penalty)
    found = Splines()(data)
    np.testing.assert_allclose(found.states[0][:, 0], spline(t), atol=1e-7)
    np.testing.assert_allclose(found.slopes[0][:, 0], spline.derivative()(t), atol=1e-5)


@pytest.mark.parametrize("method", [Differences(4), SmoothedDifferences(), Splines()])
def test_short_trajectories_get_what_they_allow(method):
    lines = [np.linspace(0.0, 1.0, n) for n in (2, 3, 4, 5, 6, 12)]
    data = vf.Trajectories.from_arrays([3.0 * t[:, None] for t in lines], lines)
    states, slopes = method(data)
    assert [len(x) for x in states] == [1, 3, 4, 5, 6, 12]
    for x, v in zip(states, slopes, strict=True):
        assert x.shape == v.shape
        np.testing.assert_allclose(v, 3.0, rtol=1e-6)


def test_settings_are_checked():
    with pytest.raises(ValueError, match="order must be even"):
        Differences(3)
    with pytest.raises(ValueError, match="window must be odd"):
        SmoothedDifferences(10)
    with pytest.raises(ValueError, match="window must be at least 4"):
        SmoothedDifferences(3)
