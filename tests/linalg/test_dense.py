"""The dense solver against numpy.linalg.solve, and what it says when it cannot."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import scipy.sparse as sp

import vectorfield as vf
from vectorfield.linalg import Dense, DenseSystem, Status

PRECISIONS = ["float64", "mixed", "auto"]


def gram(n: int, seed: int = 0) -> np.ndarray:
    """A Gaussian Gram matrix of rank well below n to working precision."""
    x = np.sort(np.random.default_rng(seed).uniform(0.0, 4.0, size=n))
    return np.exp(-0.5 * (x[:, None] - x) ** 2)


def tridiagonal(n: int) -> sp.csr_array:
    return sp.csr_array(sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)))


def identity(n: int) -> sp.csr_array:
    return sp.csr_array(sp.eye_array(n))


def targets(n: int, columns: int = 3) -> np.ndarray:
    y = np.random.default_rng(7).normal(size=(n, columns))
    y.flags.writeable = False
    return y


@pytest.mark.parametrize("noise", [identity, tridiagonal])
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("n", [1, 2, 5, 60])
def test_solution_is_numpys(n, precision, noise):
    m, sigma, y = gram(n), noise(n), targets(n)
    system = DenseSystem(m.copy(), sigma)
    solution = system.factor(0.05, precision).solve(y)
    expected = np.linalg.solve(m + 0.05 * sigma.toarray(), y)
    np.testing.assert_allclose(
        solution.value, expected, rtol=0, atol=1e-10 * np.abs(expected).max()
    )
    assert solution.status is (Status.REFINED if precision == "mixed" else Status.SOLVED)
    assert solution.status.ok
    assert solution.residual <= 1e-12
    assert solution.detail == ""
    assert {"factor", "solve"} <= set(solution.seconds)


@pytest.mark.parametrize("precision", ["float64", "mixed"])
def test_beyond_the_block_size(precision):
    n = 700
    m, y = gram(n), targets(n, 2)
    system = DenseSystem(m.copy(), tridiagonal(n))
    for shift in (3.0, 0.5):
        solution = system.factor(shift, precision).solve(y)
        expected = np.linalg.solve(m + shift * tridiagonal(n).toarray(), y)
        size = np.abs(expected).max()
        np.testing.assert_allclose(solution.value, expected, rtol=0, atol=1e-9 * size)
        product = system.product(solution.value, shift)
        np.testing.assert_allclose(product, y, rtol=0, atol=1e-12 * size)


@pytest.mark.parametrize("order", [(0.5, 0.01, 0.1), (0.01, 0.5, 0.01), (0.1, 0.1, 0.5)])
def test_several_shifts_in_any_order_and_precision(order):
    n = 50
    m, y = gram(n), targets(n)
    system = DenseSystem(m.copy(), tridiagonal(n))
    for precision in ("float64", "mixed", "float64", "mixed"):
        for shift in order:
            solution = system.factor(shift, precision).solve(y)
            expected = np.linalg.solve(m + shift * tridiagonal(n).toarray(), y)
            np.testing.assert_allclose(solution.value, expected, rtol=0, atol=1e-9)
            np.testing.assert_allclose(system.product(y), m @ y, rtol=0, atol=1e-12)


def test_the_system_keeps_its_matrix():
    n = 30
    m = gram(n)
    system = DenseSystem(m.copy(), identity(n))
    system.factor(0.1).solve(targets(n))
    np.testing.assert_array_equal(system.diagonal, np.diag(m))
    np.testing.assert_array_equal(np.triu(system.matrix, k=1), np.triu(m, k=1))
    assert len(system) == n


def test_a_column_of_zeros_and_one_of_tiny_numbers():
    n = 40
    y = np.stack([np.zeros(n), 1e-200 * targets(n)[:, 0], 1e200 * targets(n)[:, 1]], axis=1)
    for precision in PRECISIONS:
        solution = DenseSystem(gram(n), identity(n)).factor(0.1, precision).solve(y)
        expected = np.linalg.solve(gram(n) + 0.1 * np.eye(n), y)
        assert solution.status.ok
        np.testing.assert_array_equal(solution.value[:, 0], 0.0)
        for j in (1, 2):
            size = np.abs(expected[:, j]).max()
            np.testing.assert_allclose(
                solution.value[:, j] / size, expected[:, j] / size, rtol=0, atol=1e-11
            )


def test_falling_back_from_single_precision():
    system = DenseSystem(gram(40), identity(40))  # condition 4e11: beyond float32, not float64
    y = gram(40) @ targets(40)  # smooth, as increments are
    solution = system.factor(1e-10, "mixed").solve(y)
    assert solution.status is Status.FELL_BACK
    assert solution.status.ok
    expected = np.linalg.solve(gram(40) + 1e-10 * np.eye(40), y)
    np.testing.assert_allclose(gram(40) @ solution.value, gram(40) @ expected, rtol=0, atol=1e-9)
    assert solution.residual < 1e-8


def test_single_precision_that_factors_but_does_not_converge():
    """Condition about 1e8: float32 may still factor, but refinement stalls or is slow."""
    rng = np.random.default_rng(0)
    q = np.linalg.qr(rng.normal(size=(60, 60)))[0]
    m = (q * np.logspace(0, -8, 60)) @ q.T
    m = (m + m.T) / 2
    y = targets(60)
    for shift in (1e-6, 1e-7, 3e-8, 1e-8):
        solution = DenseSystem(m.copy(), identity(60)).factor(shift, "mixed").solve(y)
        assert solution.status in (Status.REFINED, Status.FELL_BACK)
        expected = np.linalg.solve(m + shift * np.eye(60), y)
        np.testing.assert_allclose(
            solution.value, expected, rtol=0, atol=1e-5 * np.abs(expected).max()
        )


@pytest.mark.parametrize("precision", PRECISIONS)
def test_not_positive_definite(precision):
    m = gram(30) - 0.5 * np.eye(30)
    factor = DenseSystem(m, identity(30)).factor(1e-3, precision)
    solution = factor.solve(targets(30))
    assert solution.status is Status.NOT_POSITIVE_DEFINITE
    assert not solution.status.ok
    assert solution.value is None
    assert solution.condition == math.inf
    assert factor.condition() == math.inf
    for part in ("30 observations", "at row", "condition number", "raise ridge to at least about"):
        assert part in solution.detail


def test_inaccurate_solutions_say_so():
    """Not the true factor: a residual that refinement cannot bring down."""
    system = DenseSystem(gram(30), identity(30))
    factor = system.factor(0.1, "float64")
    system.diagonal = system.diagonal + 1e3  # the system is now another one
    solution = factor.solve(targets(30))
    assert solution.status is Status.INACCURATE
    assert not solution.status.ok
    assert solution.residual > 1e-8
    assert solution.condition > 1.0
    assert "relative residual" in solution.detail
    assert "raise ridge" in solution.detail


def test_a_backward_stable_solution_is_taken(irregular):
    """Nobody does better in float64, and the field is the one NumPy finds: no reason to refuse."""
    n, ridge = 60, 1e-13
    m, y = gram(n), targets(n)
    solution = DenseSystem(m.copy(), identity(n)).factor(ridge * n).solve(y)
    expected = np.linalg.solve(m + ridge * n * np.eye(n), y)
    np.testing.assert_allclose(m @ solution.value, m @ expected, rtol=0, atol=1e-3)
    assert solution.status.ok


def test_the_remedy_is_above_the_ridge_that_failed():
    n, refused = 60, 0
    for ridge in 10.0 ** np.arange(-22, -8):
        solution = DenseSystem(gram(n), identity(n)).factor(ridge * n).solve(targets(n))
        if not solution.status.ok:
            advised = float(re.search(r"at least about (\S+),", solution.detail).group(1))
            assert advised > ridge
            refused += 1
    assert refused > 0


def test_nan_in_the_matrix_is_never_a_solution():
    m = gram(30)
    m[20, 3] = m[3, 20] = np.nan
    for precision in PRECISIONS:
        solution = DenseSystem(m.copy(), identity(30)).factor(0.1, precision).solve(targets(30))
        assert not solution.status.ok


def test_every_status_has_a_sentence():
    assert {status.name for status in Status if status.ok} == {
        "SOLVED",
        "REFINED",
        "FELL_BACK",
        "ILL_CONDITIONED",
        "CONVERGED",
    }
    assert all("raise ridge" in status.value for status in Status if not status.ok)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_condition_is_estimated(precision):
    n, shift = 50, 0.02
    factor = DenseSystem(gram(n), identity(n)).factor(shift, precision)
    exact = np.linalg.cond(gram(n) + shift * np.eye(n))
    assert 0.5 * exact < factor.condition() < 1.5 * exact


def test_eigenvalue_estimates():
    n = 60
    system = DenseSystem(gram(n), tridiagonal(n))
    exact = np.linalg.eigvalsh(gram(n))[-1]
    assert 0.9 * exact < system.largest_eigenvalue() <= exact * (1 + 1e-12)
    lowest = np.linalg.eigvalsh(tridiagonal(n).toarray())[0]
    assert system.smallest_noise() == pytest.approx(lowest, rel=1e-6)
    assert DenseSystem(gram(n), 3.0 * identity(n)).smallest_noise() == 3.0
    assert DenseSystem(np.zeros((5, 5)), identity(5)).largest_eigenvalue() == 0.0
    for k in (1, 2, 3):
        assert DenseSystem(np.eye(k), identity(k)).largest_eigenvalue() == pytest.approx(1.0)


def test_the_covariance_must_fit():
    with pytest.raises(ValueError, match=r"covariance is \(4, 4\), the matrix \(5, 5\)"):
        DenseSystem(np.eye(5), identity(4))


@pytest.mark.parametrize("precision", ["single", None, 64, ["mixed"]])
def test_bad_precision_is_refused(precision):
    with pytest.raises(ValueError, match=r"precision must be one of 'auto', 'float64', 'mixed'"):
        Dense(precision)


# Through the estimator


def test_every_precision_gives_the_same_field(irregular):
    data = irregular(2, (30, 25))
    at = np.random.default_rng(0).normal(size=(9, 2))
    expected = vf.MOCK(ridge=1e-4, solver=Dense("float64"), search=False).fit(data).predict(at)
    for precision, status in [("mixed", Status.REFINED), ("auto", Status.SOLVED)]:
        model = vf.MOCK(ridge=1e-4, solver=Dense(precision), search=False).fit(data)
        np.testing.assert_allclose(model.predict(at), expected, rtol=0, atol=1e-10)
        assert model.solution_.status is status
        assert {"gram", "quadrature", "factor", "solve"} <= set(model.solution_.seconds)


def test_auto_takes_the_mixed_way_for_large_systems():
    rng = np.random.default_rng(0)
    x = np.cumsum(0.1 * rng.normal(size=(2101, 1)), axis=0)
    at = np.linspace(-1.0, 1.0, 9)[:, None]
    fits = {
        precision: vf.MOCK(ridge=1e-6, solver=Dense(precision), search=False).fit(x, 0.1)
        for precision in ("float64", "auto")
    }
    assert fits["auto"].solution_.status is Status.REFINED
    assert fits["float64"].solution_.status is Status.SOLVED
    expected = fits["float64"].predict(at)
    np.testing.assert_allclose(
        fits["auto"].predict(at), expected, rtol=0, atol=1e-9 * np.abs(expected).max()
    )


def test_a_fit_that_fails_raises_with_the_figures():
    """Many nearly equal snapshots under a very smooth kernel with hardly any ridge."""
    x = np.linspace(0.0, 1e-3, 60)[:, None] + 1.0
    model = vf.MOCK(vf.kernels.Gaussian(10.0), ridge=1e-25, standardize=False)
    with pytest.raises(vf.SolveError, match="raise ridge to at least about") as caught:
        model.fit(x, 0.1)
    solution = caught.value.solution
    assert not solution.status.ok
    assert "59 observations" in str(caught.value)
    assert "condition number" in solution.detail
    assert model.solution_ is solution


@pytest.mark.parametrize("precision", PRECISIONS)
def test_torch_agrees(precision):
    torch = pytest.importorskip("torch")
    n = 40
    y = targets(n)
    system = DenseSystem(torch.tensor(gram(n)), tridiagonal(n))
    for shift in (0.3, 0.05, 0.3):
        expected = DenseSystem(gram(n), tridiagonal(n)).factor(shift, precision).solve(y)
        got = system.factor(shift, precision).solve(torch.tensor(y))
        assert isinstance(got.value, torch.Tensor)
        assert got.status is expected.status
        np.testing.assert_allclose(got.value.numpy(), expected.value, rtol=0, atol=1e-10)


def test_torch_fails_in_the_same_words():
    torch = pytest.importorskip("torch")
    m = torch.tensor(gram(30) - 0.5 * np.eye(30))
    solution = DenseSystem(m, identity(30)).factor(1e-3).solve(torch.tensor(targets(30)))
    assert solution.status is Status.NOT_POSITIVE_DEFINITE
    assert "raise ridge" in solution.detail
