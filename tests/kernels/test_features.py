"""Explicit kernels: what their features are, their derivatives, and the fields made of them."""

from __future__ import annotations

import pickle
from itertools import combinations_with_replacement

import numpy as np
import pytest
from sklearn.base import clone

import vectorfield as vf
from vectorfield.kernels import (
    Constant,
    ExplicitKernel,
    FeatureExpansion,
    FeatureMap,
    Gaussian,
    GradientFeatures,
    HamiltonianFeatures,
    Laplace,
    Linear,
    Matern,
    Monomials,
    Nystrom,
    Polynomial,
    RandomFourier,
    RationalQuadratic,
)

OWN = (0.8, 1.5, 1.1)
RADIAL = {
    "gaussian": Gaussian(1.3),
    "gaussian-own": Gaussian(OWN),
    "laplace": Laplace(2.0),
    **{f"matern-{nu}": Matern(nu, 0.9) for nu in (0.5, 1.5, 2.5, 3.5, 4.5, 5.5)},
    "matern-own": Matern(1.5, OWN),
    "rational": RationalQuadratic(0.7, 1.2),
}
SMOOTH: dict[str, ExplicitKernel] = {
    "fourier-paired": RandomFourier(Gaussian(OWN), 20),
    "fourier-phase": RandomFourier(Matern(2.5, 1.2), 15, "phase", orthogonal=False),
    "monomials": Monomials(3, 0.7, OWN),
    "monomials-homogeneous": Monomials(4, 0.0, 1.4),
    "monomials-linear": Monomials(1, 0.0),
    "nystrom": Nystrom(Gaussian(1.5), 12, "random"),
    "nystrom-matern": Nystrom(Matern(5.5, OWN), 9, "pivoted"),
    "sum": Monomials(2) + 0.3 * RandomFourier(Gaussian(1.0), 10),
}


