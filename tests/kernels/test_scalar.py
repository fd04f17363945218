"""Scalar kernels against their formulas, their derivatives against differences."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from sklearn.base import clone

from vectorfield.kernels import (
    Constant,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    Product,
    Radial,
    RationalQuadratic,
    ScalarKernel,
    Scaled,
    Separable,
    Sum,
)
from vectorfield.kernels.codec import decode, encode
from vectorfield.kernels.lengths import median_distance
from vectorfield.kernels.tiles import evaluate, row_blocks

RADIAL = [
    Gaussian(1.0),
    Laplace(1.0),
    *[Matern(nu, 1.0) for nu in (0.5, 1.5, 2.5, 3.5, 4.5, 5.5)],
    *[RationalQuadratic(alpha, 1.0) for alpha in (0.3, 1.0, 7.0)],
]
# central differences of order 8
OFFSETS = np.array([-4, -3, -2, -1, 1, 2, 3, 4])
FIRST = np.array([3, -32, 168, -672, 672, -168, 32, -3]) / 840
SECOND = np.array([-9, 128, -1008, 8064, 8064, -1008, 128, -9]) / 5040


def points(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def first_difference(f: Callable[[np.ndarray], np.ndarray], r: np.ndarray, h: float) -> np.ndarray:
    return sum(w * f(r + j * h) for w, j in zip(FIRST, OFFSETS, strict=True)) / h


def second_difference(f: Callable[[np.ndarray], np.ndarray], r: np.ndarray, h: float) -> np.ndarray:
    total = -14350 / 5040 * f(r)
    return (total + sum(w * f(r + j * h) for w, j in zip(SECOND, OFFSETS, strict=True))) / h**2


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_gram_is_the_formula(make_kernel, formula, d):
    kernel = make_kernel(d)
    x, y = points(7, d), points(5, d, seed=1)
    expected = np.array([[formula(kernel, a, b) for b in y.tolist()] for a in x.tolist()])
    scale = np.sqrt(kernel.diagonal(x)[:, None] * kernel.diagonal(y)[None, :])
    assert (np.abs(kernel(x, y) - expected) <= 1e-12 * np.maximum(np.abs(expected), scale)).all()
    np.testing.assert_allclose(kernel(x), kernel(x, x), rtol=0, atol=1e-14 * kernel(x).max())


@pytest.mark.parametrize("d", [1, 3])
def test_positive_kernels_to_twelve_digits_of_each_entry(formula, d):
    x = points(12, d)
    for kernel in RADIAL:
        expected = [[formula(kernel, a, b) for b in x.tolist()] for a in x.tolist()]
        np.testing.assert_allclose(kernel(x), expected, rtol=1e-12)


@pytest.mark.parametrize("d", [1, 3])
def test_symmetric_and_positive_semidefinite(make_kernel, d):
    kernel = make_kernel(d)
    x = np.concatenate([points(30, d), points(3, d)])  # three points twice
    gram = kernel(x)
    size = np.abs(gram).max()
    np.testing.assert_allclose(gram, gram.T, rtol=0, atol=1e-13 * size)
    assert np.linalg.eigvalsh((gram + gram.T) / 2)[0] >= -1e-10 * size


def test_diagonal(make_kernel):
    for d in (1, 2, 5):
        kernel, x = make_kernel(d), points(9, d)
        diagonal = kernel.diagonal(x)
        assert diagonal.shape == (9,)
        np.testing.assert_allclose(diagonal, np.diag(kernel(x)), rtol=1e-12, atol=1e-14)


def test_nothing_passed_in_is_changed(make_kernel):
    kernel = make_kernel(2)
    x, y, c, weight = points(5, 2), points(4, 2), points(4, 3), points(5, 4)
    before = [a.copy() for a in (x, y, c, weight)]
    for a in (x, y, c, weight):
        a.flags.writeable = False
    (
        kernel(x, y),
        kernel.diagonal(x),
        kernel.derivative(x, y, c, weight),
        evaluate(kernel.bind(y), x, c),
    )
    for now, then in zip((x, y, c, weight), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_blocks_are_parts_of_the_matrix(make_kernel):
    kernel, x, y = make_kernel(3), points(23, 3), points(17, 3, seed=1)
    x[5] = y[3]
    tile, whole = kernel.bind(y)(x), kernel(x, y)
    for rows in row_blocks(23, 7):
        for columns in row_blocks(17, 4):
            block = tile(rows, columns)
            np.testing.assert_allclose(block, whole[rows, columns], rtol=1e-12, atol=1e-14)
            block *= 0.0  # fresh memory: the next block is not touched
    np.testing.assert_array_equal(tile(slice(0, 23), slice(0, 17)), whole)


def test_evaluate_is_the_product(make_kernel):
    kernel = make_kernel(2)
    y, c = points(1500, 2), points(1500, 3, seed=2)
    for n in (1, 65, 400):  # alone, two blocks, all cores
        x = points(n, 2, seed=n)
        expected = kernel(x, y) @ c
        got = evaluate(kernel.bind(y), x, c)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
        np.testing.assert_array_equal(evaluate(kernel.bind(y), x, c), got)


def test_evaluate_at_no_points(make_kernel):
    kernel, y, c = make_kernel(2), points(4, 2), points(4, 3)
    assert evaluate(kernel.bind(y), np.empty((0, 2)), c).shape == (0, 3)
    assert kernel.derivative(np.empty((0, 2)), y, c).shape == (0, 3, 2)


# Radial profiles


@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
def test_phi_and_its_derivatives_against_differences(kernel, formula):
    r = np.linspace(0.3, 6.0, 40)
    exact = np.array([formula(kernel, (v,), (0.0,)) for v in r.tolist()])
    np.testing.assert_allclose(kernel.phi(r), exact, rtol=1e-13)
    np.testing.assert_allclose(
        kernel.phi(r, 1), first_difference(kernel.phi, r, 0.02), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(
        kernel.phi(r, 2), second_difference(kernel.phi, r, 0.02), rtol=1e-8, atol=1e-10
    )


@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
def test_phi_at_zero_is_exact(kernel):
    zero = np.zeros(1)
    match kernel:
        case Gaussian() | RationalQuadratic():
            slope, bend = 0.0, -1.0
        case Matern(nu=nu) if nu > 0.5:
            slope, bend = 0.0, -1.0 / (2 * nu - 2)
        case _:
            slope, bend = -1.0, 1.0
    assert kernel.phi(zero) == 1.0
    assert kernel.phi(zero, 1) == slope
    assert kernel.phi(zero, 2) == pytest.approx(bend, rel=1e-15)
    with pytest.raises(ValueError, match=r"derivative must be 0, 1 or 2, got 3"):
        kernel.phi(zero, 3)


@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
def test_recurrence_of_the_profiles(kernel):
    """F_(m+1) = F_m' / r, as far as each kernel goes."""
    r = np.linspace(0.4, 5.0, 30)
    last = {Matern: round(getattr(kernel, "nu", 0.5) - 0.5), Laplace: 0}.get(type(kernel), 4)
    for order in range(last + 1):
        slope = first_difference(lambda v, m=order: kernel.profile(v * v, m), r, 0.02)
        following = kernel.profile(r * r, order + 1)
        np.testing.assert_allclose(following, slope / r, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, 3.5, 4.5, 5.5])
