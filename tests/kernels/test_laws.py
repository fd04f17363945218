"""Laws in the units of the data: pairs, scales and units, and fields fitted to trajectories."""

from __future__ import annotations

import re
import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from physics_cases import close, mobility, slopes, symplectic

import vectorfield as vf
from vectorfield.kernels import (
    CurlFree,
    CyclicShifts,
    DivergenceFree,
    Equivariant,
    Gaussian,
    Gradient,
    GradientFeatures,
    Hamiltonian,
    HamiltonianFeatures,
    Matern,
    Monomials,
    Nystrom,
    RandomFourier,
    RationalQuadratic,
    Reflection,
    SignedPermutations,
)
from vectorfield.kernels.laws import (
    check_pairs,
    paired_scale,
    paired_unit,
    resolve_pairs,
    symplectic_matrix,
    uniform_scale,
    uniform_unit,
)
from vectorfield.occupation import Lagrange

# Pairs


def test_pairs_by_default_are_the_halves():
    assert resolve_pairs(None, 2) == ((0, 1),)
    assert resolve_pairs(None, 6) == ((0, 3), (1, 4), (2, 5))
    assert resolve_pairs(((3, 0), (1, 2)), 4) == ((3, 0), (1, 2))
    assert check_pairs(None) is None
    assert check_pairs([[1, 0]]) == ((1, 0),)
    assert check_pairs(np.array([[0, 2], [3, 1]])) == ((0, 2), (3, 1))
    assert check_pairs(iter([(0, 1)])) == ((0, 1),)


@given(st.integers(1, 4).flatmap(lambda n: st.permutations(range(2 * n))))
def test_the_symplectic_matrix(order):
    d = len(order)
    pairs = check_pairs(zip(order[::2], order[1::2], strict=True))
    j = symplectic_matrix(pairs, d)
    np.testing.assert_array_equal(j, symplectic(pairs, d))
    np.testing.assert_array_equal(j @ j, -np.eye(d))
    np.testing.assert_array_equal(j.T, -j)
    slope = np.arange(1.0, d + 1)  # grad H
    for place, p in pairs:
        assert (j @ slope)[place] == slope[p]
        assert (j @ slope)[p] == -slope[place]


WRONG_PAIRS = [
    (5, TypeError, "pairs must be pairs of coordinates such as ((0, 1),), got 5"),
    ("01", TypeError, "pairs must be pairs of coordinates such as ((0, 1),), got '01'"),
    ((0, 1), ValueError, "each of pairs must be a (position, momentum), got 0"),
    (((0, 1, 2),), ValueError, "each of pairs must be a (position, momentum), got (0, 1, 2)"),
    (((0, 0),), ValueError, "pairs must hold every coordinate 0 ... d - 1 once, got ((0, 0),)"),
    (((0, 2),), ValueError, "pairs must hold every coordinate 0 ... d - 1 once, got ((0, 2),)"),
    (((0, 1), (1, 2)), ValueError, "pairs must hold every coordinate 0 ... d - 1 once, got ((0, "),
    (((0, -1),), ValueError, "a coordinate in pairs must be at least 0, got -1"),
    (((0.0, 1.0),), TypeError, "a coordinate in pairs must be a whole number, got 0.0"),
    (((True, False),), TypeError, "a coordinate in pairs must be a whole number, got True"),
]


@pytest.mark.parametrize(("pairs", "error", "message"), WRONG_PAIRS)
def test_wrong_pairs_are_refused(pairs, error, message):
    for attempt in (
        lambda: check_pairs(pairs),
        lambda: Hamiltonian(Gaussian(), pairs),
        lambda: HamiltonianFeatures(Monomials(2), pairs),
    ):
        with pytest.raises(error, match=re.escape(message)):
            attempt()


def test_pairs_must_fit_the_states():
    with pytest.raises(
        ValueError, match="even number of coordinates, got 5: give the states every"
    ):
        resolve_pairs(None, 5)
    with pytest.raises(
        ValueError, match=r"pairs name 2 coordinates .* have 6 features; give 3 pair"
    ):
        resolve_pairs(((0, 1),), 6)


# Scales and units


def test_the_uniform_scale_is_the_root_mean_square():
    scale = np.array([1.0, 1.0, 5.0, 3.0])
    np.testing.assert_allclose(uniform_scale(scale), [3.0] * 4, rtol=1e-15)
    assert uniform_unit(uniform_scale(scale)) == pytest.approx(9.0)
    np.testing.assert_array_equal(scale, [1.0, 1.0, 5.0, 3.0])


