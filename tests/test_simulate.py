"""Simulation: SciPy's steps, every start on its own, every failure a status."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import vectorfield as vf
from vectorfield import Outcome

EXPLICIT = ["DOP853", "RK45"]
IMPLICIT = ["Radau", "BDF", "LSODA"]
METHODS = EXPLICIT + IMPLICIT


def lorenz(x: np.ndarray) -> np.ndarray:
    a, b, c = x[:, 0], x[:, 1], x[:, 2]
    return np.stack([10 * (b - a), a * (28 - c) - b, a * b - 8 / 3 * c], axis=1)


def pendulum(x: np.ndarray) -> np.ndarray:
    return np.stack([x[:, 1], -9.8 * np.sin(x[:, 0])], axis=1)


def decay(x: Any) -> Any:
    return -x


def square(x: Any) -> Any:
    return x * x


def scipy_states(
    field: Any, x0: np.ndarray, t: np.ndarray, *, own: bool = False, **options: Any
) -> Any:
    """At the times asked, or at the end of every step of its own."""
    asked = None if own else t
    return solve_ivp(lambda _, x: field(x[None, :])[0], t[[0, -1]], x0, t_eval=asked, **options)


class VanDerPol:
    """Stiff at mu = 1000; with a Jacobian, as a `VectorField` has."""

    def __init__(self, mu: float = 1000.0) -> None:
        self.mu, self.jacobians = mu, 0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        a, b = x[:, 0], x[:, 1]
        return np.stack([b, self.mu * (1 - a**2) * b - a], axis=1)

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        self.jacobians += 1
        a, b = x[:, 0], x[:, 1]
        rows = [[0 * a, 1 + 0 * a], [-2 * self.mu * a * b - 1, self.mu * (1 - a**2)]]
        return np.moveaxis(np.array(rows), -1, 0)


# Against SciPy


@pytest.mark.parametrize("method", EXPLICIT)
@pytest.mark.parametrize("rtol", [1e-3, 1e-6, 1e-10])
@pytest.mark.parametrize(
    ("field", "x0", "t"),
    [
        (pendulum, [1.0, -2.0], np.linspace(0.0, 3.0, 40)),
        (pendulum, [0.5, 0.0], np.cumsum(np.random.default_rng(0).uniform(0.01, 0.7, 15))),
        (lorenz, [1.0, 2.0, 20.0], np.linspace(0.0, 1.0, 30)),
        (lorenz, [1.0, 2.0, 20.0], np.linspace(-4.0, -4.1, 5)),
        (decay, [1.0, 1e-6], np.array([100.0, 100.5])),
    ],
)
def test_the_steps_are_scipys(method, rtol, field, x0, t):
    options = {"rtol": rtol, "atol": 1e-2 * rtol, "method": method}
    ours = vf.simulate(field, np.array(x0), t, **options)
    theirs = scipy_states(field, np.array(x0), t, **options)
    assert ours.success
    assert ours.x.shape == (len(t), len(x0))
    np.testing.assert_allclose(ours.x, theirs.y.T, rtol=1e-9, atol=1e-11)
    assert ours.evaluations <= theirs.nfev
    steps = len(scipy_states(field, np.array(x0), t, **options, own=True).t)
    assert ours.steps.tolist() == [steps - 1]


@pytest.mark.parametrize("method", EXPLICIT)
def test_error_falls_with_the_tolerance(method):
    t = np.linspace(0.0, 3.0, 7)
    exact = np.exp(-t)[:, None] * np.array([1.0, -2.0])
    errors = []
    for rtol in (1e-3, 1e-5, 1e-7, 1e-9, 1e-11):
        x = vf.simulate(decay, np.array([1.0, -2.0]), t, rtol=rtol, method=method).x
        errors.append(np.abs(x - exact).max())
        assert errors[-1] < 20 * rtol
    assert errors[-1] < 1e-6 * errors[0]


@pytest.mark.parametrize("method", METHODS)
def test_known_solutions(method):
    """The logistic equation and an oscillator, forwards and back."""
    t = np.linspace(1.0, 4.0, 9)
    for times in (t, t[::-1]):
        start = 1 / (1 + np.exp(-times[0]))
        x = vf.simulate(lambda x: x - x**2, np.array([start]), times, method=method, rtol=1e-9).x
        np.testing.assert_allclose(x[:, 0], 1 / (1 + np.exp(-times)), rtol=1e-6)
        x = vf.simulate(
            lambda x: np.stack([x[:, 1], -x[:, 0]], axis=1),
            np.array([np.sin(times[0]), np.cos(times[0])]),
            times,
            method=method,
            rtol=1e-9,
        ).x
        np.testing.assert_allclose(x[:, 0], np.sin(times), rtol=0, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_there_and_back(method):
    there = vf.simulate(pendulum, np.array([1.0, 0.5]), [0.0, 0.3, 1.0], method=method).x[-1]
    back = vf.simulate(pendulum, there, [1.0, 0.2, 0.0], method=method).x[-1]
    np.testing.assert_allclose(back, [1.0, 0.5], rtol=1e-4)


def test_the_interpolant_is_as_good_as_the_steps():
    """Many samples inside each step, against a run that stops at every one of them."""
    t = np.linspace(0.0, 2.0, 400)
    for method in EXPLICIT:
        x = vf.simulate(pendulum, np.array([1.0, 0.0]), t, method=method, rtol=1e-9).x
        fine = vf.simulate(pendulum, np.array([1.0, 0.0]), t, method="DOP853", rtol=1e-12).x
        assert np.abs(x - fine).max() < 1e-7


def test_samples_asked_do_not_change_the_steps():
    few = vf.simulate(lorenz, np.array([1.0, 2.0, 20.0]), [0.0, 1.0])
    many = vf.simulate(lorenz, np.array([1.0, 2.0, 20.0]), np.linspace(0.0, 1.0, 100))
    assert few.steps == many.steps
    np.testing.assert_array_equal(few.x[-1], many.x[-1])


# Batches


@pytest.mark.parametrize("method", METHODS)
def test_a_batch_gives_what_single_runs_give(method):
    rng = np.random.default_rng(0)
    starts = np.array([1.0, 2.0, 20.0]) * rng.uniform(0.1, 1.5, size=(5, 3))
    t = np.linspace(0.0, 0.5, 12)
    batch = vf.simulate(lorenz, starts, t, method=method, rtol=1e-6)
    assert batch.x.shape == (5, 12, 3)
    assert batch.t.shape == (12,)
    for i, start in enumerate(starts):
        one = vf.simulate(lorenz, start, t, method=method, rtol=1e-6)
        np.testing.assert_allclose(batch.x[i], one.x, rtol=1e-9, atol=1e-10)
        assert batch.steps[i] == one.steps[0]
        assert batch.outcomes[i] is one.outcomes[0] is Outcome.FINISHED
        assert batch.reached[i] == 0.5
    if method in EXPLICIT:  # one call a stage for all
        assert batch.evaluations < 2.5 * one.evaluations
    np.testing.assert_array_equal(batch.x[:, 0], starts)


@pytest.mark.parametrize("method", METHODS)
def test_ragged_times(method):
    starts = np.array([[1.0, 0.0], [0.5, -1.0], [2.0, 3.0], [0.1, 0.1]])
    times = [
        np.linspace(0.0, 2.0, 9),
        np.array([5.0, 5.5]),
        np.array([-1.0, -1.5, -3.0]),  # back in time
        np.array([7.0]),
    ]
    batch = vf.simulate(pendulum, starts, times, method=method)
    assert [x.shape for x in batch.x] == [(9, 2), (2, 2), (3, 2), (1, 2)]
    assert batch.success
    np.testing.assert_array_equal(batch.reached, [2.0, 5.5, -3.0, 7.0])
    for i in range(4):
        one = vf.simulate(pendulum, starts[i], times[i], method=method)
        np.testing.assert_allclose(batch.x[i], one.x, rtol=1e-8, atol=1e-9)
        np.testing.assert_array_equal(batch.x[i][0], starts[i])
        np.testing.assert_array_equal(batch.t[i], times[i])


def test_every_start_has_its_own_steps():
    """A fast and a slow oscillator: the slow one does not pay for the fast one."""

    def springs(x: np.ndarray) -> np.ndarray:
        return np.stack([x[:, 1], -x[:, 2] * x[:, 0], 0 * x[:, 2]], axis=1)

    starts = np.array([[1.0, 0.0, 1.0], [1.0, 0.0, 1e4]])
    run = vf.simulate(springs, starts, [0.0, 5.0], rtol=1e-8)
    assert run.steps[1] > 20 * run.steps[0]
    np.testing.assert_allclose(run.x[:, 1, 0], np.cos([5.0, 500.0]), rtol=0, atol=1e-4)
    alone = vf.simulate(springs, starts[0], [0.0, 5.0], rtol=1e-8)
    assert run.steps[0] == alone.steps[0]


def test_rollout_starts_at_every_first_sample(irregular):
    data = irregular(2)
    run = vf.rollout(decay, data)
    for (t, x), predicted in zip(data, run.x, strict=True):
        exact = x[0] * np.exp(-(t - t[0]))[:, None]
        np.testing.assert_allclose(predicted, exact, rtol=1e-6, atol=1e-7)
    with pytest.raises(ValueError, match="method must be one of"):
        vf.rollout(decay, data, method="euler")


# Ends


@pytest.mark.parametrize("method", METHODS)
def test_a_singularity_stops_one_start_alone(method):
    starts = np.array([[0.1], [1.0], [-1.0], [4.0]])  # x = x0 / (1 - x0 t): poles at 10, 1, none
    t = np.array([0.0, 0.2, 0.5, 2.0])
    run = vf.simulate(square, starts, t, method=method, on_failure="ignore")
    assert [outcome is Outcome.FINISHED for outcome in run.outcomes] == [True, False, True, False]
    assert not run.success
    exact = starts / (1 - starts * t)
    good = np.isfinite(run.x[:, :, 0])
    np.testing.assert_array_equal(good, [[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 0, 0]])
    np.testing.assert_allclose(run.x[:, :, 0][good], exact[good], rtol=1e-4)
    np.testing.assert_allclose(run.reached, [2.0, 1.0, 2.0, 0.25], rtol=1e-3)
    alone = vf.simulate(square, starts[1], t, method=method, on_failure="ignore")
    assert alone.outcomes == (run.outcomes[1],)
    np.testing.assert_allclose(alone.x, run.x[1], rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_growth_beyond_floating_point_is_a_blow_up(method):
    run = vf.simulate(
        lambda x: x, np.array([1.0]), [0.0, 1.0, 1000.0], method=method, rtol=1e-4,
        on_failure="ignore",
    )  # fmt: skip
    assert run.outcomes == (Outcome.BLEW_UP,)
    assert 650.0 < run.reached[0] < 710.0
    np.testing.assert_allclose(run.x[:2, 0], np.exp([0.0, 1.0]), rtol=1e-3)
    assert np.isnan(run.x[2, 0])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_field_that_is_not_finite_at_the_start(method, value):
    run = vf.simulate(
        lambda x: np.where(x > 0, value, 1.0), np.array([[1.0], [-5.0]]), [3.0, 3.5, 4.0],
        method=method, on_failure="ignore",
    )  # fmt: skip
    assert run.outcomes == (Outcome.BLEW_UP, Outcome.FINISHED)
    np.testing.assert_allclose(run.x[:, :, 0], [[1.0, np.nan, np.nan], [-5.0, -4.5, -4.0]])
    np.testing.assert_array_equal(run.reached, [3.0, 4.0])
    np.testing.assert_array_equal(run.steps[0], 0)


@pytest.mark.parametrize("method", METHODS)
def test_a_field_that_stops_being_finite(method):
    run = vf.simulate(
        lambda x: np.where(x > 1.5, np.nan, 1.0), np.array([1.0]), [0.0, 1e-5, 2.0],
        method=method, on_failure="ignore",
    )  # fmt: skip
    assert run.outcomes == (Outcome.BLEW_UP,)
    assert 1e-5 <= run.reached[0] <= 0.5
    np.testing.assert_allclose(run.x[:, 0], [1.0, 1.00001, np.nan])


@pytest.mark.parametrize("method", METHODS)
def test_one_time_gives_the_start(method):
    for field in (decay, lambda x: x * np.nan):
        run = vf.simulate(field, np.array([1.0, 2.0]), [3.0], method=method)
        np.testing.assert_array_equal(run.x, [[1.0, 2.0]])
        assert run.outcomes == (Outcome.FINISHED,)
        assert run.steps.tolist() == [0]
        assert run.reached.tolist() == [3.0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("atol", [None, 0.0])
def test_zero_fields_stand_still(method, atol):
    starts = np.array([[0.0, 0.0], [1.0, -2.0]])
    run = vf.simulate(lambda x: 0 * x, starts, [0.0, 1.0, 1e6], method=method, atol=atol)
    np.testing.assert_array_equal(run.x, np.repeat(starts[:, None, :], 3, axis=1))
    assert run.success
    assert run.steps.max() < 60


@pytest.mark.parametrize("method", METHODS)
def test_max_steps(method):
    run = vf.simulate(
        lambda x: np.stack([x[:, 1], -100 * x[:, 0]], axis=1), np.array([[1.0, 0.0], [0.0, 0.0]]),
        [0.0, 0.05, 100.0], method=method, max_steps=60, on_failure="ignore",
    )  # fmt: skip
    assert run.outcomes == (Outcome.TOO_MANY_STEPS, Outcome.FINISHED)
    assert 0.05 < run.reached[0] < 100.0
    assert run.steps[0] <= 60
    np.testing.assert_allclose(run.x[0, 1], [np.cos(0.5), -10 * np.sin(0.5)], rtol=1e-4)
    assert np.isnan(run.x[0, 2]).all()
    assert "raise it" in run.message()


def test_what_to_do_with_failures():
    x0, t = np.array([[1.0], [-1.0]]), [0.0, 0.5, 2.0]
    with pytest.warns(vf.SimulationWarning, match=r"1 of 2 starts stopped early; start 0 at t = 1"):
        warned = vf.simulate(square, x0, t)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ignored = vf.simulate(square, x0, t, on_failure="ignore")
    assert caught == []
    with pytest.raises(vf.SimulationError, match="1 of 2 starts stopped early") as error:
        vf.simulate(square, x0, t, on_failure="raise")
    for run in (warned, ignored, error.value.simulation):
        assert run.outcomes == (Outcome.STEP_TOO_SMALL, Outcome.FINISHED)
        assert np.isnan(run.x[0, 2]).all()
        assert np.isfinite(run.x[1]).all()
    for mode in ("warn", "raise", "ignore"):  # nothing to say of a good run
        good = vf.simulate(decay, x0, t, on_failure=mode)
        assert good.success
        assert good.message() == "2 of 2 starts finished"
    assert repr(good) == f"Simulation(2 of 2 starts finished; {good.evaluations} evaluations)"
    assert "1 of 2 starts stopped early" in repr(ignored)


def test_the_warning_points_at_the_caller():
    with pytest.warns(vf.SimulationWarning) as caught:
        vf.simulate(square, np.array([1.0]), [0.0, 2.0])
    assert caught[0].filename == __file__


# Stiff fields


@pytest.mark.parametrize("method", IMPLICIT)
def test_stiff_van_der_pol(method):
    field = VanDerPol()
    t = np.linspace(0.0, 2000.0, 21)
    run = vf.simulate(field, np.array([2.0, 0.0]), t, method=method, rtol=1e-7, atol=1e-9)
    assert run.success
    assert field.jacobians > 0
    assert run.evaluations < 50_000
    assert 100 < run.steps[0] < 10_000
    exact = scipy_states(
        field, np.array([2.0, 0.0]), t, method="Radau", rtol=1e-9, atol=1e-11,
        jac=lambda _, x: field.jacobian(x[None, :])[0],
    ).y.T  # fmt: skip
    np.testing.assert_allclose(run.x[:, 0], exact[:, 0], rtol=0, atol=2e-3)
    assert np.abs(np.diff(np.sign(run.x[:, 0]))).max() == 2  # it jumped


def test_explicit_methods_say_what_to_do_about_stiff_fields():
    run = vf.simulate(
        VanDerPol(), np.array([2.0, 0.0]), [0.0, 2000.0], max_steps=300, on_failure="ignore"
    )
    assert run.outcomes == (Outcome.TOO_MANY_STEPS,)
    assert "try method='Radau'" in run.message()


@pytest.mark.parametrize("method", IMPLICIT)
def test_stiff_methods_without_a_jacobian(method):
    run = vf.simulate(
        lambda x: np.stack([-1e4 * (x[:, 0] - np.cos(x[:, 1])), 1 + 0 * x[:, 1]], axis=1),
        np.array([0.0, 0.0]), [0.0, 1.0, 2.0], method=method,
    )  # fmt: skip
    np.testing.assert_allclose(run.x[1:, 0], np.cos([1.0, 2.0]), rtol=0, atol=2e-4)
    assert run.evaluations < 5000


def test_stiff_methods_use_the_jacobian_of_a_learned_field(irregular):
    model = vf.MOCK(search=False).fit(irregular(2))
    t = np.linspace(0.0, 1.0, 5)
    starts = irregular(2).states[:3]
    expected = model.simulate(starts, t, rtol=1e-9)
    for method in IMPLICIT:
        got = model.simulate(starts, t, rtol=1e-9, method=method)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("method", IMPLICIT)
def test_jacobians_that_are_not_finite_are_a_blow_up(method):
    class Broken(VanDerPol):
        def jacobian(self, x: np.ndarray) -> np.ndarray:
            return np.where(x[:, :1, None] > 1.9, super().jacobian(x), np.nan)

    run = vf.simulate(
        Broken(), np.array([2.0, 0.0]), [0.0, 1.0, 790.0, 2000.0], method=method,
        rtol=1e-6, on_failure="ignore",
    )  # fmt: skip
    assert run.outcomes == (Outcome.BLEW_UP,)
    assert np.isfinite(run.x[1]).all()
    assert 1.0 < run.reached[0] < 900.0


# What is taken and what is refused


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("field", "shape"),
    [
        (lambda x: x[:, :1], r"\(1, 1\)"),
        (lambda x: x[0], r"\(2,\)"),
        (lambda x: x[None], r"\(1, 1, 2\)"),
        (lambda x: x.tolist(), "list"),
        (lambda x: 1.0, "float"),
        (lambda x: None, "NoneType"),
    ],
)
def test_fields_of_the_wrong_shape(field, shape, method):
    with pytest.raises(ValueError, match=f"the field returned shape {shape} for states \\(1, 2\\)"):
        vf.simulate(field, np.ones(2), [0.0, 1.0], method=method)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("error", [ZeroDivisionError, ValueError, KeyError])
def test_errors_of_the_field_come_through(method, error):
    def field(x: np.ndarray) -> np.ndarray:
        if x.max() > 1.2:
            raise error("mine")
        return np.ones_like(x)

    with pytest.raises(error, match="mine"):
        vf.simulate(field, np.ones(2), [0.0, 1.0], method=method)


@pytest.mark.parametrize("method", METHODS)
def test_fields_may_return_other_number_types_and_the_same_buffer(method):
    x0, t = np.array([1.0, 3.0]), [0.0, 1.0]
    exact = vf.simulate(decay, x0, t, method=method).x
    whole = vf.simulate(lambda x: np.full(x.shape, 2), x0, t, method=method).x
    np.testing.assert_allclose(whole, [x0, x0 + 2], rtol=1e-12)
    single = vf.simulate(lambda x: (-x).astype(np.float32), x0, t, method=method, rtol=1e-5).x
    assert single.dtype == np.float64
    np.testing.assert_allclose(single, exact, rtol=1e-4)
    buffer = np.empty((1, 2))

    def reuse(x: np.ndarray) -> np.ndarray:
        buffer[...] = -x
        return buffer

    np.testing.assert_array_equal(vf.simulate(reuse, x0, t, method=method).x, exact)


def test_arguments_are_left_alone():
    x0, t = np.array([[1.0, 2.0]]), np.array([0.0, 1.0])
    for method in METHODS:
        vf.simulate(decay, x0, t, method=method)
    np.testing.assert_array_equal(x0, [[1.0, 2.0]])
    np.testing.assert_array_equal(t, [0.0, 1.0])


def test_starts_and_times_of_other_types():
    expected = vf.simulate(decay, np.array([1.0, 2.0]), np.array([0.0, 1.0, 2.0])).x
    for x0 in ([1, 2], (1.0, 2.0), np.array([1, 2]), np.array([1, 2], dtype=np.float32)):
        for t in ([0, 1, 2], (0.0, 1.0, 2.0), range(3), np.arange(3)):
            np.testing.assert_array_equal(vf.simulate(decay, x0, t).x, expected)


@pytest.mark.parametrize(
    ("x0", "message"),
    [
        ("a", "x0 holds <U1, not real numbers"),
        (None, "x0 holds object"),
        ([None], "x0 holds object"),
        ([1j], "x0 holds complex128"),
        ([True], "x0 holds bool"),
        (1.0, r"x0 must have shape \(d,\) or \(b, d\), got \(\)"),
        ([], r"got \(0,\)"),
        ([[]], r"got \(1, 0\)"),
        (np.zeros((2, 2, 2)), r"got \(2, 2, 2\)"),
        ([1.0, np.nan], "x0 holds values that are not finite"),
        ([1.0, np.inf], "x0 holds values that are not finite"),
        ([[1.0], [1.0, 2.0]], "x0 is not a rectangular array"),
    ],
)
def test_bad_starts(x0, message):
    with pytest.raises(vf.DataError, match=message):
        vf.simulate(decay, x0, [0.0, 1.0])


@pytest.mark.parametrize(
    ("t", "message"),
    [
        (1.0, "times must be a one-dimensional array of numbers, got 1.0"),
        (None, "one-dimensional array of numbers"),
        ([], "one-dimensional array of numbers"),
        (np.zeros((2, 2)), "one-dimensional array of numbers"),
        ("ab", "one-dimensional array of numbers"),
        (["a", "b"], "one-dimensional array of numbers"),
        ([False, True], "one-dimensional array of numbers"),
        ([0.0, 0.0], "strictly increasing or strictly decreasing"),
        ([0.0, 2.0, 1.0], "strictly increasing or strictly decreasing"),
        ([0.0, np.nan], "must be finite"),
        ([0.0, np.inf], "must be finite"),
        ([[0.0, 1.0]], "1 arrays of times for 2 starts; pass one for each"),
        ([[0.0, 1.0]] * 3, "3 arrays of times for 2 starts"),
        ([[0.0, 1.0], 1.0], "times of start 1 must be a one-dimensional array"),
        ([[0.0, 1.0], [1.0, 1.0]], "times of start 1 must be finite and strictly"),
    ],
)
def test_bad_times(t, message):
    with pytest.raises(vf.DataError, match=message):
        vf.simulate(decay, np.ones((2, 1)), t)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "rk4"}, "method must be one of 'DOP853', .*, got 'rk4'"),
        ({"method": None}, "method must be one of"),
        ({"rtol": 0.0}, "rtol must be a finite number > 0, got 0.0"),
        ({"rtol": np.nan}, "rtol must be a finite number > 0, got nan"),
        ({"rtol": "1"}, "rtol must be a number, got '1'"),
        ({"atol": -1.0}, "atol must be >= 0, a number or one for each coordinate, got -1"),
        ({"atol": np.nan}, "atol must be >= 0"),
        ({"atol": "a"}, "atol must be >= 0"),
        ({"atol": [1.0, 2.0]}, "atol must be >= 0, a number or one for each coordinate"),
        ({"max_steps": 0}, "max_steps must be at least 1, got 0"),
        ({"max_steps": 2.5}, "max_steps must be a whole number, got 2.5"),
        ({"on_failure": "print"}, "on_failure must be one of 'warn', 'raise', 'ignore'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        vf.simulate(decay, np.ones(1), [0.0, 1.0], **options)


def test_absolute_tolerance_by_coordinate_and_by_the_spread_of_the_data():
    def field(x: np.ndarray) -> np.ndarray:
        return np.stack([-x[:, 0], 1e6 * np.cos(30 * x[:, 0])], axis=1)

    class Learned:
        spread = np.array([1.0, 1e6])

        def __call__(self, x: np.ndarray) -> np.ndarray:
            return field(x)

    x0, t = np.array([1.0, 0.0]), [0.0, 1.0]
    default = vf.simulate(field, x0, t, rtol=1e-8)
    own = vf.simulate(field, x0, t, rtol=1e-8, atol=[1e-8, 1e-2])
    scaled = vf.simulate(Learned(), x0, t, rtol=1e-8)
    np.testing.assert_allclose(scaled.x, own.x, rtol=1e-7)
    assert scaled.steps[0] == own.steps[0]
    assert own.steps[0] <= default.steps[0]
    np.testing.assert_allclose(own.x, default.x, rtol=1e-5, atol=1.0)


# PyTorch


@pytest.mark.parametrize("method", METHODS)
def test_torch_agrees_with_numpy(method):
    torch = pytest.importorskip("torch")
    starts = np.array([[0.1], [1.0], [4.0]])
    times = [np.array([0.0, 0.5, 2.0]), np.array([0.0, -1.0]), np.array([1.0, 1.1, 1.2, 1.5])]
    for t in (np.array([0.0, 0.2, 0.9]), times):
        expected = vf.simulate(square, starts, t, method=method, on_failure="ignore")
        got = vf.simulate(square, torch.asarray(starts), t, method=method, on_failure="ignore")
        assert got.outcomes == expected.outcomes
        np.testing.assert_array_equal(got.steps, expected.steps)
        for a, b in zip(got.x, expected.x, strict=True):
            assert isinstance(a, torch.Tensor)
            assert a.dtype == torch.float64
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-9)


def test_torch_fields_in_single_precision_and_times_in_torch():
    torch = pytest.importorskip("torch")
    run = vf.simulate(
        lambda x: (-x).to(torch.float32), torch.tensor([1.0, 2.0]), torch.tensor([0.0, 1.0]),
        rtol=1e-5,
    )  # fmt: skip
    assert run.x.dtype == torch.float64
    np.testing.assert_allclose(run.x[1].numpy(), np.exp(-1) * np.array([1.0, 2.0]), rtol=1e-4)
