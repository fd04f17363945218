"""The program `vectorfield`: what it does, what it says, and what it leaves behind."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import vectorfield as vf
from vectorfield._files import written_whole
from vectorfield.cli._app import app
from vectorfield.cli._shell import _WORDS, in_shell_words, show_table

PROGRAM = [sys.executable, "-W", "error", "-m", "vectorfield"]
DECORATION = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|[│╭╮╰╯─]")

needs_posix = pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")


def spirals(
    n: int, *, seed: int = 0, samples: int = 25, first: int = 0, offset: float = 0.0
) -> vf.Trajectories:
    """Exact solutions of x' = y, y' = -x, on grids of their own."""
    rng = np.random.default_rng(seed)
    xs, ts = [], []
    for i in range(n):
        t = np.cumsum(rng.uniform(0.05, 0.15, size=samples + i))
        phase, radius = rng.uniform(0, 6), rng.uniform(0.5, 1.5)
        xs.append(radius * np.stack([np.sin(t + phase), np.cos(t + phase)], axis=1) + offset)
        ts.append(t)
    return vf.Trajectories.from_arrays(
        xs, ts, ids=np.arange(first, first + n), feature_names=["v", "w"]
    )


def explosions() -> vf.Trajectories:
    """Solutions of x' = x^2, which reach infinity at t = 1 / x(0)."""
    t = np.linspace(0.0, 1.0, 41)
    return vf.Trajectories.from_arrays(
        [(x0 / (1 - x0 * t))[:, None] for x0 in (-0.5, 0.25, 0.5)], t, feature_names=["x"]
    )


def splits(
    train: vf.Trajectories | None = None,
    validation: vf.Trajectories | None = None,
    test: vf.Trajectories | None = None,
) -> vf.Splits:
    return vf.Splits(
        spirals(5) if train is None else train,
        spirals(3, seed=1, first=10) if validation is None else validation,
        spirals(2, seed=2, first=20) if test is None else test,
    )


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    vf.write_trajectories(spirals(5), "data.csv")
    return tmp_path


@pytest.fixture
def model(here: Path) -> Path:
    vf.MOCK(search=False).fit(spirals(5)).save("model.vf")
    return here / "model.vf"


def run(*args: object) -> Any:
    result = CliRunner().invoke(app, [str(arg) for arg in args], prog_name="vectorfield")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def done(*args: object) -> str:
    """Run a command that must succeed, and return its standard output."""
    result = run(*args)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return str(result.stdout)


def report(*args: object) -> dict[str, str]:
    lines = done(*args).splitlines()
    return dict(line.split("\t") for line in lines)


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def refused(*args: object, code: int = 1) -> str:
    """Run a command that must fail and leave no trace; return what it says."""
    before = contents(Path())
    result = run(*args)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert contents(Path()) == before
    assert "Traceback" not in result.stderr
    if code == 2:
        return " ".join(DECORATION.sub(" ", result.stderr).split())
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("error: ")
    return str(result.stderr)


# What the pages show

ROOT = Path(__file__).parents[1]


