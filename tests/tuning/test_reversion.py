"""Fields that return to the data: found where nothing follows the data, left alone elsewhere."""

import dataclasses

import numpy as np
import pytest

import vectorfield as vf
from vectorfield.kernels import Gaussian, Laplace, Matern
from vectorfield.occupation import SnapshotNoise, Trapezoid, White
from vectorfield.plan import Plan
from vectorfield.prior import MeanReverting
from vectorfield.tuning import Search, candidates
from vectorfield.tuning.context import Context
from vectorfield.tuning.folds import pooled
from vectorfield.tuning.stages import reversion
from vectorfield.tuning.stages.reversion import Place, return_to_data
from vectorfield.tuning.trials import Trial

OPEN = frozenset(("kernel", "ridge", "rule", "noise", "prior", "smoother", "refine"))
RATE = 0.4


def visits(count, seed):
    """Noisy visits, 2 to 16 each at uneven times, of walkers that are drawn to a parabola."""
    rng = np.random.default_rng(seed)
    xs, ts = [], []
    for _ in range(count):
        t = np.concatenate([[0.0], np.cumsum(rng.uniform(0.4, 1.6, rng.integers(1, 16)))])
        u = np.empty((len(t), 2))  # two processes of Ornstein and Uhlenbeck, of variance 1
        u[0] = rng.normal(size=2)
        for k, gap in enumerate(np.diff(t), start=1):
            keep = np.exp(-RATE * gap)
            u[k] = keep * u[k - 1] + np.sqrt(1.0 - keep**2) * rng.normal(size=2)
        x = np.stack([u[:, 0], 0.5 * u[:, 0] ** 2 + 0.5 * u[:, 1]], axis=1)
        xs.append(x + 0.3 * rng.normal(size=x.shape))
        ts.append(t)
    return vf.Trajectories.from_arrays(xs, ts)


PARTS = frozenset(("kernel", "ridge", "noise", "prior"))


def skill(plan, data, fresh):
    run = vf.rollout(plan.fit(data).field, fresh, on_failure="ignore")
    return vf.metrics.evaluate(fresh, run.x).skill


@pytest.fixture(scope="module")
def found():
    data = visits(50, 0)
    return data, Search(folds=2)(Plan(), PARTS, data)


def test_a_search_finds_the_way_back(found):
    data, report = found
    plan = report.best.plan
    assert isinstance(plan.prior, MeanReverting)
    assert 0.2 * RATE < plan.prior.rate < 3.0 * RATE
    assert any(t.stage == "returning" for t in report.trials)
    assert len(report.lengths) == 2  # single steps and whole trajectories
    assert len(report.best.ratios) == len(report.null) == 2
    far = np.array([[30.0, 30.0]])
    assert (plan.fit(data).field(far) * (far - data.states.mean(axis=0)) < 0).all()


def test_it_beats_searches_without_a_prior_on_fresh_data(found):
    data, report = found
    without = Search(folds=2)(Plan(), PARTS - {"prior"}, data)
    assert not any(t.stage == "returning" for t in without.trials)
    fresh = visits(400, 1)
    value = skill(report.best.plan, data, fresh)
    assert value > skill(without.best.plan, data, fresh) + 0.05
    assert value > 0.15


def trial(*ratios):
    score = float(np.exp(np.mean(np.log(ratios))))
    return Trial(Plan(), 1.0, None, "kernels", 10, score, 0.1, ratios, None, "ok", 0.0)


def test_plans_that_follow_the_data_for_a_while_are_left_alone():
    assert reversion._astray(trial(0.95, 0.96, 0.9))
    assert reversion._astray(trial(0.76, 0.58, 0.73, 1.07))
    assert not reversion._astray(trial(0.98, 0.57, 0.29, 0.1))  # noisy samples
    assert not reversion._astray(trial(0.8, 0.1, 0.2, 0.9))  # chaos
    assert not reversion._astray(trial(1e-6, 1e-6))
    assert not reversion._astray(dataclasses.replace(trial(0.9), score=float("inf")))
    context = Context(Search(folds=2), Plan(), OPEN, visits(12, 0), None)
    before = context.bench
    first = [trial(0.5, 0.1, 0.1)]
    assert return_to_data(context, first) == first
    closed = Context(Search(folds=2), Plan(), OPEN - {"prior"}, visits(12, 0), None)
    assert return_to_data(closed, [trial(0.9, 0.9)])[0].score == pytest.approx(0.9)
    assert context.bench is before
    assert not context.trials
    assert not closed.trials


