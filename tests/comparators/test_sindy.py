"""SINDy: what pysindy finds, in the units of the data, and none of its traps."""

import sys
import warnings

import numpy as np
import pytest

import vectorfield as vf
from vectorfield.comparators import Differences, SINDy, SmoothedDifferences, Splines

pysindy = pytest.importorskip("pysindy")


def cycles(noise=0.0, count=10, samples=101, scale=(1.0, 1.0), stretch=1.0):
    rng = np.random.default_rng(0)
    t = np.linspace(0.0, 6.0, samples)
    x = vf.simulate(vf.systems.VanDerPol(), rng.uniform(-2.5, 2.5, (count, 2)), t, rtol=1e-10).x
    x = (x + noise * rng.normal(size=x.shape)) * np.array(scale)
    return list(x), t * stretch


def test_the_terms_of_a_cubic_field_are_found():
    xs, t = cycles()
    model = SINDy().fit(xs[:7], t, validation=(xs[7:], t))
    assert model.report_.best.settings["degree"] == 3
    field = model.field_
    found = {
        (i, *powers): value
        for i, row in enumerate(field.coefficients)
        for powers, value in zip(field.exponents.tolist(), row, strict=True)
        if value
    }
    expected = {(0, 0, 1): 1.0, (1, 1, 0): -1.0, (1, 0, 1): 1.0, (1, 2, 1): -1.0}
    found = {(k[0], *map(int, k[1:])): v for k, v in found.items()}
    assert found.keys() == expected.keys()
    assert all(found[k] == pytest.approx(v, rel=1e-2) for k, v in expected.items())


@pytest.mark.parametrize(("scale", "stretch"), [((1.0, 1.0), 1.0), ((100.0, 0.01), 1e-3)])
def test_the_field_is_the_model_of_pysindy_in_units_of_the_data(scale, stretch):
    xs, t = cycles(scale=scale, stretch=stretch)
    model = SINDy((2, 3), (0.01,), derivatives=(Differences(4),))
    model.fit(xs[:7], t, validation=(xs[7:], t))
    x = np.concatenate(xs[7:])
    unit = np.concatenate(xs[:7]).std(axis=0)
    slow = np.asarray(model.model_.predict(x / unit)) * unit
    rate = model.predict(x) / slow  # one number: the unit of time
    np.testing.assert_allclose(rate, np.median(rate), rtol=1e-6)
    truth = vf.systems.VanDerPol()(x / scale) * scale / stretch
    error = (model.predict(x) - truth) / truth.std(axis=0)
    assert np.sqrt(np.mean(error**2)) < 0.02


def test_a_fit_by_hand_gives_the_same():
    """pysindy's own fit, with its own derivatives, in the same units."""
    xs, t = cycles()
    model = SINDy((3,), (0.1,), derivatives=(Differences(2),)).fit(xs, t, validation=(xs, t))
    unit = np.concatenate(xs).std(axis=0)
    scaled = [x / unit for x in xs]
    slopes = [pysindy.FiniteDifference(order=2)(x, t) for x in scaled]
    rate = np.sqrt(np.mean(np.concatenate(slopes) ** 2))
    hand = pysindy.SINDy(
        optimizer=pysindy.STLSQ(threshold=0.1, alpha=0.05),
        feature_library=pysindy.PolynomialLibrary(degree=3),
        differentiation_method=pysindy.FiniteDifference(order=2),
    ).fit(scaled, [t * rate] * len(xs))
    np.testing.assert_allclose(model.model_.coefficients(), hand.coefficients(), atol=1e-8)


def test_noise_calls_for_smoothing():
    xs, t = cycles(noise=0.05, samples=401)
    clean, _ = cycles(samples=401)
    x = np.concatenate(clean)
    truth = vf.systems.VanDerPol()(x)
    errors = {}
    for name, derivatives in (
        ("plain", (Differences(2),)),
        ("smoothed", (SmoothedDifferences(11), SmoothedDifferences(21), Splines())),
    ):
        model = SINDy((2, 3), (0.03, 0.1), derivatives=derivatives)
        model.fit(xs[:7], t, validation=(xs[7:], t))
        errors[name] = np.linalg.norm(model.predict(x) - truth) / np.linalg.norm(truth)
    assert errors["smoothed"] < 0.8 * errors["plain"]
    assert errors["smoothed"] < 0.05


def test_libraries_that_are_too_large_are_attempts_with_a_reason():
    xs, t = cycles()
    model = SINDy((1, 4), (0.1,), derivatives=(Differences(),), max_terms=10)
    model.fit(xs, t)
    large = [a for a in model.report_ if a.settings["degree"] == 4]
    assert large
    assert all(a.score == np.inf and "15 monomials" in a.status for a in large)


def test_thresholds_that_leave_nothing_are_said_to():
    xs, t = cycles()
    model = SINDy((2,), (1e3,), derivatives=(Differences(),)).fit(xs, t)
    assert "eliminated all coefficients" in model.report_.best.status
    np.testing.assert_array_equal(model.predict(xs[0]), 0.0 * xs[0])


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"degrees": ()}, ValueError, "degrees must be a tuple"),
        ({"degrees": (0,)}, ValueError, "degrees must be at least 1"),
        ({"thresholds": (-1.0,)}, ValueError, "thresholds must be"),
        ({"derivatives": ("smooth",)}, TypeError, "derivatives must hold"),
        ({"alpha": -1.0}, ValueError, "alpha"),
        ({"max_terms": 0}, ValueError, "max_terms"),
        ({"folds": 1}, ValueError, "folds"),
        ({"max_time": 0.0}, ValueError, "max_time"),
    ],
)
def test_settings_are_checked_when_fitted(options, error, words):
    xs, t = cycles(count=4, samples=30)
    with pytest.raises(error, match=words):
        SINDy(**options).fit(xs, t)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pysindy", None)
    xs, t = cycles(count=4, samples=30)
    with pytest.raises(vf.MissingExtraError, match=r"vectorfield\[sindy\]"):
        SINDy().fit(xs, t)


def test_nothing_is_said_aloud():
    xs, t = cycles(count=6, samples=30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SINDy((1, 3), (0.0, 10.0), derivatives=(SmoothedDifferences(),)).fit(xs, t)
    assert any(attempt.status != "ok" for attempt in model.report_)
