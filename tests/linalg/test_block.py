"""The dense matrix of coupled outputs against its definition, and the fits by it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import vectorfield as vf
from vectorfield._backend import machine
from vectorfield._progress import listening
from vectorfield.kernels import CurlFree, DivergenceFree, Gaussian, Matern, Separable
from vectorfield.linalg import BlockProblem, Dense, Status, assemble_blocks, block, prepare
from vectorfield.linalg.block import by_coordinate, by_observation
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
    Spline(4),
    Windows(samples=5, stride=1),
    Windows(samples=30, rule=Spline(2), stride=11),
    WeakForm(),
    ForwardDifference(),
    CentralDifference(),
]


def agree(got, expected, relative=1e-10) -> None:
    np.testing.assert_allclose(got, expected, rtol=0, atol=relative * np.abs(expected).max())


def check(kernel, nodes, weights, definition) -> None:
    assembly = assemble_blocks(kernel, nodes, weights)
    count, d = weights.shape[0], nodes.shape[1]
    got = assembly.matrix.reshape(d, count, d, count).transpose(1, 0, 3, 2)
    agree(got, definition(kernel, nodes, weights), 1e-12)
    assert set(assembly.seconds) == {"gram", "quadrature"}
    assert all(seconds >= 0 for seconds in assembly.seconds.values())


# The matrix


def test_entry_by_entry():
    """(W kron I) G (W kron I)^T with every sum a loop."""
    rng = np.random.default_rng(0)
    nodes, w = rng.normal(size=(4, 2)), rng.normal(size=(3, 4))
    lengths = np.array([0.8, 1.5])

    def curl_free(x, y):  # - grad grad^T exp(-|u|^2 / 2)
        u = (x - y) / lengths
        return np.exp(-(u @ u) / 2) * (np.eye(2) - np.outer(u, u)) / np.outer(lengths, lengths)

    expected = np.zeros((6, 6))
    for s in range(3):
        for t in range(3):
            for p in range(4):
                for q in range(4):
                    value = curl_free(nodes[p], nodes[q])
                    for a in range(2):
                        for b in range(2):
                            expected[a * 3 + s, b * 3 + t] += w[s, p] * value[a, b] * w[t, q]
    kernel = CurlFree(Gaussian((0.8, 1.5)))
    agree(assemble_blocks(kernel, nodes, sp.csr_array(w)).matrix, expected, 1e-13)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_every_kernel_and_rule(coupled, rule, irregular, definition):
    occupations = rule(irregular(coupled.d))
    check(coupled.kernel, occupations.nodes, occupations.weights, definition)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_many_tiles(rule, irregular, definition, monkeypatch):
    monkeypatch.setattr(block, "TILE", 1)  # strips of 16 nodes
    occupations = rule(irregular(2, (20, 3, 31, 2, 2)))
    kernel = DivergenceFree(Gaussian(1.5)) + 0.5 * CurlFree(Matern(2.5, 1.0))
    check(kernel, occupations.nodes, occupations.weights, definition)


def test_a_kernel_that_is_no_symmetric_matrix_in_many_tiles(
    coupled, irregular, definition, monkeypatch
):
    monkeypatch.setattr(block, "TILE", 1)
    occupations = Lagrange(4)(irregular(coupled.d, (14, 2, 18)))
    check(coupled.kernel, occupations.nodes, occupations.weights, definition)


def test_any_sparse_weights(coupled, definition, monkeypatch):
    monkeypatch.setattr(block, "TILE", 1)
    rng = np.random.default_rng(0)
    nodes = rng.normal(size=(40, coupled.d))
    dense = rng.normal(size=(9, 40)) * (rng.uniform(size=(9, 40)) < 0.1)
    dense[3] = dense[8] = 0.0
    check(coupled.kernel, nodes, sp.csr_array(dense), definition)
    check(coupled.kernel, nodes[:1], sp.csr_array(np.array([[2.0], [0.0], [1.0]])), definition)


def test_symmetric_and_positive(coupled, irregular, monkeypatch):
    monkeypatch.setattr(block, "TILE", 1)
    occupations = Trapezoid()(irregular(coupled.d, (30, 2, 25)))
    once, again = (
        assemble_blocks(coupled.kernel, occupations.nodes, occupations.weights).matrix
        for _ in range(2)
    )
    np.testing.assert_array_equal(once, again)
    agree(once, once.T, 1e-14)
    assert np.linalg.eigvalsh(once)[0] > -1e-12 * np.abs(once).max()


def test_orders_of_the_unknowns():
    y = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(by_coordinate(y)[:, 0], [0.0, 2.0, 4.0, 1.0, 3.0, 5.0])
    np.testing.assert_array_equal(by_observation(by_coordinate(y), 2), y)


@pytest.mark.parametrize("rule", RULES[:3], ids=repr)
def test_torch_agrees(coupled, rule, irregular, monkeypatch):
    torch = pytest.importorskip("torch")
    occupations = rule(irregular(coupled.d, (9, 3, 20)))
    expected = assemble_blocks(coupled.kernel, occupations.nodes, occupations.weights).matrix
    monkeypatch.setattr(block, "TILE", 1)
    nodes = torch.tensor(occupations.nodes)
    got = assemble_blocks(coupled.kernel, nodes, occupations.weights).matrix
    assert isinstance(got, torch.Tensor)
    agree(got.numpy(), expected, 1e-12)


def test_a_matrix_beyond_the_memory_is_refused_at_once(irregular, monkeypatch):
    monkeypatch.setattr(machine, "_available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r"of 22 observations in 2 coupled .*ConjugateGradient"):
        vf.MOCK(DivergenceFree(Gaussian(1.0)), 1e-3).fit(irregular(2))


def test_progress_is_reported(irregular, monkeypatch):
    monkeypatch.setattr(block, "TILE", 1)
    occupations = Trapezoid()(irregular(2, (40, 30)))
    heard = []
    with listening(lambda stage, done: heard.append((stage, done))):
        assemble_blocks(CurlFree(Gaussian(1.0)), occupations.nodes, occupations.weights)
    assert {stage for stage, _ in heard} == {"Gram matrix"}
    assert len(heard) > 2
    assert max(done for _, done in heard) == 1.0


# The fit


def solved(m, occupations, covariance, ridge):
    """Coefficients a (S, d), and M a."""
    count, d = occupations.targets.shape
    noise = np.kron(covariance.toarray(), np.eye(d))
    big = m.reshape(count * d, count * d)
    a = np.linalg.solve(big + ridge * count * noise, occupations.targets.reshape(-1))
    return a.reshape(count, d), (big @ a).reshape(count, d)


@pytest.mark.parametrize("precision", ["float64", "mixed"])
@pytest.mark.parametrize("noise", [White(), SnapshotNoise()], ids=repr)
def test_the_fit_is_that_of_the_definition(coupled, noise, precision, irregular, definition):
    occupations = Lagrange(4)(irregular(coupled.d))
    covariance = noise.covariance(occupations)
    m = definition(coupled.kernel, occupations.nodes, occupations.weights)
    problem = BlockProblem(coupled.kernel, occupations, covariance, Dense(precision))
    x = np.random.default_rng(1).normal(size=(6, coupled.d))
    for ridge in (1e-2, 1e-4, 1.0):  # one matrix serves many ridges
        fit = problem.solve(ridge)
        a, values = solved(m, occupations, covariance, ridge)
        single = precision == "mixed"
        assert fit.solution.status is (Status.REFINED if single else Status.SOLVED)
        agree(fit.solution.value, a, 1e-8)
        agree(fit.residuals, occupations.targets - values, 1e-8)
        assert fit.norm == pytest.approx(np.sum(a * values) ** 0.5, rel=1e-8)
        c = occupations.weights.toarray().T @ a
        agree(fit.expansion(x), coupled.kernel.bind(occupations.nodes, c)(x), 1e-8)
        assert set(fit.solution.seconds) == {"gram", "quadrature", "factor", "solve"}


def test_a_path_is_its_single_solves(coupled, irregular):
    occupations = Trapezoid()(irregular(coupled.d))
    covariance = SnapshotNoise().covariance(occupations)
    ridges = [1e-1, 1e-4, 1e-2, 1e-1]
    problem = prepare(coupled.kernel, occupations, covariance=covariance, solver=Dense())
    fits = list(problem.path(ridges))
    for ridge, fit in zip(ridges, fits, strict=True):
        fresh = prepare(coupled.kernel, occupations, covariance=covariance, solver=Dense())
        agree(fit.solution.value, fresh.solve(ridge).solution.value)
    agree(fits[0].residuals, fits[-1].residuals)


def test_the_same_as_the_separable_solver(irregular):
    """Separable kernels have a solver of their own; as a sum of two halves they go through this."""
    data, matrix = irregular(3), [[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.7]]
    kernel = Separable(Matern(2.5, 1.0), matrix)
    one = vf.MOCK(kernel, 1e-3, noise=SnapshotNoise()).fit(data)
    other = vf.MOCK(0.5 * kernel + 0.5 * kernel, 1e-3, noise=SnapshotNoise()).fit(data)
    agree(other.predict(data.states), one.predict(data.states))
    agree(other.residuals_, one.residuals_, 1e-9)
    assert other.rkhs_norm_ == pytest.approx(one.rkhs_norm_, rel=1e-9)


def smooth(ridge: float):
    """Observations that hardly differ, for a kernel of large values."""
    t = np.linspace(0.0, 1.0, 60)
    x = np.stack([np.sin(t), np.cos(t), t], axis=1)
    kernel = 1e6 * CurlFree(Gaussian(3.0))
    return vf.MOCK(kernel, ridge, standardize=False, solver=Dense("float64")).fit(x, t)


def test_not_positive_definite_is_a_status_with_a_remedy():
    with pytest.raises(vf.SolveError, match="the matrix of 177 unknowns stopped") as caught:
        smooth(1e-30)
    solution = caught.value.solution
    assert solution.status is Status.NOT_POSITIVE_DEFINITE
    assert solution.value is None
    assert "59 observations" in str(caught.value)
    largest = float(solution.detail.split("eigenvalue is about ")[1].split(" ")[0])
    advised = float(solution.detail.split("at least about ")[1].split(",")[0])
    # a ridge counts once for each observation, not for each unknown
    assert advised * 59 == pytest.approx(100 * np.finfo(float).eps * largest, rel=0.5)
    assert smooth(advised).solution_.status.ok
