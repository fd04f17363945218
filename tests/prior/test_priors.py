"""Prior mean fields: f = f0 + g, each against formulas that share nothing with the library."""

from __future__ import annotations

import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import vectorfield as vf
from vectorfield.kernels import (
    DivergenceFree,
    Gaussian,
    Gradient,
    Hamiltonian,
    RandomFourier,
)
from vectorfield.occupation import Lagrange, SnapshotNoise, Spline, Trapezoid, WeakForm
from vectorfield.prior import (
    AffineDrift,
    KernelReversion,
    Known,
    KnownDrift,
    LinearPrior,
    MeanReversion,
    MeanReverting,
    Prior,
    centred,
    restore,
)

MATRIX = np.array([[-0.3, 1.0], [-1.2, -0.1]])
OFFSET = np.array([0.4, -0.2])


def affine(x: np.ndarray) -> np.ndarray:
    return x @ MATRIX.T + OFFSET


def bent(x: np.ndarray) -> np.ndarray:
    """Affine, and a part that is not."""
    return affine(x) + np.sin(2.0 * x[:, ::-1])


def data(field: Any = affine, n: int = 8, seed: int = 0) -> vf.Trajectories:
    rng = np.random.default_rng(seed)
    starts = rng.uniform(-1.5, 1.5, size=(n, 2))
    ts = [np.cumsum(rng.uniform(0.02, 0.1, size=k)) for k in rng.integers(20, 40, size=n)]
    return vf.Trajectories.from_arrays(vf.simulate(field, starts, ts, rtol=1e-10).x, ts)


def places(n: int = 7, d: int = 2) -> np.ndarray:
    return np.random.default_rng(9).uniform(-2.0, 2.0, size=(n, d))


DRIFTS = {
    "affine": AffineDrift(MATRIX, np.array([1.0, 2.0]), OFFSET),
    "mean": MeanReversion(0.7, np.array([1.0, -3.0])),
    "kernel": KernelReversion(
        1.3, np.random.default_rng(3).normal(size=(15, 2)), np.array([0.4, 0.9])
    ),
    "known": KnownDrift(bent),
}
PRIORS: dict[str, Prior] = {
    "linear": LinearPrior(),
    "mean": MeanReverting(),
    "kernel": MeanReverting(rate=0.8, width=0.5, count=50),
    "known": Known(affine),
}


