"""Fits of whole windows: derivatives against differences, exact recovery, and what they gain."""

import dataclasses
import itertools

import numpy as np
import pytest

import vectorfield as vf
from vectorfield.kernels import (
    Gaussian,
    HamiltonianFeatures,
    Matern,
    Monomials,
    Nystrom,
    RandomFourier,
)
from vectorfield.occupation import Lagrange, SnapshotNoise
from vectorfield.shooting.normal import assemble, best_shift, best_starts, factor
from vectorfield.shooting.paths import EIGHTH, follow, linearise
from vectorfield.shooting.windows import cut


def swings(count=6, samples=25, noise=0.0, seed=0, irregular=False):
    """Trajectories of the pendulum and the times."""
    rng = np.random.default_rng(seed)
    starts = rng.uniform([-1.5, -3.0], [1.5, 3.0], size=(count, 2))
    if irregular:
        ts = [np.sort(rng.uniform(0.0, 1.5, size=samples - i % 6)) for i in range(count)]
    else:
        ts = [0.06 * np.arange(samples)] * count
    run = vf.simulate(vf.systems.Pendulum(), starts, ts, rtol=1e-11, atol=1e-11)
    xs = [x + noise * rng.normal(size=x.shape) for x in run.x]
    return vf.Trajectories.from_arrays(xs, ts)


def fitted(kernel, data, ridge=1e-8):
    return vf.MOCK(kernel, ridge, rule=Lagrange(4), standardize=False).fit(data).field_.expansion


KERNELS = {
    "nystrom": Nystrom(Gaussian(1.5), 12),
    "monomials": Monomials(3),
    "sum": Monomials(1) + 0.5 * RandomFourier(Matern(2.5, 1.0), 10),
    "hamiltonian": HamiltonianFeatures(RandomFourier(Gaussian(1.5), 14)),
}


@pytest.mark.parametrize("samples", [2, 4, 7, None])
def test_windows_hold_every_step_once(samples):
    data = swings(4, 11, irregular=True)
    windows = cut(data, samples)
    steps = [
        (int(a), int(b)) for row in windows.places for a, b in itertools.pairwise(row) if a != b
    ]
    expected = [
        (k, k + 1)
        for begin, end in zip(data.offsets[:-1], data.offsets[1:], strict=True)
        for k in range(begin, end - 1)
    ]
    assert steps == expected
    sizes = windows.present.sum(axis=1)
    if samples is None:
        np.testing.assert_array_equal(sizes, data.lengths)
    else:
        assert sizes.max() <= samples
    np.testing.assert_allclose(
        windows.steps[windows.present[:, 1:] > 0],
        np.concatenate([np.diff(t) for t, _ in data]),
    )
    assert (windows.steps[windows.present[:, 1:] == 0] == 0).all()
    np.testing.assert_allclose(
        windows.merged(windows.gathered(data.states), len(data.states)), data.states
    )


@pytest.mark.parametrize("substeps", [1, 3])
def test_paths_are_of_fourth_order(substeps):
    field, start = vf.systems.Pendulum(), np.array([[1.0, 0.5], [-0.3, 2.0]])
    exact = vf.simulate(field, start, [0.0, 1.2], rtol=1e-12, atol=1e-12).x[:, 1]
    errors = []
    for count in (6, 12, 24):
        steps = np.full((2, count), 1.2 / count)
        errors.append(np.abs(follow(field, start, steps, substeps)[:, -1] - exact).max())
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert (np.abs(orders - 4.0) < 0.4).all()


def test_paths_of_eighth_order():
    field, start = vf.systems.Pendulum(), np.array([[1.0, 0.5], [-0.3, 2.0]])
    exact = vf.simulate(field, start, [0.0, 6.0], rtol=1e-13, atol=1e-13).x[:, 1]
    errors = []
    for count in (6, 12, 24):
        steps = np.full((2, count), 6.0 / count)
        errors.append(np.abs(follow(field, start, steps, scheme=EIGHTH)[:, -1] - exact).max())
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert (orders > 7.0).all()
    halves = follow(field, start, np.full((2, 6), 1.0), 2, EIGHTH)
    twice = follow(field, start, np.full((2, 12), 0.5), 1, EIGHTH)
    np.testing.assert_allclose(halves, twice[:, ::2], rtol=1e-13)


