"""Figures are checked by what is on them, and by pixels where only those tell."""

import subprocess
import sys

import numpy as np
import pytest

import vectorfield as vf
from vectorfield.plots import (
    PREDICTED,
    TRUE,
    dependencies,
    phase_portrait,
    search,
    stencil,
    trajectories,
)
from vectorfield.trajectories import Trajectories
from vectorfield.tuning.candidates import lengths_of

matplotlib = pytest.importorskip("matplotlib")
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

T = np.linspace(0.0, 2.0, 21)


def swirl(x):
    return np.stack([-x[:, 1], x[:, 0]], axis=1)


def circles(radii=(1.0, 2.0), names=("p", "q")):
    xs = [r * np.stack([np.cos(T), np.sin(T)], axis=1) for r in radii]
    return Trajectories.from_arrays(xs, T, feature_names=names)


def pixels(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3]


def drawn(ax, label):
    return [line for line in ax.get_lines() if line.get_label() == label]


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_a_portrait_holds_field_data_paths_starts_names_and_legend():
    data, test = circles(), circles((1.5,))
    run = vf.rollout(swirl, test)
    ax = phase_portrait(swirl, data=data, true=test, predicted=run)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("p", "q")
    assert texts(ax) == ["training snapshots", "field", "true", "predicted", "start"]
    (dots,) = drawn(ax, "training snapshots")
    np.testing.assert_array_equal(dots.get_xydata(), data.states)
    (observed,), (predicted,) = drawn(ax, "true"), drawn(ax, "predicted")
    np.testing.assert_array_equal(observed.get_xydata(), test.states)
    np.testing.assert_array_equal(predicted.get_xydata(), run.x[0])
    assert observed.get_color() == TRUE
    assert predicted.get_color() == PREDICTED
    (start,) = drawn(ax, "start")
    np.testing.assert_array_equal(start.get_xydata(), [[1.5, 0.0]])


def test_limits_are_the_box_of_the_data_and_five_per_cent():
    ax = phase_portrait(swirl, data=circles())
    low, high = 2.0 * np.cos(2.0), 2.0
    margin = 0.05 * (high - low)
    np.testing.assert_allclose(ax.get_xlim(), [low - margin, high + margin])


def test_given_limits_hold():
    box = ((-3.0, 3.0), (-1.0, 2.0))
    ax = phase_portrait(vf.systems.VanDerPol(), limits=box)
    assert (ax.get_xlim(), ax.get_ylim()) == box
    assert ax.get_xlabel() == "x"


def test_streamlines_follow_the_field():
    ax = phase_portrait(swirl, limits=((-1.0, 1.0), (-1.0, 1.0)))
    (streams,) = ax.collections
    paths = [path.vertices for path in streams.get_paths()]
    middle = np.concatenate([0.5 * (path[1:] + path[:-1]) for path in paths])
    step = np.concatenate([np.diff(path, axis=0) for path in paths])
    kept = np.linalg.norm(step, axis=1) > 1e-6
    flow = swirl(middle[kept])
    cosine = np.sum(flow * step[kept], axis=1) / (
        np.linalg.norm(flow, axis=1) * np.linalg.norm(step[kept], axis=1)
    )
    assert len(cosine) > 100
    assert np.quantile(cosine, 0.01) > 0.95


def test_the_figure_is_not_blank_and_the_prediction_is_red():
    test = circles((1.5,))
    ax = phase_portrait(swirl, data=circles(), true=test, predicted=vf.rollout(swirl, test))
    image = pixels(ax.figure).astype(int)
    assert (image.min(axis=2) < 250).mean() > 0.02
    red = (image[:, :, 0] > 150) & (image[:, :, 1] < 90) & (image[:, :, 2] < 90)
    assert red.sum() > 50


@pytest.mark.parametrize("kind", ["simulation", "list", "array", "trajectories"])
def test_predictions_come_in_any_form(kind):
    test = circles()
    run = vf.rollout(swirl, test)
    predicted = {
        "simulation": run,
        "list": run.x,
        "array": np.stack(run.x),
        "trajectories": Trajectories.from_arrays(run.x, T),
    }[kind]
    ax = phase_portrait(None, true=test, predicted=predicted)
    red = [line for line in ax.get_lines() if line.get_color() == PREDICTED]
    assert len(red) == 2
    np.testing.assert_allclose(red[1].get_xydata(), run.x[1])