@pytest.mark.parametrize("name", DRIFTS)
def test_jacobians_are_derivatives(name):
    drift, x, h = DRIFTS[name], places(), 1e-5
    jacobian = drift.jacobian(x)
    for j in range(2):
        step = h * np.eye(2)[j]
        expected = (drift(x + step) - drift(x - step)) / (2 * h)
        np.testing.assert_allclose(jacobian[:, :, j], expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", ["affine", "mean", "kernel"])
def test_what_is_described_is_restored(name):
    drift, x = DRIFTS[name], places()
    again = restore(*drift.describe())
    again.check(2)
    assert type(again) is type(drift)
    np.testing.assert_array_equal(again(x), drift(x))
    with pytest.raises(ValueError, match="of the prior"):
        again.check(3)


def test_the_kernel_mean_is_its_formula():
    drift, x = DRIFTS["kernel"], places(3)
    for point, value in zip(x, drift(x), strict=True):
        weights = [math.exp(-0.5 * sum(((point - p) / drift.lengths) ** 2)) for p in drift.points]
        for i in range(2):
            mean = math.fsum(
                w * p[i] for w, p in zip(weights, drift.points, strict=True)
            ) / math.fsum(weights)
            assert value[i] == pytest.approx(1.3 * (mean - point[i]), rel=1e-12)


@given(
    st.floats(-1e12, 1e12), st.floats(-1e12, 1e12), st.floats(1e-3, 1e3), st.integers(0, 2**32 - 1)
)
@settings(max_examples=60, deadline=None)
def test_the_kernel_mean_stays_within_the_points_however_far(a, b, length, seed):
    points = np.random.default_rng(seed).normal(size=(9, 2))
    drift = KernelReversion(1.0, points, np.full(2, length))
    x = np.array([[a, b]])
    mean = drift(x) + x
    size = max(1.0, np.abs(x).max())
    assert (mean >= points.min(axis=0) - 1e-12 * size).all()
    assert (mean <= points.max(axis=0) + 1e-12 * size).all()
    assert np.isfinite(drift.jacobian(x)).all()


def test_pieces_do_not_matter(monkeypatch):
    drift, x = DRIFTS["kernel"], places(40)
    whole = drift(x), drift.jacobian(x)
    monkeypatch.setattr("vectorfield.prior._mean.CELLS", 100)
    np.testing.assert_allclose(drift(x), whole[0], rtol=1e-13)
    np.testing.assert_allclose(drift.jacobian(x), whole[1], rtol=1e-12, atol=1e-14)
    assert drift(x[:0]).shape == (0, 2)


# Binding


def test_an_affine_field_is_found():
    trajectories = data()
    for covariance in (None, SnapshotNoise()):
        occupations = Lagrange(6)(trajectories)
        sigma = None if covariance is None else covariance.covariance(occupations)
        drift = LinearPrior(ridge=0.0).bind(trajectories, occupations, covariance=sigma)
        np.testing.assert_allclose(drift(places()), affine(places()), rtol=0, atol=1e-5)


def test_linear_least_squares_is_its_formula():
    """Normal equations in standardised coordinates, typed out."""
    trajectories = data(bent)
    occupations = Trapezoid()(trajectories)
    sigma = SnapshotNoise().covariance(occupations)
    m, s = trajectories.states.mean(axis=0), trajectories.states.std(axis=0)
    design = np.column_stack(
        [occupations.weights @ ((occupations.nodes - m) / s), occupations.durations]
    )
    inverse = np.linalg.inv(sigma.toarray())
    penalty = 0.05 * len(occupations) * np.mean(occupations.durations**2) * np.diag([1.0, 1.0, 0.0])
    solution = np.linalg.solve(
        design.T @ inverse @ design + penalty, design.T @ inverse @ (occupations.targets / s)
    )
    drift = LinearPrior(0.05).bind(trajectories, occupations, covariance=sigma)
    expected = s * (((places() - m) / s) @ solution[:2] + solution[2])
    np.testing.assert_allclose(drift(places()), expected, rtol=1e-6, atol=1e-6)


def test_both_ways_to_solve_agree(monkeypatch):
    trajectories = data(bent)
    occupations = Trapezoid()(trajectories)
    products = LinearPrior(1e-6).bind(trajectories, occupations)
    monkeypatch.setattr("vectorfield.prior._linear.SAFE", 1.0)
    pivoted = LinearPrior(1e-6).bind(trajectories, occupations)
    np.testing.assert_allclose(products.matrix, pivoted.matrix, rtol=1e-10)
    np.testing.assert_allclose(products.offset, pivoted.offset, rtol=1e-10)


def test_more_coordinates_than_observations():
    rng = np.random.default_rng(0)
    few = vf.Trajectories.from_arrays([rng.normal(size=(3, 8))], 0.1)
    occupations = Trapezoid()(few)
    for ridge in (0.0, 1e-3):
        drift = LinearPrior(ridge).bind(few, occupations)
        left = occupations.targets - occupations.weights @ drift(occupations.nodes)
        assert np.abs(left).max() < (1e-10 if ridge == 0.0 else 0.1)


def test_the_rate_is_found_and_clipped():
    t = np.linspace(0.0, 2.0, 30)
    decay = np.exp(-1.7 * t)[:, None] * np.array([[1.0, -2.0]])
    there_and_back = [decay, -decay]  # the mean is zero
    occupations = Lagrange(6)(vf.Trajectories.from_arrays(there_and_back, t))
    trajectories = vf.Trajectories.from_arrays(there_and_back, t)
    drift = MeanReverting().bind(trajectories, occupations)
    assert drift.rate == pytest.approx(1.7, rel=1e-5)
    np.testing.assert_allclose(drift.centre, 0.0, atol=1e-15)
    growing = vf.Trajectories.from_arrays([x[::-1].copy() for x in there_and_back], t)
    assert MeanReverting().bind(growing, Lagrange(6)(growing)).rate == 0.0
    assert MeanReverting(rate=0.3).bind(growing, Lagrange(6)(growing)).rate == 0.3


def test_the_choice_of_states_follows_the_seed():
    trajectories = data()
    occupations = Trapezoid()(trajectories)
    one, same, other = (
        MeanReverting(rate=1.0, width=0.5, count=20, random_state=seed).bind(
            trajectories, occupations
        )
        for seed in (0, 0, 1)
    )
    assert one.points.shape == (20, 2)
    np.testing.assert_array_equal(one.points, same.points)
    assert not np.array_equal(one.points, other.points)
    everything = MeanReverting(rate=1.0, width=0.5).bind(trajectories, occupations)
    np.testing.assert_array_equal(everything.points, trajectories.states)


def test_constant_features_and_a_state_that_never_moves():
    x = np.stack([np.linspace(0.0, 1.0, 12), np.full(12, 5.0)], axis=1)
    for prior in (LinearPrior(), LinearPrior(0.0), MeanReverting(), MeanReverting(width=1.0)):
        model = vf.MOCK(Gaussian(1.0), prior=prior, search=False).fit(x, 0.1)
        assert np.isfinite(model.predict([[0.5, 5.0], [1e3, -1e3]])).all()
        still = vf.MOCK(Gaussian(1.0), prior=prior, search=False).fit(np.ones((5, 2)), 0.1)
        np.testing.assert_allclose(still.predict([[1.0, 1.0]]), 0.0, atol=1e-12)


def test_nearly_dependent_windows_do_not_stop_the_binding():
    t = np.linspace(0.0, 20.0, 300)
    trajectories = vf.Trajectories.from_arrays([np.stack([np.cos(t), np.sin(t)], axis=1)], t)
    occupations = WeakForm(samples=13, degree=6)(trajectories)
    sigma = SnapshotNoise().covariance(occupations)
    drift = LinearPrior(0.0).bind(trajectories, occupations, covariance=sigma)
    np.testing.assert_allclose(drift.matrix, [[0.0, -1.0], [1.0, 0.0]], atol=1e-3)


# In a fit


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("rule", [Trapezoid(), Spline(2)], ids=repr)
def test_a_fit_is_the_prior_and_a_fit_of_what_is_left(name, rule):
    """By a data set whose targets are y - W f0, made by hand."""
    trajectories = data(bent)
    prior = PRIORS[name]
    model = vf.MOCK(Gaussian(0.9), 1e-5, rule=rule, prior=prior, standardize=False)
    model.fit(trajectories)
    occupations = rule(trajectories)
    f0 = model.field_.prior
    left = dataclasses.replace(
        occupations, targets=occupations.targets - occupations.weights @ f0(occupations.nodes)
    )
    alone = vf.linalg.regress(
        vf.kernels.Separable(Gaussian(0.9)),
        left,
        ridge=1e-5,
        covariance=vf.occupation.White().covariance(left),
    )
    x = places()
    np.testing.assert_allclose(model.predict(x), alone.expansion(x) + f0(x), rtol=1e-9, atol=1e-9)
    assert model.rkhs_norm_ == pytest.approx(alone.norm)
    whole = occupations.targets - occupations.weights @ model.predict(occupations.nodes)
    np.testing.assert_allclose(model.residuals_, whole, rtol=0, atol=1e-10)


def test_a_large_ridge_leaves_the_prior():
    for name, prior in PRIORS.items():
        model = vf.MOCK(Gaussian(0.9), 1e9, prior=prior).fit(data(bent))
        np.testing.assert_allclose(
            model.predict(places()), model.field_.prior(places()), atol=1e-6, err_msg=name
        )


def test_far_from_the_data_a_mean_reverting_field_comes_back():
    prior = MeanReverting(rate=2.0, width=0.5)
    model = vf.MOCK(Gaussian(0.7), 1e-5, prior=prior).fit(data())
    run = vf.simulate(model.field_, np.array([1e4, -1e4]), np.array([0.0, 10.0]))
    assert run.success
    assert np.abs(run.x[-1]).max() < 10.0


@pytest.mark.parametrize("name", ["linear", "mean", "kernel"])
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e4])
def test_units_do_not_matter(name, scale):
    trajectories, shift = data(bent), np.array([3.0, -1.0]) * scale
    prior = PRIORS[name]
    one = vf.MOCK(Gaussian(0.9), 1e-5, prior=prior).fit(trajectories)
    xs, ts = trajectories.to_arrays()
    other = vf.MOCK(Gaussian(0.9), 1e-5, prior=prior).fit([scale * x + shift for x in xs], ts)
    np.testing.assert_allclose(
        other.predict(scale * places() + shift) / scale, one.predict(places()), atol=1e-7
    )
    np.testing.assert_allclose(
        other.field_.jacobian(scale * places() + shift), one.field_.jacobian(places()), atol=1e-6
    )


