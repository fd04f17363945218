"""The blocked factorisation against NumPy's, at sizes around the block size."""

from __future__ import annotations

import numpy as np
import pytest

from vectorfield.linalg.cholesky import BLOCK, factor_lower, solve_lower, symmetric_product

SIZES = [1, 2, 6, 7, 8, 13, 14, 15, 21, 40]


def positive(n: int, seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(n, n + 3))
    return x @ x.T + 0.1 * np.eye(n)


@pytest.mark.parametrize("n", SIZES)
def test_factor_is_numpys(n):
    a = positive(n)
    work = a.copy()
    assert factor_lower(work, block=7) == 0
    np.testing.assert_allclose(np.tril(work), np.linalg.cholesky(a), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("n", SIZES)
def test_upper_triangle_is_neither_read_nor_written(n):
    a = positive(n)
    work = np.tril(a) + np.triu(np.full((n, n), np.nan), k=1)
    assert factor_lower(work, block=7) == 0
    np.testing.assert_array_equal(np.isnan(work), np.triu(np.ones((n, n), dtype=bool), k=1))
    lower = np.tril(work)
    lower[np.isnan(lower)] = 0.0
    np.testing.assert_allclose(lower, np.linalg.cholesky(a), rtol=1e-10, atol=1e-10)


def test_factor_beyond_the_default_block():
    a = positive(BLOCK + 30)
    work = a.copy()
    assert factor_lower(work) == 0
    lower = np.tril(work)
    np.testing.assert_allclose(lower @ lower.T, a, rtol=0, atol=1e-11 * np.abs(a).max())
    np.testing.assert_array_equal(np.triu(work, k=1), np.triu(a, k=1))


@pytest.mark.parametrize("row", [1, 2, 7, 8, 9, 14, 15, 20])
def test_the_failing_row_is_reported(row):
    a = positive(20)
    # the Schur complement at that row becomes -1, those before it stay positive
    lower = np.linalg.cholesky(a)
    a[row - 1, row - 1] -= lower[row - 1, row - 1] ** 2 + 1.0
    assert factor_lower(a.copy(), block=7) == row
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(a)


def test_single_precision_stays_single():
    a = positive(30).astype(np.float32)
    work = a.copy()
    assert factor_lower(work, block=7) == 0
    assert work.dtype == np.float32
    np.testing.assert_allclose(np.tril(work), np.linalg.cholesky(a), rtol=0, atol=1e-4)


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("n", SIZES)
def test_solve(n, columns):
    a = positive(n)
    rhs = np.random.default_rng(1).normal(size=(n, columns))
    rhs.flags.writeable = False
    work = a.copy()
    factor_lower(work, block=7)
    work += np.triu(np.full((n, n), np.nan), k=1)  # what solve must not read
    x = solve_lower(np.where(np.isnan(work), 1e300, work), rhs, block=7)
    np.testing.assert_allclose(x, np.linalg.solve(a, rhs), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(a @ x, rhs, rtol=0, atol=1e-10)


@pytest.mark.parametrize("order", ["C", "F"])
def test_solve_for_right_sides_in_either_order(order):
    a = positive(25)
    rhs = np.asarray(np.random.default_rng(1).normal(size=(25, 4)), order=order)
    work = a.copy()
    factor_lower(work, block=7)
    np.testing.assert_allclose(
        solve_lower(work, rhs, block=7), np.linalg.solve(a, rhs), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("n", SIZES)
def test_symmetric_product_reads_the_strict_upper_triangle_alone(n):
    a = positive(n)
    x = np.random.default_rng(1).normal(size=(n, 3))
    diagonal = np.diag(a).copy()
    work = np.where(np.triu(np.ones((n, n), dtype=bool), k=1), a, np.nan)
    np.testing.assert_allclose(
        symmetric_product(work, diagonal, x, block=7), a @ x, rtol=1e-11, atol=1e-11
    )


@pytest.mark.parametrize("n", [1, 7, 8, 40])
def test_torch_agrees(n):
    torch = pytest.importorskip("torch")
    a = positive(n)
    rhs = np.random.default_rng(1).normal(size=(n, 2))
    work, other = a.copy(), torch.tensor(a)
    assert factor_lower(work, block=7) == factor_lower(other, block=7) == 0
    np.testing.assert_allclose(other.numpy(), work, rtol=1e-10, atol=1e-11)
    x = solve_lower(other, torch.tensor(rhs), block=7)
    np.testing.assert_allclose(x.numpy(), np.linalg.solve(a, rhs), rtol=1e-9, atol=1e-9)
    product = symmetric_product(other, torch.tensor(np.diag(a).copy()), torch.tensor(rhs), block=7)
    np.testing.assert_allclose(product.numpy(), a @ rhs, rtol=1e-11, atol=1e-11)


def test_torch_reports_the_failing_row():
    torch = pytest.importorskip("torch")
    a = positive(20)
    a[11, 11] -= np.linalg.cholesky(a)[11, 11] ** 2 + 1.0
    assert factor_lower(torch.tensor(a), block=7) == 12