def test_matern_has_no_derivatives_beyond_its_smoothness(nu):
    order = round(nu + 0.5)
    assert np.isfinite(Matern(nu, 1.0).profile(np.ones(1), order)).all()
    with pytest.raises(ValueError, match=f"nu = {nu} has no derivative of order {order + 1}"):
        Matern(nu, 1.0).profile(np.ones(1), order + 1)


def test_laplace_is_matern_one_half():
    x, y, c = points(6, 2), points(5, 2, seed=1), points(5, 2, seed=2)
    np.testing.assert_array_equal(Laplace(1.3)(x, y), Matern(0.5, 1.3)(x, y))
    np.testing.assert_array_equal(
        Laplace(1.3).derivative(x, y, c), Matern(0.5, 1.3).derivative(x, y, c)
    )


def test_rational_quadratic_tends_to_the_gaussian():
    x = points(8, 2)
    np.testing.assert_allclose(RationalQuadratic(1e8, 0.9)(x), Gaussian(0.9)(x), rtol=0, atol=1e-7)


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("kernel", [Laplace(1.0), Matern(0.5, 1.0), Matern(1.5, 1.0)], ids=repr)
def test_nearly_coincident_points_far_from_the_origin(kernel, offset, formula):
    """The kink at r = 0 magnifies what cancellation leaves of a small distance."""
    rng = np.random.default_rng(0)
    x = offset + rng.normal(size=(40, 3))
    gaps = np.repeat([1e-3, 1e-5, 1e-7, 1e-9, 0.0], 8)[:, None]
    y = x + gaps * rng.normal(size=(40, 3))
    expected = [[formula(kernel, a, b) for b in y.tolist()] for a in x.tolist()]
    np.testing.assert_allclose(kernel(x, y), expected, rtol=1e-11)
    r = np.sqrt(np.sum((x - y) ** 2, axis=1))
    np.testing.assert_allclose(1.0 - np.diag(kernel(x, y)), 1.0 - kernel.phi(r), rtol=0, atol=2e-12)


