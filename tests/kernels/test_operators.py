"""Sums and multiples of operator-valued kernels, what is recovered with them, and how they travel.

The kernels from physics stand for all of them.
"""

from __future__ import annotations

import dataclasses
import pickle
import warnings

import numpy as np
import pytest
from physics_cases import close, mobility, points, slopes, symplectic, whole
from sklearn.base import clone

import vectorfield as vf
from vectorfield.kernels import (
    CurlFree,
    DivergenceFree,
    Gaussian,
    Gradient,
    GradientFeatures,
    Hamiltonian,
    HamiltonianFeatures,
    Linear,
    Matern,
    Monomials,
    OperatorScaled,
    OperatorSum,
    RandomFourier,
    RationalQuadratic,
    Separable,
)
from vectorfield.kernels.codec import decode, encode
from vectorfield.kernels.operators import Blocks
from vectorfield.linalg import Circulant, ConjugateGradient, Dense, regress
from vectorfield.occupation import Lagrange, Trapezoid, White

HELMHOLTZ = DivergenceFree(Gaussian(1.2)) + 0.3 * CurlFree(Matern(3.5, 0.9))
KERNELS = {
    "curl-free": (CurlFree(Matern(2.5, (0.8, 1.1, 0.9))), 3),
    "divergence-free": (DivergenceFree(RationalQuadratic(2.0, 1.1)), 3),
    "gradient": (Gradient(Gaussian(1.3), mobility(3)), 3),
    "hamiltonian": (Hamiltonian(Matern(5.5, 0.5), ((3, 1), (0, 2))), 4),
    "scaled": (0.2 * (3.0 * CurlFree(Gaussian(1.2))), 2),
    "helmholtz": (HELMHOLTZ, 2),
    "scaled-sum": (2.0 * (HELMHOLTZ + Separable(Linear(), [[2.0, 0.5], [0.5, 1.0]])), 2),
    "damped": (Hamiltonian(Gaussian(1.1)) + Gradient(Gaussian(1.4), np.diag([0.0, 1.0])), 2),
}
EACH = pytest.mark.parametrize(("kernel", "d"), KERNELS.values(), ids=KERNELS)


def walks(d: int, units=(0.5, 30.0, 4.0, 0.1)) -> vf.Trajectories:
    rng = np.random.default_rng(3)
    xs = [np.cumsum(0.3 * rng.normal(size=(n, d)), axis=0) + 1.0 for n in (9, 2, 14)]
    return vf.Trajectories.from_arrays([x * np.array(units[:d]) for x in xs], 0.1)


# The algebra


class Plain(Blocks):
    """Blocks that know their tiles and nothing else."""

    def __init__(self, tiles: np.ndarray) -> None:
        self._tiles = tiles

    def tile(self, rows: slice, columns: slice) -> np.ndarray:
        return self._tiles[:, :, rows, columns].copy()


def test_products_of_blocks_that_only_have_tiles():
    rng = np.random.default_rng(0)
    tiles = rng.normal(size=(3, 3, 6, 8))
    right, left = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    rows, columns = slice(1, 5), slice(2, 7)
    expected, back = np.zeros((4, 3)), np.zeros((5, 3))
    for i in range(4):
        for j in range(5):
            block = tiles[:, :, rows, columns][:, :, i, j]
            expected[i] += block @ right[j]
            back[j] += block.T @ left[i]
    close(Plain(tiles).product(rows, columns, right), expected, 1e-14)
    got = Plain(tiles).products(rows, columns, right, left)
    close(got[0], expected, 1e-14)
    close(got[1], back, 1e-14)


@EACH
def test_faster_products_are_those_of_the_tiles(kernel, d):
    x, y, right, left = points(d, 7, 9, 9, 7)
    x[2] = y[4]
    blocks, slow = kernel.blocks(y)(x), Plain(whole(kernel, x, y))
    rows, columns = slice(2, 6), slice(1, 9)
    arguments = rows, columns, right[columns]
    close(blocks.tile(rows, columns), slow.tile(rows, columns), 1e-13)
    close(blocks.product(*arguments), slow.product(*arguments), 1e-12)
    got = blocks.products(*arguments, left[rows])
    for one, other in zip(got, slow.products(*arguments, left[rows]), strict=True):
        close(one, other, 1e-12)
    everything = slice(0, 7), slice(0, 9)
    close(kernel.bind(y, right)(x), slow.product(*everything, right), 1e-12)
    gram = whole(kernel, y, y).transpose(2, 0, 3, 1).reshape(9 * d, 9 * d)
    close(gram, gram.T, 1e-13)
    assert np.linalg.eigvalsh((gram + gram.T) / 2)[0] > -1e-12 * np.abs(gram).max()
    assert kernel.size(y) == pytest.approx(np.trace(gram) / (9 * d), rel=1e-12)


