"""Polynomial fields against powers typed out, and their Jacobian against differences."""

import numpy as np
import pytest

from vectorfield.comparators import PolynomialField


def random_field(d=3, degree=4, seed=0, share=0.4):
    rng = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*[np.arange(degree + 1)] * d), axis=-1).reshape(-1, d)
    exponents = grid[grid.sum(axis=1) <= degree]
    coefficients = rng.normal(size=(d, len(exponents)))
    coefficients *= rng.uniform(size=coefficients.shape) < share
    return PolynomialField(exponents, coefficients, tuple("xyzuvw"[:d]))


@pytest.mark.parametrize(("d", "share"), [(1, 0.5), (2, 0.1), (3, 0.4), (4, 1.0), (3, 0.0)])
def test_values_are_sums_of_powers(d, share):
    field = random_field(d, share=share)
    x = np.random.default_rng(1).normal(size=(40, d))
    monomials = np.prod(x[:, None, :] ** field.exponents, axis=2)
    np.testing.assert_allclose(field(x), monomials @ field.coefficients.T, atol=1e-11)
    assert field.d == d


def test_the_jacobian_is_the_derivative():
    field, step = random_field(), 1e-5
    x = np.random.default_rng(2).normal(size=(20, 3))
    slopes = [(field(x + step * e) - field(x - step * e)) / (2 * step) for e in np.eye(3)]
    np.testing.assert_allclose(field.jacobian(x), np.stack(slopes, axis=2), atol=1e-6)


def test_equations_read_well_and_overflow_is_infinite():
    exponents = np.array([[0, 0], [1, 0], [0, 2], [1, 1]])
    rows = np.array([[0.0, -1.0, 0.5, 0.0], [0.0, 0.0, 0.0, 0.0]])
    field = PolynomialField(exponents, rows, ("a", "b"))
    assert field.equations() == ["a' = -a + 0.5 b^2", "b' = 0"]
    assert field(np.array([[0.0, 1e200]]))[0, 0] == np.inf
