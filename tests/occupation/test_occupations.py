"""What holds for every rule."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from vectorfield.occupation import Lagrange, Occupations, Spline, Trapezoid, Windows
from vectorfield.trajectories import Trajectories


def sample_owner(data: Trajectories) -> np.ndarray:
    return np.repeat(np.arange(len(data)), data.lengths)


def test_shapes_and_order(rule, ragged):
    data = ragged()
    occupations = rule(data)
    n, nodes = len(occupations), occupations.nodes.shape[0]
    assert isinstance(occupations, Occupations)
    assert occupations.n_observations == n
    assert occupations.weights.shape == (n, nodes)
    assert occupations.differences.shape == (n, len(data.times))
    assert occupations.targets.shape == (n, data.d)
    assert occupations.d == data.d
    assert occupations.node_owner.shape == (nodes,)
    assert (np.diff(occupations.owner) >= 0).all()
    assert (np.diff(occupations.node_owner) >= 0).all()
    assert set(occupations.owner) == set(range(len(data)))  # nobody is left out
    for matrix in (occupations.weights, occupations.differences, occupations.covariance):
        assert isinstance(matrix, sp.csr_array)
        assert matrix.has_canonical_format


def test_targets_are_linear_in_the_snapshots(rule, ragged):
    data = ragged()
    occupations = rule(data)
    expected = occupations.differences.toarray() @ data.states
    np.testing.assert_allclose(occupations.targets, expected, rtol=0, atol=1e-12)


def test_constant_states_give_zero(rule, ragged):
    differences = rule(ragged()).differences
    size = abs(differences).sum(axis=1)
    assert (size > 0).all()
    assert (abs(differences.sum(axis=1)) <= 1e-13 * size).all()


def test_durations_are_what_a_constant_field_gives(rule, ragged):
    """x = c t has f = c: W 1 c = D t c, and W 1 is the duration."""
    data = ragged()
    occupations = rule(data)
    ones = np.ones(occupations.weights.shape[1])
    np.testing.assert_allclose(occupations.durations, occupations.weights @ ones, rtol=1e-14)
    np.testing.assert_allclose(
        occupations.durations, occupations.differences @ data.times, rtol=1e-10
    )
    assert (occupations.durations > 0).all()


def test_no_row_couples_two_trajectories(rule, ragged):
    data = ragged()
    occupations = rule(data)
    weights, differences = occupations.weights.tocoo(), occupations.differences.tocoo()
    owner = occupations.owner
    np.testing.assert_array_equal(owner[weights.row], occupations.node_owner[weights.col])
    np.testing.assert_array_equal(owner[differences.row], sample_owner(data)[differences.col])


def test_rows_move_forward_in_time(rule, ragged):
    occupations = rule(ragged((40,)))
    for matrix in (occupations.weights, occupations.differences):
        first = matrix.indices[matrix.indptr[:-1]]
        last = matrix.indices[matrix.indptr[1:] - 1]
        assert (np.diff(first) >= 0).all()
        assert (np.diff(last) >= 0).all()


def test_many_trajectories_are_as_one_by_one(rule, ragged):
    data = ragged()
    together = rule(data)
    alone = [rule(data[[i]]) for i in range(len(data))]
    owners = [np.full(len(one), i) for i, one in enumerate(alone)]
    np.testing.assert_array_equal(together.owner, np.concatenate(owners))
    for name in ("nodes", "targets", "durations"):
        expected = np.concatenate([getattr(one, name) for one in alone])
        np.testing.assert_allclose(getattr(together, name), expected, rtol=0, atol=1e-12)
    for name in ("weights", "differences", "covariance"):
        expected = sp.block_diag([getattr(one, name) for one in alone]).toarray()
        actual = getattr(together, name).toarray()
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)


def test_time_has_no_origin(rule, ragged):
    data = ragged()
    later = dataclasses.replace(data, times=data.times + 1000.0)
    now, then = rule(data), rule(later)
    np.testing.assert_allclose(then.weights.toarray(), now.weights.toarray(), rtol=0, atol=1e-9)
    np.testing.assert_allclose(then.targets, now.targets, rtol=0, atol=1e-9)


def test_units_of_time_scale_the_rows(rule, ragged):
    """With t -> c t, W / duration stays and y / duration is divided by c."""
    data = ragged()
    slow = dataclasses.replace(data, times=1e6 * data.times)
    now, then = rule(data), rule(slow)
    for name, factor in (("weights", 1.0), ("differences", 1e6)):
        rates = [
            (getattr(o, name).toarray().T / o.durations).T * scale
            for o, scale in ((now, 1.0), (then, factor))
        ]
        np.testing.assert_allclose(rates[1], rates[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("d", [1, 4])
def test_two_samples_give_the_line(rule, d):
    x = np.arange(2.0 * d).reshape(2, d) ** 2
    occupations = rule(Trajectories.from_arrays([x], [[1.0, 1.5]]))
    assert len(occupations) == 1
    slope = occupations.targets / occupations.durations[:, None]
    np.testing.assert_allclose(slope, (x[1:] - x[:1]) / 0.5, rtol=1e-12)
    shares = (occupations.weights.toarray() / occupations.durations[:, None]).ravel()
    assert shares.sum() == pytest.approx(1.0, rel=1e-14)
    if type(rule).__name__ not in ("ForwardDifference",):
        np.testing.assert_allclose(shares, shares[::-1], rtol=0, atol=1e-13)  # symmetric


def test_inputs_are_untouched_and_results_immutable(rule, ragged):
    made = ragged()
    arrays = [made.states.copy(), made.times.copy(), made.offsets.copy()]
    data = dataclasses.replace(made, states=arrays[0], times=arrays[1], offsets=arrays[2])
    occupations = rule(data)
    for array, original in zip(arrays, (made.states, made.times, made.offsets), strict=True):
        np.testing.assert_array_equal(array, original)
        assert array.flags.writeable
    with pytest.raises(dataclasses.FrozenInstanceError):
        occupations.targets = None
    with pytest.raises(ValueError, match="read-only"):
        occupations.targets[0] = 0.0


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")  # PyTorch announces its sparse tensors
def test_torch_gives_the_same_numbers(rule, ragged):
    torch = pytest.importorskip("torch")
    data = ragged()
    xs, ts = data.to_arrays()
    tensors = Trajectories.from_arrays([torch.tensor(np.array(x)) for x in xs], ts)
    expected, occupations = rule(data), rule(tensors)
    assert isinstance(occupations.nodes, torch.Tensor)
    assert isinstance(occupations.targets, torch.Tensor)
    assert occupations.targets.dtype == torch.float64
    np.testing.assert_allclose(occupations.nodes.numpy(), expected.nodes, rtol=0, atol=1e-14)
    np.testing.assert_allclose(occupations.targets.numpy(), expected.targets, rtol=0, atol=1e-12)
    for name in ("weights", "differences"):
        difference = getattr(occupations, name) - getattr(expected, name)
        assert abs(difference).max() == 0.0


def test_repr(ragged):
    occupations = Trapezoid()(ragged((2, 5), d=2))
    assert repr(occupations) == "Occupations(observations=5, nodes=7, d=2)"


def test_rules_are_settings(rule):
    assert clone(rule) == rule
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert hash(rule) == hash(type(rule)(**rule.get_params(deep=False)))
    with pytest.raises(dataclasses.FrozenInstanceError):
        rule.samples = 3


def test_nested_settings_are_replaced_by_name():
    windows = Windows(samples=4, rule=Lagrange(4))
    assert windows.replace(rule__samples=6) == Windows(samples=4, rule=Lagrange(6))
    assert windows.replace(rule=Spline()).rule == Spline()
