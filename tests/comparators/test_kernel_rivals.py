"""Gradient matching and the paper's methods against their formulas, and against `MOCK`."""

import numpy as np
import pytest

import vectorfield as vf
from vectorfield.comparators import PAPER_KERNELS, GradientMatching, LogGrid, Paper
from vectorfield.kernels import Gaussian, Linear
from vectorfield.occupation import CentralDifference, ForwardDifference, Trapezoid, White
from vectorfield.tuning import BayesianSearch
from vectorfield.tuning.bench import ridge_unit
from vectorfield.tuning.candidates import lengths_of

ONE = LogGrid(lengths=(1.0,), levels=(1e-3,))


def cycles(count=6, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(0.0, 4.0, size=40))
    x = vf.simulate(vf.systems.VanDerPol(), rng.uniform(-2.0, 2.0, (count, 2)), t).x
    return vf.Trajectories.from_arrays(list(x + noise * rng.normal(size=x.shape)), t)


def places():
    return np.random.default_rng(3).uniform(-1.5, 1.5, size=(25, 2))


def test_gradient_matching_is_kernel_ridge_regression_of_quotients():
    data = cycles()
    model = GradientMatching(Gaussian(1.2), rules=(ForwardDifference(),), search=ONE)
    model.fit(data, validation=data)
    shift, scale = data.states.mean(axis=0), data.states.std(axis=0)
    nodes, slopes = [], []
    for t, x in data:
        u = (x - shift) / scale
        nodes.append(u[:-1])
        slopes.append(np.diff(u, axis=0) / np.diff(t)[:, None])
    nodes, slopes = np.concatenate(nodes), np.concatenate(slopes)
    ridge = 1e-3 / len(nodes)  # level 1e-3 of mean(h^2) mean k(z, z) / N, h = 1 for values

    def gram(a, b):
        return np.exp(-((a[:, None] - b[None]) ** 2).sum(axis=2) / (2 * 1.2**2))

    a = np.linalg.solve(gram(nodes, nodes) + ridge * len(nodes) * np.eye(len(nodes)), slopes)
    expected = gram((places() - shift) / scale, nodes) @ a * scale
    np.testing.assert_allclose(model.predict(places()), expected, rtol=1e-6, atol=1e-7)


def test_the_quotient_of_less_error_is_chosen():
    data = cycles()
    model = GradientMatching(search=LogGrid((0.5, 1.0), (1e-3, 1e-5))).fit(data[:4])
    assert model.report_.best.settings["rule"] == CentralDifference()
    assert {a.settings["rule"] for a in model.report_} == {
        ForwardDifference(),
        CentralDifference(),
    }


@pytest.mark.parametrize("name", PAPER_KERNELS)
def test_the_papers_method_is_mock_with_the_chosen_settings(name):
    data = cycles(noise=0.03)
    search = LogGrid((0.5, 1.0, 2.0), (1e-1, 1e-3, 1e-5))
    model = Paper(PAPER_KERNELS[name], search=search).fit(data[:4], validation=data[4:])
    best = model.report_.best.settings
    plan = vf.Plan(best["kernel"], rule=Trapezoid(), noise=White())
    ridge = best["level"] * ridge_unit(plan.prepare(data[:4]))
    again = vf.MOCK(best["kernel"], ridge).fit(data[:4])
    np.testing.assert_allclose(
        model.predict(places()), again.predict(places()), rtol=1e-6, atol=1e-9
    )
    score = vf.metrics.evaluate(data[4:], vf.rollout(again.field_, data[4:]).x)
    assert len(model.report_) == 9
    assert abs(model.report_.skill - score.skill) < 0.05  # features in their own units there


def test_length_scales_are_multiples_of_the_median_or_of_what_is_given():
    data = cycles()
    grid = LogGrid((0.5, 2.0), (1e-3,))
    free = Paper(search=grid).fit(data, None).report_
    median = vf.Plan(Gaussian()).prepare(data).kernel
    found = [lengths_of(a.settings["kernel"])[0] for a in free]
    np.testing.assert_allclose(found, np.array([0.5, 2.0]) * lengths_of(median)[0])
    given = Paper(Gaussian(3.0), search=grid).fit(data, None).report_
    assert [lengths_of(a.settings["kernel"])[0] for a in given] == [1.5, 6.0]
    assert len(Paper(Linear(), search=grid).fit(data, None).report_) == 1  # no length to look for


def test_the_papers_own_search_is_the_default():
    data = cycles(noise=0.02)
    search = BayesianSearch(evaluations=12, initial=6)
    assert Paper().search == BayesianSearch()
    model = Paper(Gaussian(), search=search).fit(data[:4], validation=data[4:])
    own = vf.MOCK(search=search).fit(data[:4], validation=data[4:])
    np.testing.assert_allclose(model.predict(places()), own.predict(places()), rtol=1e-6, atol=1e-8)
    assert len(model.report_) == 12
    assert model.report_.best.score == own.report_.best.score
    matching = GradientMatching(search=search).fit(data[:4], validation=data[4:])
    assert len(matching.report_) == 24  # as many for each quotient


def test_a_grid_keeps_a_ridge_that_is_given_and_serves_mock():
    data = cycles()
    grid = LogGrid((0.5, 1.0), (1e-1, 1e-3))
    model = vf.MOCK(ridge=1e-6, search=grid).fit(data[:4], validation=data[4:])
    assert model.ridge_ == pytest.approx(1e-6)
    assert len(model.report_.trials) == 2
    free = vf.MOCK(search=grid).fit(data[:4], validation=data[4:])
    same = Paper(search=grid).fit(data[:4], validation=data[4:])
    np.testing.assert_allclose(free.predict(places()), same.predict(places()), rtol=1e-9)


def test_ridges_that_are_too_small_are_attempts():
    data = cycles()
    search = LogGrid((4.0,), (1e-3, 1e-30))
    report = Paper(search=search).fit(data[:4], validation=data[4:]).report_
    good, bad = report
    assert good.status == "ok"
    assert report.best is good
    assert bad.score == np.inf
    assert bad.status == "NOT_POSITIVE_DEFINITE"


def test_settings_are_checked():
    with pytest.raises(ValueError, match="lengths must hold at least one"):
        LogGrid(lengths=())
    with pytest.raises(ValueError, match="levels must be a finite number > 0"):
        LogGrid(levels=(0.0,))
    with pytest.raises(TypeError, match="search must be"):
        Paper(search="grid").fit(cycles())
    with pytest.raises(TypeError, match="search must be"):
        GradientMatching(search=None).fit(cycles())
    with pytest.raises(TypeError, match="rules must hold"):
        GradientMatching(rules=("forward",)).fit(cycles())
    with pytest.raises(TypeError, match="kernel must be a kernel"):
        Paper("gaussian").fit(cycles())