# Derivatives


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [1, 3])
def test_derivative_against_differences(make_kernel, d, weighted):
    kernel = make_kernel(d)
    x, y, c = points(5, d), points(6, d, seed=1), points(6, 2, seed=2)
    weight = points(5, 6, seed=3) if weighted else None
    w = np.ones((5, 6)) if weight is None else weight
    got = kernel.derivative(x, y, c, weight)
    assert got.shape == (5, 2, d)
    h = 2e-3
    for j in range(d):
        e = np.eye(d)[j]
        slope = sum(v * kernel(x + i * h * e, y) for v, i in zip(FIRST, OFFSETS, strict=True)) / h
        expected = (w * slope) @ c
        np.testing.assert_allclose(got[:, :, j], expected, rtol=0, atol=2e-9)


def test_derivative_at_a_node(make_kernel):
    """At x = y_p the smooth kernels have their gradient; a kink counts for nothing."""
    kernel, d = make_kernel(2), 2
    y, c = points(6, d, seed=1), points(6, 2, seed=2)
    got = kernel.derivative(y.copy(), y, c)
    h = 1e-6
    for j in range(d):
        e = np.eye(d)[j]
        # symmetric in +h and -h: what is odd about a kink cancels
        expected = (kernel(y + h * e, y) - kernel(y - h * e, y)) @ c / (2 * h)
        np.testing.assert_allclose(got[:, :, j], expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("kernel", [Laplace(1.0), Matern(0.5, 1.0), Matern(1.5, 1.0)], ids=repr)
def test_derivative_close_to_a_node(kernel, gap):
    """F_1 has a pole there for Laplace; the gradient, a unit vector in the limit, has none."""
    y, c = points(30, 3, seed=1), points(30, 2, seed=2)
    x = y[:8] + gap * points(8, 3, seed=3)
    expected = np.zeros((8, 2, 3))
    for a in range(8):
        for p in range(30):
            u = x[a] - y[p]
            r = np.sqrt(u @ u)
            slope = (
                -np.exp(-r) if isinstance(kernel, Matern) and kernel.nu == 1.5 else -np.exp(-r) / r
            )
            expected[a] += slope * np.outer(c[p], u)
    np.testing.assert_allclose(kernel.derivative(x, y, c), expected, rtol=0, atol=1e-11)


def test_derivative_of_a_radial_kernel_at_its_only_node_is_zero():
    for kernel in RADIAL:
        x = np.array([[1e3, -1.0]])
        np.testing.assert_array_equal(kernel.derivative(x, x, np.ones((1, 2))), np.zeros((1, 2, 2)))


# Algebra


def test_laws_of_the_algebra():
    a, b, c = Gaussian(1.1), Linear(2.0), Matern(1.5, 0.7)
    x, y = points(6, 2), points(5, 2, seed=1)
    for left, right in [
        (a + b, b + a),
        ((a + b) + c, a + (b + c)),
        (a * b, b * a),
        ((a * b) * c, a * (b * c)),
        (a * (b + c), a * b + a * c),
        (2.0 * (a + b), 2.0 * a + 2.0 * b),
        (a + a, 2.0 * a),
        (a * 3, 3 * a),
        (a * Constant(1.0), a),
        (Linear(2.0) * Linear(2.0), Polynomial(2, 0.0, 2.0)),
        (Linear(2.0) + Constant(0.5), Polynomial(1, 0.5, 2.0)),
        (Gaussian(1.0) * Gaussian(1.0), Gaussian(math.sqrt(0.5))),
    ]:
        np.testing.assert_allclose(left(x, y), right(x, y), rtol=1e-13, atol=1e-14)
        coefficients = points(5, 3, seed=2)
        np.testing.assert_allclose(
            left.derivative(x, y, coefficients),
            right.derivative(x, y, coefficients),
            rtol=1e-11,
            atol=1e-12,
        )


@pytest.mark.parametrize("factor", [2, 2.0, np.float64(2), np.float32(2), np.int64(2)])
def test_scaling_by_any_number(factor):
    kernel = Gaussian(1.0)
    assert factor * kernel == kernel * factor == Scaled(kernel, 2.0)
    assert type((factor * kernel).factor) is float


def test_algebra_refuses_what_is_no_kernel():
    kernel = Gaussian(1.0)
    with pytest.raises(TypeError):
        kernel + 1.0
    with pytest.raises(TypeError):
        kernel * "2"
    with pytest.raises(TypeError, match=r"right must be a scalar kernel .*, got 2\.0"):
        Sum(kernel, 2.0)
    with pytest.raises(TypeError, match="left must be a scalar kernel"):
        Product(Separable(kernel), kernel)
    with pytest.raises(TypeError, match=r"kernel must be a scalar kernel .*, got None"):
        Scaled(None, 2.0)
    for factor in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match=r"factor must be a finite number > 0, got"):
            factor * kernel
    with pytest.raises(TypeError, match="factor must be a number, got True"):
        kernel * True