@pytest.mark.parametrize("name", PRIORS)
def test_the_jacobian_of_the_field(name):
    model = vf.MOCK(Gaussian(0.9), 1e-5, prior=PRIORS[name]).fit(data(bent))
    x, h = places(), 1e-5
    jacobian = model.field_.jacobian(x)
    for j in range(2):
        step = h * np.eye(2)[j]
        expected = (model.field_(x + step) - model.field_(x - step)) / (2 * h)
        np.testing.assert_allclose(jacobian[:, :, j], expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(model.field_.jacobian(x[0]), jacobian[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["linear", "mean", "kernel"])
@pytest.mark.parametrize("kernel", [Gaussian(0.9), RandomFourier(Gaussian(0.9), 60)], ids=repr)
def test_files_keep_the_prior(name, kernel, tmp_path):
    model = vf.MOCK(kernel, 1e-5, prior=PRIORS[name]).fit(data(bent))
    model.save(tmp_path / "model.vf")
    field = vf.load(tmp_path / "model.vf")
    np.testing.assert_array_equal(field(places()), model.predict(places()))
    np.testing.assert_array_equal(field.jacobian(places()), model.field_.jacobian(places()))
    assert field.info["prior"] == repr(PRIORS[name])
    assert (tmp_path / "model.vf").read_bytes()[8] == 2  # an earlier reader would overlook it


def test_code_is_not_written(tmp_path):
    model = vf.MOCK(Gaussian(0.9), prior=Known(affine), search=False).fit(data())
    with pytest.raises(TypeError, match=r"affine is code .*pickle the model, or save"):
        model.save(tmp_path / "model.vf")
    assert list(tmp_path.iterdir()) == []
    # the remedy that the message names
    dataclasses.replace(model.field_, prior=None).save(tmp_path / "rest.vf")
    again = dataclasses.replace(vf.load(tmp_path / "rest.vf"), prior=KnownDrift(affine))
    np.testing.assert_array_equal(again(places()), model.predict(places()))


@pytest.mark.parametrize("name", PRIORS)
def test_manners(name):
    model = vf.MOCK(Gaussian(0.9), prior=PRIORS[name], search=False)
    assert clone(model).get_params() == model.get_params()
    model.fit(data())
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(places()), model.predict(places()))
    assert "prior=" in repr(model.field_)
    small = vf.compress(model.field_, 1e-6)
    at = data().states
    np.testing.assert_allclose(small(at), model.predict(at), rtol=0, atol=1e-4)


def test_nested_parameters():
    model = vf.MOCK(prior=MeanReverting(), search=False)
    model.set_params(prior__rate=3.0)
    assert model.prior == MeanReverting(rate=3.0)
    assert model.get_params()["prior__rate"] == 3.0
    with pytest.raises(ValueError, match="MeanReverting has no parameter 'ridge'"):
        model.set_params(prior__ridge=1.0)


def test_a_law_holds_for_the_rest():
    model = vf.MOCK(DivergenceFree(Gaussian(0.9)), 1e-5, prior=LinearPrior()).fit(data(bent))
    x = places()
    rest = model.field_.parts[0]
    assert rest.prior is None
    divergence = np.trace(rest.jacobian(x), axis1=1, axis2=2)
    np.testing.assert_allclose(divergence, 0.0, atol=1e-10)
    np.testing.assert_allclose(
        sum(part(x) for part in model.field_.parts), model.predict(x) - model.field_.prior(x)
    )


@pytest.mark.parametrize(
    ("kernel", "name"), [(Gradient(Gaussian(0.9)), "potential"), (Hamiltonian(), "hamiltonian")]
)
def test_no_energy_with_a_prior(kernel, name):
    model = vf.MOCK(kernel, 1e-3, prior=LinearPrior()).fit(data())
    with pytest.raises(TypeError, match=f"with a prior has no {name}: .* rest f - f0 alone"):
        getattr(model, name)(places())
    assert getattr(model.field_.parts[0], name)(places()).shape == (7,)


# What a known function may return


def test_a_system_brings_its_jacobian():
    system = vf.systems.VanDerPol()
    model = vf.MOCK(Gaussian(0.9), 1e9, prior=Known(system)).fit(data(system))
    np.testing.assert_allclose(
        model.field_.jacobian(places()), system.jacobian(places()), atol=1e-6
    )
    own = KnownDrift(system)  # differences
    np.testing.assert_allclose(own.jacobian(places()), system.jacobian(places()), atol=1e-7)


def test_a_field_from_other_data():
    first = vf.MOCK(Gaussian(0.9), 1e-7).fit(data(affine))
    second = vf.MOCK(Gaussian(0.9), 1e-7, prior=Known(first.field_)).fit(data(affine, seed=1))
    assert second.rkhs_norm_ < 0.6 * first.rkhs_norm_


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x[:, :1], r"must take \(n, d\) to \(n, d\): .* expected \(1, 2\), got \(1, 1\)"),
        (lambda x: 1.0, r"expected \(1, 2\), got \(\)"),
        (lambda x: x.astype(complex), "must return real numbers, got complex128"),
        (
            lambda x: np.where(x > 0.5, np.nan, x),
            r"not finite at \d+ of \d+ nodes, first at x = \[",
        ),
    ],
)
def test_bad_functions_are_refused(function, message):
    with pytest.raises(vf.DataError, match=message):
        vf.MOCK(prior=Known(function), search=False).fit(data())


