"""Blends: weighted sums of fields, as settings and as one field that can be saved."""

from __future__ import annotations

import pickle
import struct

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import vectorfield as vf
from vectorfield.blend import mix
from vectorfield.kernels import DivergenceFree, Gaussian, Gradient, Linear, Monomials, Nystrom
from vectorfield.modelfile import read_model, write_model
from vectorfield.prior import Known, LinearPrior, MeanReverting

T = 0.1 * np.arange(31)
PLANS = {
    "own": vf.Plan(Gaussian(1.0), 1e-4, prior=MeanReverting(0.5, 1.0)),
    "smoothed": vf.Plan(Monomials(2), 1e-4, smoother=vf.SplineSmoother(), prior=LinearPrior()),
    "physical": vf.Plan(Nystrom(Gaussian(30.0), 20), 1e-6, standardize=False),
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    starts = rng.uniform(-1.5, 1.5, size=(6, 2))
    x = vf.simulate(vf.systems.VanDerPol(), starts, T).x
    units, middle = np.array([1.0, 20.0]), np.array([3.0, -5.0])
    xs = list(middle + units * (x + 0.02 * rng.normal(size=x.shape)))
    return vf.Trajectories.from_arrays(xs, T, feature_names=("a", "b"))


@pytest.fixture(scope="module")
def blended(data):
    own, *others = PLANS.values()
    return own.replace(blend=vf.Blend(tuple(others), (0.25, 0.5))).fit(data)


def test_a_blend_is_the_weighted_sum_of_its_plans(data, blended):
    fields = [plan.fit(data).field for plan in PLANS.values()]
    assert len({tuple(f.shift) for f in fields}) == 3  # no two of them share coordinates
    x = data.states[::7]
    weights = (0.25, 0.25, 0.5)
    expected = sum(w * f(x) for w, f in zip(weights, fields, strict=True))
    np.testing.assert_allclose(blended.field(x), expected, rtol=1e-10)
    slopes = sum(w * f.jacobian(x) for w, f in zip(weights, fields, strict=True))
    np.testing.assert_allclose(blended.field.jacobian(x), slopes, rtol=1e-9, atol=1e-10)
    np.testing.assert_array_equal(blended.field.shift, fields[0].shift)
    np.testing.assert_array_equal(blended.field.spread, fields[0].spread)
    assert [fit.ridge for fit in blended.others] == [1e-4, 1e-6]
    assert blended.field.info["blend"]["weights"] == list(weights)


def test_the_jacobian_is_the_derivative(data, blended):
    field, x = blended.field, data.states[5::11]
    for j in range(2):
        step = np.zeros(2)
        step[j] = 1e-5 * field.scale[j]
        slope = (field(x + step) - field(x - step)) / (2 * step[j])
        size = np.abs(slope).max()
        np.testing.assert_allclose(field.jacobian(x)[:, :, j], slope, atol=1e-6 * size)


def test_parts_and_prior_add_up(data, blended):
    x = data.states[:10]
    parts = blended.field.parts
    assert [part.kernel for part in parts] == list(blended.field.kernel.kernels)
    total = sum(part(x) for part in parts) + blended.field.prior(x)
    np.testing.assert_allclose(total, blended.field(x), rtol=1e-12)


def test_residuals_are_those_of_the_blend(data, blended):
    own = PLANS["own"].prepare(data)
    occupations = own.plan.rule(data)  # in the units of the data: no smoother, no standardisation
    expected = occupations.targets - occupations.weights @ blended.field(occupations.nodes)
    np.testing.assert_allclose(blended.residuals, expected, atol=1e-10 * np.ptp(data.states))


def test_a_saved_blend_is_the_same_to_the_last_bit(data, blended, tmp_path):
    path = tmp_path / "blend.vf"
    blended.field.save(path)
    loaded = vf.load(path)
    x = data.states
    np.testing.assert_array_equal(loaded(x), blended.field(x))
    np.testing.assert_array_equal(loaded.jacobian(x), blended.field.jacobian(x))
    assert loaded.kernel == blended.field.kernel
    assert dict(loaded.info) == dict(blended.field.info)
    loaded.save(tmp_path / "again.vf")
    assert (tmp_path / "again.vf").read_bytes() == path.read_bytes()
    assert repr(loaded) == repr(blended.field)


def test_only_files_with_a_blend_need_the_new_format(data, blended, tmp_path):
    versions = []
    for field in (PLANS["physical"].fit(data).field, PLANS["own"].fit(data).field, blended.field):
        field.save(tmp_path / "x.vf")
        versions.append(struct.unpack_from("<I", (tmp_path / "x.vf").read_bytes(), 8)[0])
    assert versions == [1, 2, 3]


def test_a_prior_that_is_a_function_cannot_be_written(data, tmp_path):
    plan = PLANS["own"].replace(prior=Known(lambda x: 0.0 * x))
    field = PLANS["physical"].replace(blend=vf.Blend((plan,), (0.5,))).fit(data).field
    with pytest.raises(TypeError, match="Known"):
        field.save(tmp_path / "x.vf")


def _without(name):
    return lambda h, a: a.pop(name)


def _set(name, value):
    return lambda h, a: a.update({name: value(a[name])})


WRONG = {
    "no weights": _without("weights"),
    "no member": _without("members.1.coefficients"),
    "fewer weights": _set("weights", lambda v: v[:2]),
    "a matrix of weights": _set("weights", lambda v: v[:, None]),
    "negative weight": _set("weights", lambda v: v - 0.3),
    "infinite weight": _set("weights", lambda v: v + np.inf),
    "shape of shifts": _set("shifts", lambda v: v[:, :1]),
    "shape of scales": _set("scales", lambda v: v.T.copy()),
    "negative scale": _set("scales", lambda v: -v),
    "nodes": _set("members.0.nodes", lambda v: v[:3].copy()),
    "nested": lambda h, a: h["members"][1].update(kind="mixture", members=h["members"][:1]),
    "unknown kind": lambda h, a: h["members"][1].update(kind="magic"),
    "not a list": lambda h, a: h.update(members={"0": h["members"][0]}),
    "none": lambda h, a: h.update(members=[]),
    "numbers": lambda h, a: h.update(members=[1, 2, 3]),
    "no prior": lambda h, a: h["prior"].update(drifts=[]),
    "nested prior": lambda h, a: h["prior"]["drifts"][0].update(kind="sum", drifts=[]),
    "weights of the prior": _without("prior.weights"),
    "negative prior": _set("prior.weights", lambda v: -v),
    "prior of another size": _set("prior.1.centre", lambda v: np.zeros(3)),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_files_that_make_no_sense_are_refused(blended, tmp_path, change):
    path = tmp_path / "x.vf"
    blended.field.save(path)
    header, arrays = read_model(path)
    arrays = dict(arrays)
    change(header, arrays)
    header.pop("arrays")
    write_model(path, header, arrays)
    with pytest.raises(vf.ModelFileError, match=r"x\.vf: the header does not describe a field"):
        vf.load(path)


def test_a_law_of_all_members_is_kept(data):
    plans = [
        vf.Plan(Gradient(Gaussian(s)), 1e-3, smoother=smoother)
        for s, smoother in ((1.0, None), (3.0, vf.SplineSmoother()))
    ]
    fields = [plan.fit(data).field for plan in plans]
    both = mix(fields, (0.25, 0.75))
    x = data.states[::9]
    expected = 0.25 * fields[0].potential(x) + 0.75 * fields[1].potential(x)
    np.testing.assert_allclose(both.potential(x), expected, rtol=1e-9)
    np.testing.assert_allclose(sum(part.potential(x) for part in both.parts), expected, rtol=1e-9)
    law = vf.Plan(DivergenceFree(Gaussian(2.0)), 1e-3).fit(data).field
    with pytest.raises(TypeError, match="has no potential"):
        mix([fields[0], law], (0.5, 0.5)).potential(x)


def test_the_estimator_takes_a_blend_and_keeps_its_manners(data, blended):
    own, *others = PLANS.values()
    settings = own.replace(blend=vf.Blend(tuple(others), (0.25, 0.5))).get_params(deep=False)
    model = vf.MOCK(**settings).fit(data)
    x = data.states
    np.testing.assert_array_equal(model.predict(x), blended.field(x))
    for copied in (clone(model).fit(data), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copied.predict(x), blended.field(x))
    np.testing.assert_array_equal(model.residuals_, blended.residuals)
    assert model.kernel_ == blended.kernel
    assert np.isfinite(model.simulate(x[0], T)).all()
    lighter = clone(model).set_params(blend__weights=(0.125, 0.5))
    assert lighter.blend.own == 0.375
    assert model.blend.weights == (0.25, 0.5)


def test_weights_can_be_searched_by_grid(data):
    line = vf.Plan(Linear(), 1e-8)
    grid = {"blend": [None, vf.Blend((line,), (0.5,)), vf.Blend((line,), (0.9,))]}
    search = GridSearchCV(vf.MOCK(Gaussian(1.0), 1e-4), grid, cv=2)
    xs = [x for _, x in data]
    search.fit(xs, [T] * len(xs))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert np.ptp(search.cv_results_["mean_test_score"]) > 0


def test_wrong_settings_are_refused(data):
    plan, other = PLANS["own"], PLANS["physical"]
    for plans, weights, error, words in (
        ((plan,), (1.0,), ValueError, "sum below 1"),
        ((plan,), (0.0,), ValueError, "> 0"),
        ((plan, other), (0.5,), ValueError, "one for each plan"),
        ((), (), TypeError, "one or more"),
        (plan, (0.5,), TypeError, "one or more"),
        ((Gaussian(1.0),), (0.5,), TypeError, "must be a Plan"),
        ((plan.replace(blend=vf.Blend((other,), (0.5,))),), (0.5,), ValueError, "of its own"),
    ):
        with pytest.raises(error, match=words):
            vf.Blend(plans, weights)
    with pytest.raises(TypeError, match="blend must be a Blend"):
        plan.replace(blend=(other,))
    with pytest.raises(ValueError, match="leave blend out"):
        vf.MOCK(blend=vf.Blend((plan,), (0.5,)), search=vf.Search()).fit(data)


def test_fields_that_cannot_be_mixed_are_refused(data, blended):
    field = PLANS["own"].fit(data).field
    with pytest.raises(ValueError, match="as many"):
        mix([field], (0.5, 0.5))
    with pytest.raises(vf.VectorFieldError, match="is a mixture itself"):
        mix([blended.field], (1.0,))
    with pytest.raises(TypeError, match="compress the fields before they are mixed"):
        vf.compress(blended.field)
    with pytest.raises(TypeError, match=r"use vf\.Blend for such sums"):
        vf.MOCK(blended.field.kernel, 1e-3).fit(data)
