from __future__ import annotations

import numpy as np

from vectorfield.occupation import CentralDifference, ForwardDifference
from vectorfield.trajectories import Trajectories

LENGTHS = (2, 50, 3, 9, 4, 2, 17)


def test_forward_difference_against_a_loop(ragged):
    data = ragged(LENGTHS)
    occupations = ForwardDifference()(data)
    row = 0
    for i, (t, x) in enumerate(data):
        for k in range(len(t) - 1):
            slope = (x[k + 1] - x[k]) / (t[k + 1] - t[k])
            np.testing.assert_allclose(occupations.targets[row], slope, rtol=1e-10)
            weights = occupations.weights[[row]]
            assert weights.indices.tolist() == [data.offsets[i] + k]
            assert weights.data.tolist() == [1.0]
            row += 1
    assert row == len(occupations)


def test_central_difference_against_a_parabola_in_a_loop(ragged):
    data = ragged(LENGTHS)
    occupations = CentralDifference()(data)
    row = 0
    for i, (t, x) in enumerate(data):
        if len(t) == 2:
            expected = [((x[1] - x[0]) / (t[1] - t[0]), {0: 0.5, 1: 0.5})]
        else:
            expected = [(parabola_slope(t, x, k), {k: 1.0}) for k in range(1, len(t) - 1)]
        for slope, shares in expected:
            np.testing.assert_allclose(occupations.targets[row], slope, rtol=1e-8, atol=1e-10)
            weights = occupations.weights[[row]]
            found = dict(
                zip((weights.indices - data.offsets[i]).tolist(), weights.data, strict=True)
            )
            assert found == shares
            row += 1
    assert row == len(occupations)


def parabola_slope(t: np.ndarray, x: np.ndarray, k: int) -> np.ndarray:
    """Derivative at t_k of the parabola through samples k - 1, k, k + 1."""
    near = slice(k - 1, k + 2)
    coefficients = np.linalg.solve(np.vander(t[near] - t[k], 3), x[near])
    return coefficients[1]


def test_central_difference_is_exact_for_parabolas_on_any_grid():
    t = np.array([0.0, 0.1, 0.7, 0.75, 2.0, 3.0])
    data = Trajectories.from_arrays([(3.0 * t**2 - t + 1.0)[:, None]], [t])
    occupations = CentralDifference()(data)
    np.testing.assert_allclose(occupations.targets[:, 0], 6.0 * t[1:-1] - 1.0, rtol=1e-12)
    np.testing.assert_array_equal(occupations.durations, 1.0)


def test_central_difference_on_an_even_grid_leaves_the_middle_out():
    occupations = CentralDifference()(Trajectories.from_arrays([np.zeros((4, 1))], 0.5))
    np.testing.assert_array_equal(
        occupations.differences.toarray(), [[-1.0, 0.0, 1.0, 0.0], [0.0, -1.0, 0.0, 1.0]]
    )