def shown(page: str, command: str) -> list[str]:
    """Return the lines that a page prints below a command."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return text.split(f"$ {command}\n")[1].split("```")[0].splitlines()


def assert_alike(said: Sequence[str], page: Sequence[str]) -> None:
    """Words to the letter; numbers to five digits of six, which other machines have as well."""
    number = re.compile(r"-?\d+\.\d+(?:e-?\d+)?|\d+e-?\d+")
    for one, other in zip(said, page, strict=True):
        if not one.startswith("seconds"):
            assert number.sub("#", one) == number.sub("#", other)
            values = [[float(v) for v in number.findall(line)] for line in (one, other)]
            np.testing.assert_allclose(*values, rtol=2e-5, err_msg=one)


def test_the_pages_show_what_the_program_says(here: Path) -> None:
    done("datasets", "export", "pendulum", "-o", "pendulum.csv")
    fit = "fit pendulum.csv -o pendulum.vf --rule lagrange --no-search"
    said = done(*fit.split()).splitlines()
    assert_alike(said, shown("docs/guide/cli.md", f"vectorfield {fit} --force | cat"))
    simulate = "simulate pendulum.vf --from 1,0 --times 0:0.2:0.1"
    path = done(*simulate.split()).splitlines()
    for page in ("README.md", "docs/guide/cli.md"):
        assert_alike(path, shown(page, f"vectorfield {simulate}"))


# Fit


def test_fit_is_the_estimator_on_the_same_data(here: Path) -> None:
    said = report("fit", "data.csv", "-o", "model.vf", "--no-search")
    model: Any = vf.MOCK(search=False).fit(spirals(5))
    field = vf.load("model.vf")
    np.testing.assert_array_equal(field.expansion.coefficients, model.field_.expansion.coefficients)
    np.testing.assert_array_equal(field.expansion.nodes, model.field_.expansion.nodes)
    assert field.kernel == model.kernel_
    assert field.feature_names == ("v", "w")
    assert said["data"] == "all rows"
    assert said["trajectories"] == "5"
    assert said["samples"] == str(25 + 26 + 27 + 28 + 29)
    assert said["features"] == "v, w"
    assert said["observations"] == "130 by Trapezoid()"
    assert said["kernel"] == "Gaussian"
    assert said["length scale"] == f"{model.kernel_.kernel.length_scale:.6g}"
    assert said["ridge"] == f"{model.ridge_:.6g}"
    assert said["solver"] == "solved in float64"
    assert {part.split()[0] for part in said["seconds"].split(", ")} >= {"read", "factor", "solve"}
    targets = vf.occupation.Trapezoid()(spirals(5)).targets / field.scale
    share = np.linalg.norm(model.residuals_ / field.scale) / np.linalg.norm(targets)
    assert said["training residual"] == f"{100 * share:.4g} % of the observed changes"
    assert "validation trajectories" not in said
    assert said["model"] == "model.vf"


@pytest.mark.parametrize(
    ("options", "kernel"),
    [
        ("--kernel gaussian --length-scale 2", vf.kernels.Gaussian(2.0)),
        ("--kernel laplace --length-scale 1,3", vf.kernels.Laplace((1.0, 3.0))),
        ("--kernel matern --nu 1.5 --length-scale 2", vf.kernels.Matern(1.5, 2.0)),
        (
            "--kernel rational-quadratic --alpha 0.5 --length-scale 1",
            vf.kernels.RationalQuadratic(0.5, 1.0),
        ),
        ("--kernel polynomial --degree 3", vf.kernels.Polynomial(3)),
        ("--kernel polynomial --length-scale 4", vf.kernels.Polynomial(length_scale=4.0)),
        ("--kernel linear", vf.kernels.Linear()),
    ],
)
def test_kernels(here: Path, options: str, kernel: vf.kernels.ScalarKernel) -> None:
    said = report("fit", "data.csv", "-o", "model.vf", *options.split(), "--ridge", "1e-6")
    assert vf.load("model.vf").kernel == vf.kernels.Separable(kernel)
    assert vf.load("model.vf").info["ridge"] == 1e-6
    assert said["kernel"].split(",")[0] == type(kernel).__name__
    assert said["ridge"] == "1e-06"


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ("trapezoid", vf.occupation.Trapezoid()),
        ("lagrange", vf.occupation.Lagrange()),
        ("lagrange --samples 6", vf.occupation.Lagrange(6)),
        ("spline", vf.occupation.Spline()),
        ("windows --samples 4", vf.occupation.Windows(4)),
        ("weak-form --samples 7", vf.occupation.WeakForm(7)),
        ("forward-difference", vf.occupation.ForwardDifference()),
        ("central-difference", vf.occupation.CentralDifference()),
    ],
)
def test_rules(here: Path, options: str, rule: vf.occupation.Rule) -> None:
    done("fit", "data.csv", "-o", "model.vf", "--no-search", "--rule", *options.split())
    expected = vf.MOCK(rule=rule, search=False).fit(spirals(5)).field_
    np.testing.assert_array_equal(
        vf.load("model.vf").expansion.coefficients, expected.expansion.coefficients
    )
    assert vf.load("model.vf").info["rule"] == repr(rule)


def test_noise_and_standardisation(here: Path) -> None:
    options = ["--noise", "snapshot", "--no-standardize", "--no-search"]
    done("fit", "data.csv", "-o", "model.vf", *options)
    expected = vf.MOCK(noise=vf.occupation.SnapshotNoise(), standardize=False, search=False).fit(
        spirals(5)
    )
    field = vf.load("model.vf")
    np.testing.assert_array_equal(
        field.expansion.coefficients, expected.field_.expansion.coefficients
    )
    assert field.shift.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", ["split.csv", "split.csv.gz", "split.parquet"])
def test_split_columns_are_honoured(here: Path, name: str) -> None:
    parts = splits()
    assert parts.train is not None
    assert parts.validation is not None
    vf.write_splits(parts, name)
    said = report("fit", name, "-o", "model.vf", "--no-search")
    model = vf.MOCK(search=False).fit(parts.train)
    expected = model.field_
    np.testing.assert_array_equal(
        vf.load("model.vf").expansion.coefficients, expected.expansion.coefficients
    )
    scores = vf.metrics.evaluate(parts.validation, vf.rollout(expected, parts.validation).x)
    assert said["data"] == "training rows"
    assert said["trajectories"] == "5"
    assert said["validation trajectories"] == "3"
    assert said["stopped early"] == "0"
    assert said["Err"] == f"{scores.err:.6g}"
    assert said["null Err"] == f"{scores.null_err:.6g}"
    assert said["1-Err"] == f"{scores.one_err:.6g}"
    assert said["null 1-Err"] == f"{scores.null_one_err:.6g}"
    assert said["skill"] == f"{model.score(parts.validation):.6g}"


def test_only_training_rows_reach_the_model_and_test_rows_nothing(here: Path) -> None:
    def fitted(parts: vf.Splits) -> tuple[bytes, dict[str, str]]:
        vf.write_splits(parts, "split.csv")
        said = report("fit", "split.csv", "-o", "model.vf", "--force", "--no-search")
        del said["seconds"]
        return Path("model.vf").read_bytes(), said

    model, said = fitted(splits())
    other_test = splits(test=spirals(9, seed=7, first=20, offset=50.0))
    assert fitted(other_test) == (model, said)
    other_model, other_said = fitted(splits(validation=spirals(3, seed=8, first=10)))
    assert other_model == model
    assert other_said["Err"] != said["Err"]
    assert fitted(splits(train=spirals(5, seed=9)))[0] != model


def test_parts_that_are_empty(here: Path) -> None:
    parts = splits()
    vf.write_splits(vf.Splits(parts.train, None, parts.test), "split.csv")
    said = report("fit", "split.csv", "-o", "model.vf", "--no-search")
    assert said["validation trajectories"] == "0"
    vf.write_splits(vf.Splits(None, parts.validation, None), "split.csv")
    assert "no row is in train" in refused("fit", "split.csv", "-o", "other.vf")


def test_a_file_with_some_of_the_split_columns_is_not_fitted_unawares(here: Path) -> None:
    lines = Path("data.csv").read_text().splitlines()
    rows = [f"{line},{int(k % 2 == 0)}" for k, line in enumerate(lines[1:])]
    Path("half.csv").write_text("\n".join([f"{lines[0]},train", *rows]) + "\n")
    said = refused("fit", "half.csv", "-o", "model.vf")
    assert "'half.csv'" in said
    assert "'train' but not 'validation'" in said
    assert "--features" in said
    options = ["--features", "v,w", "--no-search"]
    assert report("fit", "half.csv", "-o", "model.vf", *options)["features"] == "v, w"


def test_columns_by_name(here: Path) -> None:
    text = Path("data.csv").read_text().splitlines()
    rows = [f"some text,{line}" for line in text[1:]]
    Path("named.csv").write_text("\n".join(['note,who,years,"v, raw",w', *rows]) + "\n")
    names = ["--trajectory", "who", "--time", "years"]
    options = ["--features", 'w,"v, raw"', "--no-search"]
    done("fit", "named.csv", "-o", "model.vf", *names, *options)
    swapped = [(x[:, ::-1], t) for t, x in spirals(5)]
    expected = vf.MOCK(search=False).fit([x for x, _ in swapped], [t for _, t in swapped]).field_
    field = vf.load("model.vf")
    assert field.feature_names == ("w", "v, raw")
    np.testing.assert_allclose(
        field.expansion.coefficients, expected.expansion.coefficients, rtol=1e-12
    )
    # The same names serve for simulation, and are those of what it writes.
    done("simulate", "model.vf", "--from", "named.csv", "-o", "out.csv", *names)
    assert Path("out.csv").read_text().splitlines()[0] == 'who,years,w,"v, raw"'


def with_a_gap(path: str) -> None:
    lines = Path("data.csv").read_text().splitlines()
    cells = lines[10].split(",")
    lines[10] = ",".join([*cells[:3], ""])
    Path(path).write_text("\n".join(lines) + "\n")


def test_missing_values_are_refused_or_cut_out(here: Path) -> None:
    with_a_gap("gap.csv")
    said = refused("fit", "gap.csv", "-o", "model.vf")
    assert "'gap.csv': trajectory 0, line 11, column 'w'" in said
    assert "--missing split" in said
    options = ["--missing", "split", "--no-search"]
    assert report("fit", "gap.csv", "-o", "model.vf", *options)["trajectories"] == "6"
    expected = vf.MOCK(search=False).fit(vf.read_trajectories("gap.csv", missing="split")).field_
    np.testing.assert_array_equal(
        vf.load("model.vf").expansion.coefficients, expected.expansion.coefficients
    )


def test_missing_values_of_a_split_table(here: Path) -> None:
    vf.write_splits(splits(), "split.csv")
    lines = Path("split.csv").read_text().splitlines()
    cells = lines[10].split(",")
    lines[10] = ",".join([*cells[:3], "NA", *cells[4:]])
    Path("split.csv").write_text("\n".join(lines) + "\n")
    assert "'split.csv': trajectory 0, line 11" in refused("fit", "split.csv", "-o", "model.vf")
    said = report("fit", "split.csv", "-o", "model.vf", "--missing", "split", "--no-search")
    assert said["trajectories"] == "6"
    assert said["validation trajectories"] == "3"


def test_nothing_is_drawn_where_there_is_no_terminal(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in done("fit", "data.csv", "-o", "model.vf", "--no-search")


def test_many_features_are_not_all_listed(here: Path) -> None:
    wide = vf.Trajectories.from_arrays([np.random.default_rng(0).normal(size=(9, 40))], 0.1)
    vf.write_trajectories(wide, "wide.csv")
    features = report("fit", "wide.csv", "-o", "model.vf", "--no-search")["features"]
    assert features.startswith("x0, x1, ")
    assert features.endswith(", ... (40 in all)")


def test_nothing_moves(here: Path) -> None:
    vf.write_trajectories(vf.Trajectories.from_arrays([np.ones((5, 2))], 0.1), "still.csv")
    said = report("fit", "still.csv", "-o", "model.vf", "--no-search")
    assert said["training residual"] == "nothing moves"


def test_stopped_validation_is_counted(here: Path) -> None:
    t = np.linspace(0.0, 1.0, 11)
    far = vf.Trajectories.from_arrays([np.full((11, 1), 2.5)], t, ids=["far"], feature_names=["x"])
    vf.write_splits(vf.Splits(explosions(), far, None), "split.csv")
    options = ["--kernel", "polynomial", "--ridge", "1e-12", "--rule", "lagrange"]
    said = report("fit", "split.csv", "-o", "model.vf", *options)
    assert said["validation trajectories"] == "1"
    assert said["stopped early"] == "1"
    assert said["Err"] == "inf"
    assert float(said["skill"]) < -1e5


def test_a_fit_close_to_singular_is_kept_with_a_warning(here: Path) -> None:
    result = run("fit", "data.csv", "-o", "model.vf", "--ridge", "1e-17", "--no-search")
    assert result.exit_code == 0
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("warning: file 'data.csv': ")
    assert "raise --ridge" in result.stderr
    assert "close to singular" in result.stdout
    assert vf.load("model.vf").info["ridge"] == 1e-17


# Searches: what is left out is chosen on held-out trajectories


def chosen_by_python(train: vf.Trajectories, validation: vf.Trajectories | None = None) -> Any:
    """The model that `CHOOSE_RIDGE` asks the program for."""
    lagrange, white = vf.occupation.Lagrange(4), vf.occupation.White()
    model = vf.MOCK(vf.kernels.Polynomial(1), rule=lagrange, noise=white)
    return model.fit(train, validation=validation)


CHOOSE_RIDGE = ["--kernel", "polynomial", "--degree", "1", "--rule", "lagrange", "--noise=white"]


def test_what_is_left_out_is_chosen_as_in_python(here: Path) -> None:
    said = report("fit", "data.csv", "-o", "model.vf", *CHOOSE_RIDGE)
    model = chosen_by_python(spirals(5))
    field, plan = vf.load("model.vf"), model.report_.best.plan
    np.testing.assert_array_equal(field(spirals(2).states), model.predict(spirals(2).states))
    assert field.info["ridge"] == plan.ridge == model.ridge_
    assert field.info["rule"] == repr(plan.rule)
    assert field.info.get("prior") == (None if plan.prior is None else repr(plan.prior))
    assert field.info.get("smoother") == (None if plan.smoother is None else repr(plan.smoother))
    assert said["ridge"] == f"{model.ridge_:.6g}"
    assert said.get("prior") == (None if plan.prior is None else repr(plan.prior))
    assert said["search"].split(" in ")[0] == f"{len(model.report_.trials)} trials"
    assert said["held-out score"].startswith(f"{model.report_.best.score:.4g} ")
    assert float(said["held-out score"].split()[0]) < 1e-3


def test_validation_rows_judge_a_search(here: Path) -> None:
    parts = splits()
    assert parts.train is not None
    vf.write_splits(parts, "split.csv")
    said = report("fit", "split.csv", "-o", "model.vf", *CHOOSE_RIDGE)
    model = chosen_by_python(parts.train, parts.validation)
    assert model.report_.folds == 1
    np.testing.assert_array_equal(
        vf.load("model.vf")(parts.train.states), model.predict(parts.train.states)
    )
    assert said["search"].startswith(f"{len(model.report_.trials)} trials")
    assert said["held-out score"].startswith(f"{model.report_.best.score:.4g} ")
    assert float(said["skill"]) > 0.99


def test_test_rows_do_not_reach_a_search(here: Path) -> None:
    files = []
    for test in (None, spirals(9, seed=7, first=20, offset=50.0)):
        vf.write_splits(splits(test=test), "split.csv")
        done("fit", "split.csv", "-o", "model.vf", "--force", *CHOOSE_RIDGE)
        files.append(Path("model.vf").read_bytes())
    assert files[0] == files[1]


def test_a_search_ends_at_its_time_and_says_so(here: Path) -> None:
    result = run("fit", "data.csv", "-o", "model.vf", "--max-time", "0.01")
    assert result.exit_code == 0
    assert "note: stopped after max_time = 0.01 s" in result.stderr.splitlines()
    said = dict(line.split("\t") for line in result.stdout.splitlines())
    assert int(said["search"].split()[0]) >= 1
    assert vf.load("model.vf").feature_names == ("v", "w")


def test_a_search_can_be_asked_for_and_refused(here: Path) -> None:
    given = [*CHOOSE_RIDGE, "--ridge", "1e-6", "--force"]
    assert "search" not in report("fit", "data.csv", "-o", "model.vf", *given)
    for how in (["--search"], ["--max-time", "60"]):
        said = report("fit", "data.csv", "-o", "model.vf", *given, *how)
        assert int(said["search"].split()[0]) >= 1
        assert said["ridge"] == "1e-06"
    fit = ["fit", "data.csv", "-o", "x.vf"]
    said = refused(*fit, "--max-time", "60", "--no-search", code=2)
    assert "there is no search to end" in said
    assert "max_time" in refused(*fit, "--max-time", "0", code=2)


def test_nothing_better_than_the_null_model_is_a_warning_said_once(here: Path) -> None:
    rng = np.random.default_rng(0)
    walks = [np.cumsum(rng.normal(size=(12, 1)), axis=0) for _ in range(6)]
    vf.write_trajectories(vf.Trajectories.from_arrays(walks, 1.0), "walks.csv")
    result = run("fit", "walks.csv", "-o", "model.vf", *CHOOSE_RIDGE)
    assert result.exit_code == 0
    said = [line for line in result.stderr.splitlines() if "the null model" in line]
    assert len(said) == 1
    assert said[0].startswith("warning: file 'walks.csv': nothing is clearly better")
    assert Path("model.vf").exists()


def test_data_too_short_for_a_search_say_what_to_do(here: Path) -> None:
    vf.write_trajectories(vf.Trajectories.from_arrays([np.eye(2)], 0.1), "two.csv")
    said = refused("fit", "two.csv", "-o", "model.vf")
    assert "2 samples cannot be held out in part" in said
    assert "pass --no-search" in said
    assert "give --kernel and --ridge" in said
    done("fit", "two.csv", "-o", "model.vf", "--no-search")


# Simulate


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet"])
def test_fit_simulate_read_back_is_what_python_gives(here: Path, name: str) -> None:
    done("fit", "data.csv", "-o", "model.vf", "--no-search")
    assert done("simulate", "model.vf", "--from", "data.csv", "-o", name) == ""
    data = vf.read_trajectories("data.csv")
    model = vf.MOCK(search=False).fit(data)
    xs = vf.rollout(model.field_, data).x
    expected = vf.Trajectories.from_arrays(
        xs, [t for t, _ in data], ids=data.ids, feature_names=data.feature_names
    )
    assert vf.read_trajectories(name).equals(expected)


def test_simulation_without_a_file_is_csv_on_standard_output(model: Path) -> None:
    done("simulate", model, "--from", "data.csv", "-o", "out.csv")
    assert done("simulate", model, "--from", "data.csv") == Path("out.csv").read_text()


def test_one_start_and_given_times(model: Path) -> None:
    out = done("simulate", model, "--from", "-0.5,0.25", "--times", "0:0.3:0.1")
    Path("out.csv").write_text(out)
    (result,) = vf.read_trajectories("out.csv")
    assert result.t.tolist() == [0.0, 0.1, 0.2, 0.3]
    expected = vf.simulate(vf.load(model), np.array([[-0.5, 0.25]]), result.t).x[0]
    np.testing.assert_array_equal(result.x, expected)
    other = done("simulate", model, "--from", "-0.5,0.25", "--times", "0,0.1,0.2,0.3")
    assert other == out


def test_tolerances_and_method_reach_the_integrator(model: Path) -> None:
    options = ["--method", "RK45", "--rtol", "1e-3", "--atol", "1e-2"]
    Path("out.csv").write_text(
        done("simulate", model, "--from", "1,0", "--times", "0:3:1", *options)
    )
    (result,) = vf.read_trajectories("out.csv")
    field, x0 = vf.load(model), np.array([[1.0, 0.0]])
    same = vf.simulate(field, x0, result.t, method="RK45", rtol=1e-3, atol=1e-2).x[0]
    np.testing.assert_array_equal(result.x, same)
    assert not np.array_equal(result.x, vf.simulate(field, x0, result.t).x[0])


def test_given_times_with_the_starts_of_a_table(model: Path) -> None:
    # A table of starts alone will do, with columns in any order and others beside them.
    Path("starts.csv").write_text("w,note,time,v,trajectory\n1,x,7,0,a\n0,y,7,1,b\n")
    done("simulate", model, "--from", "starts.csv", "--times", "0,0.5", "-o", "out.csv")
    result = vf.read_trajectories("out.csv")
    assert result.ids.tolist() == ["a", "b"]
    assert result.feature_names == ("v", "w")
    starts = np.array([[0.0, 1.0], [1.0, 0.0]])
    expected = vf.simulate(vf.load(model), starts, np.array([0.0, 0.5])).x
    np.testing.assert_array_equal(np.stack([x for _, x in result]), expected)
    said = refused("simulate", model, "--from", "starts.csv")
    assert "'starts.csv': trajectory a, line 2" in said
    assert "--times" in said


def test_later_gaps_do_not_matter_to_a_simulation(model: Path) -> None:
    with_a_gap("gap.csv")
    whole = done("simulate", model, "--from", "data.csv")
    assert done("simulate", model, "--from", "gap.csv") == whole
    assert done("simulate", model, "--from", "gap.csv", "--times", "data") == whole


@pytest.fixture
def explosive(here: Path) -> Path:
    rule = vf.occupation.Lagrange(6)
    vf.MOCK(vf.kernels.Polynomial(2), 1e-13, rule=rule).fit(explosions()).save("explosive.vf")
    return here / "explosive.vf"


def test_a_start_that_stops_early_keeps_its_good_rows(explosive: Path) -> None:
    Path("starts.csv").write_text("trajectory,time,x\ncalm,0,-0.5\nwild,0,1\nworse,0,2000\n")
    args = ["simulate", explosive, "--from", "starts.csv", "--times", "0:1.2:0.1"]
    result = run(*args, "-o", "out.csv")
    assert result.exit_code == 3
    assert result.stdout == ""
    wild, worse = result.stderr.splitlines()
    assert re.match(r"warning: trajectory wild stopped at t = (0\.9|1)\S*: ", wild)
    assert re.match(r"warning: trajectory worse stopped at t = 0\.000\d+: ", worse)
    assert worse.endswith("; none of it is written")
    back = vf.read_trajectories("out.csv")
    assert back.ids.tolist() == ["calm", "wild"]
    starts = np.array([[-0.5], [1.0], [2000.0]])
    run_ = vf.simulate(vf.load(explosive), starts, back[0].t, on_failure="ignore")
    np.testing.assert_array_equal(back[0].x, run_.x[0])
    good = int(np.isfinite(run_.x[1]).sum())
    assert 2 < good < 13
    np.testing.assert_array_equal(back[1].x, run_.x[1][:good])
    piped = run(*args)
    assert piped.exit_code == 3
    assert piped.stdout == Path("out.csv").read_text()


def test_no_file_when_nothing_is_good(explosive: Path) -> None:
    args = ["simulate", explosive, "--from", "2000", "--times", "0,1"]
    result = run(*args, "-o", "out.csv")
    assert result.exit_code == 3
    assert "none of it is written" in result.stderr
    assert not Path("out.csv").exists()


# Data sets


def test_list_of_data_sets() -> None:
    rows = [line.split("\t") for line in done("datasets").splitlines()]
    assert [row[0] for row in rows] == list(vf.datasets.names())
    pbc = next(row for row in rows if row[0] == "pbc")
    assert pbc[1:4] == ["6", "283", "6.51"]
    assert all(len(row) == 5 for row in rows)


def test_show() -> None:
    said = report("datasets", "show", "Drifters")
    assert said["name"] == "drifters"
    assert said["kind"] == "measured"
    assert "Global Drifter Program" in said["source"]
    assert "Creative Commons" in said["terms"]


@pytest.mark.parametrize("name", ["set.csv", "set.csv.gz", "set.parquet"])
def test_export(here: Path, name: str) -> None:
    done("datasets", "export", "pendulum", "-o", name, "--seed", "3")
    data = vf.datasets.load("pendulum", seed=3)
    for part, expected in zip(vf.read_splits(name), data.splits, strict=True):
        assert part is not None
        assert expected is not None
        assert part.equals(expected)


# Errors: one line, an exit code, no trace


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ("fit none.csv -o x.vf", ["'none.csv'", "check the path"]),
        ("fit data.txt -o x.vf", ["'data.txt'", ".parquet"]),
        ("fit broken.csv -o x.vf", ["'broken.csv', line 3", "cells"]),
        ("fit broken.csv.gz -o x.vf", ["'broken.csv.gz'", "gzip"]),
        ("fit broken.parquet -o x.vf", ["'broken.parquet'", "Parquet"]),
        ("fit empty.csv -o x.vf", ["'empty.csv'"]),
        ("fit folder.csv -o x.vf", ["'folder.csv' is a folder"]),
        ("fit data.csv -o none/x.vf", ["'none'", "make it first"]),
        ("fit data.csv -o folder.csv", ["'folder.csv' is not a regular file"]),
        ("fit data.csv -o folder.csv --force", ["'folder.csv' is not a regular file"]),
        ("fit data.csv -o data.csv --force", ["'data.csv' is read from"]),
        ("fit data.csv -o x.vf --trajectory who", ["'data.csv'", "['who']", "--trajectory"]),
        ("fit data.csv -o x.vf --features v,z", ["'data.csv'", "['z']", "correct --features"]),
        ("fit data.csv -o x.vf --no-search --ridge 1e-300", ["'data.csv'", "raise --ridge"]),
        ("simulate none.vf --from 1,0 --times 0,1", ["'none.vf'", "check the path"]),
        ("simulate data.csv --from 1,0 --times 0,1", ["data.csv", "vectorfield fit"]),
        ("simulate cut.vf --from 1,0 --times 0,1", ["cut.vf", "vectorfield fit"]),
        ("simulate model.vf --from none.csv", ["'none.csv'", "check the path"]),
        ("simulate model.vf --from other.csv", ["'other.csv'", "['v', 'w']", "model needs v, w"]),
        ("simulate model.vf --from text.csv", ["'text.csv', line 2, column 'w'", "'high'"]),
        ("simulate model.vf --from hole.csv", ["'hole.csv': trajectory 0, line 2, column 'v'"]),
        ("simulate model.vf --from back.csv", ["'back.csv': trajectory 0, line 3", "increase"]),
        ("simulate model.vf --from data.csv -o out.txt", ["'out.txt'", ".csv.gz"]),
        ("simulate model.vf --from data.csv -o none/out.csv", ["'none'", "make it first"]),
        ("simulate model.vf --from data.csv -o data.csv --force", ["'data.csv' is read from"]),
        ("simulate model.vf --from data.csv -o model.csv --force", ["is read from"]),
        ("datasets export pbc -o pbc.txt", ["'pbc.txt'", ".csv.gz"]),
        ("datasets export pbc -o none/pbc.csv", ["'none'", "make it first"]),
    ],
)
def test_errors_of_data_and_models(model: Path, args: str, words: Sequence[str]) -> None:
    Path("data.txt").write_text(Path("data.csv").read_text())
    Path("broken.csv").write_text("trajectory,time,v\n0,0,1\n0,1,2,3\n")
    Path("broken.csv.gz").write_bytes(b"\x1f\x8b\x08 not really")
    Path("broken.parquet").write_bytes(b"PAR1 not really")
    Path("empty.csv").touch()
    Path("folder.csv").mkdir()
    Path("cut.vf").write_bytes(model.read_bytes()[:-8])
    Path("model.csv").symlink_to("model.vf")
    Path("other.csv").write_text("trajectory,time,a\n0,0,1\n0,1,2\n")
    Path("text.csv").write_text("trajectory,time,v,w\n0,0,1,high\n0,1,2,low\n")
    Path("hole.csv").write_text("trajectory,time,v,w\n0,0,,1\n0,1,2,2\n")
    Path("back.csv").write_text("trajectory,time,v,w\n0,1,1,1\n0,0,2,2\n")
    said = refused(*args.split())
    for word in words:
        assert word in said


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ("fit data.csv", ["Missing option", "--output"]),
        ("fit", ["Missing argument", "DATA"]),
        ("plot", ["No such command"]),
        ("fit data.csv -o x.vf --kernel cubic", ["--kernel", "rational-quadratic"]),
        ("fit data.csv -o x.vf --nu 1.5", ["--kernel gaussian takes no --nu"]),
        ("fit data.csv -o x.vf --kernel matern --nu 3", ["--kernel matern", "1.5"]),
        ("fit data.csv -o x.vf --kernel polynomial --degree 0", ["degree must be at least 1"]),
        ("fit data.csv -o x.vf --rule spline --samples 4", ["--rule spline takes no --samples"]),
        ("fit data.csv -o x.vf --rule lagrange --samples 5", ["samples must be 2, 4, 6 or 8"]),
        ("fit data.csv -o x.vf --ridge 0", ["--ridge", "> 0"]),
        ("fit data.csv -o x.vf --ridge nan", ["--ridge", "finite"]),
        ("fit data.csv -o x.vf --length-scale 1,2,3", ["3 numbers for 2 features v, w"]),
        ("fit data.csv -o x.vf --length-scale wide", ["--length-scale", "expected numbers"]),
        ("fit data.csv -o x.vf --length-scale=-1", ["length_scale", "> 0"]),
        ("fit data.csv -o x.vf --features v,,w", ["--features", "between commas"]),
        ("fit data.csv -o x.vf --features=", ["--features", "between commas"]),
        ("fit data.csv -o x.vf --missing drop", ["--missing", "split"]),
        ("simulate model.vf", ["Missing option", "--from"]),
        ("simulate model.vf --from 1,0", ["--times", "needed"]),
        ("simulate model.vf --from 1,0 --times data", ["--times", "needed"]),
        ("simulate model.vf --from 1,0,0 --times 0,1", ["3 numbers for 2 features v, w"]),
        ("simulate model.vf --from 1,inf --times 0,1", ["--from", "finite"]),
        ("simulate model.vf --from 1,0 --times 0", ["--times", "at least two"]),
        ("simulate model.vf --from 1,0 --times 1,0", ["--times", "increasing"]),
        ("simulate model.vf --from 1,0 --times 0:1", ["START:STOP:STEP"]),
        ("simulate model.vf --from 1,0 --times 0:1:-1", ["STEP > 0"]),
        ("simulate model.vf --from 1,0 --times 1:0:1", ["at least two"]),
        ("simulate model.vf --from 1,0 --times 0:nan:1", ["finite"]),
        ("simulate model.vf --from 1,0 --times 0:1:1e-300", ["take larger steps"]),
        ("simulate model.vf --from 1,0 --times 0,one", ["expected numbers"]),
        ("simulate model.vf --from 1,0 --times 0,1 --method Euler", ["--method", "DOP853"]),
        ("simulate model.vf --from 1,0 --times 0,1 --rtol 0", ["--rtol", "> 0"]),
        ("simulate model.vf --from 1,0 --times 0,1 --atol=-1", ["--atol", ">= 0"]),
        ("datasets show moon", ["'moon'", "pendulum"]),
        ("datasets export moon -o x.csv", ["'moon'", "pendulum"]),
        ("datasets export pbc -o x.csv --seed=-1", ["--seed"]),
        ("datasets export pbc", ["Missing option", "--output"]),
    ],
)
def test_errors_of_usage(model: Path, args: str, words: Sequence[str]) -> None:
    said = refused(*args.split(), code=2)
    for word in words:
        assert word in said


@pytest.mark.parametrize(
    "args",
    [
        "fit data.csv -o old.csv --no-search",
        "simulate model.vf --from data.csv -o old.csv",
        "datasets export pendulum -o old.csv",
    ],
)
def test_an_existing_file_is_overwritten_by_force_only(model: Path, args: str) -> None:
    Path("old.csv").write_text("precious")
    said = refused(*args.split())
    assert "'old.csv' exists" in said
    assert "--force" in said
    done(*args.split(), "--force")
    assert Path("old.csv").read_bytes() != b"precious"


def full_disk(path: Any) -> Any:
    """Fail as a file system without space does, in the middle of the file."""

    class Full:
        def __enter__(self) -> Any:
            self.inner = written_whole(path)
            self.stream = self.inner.__enter__()
            return self

        def write(self, data: bytes) -> int:
            self.stream.write(data[:3])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def __exit__(self, *error: Any) -> None:
            self.inner.__exit__(*error)

    return Full()


@pytest.mark.parametrize(
    ("place", "args"),
    [
        ("vectorfield.modelfile", "fit data.csv -o old.csv --force --no-search"),
        ("vectorfield.tables._csv", "simulate model.vf --from data.csv -o old.csv --force"),
        ("vectorfield.tables._csv", "datasets export pendulum -o old.csv --force"),
    ],
)
def test_a_full_disk_leaves_the_old_file(
    model: Path, monkeypatch: pytest.MonkeyPatch, place: str, args: str
) -> None:
    Path("old.csv").write_text("precious")
    monkeypatch.setattr(f"{place}.written_whole", full_disk)
    said = refused(*args.split())
    assert "'old.csv' could not be written (No space left on device)" in said
    assert "-o" in said


def raiser(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


def test_too_large_for_the_memory(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vf.MOCK, "fit", raiser(MemoryError("Unable to allocate 7 TiB")))
    said = refused("fit", "data.csv", "-o", "x.vf")
    assert "'data.csv': not enough memory to fit 135 samples of 5 trajectories" in said
    assert "7 TiB" in said
    monkeypatch.setattr("vectorfield.cli._datasets.datasets.load", raiser(MemoryError("7 TiB")))
    assert "not enough memory (7 TiB)" in refused("datasets", "export", "pbc", "-o", "x.csv")


def test_an_unreadable_file(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    denied = PermissionError(errno.EACCES, "Permission denied", "data.csv")
    monkeypatch.setattr("vectorfield.cli._fit.read_data", raiser(denied))
    assert "'data.csv' may not be read" in refused("fit", "data.csv", "-o", "x.vf")
    failing = OSError(errno.EIO, "Input/output error")
    monkeypatch.setattr("vectorfield.cli._fit.read_data", raiser(failing))
    assert "Input/output error" in refused("fit", "data.csv", "-o", "x.vf")


def test_a_bug_is_not_disguised(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vf.MOCK, "fit", raiser(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        run("fit", "data.csv", "-o", "x.vf")


def test_an_interruption_ends_with_130(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(here)
    monkeypatch.setattr(vf.MOCK, "fit", raiser(KeyboardInterrupt()))
    assert run("fit", "data.csv", "-o", "x.vf").exit_code == 130
    assert contents(here) == before


def test_remedies_are_in_words_that_the_library_uses() -> None:
    # A remedy whose wording changes in the library would silently stay Python in the shell.
    source = Path(vf.__file__).parent
    files = [path for path in source.rglob("*.py") if "cli" not in path.parts]
    # Literals of a message that goes over several lines are joined.
    text = "".join(re.sub(r'"\s*\n\s*f?"', "", path.read_text("utf-8")) for path in files)
    missing = [python for python, _ in _WORDS if python not in text]
    assert missing == []
    assert in_shell_words("one\ntwo") == "one two"


# The program as a process


def process(*args: object, program: Sequence[str] = PROGRAM) -> subprocess.CompletedProcess[str]:
    command = [*program, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_version() -> None:
    assert done("--version") == f"vectorfield {vf.__version__}\n"


def test_the_console_script_in_a_pipe(model: Path) -> None:
    script = str(Path(sys.executable).parent / "vectorfield")
    result = process("simulate", model, "--from", "data.csv", program=[script])
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == done("simulate", model, "--from", "data.csv")


@needs_posix
@pytest.mark.parametrize("args", ["datasets", "simulate model.vf --from 1,0 --times 0,1"])
def test_a_reader_that_is_gone_ends_it_quietly(model: Path, args: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [*PROGRAM, *args.split()]
    # What is buffered is what Python would complain about at its end.
    buffered = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    with subprocess.Popen(command, env=buffered, stdout=writer, stderr=subprocess.PIPE) as child:
        os.close(writer)
        assert child.stderr is not None
        assert child.stderr.read() == b""
    assert child.returncode == 141


@needs_posix
def test_interrupted_process(here: Path) -> None:
    os.mkfifo("slow.csv")
    # Without -W error: an interruption just after a file is opened leaves it to the collector.
    command = [sys.executable, "-m", "vectorfield", "fit", "slow.csv", "-o", "x.vf"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child,
        open("slow.csv", "w") as stream,  # opens once the program reads
    ):
        stream.write("trajectory,time,v\n0,0,1\n")
        stream.flush()
        child.send_signal(signal.SIGINT)
        stdout, stderr = child.communicate(timeout=60)
    assert child.returncode == 130
    assert (stdout, stderr) == (b"", b"")
    assert not Path("x.vf").exists()


def shown_on(leader: int) -> str:
    """Read what is written to a terminal until its other end is closed."""
    shown = b""
    while True:
        try:
            part = os.read(leader, 4096)
        except OSError:  # how Linux tells the end
            part = b""
        if not part:
            os.close(leader)
            return shown.decode()
        shown += part


@needs_posix
def test_progress_shows_on_a_terminal_and_leaves_standard_output_clean(here: Path) -> None:
    leader, follower = os.openpty()
    command = [*PROGRAM, "fit", "data.csv", "-o", "model.vf", "--no-search"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=follower, text=True
    ) as child:
        os.close(follower)
        shown = shown_on(leader)
        assert child.stdout is not None
        stdout = child.stdout.read()
    assert child.returncode == 0
    assert "reading data.csv" in shown
    assert "fitting 135 samples of 5 trajectories" in shown
    assert stdout.splitlines()[-1] == "model\tmodel.vf"
    assert "\x1b" not in stdout


@needs_posix
def test_tables_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    leader, follower = os.openpty()
    with open(follower, "w") as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", terminal)
        show_table(("name", "what"), [("pbc", "[bold] words that go over several lines")])
        terminal.flush()
        os.write(follower, b"end of the test")
        shown = b""
        while b"end of the test" not in shown:
            shown += os.read(leader, 4096)
    os.close(leader)
    text = " ".join(re.sub(r"[^\w\[\] ]", " ", DECORATION.sub(" ", shown.decode())).split())
    assert "name what" in text
    assert "pbc [bold] words" in text
    assert "lines" in text
    assert b"\t" not in shown


def test_without_the_extra() -> None:
    code = """
import sys
from vectorfield.cli import main

for package in ("typer", "rich"):
    sys.modules[package] = None
    try:
        main()
    except SystemExit as end:
        print(end.code)
    del sys.modules[package]
"""
    result = process(program=[sys.executable, "-W", "error", "-c", code])
    assert result.stdout == "1\n1\n"
    install = "install it with  pip install 'vectorfield[cli]'"
    assert result.stderr.splitlines() == [
        f"error: the command line needs typer: {install}",
        f"error: the command line needs rich: {install}",
    ]
