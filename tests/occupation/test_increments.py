from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import Polynomial

from vectorfield.occupation import CentralDifference, IncrementRule, Lagrange, Spline, Trapezoid
from vectorfield.trajectories import Trajectories

LENGTHS = (2, 50, 3, 9, 4, 2, 17)


@st.composite
def grids(draw):
    """Times of a few trajectories of 2 to 12 samples, with steps of ratio up to 10."""
    steps = st.lists(st.floats(0.1, 1.0), min_size=1, max_size=11)
    return [np.cumsum([0.0, *s]) for s in draw(st.lists(steps, min_size=1, max_size=4))]


def on(times: list[np.ndarray]) -> Trajectories:
    return Trajectories.from_arrays([np.zeros((len(t), 1)) for t in times], times)


def test_trapezoid_is_the_papers_formula(ragged):
    data = ragged(LENGTHS)
    rng = np.random.default_rng(0)
    values = rng.normal(size=data.states.shape)  # f at the snapshots
    expected, targets = [], []
    for i in range(len(data)):
        t, x = data[i]
        f = values[data.offsets[i] : data.offsets[i + 1]]
        for k in range(len(t) - 1):
            expected.append((t[k + 1] - t[k]) / 2 * (f[k] + f[k + 1]))
            targets.append(x[k + 1] - x[k])
    occupations = Trapezoid()(data)
    assert len(occupations) == sum(LENGTHS) - len(LENGTHS)
    np.testing.assert_allclose(occupations.weights @ values, expected, rtol=1e-14, atol=1e-15)
    np.testing.assert_array_equal(occupations.targets, targets)
    assert occupations.nodes is data.states  # no copy


def test_lagrange_on_two_samples_is_the_trapezoid(ragged):
    data = ragged(LENGTHS)
    one, other = Lagrange(2)(data), Trapezoid()(data)
    np.testing.assert_array_equal(one.weights.indices, other.weights.indices)
    np.testing.assert_allclose(one.weights.data, other.weights.data, rtol=1e-14)
    np.testing.assert_array_equal(one.targets, other.targets)


@pytest.mark.parametrize("samples", [2, 4, 6, 8])
def test_lagrange_against_a_loop(samples, ragged):
    data = ragged(LENGTHS, d=1)
    expected = np.zeros((len(data.times) - len(data), len(data.times)))
    row = 0
    for i, (t, _) in enumerate(data):
        size = min(samples, len(t))
        for k in range(len(t) - 1):
            start = min(max(k - samples // 2 + 1, 0), len(t) - size)
            near = t[start : start + size] - t[k]
            for j in range(size):
                basis = Polynomial.fromroots(np.delete(near, j))
                area = (basis / basis(near[j])).integ()
                column = data.offsets[i] + start + j
                expected[row, column] = area(t[k + 1] - t[k]) - area(0.0)
            row += 1
    weights = Lagrange(samples)(data).weights.toarray()
    np.testing.assert_allclose(weights, expected, rtol=1e-10, atol=1e-10)


@settings(deadline=None, max_examples=60)
@given(grids(), st.sampled_from([2, 4, 6, 8]), st.data())
def test_lagrange_integrates_polynomials_of_lower_degree(times, samples, data):
    degree = min(samples, *map(len, times)) - 1
    coefficients = data.draw(st.lists(st.floats(-1, 1), min_size=degree + 1, max_size=degree + 1))
    polynomial = Polynomial(coefficients, domain=[0, 12], window=[-1, 1])
    area = polynomial.integ()
    occupations = Lagrange(samples)(on(times))
    values = polynomial(np.concatenate(times))
    expected = np.concatenate([np.diff(area(t)) for t in times])
    scale = abs(occupations.weights).sum(axis=1) * (1.0 + abs(values).max())
    assert (abs(occupations.weights @ values - expected) <= 1e-12 * scale).all()


@settings(deadline=None, max_examples=60)
@given(grids(), st.integers(1, 4))
def test_spline_follows_cubics_and_integrates_by_gauss(times, points):
    degree = min(4, *map(len, times)) - 1  # line, parabola, cubic
    path = Polynomial([0.3, -1.0, 0.4, 0.7][: degree + 1], domain=[0, 12], window=[-1, 1])
    xs = [np.stack([path(t), -2.0 * path(t)], axis=1) for t in times]
    occupations = Spline(points)(Trajectories.from_arrays(xs, times))
    at = 0.5 * (np.polynomial.legendre.leggauss(points)[0] + 1.0)
    places = np.concatenate([(t[:-1, None] + np.diff(t)[:, None] * at).ravel() for t in times])
    np.testing.assert_allclose(occupations.nodes[:, 0], path(places), rtol=0, atol=1e-11)
    np.testing.assert_allclose(occupations.nodes[:, 1], -2 * path(places), rtol=0, atol=2e-11)
    integrand = Polynomial([1.0] * (2 * points), domain=[0, 12], window=[-1, 1])
    expected = np.concatenate([np.diff(integrand.integ()(t)) for t in times])
    np.testing.assert_allclose(
        occupations.weights @ integrand(places), expected, rtol=0, atol=1e-12
    )


def test_spline_nodes_belong_to_their_step(ragged):
    data = ragged(LENGTHS)
    occupations = Spline(points=3)(data)
    assert len(occupations.nodes) == 3 * len(occupations)
    np.testing.assert_array_equal(occupations.weights.indices, np.arange(3 * len(occupations)))
    np.testing.assert_array_equal(occupations.node_owner, np.repeat(occupations.owner, 3))


@pytest.mark.parametrize("rule", [Trapezoid(), Lagrange(6), Spline()])
def test_increments_telescope(rule, ragged):
    data = ragged(LENGTHS)
    occupations = rule(data)
    assert isinstance(rule, IncrementRule)
    for i, (t, x) in enumerate(data):
        mine = occupations.owner == i
        assert occupations.durations[mine].sum() == pytest.approx(t[-1] - t[0], rel=1e-12)
        np.testing.assert_allclose(
            occupations.targets[mine].sum(axis=0), x[-1] - x[0], rtol=0, atol=1e-12
        )
        np.testing.assert_allclose(occupations.durations[mine], np.diff(t), rtol=1e-12)


@pytest.mark.parametrize(("samples", "limit"), [(2, 1.0), (4, 1.5), (6, 2.5), (8, 5.0)])
def test_weights_are_moderate_on_even_grids(samples, limit):
    occupations = Lagrange(samples)(on([np.arange(20) * 0.1]))
    amplification = abs(occupations.weights).sum(axis=1) / occupations.durations
    assert 1.0 - 1e-12 <= amplification.min() <= amplification.max() <= limit + 1e-12


def test_a_long_trajectory_needs_several_chunks():
    n = 20_001
    t = np.arange(n) * 0.5
    weights = Lagrange(4)(on([t])).weights
    inner = weights[1:-1]
    np.testing.assert_allclose(
        inner.data.reshape(-1, 4), np.tile(np.array([-1, 13, 13, -1]) / 48, (n - 3, 1)), rtol=1e-9
    )
    np.testing.assert_array_equal(inner.indices[::4], np.arange(n - 3))


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Lagrange(3), ValueError),
        (lambda: Lagrange(0), ValueError),
        (lambda: Lagrange(4.0), TypeError),
        (lambda: Spline(0), ValueError),
        (lambda: Spline(True), TypeError),
    ],
)
def test_bad_settings_are_refused(make, error):
    with pytest.raises(error, match="must be"):
        make()


def test_gradient_matching_is_no_rule_of_increments():
    assert not isinstance(CentralDifference(), IncrementRule)
