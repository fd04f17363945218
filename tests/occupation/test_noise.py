from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import vectorfield as vf
from vectorfield.occupation import (
    CentralDifference,
    ForwardDifference,
    Lagrange,
    Noise,
    SnapshotNoise,
    Trapezoid,
    WeakForm,
    White,
    Windows,
)
from vectorfield.trajectories import Trajectories

LENGTHS = (2, 30, 3, 9, 4, 2, 17)


def test_white_noise_is_the_identity(rule, ragged):
    occupations = rule(ragged(LENGTHS))
    covariance = White().covariance(occupations)
    assert isinstance(covariance, sp.csr_array)
    np.testing.assert_array_equal(covariance.toarray(), np.eye(len(occupations)))


def test_snapshot_noise_is_exactly_d_dt(rule, ragged):
    occupations = rule(ragged(LENGTHS))
    differences = occupations.differences.toarray()
    covariance = SnapshotNoise().covariance(occupations)
    assert isinstance(covariance, sp.csr_array)
    size = abs(differences).max() ** 2
    np.testing.assert_allclose(
        covariance.toarray(), differences @ differences.T, rtol=0, atol=1e-13 * size
    )
    assert abs(covariance - covariance.T).max() == 0.0


def test_snapshot_noise_is_the_covariance_that_noise_produces(rule):
    """Every coordinate is one draw: d draws give the covariance to 1 / sqrt(d)."""
    rng = np.random.default_rng(5)
    lengths, d = (2, 14, 3, 8), 20_000
    ts = [np.cumsum(rng.uniform(0.3, 1.0, n)) for n in lengths]
    clean = [np.sin(t)[:, None] for t in ts]
    noisy = [x + rng.normal(size=(len(x), d)) for x in clean]
    truth = rule(Trajectories.from_arrays(clean, ts)).targets
    occupations = rule(Trajectories.from_arrays(noisy, ts))
    errors = occupations.targets - truth
    sigma = SnapshotNoise().covariance(occupations).toarray()
    variances = np.diag(sigma)
    spread = np.sqrt((np.outer(variances, variances) + sigma**2) / d)
    assert (abs(errors @ errors.T / d - sigma) < 5.0 * spread).all()


def test_no_entry_couples_two_trajectories(rule, ragged):
    occupations = rule(ragged(LENGTHS))
    covariance = SnapshotNoise().covariance(occupations).tocoo()
    np.testing.assert_array_equal(
        occupations.owner[covariance.row], occupations.owner[covariance.col]
    )


@pytest.mark.parametrize(
    ("rule", "distances"),
    [
        (Trapezoid(), {0, 1}),
        (Lagrange(8), {0, 1}),
        (ForwardDifference(), {0, 1}),
        (CentralDifference(), {0, 1, 2}),
        (Windows(samples=5), {0, 4}),
        (Windows(samples=5, stride=2), {0, 2}),
        (Windows(samples=5, stride=3), {0}),
        (WeakForm(samples=9), set(range(11))),
        (WeakForm(samples=9, stride=4), set(range(3))),
    ],
    ids=repr,
)
def test_bandwidth(rule, distances, ragged):
    # 41 samples: these strides meet the end, so that windows are evenly spaced throughout.
    covariance = rule(ragged((41,))).covariance.tocoo()
    assert set(abs(covariance.row - covariance.col).tolist()) == distances


def test_rows_are_independent(rule, ragged):
    """Sigma is positive definite, far from rounding on short trajectories."""
    covariance = rule(ragged(LENGTHS)).covariance.toarray()
    scale = np.sqrt(np.diag(covariance))
    eigenvalues = np.linalg.eigvalsh(covariance / np.outer(scale, scale))
    assert eigenvalues[0] > 1e-8


@pytest.mark.parametrize("w", [1, 4])
def test_condition_number_of_increments_grows_with_the_square_of_the_length(w):
    n = 200
    data = Trajectories.from_arrays([np.zeros((n, 1))], 0.1)
    covariance = Windows(samples=w + 1)(data).covariance.toarray()
    assert np.linalg.cond(covariance) == pytest.approx((2 * n / (np.pi * w)) ** 2, rel=0.1)


def test_condition_number_of_the_weak_form_falls_with_the_stride():
    data = Trajectories.from_arrays([np.zeros((300, 1))], 0.1)
    conditions = [
        np.linalg.cond(WeakForm(stride=stride)(data).covariance.toarray()) for stride in (1, 2, 4)
    ]
    assert 1e7 < conditions[0] < 5e7
    assert 1e3 < conditions[1] < 5e3
    assert conditions[2] < 10


def test_whitened_increments_are_snapshots_less_their_mean(ragged):
    occupations = Trapezoid()(ragged((12,)))
    D = occupations.differences.toarray()
    projection = D.T @ np.linalg.solve(occupations.covariance.toarray(), D)
    np.testing.assert_allclose(projection, np.eye(12) - 1.0 / 12, rtol=0, atol=1e-13)


