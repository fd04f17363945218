"""The paper's errors, typed out, and skill that is finite whatever happens."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vectorfield as vf
from vectorfield.metrics import Scores, err, evaluate, null_err, null_one_err, one_err

T = np.array([0.0, 0.5, 0.7, 2.0])
X = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, -1.0], [3.0, 3.0]])
P = np.array([[1.0, 0.0], [2.5, 1.0], [0.0, 1.0], [0.0, -1.0]])


def test_err_typed_out():
    total = 0.0
    for i in range(1, 4):
        total += (T[i] - T[i - 1]) * sum((X[i][j] - P[i][j]) ** 2 for j in range(2))
    assert err(T, X, P) == pytest.approx(math.sqrt(total), rel=1e-15)
    assert err(T, X, P) == pytest.approx(math.sqrt(0.5 * 0.25 + 0.2 * 4.0 + 1.3 * 25.0), rel=1e-14)


def test_one_err_typed_out():
    assert one_err(T, X, P) == pytest.approx(math.sqrt(0.5) * 0.5, rel=1e-15)


def test_null_models_stand_still():
    still = np.repeat(X[:1], 4, axis=0)
    assert null_err(T, X) == err(T, X, still)
    assert null_one_err(T, X) == one_err(T, X, still)
    assert null_err(T, X.tolist()) == null_err(T.tolist(), X)


def test_the_first_sample_does_not_count():
    moved = P.copy()
    moved[0] += 100.0
    assert err(T, X, moved) == err(T, X, P)
    assert err(T, X, X) == 0.0


def test_back_in_time():
    assert err(-T, X, P) == err(T, X, P)


@settings(deadline=None)
@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_units_of_time_and_state(time, state):
    assert err(time * T, state * X, state * P) == pytest.approx(
        math.sqrt(time) * state * err(T, X, P), rel=1e-9
    )


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_predictions_that_are_not_finite_are_infinitely_wrong(value):
    bad = P.copy()
    bad[3, 1] = value
    assert err(T, X, bad) == math.inf
    assert one_err(T, X, bad) == one_err(T, X, P)
    bad[1, 0] = value
    assert one_err(T, X, bad) == math.inf


def test_predictions_too_large_to_square():
    assert err(T, X, 1e200 * P) == math.inf
    assert evaluate([(T, X)], [1e200 * P]).skill == pytest.approx(1.0 - 1e6, rel=1e-12)


@pytest.mark.parametrize(
    ("t", "x", "p", "message"),
    [
        (T, X, P[:3], r"prediction has shape \(3, 2\), the observed states \(4, 2\)"),
        (T, X, P[:, :1], r"prediction has shape \(4, 1\)"),
        (T[:3], X, P, r"expected times \(n,\) and states \(n, d\)"),
        (T[:1], X[:1], P[:1], "n >= 2"),
        (T, X[:, 0], P[:, 0], r"got \(4,\), \(4,\)"),
        (T[:, None], X, P, r"got \(4, 1\), \(4, 2\)"),
    ],
)
def test_shapes_that_do_not_fit(t, x, p, message):
    for metric in (err, one_err):
        with pytest.raises(vf.DataError, match=message):
            metric(t, x, p)


def test_whole_numbers_do_not_wrap_around():
    x, p = np.array([[1], [2]], dtype=np.uint8), np.array([[1], [4]], dtype=np.uint8)
    assert err(np.array([0, 4], dtype=np.uint8), x, p) == 4.0
    assert null_err([0, 4], p) == 6.0


def test_evaluate_a_ragged_set(irregular):
    data = irregular(2)
    rng = np.random.default_rng(0)
    predictions = [x + rng.normal(size=x.shape) for _, x in data]
    scores = evaluate(data, predictions)
    assert isinstance(scores, Scores)
    for i, (t, x) in enumerate(data):
        assert scores.errs[i] == err(t, x, predictions[i])
        assert scores.one_errs[i] == one_err(t, x, predictions[i])
        assert scores.null_errs[i] == null_err(t, x)
        assert scores.null_one_errs[i] == null_one_err(t, x)
    assert scores.err == pytest.approx(np.mean(scores.errs))
    assert scores.one_err == pytest.approx(np.mean(scores.one_errs))
    assert scores.null_err == pytest.approx(np.mean(scores.null_errs))
    assert scores.null_one_err == pytest.approx(np.mean(scores.null_one_errs))
    assert scores.skill == pytest.approx(1 - scores.err / scores.null_err, rel=1e-12)
    assert scores.one_skill == pytest.approx(1 - scores.one_err / scores.null_one_err, rel=1e-12)


def test_skill_of_the_perfect_and_of_the_null_model():
    assert evaluate([(T, X)], [X]).skill == 1.0
    assert evaluate([(T, X)], [np.repeat(X[:1], 4, axis=0)]).skill == 0.0
    assert evaluate([(T, X)], [X]).one_skill == 1.0


def test_skill_is_finite_and_ranks_failures_last():
    failed = P.copy()
    failed[2:] = np.nan
    one = evaluate([(T, X), (T, X)], [P, failed])
    both = evaluate([(T, X), (T, X)], [failed, failed])
    none = evaluate([(T, X), (T, X)], [P, P])
    assert one.err == math.inf
    assert math.isfinite(one.skill)
    assert both.skill < one.skill < none.skill
    assert both.skill == pytest.approx(1.0 - 1e6, rel=1e-12)
    assert evaluate([(T, X)], [1e9 * P]).skill >= both.skill  # finite, but no better than failing


def test_skill_where_nothing_moves():
    still = np.ones((4, 2))
    assert evaluate([(T, still)], [still]).skill == 1.0
    assert evaluate([(T, still)], [P]).skill == pytest.approx(1.0 - 1e6, rel=1e-12)
    # one of two stands still: errors there count against what the other moves
    mixed = evaluate([(T, still), (T, X)], [P, X])
    assert mixed.skill == pytest.approx(1 - err(T, still, P) / null_err(T, X))
    failed = evaluate([(T, still), (T, X)], [np.full((4, 2), np.nan), X])
    assert math.isfinite(failed.skill)
    assert failed.skill < -1000.0


def test_as_many_predictions_as_trajectories():
    with pytest.raises(vf.DataError, match="1 predictions for 2 trajectories"):
        evaluate([(T, X), (T, X)], [P])
    with pytest.raises(vf.DataError, match="0 predictions for 0 trajectories"):
        evaluate([], [])


def test_torch_and_lists():
    torch = pytest.importorskip("torch")
    expected = err(T, X, P)
    assert err(torch.asarray(T), torch.asarray(X), torch.asarray(P)) == expected
    assert err(T.tolist(), X.tolist(), P.tolist()) == expected
    assert null_err(T, torch.asarray(X)) == null_err(T, X)
    assert evaluate([(T, torch.asarray(X))], [torch.asarray(P)]).err == expected