def test_predictions_alone_may_be_one_path_and_give_the_box():
    run = vf.simulate(swirl, [1.0, 0.0], T)
    ax = phase_portrait(swirl, predicted=run)
    assert ax.get_xlim()[0] < np.cos(2.0) < ax.get_xlim()[1]
    assert texts(ax) == ["field", "predicted", "start"]


def test_a_prediction_that_runs_away_leaves_the_box_alone():
    test = circles((1.0,))
    path = test.states * np.linspace(1.0, 1e6, 21)[:, None]
    path[15:] = np.nan
    ax = phase_portrait(swirl, true=test, predicted=[path])
    assert ax.get_xlim()[1] < 2.0
    assert pixels(ax.figure).min() < 50


def test_a_field_that_is_not_finite_somewhere_is_masked_there():
    def half(x):
        return np.where(x[:, :1] > 0, swirl(x), np.nan)

    ax = phase_portrait(half, limits=((-1.0, 1.0), (-1.0, 1.0)))
    (streams,) = ax.collections
    x = np.concatenate([path.vertices[:, 0] for path in streams.get_paths()])
    assert x.min() > -0.1


def test_a_field_of_zeros_has_no_streamlines():
    ax = phase_portrait(np.zeros_like, data=circles())
    assert len(ax.collections) == 0


def test_above_two_dimensions_the_streamlines_are_a_slice_at_the_median():
    calls = []

    def field(x):
        calls.append(x)
        return np.ones_like(x)

    rng = np.random.default_rng(0)
    data = Trajectories.from_arrays([rng.normal(size=(30, 4))], 0.1)
    ax = phase_portrait(field, data=data, axes=(3, 1), resolution=5)
    (points,) = calls
    assert points.shape == (25, 4)
    np.testing.assert_array_equal(np.unique(points[:, 0]), [np.median(data.states[:, 0])])
    np.testing.assert_array_equal(np.unique(points[:, 2]), [np.median(data.states[:, 2])])
    np.testing.assert_allclose(points[:5, 3], np.linspace(*ax.get_xlim(), 5))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x3", "x1")
    assert "field (slice)" in texts(ax)
    phase_portrait(field, data=data, at=[0.0, 0.0, 7.0, 0.0], resolution=5)
    np.testing.assert_array_equal(np.unique(calls[1][:, 2]), [7.0])


def test_many_snapshots_are_thinned():
    states = np.random.default_rng(0).normal(size=(50_001, 2))
    ax = phase_portrait(None, data=Trajectories.from_arrays([states], 1.0))
    assert 10_000 < len(drawn(ax, "training snapshots")[0].get_xydata()) <= 20_000


def test_own_axes_are_used_and_nothing_global_is_touched():
    before = dict(matplotlib.rcParams)
    ax = Figure().add_subplot()
    assert phase_portrait(swirl, data=circles(), ax=ax) is ax
    trajectories(circles())
    assert dict(matplotlib.rcParams) == before
    code = (
        "import numpy as np, sys, vectorfield as vf\n"
        "from vectorfield.plots import phase_portrait\n"
        "assert 'matplotlib' not in sys.modules\n"
        "phase_portrait(vf.systems.VanDerPol(), limits=((-1, 1), (-1, 1)))\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_without_matplotlib_the_extra_is_named():
    code = (
        "import sys; sys.modules['matplotlib'] = None; sys.modules['matplotlib.figure'] = None\n"
        "import vectorfield as vf\n"
        "from vectorfield.plots import phase_portrait\n"
        "try:\n    phase_portrait(vf.systems.VanDerPol(), limits=((-1, 1), (-1, 1)))\n"
        "except vf.MissingExtraError as error:\n    print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120
    )
    assert "vectorfield[plots]" in run.stdout


def test_a_fitted_model_is_named_with_its_remedy():
    model = vf.MOCK(search=False).fit(circles())
    with pytest.raises(TypeError, match="pass its field_"):
        phase_portrait(model, data=circles())
    assert phase_portrait(model.field_, data=circles()).get_xlabel() == "p"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"field": swirl}, "number of coordinates"),
        ({"field": vf.systems.VanDerPol()}, "which region"),
        ({"field": swirl, "data": circles(), "axes": (0, 0)}, "two different coordinates"),
        ({"field": swirl, "data": circles(), "axes": (0, 2)}, "two different coordinates"),
        ({"field": swirl, "data": circles(), "limits": ((1, 0), (0, 1))}, "limits must be"),
        ({"field": swirl, "data": circles(), "resolution": 1}, "resolution"),
        ({"field": swirl, "data": circles(), "density": 0.0}, "density"),
        ({"field": vf.systems.Lorenz63(), "data": circles()}, "differ in coordinates"),
        ({"field": vf.systems.Lorenz63(), "limits": ((0, 1), (0, 1))}, "which slice"),
        ({"true": circles(), "predicted": [np.ones((3, 2))] * 2}, "other shapes"),
        ({"true": circles(), "predicted": [np.ones(3)] * 2}, "one .n, d. array"),
    ],
)
def test_what_cannot_be_drawn_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        phase_portrait(**options)


