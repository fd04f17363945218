"""Sums over second derivatives: parts of many points, points that nearly agree, symmetry."""

from __future__ import annotations

import numpy as np
import pytest
from physics_cases import OWN, close, hessian, points

from vectorfield.kernels import Gaussian, Matern, RationalQuadratic
from vectorfield.kernels.hessian import HessianBlocks, HessianSums

KERNELS = [Gaussian(0.8), Matern(2.5, 0.9), Matern(4.5, OWN[:3]), RationalQuadratic(0.6, OWN[:3])]
EACH = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
SIGNED = pytest.mark.parametrize(
    ("sign", "traceless"), [(1.0, False), (-1.0, False), (1.0, True), (-1.0, True)]
)


def naive(kernel, x: np.ndarray, y: np.ndarray, sign: float, traceless: bool) -> np.ndarray:
    """(n, m, d, d): sign times H, or H - tr(H) I."""
    h = np.array([[hessian(kernel, a, b) for b in y] for a in x])
    if traceless:
        h = h - np.trace(h, axis1=2, axis2=3)[:, :, None, None] * np.eye(x.shape[1])
    return sign * h


@EACH
@SIGNED
def test_blocks_and_products(kernel, sign, traceless):
    x, y, right, left = points(3, 6, 5, 5, 6)
    x[2] = y[4]
    expected = naive(kernel, x, y, sign, traceless)
    blocks = HessianBlocks(kernel, x, y, sign=sign, traceless=traceless)
    rows, columns = slice(2, 6), slice(0, 5)
    cut = expected[rows, columns]
    close(blocks.tile(rows, columns), cut.transpose(2, 3, 0, 1), 1e-13)
    forward, back = blocks.products(rows, columns, right, left[rows])
    close(forward, np.einsum("ijab,jb->ia", cut, right), 1e-13)
    close(back, np.einsum("ijab,ia->jb", cut, left[rows]), 1e-13)
    close(blocks.product(rows, columns, right), forward, 1e-15)


@EACH
def test_nothing_that_is_passed_in_changes(kernel):
    x, y, right, left = points(3, 6, 5, 5, 6)
    kept = [a.copy() for a in (x, y, right, left)]
    everything = slice(0, 6), slice(0, 5)
    blocks = HessianBlocks(kernel, x, y, sign=-1.0, traceless=True)
    first = blocks.tile(*everything)
    blocks.products(*everything, right, left)
    sums = HessianSums(kernel, y, right, sign=1.0, traceless=True)
    sums.value(x), sums.jacobian(x), sums.energy(x)
    np.testing.assert_array_equal(blocks.tile(*everything), first)
    for array, before in zip((x, y, right, left), kept, strict=True):
        np.testing.assert_array_equal(array, before)


@EACH
@SIGNED
def test_sums_in_parts(kernel, sign, traceless):
    """More nodes than a part has columns, more points than it has rows."""
    x, nodes, c = points(3, 150, 2300, 2300)
    sums = HessianSums(kernel, nodes, c, sign=sign, traceless=traceless)
    few = x[::37]
    expected = np.einsum("ijab,jb->ia", naive(kernel, few, nodes, sign, traceless), c)
    close(sums.value(x)[::37], expected, 1e-11)
    one_by_one = np.concatenate([sums.jacobian(x[i : i + 1]) for i in range(0, 150, 37)])
    wide = HessianSums(kernel, nodes, c, sign=sign, traceless=traceless)
    jacobian, energy = wide.jacobian(np.tile(x, (3, 1))), wide.energy(np.tile(x, (3, 1)))
    close(jacobian[150:300:37], one_by_one, 1e-12)
    close(energy[300::37], sums.energy(few), 1e-12)


@EACH
def test_the_energy_is_the_sum_of_slopes(kernel):
    """e = sum_p (grad k)(x - z_p) . c_p, and a field that is minus or plus its gradient."""
    x, nodes, c = points(3, 7, 9, 9)
    got = HessianSums(kernel, nodes, c, sign=-1.0, traceless=False).energy(x)
    h, expected = 1e-5, np.zeros(7)
    for i in range(7):
        for p in range(9):
            for step, weight in ((h, 1.0), (-h, -1.0)):
                value = kernel((x[i] + step * c[p])[None], nodes[p : p + 1])[0, 0]
                expected[i] += weight * value / (2 * h)
    close(got, expected, 1e-8)


@EACH
def test_jacobians_of_gradients_are_symmetric_to_the_last_bit(kernel):
    x, nodes, c = points(3, 40, 300, 300)
    jacobian = HessianSums(kernel, nodes, c, sign=-1.0, traceless=False).jacobian(x)
    assert np.abs(jacobian).min() > 0
    np.testing.assert_array_equal(jacobian, jacobian.transpose(0, 2, 1))


@pytest.mark.parametrize("distance", [0.0, 1e-300, 1e-160, 1e-12, 1e-8, 1e-5, 1e-3])
@pytest.mark.parametrize("lengths", [0.9, OWN[:3]], ids=["one", "own"])
def test_close_points_where_the_third_derivative_has_a_kink(lengths, distance):
    """Matern(2.5) has F_3 = -1 / r at r = 0: finite, and right to the rounding of x - z."""
    kernel = Matern(2.5, lengths)
    (nodes,) = points(3, 20)
    nodes += 3.0
    nodes[0] = 0.0  # so that a tiny distance to it is no rounding
    x = np.array([[distance, 0.0, 0.0], [distance, distance, -distance]])
    c = np.zeros((20, 3))
    c[0] = [1.0, -2.0, 0.5]
    for traceless in (False, True):
        sums = HessianSums(kernel, nodes, c, sign=-1.0, traceless=traceless)
        expected = naive(kernel, x, nodes[:1], -1.0, traceless)[:, 0] @ c[0]
        close(sums.value(x), expected, 1e-12)
        # the field is even about its node: its derivative is odd and of the size of r
        jacobian = sums.jacobian(x)
        assert np.isfinite(jacobian).all()
        assert np.abs(jacobian).max() <= 60.0 * max(distance, 1e-7)
        if distance > 1e-6:
            close(sums.jacobian(-x), -jacobian, 1e-9)


def test_far_from_the_origin():
    """Coordinates are taken from the nodes' mean, so that an offset costs its own digits only."""
    x, nodes, c = points(3, 6, 30, 30)
    far = 2.0**20
    x, nodes = np.round(x * 2**20) / 2**20, np.round(nodes * 2**20) / 2**20  # exact once moved
    for kernel in KERNELS:
        near = HessianSums(kernel, nodes, c, sign=1.0, traceless=True)
        moved = HessianSums(kernel, nodes + far, c, sign=1.0, traceless=True)
        close(moved.value(x + far), near.value(x), 1e-8)
        close(moved.jacobian(x + far), near.jacobian(x), 1e-8)


def test_a_length_scale_that_does_not_fit_is_refused_at_once():
    nodes, c = points(3, 4, 4)
    for lengths, message in (
        ((1.0, 2.0), "has 2 entries but the states have 3"),
        (None, "is None"),
    ):
        with pytest.raises(ValueError, match=f"length_scale {message}"):
            HessianSums(Gaussian(lengths), nodes, c, sign=1.0, traceless=False)