@EACH
def test_jacobian_against_differences(kernel, d):
    x, nodes, c = points(d, 5, 9, 9)
    field = kernel.bind(nodes, c)
    close(field.jacobian(x), slopes(field, x), 1e-8)


def test_sums_and_multiples_are_those_of_the_blocks():
    x, y, c = points(2, 5, 6, 6)
    one, other = DivergenceFree(Gaussian(1.0)), CurlFree(Gaussian((0.5, 1.5)))
    sums = whole(one, x, y) + 0.3 * whole(other, x, y)
    close(whole(one + 0.3 * other, x, y), sums, 1e-15)
    close(whole(2 * (one + other * 0.3), x, y), 2.0 * sums, 1e-15)
    expected = one.bind(y, c)(x) + 0.3 * other.bind(y, c)(x)
    close((one + 0.3 * other).bind(y, c)(x), expected, 1e-14)
    scaled = 0.3 * other
    close(scaled.bind(y, c).energy(x), 0.3 * other.bind(y, c).energy(x), 1e-14)
    assert scaled.energy == "potential"
    assert scaled.energy_unit(np.array([3.0, 3.0])) == pytest.approx(9.0)
    assert (one + other).energy is None
    with pytest.raises(TypeError, match="OperatorSum have no potential or Hamiltonian"):
        (one + other).energy_unit(np.ones(2))


def test_terms_of_nested_sums():
    one, two, three = CurlFree(Gaussian(1.0)), DivergenceFree(Gaussian(1.0)), Separable(Linear())
    assert one.terms() == (one,)
    assert (2.0 * one).terms() == (2.0 * one,)
    assert (one + (two + three)).terms() == ((one + two) + three).terms() == (one, two, three)
    nested = 0.5 * (one + 2.0 * (two + three))
    expected = (0.5 * one, 0.5 * (2.0 * two), 0.5 * (2.0 * three))
    assert nested.terms() == expected
    x, y = points(2, 4, 5)
    close(sum(whole(term, x, y) for term in nested.terms()), whole(nested, x, y), 1e-14)


def test_open_length_scales_of_all_terms_come_from_the_nodes():
    (nodes,) = points(2, 20)
    kernel = (2.0 * (CurlFree() + DivergenceFree(Matern(2.5)))).resolved(nodes)
    length = Gaussian().resolved(nodes).length_scale
    expected = CurlFree(Gaussian(length)) + DivergenceFree(Matern(2.5, length))
    assert kernel == 2.0 * expected


WRONG = {
    "left": (lambda: OperatorSum(Gaussian(), CurlFree()), TypeError, "left must be an operator-"),
    "right": (lambda: OperatorSum(CurlFree(), None), TypeError, "right must be .* got None; wrap"),
    "scalar": (
        lambda: OperatorScaled(Gaussian(), 2.0),
        TypeError,
        r"kernel must be an operator-valued kernel such as DivergenceFree\(\), got Gaussian.*wrap",
    ),
    "features": (lambda: OperatorScaled(Monomials(2), 1.0), TypeError, "got Monomials"),
    "add": (lambda: CurlFree() + Gaussian(), TypeError, "unsupported operand"),
    "add-features": (lambda: CurlFree() + Monomials(2), TypeError, "unsupported operand"),
    "add-number": (lambda: CurlFree() + 1.0, TypeError, "unsupported operand"),
    "times": (lambda: CurlFree() * CurlFree(), TypeError, "unsupported operand"),
    "negative": (lambda: -1.0 * CurlFree(), ValueError, "factor must be .* > 0, got -1.0"),
    "zero": (lambda: 0 * CurlFree(), ValueError, "factor must be .* > 0, got 0"),
    "infinite": (lambda: CurlFree() * np.inf, ValueError, "factor must be a finite number"),
    "bool": (lambda: CurlFree() * True, TypeError, "factor must be a number, got True"),
    "string": (lambda: OperatorScaled(CurlFree(), "2"), TypeError, "factor must be a number"),
}


