"""Stacking: weights found on held-out errors, and kept where that is more than chance."""

import numpy as np
import pytest

import vectorfield as vf
from vectorfield.kernels import Gaussian, Monomials
from vectorfield.plan import Plan
from vectorfield.tuning import OneStep, Rollout, Windowed
from vectorfield.tuning.bundle import Bundle, Weighted
from vectorfield.tuning.stacking import GRAIN, stack


def errors_of(bias):
    """Errors of weighted sums of fields whose errors are numbers: (R, M) -> (R, 1, T)."""
    return lambda weights: np.abs(weights @ bias)[:, None, :]


def brute(evaluate, objective, null, count):
    """The best of all weights in sixteenths."""
    lattice = [(i, j, GRAIN - i - j) for i in range(GRAIN + 1) for j in range(GRAIN + 1 - i)]
    assert count == 3
    errors = evaluate(np.array(lattice) / GRAIN)
    scores = [objective.score(e, null)[0] for e in errors]
    return np.array(lattice[int(np.argmin(scores))]) / GRAIN, min(scores)


@pytest.mark.parametrize("seed", range(6))
def test_the_walk_finds_the_best_of_all_weights(seed):
    rng = np.random.default_rng(seed)
    bias = rng.normal(size=(3, 1, 4)) + 0.3 * rng.normal(size=(3, 30, 4))
    null = np.ones((1, 30))

    def evaluate(weights):
        return np.linalg.norm(np.einsum("rm,mtd->rtd", weights, bias), axis=2)[:, None, :]

    found = stack(evaluate, 3, OneStep(), null, most=10**6)
    score = OneStep().score(evaluate(found.weights[None])[0], null)[0]
    assert score <= 1.02 * brute(evaluate, OneStep(), null, 3)[1]
    assert found.weights.sum() == 1.0
    np.testing.assert_array_equal(found.weights * GRAIN, np.round(found.weights * GRAIN))


def test_fields_that_err_to_opposite_sides_are_combined():
    bias = np.random.default_rng(0).normal([[1.0], [-3.0]], 0.05, size=(2, 50))
    found = stack(errors_of(bias), 2, Rollout(), np.ones((1, 50)))
    np.testing.assert_array_equal(found.weights, [0.75, 0.25])
    assert found.single == 0
    assert found.kept
    assert found.gain > 1.0


@pytest.mark.parametrize("seed", range(5))
def test_where_one_is_the_truth_it_stays_alone(seed):
    rng = np.random.default_rng(seed)
    noise = np.abs(rng.normal(size=60))
    worse = rng.normal(0.5, 0.2, size=60)

    def evaluate(weights):  # the first has the noise alone, the second's errors come on top
        return np.hypot(noise, weights[:, 1:] * worse)[:, None, :]

    found = stack(evaluate, 2, OneStep(), np.ones((1, 60)))
    np.testing.assert_array_equal(found.weights, [1.0, 0.0])
    assert not found.kept


def test_a_gain_by_chance_is_not_kept():
    kept = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        table = rng.lognormal(0.0, 0.5, size=(GRAIN + 1, 12))  # no weight is better than another

        def evaluate(weights, table=table):
            return table[np.rint(weights[:, 1] * GRAIN).astype(int)][:, None, :]

        kept += stack(evaluate, 2, OneStep(), np.ones((1, 12))).kept
    assert kept <= 4


def test_errors_are_those_of_weights_that_others_chose():
    rng = np.random.default_rng(1)
    table = rng.lognormal(0.0, 0.5, size=(GRAIN + 1, 10))
    seen = []

    def evaluate(weights):
        rows = np.rint(weights[:, 1] * GRAIN).astype(int)
        seen.extend(rows.tolist())
        return table[rows][:, None, :]

    found = stack(evaluate, 2, OneStep(), np.ones((1, 10)))
    assert len(seen) == len(set(seen)) == found.tried
    for i in range(10):
        others = np.arange(10) % 5 != i % 5
        chosen = min(seen, key=lambda row: table[row, others].sum())
        assert found.errors[0, i] == table[chosen, i]


def test_one_trajectory_shows_nothing_and_the_bound_is_kept():
    bias = np.array([[1.0], [-1.0]])
    assert not stack(errors_of(bias), 2, OneStep(), np.ones((1, 1))).kept
    calls = []

    def evaluate(weights):
        calls.append(len(weights))
        return errors_of(np.array([[1.0, 1.1], [-1.3, -1.0], [5.0, 4.0]]))(weights)

    assert stack(evaluate, 3, OneStep(), np.ones((1, 2)), most=7).tried == sum(calls) == 7


def test_gains_are_paired():
    rng = np.random.default_rng(0)
    hard = rng.lognormal(0.0, 2.0, size=(3, 9))  # trajectories differ far more than the fields
    null = rng.uniform(1.0, 2.0, size=(3, 9))
    after = 0.9 * hard * rng.lognormal(0.0, 0.01, size=hard.shape)
    for objective in (Windowed(), Rollout(), OneStep()):
        gain, spread = objective.gain(hard, after, null)
        scores = [objective.score(e, null)[0] for e in (hard, after)]
        assert gain == pytest.approx(np.log(scores[0] / scores[1]))
        left = []
        for i in range(9):
            rest = [np.delete(e, i, 1) for e in (hard, after, null)]
            left.append(
                np.log(objective.score(rest[0], rest[2])[0] / objective.score(rest[1], rest[2])[0])
            )
        expected = np.sqrt(8 / 9 * np.sum((np.array(left) - np.mean(left)) ** 2))
        assert spread == pytest.approx(expected)
        assert gain > 5 * spread
        assert (
            objective.score(hard, null)[1] > 5 * spread * scores[0]
        )  # nothing cancels in a score itself
        backwards = objective.gain(after, hard, null)
        assert backwards == pytest.approx((-gain, spread))
    assert np.isnan(Windowed().gain(hard[:, :1], after[:, :1], null[:, :1])[1])


@pytest.mark.parametrize("same", [True, False], ids=["shared", "one by one"])
def test_a_bundle_of_weighted_sums(same):
    data = vf.Trajectories.from_arrays(np.random.default_rng(0).normal(size=(60, 2)), 0.1)
    plans = (Plan(Gaussian(1.0), 1e-3), Plan(Monomials(2), 1e-3), Plan(Gaussian(3.0), 1e-3))
    flows = tuple(plan.fit(data).field for plan in plans)
    weights = np.array([[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]])
    sums = [Weighted(flows if same else tuple(flows), w) for w in weights]
    if not same:
        sums[0] = Weighted((flows[0],), np.ones(1))
    x = np.random.default_rng(1).normal(size=(20, 8))
    value = Bundle(sums)(x).reshape(20, 4, 2)
    points = x.reshape(20, 4, 2)
    for r, w in enumerate(weights):
        expected = sum(w[m] * flows[m](points[:, r]) for m in range(3))
        np.testing.assert_allclose(value[:, r], expected, rtol=1e-12, atol=1e-13)
    single = Bundle(sums[1:2]).jacobian(points[:, 1])
    expected = 0.25 * flows[0].jacobian(points[:, 1]) + 0.75 * flows[1].jacobian(points[:, 1])
    np.testing.assert_allclose(single, expected, rtol=1e-12, atol=1e-12)
