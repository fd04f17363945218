"""Conjugate gradients against a dense solution of the system from its definition."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import vectorfield as vf
from vectorfield._progress import listening
from vectorfield.kernels import (
    CurlFree,
    DivergenceFree,
    Equivariant,
    Gaussian,
    Hamiltonian,
    Linear,
    Matern,
    Reflection,
    Separable,
)
from vectorfield.linalg import (
    BlockJacobi,
    ConjugateGradient,
    Dense,
    Gramian,
    GramianProblem,
    NystromPreconditioner,
    Preconditioner,
    Status,
    assemble_blocks,
    prepare,
)
from vectorfield.linalg.block import by_coordinate, by_observation
from vectorfield.occupation import (
    CentralDifference,
    Lagrange,
    SnapshotNoise,
    Spline,
    Trapezoid,
    WeakForm,
    White,
    Windows,
)

PRECONDITIONERS = [
    None,
    NystromPreconditioner(1),
    NystromPreconditioner(15),
    NystromPreconditioner(10_000),
    BlockJacobi(1),
    BlockJacobi(5),
    BlockJacobi(1000),
]
NOISES = pytest.mark.parametrize("noise", [White(), SnapshotNoise()], ids=repr)
HELMHOLTZ = DivergenceFree(Gaussian(1.0)) + 0.1 * CurlFree(Matern(2.5, 1.0))


def agree(got, expected, relative=1e-7) -> None:
    np.testing.assert_allclose(got, expected, rtol=0, atol=relative * np.abs(expected).max())


def written_out(kernel, occupations, covariance, definition):
    """M and Sigma kron I, by observation, then coordinate."""
    count, d = occupations.targets.shape
    m = definition(kernel, occupations.nodes, occupations.weights).reshape(count * d, -1)
    return m, np.kron(covariance.toarray(), np.eye(d))


@pytest.fixture
def orbits() -> vf.Trajectories:
    """Two noisy rotations, each of nearly two turns: many observations are nearly the same."""
    rng, t = np.random.default_rng(0), np.linspace(0.0, 12.0, 81)
    starts = [(1.0, 0.0), (1.5, 1.0)]
    xs = [np.stack([r * np.cos(t + p), -r * np.sin(t + p)], axis=1) for r, p in starts]
    return vf.Trajectories.from_arrays([x + 1e-3 * rng.normal(size=x.shape) for x in xs], t)


# The solution


@NOISES
@pytest.mark.parametrize("preconditioner", PRECONDITIONERS, ids=repr)
def test_the_solution_is_the_dense_one(preconditioner, coupled, noise, irregular, definition):
    occupations = Trapezoid()(irregular(coupled.d))
    covariance, y = noise.covariance(occupations), occupations.targets
    m, sigma = written_out(coupled.kernel, occupations, covariance, definition)
    solver = ConjugateGradient(tolerance=1e-11, preconditioner=preconditioner)
    problem = GramianProblem(coupled.kernel, occupations, covariance, solver)
    x = np.random.default_rng(1).normal(size=(5, coupled.d))
    for ridge in (1e-1, 1e-3):
        matrix = m + ridge * len(y) * sigma
        a = np.linalg.solve(matrix, y.reshape(-1))
        fit = problem.solve(ridge)
        solution = fit.solution
        assert solution.status is Status.CONVERGED
        assert solution.detail == ""
        true = np.linalg.norm(y.reshape(-1) - matrix @ solution.value.reshape(-1))
        assert true <= 1.01e-11 * np.linalg.norm(y)
        assert solution.residual == pytest.approx(true / np.linalg.norm(y), abs=1e-13)
        assert 1 <= solution.iterations == len(solution.history)
        assert solution.history[-1] <= 1e-11 < min(solution.history[:-1], default=1.0)
        assert set(solution.seconds) == {"precondition", "solve"}
        agree(solution.value, a.reshape(y.shape))
        agree(fit.residuals, y - (m @ a).reshape(y.shape))
        assert fit.norm == pytest.approx((a @ m @ a) ** 0.5, rel=1e-7)
        c = occupations.weights.T @ a.reshape(y.shape)
        agree(fit.expansion(x), coupled.kernel.bind(occupations.nodes, c)(x))


@NOISES
@pytest.mark.parametrize(
    "rule",
    [
        Lagrange(6),
        Spline(4),
        Windows(samples=5),
        Windows(samples=9, rule=Spline(2), stride=3),
        WeakForm(samples=5, stride=3),
        CentralDifference(),
    ],
    ids=repr,
)
def test_every_rule(rule, noise, irregular, definition):
    occupations = rule(irregular(2, (12, 2, 15)))
    covariance, y = noise.covariance(occupations), occupations.targets
    m, sigma = written_out(HELMHOLTZ, occupations, covariance, definition)
    fit = GramianProblem(HELMHOLTZ, occupations, covariance, ConjugateGradient()).solve(1e-2)
    a = np.linalg.solve(m + 1e-2 * len(y) * sigma, y.reshape(-1)).reshape(y.shape)
    assert fit.solution.status is Status.CONVERGED
    agree(fit.solution.value, a)


@pytest.mark.parametrize(
    ("kernel", "d"),
    [
        (DivergenceFree(Gaussian()), 3),
        (CurlFree(Matern(3.5)), 2),
        (Hamiltonian(Gaussian(1.5)), 4),
        (HELMHOLTZ, 2),
        (Equivariant(Matern(2.5), Reflection()), 3),
        (Separable(Matern(1.5)) + DivergenceFree(Gaussian()), 2),
    ],
    ids=lambda value: type(value).__name__,
)
@NOISES
def test_the_same_model_as_by_the_dense_solver(kernel, d, noise, irregular):
    data = irregular(d)
    dense = vf.MOCK(kernel, 1e-3, noise=noise, solver=Dense("float64")).fit(data)
    model = vf.MOCK(kernel, 1e-3, noise=noise, solver=ConjugateGradient()).fit(data)
    assert dense.solution_.status is Status.SOLVED
    assert model.solution_.status is Status.CONVERGED
    assert model.ridge_ == dense.ridge_
    assert model.kernel_ == dense.kernel_
    agree(model.residuals_, dense.residuals_)
    assert model.rkhs_norm_ == pytest.approx(dense.rkhs_norm_, rel=1e-7)
    x = np.random.default_rng(2).normal(size=(6, d))
    agree(model.predict(x), dense.predict(x))
    agree(model.field_.jacobian(x), dense.field_.jacobian(x))


@NOISES
def test_a_path_is_its_single_solves(coupled, noise, irregular):
    occupations = Trapezoid()(irregular(coupled.d))
    covariance, ridges = noise.covariance(occupations), [1e-1, 1e-4, 1e-2, 1e-1]
    problem = GramianProblem(coupled.kernel, occupations, covariance, ConjugateGradient())
    fits = list(problem.path(ridges))
    for ridge, fit in zip(ridges, fits, strict=True):
        fresh = GramianProblem(coupled.kernel, occupations, covariance, ConjugateGradient())
        one = fresh.solve(ridge)
        np.testing.assert_array_equal(fit.solution.value, one.solution.value)
        np.testing.assert_array_equal(fit.residuals, one.residuals)
        assert fit.norm == one.norm
    assert fits[0].solution.history == fits[-1].solution.history
    assert fits[0].norm < fits[2].norm < fits[1].norm


@pytest.mark.parametrize("preconditioner", PRECONDITIONERS, ids=repr)
@pytest.mark.parametrize("seed", range(4))
def test_one_observation(preconditioner, seed, coupled):
    """Where the preconditioner is the inverse, nothing at all may be left."""
    x = np.random.default_rng(seed).normal(size=(2, coupled.d))
    occupations = Trapezoid()(vf.Trajectories.from_arrays([x], 0.5))
    covariance = White().covariance(occupations)
    solver = ConjugateGradient(preconditioner=preconditioner)
    fit = GramianProblem(coupled.kernel, occupations, covariance, solver).solve(1e-2)
    m = Gramian(coupled.kernel, x, occupations.weights, covariance).corner(slice(0, 1))
    a = np.linalg.solve(m + 1e-2 * np.eye(coupled.d), occupations.targets[0])
    assert fit.solution.status is Status.CONVERGED
    assert len(fit.solution.history) == fit.solution.iterations <= 2 * coupled.d
    agree(fit.solution.value[0], a)


@pytest.mark.parametrize("preconditioner", PRECONDITIONERS, ids=repr)
@pytest.mark.parametrize(
    "kernel", [HELMHOLTZ, Separable(Linear()) + Separable(Linear())], ids=["helmholtz", "linear"]
)
def test_nothing_moves(kernel, preconditioner):
    solver = ConjugateGradient(preconditioner=preconditioner)
    model = vf.MOCK(kernel, 1e-3, solver=solver).fit(np.ones((6, 2)), 0.1)
    assert model.solution_.status is Status.CONVERGED
    assert (model.solution_.residual, model.solution_.iterations) == (0.0, 0)
    assert model.solution_.history == ()
    assert model.rkhs_norm_ == 0.0
    np.testing.assert_array_equal(model.residuals_, np.zeros((5, 2)))
    np.testing.assert_array_equal(model.predict(np.eye(2)), np.zeros((2, 2)))


def test_the_unit_of_time_does_not_matter(irregular):
    data = irregular(2)
    tiny = vf.Trajectories.from_arrays([p.x for p in data], [1e-9 * p.t for p in data])
    for preconditioner in PRECONDITIONERS:
        solver = ConjugateGradient(preconditioner=preconditioner)
        one = vf.MOCK(HELMHOLTZ, 1e-3, solver=solver).fit(data)
        other = vf.MOCK(HELMHOLTZ, 1e-21, solver=solver).fit(tiny)
        agree(other.predict(data.states), 1e9 * one.predict(data.states))


@NOISES
@pytest.mark.parametrize("preconditioner", [None, BlockJacobi(4)], ids=repr)
def test_torch_agrees(preconditioner, noise, irregular):
    torch = pytest.importorskip("torch")
    data = irregular(2)
    xs, ts = data.to_arrays()
    solver = ConjugateGradient(preconditioner=preconditioner)
    model = vf.MOCK(HELMHOLTZ, 1e-3, noise=noise, solver=solver).fit(data)
    other = vf.MOCK(HELMHOLTZ, 1e-3, noise=noise, solver=solver)
    other.fit([torch.asarray(np.array(x)) for x in xs], ts)
    assert isinstance(other.residuals_, torch.Tensor)
    assert other.solution_.iterations == len(other.solution_.history)
    agree(other.residuals_.numpy(), model.residuals_)
    assert float(other.rkhs_norm_) == pytest.approx(model.rkhs_norm_, rel=1e-7)
    got = other.predict(torch.asarray(np.array(data.states)))
    agree(got.numpy(), model.predict(data.states))


# The iteration


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-8, 1e-12])
@NOISES
def test_the_tolerance_holds_for_the_true_residual(tolerance, noise, orbits):
    occupations = Trapezoid()(orbits)
    covariance, y = noise.covariance(occupations), occupations.targets
    solver = ConjugateGradient(tolerance)
    solution = GramianProblem(HELMHOLTZ, occupations, covariance, solver).solve(1e-6).solution
    matrix = assemble_blocks(HELMHOLTZ, occupations.nodes, occupations.weights).matrix
    values = by_observation(matrix @ by_coordinate(solution.value), 2)
    left = y - values - 1e-6 * len(y) * (covariance @ solution.value)
    residual = np.linalg.norm(left) / np.linalg.norm(y)
    assert solution.status is Status.CONVERGED
    assert residual <= tolerance
    assert solution.residual == pytest.approx(residual, rel=0.1)


def test_a_smaller_tolerance_goes_on_from_where_the_larger_one_stopped(orbits):
    coarse, fine = (
        vf.MOCK(HELMHOLTZ, 1e-6, solver=ConjugateGradient(tolerance)).fit(orbits).solution_.history
        for tolerance in (1e-3, 1e-9)
    )
    assert len(coarse) < len(fine)
    assert fine[: len(coarse)] == coarse


@NOISES
def test_a_higher_rank_takes_fewer_iterations(noise, orbits):
    ranks = (2, 20, 50, 100, 320)
    counts = []
    for rank in ranks:
        solver = ConjugateGradient(preconditioner=NystromPreconditioner(rank))
        counts.append(vf.MOCK(HELMHOLTZ, 1e-6, noise=noise, solver=solver).fit(orbits).solution_)
    iterations = [solution.iterations for solution in counts]
    assert all(more <= few for few, more in pairwise(iterations))
    assert iterations[0] > 100
    assert iterations[-1] <= 4


def test_larger_blocks_take_fewer_iterations_where_the_kernel_is_short(irregular):
    data, counts = irregular(2, (120,)), []
    for size in (1, 10, 60, 119):
        solver = ConjugateGradient(preconditioner=BlockJacobi(size))
        kernel = DivergenceFree(Matern(2.5, 0.05))
        counts.append(vf.MOCK(kernel, 1e-4, solver=solver).fit(data).solution_.iterations)
    assert all(more <= few for few, more in pairwise(counts))
    assert counts[-1] <= 2 < counts[0]


def test_stopped_early_says_what_to_do(orbits):
    solver = ConjugateGradient(max_iterations=3, preconditioner=NystromPreconditioner(2))
    model = vf.MOCK(HELMHOLTZ, 1e-6, solver=solver)
    with pytest.raises(vf.SolveError, match="the fit of 160 observations failed") as caught:
        model.fit(orbits)
    solution = caught.value.solution
    assert solution is model.solution_
    assert not hasattr(model, "field_")
    assert solution.status is Status.NOT_CONVERGED
    assert not solution.status.ok
    assert solution.iterations == len(solution.history) == 3
    assert solution.value.shape == (160, 2)
    assert solution.detail in str(caught.value)
    for part in (
        f"relative residual {solution.residual:.1e} after 3 iterations",
        "1.0e-10 was asked for",
        "allow more max_iterations, raise ridge or the rank of the preconditioner",
        "Dense()",
    ):
        assert part in solution.detail
    assert model.set_params(solver__max_iterations=2000).fit(orbits).solution_.status.ok


def test_what_was_reached_is_handed_over(orbits):
    """Stopped early, a problem gives the field, its residuals and norm all the same."""
    occupations = Trapezoid()(orbits)
    covariance = White().covariance(occupations)
    solver = ConjugateGradient(max_iterations=5)
    fit = GramianProblem(HELMHOLTZ, occupations, covariance, solver).solve(1e-6)
    assert fit.solution.status is Status.NOT_CONVERGED
    values = occupations.weights @ fit.expansion(occupations.nodes)
    agree(fit.residuals, occupations.targets - values)
    assert fit.norm**2 == pytest.approx(np.sum(fit.solution.value * values), rel=1e-6)


def test_more_than_rounding_allows(orbits):
    solver = ConjugateGradient(tolerance=1e-30)
    with pytest.raises(vf.SolveError, match=r"1\.0e-30 was asked for") as caught:
        vf.MOCK(HELMHOLTZ, 1e-6, solver=solver).fit(orbits)
    solution = caught.value.solution
    assert solution.iterations < 2000
    assert solution.residual < 1e-11


@dataclass(frozen=True)
class Multiple(Preconditioner):
    """A user's own: factor times the identity."""

    factor: float

    def prepare(self, gramian: Gramian) -> Callable[[float], Callable[[Any], Any]]:
        return lambda shift: lambda r: self.factor * r