def test_sets_that_are_not_trajectories_are_refused():
    with pytest.raises(TypeError, match=r"data must be a Trajectories.*from_arrays"):
        phase_portrait(swirl, data=np.ones((5, 2)))


def test_one_coordinate_has_no_portrait():
    data = Trajectories.from_arrays([[[1.0], [2.0]]], 1.0)
    with pytest.raises(ValueError, match=r"plots\.trajectories"):
        phase_portrait(np.zeros_like, data=data)


def test_panels_show_each_feature_of_each_trajectory():
    test = circles((1.0, 2.0, 3.0, 4.0))
    run = vf.rollout(swirl, test)
    axs = trajectories(test, run, which=(0, 3))
    assert axs.shape == (2, 2)
    seen, predicted = axs[1, 1].get_lines()
    np.testing.assert_array_equal(seen.get_xydata(), np.stack([T, test[3].x[:, 1]], axis=1))
    np.testing.assert_array_equal(predicted.get_ydata(), run.x[3][:, 1])
    assert [ax.get_ylabel() for ax in axs[:, 0]] == ["p", "q"]
    assert [ax.get_title() for ax in axs[0]] == ["trajectory 0", "trajectory 3"]
    assert [ax.get_xlabel() for ax in axs[1]] == ["time", "time"]
    assert texts(axs[0, 0]) == ["observed", "predicted"]
    assert pixels(axs[0, 0].figure).min() < 50


def test_panels_can_be_chosen_and_drawn_on():
    axs = Figure().subplots(1, 2, squeeze=False)
    chosen = trajectories(circles(), features=["q"], axs=axs)
    assert chosen.shape == (1, 2)
    assert chosen[0, 1] is axs[0, 1]
    assert chosen[0, 0].get_ylabel() == "q"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"which": (7,)}, "names none"),
        ({"features": ["r"]}, "must be among"),
        ({"axs": Figure().subplots(2, 1)}, "expected 2 x 2"),
    ],
)
def test_panels_that_cannot_be_drawn_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        trajectories(circles(), **options)


def test_too_many_panels_are_refused():
    many = Trajectories.from_arrays([np.ones((2, 9))] * 9, 1.0)
    with pytest.raises(ValueError, match="more than 24 panels"):
        trajectories(many, which=range(9))


def ring(d):
    known = np.eye(d) + np.roll(np.eye(d), 1, axis=1)
    names = [f"n{k}" for k in range(d)]
    data = Trajectories.from_arrays([np.ones((3, d))], 1.0, feature_names=names)
    return vf.Structure(known=known)(data)


def test_dependencies_marks_every_edge_where_it_is():
    ax = dependencies(ring(5))
    marks = {tuple(map(float, place)) for place in ax.collections[0].get_offsets()}
    assert marks == {(j % 5, i) for i in range(5) for j in (i, i + 1)}
    assert [label.get_text() for label in ax.get_xticklabels()] == [f"n{k}" for k in range(5)]
    assert ax.get_ylim() == (4.5, -0.5)
    assert pixels(ax.figure).std() > 1.0


@pytest.mark.parametrize("values", ["shares", "scores", "stability"])
def test_dependencies_colours_what_was_found(values):
    rng = np.random.default_rng(0)
    f = swirl
    starts = rng.normal(size=(30, 2))
    found = vf.discover_structure(list(vf.simulate(f, starts, T).x), T)
    ax = dependencies(found, values=values)
    table = getattr(found, values)
    rows, columns = found.matrix.nonzero()
    np.testing.assert_allclose(ax.collections[0].get_array(), table.toarray()[rows, columns])


def test_many_coordinates_have_no_names():
    ax = dependencies(ring(200))
    assert len(ax.get_xticks()) < 20
    assert len(ax.collections[0].get_offsets()) == 400


