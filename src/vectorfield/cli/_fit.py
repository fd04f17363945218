"""``vectorfield fit``: from a table of trajectories to a model file."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer

from vectorfield._errors import DataError, SearchWarning, SolveError, SolveWarning
from vectorfield._settings import check_real
from vectorfield.cli._data import read_data
from vectorfield.cli._options import (
    FORCE,
    TIME,
    TRAJECTORY,
    KernelName,
    MissingName,
    NoiseName,
    RuleName,
    kernel_of,
    names_of,
    noise_of,
    numbers_of,
    rule_of,
)
from vectorfield.cli._shell import (
    busy,
    check_output,
    fail,
    in_shell_words,
    say,
    show_table,
    usage,
    writing,
)
from vectorfield.kernels import Separable
from vectorfield.metrics import evaluate
from vectorfield.mock import MOCK
from vectorfield.simulate import Outcome, rollout
from vectorfield.trajectories import Splits, Trajectories
from vectorfield.tuning import Search

__all__ = ["fit"]

Rows = list[tuple[str, str]]
MOST_NAMES = 12


DATA = Annotated[Path, typer.Argument(metavar="DATA", help="A table: .csv, .csv.gz or .parquet.")]
OUTPUT = Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")]
FEATURES = Annotated[
    str | None,
    typer.Option(metavar="A,B,C", help="Columns of the coordinates; all others by default."),
]
MISSING = Annotated[
    MissingName, typer.Option(help="Refuse missing values, or cut trajectories there.")
]
KERNEL = Annotated[
    KernelName | None,
    typer.Option(metavar="NAME", help=f"Scalar kernel: {', '.join(KernelName)}."),
]
NU = Annotated[float | None, typer.Option(help="Smoothness of matern: 0.5, 1.5, ..., 5.5.")]
DEGREE = Annotated[int | None, typer.Option(help="Degree of polynomial.")]
ALPHA = Annotated[float | None, typer.Option(help="Shape of rational-quadratic.")]
LENGTH_SCALE = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER[,...]",
        help="One for all features or one for each, in standard deviations; without a search the "
        "median distance of the nodes (1 for polynomial and linear).",
    ),
]
RIDGE = Annotated[
    float | None,
    typer.Option(help="lambda > 0; without a search a formula of the steps of the data."),
]
RULE = Annotated[
    RuleName | None,
    typer.Option(
        metavar="NAME",
        help=f"How integrals along the data are approximated: {', '.join(RuleName)}.",
    ),
]
SAMPLES = Annotated[
    int | None, typer.Option(help="Samples used by lagrange, windows and weak-form.")
]
NOISE = Annotated[
    NoiseName | None,
    typer.Option(help="Errors are independent over steps, or over snapshots."),
]
SEARCH = Annotated[
    bool | None,
    typer.Option(
        "--search/--no-search",
        help="Choose what is not given on held-out trajectories; by default where kernel or ridge "
        "is not given.",
    ),
]
MAX_TIME = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="Begin no further trial of a search after that."),
]
NO_STANDARDIZE = Annotated[
    bool, typer.Option("--no-standardize", help="Fit features in the units they have.")
]


def fit(
    data: DATA,
    *,
    output: OUTPUT,
    trajectory: TRAJECTORY = "trajectory",
    time: TIME = "time",
    features: FEATURES = None,
    missing: MISSING = MissingName.RAISE,
    kernel: KERNEL = None,
    nu: NU = None,
    degree: DEGREE = None,
    alpha: ALPHA = None,
    length_scale: LENGTH_SCALE = None,
    ridge: RIDGE = None,
    rule: RULE = None,
    samples: SAMPLES = None,
    noise: NOISE = None,
    no_standardize: NO_STANDARDIZE = False,
    search: SEARCH = None,
    max_time: MAX_TIME = None,
    force: FORCE = False,
) -> None:
    """Learn a field from DATA and write it to a model file.

    What is not given is chosen on held-out trajectories, unless kernel and ridge both are given.

    DATA has one row a sample: columns trajectory, time and the features. Where it has columns
    train, validation and test as well, the training rows alone are fitted, the validation rows
    judge what is chosen and are predicted from their first samples, and the test rows are not used.
    """
    lengths = None if length_scale is None else numbers_of(length_scale, "--length-scale")
    if ridge is not None:
        with usage("--ridge"):
            check_real("ridge", ridge, above=0.0)
    shape = {"nu": nu, "degree": degree, "alpha": alpha, "length_scale": lengths}
    chosen = kernel is not None or any(value is not None for value in shape.values())
    model = MOCK(
        kernel_of(kernel or KernelName.GAUSSIAN, **shape) if chosen else None,
        ridge,
        rule=None
        if rule is None and samples is None
        else rule_of(rule or RuleName.TRAPEZOID, samples=samples),
        noise=None if noise is None else noise_of(noise),
        standardize=not no_standardize,
        search=_search(search, max_time),
    )
    columns = names_of(features, "--features")
    check_output(output, force=force, inputs=[data])

    began = perf_counter()
    with busy(f"reading {data}"):
        sets = read_data(
            data, trajectory=trajectory, time=time, features=columns, missing=missing.value
        )
    reading = perf_counter() - began
    train = sets.train if isinstance(sets, Splits) else sets
    if train is None:
        raise DataError(f"file {str(data)!r}: no row is in train; there is nothing to fit")
    if isinstance(lengths, tuple) and len(lengths) != train.d:
        raise typer.BadParameter(
            f"{len(lengths)} numbers for {train.d} features {', '.join(train.feature_names)}",
            param_hint="--length-scale",
        )
    held = sets.validation if isinstance(sets, Splits) and model.searcher is not None else None
    _fit(model, train, held, data)
    with writing(output):
        model.save(output)
    rows = _story(model, train, isinstance(sets, Splits), reading)
    if isinstance(sets, Splits):
        rows += _scores(model, sets.validation)
    show_table(("", ""), [*rows, ("model", str(output))])


def _search(search: bool | None, max_time: float | None) -> Search | bool | None:
    if max_time is None:
        return search
    if search is False:
        raise typer.BadParameter("there is no search to end", param_hint="--max-time")
    with usage("--max-time"):
        return Search(max_time=max_time)


def _fit(model: MOCK, train: Trajectories, held: Trajectories | None, data: Path) -> None:
    what = f"{len(train.times)} samples of {len(train)} trajectories"
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", SolveWarning)
            warnings.simplefilter("always", SearchWarning)
            with busy(f"fitting {what}"):
                model.fit(train, validation=held)
    except SolveError as error:
        raise fail(f"file {str(data)!r}: {error}") from error
    except MemoryError as error:
        raise fail(
            f"file {str(data)!r}: not enough memory to fit {what} ({error}); the matrix of all "
            "pairs of observations must fit: leave trajectories or samples out"
        ) from error
    for warning in caught:
        say(f"warning: file {str(data)!r}: {in_shell_words(str(warning.message))}")


def _story(model: MOCK, train: Trajectories, split: bool, reading: float) -> Rows:
    solution, kernel = model.solution_, model.kernel_
    inner = kernel.kernel if isinstance(kernel, Separable) else kernel
    settings = inner.get_params(deep=False)
    length = settings.pop("length_scale", None)
    plain = all(isinstance(value, (int, float)) for value in settings.values())
    shown = [f"{key} {value:g}" for key, value in settings.items()] if plain else []
    seconds = {"read": reading, **solution.seconds}
    rows = [
        ("data", "training rows" if split else "all rows"),
        ("trajectories", str(len(train))),
        ("samples", str(len(train.times))),
        ("features", _listed(train.feature_names)),
        ("observations", f"{len(model.residuals_)} by {model.field_.info['rule']}"),
        ("kernel", ", ".join([type(inner).__name__, *shown]) if plain else repr(inner)),
    ]
    if length is not None:
        lengths = ", ".join(f"{value:.6g}" for value in np.atleast_1d(length))
        rows.append(("length scale", lengths))
    rows += [
        ("ridge", f"{model.ridge_:.6g}"),
        ("noise", str(model.field_.info["noise"])),
    ]
    for name in ("prior", "smoother", "robust", "refine"):
        value = getattr(model.plan_, name)
        if value is not None:
            rows.append((name, repr(value)))
    rows += [
        ("solver", in_shell_words(solution.status.value)),
        ("seconds", ", ".join(f"{stage} {value:.2f}" for stage, value in seconds.items())),
        ("training residual", _residual(model, train)),
    ]
    return rows + _tried(model)


def _tried(model: MOCK) -> Rows:
    """Say what a search found on held-out data."""
    if model.searcher is None:
        return []
    report = model.report_
    for note in report.notes:
        if note != report.verdict:  # which was a warning
            say(f"note: {in_shell_words(note)}")
    best = report.best
    error = "" if np.isnan(best.spread) else f" +- {best.spread:.1g}"
    return [
        ("search", f"{len(report.trials)} trials in {report.seconds:.1f} s"),
        ("held-out score", f"{best.score:.4g}{error} of the null model's 1"),
    ]


def _listed(names: Sequence[str]) -> str:
    more = f", ... ({len(names)} in all)" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _residual(model: MOCK, train: Trajectories) -> str:
    """Root mean square of y - L f relative to that of y, each feature in its own unit."""
    rule: Any = model.plan_.rule
    scale = model.field_.scale
    left = np.linalg.norm(model.residuals_ / scale)
    whole = np.linalg.norm(rule(train).targets / scale)
    return f"{100 * left / whole:.4g} % of the observed changes" if whole > 0 else "nothing moves"


def _scores(model: MOCK, validation: Trajectories | None) -> Rows:
    if validation is None:
        return [("validation trajectories", "0")]
    with busy(f"predicting {len(validation)} validation trajectories"):
        run = rollout(model.field_, validation, on_failure="ignore")
        scores = evaluate(validation, run.x)
    stopped = sum(outcome is not Outcome.FINISHED for outcome in run.outcomes)
    figures = {
        "Err": scores.err,
        "null Err": scores.null_err,
        "1-Err": scores.one_err,
        "null 1-Err": scores.null_one_err,
        "skill": scores.skill,
    }
    return [
        ("validation trajectories", str(len(validation))),
        ("stopped early", str(stopped)),
        *((name, f"{value:.6g}") for name, value in figures.items()),
    ]
