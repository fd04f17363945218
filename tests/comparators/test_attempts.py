"""The tuning that all rivals share: every proposal is judged, whatever becomes of it."""

import warnings

import numpy as np
import pytest

import vectorfield as vf
from vectorfield.comparators.attempts import RTOL, judge, spread, tune
from vectorfield.tuning.folds import Fold

T = np.linspace(0.0, 2.0, 21)


def decays(starts, rate=1.0):
    return vf.Trajectories.from_arrays([s * np.exp(-rate * T)[:, None] for s in starts], T)


def fields(train, settings):
    kind = settings["kind"]
    if kind == "fails":
        raise vf.DataError("nothing to fit")
    if kind == "warns":
        warnings.warn("rank is low", UserWarning, stacklevel=1)
    if kind == "explodes":
        return lambda x: 1.0 + x**2
    return lambda x: -settings.get("rate", 1.0) * x


def ask(proposals, train, held=None, **options):
    settings = {"count": 2, "random_state": 0, **options}
    return tune((p for p in proposals), fields, train, held, **settings)


def test_scores_are_rollout_errors_over_the_null_models():
    held = decays([1.0, -2.0])
    model = lambda x: -0.8 * x  # noqa: E731
    score, status = judge([model], [Fold(held, held)], np.array([3.0]))
    run = vf.rollout(model, held, rtol=RTOL)
    scores = vf.metrics.evaluate(held, run.x)
    assert status == "ok"
    assert score == pytest.approx(scores.errs.sum() / scores.null_errs.sum(), rel=1e-6)
    still, _ = judge([np.zeros_like], [Fold(held, held)], np.ones(1))
    assert still == pytest.approx(1.0)


def test_every_proposal_is_kept_with_its_status():
    train = decays([1.0, 0.5, -1.0, 2.0])
    kinds = ("fails", "explodes", "plain", "warns")
    # 1 + x^2 from the held-out starts is infinite before t = 2
    field, attempts = ask([{"kind": kind} for kind in kinds], train, decays([1.0, 0.7]))
    status = {a.settings["kind"]: a for a in attempts}
    assert len(attempts) == 4
    assert status["fails"].status == "DataError: nothing to fit"
    assert status["fails"].score == np.inf
    assert "2 of 2 rollouts stopped early" in status["explodes"].status
    null = np.array([1.0, 0.7])  # in proportion; the mean stands in for those below it
    worst = 10.0 * np.maximum(null, null.mean()).sum() / null.sum()
    assert status["explodes"].score == pytest.approx(worst)
    assert (status["plain"].status, status["warns"].status) == ("ok", "rank is low")
    assert attempts.best is status["plain"]
    assert field(np.array([[2.0]])) == -2.0
    assert attempts.skill > 0.999
    assert "3 of them with remarks" in str(attempts)
    assert [row["kind"] for row in attempts.frame()] == list(kinds)


def test_scores_come_back_to_whoever_proposes():
    """Bisection on the rate of decay, by the scores alone."""
    seen = []

    def bisect():
        low, high = 0.0, 4.0
        for _ in range(12):
            a, b = low + (high - low) / 3, high - (high - low) / 3
            first = yield {"kind": "plain", "rate": a}
            second = yield {"kind": "plain", "rate": b}
            seen.append((first, second))
            low, high = (low, b) if first < second else (a, high)

    train = decays([1.0, 2.0], rate=1.7)
    _, attempts = tune(bisect(), fields, train, train, count=2, random_state=0)
    assert attempts.best.settings["rate"] == pytest.approx(1.7, abs=0.02)
    assert [a.score for a in attempts] == [s for pair in seen for s in pair]


def test_nothing_fits_is_an_error_with_the_reason():
    with pytest.raises(vf.DataError, match=r"none of 2 candidates.*nothing to fit"):
        ask([{"kind": "fails"}] * 2, decays([1.0, 2.0]), decays([1.0]))


def test_folds_hold_out_each_trajectory_once_and_time_runs_out():
    train = decays([1.0, 0.5, -1.0, 2.0])
    _, attempts = ask([{"kind": "plain"}], train)
    assert attempts.folds == 2
    _, attempts = ask([{"kind": "plain", "rate": r} for r in range(9)], train, max_time=1e-9)
    assert len(attempts) == 1
    long = vf.Trajectories.from_arrays([np.sin(np.arange(2000.0))[:, None]] * 4, 1.0)
    _, attempts = ask([{"kind": "plain"}], long)
    assert attempts.folds == 1


def test_a_report_says_when_nothing_was_learned():
    _, attempts = ask([{"kind": "plain", "rate": -1.0}], decays([1.0, 2.0]), decays([1.0]))
    assert not attempts.best.score < 1.0
    assert "nothing tried is better than the null model" in str(attempts)


def test_constant_features_count_as_they_are():
    x = np.stack([np.sin(T), np.full_like(T, 7.0)], axis=1)
    found = spread(vf.Trajectories.from_arrays(x, T))
    np.testing.assert_allclose(found, [x[:, 0].std(), 1.0])