def test_a_walk_that_finds_nothing_leaves_the_search_as_it_was(monkeypatch):
    context = Context(Search(folds=2), Plan(), OPEN, visits(12, 0), None)
    before = context.bench, context.splits, context.lengths, context.small
    monkeypatch.setattr(reversion, "_walk", lambda context, base: None)
    best = [trial(0.9, 0.9, 0.9)]
    assert return_to_data(context, best) == best
    assert (context.bench, context.splits, context.lengths, context.small) == before
    assert not context.jointly


def test_gains_that_chance_may_have_made_are_not_taken(monkeypatch):
    context = Context(Search(folds=2), Plan(), OPEN, visits(12, 0), None)
    best = [trial(0.97, 0.97, 0.97)]
    for spread, kept in ((0.03, False), (0.01, True)):
        found = dataclasses.replace(trial(0.5, 0.5), score=0.95, spread=spread)
        monkeypatch.setattr(reversion, "_walk", lambda context, base, found=found: found)
        monkeypatch.setattr(context, "try_all", lambda *args, **options: [])
        assert (return_to_data(context, best)[0] is found) == kept
        assert ("prior" in context.jointly) == kept


def test_objectives_that_were_asked_for_stay():
    data = visits(12, 0)
    given = vf.tuning.Rollout()
    context = Context(Search(objective=given, folds=2), Plan(), OPEN, data, None)
    lengths = context.lengths
    context.widen(100)
    assert context.bench.objective is given
    assert context.bench.lengths == lengths
    default = Context(Search(folds=2), Plan(), OPEN, data, None)
    default.widen(100)
    assert default.bench.objective == default.search.objective
    assert default.bench.lengths == (lengths[0], lengths[-1])


def test_ways_lead_on_and_keep_the_width_of_kernels():
    place = Place(Matern(2.5, 2.0), 0.1, None, White())
    ways = [list(way) if j > 3 else None for j, way in enumerate(place.ways(2.0, [White()]))]
    assert ways[4] == [dataclasses.replace(place, width=reversion.WIDTH)]
    kernels = [way[0].kernel for way in ways[5:]]
    width = 2.0 * np.sqrt(5.0)
    assert kernels == [Laplace(width), Gaussian(width)]
    rates = [p.rate for p in next(iter(place.ways(2.0, [White()])))]
    assert rates == [0.2, 0.4, 0.8]  # no farther than a step
    local = dataclasses.replace(place, width=1.0, noise=SnapshotNoise(0.1))
    assert [p.width for p in list(local.ways(2.0, []))[2]] == [2.0, 4.0]
    assert candidates.lengths_of(next(list(local.ways(2.0, []))[1]).kernel) == (4.0,)


@pytest.mark.filterwarnings("ignore:nothing is clearly better")  # few data, short of three errors
def test_pooled_validation_is_learned_from_and_judged_by_folds():
    train, validation = visits(20, 0), visits(10, 1)
    both = pooled(train, validation)
    assert len(both) == 30
    assert both.ids[0] == "train/0"
    assert both.ids[-1] == "validation/9"
    np.testing.assert_array_equal(both.states[len(train.states) :], validation.states)
    named = dataclasses.replace(validation, ids=np.array([f"v{i}" for i in range(10)]))
    assert pooled(train, named).ids.tolist() == [*(str(i) for i in range(20)), *named.ids]
    fixed = {
        "kernel": Gaussian(2.0),
        "rule": Trapezoid(),
        "noise": White(),
        "prior": vf.prior.LinearPrior(),
    }
    search = Search(folds=3, pool=True)
    model = vf.MOCK(**fixed, search=search).fit(train, validation=validation)
    again = vf.MOCK(**fixed, search=Search(folds=3)).fit(both)
    assert model.report_.folds == 3
    assert len(model.residuals_) == (both.lengths - 1).sum()
    np.testing.assert_array_equal(model.predict(train.states), again.predict(train.states))
    apart = vf.MOCK(**fixed, search=Search(folds=3)).fit(train, validation=validation)
    assert apart.report_.folds == 1
    assert len(apart.residuals_) == (train.lengths - 1).sum()
    other = dataclasses.replace(validation, feature_names=("a", "b"))
    with pytest.raises(vf.DataError, match="same columns in the same order"):
        vf.MOCK(**fixed, search=search).fit(train, validation=other)
    with pytest.raises(TypeError, match="pool must be True or False"):
        Search(pool=1)
