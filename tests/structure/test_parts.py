"""The parts of the search, each against the slow and obvious way."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.linalg import block_diag, toeplitz

import vectorfield as vf
from vectorfield.occupation import Lagrange, Trapezoid
from vectorfield.structure.basis import LEVELS
from vectorfield.structure.design import Design, cut, drawn
from vectorfield.structure.metric import LEAST, Metric
from vectorfield.structure.model import RIDGES, empty, extend, fit_on, join, unlinked
from vectorfield.structure.operator import Operator
from vectorfield.structure.scores import MAINS, PRODUCTS, Screen
from vectorfield.structure.stopping import improvement, threshold


def walks(lengths, d, seed=0):
    rng = np.random.default_rng(seed)
    xs = [np.cumsum(rng.normal(size=(n, d)), axis=0) / 4 for n in lengths]
    return vf.Trajectories.from_arrays(xs, 0.1)


@pytest.fixture(scope="module")
def design():
    return Design.of(
        walks((20, 20, 13, 20, 20, 17, 20, 20) * 3, 4),
        rule=Lagrange(4),
        check=Trapezoid(),
        folds=3,
        random_state=0,
        order=8,
    )


@pytest.mark.parametrize("whitened", [False, True])
def test_operator_is_the_whitened_quadrature(whitened):
    occupations = Lagrange(4)(walks((7, 7, 12, 7), 2))
    ends = np.concatenate([[0], np.cumsum(np.bincount(occupations.owner))])
    durations = occupations.durations
    metric = Metric.of(occupations.targets.T, durations, ends) if whitened else None
    operator = Operator.of(occupations, metric)
    lower = np.eye(len(occupations))
    if metric is not None:
        spans = pairwise(ends)
        lower = np.linalg.cholesky(
            block_diag(*(metric.covariance(durations[a:b]) for a, b in spans))
        )
    dense = np.linalg.solve(lower, occupations.weights.toarray())
    f = np.random.default_rng(1).normal(size=(3, len(occupations.nodes)))
    rows = operator.apply(f)
    np.testing.assert_allclose(rows, f @ dense.T, atol=1e-10)
    np.testing.assert_allclose(operator.adjoint(rows), rows @ dense, atol=1e-9)
    y = np.random.default_rng(2).normal(size=(3, len(occupations)))
    np.testing.assert_allclose(operator.whiten(y), np.linalg.solve(lower, y.T).T, atol=1e-10)
    assert sum(run.count for run in operator.runs) == 4
    assert len(operator.runs) == 3  # the first two trajectories share a block


def test_metric_is_the_autocovariance_of_rates():
    rng = np.random.default_rng(0)
    errors, durations = rng.normal(size=(2, 9)), rng.uniform(0.5, 1.5, size=9)
    ends = np.array([0, 4, 9])
    rates = errors / durations
    rates /= np.sqrt(np.mean(rates**2, axis=1))[:, None]
    slow = np.zeros(5)
    for a, b in ((0, 4), (4, 9)):
        for lag in range(b - a):
            slow[lag] += np.sum(rates[:, a : b - lag] * rates[:, a + lag : b])
    metric = Metric.of(errors, durations, ends)
    np.testing.assert_allclose(metric.autocovariance, slow / slow[0], atol=1e-12)
    relative = durations[:4] / durations[:4].mean()
    expected = (toeplitz(slow[:4] / slow[0]) + LEAST * np.eye(4)) * np.outer(relative, relative)
    np.testing.assert_allclose(metric.covariance(durations[:4]), expected, atol=1e-12)


def test_polynomials_are_orthonormal_on_the_data(design):
    x = design.states
    for j in range(4):
        p = design.polynomials(x[j], j, 6)
        np.testing.assert_allclose(p @ p.T / x.shape[1], np.eye(6), atol=1e-8)
        np.testing.assert_allclose(p.mean(axis=1), 0.0, atol=1e-8)
    many = design.polynomials(x[1:3], slice(1, 3), 6)
    np.testing.assert_allclose(many[:, 1], design.polynomials(x[2], 2, 6), atol=1e-12)


@pytest.mark.parametrize("level", [0, 1])
def test_model_is_least_squares_in_folds(design, level):
    model = fit_on(design, 1, level, (1, 3, 0), ((), (1,), (1, 3)))
    assert model is not None
    y, rows = design.targets[1], model.rows
    np.testing.assert_allclose(rows, design.operator.apply(model.functions), atol=1e-10)
    best = np.inf
    for ridge in RIDGES:
        left = np.empty_like(y)
        for fold in design.folds:
            kept = np.ones(len(y), dtype=bool)
            kept[fold] = False
            penalty = ridge * np.trace(rows @ rows.T) / len(rows) * np.eye(len(rows))
            system = rows[:, kept] @ rows[:, kept].T + penalty
            c = np.linalg.solve(system, rows[:, kept] @ y[kept])
            left[fold] = y[fold] - c @ rows[:, fold]
        if left @ left < best:
            best, errors = left @ left, left
    np.testing.assert_allclose(model.errors, errors, atol=1e-8)
    assert model.total == pytest.approx(best)
    starts = [*design.starts, len(y)]
    sums = [np.sum(errors[a:b] ** 2) for a, b in pairwise(starts)]
    np.testing.assert_allclose(model.sums, sums, atol=1e-8)


def test_a_level_has_as_many_functions_as_it_says(design):
    for level, settings in enumerate(LEVELS[:2]):
        model = fit_on(design, 0, level, (0, 1, 2))
        assert model is not None
        assert len(model.functions) == settings.count(3)


def test_inputs_joined_later_span_the_same(design):
    alone = fit_on(design, 2, 0, (2, 0), ((), ()))
    assert alone is not None
    assert unlinked(alone) == [(0, 1)]
    joined, together = join(alone, 0, 1), fit_on(design, 2, 0, (2, 0))
    assert joined is not None
    assert together is not None
    assert joined.total == pytest.approx(together.total, rel=1e-9)
    assert unlinked(joined) == []


def test_too_few_rows_for_a_basis_are_refused(design):
    model = empty(design, 0, 2)
    for j in range(4):
        model = extend(model, j)
        if model is None:
            break
    assert model is None


def test_scores_are_the_products_one_by_one(design):
    screen = Screen.of(design)
    models = [fit_on(design, 0, 0, (0, 2)), fit_on(design, 3, 0, (3,))]
    scores, partners = screen(models)
    p = [design.polynomials(design.states[j], j, MAINS) for j in range(4)]
    typical = np.mean([np.sum(design.operator.apply(p[j][:1]) ** 2) for j in range(4)])
    for k, model in enumerate(models):
        pulled = design.operator.adjoint(model.errors[None, :])[0]
        for j in set(range(4)) - set(model.inputs):
            sizes = np.sum(design.operator.apply(p[j]) ** 2, axis=1)
            alone = np.sum((p[j] @ pulled) ** 2 / sizes)
            slots = [
                sum(
                    (np.sum(p[s][a - 1] * p[j][b - 1] * pulled)) ** 2 / typical for a, b in PRODUCTS
                )
                for s in model.inputs
            ]
            assert scores[k, j] == pytest.approx(alone + max(slots), rel=1e-3)
            assert partners[k, j] == int(np.argmax(slots))
        assert (scores[k, list(model.inputs)] < 0).all()


def test_pairs_are_ranked_by_their_products(design):
    screen, model = Screen.of(design), empty(design, 0, 0)
    pulled = design.operator.adjoint(model.errors[None, :])[0]
    p = [design.polynomials(design.states[j], j, 2) for j in range(4)]
    totals = {}
    for j in range(4):
        for k in range(j + 1, 4):
            one = [(p[j][a - 1] * p[k][b - 1]) @ pulled for a, b in PRODUCTS]
            two = [(p[k][a - 1] * p[j][b - 1]) @ pulled for a, b in PRODUCTS]
            totals[j, k] = np.sum(np.square(one)) + np.sum(np.square(two))
    assert screen.pairs(model, 3) == sorted(totals, key=totals.get, reverse=True)[:3]


def test_improvement_and_threshold():
    rng = np.random.default_rng(0)
    old, new = rng.uniform(1, 2, size=50), rng.uniform(1, 2, size=50)
    gain = (old - new) / (old + new)
    expected = gain.mean() / (gain.std(ddof=1) / np.sqrt(50))
    assert improvement(old, new) == pytest.approx(expected)
    assert improvement(old, old) == 0.0
    assert improvement(old, 0.5 * old) == np.inf
    assert improvement(0.5 * old, old) == -np.inf
    assert threshold(0.05, 100, 50) > threshold(0.05, 10, 50) > threshold(0.05, 1, 50)
    assert threshold(0.05, 10, 5) > threshold(0.05, 10, 50)


def test_pieces_and_draws_keep_samples():
    data = walks((600, 30), 2)
    pieces = cut(data, 4)
    assert int(pieces.lengths.max()) <= 256
    assert len(pieces) >= 8
    np.testing.assert_array_equal(pieces.states, data.states)
    few = walks((20,) * 30, 2)
    assert cut(few, 4) is few
    some = drawn(few, 100, 0)
    assert 60 <= int((some.lengths - 1).sum()) <= 100
    assert drawn(few, 10_000, 0) is few
