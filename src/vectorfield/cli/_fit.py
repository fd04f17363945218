"""``vectorfield fit``: from a table of trajectories to a model file."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer

from vectorfield._errors import DataError, SolveError, SolveWarning
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
    KernelName, typer.Option(metavar="NAME", help=f"Scalar kernel: {', '.join(KernelName)}.")
]
NU = Annotated[float | None, typer.Option(help="Smoothness of matern: 0.5, 1.5, ..., 5.5.")]
DEGREE = Annotated[int | None, typer.Option(help="Degree of polynomial.")]
ALPHA = Annotated[float | None, typer.Option(help="Shape of rational-quadratic.")]
LENGTH_SCALE = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER[,...]",
        help="One for all features or one for each, in standard deviations; by default the "
        "median distance of the nodes (1 for polynomial and linear).",
    ),
]
RIDGE = Annotated[
    float | None, typer.Option(help="lambda > 0; by default chosen from the steps of the data.")
]
RULE = Annotated[
    RuleName,
    typer.Option(
        metavar="NAME",
        help=f"How integrals along the data are approximated: {', '.join(RuleName)}.",
    ),
]
SAMPLES = Annotated[
    int | None, typer.Option(help="Samples used by lagrange, windows and weak-form.")
]
NOISE = Annotated[
    NoiseName,
    typer.Option(help="Errors are independent over steps, or over snapshots."),
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
    kernel: KERNEL = KernelName.GAUSSIAN,
    nu: NU = None,
    degree: DEGREE = None,
    alpha: ALPHA = None,
    length_scale: LENGTH_SCALE = None,
    ridge: RIDGE = None,
    rule: RULE = RuleName.TRAPEZOID,
    samples: SAMPLES = None,
    noise: NOISE = NoiseName.WHITE,
    no_standardize: NO_STANDARDIZE = False,
    force: FORCE = False,
) -> None:
    """Learn a field from DATA and write it to a model file.

    DATA has one row a sample: columns trajectory, time and the features. Where it has columns
    train, validation and test as well, the training rows alone are fitted, the validation rows
    are predicted from their first samples, and the test rows are not used.
    """
    lengths = None if length_scale is None else numbers_of(length_scale, "--length-scale")
    if ridge is not None:
        with usage("--ridge"):
            check_real("ridge", ridge, above=0.0)
    model = MOCK(
        kernel_of(kernel, nu=nu, degree=degree, alpha=alpha, length_scale=lengths),
        ridge,
        rule=rule_of(rule, samples=samples),
        noise=noise_of(noise),
        standardize=not no_standardize,
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
    _fit(model, train, data)
    with writing(output):
        model.save(output)
    rows = _story(model, train, isinstance(sets, Splits), reading)
    if isinstance(sets, Splits):
        rows += _scores(model, sets.validation)
    show_table(("", ""), [*rows, ("model", str(output))])


def _fit(model: MOCK, train: Trajectories, data: Path) -> None:
    what = f"{len(train.times)} samples of {len(train)} trajectories"
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", SolveWarning)
            with busy(f"fitting {what}"):
                model.fit(train)
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
    settings = kernel.kernel.get_params(deep=False) if isinstance(kernel, Separable) else {}
    name = type(kernel.kernel if isinstance(kernel, Separable) else kernel).__name__
    length = settings.pop("length_scale", None)
    shown = [f"{key} {value:g}" for key, value in settings.items()]
    seconds = {"read": reading, **solution.seconds}
    return [
        ("data", "training rows" if split else "all rows"),
        ("trajectories", str(len(train))),
        ("samples", str(len(train.times))),
        ("features", _listed(train.feature_names)),
        ("observations", f"{len(model.residuals_)} by {model.field_.info['rule']}"),
        ("kernel", ", ".join([name, *shown])),
        ("length scale", ", ".join(f"{value:.6g}" for value in np.atleast_1d(length))),
        ("ridge", f"{model.ridge_:.6g}"),
        ("noise", str(model.field_.info["noise"])),
        ("solver", in_shell_words(solution.status.value)),
        ("seconds", ", ".join(f"{stage} {value:.2f}" for stage, value in seconds.items())),
        ("training residual", _residual(model, train)),
    ]


def _listed(names: Sequence[str]) -> str:
    more = f", ... ({len(names)} in all)" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _residual(model: MOCK, train: Trajectories) -> str:
    """Root mean square of y - L f relative to that of y, each feature in its own unit."""
    rule: Any = model.rule
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
