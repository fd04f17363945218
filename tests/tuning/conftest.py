"""Small searches, and what two reports must have in common."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import vectorfield as vf


@pytest.fixture
def orbits() -> Callable[..., vf.Trajectories]:
    """Trajectories of a damped rotation at times 0.2 apart, with noise if asked for."""

    def make(count: int = 6, samples: int = 20, noise: float = 0.0, seed: int = 0):
        rng = np.random.default_rng(seed)
        field = vf.systems.Linear(np.array([[-0.1, 1.0], [-1.0, -0.1]]))
        t = 0.2 * np.arange(samples)
        x = vf.simulate(field, rng.normal(size=(count, 2)), t, rtol=1e-10).x
        return vf.Trajectories.from_arrays(list(x + noise * rng.normal(size=x.shape)), t)

    return make


@pytest.fixture
def same_reports() -> Callable[[vf.tuning.Report, vf.tuning.Report], None]:
    """Compare all but wall times, to the last bit."""

    def compare(first: vf.tuning.Report, second: vf.tuning.Report) -> None:
        assert len(first.trials) == len(second.trials)
        pairs = [*zip(first.trials, second.trials, strict=True), (first.best, second.best)]
        if first.runner_up is not None and second.runner_up is not None:
            pairs.append((first.runner_up, second.runner_up))
        for a, b in pairs:
            assert repr(a.plan) == repr(b.plan)
            for name in ("level", "refined_level", "stage", "observations", "status", "substeps"):
                assert getattr(a, name) == getattr(b, name)
            np.testing.assert_array_equal([a.score, a.spread], [b.score, b.spread])
            np.testing.assert_array_equal(a.ratios, b.ratios)
            assert (a.errors is None) == (b.errors is None)
            if a.errors is not None:
                np.testing.assert_array_equal(a.errors, b.errors)
        assert (first.runner_up is None) == (second.runner_up is None)
        assert (first.notes, first.null, first.lengths) == (
            second.notes,
            second.null,
            second.lengths,
        )

    return compare
