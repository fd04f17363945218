"""Blends that a search makes: members fitted on the folds, kept where they clearly win."""

import dataclasses

import numpy as np
import pytest

import vectorfield as vf
from vectorfield.kernels import Gaussian, Laplace, Monomials, RandomFourier
from vectorfield.occupation import Lagrange, White
from vectorfield.plan import Plan
from vectorfield.prior import Known
from vectorfield.tuning import Search
from vectorfield.tuning.context import Context
from vectorfield.tuning.judge import ranked
from vectorfield.tuning.members import Members, flows
from vectorfield.tuning.stages.blends import blend
from vectorfield.tuning.tasks import Task

OPEN = frozenset(("kernel", "ridge", "blend"))
VAN_DER_POL = vf.systems.VanDerPol()


def too_slow(x):
    return 0.5 * VAN_DER_POL(x)


def too_fast(x):
    return 1.5 * VAN_DER_POL(x)


def make(field=VAN_DER_POL, count=12, samples=25, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    t = 0.1 * np.arange(samples)
    x = vf.simulate(field, rng.uniform(-2.0, 2.0, size=(count, 2)), t, rtol=1e-9).x
    return vf.Trajectories.from_arrays(list(x + noise * rng.normal(size=x.shape)), t)


def finalists(data, plans, ladder, names=OPEN, before=10):
    """Return a context, and the trials that its last stage would find, best first.

    ``before`` is how often as much work has been done before.
    """
    context = Context(Search(folds=3), plans[0], names, data, None)
    tasks = [Task(plan, ladder, "all", None, whole=True, widen=False) for plan in plans]
    trials = ranked(context.judge(context.bench, tasks, done=0.7))
    context.judge.trials[:0] = [dataclasses.replace(t, stage="kernels") for t in trials] * before
    return context, trials


def error(plan, data, field=VAN_DER_POL):
    model = vf.MOCK(**plan.get_params(deep=False)).fit(data)
    x = make(field, 30, seed=9).states
    return np.linalg.norm(model.predict(x) - field(x)) / np.linalg.norm(field(x))


@pytest.fixture(scope="module")
def stretched():
    """Two wrong fields whose mean is the truth: the ridge leaves nothing but their priors."""
    data = make(count=8, samples=15)
    plans = [
        Plan(Gaussian(1.0), noise=White(), prior=Known(prior)) for prior in (too_slow, too_fast)
    ]
    context, trials = finalists(data, plans, (1e7,), before=30)
    return data, context, trials, blend(context, trials)


def test_the_weights_that_give_the_truth_are_found(stretched):
    data, context, trials, best = stretched
    mixed = best[0].plan.blend
    assert (mixed.own, mixed.weights) == (0.5, (0.5,))
    assert best[1:] == trials
    assert best[0].score < 1e-2 * trials[0].score
    assert trials[0].score > 0.1
    single, both = (error(context.with_ridge(t), data) for t in (trials[0], best[0]))
    assert single > 0.4
    assert both < 1e-4
    assert context.trials[-1] is best[0]


def test_what_was_found_can_be_had_again(stretched):
    data, context, _, best = stretched
    plan = context.with_ridge(best[0])
    assert plan.ridge is not None
    assert plan.blend.plans[0].ridge is not None
    first = plan.fit(data).field
    again = vf.MOCK(**plan.get_params(deep=False)).fit(data)
    np.testing.assert_array_equal(again.predict(data.states), first(data.states))
    repeated, trials = finalists(data, [t.plan for t in stretched[2]], (1e7,), before=30)
    second = blend(repeated, trials)[0]
    assert second.plan.blend.weights == best[0].plan.blend.weights
    np.testing.assert_array_equal(second.errors, best[0].errors)


def test_members_are_fitted_on_the_training_parts_alone():
    data = make(noise=0.02)
    plan = Plan(Gaussian(1.5), noise=White())
    context, trials = finalists(data, [plan], (1e-2, 1e-4))
    bench, trial = context.bench, trials[0]
    found = flows(bench, trial, None)
    assert len(found) == 3
    for flow, fold in zip(found, bench.folds, strict=True):
        prepared = plan.prepare(fold.train)
        unit = 1e3 * prepared.default_ridge()
        expected = plan.replace(ridge=trial.level * unit).fit(fold.train).field
        u = data.states[:9] / bench.unit
        np.testing.assert_allclose(flow(u) * bench.unit, expected(data.states[:9]), rtol=1e-9)
    members = Members(bench, trials, None, whole=True)
    errors = members.errors(np.ones((1, 1)))[0]
    np.testing.assert_allclose(errors, trial.errors, rtol=1e-6)  # as the trial had them


def test_fields_with_independent_errors_are_better_together():
    data = make(count=40, seed=3)
    kernels = [RandomFourier(Gaussian(1.0), 20, random_state=seed) for seed in range(4)]
    plans = [Plan(kernel, rule=Lagrange(4)) for kernel in kernels]
    context, trials = finalists(data, plans, (1e-4, 1e-6, 1e-8), before=20)
    best = blend(context, trials)
    assert best[0].plan.blend is not None
    gain, spread = context.search.objective.gain(
        trials[0].errors, best[0].errors, context.bench.null_errors(whole=True)
    )
    assert gain > 2 * spread
    single, both = (error(context.with_ridge(t), data) for t in (trials[0], best[0]))
    assert both < 0.7 * single


def test_the_truth_among_others_stays_alone():
    data = make(count=16, noise=0.03, seed=1)
    plans = [Plan(kernel, noise=White()) for kernel in (Monomials(3), Laplace(1.0))]
    context, trials = finalists(data, plans, (1.0, 1e-2, 1e-4))
    assert isinstance(trials[0].plan.kernel, Monomials)
    assert blend(context, trials) == trials


@pytest.mark.parametrize(
    ("names", "before"),
    [
        (OPEN - {"blend"}, 30),
        (OPEN - {"kernel"}, 30),
        (OPEN, 10),  # a quarter of next to nothing
    ],
    ids=["not asked for", "a kernel that was given", "no work so far"],
)
def test_where_there_should_be_none_nothing_is_fitted(stretched, names, before):
    data, _, trials, _ = stretched
    context, own = finalists(data, [t.plan for t in trials], (1e7,), names, before)
    context.bench.null_errors = None  # would fail if it were called
    assert blend(context, own) == own


def test_errors_that_are_nearly_nothing_are_left_alone():
    data = make(vf.systems.Linear(np.array([[-0.1, 1.0], [-1.0, -0.1]])))
    plans = [Plan(Monomials(degree), rule=Lagrange(4)) for degree in (1, 2)]
    context, trials = finalists(data, plans, (1e-2, 1e-4, 1e-6))
    assert trials[0].score < 1e-4
    context.bench.null_errors = None
    assert blend(context, trials) == trials


def test_the_report_shows_the_blend_beside_the_best_single_plan(stretched):
    data, context, _, best = stretched
    report = vf.MOCK(Gaussian(1.0), search=Search(folds=2)).fit(data).report_
    chosen, single = (dataclasses.replace(t, plan=context.with_ridge(t)) for t in best[:2])
    report = dataclasses.replace(report, best=chosen, runner_up=single, trials=tuple(best))
    text = str(report)
    assert "best single  " in text
    assert "runner-up" not in text
    assert "chosen: blend: 0.5 of (Gaussian(length_scale=1.0), ridge=" in text
    assert text.count("0.5 of (") == 2
    assert f"{chosen.score:.3g}" in text
    assert report.frame()[0]["blend"].startswith("Blend(")
    assert report.frame()[1]["blend"] == "None"