def test_stencils_of_rings_and_grids():
    ax = stencil(ring(6))
    assert {round(bar.get_x() + bar.get_width() / 2) for bar in ax.patches} == {0, 1}
    assert {bar.get_height() for bar in ax.patches} == {1.0}
    grid = stencil(ring(6), shape=(2, 3))
    places = {tuple(map(float, place)) for place in grid.collections[0].get_offsets()}
    assert (1.0, 0.0) in places
    with pytest.raises(ValueError, match="one or two entries"):
        stencil(ring(8), shape=(2, 2, 2))
    with pytest.raises(TypeError, match="discover_structure"):
        stencil(np.eye(3))
    with pytest.raises(TypeError, match="discover_structure"):
        dependencies(np.eye(3))
    with pytest.raises(ValueError, match="values"):
        dependencies(ring(3), values="colour")


def report(**options):
    t = np.linspace(0.0, 4.0, 25)
    rng = np.random.default_rng(0)
    xs = [r * np.stack([np.cos(t), np.sin(t)], axis=1) for r in (0.5, 1.0, 1.5, 2.0)]
    noisy = [x + 0.05 * rng.normal(size=x.shape) for x in xs]
    options = {"smoother": vf.SplineSmoother(), "noise": vf.occupation.White()} | options
    model = vf.MOCK(search=vf.Search(folds=2), rule=vf.occupation.Trapezoid(), **options)
    return model.fit(noisy, t).report_


@pytest.fixture(scope="module")
def found():
    return report()


def test_a_search_shows_scores_by_ridge_and_length_scale_and_where_time_went(found):
    ridge, length, time = search(found, most=3)
    kinds = {}
    for trial in found.trials:
        name = type(getattr(trial.plan.kernel, "kernel", trial.plan.kernel)).__name__
        kinds.setdefault(name, []).append(trial)
    labels = [text.get_text() for text in ridge.figure.legends[0].get_texts()]
    assert len(labels) == 5
    assert labels[3:] == ["chosen", "runner-up"]
    (line,) = drawn(ridge, labels[0])  # the best kind of all
    assert line.get_ydata().min() == min(t.score for t in found.trials if t.plan.refine is None)
    scores = {t.score for t in found.trials}
    for ax in (ridge, length):
        for one in ax.get_lines():
            if one.get_marker() == "o":
                assert set(one.get_ydata()) <= scores
                assert (np.diff(one.get_xdata()) > 0).all()
        nulls = [one for one in ax.get_lines() if list(one.get_ydata()) == [1.0, 1.0]]
        assert len(nulls) == 1
        assert ax.get_ylim()[0] < found.best.score < 1.0 < ax.get_ylim()[1]
    bars = [bar.get_width() for bar in time.patches]
    stages = [text.get_text() for text in time.get_yticklabels()]
    assert stages == list(dict.fromkeys(t.stage for t in found.trials))
    assert sum(bars) == pytest.approx(sum(t.seconds for t in found.trials))
    counts = [int(text.get_text().split(", ")[1].split(" ")[0]) for text in time.texts]
    assert sum(counts) == len(found.trials)
    assert len(np.unique(pixels(ridge.figure).reshape(-1, 3), axis=0)) > 50


def test_chosen_and_runner_up_have_their_standard_errors(found):
    ridge, length, _ = search(found)
    for name, trial in (("chosen", found.best), ("runner-up", found.runner_up)):
        (bar,) = [c for c in ridge.containers if c.get_label() == name]
        ((at, score),) = bar.lines[0].get_xydata()
        assert (at, score) == (trial.level, trial.score)
        low, high = bar.lines[2][0].get_segments()[0][:, 1]
        assert (high - score, score - low) == pytest.approx((trial.spread, trial.spread))
    marked = [c for c in length.containers if c.get_label() == "chosen"]
    assert len(marked) == bool(lengths_of(found.best.plan.kernel))


def test_a_search_of_one_kernel_fits_on_given_axes():
    one = report(kernel=vf.kernels.Monomials(1), ridge=1e-4, prior=vf.prior.LinearPrior())
    given = Figure().subplots(1, 3)
    axs = search(one, axs=given)
    assert axs[0] is given[0]
    assert not [line for line in axs[1].get_lines() if len(line.get_xdata()) > 2]
    assert "none" in [text.get_text() for text in axs[1].texts]
    assert len(np.unique(pixels(given[0].figure).reshape(-1, 3), axis=0)) > 50
    with pytest.raises(ValueError, match="axs has 2 Axes, expected 3"):
        search(one, axs=given[:2])
    with pytest.raises(TypeError, match="got MOCK"):
        search(vf.MOCK(search=False))
    with pytest.raises(ValueError, match="most must be at least 1"):
        search(one, most=0)
