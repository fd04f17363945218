"""Symmetric fields: the kernel against its sum over explicit matrices, the fields against g."""

from __future__ import annotations

import dataclasses
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import vectorfield as vf
from vectorfield.kernels import (
    Constant,
    CurlFree,
    CyclicShifts,
    DivergenceFree,
    Equivariant,
    Gaussian,
    Group,
    Hamiltonian,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    Reflection,
    Separable,
    SignedPermutations,
)
from vectorfield.kernels.codec import decode, encode
from vectorfield.occupation import Lagrange
from vectorfield.systems import Lorenz63, Lorenz96

CASES = {
    "cyclic-gaussian": (Gaussian(1.3), CyclicShifts(), 4),
    "cyclic-laplace": (Laplace(1.3), CyclicShifts(), 3),
    "cyclic-sum": (Matern(2.5, 0.8) + 0.3 * Linear() * Polynomial(2), CyclicShifts(), 5),
    "cyclic-by-2": (Gaussian((1.0, 2.0, 1.0, 2.0)), CyclicShifts(2), 4),
    "cyclic-one": (Gaussian(1.0), CyclicShifts(), 1),
    "cyclic-matrix": (Separable(Gaussian(1.0), [[2.0, 1.0], [1.0, 2.0]]), CyclicShifts(), 2),
    "cyclic-curl-free": (CurlFree(Gaussian(1.1)), CyclicShifts(), 3),
    "reflection": (Matern(3.5, 0.7), Reflection(), 3),
    "reflection-one": (Gaussian(1.0), Reflection(), 1),
    "lorenz": (Gaussian((1.0, 0.7, 2.0)), SignedPermutations([(-1, -2, 3)]), 3),
    "quarter-divergence-free": (
        DivergenceFree(Gaussian(1.0)),
        SignedPermutations([(-2, 1)]),
        2,
    ),
    "reflection-sum": (
        DivergenceFree(Gaussian(1.0)) + 0.2 * CurlFree(Gaussian(1.0)),
        Reflection(),
        2,
    ),
    "twice": (Equivariant(Gaussian(1.0), CyclicShifts()), Reflection(), 3),
}
EACH = pytest.mark.parametrize(("base", "group", "d"), CASES.values(), ids=CASES)


def matrices(group: Group, d: int) -> np.ndarray:
    elements = group.elements(d)
    return elements.act(np.eye(d)).transpose(0, 2, 1).copy()  # column j is g e_j


