from __future__ import annotations

import numpy as np
import pytest

from vectorfield.occupation._interpolation import (
    CHUNK,
    check_even,
    chunks,
    gauss,
    lagrange_basis,
    stencils,
)


@pytest.mark.parametrize("samples", [2, 4, 6, 8])
def test_stencils_are_the_nearest_samples_of_the_same_trajectory(samples):
    lengths = [2, 3, 9, 4, 20]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    near = stencils(offsets, samples)
    row = 0
    for i, n in enumerate(lengths):
        size = min(n, samples)
        for k in range(n - 1):
            start = min(max(k - (samples // 2 - 1), 0), n - size)
            assert near.left[row] == offsets[i] + k
            assert near.first[row] == offsets[i] + start
            assert near.counts[row] == size
            assert near.owner[row] == i
            assert start <= k < k + 1 < start + size  # the segment is inside
            row += 1
    assert row == len(near.left)


@pytest.mark.parametrize("samples", [2, 4, 6, 8])
def test_basis_is_one_at_its_sample_and_sums_to_one(samples):
    rng = np.random.default_rng(1)
    offsets = np.array([0, 3, 5, 20])
    times = np.cumsum(rng.uniform(0.1, 1.0, 20))
    near = stencils(offsets, samples)
    at = np.array([0.0, 0.3, 0.8, 1.0])
    basis = lagrange_basis(times, near, at, slice(0, len(near.left)))
    np.testing.assert_allclose(basis.sum(axis=0), 1.0, rtol=0, atol=1e-12)
    for end, place in ((0, 0), (1, 3)):
        expected = np.zeros(basis[:, place].shape)
        expected[near.left + end - near.first, np.arange(len(near.left))] = 1.0
        np.testing.assert_allclose(basis[:, place], expected, rtol=0, atol=1e-12)
    beyond = np.arange(len(basis))[:, None] >= near.counts
    assert (basis.transpose(0, 2, 1)[beyond] == 0.0).all()


def test_basis_of_a_part_is_the_part_of_the_basis():
    offsets = np.array([0, 4, 30])
    times = np.cumsum(np.random.default_rng(2).uniform(0.1, 1.0, 30))
    near = stencils(offsets, 6)
    at, _ = gauss(3)
    whole = lagrange_basis(times, near, at, slice(0, len(near.left)))
    np.testing.assert_array_equal(lagrange_basis(times, near, at, slice(1, 9)), whole[:, :, 1:9])


@pytest.mark.parametrize("points", [1, 2, 5])
def test_gauss_is_exact_on_the_unit_interval(points):
    at, mass = gauss(points)
    for degree in range(2 * points):
        assert mass @ at**degree == pytest.approx(1.0 / (degree + 1), rel=1e-13)


@pytest.mark.parametrize("n", [1, CHUNK - 1, CHUNK, 2 * CHUNK + 5])
def test_chunks_tile_the_range(n):
    tiled = np.concatenate([np.arange(n)[part] for part in chunks(n)])
    np.testing.assert_array_equal(tiled, np.arange(n))


@pytest.mark.parametrize("value", [3, 10])
def test_odd_or_large_stencils_are_refused(value):
    with pytest.raises(ValueError, match="samples must be 2, 4, 6 or 8"):
        check_even("samples", value)
