"""The solver for rings against the dense (S d, S d) system, entry by entry from the definition."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import vectorfield as vf
from vectorfield._backend import machine
from vectorfield.kernels import (
    Constant,
    CyclicShifts,
    Equivariant,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    Reflection,
    Separable,
)
from vectorfield.linalg import (
    Circulant,
    CirculantProblem,
    ConjugateGradient,
    Dense,
    Status,
    circulant,
    prepare,
    regress,
)
from vectorfield.linalg.hermitian import Hermitian
from vectorfield.occupation import (
    CentralDifference,
    ForwardDifference,
    Lagrange,
    SnapshotNoise,
    Spline,
    Trapezoid,
    WeakForm,
    White,
    Windows,
)

RULES = [
    Trapezoid(),
    Lagrange(6),
    Spline(1),
    Spline(4),
    Windows(samples=5, stride=1),
    Windows(samples=30, rule=Spline(2), stride=11),
    WeakForm(),
    ForwardDifference(),
    CentralDifference(),
]


def shift_matrix(d: int, h: int) -> np.ndarray:
    """(g x)_i = x_(i + h)."""
    return np.array([[float(j == (i + h) % d) for j in range(d)] for i in range(d)])


def solved(kernel, occupations, covariance, ridge):
    """Coefficients a (S, d), M (S, d, S, d) and the field's values at the observations."""
    z, w = occupations.nodes, occupations.weights.toarray()
    d, count = z.shape[1], len(occupations)
    gram = np.zeros((len(z), d, len(z), d))
    for h in range(d):
        g = shift_matrix(d, h)
        gram += np.einsum("pq,ab->paqb", kernel(z, z @ g.T), g) / d
    m = np.einsum("sp,tq,paqb->satb", w, w, gram, optimize=True)
    noise = np.einsum("st,ab->satb", covariance.toarray(), np.eye(d))
    system = (m + ridge * count * noise).reshape(count * d, count * d)
    a = np.linalg.solve(system, occupations.targets.reshape(-1)).reshape(count, d)
    return a, m, np.einsum("satb,tb->sa", m, a)


def agree(got, expected, relative=1e-9) -> None:
    np.testing.assert_allclose(got, expected, rtol=0, atol=relative * np.abs(expected).max())


@pytest.mark.parametrize("noise", [White(), SnapshotNoise()], ids=repr)
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_every_rule_and_noise(rule, noise, irregular):
    occupations = rule(irregular(4))
    covariance, ridge, k = noise.covariance(occupations), 2e-3, Matern(2.5, 1.1) + 0.1 * Linear()
    a, m, values = solved(k, occupations, covariance, ridge)
    fit = regress(
        Equivariant(k, CyclicShifts()),
        occupations,
        ridge=ridge,
        covariance=covariance,
        solver=Circulant(),
    )
    assert fit.solution.status is Status.SOLVED
    assert fit.solution.residual < 1e-12
    agree(fit.solution.value, a)
    agree(fit.residuals, occupations.targets - values)
    assert fit.norm == pytest.approx(np.einsum("sa,satb,tb->", a, m, a) ** 0.5, rel=1e-9)
    x = np.random.default_rng(0).normal(size=(5, 4))
    c = occupations.weights.toarray().T @ a
    expected = np.zeros_like(x)
    for h in range(4):
        g = shift_matrix(4, h)
        expected += k(x, occupations.nodes @ g.T) @ c @ g.T / 4
    agree(fit.expansion(x), expected)


@pytest.mark.parametrize(
    "k", [Gaussian(0.8), Laplace(1.0), Polynomial(2), 2.0 * Constant() * Gaussian(2.0)], ids=repr
)
@pytest.mark.parametrize("d", [1, 2, 3, 5, 6])
def test_every_number_of_coordinates(d, k, irregular, monkeypatch):
    monkeypatch.setattr(circulant, "TILE", 1)  # strips of 16 nodes: many tiles
    occupations = Trapezoid()(irregular(d, (30, 2, 25)))
    covariance = SnapshotNoise().covariance(occupations)
    a, _, values = solved(k, occupations, covariance, 1e-3)
    problem = prepare(Equivariant(k, CyclicShifts()), occupations, covariance=covariance)
    assert isinstance(problem, CirculantProblem)
    fit = problem.solve(1e-3)
    agree(fit.solution.value, a)
    agree(fit.residuals, occupations.targets - values)
    assert set(fit.solution.seconds) == {"gram", "factor", "solve"}


def test_one_assembly_serves_many_ridges(irregular):
    occupations = Trapezoid()(irregular(3))
    covariance = SnapshotNoise().covariance(occupations)
    problem = prepare(
        Equivariant(Gaussian(1.0), CyclicShifts()), occupations, covariance=covariance
    )
    ridges = [1e-2, 1e-5, 1.0, 1e-2]
    fits = list(problem.path(ridges))
    for ridge, fit in zip(ridges, fits, strict=True):
        agree(fit.solution.value, solved(Gaussian(1.0), occupations, covariance, ridge)[0], 1e-8)
    np.testing.assert_array_equal(fits[0].solution.value, fits[-1].solution.value)