def points(n: int, d: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def gram(kernel: ExplicitKernel, x: np.ndarray) -> np.ndarray:
    phi = kernel.bind(x)(x)
    return phi @ phi.T


def field_of(kernel: ExplicitKernel, nodes: np.ndarray, seed: int = 5) -> FeatureExpansion:
    features = kernel.bind(nodes)
    shape = (features.q, features.d) if features.separable else (features.q,)
    return FeatureExpansion(kernel, features, np.random.default_rng(seed).normal(size=shape))


def slopes(function, x: np.ndarray, h: float = 1e-5) -> np.ndarray:
    """Central differences of function, (n, ...) -> (n, ..., d)."""
    steps = h * np.eye(x.shape[1])
    return np.stack([(function(x + s) - function(x - s)) / (2 * h) for s in steps], axis=-1)


# Random Fourier features


@pytest.mark.parametrize("kernel", RADIAL.values(), ids=RADIAL)
@pytest.mark.parametrize("form", ["paired", "phase"])
@pytest.mark.parametrize("orthogonal", [False, True])
def test_random_features_converge_to_the_kernel(kernel, form, orthogonal):
    x = points(12)
    exact = kernel(x)
    errors = []
    for count in (100, 6_400):
        seeds = [RandomFourier(kernel, count, form, orthogonal, seed) for seed in range(4)]
        squares = [np.mean((gram(features, x) - exact) ** 2) for features in seeds]
        errors.append(np.sqrt(np.mean(squares)))
    assert errors[1] < 1.3 / np.sqrt(6_400)  # a cosine of weight 2 has variance at most 1.5
    assert 3.0 < errors[0] / errors[1] < 20.0  # 8 by the rate q^(-1/2)


def test_the_diagonal_of_pairs_is_one():
    x = points(7)
    np.testing.assert_allclose(np.diag(gram(RandomFourier(Matern(1.5, 1.0), 40), x)), 1.0)


def test_orthogonal_features_have_less_error():
    x, kernel = points(30, 8), Gaussian(2.5)
    exact = kernel(x)
    errors = {
        orthogonal: np.mean(
            [
                np.mean((gram(RandomFourier(kernel, 64, "paired", orthogonal, s), x) - exact) ** 2)
                for s in range(10)
            ]
        )
        for orthogonal in (False, True)
    }
    assert errors[True] < 0.8 * errors[False]


def test_orthogonal_directions_are_orthogonal_in_groups():
    omega = RandomFourier(Matern(0.5, 1.0), 14).bind(points(1)).frequencies
    for start in (0, 3):
        group = omega[start : start + 3]
        group = group / np.linalg.norm(group, axis=1)[:, None]
        np.testing.assert_allclose(group @ group.T, np.eye(3), atol=1e-14)


@pytest.mark.parametrize("form", ["paired", "phase"])
def test_a_seed_repeats(form):
    x = points(5)
    one, two, other = (
        RandomFourier(Gaussian(1.0), 30, form, random_state=s).bind(x)(x) for s in (3, 3, 4)
    )
    np.testing.assert_array_equal(one, two)
    assert np.abs(one - other).max() > 0.1


@pytest.mark.parametrize("orthogonal", [False, True])
def test_one_coordinate(orthogonal):
    x = points(9, 1)
    kernel = Matern(2.5, 0.7)
    features = RandomFourier(kernel, 20_000, orthogonal=orthogonal)
    np.testing.assert_allclose(gram(features, x), kernel(x), atol=0.03)
    assert Monomials(3).bind(x)(x).shape == (9, 4)


# Monomials


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
@pytest.mark.parametrize("offset", [0.0, 0.6])
@pytest.mark.parametrize("d", [1, 2, 4])
def test_monomials_are_the_polynomial_kernel(degree, offset, d):
    lengths = (0.7, 1.3, 2.1, 0.9)[:d]
    x = points(6, d)
    kernel = Monomials(degree, offset, lengths)
    np.testing.assert_allclose(
        gram(kernel, x), Polynomial(degree, offset, lengths)(x), rtol=1e-12, atol=1e-12
    )
    features = kernel.bind(x)
    assert features.q == kernel.count(d) == features(x).shape[1]
    exponents = features.exponents
    assert len({tuple(row) for row in exponents.tolist()}) == features.q
    assert set(exponents.sum(axis=1)) == (set(range(degree + 1)) if offset else {degree})


def test_each_monomial_is_what_its_exponents_say():
    x = points(4)
    features = Monomials(4, 0.5).bind(x)
    powers = features.powers(x)
    for j, exponents in enumerate(features.exponents):
        np.testing.assert_allclose(powers[:, j], np.prod(x**exponents, axis=1), rtol=1e-13)
    assert features.q == sum(len(list(combinations_with_replacement("xyz", k))) for k in range(5))


def test_too_many_monomials_are_refused():
    with pytest.raises(MemoryError, match=r"q = 25,621,596 monomials of degree 5 in 76 .*Fourier"):
        Monomials(5).bind(points(1, 76))


# Nystrom


@pytest.mark.parametrize("centres", ["random", "farthest", "pivoted"])
@pytest.mark.parametrize("kernel", [Matern(1.5, 1.0), Gaussian(OWN) + Linear(), Constant(2.0)])
def test_all_nodes_as_centres_give_the_kernel(centres, kernel):
    x = points(15)
    features = Nystrom(kernel, 15, centres)
    np.testing.assert_allclose(gram(features, x), kernel(x), atol=1e-9)


def test_pivots_stop_at_the_tolerance():
    x = points(300, 2)
    kernel = Gaussian(2.0)
    sizes = []
    for tolerance in (1e-2, 1e-5, 1e-8):
        phi = Nystrom(kernel, 200, "pivoted", tolerance=tolerance).bind(x)
        errors = 1.0 - np.sum(phi(x) ** 2, axis=1)
        assert errors.min() > -1e-10
        assert errors.max() <= tolerance
        sizes.append(phi.q)
    assert sizes[0] < sizes[1] < sizes[2] < 200


def test_farthest_points_are_spread():
    x = points(400, 2)
    centres = {name: Nystrom(Gaussian(1.0), 20, name).bind(x).centres for name in METHODS}
    nearest = {}
    for name, z in centres.items():
        distances = np.linalg.norm(z[:, None] - z, axis=2) + 1e9 * np.eye(20)
        nearest[name] = distances.min()
    assert nearest["farthest"] > 3 * nearest["random"]


METHODS = ("random", "farthest", "pivoted")


@pytest.mark.parametrize("centres", METHODS)
def test_equal_nodes_and_few_candidates(centres):
    x = np.repeat(points(5), 40, axis=0)
    kernel = Gaussian(1.0)
    features = Nystrom(kernel, 30, centres, candidates=150).bind(x)
    assert features.q <= 5
    if centres != "random":
        np.testing.assert_allclose(features(x) @ features(x).T, kernel(x), atol=1e-9)


# Derivatives


@pytest.mark.parametrize("kernel", SMOOTH.values(), ids=SMOOTH)
def test_derivatives_of_features(kernel):
    x, nodes = points(6), points(30, seed=1)
    features = kernel.bind(nodes)
    rng = np.random.default_rng(2)
    gradient = features.gradient(x)
    np.testing.assert_allclose(gradient, slopes(features, x).swapaxes(1, 2), atol=1e-6)
    c = rng.normal(size=(features.q, 2))
    expected = np.einsum("ajq,qi->aij", gradient, c)
    np.testing.assert_allclose(features.jacobian(x, c), expected, atol=1e-9)
    np.testing.assert_allclose(features.bind(c).jacobian(x), expected, atol=1e-9)
    np.testing.assert_allclose(features.bind(c)(x), features(x) @ c, atol=1e-9)
    hessian = features.hessian(x, c[:, 0])
    np.testing.assert_allclose(
        hessian, slopes(lambda x: features.gradient(x) @ c[:, 0], x), atol=2e-6
    )


@pytest.mark.parametrize("kernel", SMOOTH.values(), ids=SMOOTH)
def test_fields_in_blocks(kernel, monkeypatch):
    expansion = field_of(kernel, points(30, seed=1))
    x = points(5000)
    whole = expansion(x)
    few = np.concatenate([expansion(x[k : k + 7]) for k in range(0, 70, 7)])
    np.testing.assert_allclose(whole[:70], few, atol=1e-11)
    np.testing.assert_allclose(expansion.jacobian(x)[:5], expansion.jacobian(x[:5]), atol=1e-11)
    assert expansion(x[:0]).shape == (0, 3)
    assert expansion.jacobian(x[:0]).shape == (0, 3, 3)


# Laws


LAWS: dict[str, ExplicitKernel] = {
    "gradient-fourier": GradientFeatures(RandomFourier(Gaussian(1.5), 30)),
    "gradient-monomials": GradientFeatures(Monomials(3)),
    "gradient-nystrom": 2.0 * GradientFeatures(Nystrom(Gaussian(1.5), 12, "random")),
    "gradient-sum": GradientFeatures(Monomials(2)) + GradientFeatures(RandomFourier(Gaussian(2.0))),
    "hamiltonian-fourier": HamiltonianFeatures(RandomFourier(Gaussian(1.5), 30, "phase")),
    "hamiltonian-pairs": HamiltonianFeatures(Monomials(3), ((3, 0), (1, 2))),
}


def expected_field(kernel: ExplicitKernel, energy, x: np.ndarray) -> np.ndarray:
    slope = slopes(energy, x)
    if kernel.energy == "potential":
        return -slope
    pairs = getattr(kernel, "pairs", None) or ((0, 2), (1, 3))
    value = np.empty_like(x)
    for q, p in pairs:
        value[:, q], value[:, p] = slope[:, p], -slope[:, q]
    return value


@pytest.mark.parametrize("kernel", LAWS.values(), ids=LAWS)
def test_laws(kernel):
    x = points(8, 4)
    expansion = field_of(kernel, points(30, 4, seed=1))
    assert expansion.features(x).shape == (8, 4, expansion.features.q)
    value = expansion.features(x) @ expansion.coefficients
    np.testing.assert_allclose(expansion(x), value, atol=1e-10)
    np.testing.assert_allclose(expansion(x), expected_field(kernel, expansion.energy, x), atol=1e-6)
    np.testing.assert_allclose(expansion.jacobian(x), slopes(expansion, x), atol=1e-6)
    expansion.check(4)
    assert expansion.energy(x[:0]).shape == (0,)


@pytest.mark.parametrize("kernel", LAWS.values(), ids=LAWS)
def test_laws_hold_in_the_units_of_the_data(kernel):
    scales = np.array([0.5, 3.0, 2.0, 10.0])
    rng = np.random.default_rng(0)
    xs = [np.cumsum(rng.normal(size=(20, 4)), axis=0) * scales + 5.0 for _ in range(3)]
    model = vf.MOCK(kernel, 1e-3).fit(xs, 0.1)
    x = xs[0][:5]
    energy = model.potential if kernel.energy == "potential" else model.hamiltonian
    expected = expected_field(kernel, energy, x)
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(model.predict(x), expected, rtol=1e-5, atol=1e-4)
    other = model.hamiltonian if kernel.energy == "potential" else model.potential
    with pytest.raises(TypeError, match="has no"):
        other(x)


def test_no_energy_where_there_is_none():
    model = vf.MOCK(Monomials(1), 1e-3).fit(points(20, 2), 0.1)
    with pytest.raises(TypeError, match="has no potential"):
        model.potential(points(2, 2))
    with pytest.raises(TypeError, match="not made of"):
        model.field_.expansion.energy(points(2, 2))


def test_a_law_asks_for_its_number_of_coordinates():
    with pytest.raises(ValueError, match="even number"):
        vf.MOCK(HamiltonianFeatures(Monomials(2)), search=False).fit(points(20, 3), 0.1)


# The algebra


def test_sums_and_multiples_are_those_of_the_kernels():
    x = points(6)
    left, right = Monomials(2, 0.5), Nystrom(Matern(1.5, 1.0), 6, "random")
    np.testing.assert_allclose(gram(left + 0.3 * right, x), gram(left, x) + 0.3 * gram(right, x))
    np.testing.assert_allclose(gram((left + right) * 2, x), 2 * gram(left + right, x))
    kernel = left + 0.3 * right
    assert kernel.size(x) == pytest.approx(left.size(x) + 0.3 * right.size(x))
    assert left.size(x) == pytest.approx(np.mean(np.diag(gram(left, x))))


def test_the_size_of_matrix_features_is_the_mean_of_the_diagonal():
    x = points(50, 4)
    kernel = GradientFeatures(Monomials(2))
    psi = kernel.bind(x)(x)
    assert kernel.size(x) == pytest.approx(np.mean(np.sum(psi**2, axis=2)))
    assert (2 * kernel).size(x) == pytest.approx(2 * kernel.size(x))


def test_parts_of_a_sum():
    kernel = 0.5 * (Monomials(1) + RandomFourier(Gaussian(1.0), 10)) + Monomials(2, 0.0)
    field = vf.MOCK(kernel, 1e-4).fit(points(30, 2), 0.1).field_
    assert len(field.parts) == 3
    x = points(5, 2)
    zero = field.shift  # every part carries no shift of its own
    assert zero.shape == (2,)
    np.testing.assert_allclose(sum(part(x) for part in field.parts), field(x), atol=1e-11)
    single = vf.MOCK(Monomials(1), 1e-4).fit(points(30, 2), 0.1).field_
    np.testing.assert_array_equal(single.parts[0](x), single(x))


def test_features_that_do_not_go_together():
    with pytest.raises(TypeError, match="all be scalar"):
        (Monomials(1) + GradientFeatures(Monomials(1))).bind(points(3))
    with pytest.raises(TypeError, match="needs scalar features"):
        GradientFeatures(GradientFeatures(Monomials(1))).bind(points(3))
    with pytest.raises(TypeError, match="unsupported operand"):
        Monomials(1) + Gaussian(1.0)


BAD = {
    "kernel": (lambda: RandomFourier(Linear()), TypeError, "spectral densities"),
    "odd": (lambda: RandomFourier(Gaussian(), 3), ValueError, "count must be even"),
    "form": (lambda: RandomFourier(form="cosine"), ValueError, "form must be one of"),
    "seed": (lambda: RandomFourier(random_state=None), TypeError, "random_state must be a whole"),
    "orthogonal": (lambda: RandomFourier(orthogonal="yes"), TypeError, "True or False"),
    "degree": (lambda: Monomials(0), ValueError, "degree must be at least 1"),
    "nystrom": (lambda: Nystrom("gauss"), TypeError, "must be a scalar kernel"),
    "centres": (lambda: Nystrom(centres="grid"), ValueError, "centres must be one of"),
    "candidates": (lambda: Nystrom(count=10, candidates=5), ValueError, "at least count"),
    "factor": (lambda: -1.0 * Monomials(1), ValueError, "factor must be"),
    "inner": (lambda: GradientFeatures(Gaussian(1.0)), TypeError, "must be an explicit kernel"),
    "pairs": (lambda: HamiltonianFeatures(Monomials(2), ((0, 0),)), ValueError, "pairs must hold"),
}


@pytest.mark.parametrize(("make", "error", "message"), BAD.values(), ids=BAD)
def test_settings_are_checked(make, error, message):
    with pytest.raises(error, match=message):
        make()


# Fields, files and the estimator


FILES = SMOOTH | {f"law-{name}": kernel for name, kernel in LAWS.items()}


@pytest.mark.parametrize("kernel", FILES.values(), ids=FILES)
def test_model_files_and_pickles_hold_every_bit(kernel, tmp_path):
    d = 4 if kernel in LAWS.values() else 3
    model = vf.MOCK(kernel, 1e-3).fit(points(40, d), 0.1)
    model.save(tmp_path / "model.vf")
    loaded = vf.load(tmp_path / "model.vf")
    x = points(6, d, seed=9)
    for again in (loaded, pickle.loads(pickle.dumps(model.field_))):
        assert again.kernel == model.kernel_
        np.testing.assert_array_equal(again(x), model.predict(x))
        np.testing.assert_array_equal(again.jacobian(x), model.field_.jacobian(x))
    loaded.save(tmp_path / "again.vf")
    assert (tmp_path / "again.vf").read_bytes() == (tmp_path / "model.vf").read_bytes()
    assert "features=" in repr(loaded)


def test_values_do_not_change():
    x = points(10)
    features = RandomFourier(Gaussian(1.0), 10).bind(x)
    with pytest.raises(ValueError, match="read-only"):
        features.frequencies[0, 0] = 1.0
    mine = np.ones((features.q, 3))
    expansion = FeatureExpansion(RandomFourier(Gaussian(1.0), 10), features, mine)
    with pytest.raises(ValueError, match="read-only"):
        expansion.coefficients[0, 0] = 2.0
    mine[0, 0] = 1.0  # what was passed in is still the caller's


def test_the_estimator_takes_features():
    t = np.linspace(0.0, 6.0, 121)
    circle = np.stack([np.cos(t), np.sin(t)], axis=1)
    rule = vf.occupation.Lagrange(4)
    model = vf.MOCK(RandomFourier(Gaussian(2.0), 60), 1e-10, rule=rule).fit(circle, t)
    end = model.simulate(circle[0], t)[-1]
    np.testing.assert_allclose(end, circle[-1], atol=1e-3)
    copy = clone(model).set_params(kernel__count=40, kernel__kernel__length_scale=1.0)
    assert copy.kernel == RandomFourier(Gaussian(1.0), 40)
    assert vf.MOCK(RandomFourier(), search=False).fit(circle, t).kernel_.kernel.length_scale > 0
    with pytest.raises(TypeError, match="solved by Normal"):
        vf.MOCK(RandomFourier(), solver=vf.linalg.Dense(), search=False).fit(circle, t)
    with pytest.raises(TypeError, match="compress needs"):
        vf.compress(model.field_)


class Angle(ExplicitKernel):
    """A user's own kernel, matrix-valued: rotation and contraction."""

    def get_params(self, deep=True):
        return {}

    def resolved(self, nodes):
        return self

    def bind(self, nodes):
        return AngleMap()


class AngleMap(FeatureMap):
    q, d, separable = 2, 2, False

    def __call__(self, x):
        return np.stack([np.stack([-x[:, 1], x[:, 0]], 1), -x], axis=2)


def test_a_map_of_ones_own():
    t = np.linspace(0.0, 6.0, 121)
    spiral = np.exp(-0.1 * t)[:, None] * np.stack([np.cos(t), np.sin(t)], axis=1)
    model = vf.MOCK(Angle(), 1e-10, rule=vf.occupation.Lagrange(4), standardize=False)
    model.fit(spiral, t)
    np.testing.assert_allclose(model.field_.expansion.coefficients, [1.0, 0.1], atol=1e-4)
    assert vf.MOCK(Angle(), search=False).fit(spiral, t).ridge_ > 0
    with pytest.raises(TypeError, match="AngleMap has no derivatives"):
        model.field_.jacobian(spiral[:2])
    with pytest.raises(TypeError, match="cannot be written"):
        model.field_.expansion.describe()
