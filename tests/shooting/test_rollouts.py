"""Refinement on rollouts: derivatives against differences, what stays, what gains, what repeats."""

import dataclasses
import itertools

import numpy as np
import pytest

import vectorfield as vf
from vectorfield.kernels import (
    Gaussian,
    HamiltonianFeatures,
    Laplace,
    Linear,
    Matern,
    Monomials,
    Nystrom,
    Polynomial,
    RandomFourier,
    Separable,
)
from vectorfield.shooting.adjoint import ordered, record
from vectorfield.shooting.adjustable import adjustable, pulled_by
from vectorfield.shooting.goal import FAR, LOST, Goal
from vectorfield.shooting.normal import _sensitivities
from vectorfield.shooting.paths import follow, linearise
from vectorfield.shooting.rollouts import _Run
from vectorfield.shooting.windows import cut, overlapping


def swings(count=6, samples=25, noise=0.0, seed=0, irregular=False):
    """Trajectories of the pendulum."""
    rng = np.random.default_rng(seed)
    starts = rng.uniform([-1.5, -3.0], [1.5, 3.0], size=(count, 2))
    if irregular:
        ts = [np.sort(rng.uniform(0.0, 1.5, size=samples - i % 6)) for i in range(count)]
    else:
        ts = [0.06 * np.arange(samples)] * count
    run = vf.simulate(vf.systems.Pendulum(), starts, ts, rtol=1e-11, atol=1e-11)
    xs = [x + noise * rng.normal(size=x.shape) for x in run.x]
    return vf.Trajectories.from_arrays(xs, ts)


def fitted(kernel, data, ridge=1e-4):
    return vf.MOCK(kernel, ridge, standardize=False).fit(data).field_.expansion


KERNELS = {
    "nystrom": Nystrom(Gaussian(1.5), 12),
    "monomials": Monomials(3),
    "sum": Monomials(1) + 0.5 * RandomFourier(Matern(2.5, 1.0), 10),
    "hamiltonian": HamiltonianFeatures(RandomFourier(Gaussian(1.5), 14)),
    "nodes": Gaussian(1.5),
    "algebra": Linear() * Gaussian(2.0) + 0.5 * Polynomial(2),
    "rough": Laplace(2.0),
    "coupled": Separable(Matern(2.5, 1.0), [[1.0, 0.5], [0.5, 2.0]]),
    "singular": Separable(Gaussian(1.5), [[1.0, 1.0], [1.0, 1.0]]),
}
DRIFTS = {
    "none": None,
    "mean": vf.prior.MeanReversion(0.5, np.array([0.2, -0.1])),
    "local": vf.prior.KernelReversion(
        0.7, np.random.default_rng(1).normal(size=(8, 2)), np.array([0.6, 0.9])
    ),
    "known": vf.prior.KnownDrift(vf.systems.Pendulum()),
}


def run_of(kernel, data, drift=None, *, samples=5, starts=2, ridge=0.0, weights=(1.0, 0.4)):
    expansion = fitted(kernel, data)
    windows, active = ordered(overlapping(data, samples, starts))
    field = adjustable(expansion, drift, 15)
    run = _Run(expansion, field, Goal(windows, active, np.array(weights)), ridge)
    run._substeps = 2
    return run


@pytest.mark.parametrize("samples", [2, 4, None])
@pytest.mark.parametrize("starts", [1, 3])
def test_overlapping_windows_hold_stretches_of_the_data(samples, starts):
    data = swings(4, 11, irregular=True)
    windows = overlapping(data, samples, starts)
    np.testing.assert_array_equal(windows.observed, data.states[windows.places])
    owners = np.repeat(np.arange(len(data)), data.lengths)
    assert (owners[windows.places] == owners[windows.places[:, :1]]).all()
    assert len(np.unique(windows.places[:, 0])) == len(windows)  # no start twice
    covered = {(a, b) for row in windows.places.tolist() for a, b in itertools.pairwise(row)}
    assert {(k, k + 1) for k in range(10)} <= covered
    if starts == 1 and samples is None:
        np.testing.assert_array_equal(windows.places, cut(data, None).places)
    if samples is not None:
        assert windows.present.sum(axis=1).max() == samples
    sorted_, active = ordered(windows)
    sizes = sorted_.present.sum(axis=1)
    assert (np.diff(sizes) <= 0).all()
    for k, a in enumerate(active):
        assert (sorted_.present[:a, k + 1] == 1).all()
        assert (sorted_.present[a:, k + 1] == 0).all()


