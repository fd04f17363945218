"""Convergence of every rule along exact trajectories of a nonlinear field.

f(z) = w(|z|^2) J z with w(s) = 1 + s / 2 turns every point about the origin at its own rate:
x(t) = r (cos w t, sin w t). The error of a row is |W f - y| / duration, the worst row counts,
and the order is its slope against the step in logarithms.
"""

from __future__ import annotations

import numpy as np
import pytest

from vectorfield.occupation import (
    CentralDifference,
    ForwardDifference,
    Lagrange,
    Rule,
    Spline,
    Trapezoid,
    WeakForm,
    Windows,
)
from vectorfield.trajectories import Trajectories

RADII = (0.7, 1.2)
DURATION = 3.0
STEPS = (24, 48, 96)

# Order on even and on uneven grids.
ORDERS = [
    (Trapezoid(), 2, 2),
    (Lagrange(2), 2, 2),
    (Lagrange(4), 4, 4),
    (Lagrange(6), 6, 6),
    (Lagrange(8), 8, 8),
    (Spline(1), 2, 2),
    (Spline(2), 4, 4),
    (Spline(3), 4, 4),
    (Windows(), 2, 2),
    (Windows(stride=3), 2, 2),
    (Windows(rule=Lagrange(4)), 4, 4),
    (Windows(rule=Lagrange(6)), 6, 6),
    (Windows(rule=Spline()), 4, 4),
    (WeakForm(interpolation=2), 2, 1),
    (WeakForm(interpolation=4), 3, 3),
    (WeakForm(samples=5, degree=2, interpolation=4), 3, 3),
    (WeakForm(interpolation=6), 5, 5),
    (ForwardDifference(), 1, 1),
    (CentralDifference(), 2, 2),
]


def path(t: np.ndarray, radius: float) -> np.ndarray:
    rate = 1.0 + radius**2 / 2.0
    return radius * np.stack([np.cos(rate * t), np.sin(rate * t)], axis=1)


def field(z: np.ndarray) -> np.ndarray:
    rate = 1.0 + (z**2).sum(axis=1, keepdims=True) / 2.0
    return rate * np.stack([-z[:, 1], z[:, 0]], axis=1)


def even(n: int) -> list[np.ndarray]:
    return [np.linspace(0.0, DURATION, n + 1)]


def jittered(n: int) -> list[np.ndarray]:
    """Every inner time moved by up to 0.3 of a step, in 16 ways."""
    rng = np.random.default_rng(n)
    grids = []
    for _ in range(16):
        t = np.linspace(0.0, DURATION, n + 1)
        t[1:-1] += 0.3 * DURATION / n * rng.uniform(-1.0, 1.0, n - 1)
        grids.append(t)
    return grids


def alternating(n: int) -> list[np.ndarray]:
    """Steps 0.6, 1.4, 1.1, 0.9 times the mean, again and again."""
    steps = np.resize([0.6, 1.4, 1.1, 0.9], n)
    return [np.concatenate([[0.0], np.cumsum(steps)]) * (DURATION / n)]


def worst_error(rule: Rule, grids: list[np.ndarray], trim: int = 0) -> float:
    """Largest error of a row of each trajectory, on average over trajectories."""
    errors = []
    for t in grids:
        for radius in RADII:
            o = rule(Trajectories.from_arrays([path(t, radius)], [t]))
            rows = (o.weights @ field(o.nodes) - o.targets) / o.durations[:, None]
            size = np.hypot(rows[:, 0], rows[:, 1])
            errors.append(size[trim : len(size) - trim].max())
    return float(np.mean(errors))


def fitted_order(rule: Rule, grid, trim: int = 0) -> float:
    errors = [worst_error(rule, grid(n), trim) for n in STEPS]
    assert errors[-1] > 1e-13  # else the slope is that of rounding
    return float(-np.polyfit(np.log(STEPS), np.log(errors), 1)[0])


@pytest.mark.parametrize(("rule", "order", "_uneven"), ORDERS, ids=repr)
def test_order_on_even_grids(rule, order, _uneven):
    assert fitted_order(rule, even) == pytest.approx(order, abs=0.2)


@pytest.mark.parametrize("grid", [jittered, alternating])
@pytest.mark.parametrize(("rule", "_even", "order"), ORDERS, ids=repr)
def test_order_on_uneven_grids(rule, _even, order, grid):
    assert fitted_order(rule, grid) == pytest.approx(order, abs=0.3)


@pytest.mark.parametrize("rule", [WeakForm(), WeakForm(samples=5, degree=2)], ids=repr)
def test_weak_form_gains_an_order_inside_even_grids(rule):
    assert fitted_order(rule, even, trim=3) == pytest.approx(4, abs=0.2)


@pytest.mark.parametrize(
    ("rule", "n", "order"),
    [
        (Trapezoid(), 2, 2),
        (Lagrange(4), 2, 2),
        (Lagrange(4), 3, 3),
        (Lagrange(8), 5, 5),
        (Spline(), 2, 2),
        (Spline(), 3, 3),
        (Windows(), 3, 2),
        (WeakForm(), 2, 2),
        (CentralDifference(), 2, 2),
    ],
    ids=repr,
)
def test_order_on_trajectories_of_few_samples(rule, n, order):
    """Uneven, and shrinking: the samples are fewer than the rule would like."""
    shape = np.array([0.0, 1.0, 1.7, 3.1, 4.0])[:n]
    sizes = np.array([0.1, 0.05, 0.025])
    errors = [worst_error(rule, [size * shape]) for size in sizes]
    assert errors[-1] > 1e-13
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope == pytest.approx(order, abs=0.2)