def test_larger_than_a_corner(monkeypatch, irregular):
    monkeypatch.setattr("vectorfield.linalg.hermitian.CORNER", 7)
    test_one_assembly_serves_many_ridges(irregular)


def test_the_same_as_the_dense_block_solver(irregular):
    data = irregular(4)
    kernel = Equivariant(Matern(3.5), CyclicShifts())
    ring = vf.MOCK(kernel, 1e-5, noise=SnapshotNoise()).fit(data)
    dense = vf.MOCK(kernel, 1e-5, noise=SnapshotNoise(), solver=Dense("float64")).fit(data)
    agree(ring.residuals_, dense.residuals_)
    agree(ring.predict(data.states), dense.predict(data.states))
    assert ring.rkhs_norm_ == pytest.approx(dense.rkhs_norm_, rel=1e-9)


def test_the_same_as_conjugate_gradients(irregular):
    data = irregular(3)
    kernel = Equivariant(Matern(2.5), CyclicShifts())
    ring = vf.MOCK(kernel, 1e-3).fit(data)
    iterated = vf.MOCK(kernel, 1e-3, solver=ConjugateGradient()).fit(data)
    agree(iterated.predict(data.states), ring.predict(data.states), 1e-6)


def test_torch_arrays_go_to_the_dense_solver(irregular):
    torch = pytest.importorskip("torch")
    data = irregular(3)
    kernel = Equivariant(Matern(2.5), CyclicShifts())
    ring = vf.MOCK(kernel, 1e-3).fit(data)
    states = [torch.asarray(np.array(p.x)) for p in data]
    other = vf.MOCK(kernel, 1e-3).fit(states, [p.t for p in data])
    agree(other.predict(states[2]).numpy(), ring.predict(data[2].x))


def test_the_unit_of_time_does_not_matter(irregular):
    """Weights of 1e-9: the matrix is of order 1e-18, and residuals must still be measured."""
    data = irregular(3)
    tiny = vf.Trajectories.from_arrays([p.x for p in data], [1e-9 * p.t for p in data])
    kernel = Equivariant(Gaussian(1.0), CyclicShifts())
    one = vf.MOCK(kernel, 1e-3, solver=Circulant()).fit(data)
    other = vf.MOCK(kernel, 1e-21, solver=Circulant()).fit(tiny)
    assert other.solution_.residual < 1e-12
    agree(other.predict(data.states), 1e9 * one.predict(data.states), 1e-8)


def test_constant_data(irregular):
    data = vf.Trajectories.from_arrays([np.ones((5, 3))], 0.1)
    model = vf.MOCK(Equivariant(Gaussian(1.0), CyclicShifts()), 1e-3).fit(data)
    np.testing.assert_array_equal(model.predict(data.states), np.zeros((5, 3)))
    assert model.solution_.status is Status.SOLVED


def smooth(ridge: float, **options):
    """Observations that hardly differ, for a kernel of large values."""
    t = np.linspace(0.0, 1.0, 60)
    x = np.stack([np.sin(t), np.cos(t), t], axis=1)
    kernel = Equivariant(1e6 * Gaussian(3.0), CyclicShifts())
    return vf.MOCK(kernel, ridge, standardize=False, solver=Circulant(), **options).fit(x, t)


def test_not_positive_definite_is_a_status_with_a_remedy():
    with pytest.raises(vf.SolveError, match="stopped being positive definite at row") as caught:
        smooth(1e-30)
    solution = caught.value.solution
    assert solution.status is Status.NOT_POSITIVE_DEFINITE
    assert solution.value is None
    assert "at frequency" in solution.detail
    advised = float(solution.detail.split("at least about ")[1].split(",")[0])
    assert smooth(advised).solution_.status.ok


def outcome(ridge: float) -> tuple[str, str]:
    try:
        model = smooth(ridge)
    except vf.SolveError as error:
        return error.solution.status.name, str(error)
    except vf.SolveWarning as warning:  # warnings are errors here
        return "ILL_CONDITIONED", str(warning)
    return ("SOLVED" if model.solution_.residual <= 1e-8 else "?"), ""


def test_close_to_singular_is_said():
    outcomes = [outcome(ridge) for ridge in 10.0 ** np.arange(-19, -5, 0.5)]
    assert {name for name, _ in outcomes} <= {"NOT_POSITIVE_DEFINITE", "ILL_CONDITIONED", "SOLVED"}
    assert outcomes[-1] == ("SOLVED", "")
    for name, detail in outcomes:
        assert name == "SOLVED" or "raise ridge to at least about" in detail


