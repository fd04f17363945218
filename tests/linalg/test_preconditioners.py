"""Preconditioners written out as matrices: symmetric, positive, and what they say they are."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import vectorfield as vf
from vectorfield.kernels import (
    Constant,
    CurlFree,
    DivergenceFree,
    Gaussian,
    Linear,
    Matern,
    Separable,
)
from vectorfield.linalg import BlockJacobi, ConjugateGradient, Gramian, NystromPreconditioner
from vectorfield.occupation import ForwardDifference, SnapshotNoise, Trapezoid, WeakForm, White

NOISES = pytest.mark.parametrize("noise", [White(), SnapshotNoise()], ids=repr)


def agree(got, expected, relative=1e-9) -> None:
    np.testing.assert_allclose(got, expected, rtol=0, atol=relative * np.abs(expected).max())


def as_matrix(apply, count: int, d: int) -> np.ndarray:
    """Every unit vector through the operator, ordered by observation, then coordinate."""
    units = np.eye(count * d).reshape(-1, count, d)
    return np.stack([apply(unit).reshape(-1) for unit in units], axis=1)


def system(kernel, occupations, covariance, shift, definition) -> np.ndarray:
    """M + shift Sigma kron I, by observation, then coordinate."""
    count, d = occupations.targets.shape
    m = definition(kernel, occupations.nodes, occupations.weights).reshape(count * d, -1)
    return m + shift * np.kron(covariance.toarray(), np.eye(d))


def gramian_of(kernel, occupations, noise) -> Gramian:
    covariance = noise.covariance(occupations)
    return Gramian(kernel, occupations.nodes, occupations.weights, covariance)


@NOISES
@pytest.mark.parametrize(
    "preconditioner",
    [
        BlockJacobi(1),
        BlockJacobi(5),
        BlockJacobi(),
        NystromPreconditioner(),
        NystromPreconditioner(1),
        NystromPreconditioner(20, random_state=4),
        NystromPreconditioner(10_000),
    ],
    ids=repr,
)
def test_symmetric_and_positive_definite(preconditioner, coupled, noise, irregular):
    occupations = Trapezoid()(irregular(coupled.d))
    prepare = preconditioner.prepare(gramian_of(coupled.kernel, occupations, noise))
    for shift in (1.0, 1e-4):  # prepared once, for every ridge
        p = as_matrix(prepare(shift), len(occupations), coupled.d)
        agree(p, p.T, 1e-9)
        assert np.linalg.eigvalsh(p)[0] > 0.0


@NOISES
@pytest.mark.parametrize("size", [22, 23, 100])
def test_one_block_of_everything_is_the_inverse(size, coupled, noise, irregular, definition):
    occupations = Trapezoid()(irregular(coupled.d))
    assert len(occupations) == 22
    prepare = BlockJacobi(size).prepare(gramian_of(coupled.kernel, occupations, noise))
    for shift in (1.0, 1e-3):
        whole = system(
            coupled.kernel, occupations, noise.covariance(occupations), shift, definition
        )
        agree(as_matrix(prepare(shift), 22, coupled.d) @ whole, np.eye(22 * coupled.d))


@NOISES
@pytest.mark.parametrize("size", [1, 4, 7])
def test_blocks_are_those_of_the_matrix(size, coupled, noise, irregular, definition):
    occupations = Trapezoid()(irregular(coupled.d))
    whole = system(coupled.kernel, occupations, noise.covariance(occupations), 0.01, definition)
    block = np.repeat(np.arange(22) // size, coupled.d)
    expected = np.linalg.inv(np.where(block[:, None] == block, whole, 0.0))
    prepare = BlockJacobi(size).prepare(gramian_of(coupled.kernel, occupations, noise))
    agree(as_matrix(prepare(0.01), 22, coupled.d), expected)


def test_a_singular_block_is_left_as_it_is():
    ones = np.ones((4, 2))
    identity = sp.csr_array(sp.eye_array(4, format="csr"))
    gramian = Gramian(Separable(Constant()), ones, identity, identity)
    apply = BlockJacobi(2).prepare(gramian)(0.0)  # blocks of ones
    np.testing.assert_array_equal(apply(ones), ones)


@NOISES
def test_all_nodes_give_the_inverse(coupled, noise, irregular, definition):
    occupations = Trapezoid()(irregular(coupled.d))
    gramian = gramian_of(coupled.kernel, occupations, noise)
    prepare = NystromPreconditioner(len(occupations.nodes) * coupled.d).prepare(gramian)
    for shift in (1.0, 1e-2):
        whole = system(
            coupled.kernel, occupations, noise.covariance(occupations), shift, definition
        )
        got = as_matrix(prepare(shift), len(occupations), coupled.d)
        agree(got @ whole, np.eye(len(whole)), 1e-5)


@NOISES
@pytest.mark.parametrize("rank", [1, 9, 30])
def test_some_nodes_give_their_part_of_the_matrix(rank, coupled, noise, irregular, definition):
    """B K^+ B^T + shift Sigma with B = W K(nodes, centres)."""
    occupations = Trapezoid()(irregular(coupled.d))
    d, shift = coupled.d, 0.1
    count, q = occupations.weights.shape
    rng = np.random.default_rng(0)
    centres = rng.choice(q, min(max(1, rank // d), q), replace=False)
    every = sp.csr_array(sp.eye_array(q, format="csr"))
    g = definition(coupled.kernel, occupations.nodes, every)
    b = np.tensordot(occupations.weights.toarray(), g[:, :, centres], axes=1)
    b = b.reshape(count * d, -1)
    inner = g[centres][:, :, centres].reshape(b.shape[1], -1)
    sigma = np.kron(noise.covariance(occupations).toarray(), np.eye(d))
    expected = np.linalg.inv(b @ np.linalg.pinv(inner, rcond=1e-13) @ b.T + shift * sigma)
    prepare = NystromPreconditioner(rank).prepare(gramian_of(coupled.kernel, occupations, noise))
    agree(as_matrix(prepare(shift), count, d), expected, 1e-4)


def test_one_seed_gives_one_choice_of_nodes(irregular):
    occupations = Trapezoid()(irregular(2))
    gramian = gramian_of(CurlFree(Gaussian(1.0)), occupations, White())

    def matrix(seed):
        return as_matrix(NystromPreconditioner(8, seed).prepare(gramian)(0.1), 22, 2)

    np.testing.assert_array_equal(matrix(3), matrix(3))
    assert np.abs(matrix(3) - matrix(4)).max() > 1e-3


@pytest.mark.parametrize("rule", [ForwardDifference(), WeakForm(stride=4)], ids=repr)
def test_nodes_that_few_rows_touch(rule, irregular, definition):
    occupations = rule(irregular(2, (20, 2, 31)))
    kernel, noise = DivergenceFree(Matern(2.5, 1.0)), SnapshotNoise()
    whole = system(kernel, occupations, noise.covariance(occupations), 0.1, definition)
    gramian = gramian_of(kernel, occupations, noise)
    for preconditioner in (NystromPreconditioner(1000), BlockJacobi(1000)):
        got = as_matrix(preconditioner.prepare(gramian)(0.1), len(occupations), 2)
        agree(got @ whole, np.eye(len(whole)), 1e-5)


def test_a_kernel_that_vanishes_leaves_the_noise():
    """Linear kernels at the origin, where constant data is once it is standardised."""
    zeros, identity = np.zeros((4, 2)), sp.csr_array(sp.eye_array(4, format="csr"))
    gramian = Gramian(Separable(Linear()), zeros, identity, identity)
    for preconditioner in (NystromPreconditioner(), BlockJacobi(3)):
        got = as_matrix(preconditioner.prepare(gramian)(0.5), 4, 2)
        np.testing.assert_allclose(got, 2.0 * np.eye(8))


def test_a_singular_covariance_needs_blocks(irregular):
    occupations = Trapezoid()(irregular(2, (12,)))
    singular = sp.csr_array(np.ones((11, 11)))
    kernel = DivergenceFree(Matern(2.5, 1.0))
    gramian = Gramian(kernel, occupations.nodes, occupations.weights, singular)
    with pytest.raises(vf.DataError, match=r"Dense\(\) or BlockJacobi\(\)"):
        NystromPreconditioner().prepare(gramian)
    p = as_matrix(BlockJacobi(4).prepare(gramian)(0.1), 11, 2)
    assert np.linalg.eigvalsh(p)[0] > 0.0


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (BlockJacobi, {"size": 0}),
        (NystromPreconditioner, {"rank": 0}),
        (NystromPreconditioner, {"random_state": -1}),
    ],
)
def test_settings_are_checked(make, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        make(**wrong)
    with pytest.raises(TypeError, match=next(iter(wrong))):
        make(**dict.fromkeys(wrong, 1.5))


def test_preconditioners_are_settings():
    solver = ConjugateGradient(preconditioner=BlockJacobi(7))
    assert solver == ConjugateGradient(preconditioner=BlockJacobi(size=7))
    assert solver.replace(preconditioner=NystromPreconditioner(5)).preconditioner.rank == 5
    for wrong in (BlockJacobi, "jacobi", 3):
        with pytest.raises(TypeError, match="preconditioner must be a Preconditioner"):
            ConjugateGradient(preconditioner=wrong)


@NOISES
@pytest.mark.parametrize("preconditioner", [BlockJacobi(6), NystromPreconditioner(12)], ids=repr)
def test_torch_agrees(preconditioner, coupled, noise, irregular):
    torch = pytest.importorskip("torch")
    occupations = Trapezoid()(irregular(coupled.d))
    covariance = noise.covariance(occupations)
    one = preconditioner.prepare(gramian_of(coupled.kernel, occupations, noise))(0.1)
    nodes = torch.tensor(occupations.nodes)
    gramian = Gramian(coupled.kernel, nodes, occupations.weights, covariance)
    other = preconditioner.prepare(gramian)(0.1)
    r = np.random.default_rng(1).normal(size=occupations.targets.shape)
    got = other(torch.tensor(r))
    assert isinstance(got, torch.Tensor)
    agree(got.numpy(), one(r), 1e-6)
