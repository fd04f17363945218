"""Whitening by a banded covariance against a dense Cholesky factor."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import vectorfield as vf
from vectorfield.linalg import whitening
from vectorfield.linalg.whitening import Whitener
from vectorfield.occupation import (
    CentralDifference,
    Lagrange,
    SnapshotNoise,
    Trapezoid,
    WeakForm,
    White,
    Windows,
)


def banded(size: int, reach: int, seed: int) -> np.ndarray:
    """A well-conditioned lower triangle of ``reach`` bands below the diagonal."""
    rng = np.random.default_rng(seed)
    lower = np.tril(rng.normal(size=(size, size)) / (2.0 * reach + 1.0), k=-1)
    return np.triu(lower, k=-reach) + np.diag(rng.uniform(1.0, 2.0, size=size))


def agree(got, expected, relative=1e-11) -> None:
    np.testing.assert_allclose(got, expected, rtol=0, atol=relative * np.abs(expected).max())


def numbers(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(rows, columns))
    x.flags.writeable = False
    return x


@settings(deadline=None, max_examples=80)
@given(
    size=st.integers(1, 60),
    reach=st.integers(0, 20),
    block=st.sampled_from([1, 2, 3, 7, 128]),
    columns=st.integers(1, 4),
    seed=st.integers(0, 2**32 - 1),
)
def test_random_covariances(size, reach, block, columns, seed):
    lower = banded(size, reach, seed)
    x = numbers(size, columns, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whitening, "BLOCK", block)
        white = Whitener(sp.csr_array(lower @ lower.T))
        assert white.reach <= min(reach, size - 1)
        agree(white.forward(x), np.linalg.solve(lower, x))
        agree(white.backward(x), np.linalg.solve(lower.T, x))
        agree(white.backward(white.forward(x)), np.linalg.solve(lower @ lower.T, x))


@settings(deadline=None, max_examples=80)
@given(
    size=st.integers(1, 60),
    reach=st.integers(0, 20),
    block=st.sampled_from([1, 3, 7, 128]),
    cuts=st.sets(st.integers(1, 59)),
    seed=st.integers(0, 2**32 - 1),
)
def test_in_pieces(size, reach, block, cuts, seed):
    lower = banded(size, reach, seed)
    x = numbers(size, 3, seed)
    edges = [0, *sorted(cut for cut in cuts if cut < size), size]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whitening, "BLOCK", block)
        white = Whitener(sp.csr_array(lower @ lower.T))
        value, before = np.zeros((0, 3)), None
        for begin, end in pairwise(edges):
            piece = white.forward(x[begin:end], begin, before)
            value = np.concatenate([value, piece])
            before = value[max(0, end - white.reach) :] if white.reach else None
    agree(value, np.linalg.solve(lower, x))


@pytest.mark.parametrize("reach", [1, 100, 128, 200])
def test_more_rows_than_a_block(reach):
    lower = banded(3 * whitening.BLOCK + 5, reach, 1)
    white, x = Whitener(sp.csr_array(lower @ lower.T)), numbers(len(lower), 2)
    agree(white.forward(x), np.linalg.solve(lower, x))
    agree(white.backward(x), np.linalg.solve(lower.T, x))
    start = whitening.BLOCK + 9
    first = white.forward(x[:start])
    agree(white.forward(x[start:], start, first[-reach:]), np.linalg.solve(lower, x)[start:])


@pytest.mark.parametrize(
    "rule",
    [Trapezoid(), Lagrange(6), Windows(samples=5), WeakForm(stride=4), CentralDifference()],
    ids=repr,
)
def test_noise_of_snapshots(rule, irregular):
    occupations = rule(irregular(2, (30, 2, 41)))
    covariance = SnapshotNoise().covariance(occupations)
    white = Whitener(covariance)
    half = white.forward(np.eye(len(occupations)))
    agree(half @ covariance.toarray() @ half.T, np.eye(len(occupations)), 1e-9)
    agree(half.T, white.backward(np.eye(len(occupations))), 1e-12)


def test_the_identity_costs_nothing(irregular):
    white = Whitener(White().covariance(Trapezoid()(irregular())))
    x = numbers(white.size, 2)
    assert white.is_identity
    assert white.forward(x) is x
    assert white.backward(x) is x


def test_a_diagonal_that_is_not_one():
    white, x = Whitener(sp.csr_array(np.diag([4.0, 1.0, 0.25]))), numbers(3, 2)
    assert not white.is_identity
    assert white.reach == 0
    scale = np.array([[2.0], [1.0], [0.5]])
    agree(white.forward(x), x / scale)
    agree(white.backward(x), x / scale)
    agree(white.forward(x[1:], 1), (x / scale)[1:])


@pytest.mark.parametrize(
    "sigma", [[[1.0, 1.0], [1.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]], [[0.0, 0.0], [0.0, 1.0]]]
)
def test_a_singular_covariance_is_refused_with_a_remedy(sigma):
    with pytest.raises(vf.DataError, match=r"singular .* larger stride .* White\(\) noise"):
        Whitener(sp.csr_array(sigma))


def test_torch_agrees():
    torch = pytest.importorskip("torch")
    lower = banded(whitening.BLOCK + 50, 20, 3)
    white, x = Whitener(sp.csr_array(lower @ lower.T)), numbers(len(lower), 3)
    other, cut = torch.tensor(x), whitening.BLOCK + 4
    got = white.forward(other)
    assert isinstance(got, torch.Tensor)
    agree(got.numpy(), white.forward(x), 1e-13)
    agree(white.backward(other).numpy(), white.backward(x), 1e-13)
    rest = white.forward(other[cut:], cut, got[cut - 20 : cut])
    agree(rest.numpy(), white.forward(x)[cut:], 1e-13)
