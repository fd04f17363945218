"""Length scales of single coordinates."""

import numpy as np
import pytest

import vectorfield as vf
from vectorfield.kernels import Gaussian, Linear, Matern
from vectorfield.occupation import Lagrange, White
from vectorfield.plan import Plan
from vectorfield.tuning import Search, candidates
from vectorfield.tuning.context import Context
from vectorfield.tuning.stages.axes import TRIALS, choose_axes
from vectorfield.tuning.stages.lengths import stretch

OPEN = frozenset(("kernel", "ridge"))
LADDER = (1e-2, 1e-4, 1e-6, 1e-8)


def fast_in_one(x):
    """A field that varies along the second coordinate only."""
    return np.stack([np.cos(5.0 * x[:, 1]), np.full(len(x), 0.5)], axis=1)


def alike(x):
    """A field that looks the same in every direction."""
    return np.stack([x[:, 1], -x[:, 0]], axis=1) * np.exp(-np.sum(x * x, axis=1))[:, None]


def make(field, count=20, samples=12, seed=0):
    rng = np.random.default_rng(seed)
    t = 0.2 * np.arange(samples)
    starts = rng.uniform(-1.0, 1.0, size=(count, 2)) * [2.0, 1.0]
    x = vf.simulate(field, starts, t, rtol=1e-9).x
    return vf.Trajectories.from_arrays(list(x), t)


def start(data, kernel, search=None):
    """Return a context, and the trial with the best common length scale."""
    plan = Plan(kernel, rule=Lagrange(4), noise=White())
    context = Context(search or Search(folds=3), plan, OPEN | {"rule", "noise"}, data, None)
    trials = context.try_all([(plan, LADDER)], "kernels", context.small, done=0.2)
    return context, stretch(context, trials, context.small)


def error(data, field, context, trial):
    model = vf.MOCK(**context.with_ridge(trial).get_params(deep=False)).fit(data)
    points = make(field, count=20, seed=7).states
    return np.linalg.norm(model.predict(points) - field(points)) / np.linalg.norm(field(points))


@pytest.fixture(scope="module")
def walked():
    data = make(fast_in_one)
    context, trials = start(data, Gaussian(1.0))
    return data, context, trials[0], choose_axes(context, trials)


@pytest.mark.filterwarnings("ignore::vectorfield.SolveWarning")
def test_a_coordinate_that_does_not_matter_gets_a_long_scale(walked):
    data, context, common, best = walked
    lengths = best[0].plan.kernel.length_scale
    assert lengths[0] > 4.0 * lengths[1]
    before, after = (error(data, fast_in_one, context, t) for t in (common, best[0]))
    assert after < 0.1 * before


def test_every_step_was_clear_and_the_number_of_trials_is_bounded(walked):
    _, context, common, best = walked
    gain, spread = context.search.objective.gain(
        common.errors, best[0].errors, context.bench.null_errors(whole=False)
    )
    assert gain > spread
    plans = {t.plan.kernel for t in context.trials if t.stage == "axes"}
    assert 2 < len(plans) <= 2 * TRIALS
    assert best[1].plan == common.plan  # which stays as the runner-up


def test_the_same_walk_twice_is_the_same(walked):
    data, _, _, best = walked
    context, trials = start(data, Gaussian(1.0))
    again = choose_axes(context, trials)
    assert again[0].plan == best[0].plan
    np.testing.assert_array_equal(again[0].errors, best[0].errors)


def test_alike_coordinates_keep_about_one_scale():
    data = make(alike)
    context, trials = start(data, Matern(2.5, 1.0))
    best = choose_axes(context, trials)
    lengths = np.broadcast_to(best[0].plan.kernel.length_scale, 2)
    assert lengths.max() <= 2.0 * lengths.min()
    assert best[0].score <= trials[0].score


def test_where_there_is_nothing_to_walk_with_nothing_is_tried():
    data = make(fast_in_one)
    context, trials = start(data, Linear())  # no length scale that may be changed
    count = len(context.trials)
    assert choose_axes(context, trials) == trials
    given = Context(Search(folds=3), Plan(Gaussian(1.0)), OPEN - {"kernel"}, data, None)
    assert choose_axes(given, trials) == trials
    line = vf.Trajectories.from_arrays([x[:, :1] for _, x in data], 0.2)
    narrow, single = start(line, Gaussian(1.0))
    assert choose_axes(narrow, single) == single
    assert len(context.trials) == count
    assert not given.trials


def test_factors_for_each_coordinate():
    kernel = 2.0 * Linear(length_scale=3.0) + Gaussian(2.0)
    walked = candidates.stretched(kernel, (1.0, 0.5))
    assert candidates.lengths_of(walked) == (2.0, 1.0)
    assert candidates.stretched(walked, (0.5, 4.0)).right == Gaussian((1.0, 4.0))
    assert walked.left == kernel.left