def block(kernel, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """K(x, y) of two points, (d, d), column by column from the field of one node."""
    return np.stack([kernel.bind(y[None], e[None])(x[None])[0] for e in np.eye(len(x))], axis=1)


def naive(base, group: Group, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(n, m, d, d) from the definition, (1/|G|) sum_g K(x, g y) g."""
    base = base if hasattr(base, "blocks") else Separable(base)
    members = matrices(group, x.shape[1])
    return np.array(
        [[sum(block(base, p, g @ q) @ g for g in members) / len(members) for q in y] for p in x]
    )


def points(d: int, *counts: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n, d)) for n in counts]


@EACH
def test_blocks_are_the_sum_over_the_group(base, group, d):
    x, y, right, left = points(d, 5, 6, 6, 5)
    expected = naive(base, group, x, y)
    blocks = Equivariant(base, group).blocks(y)(x)
    size = np.abs(expected).max()
    rows, columns = slice(1, 4), slice(2, 6)
    tile = blocks.tile(rows, columns)
    assert tile.flags.writeable
    cut = expected[rows, columns]
    np.testing.assert_allclose(tile, cut.transpose(2, 3, 0, 1), rtol=0, atol=1e-12 * size)
    forward, back = blocks.products(rows, columns, right[columns], left[rows])
    np.testing.assert_allclose(
        forward, np.einsum("ijab,jb->ia", cut, right[columns]), rtol=0, atol=1e-11 * size
    )
    np.testing.assert_allclose(
        back, np.einsum("ijab,ia->jb", cut, left[rows]), rtol=0, atol=1e-11 * size
    )
    np.testing.assert_allclose(
        blocks.product(rows, columns, right[columns]), forward, rtol=0, atol=1e-12 * size
    )


@EACH
def test_fields_and_size_agree_with_the_blocks(base, group, d):
    x, nodes, c = points(d, 5, 40, 40)
    kernel = Equivariant(base, group)
    whole = kernel.blocks(nodes)(x).tile(slice(0, 5), slice(0, 40))
    expected = np.einsum("abij,jb->ia", whole, c)
    np.testing.assert_allclose(
        kernel.bind(nodes, c)(x), expected, rtol=0, atol=1e-12 * np.abs(whole).sum()
    )
    own = kernel.blocks(nodes)(nodes).tile(slice(0, 40), slice(0, 40))
    mean = np.einsum("aaii->", own) / (40 * d)
    assert kernel.size(nodes) == pytest.approx(mean, rel=1e-11)


@EACH
def test_symmetric_and_positive_semidefinite(base, group, d):
    (x,) = points(d, 9)
    tile = Equivariant(base, group).blocks(x)(x).tile(slice(0, 9), slice(0, 9))
    gram = tile.transpose(2, 0, 3, 1).reshape(9 * d, 9 * d)
    size = np.abs(gram).max()
    np.testing.assert_allclose(gram, gram.T, rtol=0, atol=1e-12 * size)
    assert np.linalg.eigvalsh((gram + gram.T) / 2)[0] > -1e-11 * size


@EACH
def test_fields_and_jacobians_commute_with_the_group(base, group, d):
    nodes, c, x = points(d, 12, 12, 1000)
    field = Equivariant(base, group).bind(nodes, c)
    value, jacobian = field(x), field.jacobian(x)
    for g, image in zip(matrices(group, d), group.elements(d).act(x), strict=True):
        np.testing.assert_allclose(
            field(image), value @ g.T, rtol=0, atol=1e-10 * np.abs(value).max()
        )
        np.testing.assert_allclose(
            field.jacobian(image), g @ jacobian @ g.T, rtol=0, atol=1e-10 * np.abs(jacobian).max()
        )


@EACH
def test_jacobian_against_differences(base, group, d):
    nodes, c, x = points(d, 12, 12, 6)
    field = Equivariant(base, group).bind(nodes, c)
    got, h = field.jacobian(x), 1e-5
    for j in range(d):
        e = h * np.eye(d)[j]
        expected = (field(x + e) - field(x - e)) / (2 * h)
        np.testing.assert_allclose(
            got[:, :, j], expected, rtol=0, atol=1e-8 * max(1.0, np.abs(got).max())
        )


def test_wide_tiles_of_a_base_come_in_parts():
    x, y = points(3, 4, 300)
    kernel = Equivariant(CurlFree(Gaussian(1.0)), CyclicShifts())
    blocks = kernel.blocks(y)(x)
    whole = blocks.tile(slice(0, 4), slice(0, 300))
    for j in (0, 84, 85, 170, 299):
        one = blocks.tile(slice(0, 4), slice(j, j + 1))
        np.testing.assert_allclose(whole[..., j : j + 1], one, rtol=0, atol=1e-14)


def test_the_base_field_is_averaged():
    """K_G projects: the mean over the group of what the base's field does is the field of K_G."""
    nodes, c, x = points(3, 8, 8, 20)
    group = SignedPermutations([(2, 3, 1), (-1, 2, 3)])
    plain = Separable(Gaussian(1.0)).bind(nodes, c)
    members = matrices(group, 3)
    expected = np.mean([plain(x @ g.T) @ g for g in members], axis=0)
    np.testing.assert_allclose(
        Equivariant(Gaussian(1.0), group).bind(nodes, c)(x), expected, rtol=0, atol=1e-13
    )


def skewed(d: int) -> vf.Trajectories:
    """Trajectories whose coordinates have means and spreads of their own: far from symmetric."""
    rng = np.random.default_rng(5)
    scale = np.geomspace(0.3, 40.0, d)
    xs = [scale * (3.0 + np.cumsum(0.4 * rng.normal(size=(n, d)), axis=0)) for n in (9, 2, 14)]
    return vf.Trajectories.from_arrays(xs, 0.1)


@pytest.mark.parametrize(
    ("base", "group", "d"),
    [
        (None, CyclicShifts(), 4),
        (None, CyclicShifts(2), 6),
        (None, SignedPermutations([(-1, -2, 3)]), 3),
        (None, SignedPermutations([(2, 3, 1), (-1, 2, 3)]), 3),
        (DivergenceFree(Gaussian(1.0)), Reflection(), 2),
        (Hamiltonian(Gaussian(1.0)), SignedPermutations([(2, 1, 4, 3)]), 4),
    ],
    ids=repr,
)
def test_fits_keep_the_symmetry_in_the_units_of_the_data(base, group, d):
    data = skewed(d)
    model = vf.MOCK(Equivariant(base or Gaussian(), group), 1e-6).fit(data)
    shift, scale = model.field_.shift, model.field_.scale
    spread = np.std(data.states, axis=0)
    assert not np.allclose(spread, spread[0])
    x = np.mean(data.states, axis=0) + spread * np.random.default_rng(1).normal(size=(1000, d))
    value, jacobian = model.predict(x), model.field_.jacobian(x)
    assert np.abs(value).max() > 0.01 * np.abs(np.diff(data.states, axis=0)).max()
    images = group.elements(d).act(x)
    for g, image in zip(matrices(group, d), images, strict=True):
        np.testing.assert_allclose(g @ shift, shift, rtol=0, atol=1e-12 * spread.max())
        np.testing.assert_allclose(np.abs(g) @ scale, scale, rtol=1e-14)
        np.testing.assert_allclose(
            model.predict(image), value @ g.T, rtol=0, atol=1e-10 * np.abs(value).max()
        )
        np.testing.assert_allclose(
            model.field_.jacobian(image),
            g @ jacobian @ g.T,
            rtol=0,
            atol=1e-10 * np.abs(jacobian).max(),
        )


def test_standardisation_is_a_mean_and_a_root_mean_square():
    kernel = Equivariant(Gaussian(), CyclicShifts(2))
    shift, scale = kernel.standardisation(np.array([1.0, 2.0, 3.0, 8.0]), np.array([1.0, 1, 7, 1]))
    np.testing.assert_allclose(shift, [2.0, 5.0, 2.0, 5.0])
    np.testing.assert_allclose(scale, [5.0, 1.0, 5.0, 1.0])
    odd = Equivariant(Gaussian(), Reflection())
    shift, scale = odd.standardisation(np.array([1.0, -2.0]), np.array([3.0, 4.0]))
    np.testing.assert_array_equal(shift, [0.0, 0.0])
    np.testing.assert_allclose(scale, [3.0, 4.0])


def test_a_potential_and_a_hamiltonian_stay():
    data = skewed(2)
    swap = SignedPermutations([(2, 1)])
    flow = vf.MOCK(Equivariant(CurlFree(Gaussian()), swap), 1e-6).fit(data)
    x = data.states[:6]
    h = 1e-5 * flow.field_.scale[0]
    slope = [(flow.potential(x + h * e) - flow.potential(x - h * e)) / (2 * h) for e in np.eye(2)]
    size = np.abs(flow.predict(x)).max()
    np.testing.assert_allclose(flow.predict(x), -np.stack(slope, axis=1), rtol=0, atol=1e-6 * size)
    np.testing.assert_allclose(flow.potential(x[:, ::-1]), flow.potential(x), rtol=1e-9)
    spin = vf.MOCK(Equivariant(Hamiltonian(Gaussian()), Reflection()), 1e-6).fit(data)
    energy = spin.hamiltonian(x)
    np.testing.assert_allclose(
        spin.hamiltonian(-x), energy, rtol=0, atol=1e-10 * np.abs(energy).max()
    )
    plain = Equivariant(Gaussian(), swap)
    assert plain.energy is None
    with pytest.raises(TypeError, match="no potential"):
        vf.MOCK(plain, search=False).fit(data).potential(x)


def test_terms_are_the_parts_of_a_field():
    data = skewed(2)
    base = DivergenceFree(Gaussian(1.0)) + 0.1 * CurlFree(Gaussian(1.0))
    kernel = Equivariant(base, Reflection())
    assert kernel.terms() == tuple(Equivariant(term, Reflection()) for term in base.terms())
    assert Equivariant(Gaussian(1.0), Reflection()).terms() == (
        Equivariant(Gaussian(1.0), Reflection()),
    )
    field = vf.MOCK(kernel, 1e-6).fit(data).field_
    x = data.states[:5]
    total = sum(part(x) for part in field.parts)
    np.testing.assert_allclose(total, field(x), rtol=0, atol=1e-10 * np.abs(field(x)).max())


def ring_data(d: int, samples: int, step: float) -> tuple[np.ndarray, np.ndarray]:
    ring = Lorenz96(d=d)
    start = np.random.default_rng(0).normal(size=d) * 3.0
    on = vf.simulate(ring, start, np.array([0.0, 2.0]), rtol=1e-10, atol=1e-10).x[-1]
    t = step * np.arange(samples)
    return vf.simulate(ring, on, t, rtol=1e-12, atol=1e-12).x, t


def test_lorenz96_from_one_short_trajectory():
    """28 monomials of degree 2 in 6 coordinates, and 30 increments: enough with the symmetry."""
    d = 6
    x, t = ring_data(d, 31, 0.02)
    test = 4.0 * np.random.default_rng(1).normal(size=(1000, d))
    truth = Lorenz96(d=d)(test)
    errors = {}
    for name, kernel in (
        ("symmetric", Equivariant(Polynomial(2), CyclicShifts())),
        ("plain", Polynomial(2)),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", vf.SolveWarning)
            model = vf.MOCK(kernel, 1e-13, rule=Lagrange(samples=8)).fit(x, t)
        errors[name] = np.abs(model.predict(test) - truth).max() / np.abs(truth).max()
    assert errors["symmetric"] < 2e-5
    assert errors["plain"] > 0.1


def test_lorenz63_is_learned_on_both_wings_from_one():
    lorenz = Lorenz63()
    t = 0.01 * np.arange(40)
    x = vf.simulate(lorenz, np.array([5.0, 8.0, 20.0]), t, rtol=1e-10, atol=1e-10).x
    assert (x[:, 0] > 0).all()
    other = x * np.array([-1.0, -1.0, 1.0])
    group = SignedPermutations([(-1, -2, 3)])
    model = vf.MOCK(Equivariant(Gaussian(), group), 1e-12, rule=Lagrange(samples=4)).fit(x, t)
    for states in (x, other):
        truth = lorenz(states)
        assert np.abs(model.predict(states) - truth).max() < 1e-2 * np.abs(truth).max()


def test_one_length_scale_comes_from_the_nodes():
    (nodes,) = points(3, 20)
    kernel = Equivariant(Gaussian(), CyclicShifts()).resolved(nodes)
    assert kernel.kernel == Separable(Gaussian()).resolved(nodes)
    assert kernel.kernel.kernel.length_scale > 0
    assert kernel.scalar == kernel.kernel.kernel


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(
    ("base", "group"),
    [
        (lambda u: Gaussian((1.0 * u, 2.0 * u, 1.0 * u)), CyclicShifts()),
        (lambda u: Constant() + Matern(2.5, (1.0 * u, 1.01 * u, 1.0 * u)), CyclicShifts()),
        (lambda u: Separable(Gaussian(u), np.diag([1.0, 2.0, 1.0])), CyclicShifts()),
        (
            lambda u: Separable(Gaussian(u), [[2.0, 1.0, 0], [1.0, 2.0, 0], [0, 0, 1.0]]),
            SignedPermutations([(-1, 2, 3)]),
        ),
    ],
)
def test_a_base_that_is_not_invariant_is_refused(base, group, unit):
    (nodes,) = points(3, 5)
    with pytest.raises(
        ValueError,
        match=r"kernel must be invariant under the group .* got .* which is not; give it one leng",
    ):
        Equivariant(base(unit), group).resolved(nodes)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_invariant_bases_are_taken(make_kernel, unit):
    (nodes,) = points(3, 5)
    # reflections keep every kernel of x - y or x . y, the lengths of coordinates their own
    Equivariant(make_kernel(3), Reflection()).resolved(nodes)
    for k in (Gaussian(unit), Laplace(unit), Polynomial(5, 0.0, unit), Matern(1.5, (unit,) * 3)):
        taken = Equivariant(k, SignedPermutations([(2, 3, 1), (-1, 2, 3)])).resolved(nodes)
        assert taken == Equivariant(k, SignedPermutations([(2, 3, 1), (-1, 2, 3)]))


def test_refused_when_a_model_is_fitted():
    with pytest.raises(ValueError, match="kernel must be invariant under"):
        vf.MOCK(Equivariant(Gaussian((1.0, 2.0)), CyclicShifts()), search=False).fit(skewed(2))
    with pytest.raises(ValueError, match="act on 3 coordinates but the states have 2 features"):
        vf.MOCK(Equivariant(Gaussian(), SignedPermutations([(2, 3, 1)])), search=False).fit(
            skewed(2)
        )


@pytest.mark.parametrize("kernel", [None, 1.0, "Gaussian", CyclicShifts()])
def test_the_base_must_be_a_kernel(kernel):
    with pytest.raises(TypeError, match="kernel must be a scalar kernel or an operator-valued one"):
        Equivariant(kernel, CyclicShifts())


@pytest.mark.parametrize("group", [None, 1.0, "cyclic", Gaussian(1.0), CyclicShifts])
def test_the_group_must_be_a_group(group):
    with pytest.raises(TypeError, match=r"group must be a group such as CyclicShifts\(\), got"):
        Equivariant(Gaussian(), group)


def test_settings_are_values():
    kernel = Equivariant(Gaussian(1.0), CyclicShifts())
    assert kernel == Equivariant(Separable(Gaussian(1.0)), CyclicShifts())
    assert hash(kernel) == hash(Equivariant(Gaussian(1), CyclicShifts(1)))
    assert clone(kernel) is kernel
    changed = kernel.replace(kernel__kernel__length_scale=3.0, group__step=2)
    assert changed == Equivariant(Gaussian(3.0), CyclicShifts(2))
    assert "kernel__kernel__length_scale" in kernel.get_params()


@EACH
def test_codec_and_pickle(base, group, d):
    kernel = Equivariant(base, group)
    assert decode(encode(kernel)) == kernel
    assert pickle.loads(pickle.dumps(kernel)) == kernel


@pytest.mark.parametrize(
    ("group", "d"),
    [(CyclicShifts(), 3), (SignedPermutations([(-1, -2, 3)]), 3), (Reflection(), 1)],
    ids=repr,
)
def test_models_travel(group, d, tmp_path):
    data = skewed(d)
    model = clone(vf.MOCK(Equivariant(Gaussian(), group), 1e-6)).fit(data)
    model.save(tmp_path / "ring.vf")
    field = vf.load(tmp_path / "ring.vf")
    x = data.states[:4]
    np.testing.assert_array_equal(field(x), model.predict(x))
    assert field.kernel == model.kernel_
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    changed = clone(model).set_params(kernel__kernel__kernel__length_scale=2.0)
    assert changed.kernel.kernel.kernel.length_scale == 2.0


def test_files_whose_group_does_not_suit_are_refused(tmp_path):
    field = vf.MOCK(Equivariant(Gaussian(), CyclicShifts(2)), 1e-6).fit(skewed(4)).field_
    kernel = field.kernel.replace(group=SignedPermutations([(2, 1, 3)]))
    dataclasses.replace(field, expansion=dataclasses.replace(field.expansion, kernel=kernel)).save(
        tmp_path / "bad.vf"
    )
    with pytest.raises(vf.ModelFileError, match="act on 3 coordinates but the states have 4"):
        vf.load(tmp_path / "bad.vf")


@pytest.mark.parametrize(
    "name", ["cyclic-sum", "cyclic-matrix", "cyclic-curl-free", "lorenz", "reflection-sum"]
)
def test_torch_agrees_with_numpy(name):
    torch = pytest.importorskip("torch")
    base, group, d = CASES[name]
    x, nodes, c, left = points(d, 5, 6, 6, 5)
    kernel = Equivariant(base, group)
    tx, tnodes, tc, tleft = (torch.asarray(a) for a in (x, nodes, c, left))
    assert kernel.size(tnodes) == pytest.approx(kernel.size(nodes), rel=1e-12)
    assert kernel.resolved(tnodes) == kernel
    rows, columns = slice(0, 5), slice(1, 6)
    blocks, others = kernel.blocks(nodes)(x), kernel.blocks(tnodes)(tx)
    size = np.abs(blocks.tile(rows, columns)).max()
    pairs = [
        (others.tile(rows, columns), blocks.tile(rows, columns)),
        *zip(
            others.products(rows, columns, tc[columns], tleft),
            blocks.products(rows, columns, c[columns], left),
            strict=True,
        ),
        (kernel.bind(tnodes, tc)(tx), kernel.bind(nodes, c)(x)),
        (kernel.bind(tnodes, tc).jacobian(tx), kernel.bind(nodes, c).jacobian(x)),
        *zip(
            kernel.standardisation(tx[0], tx[1] ** 2),
            kernel.standardisation(x[0], x[1] ** 2),
            strict=True,
        ),
    ]
    for got, expected in pairs:
        assert isinstance(got, torch.Tensor)
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-9, atol=1e-10 * size)
