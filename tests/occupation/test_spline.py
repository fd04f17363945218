from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline

from vectorfield.occupation._spline import spline_slopes, spline_states


def test_all_splines_at_once_are_scipys_one_by_one(ragged):
    data = ragged((2, 3, 4, 5, 2, 40, 3, 7))
    at = np.array([0.1, 0.5, 0.75])
    slopes = spline_slopes(data.times, data.states, data.offsets)
    states = spline_states(data.times, data.states, data.offsets, at)
    expected_slopes, expected_states = [], []
    for t, x in data:
        spline = CubicSpline(t, x)  # not-a-knot; line and parabola when short
        expected_slopes.append(spline(t, 1))
        places = t[:-1, None] + np.diff(t)[:, None] * at
        expected_states.append(spline(places.ravel()))
    np.testing.assert_allclose(slopes, np.concatenate(expected_slopes), rtol=0, atol=1e-10)
    np.testing.assert_allclose(states, np.concatenate(expected_states), rtol=0, atol=1e-11)


def test_units_of_time_of_one_trajectory_do_not_disturb_another():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(6, 2))
    t = np.cumsum(rng.uniform(0.5, 1.0, 6))
    times = np.concatenate([1e-9 * t, t, 1e9 * t])
    slopes = spline_slopes(times, np.tile(x, (3, 1)), np.array([0, 6, 12, 18]))
    np.testing.assert_allclose(1e-9 * slopes[:6], slopes[6:12], rtol=1e-9)
    np.testing.assert_allclose(1e9 * slopes[12:], slopes[6:12], rtol=1e-9)