@pytest.mark.parametrize(("make", "error", "message"), WRONG.values(), ids=WRONG)
def test_wrong_arguments_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


# Standardisation


def test_standardisations_of_sums_suit_all_terms():
    shift, scale = np.arange(4.0), np.array([1.0, 2.0, 4.0, 8.0])
    uniform = np.full(4, np.sqrt(np.mean(scale**2)))
    free, curl, energy = DivergenceFree(), CurlFree(), Hamiltonian()
    for kernel, expected in (
        (free + Separable(Linear()), scale),
        (free + 0.1 * curl, uniform),
        (2.0 * (curl + free), uniform),
        (energy + curl, uniform),
        (curl + energy, uniform),
        (free + energy, energy.standardisation(shift, scale)[1]),
    ):
        got = kernel.standardisation(shift, scale)
        np.testing.assert_array_equal(got[0], shift)
        np.testing.assert_allclose(got[1], expected, rtol=1e-14)
    both = energy + Hamiltonian(pairs=((0, 1), (2, 3)))
    got = both.standardisation(shift, scale)[1]
    assert got[0] * got[2] == pytest.approx(got[1] * got[3])
    assert got[0] * got[1] == pytest.approx(got[2] * got[3])


def test_standardisations_that_conflict_are_refused():
    kernel = Hamiltonian(Gaussian(1.0)) + Hamiltonian(Gaussian(1.0), ((0, 1), (2, 3), (4, 5)))
    data = walks(6, (0.5, 30.0, 4.0, 0.1, 1.0, 7.0))
    with pytest.raises(ValueError, match=r"different standardisations; scale .* standardize=False"):
        vf.MOCK(kernel, 1e-3).fit(data)
    field = vf.MOCK(kernel, 1e-3, standardize=False).fit(data).field_
    for part, pairs in zip(field.parts, (None, ((0, 1), (2, 3), (4, 5))), strict=True):
        hessian = symplectic(pairs, 6).T @ part.jacobian(data.states[:20])
        close(hessian, hessian.transpose(0, 2, 1), 1e-12)


# Fits


@EACH
def test_fields_that_the_space_holds_are_recovered(kernel, d):
    """y = L f with f = sum_s (L K)_s a_s: the error goes to zero with the ridge."""
    data = walks(d, (1.0, 1.0, 1.0, 1.0))
    occupations = Trapezoid()(data)
    a = np.random.default_rng(1).normal(size=(len(occupations), d))
    truth = kernel.bind(data.states, occupations.weights.T @ a)
    exact = dataclasses.replace(occupations, targets=occupations.weights @ truth(data.states))
    covariance = White().covariance(exact)
    x = data.states.mean(axis=0) + data.states.std(axis=0) * points(d, 50)[0]
    expected = truth(x)
    errors = []
    for ridge in (1e-3, 1e-6, 1e-9, 1e-13):
        fit = regress(kernel, exact, ridge=ridge, covariance=covariance)
        errors.append(np.abs(fit.expansion(x) - expected).max() / np.abs(expected).max())
    assert errors[0] > 3.0 * errors[1] > 9.0 * errors[2] > 27.0 * errors[3]
    assert errors[3] < 1e-5
    close(fit.expansion.jacobian(x), truth.jacobian(x), 1e-4)


