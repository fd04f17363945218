from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import Polynomial
from scipy.special import beta

from vectorfield.occupation import (
    CentralDifference,
    Lagrange,
    Spline,
    Trapezoid,
    WeakForm,
    Windows,
)
from vectorfield.trajectories import Trajectories

LENGTHS = (2, 30, 3, 9, 4, 2, 17)


def spans(lengths, samples: int, stride: int) -> list[tuple[int, int, int]]:
    """(trajectory, first sample, samples) of every window, in a loop."""
    found = []
    for i, n in enumerate(lengths):
        size = min(n, samples)
        starts = sorted({*range(0, n - size + 1, stride), n - size})
        found += [(i, start, size) for start in starts]
    return found


@pytest.mark.parametrize("rule", [Trapezoid(), Lagrange(6), Spline(2)], ids=repr)
@pytest.mark.parametrize(("samples", "stride"), [(2, 1), (5, 1), (5, 3), (9, 20), (60, 1)])
def test_windows_are_sums_of_the_rules_rows(rule, samples, stride, ragged):
    data = ragged(LENGTHS)
    steps = rule(data)
    weights, targets = steps.weights.toarray(), steps.targets
    occupations = Windows(samples, rule, stride)(data)
    expected = spans(LENGTHS, samples, stride)
    assert len(occupations) == len(expected)
    for s, (i, start, size) in enumerate(expected):
        first = data.offsets[i] - i + start
        rows = slice(first, first + size - 1)
        actual = occupations.weights[[s]].toarray()[0]
        np.testing.assert_allclose(actual, weights[rows].sum(axis=0), rtol=0, atol=1e-12)
        np.testing.assert_allclose(
            occupations.targets[s], targets[rows].sum(axis=0), rtol=0, atol=1e-12
        )
        t, x = data[i]
        np.testing.assert_array_equal(occupations.targets[s], x[start + size - 1] - x[start])
        assert occupations.durations[s] == pytest.approx(t[start + size - 1] - t[start])
        assert occupations.owner[s] == i


def test_windows_have_two_snapshots_a_target(ragged):
    differences = Windows(samples=5)(ragged(LENGTHS)).differences
    np.testing.assert_array_equal(np.diff(differences.indptr), 2)
    np.testing.assert_array_equal(
        differences.data.reshape(-1, 2), [[-1.0, 1.0]] * len(differences.data[::2])
    )


def test_windows_of_one_step_are_the_rule(ragged):
    data = ragged(LENGTHS)
    one, other = Windows(samples=2, rule=Lagrange(4))(data), Lagrange(4)(data)
    assert abs(one.weights - other.weights).max() == 0.0
    np.testing.assert_array_equal(one.targets, other.targets)


@pytest.mark.parametrize(("samples", "degree", "interpolation", "stride"), [
    (9, 4, 4, 1), (5, 1, 2, 2), (2, 2, 6, 1), (6, 3, 8, 4), (40, 2, 4, 1),
])  # fmt: skip
def test_weak_form_against_polynomial_algebra(samples, degree, interpolation, stride, ragged):
    lengths = (2, 14, 3, 7)
    data = ragged(lengths)
    occupations = WeakForm(samples, degree, interpolation, stride)(data)
    expected = spans(lengths, samples, stride)
    assert len(occupations) == len(expected)
    W, D = np.zeros(occupations.weights.shape), np.zeros(occupations.differences.shape)
    for s, (i, start, size) in enumerate(expected):
        t = data[i].t - data[i].t[start]
        end = t[start + size - 1]
        phi = (Polynomial([0.0, 4.0 / end]) * Polynomial([1.0, -1.0 / end])) ** degree
        for k in range(start, start + size - 1):
            n = min(interpolation, len(t))
            first = min(max(k - interpolation // 2 + 1, 0), len(t) - n)
            for j in range(first, first + n):
                basis = Polynomial.fromroots(np.delete(t[first : first + n], j - first))
                basis = basis / basis(t[j])
                column = data.offsets[i] + j
                for matrix, test in ((W, phi), (D, -phi.deriv())):
                    area = (test * basis).integ()
                    matrix[s, column] += area(t[k + 1]) - area(t[k])
    np.testing.assert_allclose(occupations.weights.toarray(), W, rtol=0, atol=1e-8)
    np.testing.assert_allclose(occupations.differences.toarray(), D, rtol=0, atol=1e-8)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.lists(st.floats(0.1, 1.0), min_size=1, max_size=14), min_size=1, max_size=4),
    st.sampled_from([2, 4, 6, 8]),
    st.integers(2, 11),
    st.integers(1, 4),
)
def test_weak_identity_is_exact_for_polynomials(steps, interpolation, samples, degree):
    times = [np.cumsum([0.0, *s]) for s in steps]
    top = min(interpolation, *map(len, times)) - 1
    path = Polynomial([0.5, -1.0, 0.3, 0.8, -0.6, 0.2, 0.9, 0.4][: top + 1], domain=[0, 14])
    data = Trajectories.from_arrays([path(t)[:, None] for t in times], times)
    occupations = WeakForm(samples, degree, interpolation)(data)
    slope = path.deriv()(data.times)[:, None]
    np.testing.assert_allclose(occupations.weights @ slope, occupations.targets, rtol=0, atol=1e-9)


@pytest.mark.parametrize("degree", [1, 2, 5])
def test_weak_durations_are_the_integral_of_the_test_function(degree, ragged):
    data = ragged(LENGTHS)
    occupations = WeakForm(samples=6, degree=degree)(data)
    lengths = [
        data[i].t[start + size - 1] - data[i].t[start] for i, start, size in spans(LENGTHS, 6, 1)
    ]
    factor = 4.0**degree * beta(degree + 1, degree + 1)
    np.testing.assert_allclose(occupations.durations, factor * np.array(lengths), rtol=1e-11)


def test_weak_form_is_odd_about_the_middle_on_an_even_grid():
    data = Trajectories.from_arrays([np.zeros((9, 1))], 0.1)
    occupations = WeakForm(samples=9)(data)
    weights, differences = occupations.weights.toarray(), occupations.differences.toarray()
    np.testing.assert_allclose(weights, weights[:, ::-1], rtol=0, atol=1e-14)
    np.testing.assert_allclose(differences, -differences[:, ::-1], rtol=0, atol=1e-14)


def test_weak_form_over_several_blocks_repeats_itself():
    n = 20_000
    occupations = WeakForm(samples=5, degree=2)(Trajectories.from_arrays([np.zeros((n, 1))], 0.5))
    assert len(occupations) == n - 4
    for matrix in (occupations.weights, occupations.differences):
        inner = matrix[2:-2]
        rows = inner.data.reshape(n - 8, 7)
        np.testing.assert_allclose(rows, np.broadcast_to(rows[0], rows.shape), rtol=0, atol=1e-10)
        np.testing.assert_array_equal(inner.indices[::7], np.arange(1, n - 7))


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Windows(samples=1), ValueError),
        (lambda: Windows(stride=0), ValueError),
        (lambda: Windows(samples=2.5), TypeError),
        (lambda: Windows(rule=CentralDifference()), TypeError),
        (lambda: Windows(rule="trapezoid"), TypeError),
        (lambda: Windows(rule=Windows()), TypeError),
        (lambda: WeakForm(samples=1), ValueError),
        (lambda: WeakForm(degree=0), ValueError),
        (lambda: WeakForm(interpolation=5), ValueError),
        (lambda: WeakForm(stride=0), ValueError),
    ],
)
def test_bad_settings_are_refused(make, error):
    with pytest.raises(error, match="must be"):
        make()
