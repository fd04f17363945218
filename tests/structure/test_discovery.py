"""What is found: known systems, known answers."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import vectorfield as vf
from vectorfield.structure import Dependencies


def simulated(f, d, count=40, samples=41, span=2.0, seed=0, spread=1.5):
    starts = np.random.default_rng(seed).uniform(-spread, spread, size=(count, d))
    t = np.linspace(0.0, span, samples)
    return vf.Trajectories.from_arrays(list(vf.simulate(f, starts, t).x), t)


def noisy(data, share, seed=1):
    rng = np.random.default_rng(seed)
    noise = share * data.states.std(axis=0) * rng.normal(size=data.states.shape)
    xs = [data.states[a:b] + noise[a:b] for a, b in pairwise(data.offsets)]
    return vf.Trajectories.from_arrays(xs, [t for t, _ in data])


def smooth(x):
    """sin, tanh, a threshold and a product, of 0 to 3 inputs each."""
    a, b, c, d, e, _ = x.T
    return np.stack(
        [
            -a + 2.0 * np.sin(1.5 * b),
            -b + np.tanh(3.0 * c),
            -c + np.maximum(d - 0.3, 0.0),
            -d + a * e,
            np.cos(e + 0.5),
            np.full(len(x), 0.3),
        ],
        axis=1,
    )


SMOOTH = np.array(
    [
        [1, 1, 0, 0, 0, 0],
        [0, 1, 1, 0, 0, 0],
        [0, 0, 1, 1, 0, 0],
        [1, 0, 0, 1, 1, 0],
        [0, 0, 0, 0, 1, 0],
        [0, 0, 0, 0, 0, 0],
    ],
    dtype=bool,
)


@pytest.fixture(scope="module")
def data():
    return simulated(smooth, 6, count=80)


def test_nonlinear_inputs_are_found(data):
    found = vf.discover_structure(data)
    assert (found.matrix.toarray() == SMOOTH).all()
    assert isinstance(found, Dependencies)
    assert found.levels.max() > 0
    assert (found.errors[:5] < 0.1).all()
    for table in (found.scores, found.shares, found.stability):
        assert (table.toarray()[~SMOOTH] == 0.0).all()
    assert (found.shares.toarray()[SMOOTH] > 0.0).all()
    assert (found.shares.data <= 1.0).all()
    assert (found.stability.data <= 1.0).all()
    assert found.stability.data.mean() > 0.9


def test_with_noise_too(data):
    found = vf.discover_structure(noisy(data, 0.03)).matrix.toarray()
    assert (found & ~SMOOTH).sum() <= 1
    assert (found & SMOOTH).sum() >= 10


def test_one_seed_one_result(data):
    one, two = (vf.discover_structure(data[:30]) for _ in range(2))
    assert (one.matrix != two.matrix).nnz == 0
    np.testing.assert_array_equal(one.scores.data, two.scores.data)
    np.testing.assert_array_equal(one.stability.data, two.stability.data)


def test_an_input_that_matters_in_a_product_alone():
    """dx0/dt = x1 x2 with x1, x2 centred: no function of x1 alone explains anything."""

    def f(x):
        return np.stack([x[:, 1] * x[:, 2], -x[:, 1], -x[:, 2], -x[:, 3], x[:, 4] * 0.0], axis=1)

    found = vf.discover_structure(simulated(f, 5, count=60)).matrix.toarray().astype(int)
    expected = np.zeros((5, 5), dtype=int)
    expected[0, [1, 2]] = expected[[1, 2, 3], [1, 2, 3]] = 1
    np.testing.assert_array_equal(found, expected)


def test_correlated_inputs_are_told_apart():
    """x2 follows x1 closely, but only x1 drives x0."""

    def f(x):
        return np.stack([np.sin(x[:, 1]) - x[:, 0], -0.3 * x[:, 1], 4.0 * (x[:, 1] - x[:, 2])], 1)

    rng = np.random.default_rng(0)
    starts = rng.uniform(-2.0, 2.0, size=(60, 3))
    starts[:, 2] = starts[:, 1] + 0.1 * rng.normal(size=60)
    t = np.linspace(0.0, 2.0, 41)
    data = vf.Trajectories.from_arrays(list(vf.simulate(f, starts, t).x), t)
    assert np.corrcoef(data.states[:, 1:].T)[0, 1] > 0.98
    found = vf.discover_structure(data).matrix.toarray().astype(int)
    np.testing.assert_array_equal(found, [[1, 1, 0], [0, 1, 0], [0, 1, 1]])


def test_noise_alone_has_few_inputs():
    """At level 0.05 the wrong inputs of 30 outputs of pure random walks are some 1.5."""
    rng = np.random.default_rng(3)
    xs = [np.cumsum(rng.normal(size=(40, 30)), axis=0) for _ in range(40)]
    found = vf.discover_structure(xs, 0.1).matrix.toarray()
    assert (found & ~np.eye(30, dtype=bool)).sum() <= 3


def test_a_dense_system_stays_dense():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(6, 6)) / 3 - np.eye(6)
    found = vf.discover_structure(simulated(lambda x: x @ matrix.T, 6))
    assert found.matrix.toarray().all()


def test_a_dense_field_loses_nothing():
    """Where edges are missed, a fit on all inputs that rolls out better is taken."""
    rng = np.random.default_rng(0)
    linear = rng.normal(size=(5, 5)) / 3.0 - 1.5 * np.eye(5)
    square = rng.normal(size=(5, 5, 5)) / 15.0

    def f(x):
        return x @ linear.T + np.einsum("ijk,nj,nk->ni", square, x, x)

    data, fresh = (simulated(f, 5, count=n, seed=n, spread=1.0) for n in (20, 8))
    sparse = vf.MOCK(structure=vf.Structure()).fit(data)
    whole = vf.MOCK(structure=np.ones((5, 5))).fit(data)
    assert 1.0 - sparse.score(fresh) <= 1.1 * (1.0 - whole.score(fresh)) + 1e-9


def test_half_sample_stability(data):
    found = vf.Structure(resamples=3)(data[:40])
    assert set(np.round(3 * found.stability.data).astype(int)) <= {0, 1, 2, 3}
    assert found.stability.data.mean() > 0.6


def test_one_long_trajectory_is_cut():
    system = vf.systems.Lorenz96(d=6)
    x0 = np.random.default_rng(0).normal(size=6) + 2.0
    x = vf.simulate(system, x0, np.arange(0.0, 30.0, 0.02)).x
    found = vf.discover_structure(x[200:], 0.02)
    ring = np.zeros((6, 6), dtype=bool)
    for offset in (-2, -1, 0, 1):
        ring[np.arange(6), (np.arange(6) + offset) % 6] = True
    assert (found.matrix.toarray() == ring).all()
    assert found.stencil() == {(-2,): 1.0, (-1,): 1.0, (0,): 1.0, (1,): 1.0}


def test_stencil_of_a_grid():
    shape = (3, 4)
    places = np.arange(12).reshape(shape)
    matrix = np.eye(12, dtype=bool)
    matrix[places.ravel(), np.roll(places, -1, axis=1).ravel()] = True
    rows = np.flatnonzero(np.arange(12) < 6)
    matrix[rows, np.roll(places, 1, axis=0).ravel()[rows]] = True
    data = vf.Trajectories.from_arrays([np.ones((3, 12))], 1.0)
    found = vf.Structure(known=matrix)(data)
    assert found.stencil(shape) == {(0, 0): 1.0, (0, 1): 1.0, (-1, 0): 0.5}
    with pytest.raises(ValueError, match="12 coordinates"):
        found.stencil((5, 2))


def test_report_names_the_edges(data):
    found = vf.discover_structure(data)
    edges = found.edges()
    assert len(edges) == SMOOTH.sum()
    assert {(e.output, e.input) for e in edges if e.output == "x3"} == {
        ("x3", "x0"),
        ("x3", "x3"),
        ("x3", "x4"),
    }
    assert "x3 <- x4" in found.summary()
    assert "more" in found.summary(most=2)
    assert "given" in vf.Structure(known=SMOOTH)(data).summary()
    assert repr(found) == "Dependencies(d=6, edges=10, inputs 0 to 3)"


def test_estimator_learns_on_what_is_found(data):
    model = vf.MOCK(structure=vf.Structure()).fit(data)
    assert (model.structure_.matrix.toarray() == SMOOTH).all()
    dense = vf.MOCK(search=False).fit(data[:40])
    fresh = simulated(smooth, 6, count=10, seed=9, spread=1.2)
    assert model.score(fresh) > 0.99
    assert 1.0 - model.score(fresh) < 0.2 * (1.0 - dense.score(fresh))
    jacobian = model.field_.sparse_jacobian(fresh.states[0])
    assert jacobian.nnz <= SMOOTH.sum()


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.coo_matrix])
def test_estimator_takes_a_matrix(data, make):
    model = vf.MOCK(vf.kernels.Monomials(2), 1e-8, structure=make(SMOOTH)).fit(data)
    assert isinstance(model.kernel_, vf.kernels.SparseFeatures)
    slopes = model.field_.jacobian(data.states[:5])
    assert (slopes[:, ~SMOOTH] == 0.0).all()
    exact = vf.MOCK(vf.kernels.Gaussian(), 1e-6, structure=make(SMOOTH)).fit(data[:5])
    assert isinstance(exact.kernel_, vf.kernels.SparseKernel)


def test_given_settings_are_kept(data):
    rule = vf.occupation.Lagrange(6)
    settings = vf.Structure(known=SMOOTH)
    model = vf.MOCK(vf.kernels.Monomials(3), rule=rule, structure=settings).fit(data)
    assert model.kernel_.features == vf.kernels.Monomials(3)
    assert model.field_.info["rule"] == repr(rule)


def test_what_was_found_before_is_taken_as_it_is(data):
    found = vf.Structure()(data)
    model = vf.MOCK(vf.kernels.Monomials(2), 1e-8, structure=found).fit(data)
    assert model.structure_ is found
    assert model.kernel_.inputs == found.inputs


def test_what_cannot_be_done_is_said(data):
    with pytest.raises(ValueError, match="structure and search"):
        vf.MOCK(structure=SMOOTH, search=vf.Search()).fit(data)
    with pytest.raises(ValueError, match="6 features"):
        vf.MOCK(structure=np.eye(3)).fit(data)
    with pytest.raises(TypeError, match="scalar one"):
        vf.MOCK(vf.kernels.CurlFree(), structure=SMOOTH).fit(data)
    with pytest.raises(TypeError, match="Structure"):
        vf.discover_structure(data, settings="auto")
    with pytest.raises(vf.DataError, match="too few"):
        vf.discover_structure(data[:1].states[:9], 0.1)


@pytest.mark.parametrize(
    "bad",
    [{"level": 0.0}, {"level": 1.0}, {"folds": 1}, {"samples": 3}, {"candidates": 0}],
    ids=str,
)
def test_settings_are_checked(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        vf.Structure(**bad)