def test_paired_scales_by_hand():
    scale = np.array([1.0, 2.0, 4.0, 8.0])  # products 4 and 16 of (0, 2) and (1, 3): both 8
    expected = scale * np.sqrt([2.0, 0.5, 2.0, 0.5])
    np.testing.assert_allclose(paired_scale(scale, None), expected, rtol=1e-15)
    assert paired_unit(paired_scale(scale, None), None) == pytest.approx(8.0)
    np.testing.assert_array_equal(scale, [1.0, 2.0, 4.0, 8.0])
    one = np.array([3.0, 1e-5])
    np.testing.assert_allclose(paired_scale(one, ((1, 0),)), one, rtol=1e-15)
    assert paired_unit(one, None) == pytest.approx(3e-5)


@settings(max_examples=50)
@given(st.data())
def test_paired_scales(data):
    n = data.draw(st.integers(1, 4))
    order = data.draw(st.permutations(range(2 * n)))
    pairs = check_pairs(zip(order[::2], order[1::2], strict=True))
    scale = np.array(data.draw(st.lists(st.floats(1e-6, 1e6), min_size=2 * n, max_size=2 * n)))
    got = paired_scale(scale, pairs)
    for q, p in pairs:
        assert got[q] * got[p] == pytest.approx(paired_unit(got, pairs), rel=1e-12)
        assert got[q] / got[p] == pytest.approx(scale[q] / scale[p], rel=1e-12)
    assert np.log(got).sum() == pytest.approx(np.log(scale).sum(), abs=1e-10)
    np.testing.assert_allclose(paired_scale(got, pairs), got, rtol=1e-12)


def test_scales_of_torch():
    torch = pytest.importorskip("torch")
    scale = np.array([1.0, 2.0, 4.0, 8.0])
    for function in (uniform_scale, lambda s: paired_scale(s, None)):
        got = function(torch.asarray(scale))
        assert isinstance(got, torch.Tensor)
        np.testing.assert_allclose(got.numpy(), function(scale), rtol=1e-15)


# Fields fitted to trajectories


UNITS = (0.02, 40.0, 3.0, 0.5)
LAWS = {
    "divergence-3": (DivergenceFree(Gaussian(1.5)), 3),
    "divergence-own": (DivergenceFree(Matern(3.5, (0.6, 0.9, 0.5))), 3),
    "divergence-scaled": (0.1 * DivergenceFree(RationalQuadratic(1.0, 1.0)), 2),
    "divergence-sum": (DivergenceFree(Gaussian()) + DivergenceFree(Matern(2.5, 1.0)), 2),
    "curl-3": (CurlFree(Gaussian(1.5)), 3),
    "curl-own": (CurlFree(Matern(4.5, (0.6, 0.9, 0.5, 0.4))), 4),
    "curl-features": (GradientFeatures(RandomFourier(Gaussian(1.5), 40)), 3),
    "curl-monomials": (GradientFeatures(Monomials(3)), 4),
    "mobility": (Gradient(Gaussian(1.5), mobility(3)), 3),
    "plane": (Hamiltonian(Gaussian(1.5)), 2),
    "hamiltonian": (Hamiltonian(Matern(5.5, 0.5)), 4),
    "pairs": (0.3 * Hamiltonian(RationalQuadratic(2.0), ((3, 0), (1, 2))), 4),
    "hamiltonian-own": (Hamiltonian(Gaussian((1.5, 2.0, 1.0, 1.2))), 4),
    "hamiltonian-features": (HamiltonianFeatures(RandomFourier(Gaussian(1.5), 40)), 4),
    "hamiltonian-nystrom": (
        HamiltonianFeatures(Nystrom(Gaussian(2.0), 25), ((0, 1), (3, 2))),
        4,
    ),
}
EACH = pytest.mark.parametrize("name", LAWS)


def oscillators(x: np.ndarray) -> np.ndarray:
    """A driven, damped and coupled motion that obeys none of the laws."""
    return np.roll(np.sin(x), 1, axis=1) - 0.3 * x + 0.5 * np.cos(2.0 * x) * np.roll(x, -1, axis=1)


@cache
def measured(d: int) -> vf.Trajectories:
    """Trajectories in units that set their coordinates a factor 2,000 apart."""
    starts = np.random.default_rng(d).normal(size=(4, d))
    t = np.linspace(0.0, 2.0, 16)
    xs = vf.simulate(oscillators, starts, t, rtol=1e-8, atol=1e-8).x
    return vf.Trajectories.from_arrays(list((xs + 3.0) * np.array(UNITS[:d])), t)


@cache
def fitted(name: str) -> vf.VectorField:
    kernel, d = LAWS[name]
    return vf.MOCK(kernel, 1e-5).fit(measured(d)).field_