@pytest.mark.parametrize("substeps", [1, 2])
def test_derivatives_of_a_step_against_differences(substeps):
    field = vf.systems.Pendulum()
    start, steps = np.array([[1.0, 0.5], [-0.3, 2.0]]), np.array([[0.2, 0.1], [0.15, 0.0]])
    found = linearise(field, start, steps, substeps)
    np.testing.assert_allclose(found.states, follow(field, start, steps, substeps), rtol=1e-14)
    eps = 1e-6
    for j in range(2):
        move = eps * np.eye(2)[j]
        ends = [follow(field, start + sign * move, steps, substeps)[:, -1] for sign in (1, -1)]
        whole = found.carry[:, 1] @ found.carry[:, 0]
        np.testing.assert_allclose((ends[0] - ends[1]) / (2 * eps), whole[:, :, j], atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("substeps", [1, 2])
def test_system_against_differences_of_the_paths(kernel, substeps):
    data = swings(3, 9, noise=0.05, irregular=True)
    expansion = fitted(kernel, data, 1e-4)
    windows = cut(data, 5)
    starts = windows.observed[:, 0] + 0.02
    weights = np.array([1.0, 0.4])
    system = assemble(
        expansion, expansion.features, windows, starts, weights=weights, substeps=substeps
    )
    c = expansion.coefficients
    flat = c.T.reshape(-1) if c.ndim == 2 else c

    def residuals(flat, starts):
        shaped = flat.reshape(c.shape[::-1]).T if c.ndim == 2 else flat
        moved = dataclasses.replace(expansion, coefficients=shaped)
        paths = follow(moved, starts, windows.steps, substeps)
        return (windows.observed - paths) * weights * windows.present[:, :, None]

    eps = 1e-5
    columns = []
    for k in range(len(flat)):
        move = eps * np.eye(len(flat))[k]
        both = [residuals(flat + sign * move, starts) for sign in (1, -1)]
        columns.append(-(both[0] - both[1]) / (2 * eps))
    for j in range(2):
        move = eps * np.eye(2)[j]
        both = [residuals(flat, starts + sign * move) for sign in (1, -1)]
        columns.append(-(both[0] - both[1]) / (2 * eps))
    jacobian = np.stack(columns, axis=-1)  # (n, L, d, P + d)
    right = residuals(flat, starts)
    matrix, rhs = 0.0, 0.0
    for rows, r in zip(jacobian, right, strict=True):
        b, a = (
            rows.reshape(-1, len(columns))[:, : len(flat)],
            rows.reshape(-1, len(columns))[:, -2:],
        )
        rest = np.eye(len(a)) - a @ np.linalg.pinv(a)
        matrix, rhs = matrix + b.T @ rest @ b, rhs + b.T @ rest @ r.reshape(-1)
    size = np.abs(matrix).max()
    np.testing.assert_allclose(system.matrix, matrix, atol=1e-6 * size)
    np.testing.assert_allclose(system.rhs, rhs, atol=1e-6 * np.abs(rhs).max())
    # the starts that go with a change of the coefficients are the best for it
    change = 0.01 * np.random.default_rng(0).normal(size=len(flat))
    for rows, r, found in zip(jacobian, right, system.starts(change), strict=True):
        flatrows = rows.reshape(-1, len(columns))
        left = r.reshape(-1) - flatrows[:, : len(flat)] @ change
        best = np.linalg.lstsq(flatrows[:, -2:], left, rcond=None)[0]
        np.testing.assert_allclose(found, best, atol=1e-6)


def test_the_best_shift_is_where_the_likelihood_is_highest():
    data = swings(5, 12, noise=0.05)
    expansion = fitted(KERNELS["nystrom"], data, 1e-4)
    windows = cut(data, 6)
    starts, ones = windows.observed[:, 0], np.ones(2)
    system = assemble(expansion, expansion.features, windows, starts, weights=ones, substeps=1)
    flat = expansion.coefficients.T.reshape(-1)
    count = (windows.count - len(windows)) * 2
    shift = best_shift(system, flat, count, 1e-3)
    assert shift == best_shift(system, flat, count, shift)  # where it stays

    def likelihood(shift):  # of the targets B c + r, white noise and prior covariance I / shift
        values, _basis = np.linalg.eigh(system.matrix)
        solved = np.linalg.solve(
            system.matrix + shift * np.eye(len(flat)), system.rhs + system.matrix @ flat
        )
        change = solved - flat
        least = system.misfit - 2 * system.rhs @ change + change @ system.matrix @ change
        least += shift * solved @ solved
        return -0.5 * (np.log1p(np.maximum(values, 0.0) / shift).sum() + count * np.log(least))

    assert likelihood(shift) > max(likelihood(3.2 * shift), likelihood(shift / 3.2))
    assert factor(-np.eye(2), 0.5) is None


def test_starts_of_held_windows_are_found():
    data, field = swings(4, 20, noise=0.05), vf.systems.Pendulum()
    clean = swings(4, 20)
    windows = cut(data, None)
    starts = windows.observed[:, 0]
    for _ in range(3):
        starts = best_starts(field, windows, starts, np.ones(2), 2)
    truth = cut(clean, None).observed[:, 0]
    assert np.abs(starts - truth).mean() < 0.6 * np.abs(windows.observed[:, 0] - truth).mean()


def test_a_field_of_the_space_is_recovered_from_coarse_clean_samples():
    matrix = np.array([[-0.3, 1.5], [-1.5, -0.1]])
    ts = 0.5 * np.arange(12)  # far too coarse for any rule
    starts = [[1.0, 0.0], [0.0, 2.0], [1.0, -1.0]]
    xs = vf.simulate(vf.systems.Linear(matrix), starts, ts, rtol=1e-12, atol=1e-12).x
    data = vf.Trajectories.from_arrays(list(xs), ts)
    options = {"noise": SnapshotNoise(), "standardize": False}
    plain = vf.MOCK(Monomials(1), 1e-12, **options).fit(data)
    refined = vf.MOCK(Monomials(1), 1e-12, refine=vf.Shooting(6), **options).fit(data)
    x = np.random.default_rng(1).normal(size=(50, 2))
    before, after = (np.abs(m.predict(x) - x @ matrix.T).max() for m in (plain, refined))
    assert after < 1e-3 < 2e-2 < before  # what is left is that of Runge-Kutta in 8 substeps


def thinned(data, seed=0):
    """Every trajectory without two samples in five: irregular times."""
    rng = np.random.default_rng(seed)
    kept = [np.sort(rng.choice(len(t), 3 * len(t) // 5, replace=False)) for t, _ in data]
    xs = [x[rows] for rows, (_, x) in zip(kept, data, strict=True)]
    return vf.Trajectories.from_arrays(
        xs, [t[rows] for rows, (t, _) in zip(kept, data, strict=True)]
    )


@pytest.mark.parametrize("irregular", [False, True])
def test_noise_is_found_and_the_field_gains(irregular):
    sets = vf.datasets.load("nfhn")
    data, clean = sets.train[:20], sets.clean.train[:20]
    if irregular:
        data, clean = thinned(data), thinned(clean)
    kernel = Nystrom(Matern(5.5, 0.7), 80)
    options = {"noise": SnapshotNoise()}
    plain = vf.MOCK(kernel, 1e-6, **options).fit(data)
    refined = vf.MOCK(kernel, 1e-6, refine=vf.Shooting(15), **options).fit(data)
    truth = sets.field(clean.states)
    errors = [np.linalg.norm(m.predict(clean.states) - truth) for m in (plain, refined)]
    assert errors[1] < 0.8 * errors[0]
    np.testing.assert_allclose(refined.noise_, 0.12, rtol=0.1)
    left = np.abs(refined.smoothed_.states - clean.states).mean()
    assert left < 0.6 * np.abs(data.states - clean.states).mean()
    history = np.asarray(refined.refined_.history)
    assert refined.refined_.converged
    assert 0 < refined.refined_.freedom < 160
    assert len(history) > 1
    assert refined.residuals_.shape == plain.residuals_.shape


def test_with_a_prior_only_the_rest_is_learned():
    data = swings(10, 20, noise=0.05)
    prior = vf.prior.Known(vf.systems.Pendulum())
    model = vf.MOCK(
        Nystrom(Gaussian(2.0), 40), 1e-3, noise=SnapshotNoise(), prior=prior, refine=vf.Shooting(10)
    ).fit(data)
    truth = vf.systems.Pendulum()(data.states)
    assert np.abs(model.predict(data.states) - truth).max() < 0.1 * np.abs(truth).max()


def test_short_trajectories_and_one_coordinate():
    rng = np.random.default_rng(0)
    xs = [np.array([[a], [a * np.exp(-0.5)]]) + 0.01 * rng.normal(size=(2, 1)) for a in (1, 2, 3.0)]
    model = vf.MOCK(Monomials(1), 1e-6, noise=SnapshotNoise(), refine=vf.Shooting(None))
    model.fit([*xs, np.exp(-0.5 * np.arange(5.0))[:, None]], [[0.0, 0.5]] * 3 + [np.arange(5) / 2])
    assert abs(model.predict([[1.0]])[0, 0] + 1.0) < 0.1


def test_the_same_twice():
    data = swings(5, 20, noise=0.05)
    model = vf.MOCK(Nystrom(Gaussian(2.0), 20), 1e-5, noise=SnapshotNoise(), refine=vf.Shooting(8))
    first = model.fit(data).predict(data.states)
    np.testing.assert_array_equal(model.fit(data).predict(data.states), first)
    assert not hasattr(model.set_params(refine=None).fit(data), "smoothed_")


def test_kernels_without_features_are_refused():
    with pytest.raises(vf.DataError, match=r"Shooting needs a kernel with features.*Nystrom"):
        vf.MOCK(Gaussian(1.0), 1e-6, refine=vf.Shooting()).fit(swings(2, 5))
    with pytest.raises(TypeError, match="refine must be a Refinement"):
        vf.MOCK(Monomials(1), 1e-6, refine="yes").fit(swings(2, 5))
    for wrong in ({"samples": 1}, {"iterations": 0}, {"tolerance": 0.0}):
        with pytest.raises(ValueError, match="must be"):
            vf.Shooting(**wrong)