@pytest.mark.parametrize("substeps", [1, 3])
def test_recorded_paths_are_those_that_are_followed(substeps):
    data = swings(5, 12, irregular=True)
    windows, active = ordered(overlapping(data, None, 2))
    field = adjustable(fitted(KERNELS["nystrom"], data), None, 1)
    tape = record(field, windows.observed[:, 0], windows.steps, active, substeps)
    paths = follow(field, windows.observed[:, 0], windows.steps, substeps)
    np.testing.assert_allclose(tape.states, paths, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("drift", DRIFTS.values(), ids=DRIFTS)
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_transposed_jacobians_are_those_of_the_jacobian(kernel, drift):
    data = swings(3, 9, noise=0.05)
    expansion = fitted(kernel, data)
    field = adjustable(expansion, drift, 10)
    field.move(np.zeros(field.shape))
    rng = np.random.default_rng(0)
    x, v = rng.normal(size=(7, 2)), rng.normal(size=(7, 2))
    jacobian = expansion.jacobian(x)
    value = expansion(x)
    if drift is not None:
        jacobian, value = jacobian + drift.jacobian(x), value + drift(x)
        np.testing.assert_allclose(
            pulled_by(drift, x, v), np.einsum("nij,ni->nj", drift.jacobian(x), v), atol=1e-12
        )
    np.testing.assert_allclose(field(x), value, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(
        field.pull(x, v), np.einsum("nij,ni->nj", jacobian, v), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_coordinates_have_the_kernel_s_norm_and_give_an_expansion(kernel):
    data = swings(3, 9, noise=0.05)
    expansion = fitted(kernel, data)
    field = adjustable(expansion, None, 10)
    g = 0.1 * np.random.default_rng(0).normal(size=field.shape)
    if kernel is KERNELS["singular"]:
        g = g @ np.full((2, 2), 0.5)  # what a kernel cannot change has no norm
    moved = field.expansion(g)
    field.move(g)
    x = np.random.default_rng(1).normal(size=(6, 2))
    np.testing.assert_allclose(moved(x), field(x), rtol=1e-8, atol=1e-8)
    change = dataclasses.replace(
        moved, coefficients=np.asarray(moved.coefficients) - np.asarray(expansion.coefficients)
    )
    assert change.norm == pytest.approx(np.linalg.norm(g), rel=1e-5)


@pytest.mark.parametrize("drift", ["none", "local"])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_gradient_against_differences(kernel, drift):
    data = swings(3, 9, noise=0.05, irregular=True)
    run = run_of(kernel, data, DRIFTS[drift], ridge=1e-3)
    rng = np.random.default_rng(0)
    g = 0.05 * rng.normal(size=run._field.shape)
    value, slope = run.sloped(g)
    assert np.isfinite(value)
    eps = 2e-6
    for _ in range(4):
        way = rng.normal(size=g.shape)
        way /= np.linalg.norm(way)
        ends = [run.sloped(g + sign * eps * way)[0] for sign in (1, -1)]
        expected = (ends[0] - ends[1]) / (2 * eps)
        assert np.sum(slope * way) == pytest.approx(expected, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("kernel", [KERNELS["nystrom"], KERNELS["hamiltonian"]])
@pytest.mark.parametrize("substeps", [1, 2])
def test_gradient_against_the_sensitivities_of_gauss_newton(kernel, substeps):
    data = swings(4, 9, noise=0.05, irregular=True)
    expansion = fitted(kernel, data)
    windows, active = ordered(overlapping(data, 6, 2))
    field = adjustable(expansion, None, 1)
    slopes = np.random.default_rng(0).normal(size=windows.observed.shape)
    slopes *= windows.present[:, :, None]
    starts = windows.observed[:, 0]
    tape = record(field, starts, windows.steps, active, substeps)
    parts = list(tape.pull(field, slopes))
    points, weights = (np.concatenate([part[k].reshape(-1, 2) for part in parts]) for k in (0, 1))
    found = field.gather(points, weights)
    paths = linearise(expansion, starts, windows.steps, substeps)
    moved, _ = _sensitivities(expansion.features, paths, slice(0, len(starts)))
    flat = np.einsum("nkd,nkdp->p", slopes, moved)
    expected = flat.reshape(2, -1).T if found.ndim == 2 else flat
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_the_goal_is_err_over_null_until_paths_run_away():
    data = swings(4, 9)
    windows, active = ordered(overlapping(data, None, 1))
    goal = Goal(windows, active, np.array([1.0, 0.5]))
    rng = np.random.default_rng(0)
    paths = windows.observed + 0.3 * rng.normal(size=windows.observed.shape)
    paths[:, 0] = windows.observed[:, 0]
    by_hand = [
        vf.metrics.err(t, x * [1.0, 0.5], p * [1.0, 0.5])
        for (t, x), p in zip(data, paths, strict=True)
    ]
    null = [vf.metrics.null_err(t, x * [1.0, 0.5]) for t, x in data]
    np.testing.assert_allclose(goal.errors(paths), by_hand, rtol=1e-12)
    assert goal.value(paths) == pytest.approx(np.sum(by_hand) / np.sum(null), rel=0.01)
    assert goal.value(windows.observed) == 0.0

    def at(factor):  # one window that many null errors away
        far = windows.observed.copy()
        far[0] += factor * (far[0] - far[0, :1])
        return goal.sloped(far)

    for factor in (3.0, 20.0, 300.0):
        value, slopes = at(factor)
        more, _ = at(factor * 1.0001)
        way = windows.observed[0] - windows.observed[0, :1]
        assert np.sum(slopes[0] * way) == pytest.approx((more - value) / (1e-4 * factor), rel=1e-3)
        assert value < 2 * FAR * 8
    away = [paths.copy() for _ in range(3)]
    for far, size in zip(away, (np.inf, np.nan, 1e6 * LOST), strict=True):
        far[0, 4:] = size
    (value, slopes), *others = [goal.sloped(far) for far in away]
    assert np.isfinite(value)
    assert goal.value(paths) < value < 8 * FAR
    assert slopes[0, 1:4].any()
    assert not slopes[0, 4:].any()
    for other, found in others:
        assert other == value
        np.testing.assert_array_equal(found, slopes)


def model_of(data, refine=None, kernel=None, **options):
    options = {"ridge": 1e-4, "prior": vf.prior.MeanReverting(0.1)} | options
    return vf.MOCK(kernel or Nystrom(Gaussian(1.5), 30), refine=refine, **options).fit(data)


@pytest.mark.parametrize("kernel", [Nystrom(Gaussian(1.5), 30), Gaussian(1.5), Monomials(2)])
def test_no_iterations_leave_the_closed_form_to_the_last_bit(kernel):
    data = swings(6, 20, noise=0.05)
    plain, still = (model_of(data, refine, kernel) for refine in (None, vf.Rollouts(0)))
    np.testing.assert_array_equal(plain.predict(data.states), still.predict(data.states))
    np.testing.assert_array_equal(plain.residuals_, still.residuals_)
    assert plain.rkhs_norm_ == still.rkhs_norm_
    assert still.refined_.history == ()
    assert not hasattr(still, "smoothed_")


def test_a_heavy_ridge_holds_the_closed_form():
    data = swings(6, 20, noise=0.05)
    plain, free = (model_of(data, refine) for refine in (None, vf.Rollouts(15)))
    held = model_of(data, vf.Rollouts(15, ridge=1e6))
    moved, kept = (
        np.abs(m.predict(data.states) - plain.predict(data.states)).max() for m in (free, held)
    )
    assert 0 < kept < 1e-3 * moved


@pytest.mark.parametrize("kernel", [Nystrom(Gaussian(1.5), 30), Gaussian(1.5)])
def test_one_run_gives_the_fields_of_all_stopping_points(kernel):
    data = swings(6, 20, noise=0.05)
    plan = vf.Plan(kernel, 1e-4, prior=vf.prior.MeanReverting(0.1))
    prepared = plan.prepare(data)
    expansion = prepared.solve(1e-4).field.expansion
    scaled = dataclasses.replace(data, states=(data.states - prepared.shift) / prepared.scale)
    refine = vf.Rollouts(starts=2)
    path = refine.path(expansion, scaled, prepared.known, iterations=(12, 0, 3, 6))
    assert path[1] is expansion
    for iterations, found in zip((12, 0, 3, 6), path, strict=True):
        model = model_of(data, refine.replace(iterations=iterations), kernel)
        np.testing.assert_array_equal(model.field_.expansion.coefficients, found.coefficients)
        assert len(model.refined_.history) == (iterations + 1 if iterations else 0)
        assert not model.refined_.converged
    history = np.asarray(model_of(data, refine.replace(iterations=12), kernel).refined_.history)
    assert (np.diff(history) < 0).all()


@pytest.mark.parametrize("kernel", [Nystrom(Gaussian(1.5), 60), Gaussian(1.5)])
def test_coarse_steps_that_bias_a_regression_do_not_bias_rollouts(kernel):
    starts = np.random.default_rng(0).uniform([-1.0, -2.0], [1.0, 2.0], size=(20, 2))
    t = 0.3 * np.arange(10)  # seven samples to a swing
    xs = vf.simulate(vf.systems.Pendulum(), starts, t, rtol=1e-10, atol=1e-10).x
    data = vf.Trajectories.from_arrays(list(xs), t)
    plain, refined = (
        vf.MOCK(kernel, 1e-7, refine=refine).fit(data) for refine in (None, vf.Rollouts(60))
    )
    truth = vf.systems.Pendulum()(data.states)
    before, after = (np.linalg.norm(m.predict(data.states) - truth) for m in (plain, refined))
    assert after < 0.25 * before
    assert refined.score(data) > 0.98 > plain.score(data)


def reverting(count, seed):
    """Short trajectories back to zero, with noise in the dynamics and few samples."""
    rng = np.random.default_rng(seed)
    xs, ts = [], []
    for number in range(count):
        t = 0.5 * np.arange(3 + number % 5)
        x = [rng.normal(size=2)]
        for _ in t[1:]:
            x.append(np.exp(-0.15) * x[-1] + 0.35 * rng.normal(size=2))
        xs.append(np.array(x) + 0.2 * rng.normal(size=(len(t), 2)))
        ts.append(t)
    return vf.Trajectories.from_arrays(xs, ts)


def test_short_noisy_trajectories_are_not_the_worse_for_it():
    train, held = reverting(80, 0), reverting(200, 1)
    options = {"ridge": 1.0, "prior": vf.prior.MeanReverting()}
    plain = model_of(train, **options)
    refined = model_of(train, vf.Rollouts(10, starts=2), **options)
    assert refined.score(held) > plain.score(held) - 0.01
    assert refined.score(train) > plain.score(train)


def test_paths_that_run_away_are_brought_back():
    t = 0.5 * np.arange(9)
    xs = [a * np.exp(-0.5 * t)[:, None] for a in (1.0, 2.0, -1.5, 3.0)]
    data = vf.Trajectories.from_arrays(xs, t)
    kernel = Monomials(3)
    features = kernel.bind(data.states)
    wild = vf.kernels.FeatureExpansion(kernel, features, np.array([[0.0], [-0.3], [0.0], [0.1]]))
    paths = follow(wild, data.states[data.offsets[:-1]], cut(data, None).steps)
    assert not np.isfinite(paths).all()
    found = vf.Rollouts(80)(wild, data, 1.0)
    history = np.asarray(found.history)
    assert np.isfinite(history).all()
    assert history[-1] < 0.05 < 1.0 < history[0]
    assert np.isfinite(found.expansion(data.states)).all()


def test_models_are_saved_and_repeat(tmp_path):
    data = swings(6, 15, noise=0.05, irregular=True)
    refine = vf.Rollouts(6, samples=8, starts=2)
    model, again = (model_of(data, refine) for _ in range(2))
    np.testing.assert_array_equal(model.predict(data.states), again.predict(data.states))
    model.save(tmp_path / "model.vf")
    loaded = vf.load(tmp_path / "model.vf")
    np.testing.assert_array_equal(loaded(data.states), model.predict(data.states))
    assert "Rollouts(iterations=6" in loaded.info["refine"]
    assert model.get_params()["refine__iterations"] == 6
    plan = vf.Plan(Nystrom(Gaussian(1.5), 30), 1e-4, prior=vf.prior.MeanReverting(0.1))
    fitted = dataclasses.replace(plan, refine=refine).fit(data)
    np.testing.assert_array_equal(fitted.field(data.states), model.predict(data.states))
    nodes = fitted.field.expansion
    assert fitted.norm == pytest.approx(np.linalg.norm(nodes.coefficients))
    assert fitted.residuals.shape == model.residuals_.shape


def test_the_norm_of_a_refined_expansion_on_nodes():
    data = swings(4, 10, noise=0.05)
    kernel = Separable(Matern(2.5, 1.0), [[1.0, 0.5], [0.5, 2.0]])
    model = model_of(data, vf.Rollouts(3), kernel)
    expansion = model.field_.expansion
    gram = kernel.kernel(expansion.nodes)
    c = expansion.coefficients
    expected = np.sqrt(np.sum((gram @ c @ np.asarray(kernel.matrix)) * c))
    assert model.rkhs_norm_ == pytest.approx(expected)


def test_progress_is_reported():
    seen = []
    data = swings(3, 8)
    expansion = fitted(Nystrom(Gaussian(1.5), 10), data)
    with vf._progress.listening(lambda stage, done: seen.append((stage, done))):
        vf.Rollouts(4)(expansion, data, 1.0)
    assert seen == [("rollouts", k / 4) for k in (1, 2, 3, 4)]


def test_data_at_rest_change_nothing():
    data = vf.Trajectories.from_arrays([np.ones((4, 2)), np.ones((5, 2))], 1.0)
    expansion = vf.kernels.FeatureExpansion(
        Monomials(1), Monomials(1).bind(data.states), np.zeros((3, 2))
    )
    found = vf.Rollouts(5)(expansion, data, 1.0)
    assert found.expansion is expansion


def test_wrong_settings_and_kernels_are_refused():
    with pytest.raises(vf.DataError, match=r"separable kernel or one with features.*Hamiltonian"):
        vf.MOCK(vf.kernels.CurlFree(Gaussian(1.0)), 1e-6, refine=vf.Rollouts()).fit(swings(2, 5))
    with pytest.raises(TypeError, match="refine must be a Refinement"):
        vf.MOCK(Monomials(1), 1e-6, refine="yes").fit(swings(2, 5))
    for wrong in ({"samples": 1}, {"iterations": -1}, {"starts": 0}, {"ridge": -1.0}, {"count": 0}):
        with pytest.raises(ValueError, match="must be"):
            vf.Rollouts(**wrong)