def around(data: vf.Trajectories, n: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    middle, spread = data.states.mean(axis=0), data.states.std(axis=0)
    return middle + spread * rng.normal(size=(n, data.d))


def pairs_of(kernel):
    return getattr(kernel, "pairs", None) if hasattr(kernel, "pairs") else pairs_of(kernel.kernel)


def broken(kernel, jacobian: np.ndarray) -> np.ndarray:
    """What the law says is zero, (n, k), from Jacobians (n, d, d)."""
    if kernel.energy == "hamiltonian":
        d = jacobian.shape[1]
        product = symplectic(pairs_of(kernel), d).T @ jacobian
    elif kernel.energy is None:
        return np.trace(jacobian, axis1=1, axis2=2)[:, None]
    else:
        product = jacobian @ np.array(getattr(kernel, "mobility", None) or np.eye(len(jacobian[0])))
    return (product - product.transpose(0, 2, 1)).reshape(len(jacobian), -1)


@EACH
def test_laws_of_fitted_fields(name):
    field = fitted(name)
    kernel, d = LAWS[name]
    assert measured(d).states.std(axis=0).max() > 10.0 * measured(d).states.std(axis=0).min()
    x = around(measured(d), 1000)
    jacobian = field.jacobian(x)
    # the divergence does not change with the units: with one unit for all, the norm is smallest
    even = jacobian
    if kernel.energy is None:
        even = jacobian * field.scale[None, None, :] / field.scale[None, :, None]
    size = np.linalg.norm(even, axis=(1, 2))
    assert size.min() > 0
    assert (np.abs(broken(kernel, jacobian)).max(axis=1) <= 1e-10 * size).all()


@EACH
def test_laws_of_fitted_fields_by_differences(name):
    """Nothing but values of the field: the same law, as far as differences can tell."""
    field = fitted(name)
    kernel, d = LAWS[name]
    x = around(measured(d), 1000)
    step = 1e-4 * field.scale
    found = slopes(field, x, step)
    close(found, field.jacobian(x), 1e-6)
    even = found * field.scale[None, None, :] / field.scale[None, :, None]
    if kernel.energy is None:
        assert np.abs(broken(kernel, even)).max() <= 1e-6 * np.abs(even).max()
    else:
        assert np.abs(broken(kernel, found)).max() <= 1e-6 * np.abs(found).max()


@EACH
def test_the_data_break_the_law(name):
    """What the kernels keep is theirs and not that of the data."""
    kernel, d = LAWS[name]
    jacobian = slopes(oscillators, around(measured(d), 100) / np.array(UNITS[:d]) - 3.0)
    assert np.abs(broken(kernel, jacobian)).max() > 0.1 * np.abs(jacobian).max()


@EACH
def test_energies_in_the_units_of_the_data(name):
    """f = -grad V, f = -M grad V and f = J grad H by differences of V and H."""
    field = fitted(name)
    kernel, d = LAWS[name]
    x = around(measured(d), 50)
    own = {"potential": field.potential, "hamiltonian": field.hamiltonian}
    energy = own.pop(kernel.energy, None)
    for missing in own.values():
        with pytest.raises(TypeError, match=r"a field of \w+ has no .*see field\.parts"):
            missing(x)
    if energy is None:
        return
    slope = slopes(energy, x, 1e-4 * field.scale)
    if kernel.energy == "hamiltonian":
        expected = slope @ symplectic(pairs_of(kernel), d).T
    else:
        expected = -slope @ np.array(getattr(kernel, "mobility", None) or np.eye(d))
    value = field(x)
    for got, wanted in zip(value.T, expected.T, strict=True):  # a coordinate has its own unit
        close(got, wanted, 1e-6)
    assert energy(x[0]) == energy(x[:1])[0]


@EACH
def test_the_shift_stays_and_scales_change_as_the_law_asks(name):
    field = fitted(name)
    kernel, d = LAWS[name]
    data = measured(d).states
    np.testing.assert_allclose(field.shift, data.mean(axis=0), rtol=1e-14)
    expected = data.std(axis=0)
    if kernel.energy == "potential":
        expected = np.full(d, np.sqrt(np.mean(expected**2)))
    elif kernel.energy == "hamiltonian":
        expected = paired_scale(expected, pairs_of(kernel))
    np.testing.assert_allclose(field.scale, expected, rtol=1e-13)


@pytest.mark.parametrize("kernel", [Hamiltonian(Gaussian(2.0)), HamiltonianFeatures(Monomials(4))])
def test_orbits_keep_the_learned_energy(kernel):
    """A pendulum in odd units: simulated far beyond the data, H stays what it was."""
    units = np.array([20.0, 0.01])
    t = np.linspace(0.0, 6.0, 61)

    def pendulum(x):
        return np.stack([x[:, 1], -np.sin(x[:, 0])], axis=1)

    starts = np.array([[0.5, 0.0], [0.9, 0.0], [1.2, 0.0], [1.5, 0.0]])
    xs = vf.simulate(pendulum, starts, t, rtol=1e-10, atol=1e-10).x
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vf.SolveWarning)
        model = vf.MOCK(kernel, 1e-10, rule=Lagrange(6)).fit(list(xs * units), t)
    x = model.simulate(starts[3] * units, np.linspace(0.0, 60.0, 50), rtol=1e-11)
    energy = model.hamiltonian(x)
    between = np.diff(model.hamiltonian(starts[[0, 3]] * units))[0]
    assert np.ptp(energy) < 1e-7 * between
    # H is that of the pendulum, p^2 / 2 - cos q, in the units' own unit of energy
    assert between == pytest.approx((np.cos(0.5) - np.cos(1.5)) * units.prod(), rel=1e-2)


