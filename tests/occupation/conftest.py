"""Ragged trajectories on uneven grids, and one of every rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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

RULES = [
    Trapezoid(),
    Lagrange(2),
    Lagrange(4),
    Lagrange(6),
    Lagrange(8),
    Spline(1),
    Spline(3),
    Windows(),
    Windows(samples=4, rule=Lagrange(4), stride=3),
    Windows(samples=3, rule=Spline(2), stride=5),
    WeakForm(),
    WeakForm(samples=5, degree=2, interpolation=2, stride=3),
    WeakForm(samples=2, degree=1, interpolation=6),
    WeakForm(samples=12, degree=3, interpolation=8, stride=7),
    ForwardDifference(),
    CentralDifference(),
]


@pytest.fixture(params=RULES, ids=repr)
def rule(request: pytest.FixtureRequest) -> Rule:
    return request.param


@pytest.fixture
def ragged() -> Callable[..., Trajectories]:
    """Random states and random increasing times for trajectories of the given lengths."""

    def make(lengths: Sequence[int] = (2, 50, 3, 9, 4, 2, 17), d: int = 3) -> Trajectories:
        rng = np.random.default_rng(20)
        xs = [rng.normal(size=(n, d)) for n in lengths]
        ts = [rng.normal() + np.cumsum(rng.uniform(0.2, 1.0, n)) for n in lengths]
        return Trajectories.from_arrays(xs, ts)

    return make
