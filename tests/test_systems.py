"""Known ODEs: fields against slow formulas, Jacobians against differences, flows against laws."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vectorfield._errors import DataError
from vectorfield.simulate import simulate
from vectorfield.systems import (
    FitzHughNagumo,
    Linear,
    Lorenz63,
    Lorenz96,
    Pendulum,
    Scaled,
    System,
    VanDerPol,
)

MATRIX = [[0.0, 1.0, 0.5], [-1.0, -0.1, 0.0], [0.2, 0.0, -0.3]]
SYSTEMS: list[System] = [
    FitzHughNagumo(),
    FitzHughNagumo(a=0.1, b=2.0, tau=3.0, current=-0.4),
    Lorenz63(),
    Lorenz63(sigma=3.0, rho=-1.0, beta=0.5),
    Lorenz96(d=4),
    Lorenz96(d=7, forcing=3.0),
    Lorenz96(),
    Pendulum(),
    Pendulum(length=2.5, gravity=1.6),
    VanDerPol(),
    VanDerPol(mu=5.0),
    Linear(MATRIX),
    Linear(MATRIX, offset=[1.0, -2.0, 0.5]),
    Scaled(Lorenz63(), shift=[1.0, -2.0, 25.0], scale=[8.0, 9.0, 8.5]),
    Scaled(Pendulum(), shift=0.5, scale=2.0),
    Scaled(Scaled(VanDerPol(), 1.0, 2.0), [0.0, 1.0], [3.0, 0.1]),
]
every_system = pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: repr(system)[:30])


def points(system: System, n: int = 6) -> np.ndarray:
    return np.random.default_rng(4).normal(scale=1.5, size=(n, system.d))


@every_system
def test_shapes_and_single_points(system: System) -> None:
    x = points(system)
    n, d = x.shape
    assert system(x).shape == (n, d)
    assert system.jacobian(x).shape == (n, d, d)
    assert system(x[0]).shape == (d,)
    assert system.jacobian(x[0]).shape == (d, d)
    for k in range(n):
        np.testing.assert_allclose(system(x[k]), system(x)[k], rtol=1e-13)
        np.testing.assert_allclose(system.jacobian(x[k]), system.jacobian(x)[k], rtol=1e-13)
    assert system(x[:0]).shape == (0, d)
    assert system.jacobian(x[:0]).shape == (0, d, d)
    assert len(system.feature_names) == d
    assert len(set(system.feature_names)) == d
    assert system.name


@every_system
def test_jacobian_is_the_derivative(system: System) -> None:
    x, h = points(system), 1e-6
    steps = h * np.eye(system.d)
    differences = np.stack(
        [(system(x + step) - system(x - step)) / (2 * h) for step in steps], axis=2
    )
    np.testing.assert_allclose(system.jacobian(x), differences, rtol=1e-6, atol=1e-7)


@every_system
def test_input_is_not_changed_and_output_is_new(system: System) -> None:
    x = points(system)
    before = x.copy()
    values = system(x)
    system.jacobian(x)[...] = 0.0
    values[...] = 0.0
    np.testing.assert_array_equal(x, before)
    assert np.abs(system(x)).max() > 0.0


@every_system
def test_pickle_and_repr(system: System) -> None:
    again = pickle.loads(pickle.dumps(system))
    np.testing.assert_array_equal(again(points(system)), system(points(system)))
    assert repr(again) == repr(system)


@pytest.mark.parametrize("wrong", [np.ones(5), np.ones((3, 5)), np.ones((1, 2, 2)), 1.0, []])
def test_wrong_shape_is_refused(wrong: Any) -> None:
    for call in (Pendulum(), Pendulum().jacobian, Pendulum().energy):
        with pytest.raises(DataError, match=r"Pendulum: expected states of shape \(n, 2\)"):
            call(wrong)


def test_formulas_by_hand() -> None:
    v, w = 1.3, -0.4
    fhn = [v - v**3 / 3 - w + 0.5, (v + 0.7 - 0.8 * w) / 12.5]
    np.testing.assert_allclose(FitzHughNagumo()([v, w]), fhn, rtol=1e-14)
    x, y, z = 1.1, -2.0, 20.0
    lorenz = [10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z]
    np.testing.assert_allclose(Lorenz63()([x, y, z]), lorenz, rtol=1e-14)
    pendulum = [w, -9.8 * math.sin(v)]
    np.testing.assert_allclose(Pendulum()([v, w]), pendulum, rtol=1e-14)
    np.testing.assert_allclose(VanDerPol(3.0)([v, w]), [w, 3 * (1 - v * v) * w - v], rtol=1e-14)
    linear = np.array(MATRIX) @ [x, y, z] + [1.0, 2.0, 3.0]
    np.testing.assert_allclose(Linear(MATRIX, [1.0, 2.0, 3.0])([x, y, z]), linear, rtol=1e-14)


@settings(max_examples=40, deadline=None)
@given(d=st.integers(4, 9), seed=st.integers(0, 1000), forcing=st.floats(-10, 10))
def test_lorenz96_against_the_loop(d: int, seed: int, forcing: float) -> None:
    x = np.random.default_rng(seed).normal(size=(3, d))
    slow = np.empty_like(x)
    for n in range(3):
        for k in range(d):
            advection = (x[n, (k + 1) % d] - x[n, (k - 2) % d]) * x[n, (k - 1) % d]
            slow[n, k] = advection - x[n, k] + forcing
    np.testing.assert_allclose(Lorenz96(d, forcing)(x), slow, rtol=1e-12, atol=1e-12)


def test_lorenz96_rest_and_symmetry() -> None:
    system = Lorenz96(d=9)
    np.testing.assert_allclose(system(np.full(9, 8.0)), np.zeros(9), atol=1e-14)
    x = np.random.default_rng(0).normal(size=9)
    np.testing.assert_allclose(system(np.roll(x, 2)), np.roll(system(x), 2), rtol=1e-14)


def test_lorenz63_rests_at_its_fixed_points() -> None:
    c = math.sqrt(8 / 3 * 27)
    rest = [[0.0, 0.0, 0.0], [c, c, 27.0], [-c, -c, 27.0]]
    np.testing.assert_allclose(Lorenz63()(rest), np.zeros((3, 3)), atol=1e-12)


def test_pendulum_field_is_hamiltonian() -> None:
    system = Pendulum(length=0.7)
    x, h = points(system), 1e-6
    angle, rate = h * np.eye(2)
    by_angle = (system.energy(x + angle) - system.energy(x - angle)) / (2 * h)
    by_rate = (system.energy(x + rate) - system.energy(x - rate)) / (2 * h)
    np.testing.assert_allclose(system(x), np.stack([by_rate, -by_angle], axis=1), rtol=1e-6)
    np.testing.assert_allclose(by_angle * system(x)[:, 0] + by_rate * system(x)[:, 1], 0, atol=1e-6)
    assert np.ndim(system.energy(x[0])) == 0
    np.testing.assert_allclose(np.trace(system.jacobian(x), axis1=1, axis2=2), 0.0)


def test_pendulum_keeps_its_energy() -> None:
    system = Pendulum()
    run = simulate(system, [2.0, 0.5], np.linspace(0, 10, 50), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(system.energy(run.x), system.energy(run.x[0]), atol=1e-7)


def test_scaled_is_the_same_flow() -> None:
    system, shift, scale = FitzHughNagumo(), np.array([0.3, -0.2]), np.array([1.5, 0.6])
    scaled = Scaled(system, shift, scale)
    t, x0 = np.linspace(0, 10, 30), np.array([1.0, 0.5])
    x = simulate(system, x0, t, rtol=1e-10, atol=1e-10).x
    u = simulate(scaled, (x0 - shift) / scale, t, rtol=1e-10, atol=1e-10).x
    np.testing.assert_allclose(shift + scale * u, x, atol=1e-7)
    assert scaled.feature_names == ("v", "w")
    assert scaled.name == "FitzHughNagumo"


def test_linear_flow_is_the_exponential() -> None:
    from scipy.linalg import expm

    run = simulate(Linear(MATRIX), [1.0, 2.0, 3.0], [0.0, 2.0], rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(run.x[1], expm(2 * np.array(MATRIX)) @ [1.0, 2.0, 3.0], rtol=1e-8)


def test_systems_are_values() -> None:
    assert Lorenz63() == Lorenz63(rho=28.0)
    assert Lorenz63() != Lorenz63(rho=20.0)
    assert Lorenz63().replace(rho=20.0).rho == 20.0
    assert Lorenz96(d=5).get_params() == {"d": 5, "forcing": 8.0}
    with pytest.raises(AttributeError):
        Lorenz63().rho = 1.0  # type: ignore[misc]


def test_arrays_of_a_system_are_its_own() -> None:
    matrix, scale = np.eye(2), np.ones(2)
    linear, scaled = Linear(matrix), Scaled(Pendulum(), 0.0, scale)
    matrix[0, 0], scale[0] = 5.0, 5.0
    assert linear([1.0, 1.0]).tolist() == [1.0, 1.0]
    assert scaled.scale.tolist() == [1.0, 1.0]
    for array in (linear.matrix, linear.offset, scaled.scale, scaled.shift):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Lorenz96(d=3), ValueError, "d must be at least 4, got 3"),
        (lambda: Lorenz96(d=5.0), TypeError, "d must be a whole number"),
        (lambda: Pendulum(length=0.0), ValueError, "length must be a finite number > 0"),
        (lambda: Pendulum(gravity="g"), TypeError, "gravity must be a number"),
        (lambda: FitzHughNagumo(tau=-1.0), ValueError, "tau must be"),
        (lambda: VanDerPol(mu=float("nan")), ValueError, "mu must be a finite number"),
        (lambda: Lorenz63(rho=float("inf")), ValueError, "rho must be a finite number"),
        (lambda: Linear([[1.0, 2.0]]), ValueError, r"matrix must be square.*\(1, 2\)"),
        (lambda: Linear(np.ones((0, 0))), ValueError, "matrix must be square"),
        (lambda: Linear([[float("nan")]]), ValueError, "matrix must be finite"),
        (lambda: Linear([[1.0]], [1.0, 2.0]), ValueError, r"offset must have shape \(1,\)"),
        (lambda: Scaled(Pendulum(), 0.0, 0.0), ValueError, "scale must be > 0"),
        (lambda: Scaled(Pendulum(), [0.0], 1.0), ValueError, r"shift must have shape \(2,\)"),
        (lambda: Scaled(np.sin, 0.0, 1.0), TypeError, "system must be a System, got ufunc"),
    ],
)
def test_impossible_settings_are_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()