@pytest.mark.parametrize("noise", [White(), SnapshotNoise()])
def test_noise_models_are_settings(noise):
    assert isinstance(noise, Noise)
    assert set(noise.get_params().values()) == {0.0}  # what both were before they had a setting
    assert pickle.loads(pickle.dumps(noise)) == noise


def test_model_error_is_added_on_the_diagonal(rule, ragged):
    occupations = rule(ragged(LENGTHS))
    h = occupations.durations
    assert (h > 0).all()
    extra = SnapshotNoise(0.7).covariance(occupations) - SnapshotNoise().covariance(occupations)
    np.testing.assert_allclose(extra.toarray(), 0.7 * np.diag(h / h.mean()), rtol=0, atol=1e-12)
    assert extra.diagonal().mean() == pytest.approx(0.7)


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_white_noise_with_a_power(rule, ragged, power):
    occupations = rule(ragged(LENGTHS))
    h = occupations.durations
    covariance = White(power).covariance(occupations)
    assert isinstance(covariance, sp.csr_array)
    np.testing.assert_allclose(covariance.toarray(), np.diag((h / h.mean()) ** power), rtol=1e-12)


def test_on_even_steps_every_power_is_the_identity():
    data = Trajectories.from_arrays([np.zeros((9, 1)), np.zeros((4, 1))], 0.25)
    covariance = White(2.0).covariance(Trapezoid()(data)).toarray()
    np.testing.assert_allclose(covariance, np.eye(11), rtol=0, atol=1e-14)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=20),
    st.floats(0.0, 1e6),
    st.floats(0.0, 3.0),
    st.floats(1e-6, 1e6),
)
def test_definite_and_free_of_units_for_any_steps(steps, rho, power, unit):
    times = np.concatenate([[0.0], np.cumsum(steps)])
    states = np.zeros((len(times), 1))
    occupations = Trapezoid()(Trajectories.from_arrays(states, times))
    other = Trapezoid()(Trajectories.from_arrays(states, unit * times))
    for noise in (SnapshotNoise(rho), White(power)):
        sigma = noise.covariance(occupations).toarray()
        assert np.linalg.eigvalsh(sigma)[0] > 0
        np.testing.assert_allclose(noise.covariance(other).toarray(), sigma, rtol=1e-6)


def test_dynamics_with_noise_have_this_covariance():
    """Brownian paths on uneven times, seen with noise: every coordinate is one draw."""
    rng = np.random.default_rng(5)
    q, sigma, d = 0.8, 0.6, 20_000
    t = np.cumsum(rng.uniform(0.1, 1.0, 12))
    steps = np.diff(t)
    path = np.concatenate(
        [
            np.zeros((1, d)),
            np.cumsum(np.sqrt(q * steps)[:, None] * rng.normal(size=(11, d)), axis=0),
        ]
    )
    seen = Trajectories.from_arrays([path + sigma * rng.normal(size=path.shape)], t)
    occupations = Trapezoid()(seen)
    noise = SnapshotNoise(q * steps.mean() / sigma**2)
    expected = sigma**2 * noise.covariance(occupations).toarray()
    y = occupations.targets
    variances = np.diag(expected)
    spread = np.sqrt((np.outer(variances, variances) + expected**2) / d)
    assert (abs(y @ y.T / d - expected) < 5.0 * spread).all()


def test_rows_that_do_not_last(ragged):
    """Rules of others may have rows of any sum."""
    occupations = Trapezoid()(ragged((6,)))
    sign = sp.csr_array(sp.diags_array([1.0, -1.0, 1.0, 0.0, 1.0]))
    odd = dataclasses.replace(occupations, weights=sp.csr_array(sign @ occupations.weights))
    sigma = SnapshotNoise(2.0).covariance(odd).toarray()
    assert np.linalg.eigvalsh(sigma)[0] > 0
    with pytest.raises(vf.DataError, match=r"White\(power=1\) gives observation 3, of duration 0"):
        White(1.0).covariance(odd)
    none = dataclasses.replace(occupations, weights=0.0 * occupations.weights)
    np.testing.assert_array_equal(White(1.0).covariance(none).toarray(), np.eye(5))


@pytest.mark.parametrize("kernel", [vf.kernels.Gaussian(1.0), vf.kernels.Monomials(2)], ids=repr)
@pytest.mark.parametrize("noise", [White(1.0), SnapshotNoise(0.5)], ids=repr)
def test_fits_take_them(kernel, noise, ragged):
    data = ragged((12, 3, 20), d=2)
    model = vf.MOCK(kernel, 1e-2, noise=noise).fit(data)
    assert model.solution_.status.ok
    assert model.field_.info["noise"] == repr(noise)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: White(-1.0), "power must be a finite number >= 0"),
        (lambda: SnapshotNoise(-1e-3), "model_error must be a finite number >= 0"),
        (lambda: SnapshotNoise(float("nan")), "model_error must be a finite number >= 0"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