# Settings


@pytest.mark.parametrize("cls", [Gaussian, Laplace, Matern, RationalQuadratic, Polynomial, Linear])
@pytest.mark.parametrize(
    "value",
    [
        0.0,
        -1.0,
        math.nan,
        math.inf,
        True,
        "2.0",
        "abc",
        [1.0, "2"],
        [True],
        [],
        [[1.0]],
        [1.0, 0.0],
        {"a": 1.0},
        1j,
        10**400,
    ],
)
def test_bad_length_scales_are_refused(cls, value):
    with pytest.raises((TypeError, ValueError), match=r"length_scale.*got"):
        cls(length_scale=value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Matern(2.0), r"nu must be one of 0\.5, 1\.5, \.\.\., 5\.5, got 2\.0"),
        (lambda: Matern("2.5"), "nu must be a number, got '2.5'"),
        (lambda: RationalQuadratic(0.0), r"alpha must be a finite number > 0, got 0\.0"),
        (lambda: RationalQuadratic(None), "alpha must be a number, got None"),
        (lambda: Polynomial(0), "degree must be at least 1, got 0"),
        (lambda: Polynomial(2.0), r"degree must be a whole number, got 2\.0"),
        (lambda: Polynomial(True), "degree must be a whole number, got True"),
        (lambda: Polynomial(2, -0.1), r"offset must be a finite number >= 0, got -0\.1"),
        (lambda: Constant(0), "value must be a finite number > 0, got 0"),
        (lambda: Constant(10**400), "value must be a finite number > 0, got 1000"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_settings_are_plain_numbers():
    kernel = Polynomial(np.int64(3), np.float32(1.0), np.array([1, 2]))
    assert [type(v) for v in (kernel.degree, kernel.offset, *kernel.length_scale)] == [
        int,
        float,
        float,
        float,
    ]
    assert type(Gaussian(np.array(2)).length_scale) is float
    assert Gaussian(1) == Gaussian(1.0) == Gaussian(np.float32(1.0))


def test_replace_and_nested_replace():
    kernel = 2.0 * Gaussian(1.0) + Matern(1.5, 0.5) * Linear()
    changed = kernel.replace(
        left__kernel__length_scale=3.0, right__left__nu=2.5, right__right=Constant()
    )
    assert changed == 2.0 * Gaussian(3.0) + Matern(2.5, 0.5) * Constant()
    assert kernel == 2.0 * Gaussian(1.0) + Matern(1.5, 0.5) * Linear()
    # a new inner kernel and its own settings at once
    assert kernel.replace(left=Laplace(), left__length_scale=4.0).left == Laplace(4.0)
    with pytest.raises(
        ValueError, match=r"Gaussian has no parameter 'sigma'; it has \['length_scale'\]"
    ):
        kernel.replace(left__kernel__sigma=3.0)
    with pytest.raises(ValueError, match=r"length_scale=1\.0 has no parameters of its own"):
        Gaussian(1.0).replace(length_scale__x=3.0)
    with pytest.raises(ValueError, match=r"nu must be one of .*, got 9\.0"):
        kernel.replace(right__left__nu=9.0)
    with pytest.raises(ValueError, match="Gaussian has no parameter 'nu'"):
        Gaussian().replace(nu=1.5)


def test_get_params():
    kernel = 2.0 * Gaussian(1.0)
    assert kernel.get_params(deep=False) == {"kernel": Gaussian(1.0), "factor": 2.0}
    assert kernel.get_params() == {
        "kernel": Gaussian(1.0),
        "factor": 2.0,
        "kernel__length_scale": 1.0,
    }


def test_values_are_immutable_hashable_and_their_own_clones(make_kernel):
    kernel, again = make_kernel(2), make_kernel(2)
    assert kernel == again
    assert hash(kernel) == hash(again)
    assert clone(kernel) is kernel
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    name = dataclasses.fields(kernel)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(kernel, name, 1.0)


def test_an_open_length_scale_is_the_median_distance():
    nodes = points(50, 3)
    median = np.median(pdist(nodes))
    for cls in (Gaussian, Laplace, Matern, RationalQuadratic):
        assert cls().resolved(nodes).length_scale == median
        assert cls(length_scale=2.0).resolved(nodes).length_scale == 2.0
    kernel = 0.5 * Gaussian() + Laplace(1.0) * Matern(1.5)
    assert kernel.resolved(nodes) == 0.5 * Gaussian(median) + Laplace(1.0) * Matern(1.5, median)
    assert (Linear() + Constant()).resolved(nodes) == Linear() + Constant()
    assert Separable(kernel).resolved(nodes) == Separable(kernel.resolved(nodes))


def test_median_distance_of_odd_sets():
    assert median_distance(np.zeros((5, 2))) == 1.0  # nothing to go by
    assert median_distance(np.zeros((1, 2))) == 1.0
    assert median_distance(np.array([[0.0], [0.0], [2.0]])) == 2.0  # repeats do not count
    many = points(4001, 2)
    assert median_distance(many) == median_distance(many)
    assert median_distance(many) == pytest.approx(np.median(pdist(many)), rel=0.05)


def test_an_open_length_scale_cannot_be_used():
    x = points(3, 2)
    for kernel in (Gaussian(), Gaussian() + Linear(), 2.0 * Matern()):
        for use in (lambda k=kernel: k(x), lambda k=kernel: k.derivative(x, x, x)):
            with pytest.raises(ValueError, match=r"length_scale is None.*resolved\(nodes\)"):
                use()


def test_length_scales_must_fit_the_states():
    for kernel in (Gaussian((1.0, 2.0)), Linear((1.0, 2.0)), Polynomial(2, 1.0, (1.0, 2.0))):
        with pytest.raises(ValueError, match="length_scale has 2 entries but the states have 3"):
            kernel(points(4, 3))


def test_own_length_scales_are_a_change_of_coordinates(make_kernel):
    kernel = make_kernel(2)
    if not isinstance(getattr(kernel, "length_scale", None), float):
        assert kernel(points(3, 2)).shape == (3, 3)
        return
    x = points(5, 2)
    own = kernel.replace(length_scale=(0.5, 4.0))
    one = kernel.replace(length_scale=1.0)
    np.testing.assert_allclose(own(x), one(x / np.array([0.5, 4.0])), rtol=1e-13)


# Plain dictionaries

lengths = st.one_of(
    st.none(), st.floats(1e-3, 1e3), st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=4)
)
positive = st.floats(1e-6, 1e6)
leaves = st.one_of(
    st.builds(Gaussian, lengths),
    st.builds(Laplace, lengths),
    st.builds(Matern, st.sampled_from([0.5, 1.5, 2.5, 3.5, 4.5, 5.5]), lengths),
    st.builds(RationalQuadratic, positive, lengths),
    st.builds(
        Polynomial, st.integers(1, 9), st.floats(0, 10), lengths.filter(lambda v: v is not None)
    ),
    st.builds(Linear, lengths.filter(lambda v: v is not None)),
    st.builds(Constant, positive),
)
kernels = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(Sum, inner, inner),
        st.builds(Product, inner, inner),
        st.builds(Scaled, inner, positive),
    ),
    max_leaves=8,
)


