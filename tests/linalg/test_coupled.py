"""Which solver takes a kernel that couples the outputs."""

from __future__ import annotations

import pytest

import vectorfield as vf
from vectorfield._backend import machine
from vectorfield.kernels import (
    CurlFree,
    DivergenceFree,
    Equivariant,
    Gaussian,
    Gradient,
    Hamiltonian,
    Monomials,
    Reflection,
    Separable,
)
from vectorfield.linalg import (
    BlockProblem,
    Circulant,
    ConjugateGradient,
    Dense,
    GramianProblem,
    Normal,
    Status,
    coupled,
    prepare,
)
from vectorfield.occupation import Trapezoid, White

KERNELS = [
    CurlFree(Gaussian(1.0)),
    DivergenceFree(Gaussian(1.0)),
    Gradient(Gaussian(1.0)),
    Hamiltonian(Gaussian(1.0)),
    Equivariant(Gaussian(1.0), Reflection()),
    0.5 * CurlFree(Gaussian(1.0)),
    DivergenceFree(Gaussian(1.0)) + Separable(Gaussian(1.0)),
]
EACH = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)


@pytest.fixture
def problem(irregular):
    """The problem that a kernel and a solver give for 44 unknowns."""
    occupations = Trapezoid()(irregular(2))
    assert occupations.targets.size == 44
    covariance = White().covariance(occupations)
    return lambda kernel, solver=None: prepare(
        kernel, occupations, covariance=covariance, solver=solver
    )


@EACH
def test_small_systems_are_dense_and_large_ones_iterate(kernel, problem, monkeypatch):
    assert type(problem(kernel)) is BlockProblem
    monkeypatch.setattr(coupled, "LARGEST_DENSE", 44)
    assert type(problem(kernel)) is BlockProblem
    monkeypatch.setattr(coupled, "LARGEST_DENSE", 43)
    assert type(problem(kernel)) is GramianProblem


@EACH
def test_a_solver_that_is_asked_for_is_taken(kernel, problem, monkeypatch):
    assert type(problem(kernel, ConjugateGradient())) is GramianProblem
    monkeypatch.setattr(coupled, "LARGEST_DENSE", 1)
    assert type(problem(kernel, Dense())) is BlockProblem


def test_models_choose_alike(irregular, monkeypatch):
    data, kernel = irregular(2), DivergenceFree(Gaussian(1.0))

    def status(solver=None):
        return vf.MOCK(kernel, 1e-3, solver=solver).fit(data).solution_.status

    assert status() is status(Dense()) is Status.SOLVED
    assert status(ConjugateGradient()) is Status.CONVERGED
    monkeypatch.setattr(coupled, "LARGEST_DENSE", 10)
    assert status() is Status.CONVERGED
    assert status(Dense()) is Status.SOLVED


@EACH
def test_another_kernels_solver_is_refused(kernel, problem):
    with pytest.raises(TypeError, match=r"is solved by Dense or ConjugateGradient, not by Normal"):
        problem(kernel, Normal())
    named = "Circulant" if isinstance(kernel, Equivariant) else "Dense or ConjugateGradient"
    with pytest.raises(TypeError, match=named):
        problem(kernel, Circulant())


@pytest.mark.parametrize(
    ("kernel", "named"), [(Separable(Gaussian(1.0)), "Dense"), (Monomials(2), "Normal")], ids=repr
)
def test_kernels_that_take_no_iterations(kernel, named, problem):
    with pytest.raises(TypeError, match=rf"is solved by {named}, not by ConjugateGradient"):
        problem(kernel, ConjugateGradient())


def test_what_is_no_solver_is_refused(irregular):
    for wrong in ("cg", ConjugateGradient, 1):
        with pytest.raises(TypeError, match="solver must be a Solver"):
            vf.MOCK(KERNELS[0], solver=wrong, search=False).fit(irregular(2))


def test_what_the_dense_matrix_lacks_in_memory_iterations_do_not_need(irregular, monkeypatch):
    monkeypatch.setattr(machine, "_available_memory", lambda: 1000)
    data, kernel = irregular(2), CurlFree(Gaussian(1.0))
    with pytest.raises(MemoryError, match=r"use vf\.linalg\.ConjugateGradient\(\)"):
        vf.MOCK(kernel, 1e-3).fit(data)
    assert vf.MOCK(kernel, 1e-3, solver=ConjugateGradient()).fit(data).solution_.status.ok
