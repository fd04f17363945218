from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

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
    assert noise.get_params() == {}
    assert pickle.loads(pickle.dumps(noise)) == noise