def test_a_preconditioner_of_ones_own(irregular):
    """The scale of a preconditioner does not matter."""
    data, kernel = irregular(2), DivergenceFree(Matern(2.5, 1.0))
    models = [
        vf.MOCK(kernel, 1e-1, solver=ConjugateGradient(preconditioner=Multiple(factor))).fit(data)
        for factor in (1.0, 1e6)
    ]
    agree(models[1].residuals_, models[0].residuals_)
    assert models[0].solution_.iterations <= 2 * len(models[0].residuals_)


def test_a_preconditioner_that_is_none_ends_the_iteration(irregular):
    solver = ConjugateGradient(preconditioner=Multiple(0.0))
    with pytest.raises(vf.SolveError, match=r"residual 1.0e\+00 after 0 iterations"):
        vf.MOCK(HELMHOLTZ, 1e-3, solver=solver).fit(irregular(2))


def test_progress_is_reported(orbits):
    heard = []
    with listening(lambda stage, done: heard.append((stage, done))):
        model = vf.MOCK(HELMHOLTZ, 1e-6, solver=ConjugateGradient()).fit(orbits)
    done = [share for stage, share in heard if stage == "conjugate gradients"]
    assert len(done) > 2
    assert all(0.0 <= share <= 1.0 for share in done)
    assert done[-1] == 1.0
    assert model.solution_.status is Status.CONVERGED


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"tolerance": 0.0}, ValueError),
        ({"tolerance": "small"}, TypeError),
        ({"max_iterations": 0}, ValueError),
        ({"max_iterations": 2.5}, TypeError),
        ({"preconditioner": 5}, TypeError),
    ],
)
def test_settings_are_checked(wrong, error):
    with pytest.raises(error, match=next(iter(wrong))):
        ConjugateGradient(**wrong)


def test_models_are_pickled(irregular):
    data = irregular(2)
    solver = ConjugateGradient(preconditioner=BlockJacobi(4))
    model = vf.MOCK(HELMHOLTZ, 1e-3, solver=solver).fit(data)
    again = pickle.loads(pickle.dumps(model))
    assert again.solver == solver
    np.testing.assert_array_equal(again.predict(data.states), model.predict(data.states))


def test_nothing_that_is_passed_in_is_changed(irregular):
    occupations = Trapezoid()(irregular(2))
    covariance = SnapshotNoise().covariance(occupations)
    before = [
        np.array(part)
        for part in (occupations.targets, occupations.nodes, occupations.weights.data)
    ]
    prepare(HELMHOLTZ, occupations, covariance=covariance, solver=ConjugateGradient()).solve(1e-3)
    after = (occupations.targets, occupations.nodes, occupations.weights.data)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)