@pytest.mark.parametrize(
    ("kernel", "d"),
    [
        (DivergenceFree(Gaussian(1.5)), 3),
        (CurlFree(Gaussian(1.5)), 2),
        (Gradient(Gaussian(1.5), np.diag([1.0, 3.0])), 2),
        (Hamiltonian(Gaussian(1.5)), 2),
    ],
    ids=repr,
)
def test_a_few_kernel_sections_are_learned_from_clean_trajectories(kernel, d):
    nodes, c, starts = points(d, 5, 5, 25)
    truth = kernel.bind(nodes, c / 2)
    t = np.linspace(0.0, 0.6, 9)
    xs = vf.simulate(truth, starts, t, rtol=1e-12, atol=1e-12).x
    errors = []
    for ridge in (1e-4, 1e-7, 1e-11):
        model = vf.MOCK(kernel, ridge, rule=Lagrange(8), standardize=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", vf.SolveWarning)
            model.fit(list(xs), t)
        x = xs[:, 4]
        errors.append(np.abs(model.predict(x) - truth(x)).max() / np.abs(truth(x)).max())
    assert errors[0] > 3.0 * errors[1] > 9.0 * errors[2]
    assert errors[2] < 1e-4


def test_parts_of_a_helmholtz_sum_are_found_and_keep_their_laws():
    """A rotation and a sink in one field, told apart by the kernels alone."""
    kernel = DivergenceFree(Gaussian(1.5)) + 0.3 * CurlFree(Gaussian(1.5))
    nodes, c, starts = points(2, 5, 5, 40)
    truth = [term.bind(nodes, c / 2) for term in kernel.terms()]
    t = np.linspace(0.0, 0.6, 9)
    xs = vf.simulate(kernel.bind(nodes, c / 2), starts, t, rtol=1e-12, atol=1e-12).x
    model = vf.MOCK(kernel, 1e-10, rule=Lagrange(8), standardize=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vf.SolveWarning)
        field = model.fit(list(xs), t).field_
    x = xs[:, 4]
    free, curl = field.parts
    close(free(x) + curl(x), field(x), 1e-12)
    for part, expected in zip(field.parts, truth, strict=True):
        close(part(x), expected(x), 1e-2)
    size = np.linalg.norm(field.jacobian(x), axis=(1, 2)).max()
    assert np.abs(np.trace(free.jacobian(x), axis1=1, axis2=2)).max() < 1e-11 * size
    np.testing.assert_array_equal(curl.jacobian(x), curl.jacobian(x).transpose(0, 2, 1))
    close(-slopes(curl.potential, x), curl(x), 1e-6)
    for other in (field, free):
        with pytest.raises(TypeError, match=r"has no potential; see field\.parts"):
            other.potential(x)


@EACH
def test_parts_in_the_units_of_the_data(kernel, d):
    data = walks(d)
    field = vf.MOCK(kernel, 1e-4).fit(data).field_
    x = data.states[::3]
    assert [part.kernel for part in field.parts] == list(kernel.terms())
    close(sum(part(x) for part in field.parts) / field.scale, field(x) / field.scale, 1e-11)
    close(sum(part.jacobian(x) for part in field.parts), field.jacobian(x), 1e-11)
    for part in field.parts:
        if part.kernel.energy == "potential":
            slope = slopes(part.potential, x, 1e-4 * field.scale)
            inner = part.kernel
            while isinstance(inner, OperatorScaled):
                inner = inner.kernel
            matrix = getattr(inner, "mobility", None) or np.eye(d)
            close(-slope @ np.array(matrix), part(x), 1e-6)


def test_iterations_find_what_the_dense_solver_finds():
    data = walks(2)
    x = data.states[::2]
    dense, iterative = (
        vf.MOCK(HELMHOLTZ, 1e-3, solver=solver).fit(data).predict(x)
        for solver in (Dense(), ConjugateGradient(tolerance=1e-13))
    )
    close(iterative, dense, 1e-8)
    with pytest.raises(TypeError, match="OperatorSum is solved by Dense or ConjugateGradient, not"):
        vf.MOCK(HELMHOLTZ, 1e-3, solver=Circulant()).fit(data)


# Files, pickles, scikit-learn, PyTorch


TRAVEL = KERNELS | {
    "gradient-features": (0.5 * GradientFeatures(Monomials(3)), 3),
    "hamiltonian-features": (
        HamiltonianFeatures(Monomials(2)) + HamiltonianFeatures(RandomFourier(Gaussian(1.5), 20)),
        4,
    ),
}


@pytest.mark.parametrize(("kernel", "d"), TRAVEL.values(), ids=TRAVEL)
def test_models_travel(kernel, d, tmp_path):
    assert decode(encode(kernel)) == kernel
    data = walks(d)
    model = clone(vf.MOCK(kernel, 1e-3)).fit(data)
    model.save(tmp_path / "model.vf")
    x = data.states[::4]
    energies = {"potential": "potential", "hamiltonian": "hamiltonian", None: None}
    name = energies[model.kernel_.energy]
    for again in (
        vf.load(tmp_path / "model.vf"),
        pickle.loads(pickle.dumps(model)).field_,
        pickle.loads(pickle.dumps(model.field_)),
    ):
        assert again.kernel == model.kernel_
        np.testing.assert_array_equal(again(x), model.predict(x))
        np.testing.assert_array_equal(again.jacobian(x), model.field_.jacobian(x))
        for part, own in zip(again.parts, model.field_.parts, strict=True):
            np.testing.assert_array_equal(part(x), own(x))
        if name:
            np.testing.assert_array_equal(getattr(again, name)(x), getattr(model, name)(x))
    vf.load(tmp_path / "model.vf").save(tmp_path / "again.vf")
    assert (tmp_path / "again.vf").read_bytes() == (tmp_path / "model.vf").read_bytes()


BAD_FILES = {
    "length-scale": (CurlFree(Gaussian((1.0, 2.0, 3.0))), "3 entries but the states have 2"),
    "open": (2.0 * DivergenceFree(Gaussian()), "length_scale is None"),
    "term": (CurlFree(Gaussian(1.0)) + CurlFree(Gaussian((1.0,))), "1 entries but the states"),
    "pairs": (Hamiltonian(Gaussian(1.0), ((0, 1), (2, 3))), "pairs name 4 coordinates"),
    "mobility": (Gradient(Gaussian(1.0), np.eye(3)), "mobility is 3 x 3 but the states have 2"),
}


@pytest.mark.parametrize(("kernel", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_files_whose_kernel_does_not_suit_are_refused(kernel, message, tmp_path):
    field = vf.MOCK(CurlFree(Gaussian(1.0)), 1e-3).fit(walks(2)).field_
    expansion = dataclasses.replace(field.expansion, kernel=kernel)
    dataclasses.replace(field, expansion=expansion).save(tmp_path / "bad.vf")
    with pytest.raises(vf.ModelFileError, match=message):
        vf.load(tmp_path / "bad.vf")


def test_nested_settings_as_in_scikit_learn():
    model = vf.MOCK(CurlFree(Matern(2.5, 1.0)), 1e-3)
    changed = clone(model).set_params(kernel__kernel__length_scale=3.0, kernel__kernel__nu=4.5)
    assert changed.kernel == CurlFree(Matern(4.5, 3.0))
    assert model.kernel == CurlFree(Matern(2.5, 1.0))
    nested = clone(vf.MOCK(HELMHOLTZ, search=False))
    nested.set_params(kernel__right__factor=0.7, kernel__right__kernel__kernel__length_scale=2.0)
    assert nested.kernel == HELMHOLTZ.left + 0.7 * CurlFree(Matern(3.5, 2.0))
    assert "kernel__left__kernel__length_scale" in nested.get_params()
    pairs = clone(vf.MOCK(Hamiltonian(), search=False)).set_params(kernel__pairs=[[1, 0]])
    assert pairs.kernel.pairs == ((1, 0),)
    with pytest.raises(ValueError, match="kink at r = 0"):
        model.set_params(kernel__kernel__nu=1.5)


@EACH
def test_torch_agrees_with_numpy(kernel, d):
    torch = pytest.importorskip("torch")
    data = walks(d)
    t = [0.1 * np.arange(len(x)) for x in np.split(data.states, [9, 11])]
    xs = np.split(data.states, [9, 11])
    model = vf.MOCK(kernel, 1e-3).fit(xs, t)
    other = vf.MOCK(kernel, 1e-3).fit([torch.asarray(x.copy()) for x in xs], t)
    x = data.states[::4]
    tx = torch.asarray(x.copy())
    scale = model.field_.scale
    pairs = [
        (other.predict(tx).numpy() / scale, model.predict(x) / scale),
        (other.field_.jacobian(tx).numpy(), model.field_.jacobian(x)),
    ]
    for part, own in zip(other.field_.parts, model.field_.parts, strict=True):
        pairs.append((part(tx).numpy() / scale, own(x) / scale))
        if own.kernel.energy:
            found, expected = (getattr(f, own.kernel.energy) for f in (part, own))
            pairs.append((found(tx).numpy(), expected(x)))
    for got, expected in pairs:
        close(got, expected, 1e-9)