def test_potentials_fall_along_learned_gradient_flows():
    kernel = Gradient(Gaussian(2.0), mobility(3))
    data = measured(3)
    model = vf.MOCK(kernel, 1e-5).fit(data)
    x = model.simulate(around(data, 5), np.linspace(0.0, 0.5, 20), rtol=1e-10)
    fall = np.diff(model.potential(x.reshape(-1, 3)).reshape(5, 20), axis=1)
    assert fall.max() < 0


# Symmetry together with a law


SYMMETRIC = {
    "ring": (CurlFree(Gaussian()), CyclicShifts(), 4),
    "ring-of-pairs": (Hamiltonian(Gaussian(), ((0, 1), (2, 3))), CyclicShifts(2), 4),
    "odd": (DivergenceFree(Matern(3.5)), Reflection(), 3),
    "exchange": (Hamiltonian(Gaussian()), SignedPermutations([(2, 1, 4, 3)]), 4),
    "quarter-turn": (DivergenceFree(Gaussian()), SignedPermutations([(-2, 1, 3)]), 3),
    "mobility": (
        Gradient(Gaussian(), np.diag([1.0, 1.0, 3.0])),
        SignedPermutations([(2, 1, 3)]),
        3,
    ),
}


@pytest.mark.parametrize(("base", "group", "d"), SYMMETRIC.values(), ids=SYMMETRIC)
def test_symmetric_fits_keep_both(base, group, d):
    data = measured(d)
    field = vf.MOCK(Equivariant(base, group), 1e-5).fit(data).field_
    x = around(data, 1000)
    value, jacobian = field(x), field.jacobian(x)
    size = np.linalg.norm(value / field.scale, axis=1)
    images = group.elements(d).act(x)
    for matrix, image in zip(group.elements(d).act(np.eye(d)), images, strict=True):
        wrong = np.linalg.norm((field(image) - value @ matrix) / field.scale, axis=1)
        assert (wrong <= 1e-10 * size).all()
    even = jacobian
    if base.energy is None:
        even = jacobian * field.scale[None, None, :] / field.scale[None, :, None]
    norm = np.linalg.norm(even, axis=(1, 2))
    assert (np.abs(broken(base, jacobian)).max(axis=1) <= 1e-10 * norm).all()


def test_a_mirror_that_turns_j_round_turns_the_hamiltonian():
    """g = (q, p) -> (q, -p) has g J g^T = -J: f(g x) = g f(x) means H(g x) = -H(x)."""
    mirror = np.array([1.0, -1.0])
    kernel = Equivariant(Hamiltonian(Gaussian()), SignedPermutations([(1, -2)]))
    field = vf.MOCK(kernel, 1e-5).fit(measured(2)).field_
    x = around(measured(2), 50)
    close(field(x * mirror) / field.scale, field(x) * mirror / field.scale, 1e-11)
    close(field.hamiltonian(x * mirror), -field.hamiltonian(x), 1e-11)


# Sums of features


def test_features_with_other_pairs_have_no_hamiltonian_together():
    one = HamiltonianFeatures(Monomials(3))
    other = HamiltonianFeatures(RandomFourier(Gaussian(1.5), 20), ((0, 1), (2, 3)))
    assert (one + 0.1 * one).energy == "hamiltonian"
    for kernel in (one + other, 2.0 * other + one, one + (one + other)):
        assert kernel.energy is None
        field = vf.MOCK(kernel, 1e-3, standardize=False).fit(measured(4)).field_
        x = around(measured(4), 5)
        with pytest.raises(TypeError, match="has no hamiltonian; see"):
            field.hamiltonian(x)
        for part in field.parts:
            expected = slopes(part.hamiltonian, x, 1e-4 * x.std(axis=0))
            expected = expected @ symplectic(pairs_of(part.kernel), 4).T
            close(part(x), expected, 1e-5)