@settings(deadline=None, max_examples=100)
@given(kernels)
def test_codec_round_trip(kernel: ScalarKernel):
    for value in (kernel, Separable(kernel), Separable(kernel, [[2.0, 0.1], [0.1, 1.0]])):
        text = json.dumps(encode(value), allow_nan=False)
        again = decode(json.loads(text))
        assert again == value
        assert hash(again) == hash(value)
        assert json.dumps(encode(again)) == text


def test_codec_refuses_kernels_of_others():
    @dataclasses.dataclass(frozen=True)
    class Gaussian(Radial):  # a name of ours does not make it ours
        length_scale: float = 1.0

        def profile(self, squared, order=0):
            return squared

        def is_rough(self, order):
            return False

    with pytest.raises(TypeError, match="not one of the library's kernels"):
        encode(Gaussian())
    with pytest.raises(TypeError, match="not one of the library's kernels"):
        encode(Separable(Gaussian()))


@pytest.mark.parametrize(
    "plain",
    [None, 1, [], "Gaussian", {}, {"type": "Kernel"}, {"type": []}, {"type": None},
     {"type": "Gaussian", "sigma": 1.0}, {"type": "Gaussian", "length_scale": "1"},
     {"type": "Gaussian", "self": 1.0}, {"type": "Gaussian", "length_scale": {"a": 1}},
     {"type": "Sum", "left": {"type": "Linear"}}, {"type": "Sum", "left": 1, "right": 2},
     {"type": "Polynomial", "degree": 2.5}, {"type": "Constant", "value": 10**400},
     {"type": "Scaled", "kernel": {"type": "Constant", "value": 0.0}, "factor": 1.0},
     {"type": "Separable", "kernel": {"type": "Separable", "kernel": {"type": "Linear"}}},
     {"type": "Separable", "kernel": {"type": "Linear"}, "matrix": [[10**400]]},
     {"type": "Separable", "kernel": {"type": "Linear"}, "matrix": "ab"}],
)  # fmt: skip
def test_decode_refuses_other_dictionaries(plain):
    with pytest.raises((ValueError, TypeError)):
        decode(plain)


