from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vectorfield.occupation._layout import banded, segments, windows

lengths_of_trajectories = st.lists(st.integers(2, 12), min_size=1, max_size=6)


def offsets_of(lengths: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)])


@given(lengths_of_trajectories)
def test_segments_are_the_steps_inside_trajectories(lengths):
    offsets = offsets_of(lengths)
    expected = [(k, i) for i in range(len(lengths)) for k in range(offsets[i], offsets[i + 1] - 1)]
    left, owner = segments(offsets)
    assert list(zip(left.tolist(), owner.tolist(), strict=True)) == expected


@given(lengths_of_trajectories, st.integers(2, 14), st.integers(1, 14))
def test_windows_against_a_loop(lengths, samples, stride):
    offsets = offsets_of(lengths)
    expected = []
    for i, n in enumerate(lengths):
        size = min(n, samples)
        starts = list(range(0, n - size + 1, stride))
        if starts[-1] != n - size:
            starts.append(n - size)
        expected += [(int(offsets[i]) + start, size, i) for start in starts]
    spans = windows(offsets, samples, stride)
    assert list(zip(*(part.tolist() for part in spans), strict=True)) == expected


@given(lengths_of_trajectories, st.integers(2, 14), st.data())
def test_windows_cover_every_step_when_they_touch(lengths, samples, data):
    offsets = offsets_of(lengths)
    stride = data.draw(st.integers(1, samples - 1))
    spans = windows(offsets, samples, stride)
    covered = {
        int(k)
        for first, count in zip(spans.first, spans.counts, strict=True)
        for k in range(first, first + count - 1)
    }
    assert covered == set(segments(offsets).left.tolist())


def test_banded_against_a_dense_loop():
    rng = np.random.default_rng(0)
    first, counts = np.array([0, 2, 1, 5]), np.array([3, 1, 4, 2])
    values = rng.normal(size=(4, 4))
    expected = np.zeros((4, 7))
    for s in range(4):
        expected[s, first[s] : first[s] + counts[s]] = values[: counts[s], s]
    matrix = banded(first, counts, values, 7)
    assert matrix.nnz == counts.sum()
    np.testing.assert_array_equal(matrix.toarray(), expected)
