"""Kernels from physics: blocks against their formula, fields, Jacobians, energies, refusals."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from physics_cases import (
    CASES,
    FEW,
    LAWS,
    OWN,
    close,
    from_hessian,
    mixed_pairs,
    mobility,
    naive,
    points,
    slopes,
    symplectic,
    whole,
)
from sklearn.base import clone

import vectorfield as vf
from vectorfield.kernels import (
    Constant,
    CurlFree,
    DivergenceFree,
    Gaussian,
    Gradient,
    Hamiltonian,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Separable,
)
from vectorfield.kernels.codec import decode, encode

EACH = pytest.mark.parametrize(("kernel", "d"), CASES.values(), ids=CASES)
SOME = pytest.mark.parametrize(("kernel", "d"), FEW.values(), ids=FEW)
KINDS = [CurlFree, DivergenceFree, Gradient, Hamiltonian]


# Blocks


@EACH
def test_blocks_are_the_formula(kernel, d):
    x, y = points(d, 6, 7)
    x[1], x[4] = y[2], y[0]  # coinciding points
    x[2] = y[3] + 1e-7
    x[5] = y[1] + 30.0
    close(whole(kernel, x, y), naive(kernel, x, y), 1e-13)


@SOME
def test_blocks_are_second_derivatives_of_the_scalar_kernel(kernel, d, formula):
    x, y = points(d, 2, 3)
    x[1] = y[2]
    h = 2e-3

    def scalar(a, b):
        return formula(kernel.kernel, a.tolist(), b.tolist())

    def second(a, b):
        """Differences of order 4, one coordinate after the other."""
        weights = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
        e = h * np.eye(d)
        value = np.zeros((d, d))
        for i in range(d):
            for j in range(d):
                for m, w in weights.items():
                    for n, v in weights.items():
                        value[i, j] += w * v * scalar(a + m * e[i] + n * e[j], b) / h**2
        return value

    expected = np.array([[from_hessian(kernel, second(a, b)) for b in y] for a in x])
    # at r = 0 the fifth derivatives of Matern(2.5) jump: the error there is of order h
    close(whole(kernel, x, y).transpose(2, 3, 0, 1), expected, 4e-3)
    close(whole(kernel, x[:1], y).transpose(2, 3, 0, 1), expected[:1], 1e-8)


@pytest.mark.parametrize("d", [2, 3, 5])
def test_the_polynomial_of_the_smoothest_matern_kernel(d):
    """F_2 = (r^3 + 6 r^2 + 15 r + 15) e^-r / 945, where the paper prints 15 r^2 for 15 r."""
    kernel = Matern(5.5, 1.0)
    for x in points(d, 20)[0] * 2.0:
        r = math.sqrt(x @ x)
        first = -(r**4 + 10 * r**3 + 45 * r**2 + 105 * r + 105) * math.exp(-r) / 945
        second = (r**3 + 6 * r**2 + 15 * r + 15) * math.exp(-r) / 945
        expected = second * (np.outer(x, x) - r**2 * np.eye(d)) - (d - 1) * first * np.eye(d)
        got = whole(DivergenceFree(kernel), x[None], np.zeros((1, d)))[:, :, 0, 0]
        close(got, expected, 1e-13)
        got = whole(CurlFree(kernel), x[None], np.zeros((1, d)))[:, :, 0, 0]
        close(got, -first * np.eye(d) - second * np.outer(x, x), 1e-13)


@EACH
def test_products_and_fields_are_sums_over_blocks(kernel, d):
    x, y, right, left = points(d, 9, 8, 8, 9)
    x[3] = y[3]
    expected = naive(kernel, x, y)
    blocks = kernel.blocks(y)(x)
    rows, columns = slice(1, 6), slice(2, 8)
    tile = blocks.tile(rows, columns)
    assert tile.flags.writeable
    close(tile, expected[:, :, rows, columns], 1e-13)
    forward = np.einsum("abij,jb->ia", tile, right[columns])
    back = np.einsum("abij,ia->jb", tile, left[rows])
    close(blocks.product(rows, columns, right[columns]), forward, 1e-12)
    got = blocks.products(rows, columns, right[columns], left[rows])
    close(got[0], forward, 1e-12)
    close(got[1], back, 1e-12)
    close(kernel.bind(y, right)(x), np.einsum("abij,jb->ia", expected, right), 1e-12)
    mean = np.einsum("aaii->", naive(kernel, y, y)) / (8 * d)
    assert kernel.size(y) == pytest.approx(mean, rel=1e-12)


@EACH
def test_symmetric_and_positive_semidefinite(kernel, d):
    (x,) = points(d, 9)
    x[8] = x[0]
    tile = whole(kernel, x, x)
    gram = tile.transpose(2, 0, 3, 1).reshape(9 * d, 9 * d)
    close(gram, gram.T, 1e-13)
    assert np.linalg.eigvalsh((gram + gram.T) / 2)[0] > -1e-13 * np.abs(gram).max() * len(gram)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_semidefinite_for_any_points_and_lengths(data):
    name = data.draw(st.sampled_from(sorted(LAWS)))
    make, dims = LAWS[name]
    d = data.draw(st.sampled_from(dims))
    length = st.floats(0.1, 10.0)
    lengths = data.draw(st.one_of(length, st.lists(length, min_size=d, max_size=d)))
    radial = data.draw(
        st.one_of(
            st.just(Gaussian(lengths)),
            st.builds(Matern, st.sampled_from([2.5, 3.5, 4.5, 5.5]), st.just(lengths)),
            st.builds(RationalQuadratic, st.floats(0.1, 20.0), st.just(lengths)),
        )
    )
    entry = st.floats(-20.0, 20.0, allow_subnormal=False)
    rows = st.lists(st.lists(entry, min_size=d, max_size=d), min_size=1, max_size=6)
    x, y = (np.array(data.draw(rows)) for _ in range(2))
    kernel = make(radial, d)
    turned = whole(kernel, y, x).transpose(1, 0, 3, 2)  # distances are up to 500 length scales
    atol = 1e-8 * kernel.size(x)
    np.testing.assert_allclose(whole(kernel, x, y), turned, rtol=0, atol=atol)
    n = len(x)
    gram = whole(kernel, x, x).transpose(2, 0, 3, 1).reshape(n * d, n * d)
    assert np.linalg.eigvalsh((gram + gram.T) / 2)[0] > -1e-8 * np.abs(gram).max()


@pytest.mark.parametrize("radial", [Gaussian(1.1), Gaussian((0.5, 2.0)), Matern(3.5, (1.0, 0.3))])
def test_in_the_plane_hamiltonian_is_divergence_free(radial):
    x, y, c = points(2, 7, 9, 9)
    one, other = Hamiltonian(radial), DivergenceFree(radial)
    close(whole(one, x, y), whole(other, x, y), 1e-14)
    assert one.size(y) == pytest.approx(other.size(y), rel=1e-14)
    close(one.bind(y, c)(x), other.bind(y, c)(x), 1e-13)
    close(one.bind(y, c).jacobian(x), other.bind(y, c).jacobian(x), 1e-12)
    t = np.linspace(0.0, 6.0, 31)
    orbit = np.stack([np.cos(t), -40.0 * np.sin(t)], axis=1)
    models = [vf.MOCK(kernel, 1e-6).fit(orbit, t) for kernel in (one, other)]
    close(models[0].predict(orbit), models[1].predict(orbit), 1e-9)


def test_the_identity_as_mobility_is_curl_free():
    x, y, c = points(3, 5, 6, 6)
    plain = CurlFree(Matern(2.5, OWN[:3]))
    for matrix in (None, np.eye(3)):
        kernel = Gradient(plain.kernel, matrix)
        close(whole(kernel, x, y), whole(plain, x, y), 1e-15)
        close(kernel.bind(y, c).energy(x), plain.bind(y, c).energy(x), 1e-15)


# Fields


@EACH
def test_jacobian_against_differences(kernel, d):
    x, nodes, c = points(d, 5, 10, 10)
    x[0] = nodes[0] + 1e-3  # near a node and yet beyond the step, where Matern(2.5) has a kink
    field = kernel.bind(nodes, c)
    close(field.jacobian(x), slopes(field, x), 2e-8)


@EACH
def test_jacobian_at_a_node_is_its_limit(kernel, d):
    nodes, c = points(d, 10, 10)
    jacobian = kernel.bind(nodes, c).jacobian
    close(jacobian(nodes), jacobian(nodes + 1e-9), 1e-6)


def mixing(kernel, d: int) -> np.ndarray:
    """B in f = B grad (energy)."""
    if kernel.energy == "hamiltonian":
        return symplectic(kernel.pairs, d)
    matrix = getattr(kernel, "mobility", None)
    return -np.eye(d) if matrix is None else -np.array(matrix)


@EACH
def test_the_field_is_the_slope_of_its_energy(kernel, d):
    x, nodes, c = points(d, 5, 10, 10)
    x[0] = nodes[0]
    field = kernel.bind(nodes, c)
    if isinstance(kernel, DivergenceFree):
        assert kernel.energy is None
        with pytest.raises(TypeError, match="not made of a potential or Hamiltonian"):
            field.energy(x)
        with pytest.raises(TypeError, match="fields of DivergenceFree have no potential"):
            kernel.energy_unit(np.ones(d))
        return
    assert field.energy(x).shape == (5,)
    close(slopes(field.energy, x) @ mixing(kernel, d).T, field(x), 1e-8)


@SOME
def test_laws_of_the_field_to_the_last_digits(kernel, d):
    x, nodes, c = points(d, 200, 12, 12)
    jacobian = kernel.bind(nodes, c).jacobian(x)
    size = np.linalg.norm(jacobian, axis=(1, 2))
    if isinstance(kernel, DivergenceFree):
        broken = np.trace(jacobian, axis1=1, axis2=2)
    elif isinstance(kernel, CurlFree) or (isinstance(kernel, Gradient) and not kernel.mobility):
        broken = jacobian - jacobian.transpose(0, 2, 1)
        assert not broken.any()
    elif isinstance(kernel, Gradient):  # Df = M S with S symmetric: Df M is symmetric
        product = jacobian @ np.array(kernel.mobility)
        broken = product - product.transpose(0, 2, 1)
    else:
        hessian = symplectic(kernel.pairs, d).T @ jacobian
        broken = hessian - hessian.transpose(0, 2, 1)
    assert (np.abs(broken).reshape(200, -1).max(axis=1) <= 1e-12 * size).all()
    assert size.min() > 1e-4


@SOME
def test_no_points(kernel, d):
    nodes, c = points(d, 4, 4)
    field, none = kernel.bind(nodes, c), np.empty((0, d))
    assert field(none).shape == (0, d)
    assert field.jacobian(none).shape == (0, d, d)
    if kernel.energy:
        assert field.energy(none).shape == (0,)


# Settings


def test_defaults_and_an_open_length_scale():
    (nodes,) = points(4, 30)
    for kind in KINDS:
        kernel = kind()
        assert kernel.kernel == Gaussian()
        resolved = kernel.resolved(nodes)
        assert resolved.kernel == Gaussian().resolved(nodes)
        assert resolved.kernel.length_scale > 0
        with pytest.raises(ValueError, match=r"length_scale is None.*call kernel\.resolved"):
            kernel.bind(nodes, nodes)


def test_settings_are_values():
    kernel = Gradient(Matern(3.5, 1.0), np.array([[2, 1], [1, 2]]))
    assert kernel.mobility == ((2.0, 1.0), (1.0, 2.0))
    assert kernel == Gradient(Matern(3.5, 1), [[2.0, 1.0], [1.0, 2.0]])
    assert clone(kernel) is kernel
    assert kernel.replace(kernel__nu=2.5, mobility=None) == Gradient(Matern(2.5, 1.0))
    pairs = Hamiltonian(Gaussian(1.0), np.array([[0, 2], [3, 1]]))
    assert pairs.pairs == ((0, 2), (3, 1))
    assert hash(pairs) == hash(Hamiltonian(Gaussian(1), [[0, 2], [3, 1]]))
    assert pairs != Hamiltonian(Gaussian(1.0))
    matrix = np.eye(2)
    kept = Gradient(Gaussian(1.0), matrix)
    matrix[0, 0] = 5.0
    assert kept.mobility == ((1.0, 0.0), (0.0, 1.0))


@SOME
def test_codec_and_pickle(kernel, d):
    assert decode(encode(kernel)) == kernel
    assert pickle.loads(pickle.dumps(kernel)) == kernel


ROUGH = [Laplace(), Laplace(1.0), Matern(0.5), Matern(1.5, 2.0)]
OTHERS = [
    Linear(),
    Constant(),
    Polynomial(2),
    Gaussian() + Gaussian(),
    2.0 * Gaussian(),
    Gaussian() * Matern(2.5),
    Separable(Gaussian()),
    CurlFree(),
    Gaussian,
    None,
    1.0,
    "Gaussian",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", ROUGH, ids=repr)
def test_kernels_with_a_kink_are_refused(kind, kernel):
    got = type(kernel).__name__
    message = rf"{kind.__name__} differentiates its kernel twice.*{got}\(.*kink at r = 0; use Mat"
    with pytest.raises(ValueError, match=message):
        kind(kernel)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", OTHERS, ids=repr)
def test_kernels_that_are_not_radial_are_refused(kind, kernel):
    message = rf"{kind.__name__} needs a radial scalar kernel such as Gaussian.*got .*sums are"
    with pytest.raises(TypeError, match=message):
        kind(kernel)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1.0, 0.0]], r"mobility must be a finite square \(d, d\) array, got shape \(1, 2\)"),
        ([[math.nan]], "mobility must be a finite"),
        ([[0.0]], "mobility is zero: the kernel would hold no field but f = 0"),
        ([[1.0, 0.5], [0.2, 1.0]], r"mobility must be symmetric; pass \(A \+ A\.T\) / 2"),
        ([[1.0, 2.0], [2.0, 1.0]], "mobility must be positive semi-definite; its lowest .* is -1"),
    ],
)
def test_wrong_mobilities_are_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        Gradient(Gaussian(), matrix)


WRONG_NUMBERS = {
    "line": (DivergenceFree(Gaussian(1.0)), 1, "at least 2 coordinates, got 1.*take another"),
    "odd": (Hamiltonian(Gaussian(1.0)), 3, "even number of coordinates, got 3: give the states"),
    "odd-pairs": (Hamiltonian(Gaussian(1.0), ((0, 1),)), 3, "even number of coordinates, got 3"),
    "pairs": (Hamiltonian(Gaussian(1.0), ((0, 1),)), 4, "pairs name 2 .* have 4 .* give 2 pairs"),
    "mobility": (
        Gradient(Gaussian(1.0), mobility(3)),
        2,
        r"mobility is 3 x 3 .* 2 features; give a \(2, 2\)",
    ),
}


@pytest.mark.parametrize(("kernel", "d", "message"), WRONG_NUMBERS.values(), ids=WRONG_NUMBERS)
def test_numbers_of_coordinates_that_do_not_suit(kernel, d, message):
    (nodes,) = points(d, 6)
    for attempt in (
        lambda: kernel.resolved(nodes),
        lambda: kernel.bind(nodes, nodes),
        lambda: kernel.blocks(nodes),
        lambda: vf.MOCK(kernel, search=False).fit(nodes, 0.1),
    ):
        with pytest.raises(ValueError, match=message):
            attempt()


@pytest.mark.parametrize("kind", KINDS)
def test_length_scales_that_do_not_suit(kind):
    (nodes,) = points(4, 6)
    kernel = kind(Gaussian((1.0, 2.0)))
    message = "length_scale has 2 entries but the states have 4 features"
    for attempt in (
        lambda: kernel.bind(nodes, nodes),
        lambda: kernel.blocks(nodes)(nodes),
        lambda: vf.MOCK(kernel, search=False).fit(nodes, 0.1),
    ):
        with pytest.raises(ValueError, match=message):
            attempt()


# PyTorch


@pytest.mark.parametrize(
    "kernel",
    [
        CurlFree(Matern(2.5, 0.8)),
        DivergenceFree(Gaussian(OWN[:4])),
        DivergenceFree(RationalQuadratic(0.7, 1.2)),
        Gradient(Matern(3.5, OWN[:4]), mobility(4)),
        Hamiltonian(Matern(5.5, 0.5), mixed_pairs(4)),
    ],
    ids=repr,
)
def test_torch_agrees_with_numpy(kernel):
    torch = pytest.importorskip("torch")
    x, nodes, c, left = points(4, 5, 6, 6, 5)
    x[0] = nodes[1]
    tx, tnodes, tc, tleft = (torch.asarray(a) for a in (x, nodes, c, left))
    assert kernel.size(tnodes) == pytest.approx(kernel.size(nodes), rel=1e-14)
    assert kernel.resolved(tnodes) == kernel
    rows, columns = slice(0, 4), slice(1, 6)
    blocks, others = kernel.blocks(nodes)(x), kernel.blocks(tnodes)(tx)
    field, other = kernel.bind(nodes, c), kernel.bind(tnodes, tc)
    pairs = [
        (others.tile(rows, columns), blocks.tile(rows, columns)),
        (others.product(rows, columns, tc[columns]), blocks.product(rows, columns, c[columns])),
        *zip(
            others.products(rows, columns, tc[columns], tleft[rows]),
            blocks.products(rows, columns, c[columns], left[rows]),
            strict=True,
        ),
        (other(tx), field(x)),
        (other.jacobian(tx), field.jacobian(x)),
        *zip(
            kernel.standardisation(tx[0], tx[1] ** 2),
            kernel.standardisation(x[0], x[1] ** 2),
            strict=True,
        ),
    ]
    if kernel.energy:
        pairs.append((other.energy(tx), field.energy(x)))
    for got, expected in pairs:
        assert isinstance(got, torch.Tensor)
        close(got.numpy(), expected, 1e-12)