def test_bad_jacobians_are_refused():
    model = vf.MOCK(prior=Known(affine, lambda x: x), search=False).fit(data())
    with pytest.raises(vf.DataError, match=r"Jacobian of the known part, .* to \(n, d, d\)"):
        model.field_.jacobian(places())


def test_where_a_known_part_is_not_finite_a_simulation_ends_alone():
    def root(x: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            return -np.sqrt(x + 2.0)

    t = np.linspace(0.0, 0.5, 20)
    model = vf.MOCK(Gaussian(0.5), 1e-3, prior=Known(root))
    model.fit(list(vf.simulate(root, np.array([[1.0], [2.0]]), t).x), t)
    run = vf.simulate(model.field_, [[2.0], [-3.0]], [0.0, 0.3], on_failure="ignore")
    assert [o is vf.Outcome.FINISHED for o in run.outcomes] == [True, False]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MeanReverting(rate=-1.0), "rate must be a finite number >= 0"),
        (lambda: MeanReverting(width=0.0), "width must be a finite number > 0"),
        (lambda: MeanReverting(count=0), "count must be at least 1"),
        (lambda: LinearPrior(-1.0), "ridge must be a finite number >= 0"),
        (lambda: Known(3), "function must be callable"),
        (lambda: Known(affine, 3), "jacobian must be callable"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


@pytest.mark.parametrize("name", ["linear", "mean", "kernel"])
def test_tensors_give_what_arrays_give(name):
    torch = pytest.importorskip("torch")
    trajectories = data(bent)
    xs, ts = trajectories.to_arrays()
    model = vf.MOCK(Gaussian(0.9), 1e-5, prior=PRIORS[name])
    expected = model.fit(xs, ts)
    value, jacobian = expected.predict(places()), expected.field_.jacobian(places())
    model = clone(model).fit([torch.tensor(np.array(x)) for x in xs], ts)
    x = torch.tensor(places())
    np.testing.assert_allclose(model.predict(x).numpy(), value, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.field_.jacobian(x).numpy(), jacobian, rtol=1e-8, atol=1e-8)


def test_only_the_targets_change():
    trajectories = data()
    occupations = Trapezoid()(trajectories)
    zero, one = np.zeros(2), np.ones(2)
    drift, left = centred(Known(affine), trajectories, occupations, shift=zero, scale=one)
    assert left.nodes is occupations.nodes
    assert left.weights is occupations.weights
    np.testing.assert_allclose(
        left.targets, occupations.targets - occupations.weights @ affine(occupations.nodes)
    )
    assert isinstance(drift, KnownDrift)