# PyTorch


def test_torch_agrees_with_numpy(make_kernel):
    torch = pytest.importorskip("torch")
    for d in (1, 3):
        kernel = make_kernel(d)
        x, y = points(9, d), points(8, d, seed=1)
        x[2] = y[5]
        c, weight = points(8, 2, seed=2), points(9, 8, seed=3)
        tx, ty, tc, tw = (torch.asarray(v) for v in (x, y, c, weight))
        for got, expected in [
            (kernel(tx, ty), kernel(x, y)),
            (kernel.diagonal(tx), kernel.diagonal(x)),
            (kernel.derivative(tx, ty, tc), kernel.derivative(x, y, c)),
            (kernel.derivative(tx, ty, tc, tw), kernel.derivative(x, y, c, weight)),
            (evaluate(kernel.bind(ty), tx, tc), evaluate(kernel.bind(y), x, c)),
        ]:
            assert isinstance(got, torch.Tensor)
            assert got.dtype == torch.float64
            np.testing.assert_allclose(got.numpy(), expected, rtol=1e-11, atol=1e-12)


def test_torch_resolves_the_same_length_scale():
    torch = pytest.importorskip("torch")
    nodes = points(40, 2)
    assert Gaussian().resolved(torch.asarray(nodes)) == Gaussian().resolved(nodes)