def test_a_large_residual_is_said(monkeypatch):
    monkeypatch.setattr(circulant, "ACCEPTABLE", 0.0)
    with pytest.warns(
        vf.SolveWarning, match=r"relative residual .*, condition number about .*; ra"
    ):
        model = smooth(1e-3)
    assert model.solution_.status is Status.ILL_CONDITIONED
    assert model.solution_.condition > 1.0
    monkeypatch.setattr(circulant, "STABLE", 0.0)
    with pytest.raises(vf.SolveError, match="relative residual") as caught:
        smooth(1e-3)
    assert caught.value.solution.status is Status.INACCURATE


def test_refinement_mends_a_poor_factor(irregular, monkeypatch):
    plain, data = Hermitian.apply, irregular(3)
    monkeypatch.setattr(Hermitian, "apply", lambda self, rhs: 1.01 * plain(self, rhs))
    model = vf.MOCK(Equivariant(Gaussian(1.0), CyclicShifts()), 1e-3).fit(data)
    assert 1 < model.solution_.iterations < 20
    assert model.solution_.residual < 1e-10


def test_which_solver_is_taken(irregular, monkeypatch):
    occupations = Trapezoid()(irregular(3))
    covariance = White().covariance(occupations)

    def problem(kernel, solver=None):
        return type(prepare(kernel, occupations, covariance=covariance, solver=solver)).__name__

    ring = Equivariant(Gaussian(1.0), CyclicShifts())
    assert problem(ring) == problem(ring, Circulant()) == "CirculantProblem"
    assert problem(ring, Dense()) == "BlockProblem"
    odd = Equivariant(Gaussian(1.0), Reflection())
    assert problem(odd) == "BlockProblem"
    mixed = Equivariant(Separable(Gaussian(1.0), np.eye(3)), CyclicShifts())
    assert problem(mixed) == "BlockProblem"
    for kernel in (odd, mixed, Equivariant(Gaussian(1.0), CyclicShifts(3))):
        with pytest.raises(TypeError, match=r"Circulant\(\) is for a scalar kernel under Cyclic"):
            problem(kernel, Circulant())
    with pytest.raises(TypeError, match=r"not by Circulant\(\)"):
        problem(Separable(Gaussian(1.0)), Circulant())
    with pytest.raises(TypeError, match=r"Circulant\(\) is for k I under CyclicShifts"):
        CirculantProblem(odd, occupations, covariance)
    monkeypatch.setattr(circulant, "LARGEST", 1)
    assert problem(ring) == "BlockProblem"
    assert problem(ring, Circulant()) == "CirculantProblem"


def test_other_arrays_are_refused(irregular):
    torch = pytest.importorskip("torch")
    data = irregular(3)
    data = vf.Trajectories.from_arrays(
        [torch.asarray(np.array(p.x)) for p in data], [p.t for p in data]
    )
    kernel = Equivariant(Gaussian(1.0), CyclicShifts())
    with pytest.raises(TypeError, match=r"on NumPy arrays, got .* on arrays of type Tensor"):
        vf.MOCK(kernel, 1e-3, solver=Circulant()).fit(data)


def test_memory_is_checked_first(irregular, monkeypatch):
    monkeypatch.setattr(machine, "_available_memory", lambda: 10_000)
    with pytest.raises(MemoryError, match=r"on a ring of 3 coordinates needs .*ConjugateGradient"):
        vf.MOCK(Equivariant(Gaussian(1.0), CyclicShifts()), search=False).fit(irregular(3))


def test_models_are_pickled(irregular):
    data = irregular(3)
    model = vf.MOCK(Equivariant(Gaussian(), CyclicShifts()), solver=Circulant(), search=False).fit(
        data
    )
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(data.states), model.predict(data.states))
    assert again.solver == Circulant()


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_hermitian_systems(dtype):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(9, 9)).astype(dtype)
    if dtype is np.complex128:
        root = root + 1j * rng.normal(size=(9, 9))
    matrix = root @ root.conj().T
    occupations = Trapezoid()(vf.Trajectories.from_arrays([np.zeros((10, 1))], 0.1))
    sigma = SnapshotNoise().covariance(occupations)
    whole = np.conj(matrix + 0.3 * sigma.toarray())
    rhs = rng.normal(size=9).astype(dtype)
    system = Hermitian(matrix.copy(), sigma)
    for shift in (5.0, 0.3):
        assert system.factor(shift) == 0
    agree(system.apply(rhs), np.linalg.solve(whole, rhs), 1e-10)
    agree(system.product(rhs), np.conj(matrix) @ rhs, 1e-13)
    agree(system.residual(rhs, rhs), rhs - whole @ rhs, 1e-13)
    top = np.linalg.eigvalsh(matrix)[-1]
    assert 0.8 * top < system.largest_eigenvalue() <= 1.0001 * top
    low = np.linalg.eigvalsh(whole)[0]
    assert 0.5 / low < system.largest_of_inverse() <= 1.0001 / low
    assert system.largest_noise() == 4.0
    assert system.factor(-1e6) == 1
