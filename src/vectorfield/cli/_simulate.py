"""``vectorfield simulate``: trajectories of a model, as a table."""

from __future__ import annotations

import shutil
import sys
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import typer

from vectorfield._settings import check_real
from vectorfield.cli._data import Starts, read_starts
from vectorfield.cli._options import FORCE, TIME, TRAJECTORY, times_of
from vectorfield.cli._shell import (
    STOPPED_EARLY,
    busy,
    check_output,
    in_shell_words,
    say,
    usage,
    writing,
)
from vectorfield.field import VectorField, load
from vectorfield.simulate import Outcome, Simulation
from vectorfield.simulate import simulate as integrate
from vectorfield.tables import _ending, write_trajectories
from vectorfield.trajectories import Trajectories

__all__ = ["simulate"]


class Method(StrEnum):
    """Integrators by the names they have in Python."""

    DOP853 = "DOP853"
    RK45 = "RK45"
    RADAU = "Radau"
    BDF = "BDF"
    LSODA = "LSODA"


MODEL = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")]
START = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="DATA|A,B,C",
        help="A table, whose trajectories' first rows are the starts, or one start as numbers in "
        "the order of the model's features.",
    ),
]
TIMES = Annotated[
    str | None,
    typer.Option(
        metavar="START:STOP:STEP|A,B,C|data",
        help="The same times for all starts (STOP is one of them where a step ends there), or "
        "each trajectory's own: 'data', the default with a table.",
    ),
]
OUTPUT = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="A .csv, .csv.gz or .parquet file to write; without it CSV on standard output.",
    ),
]
METHOD = Annotated[
    Method,
    typer.Option(
        metavar="NAME",
        help="DOP853; RK45 for rough fields; Radau, BDF or LSODA for stiff ones.",
    ),
]
RTOL = Annotated[float, typer.Option(help="Relative tolerance of a step.")]
ATOL = Annotated[
    float | None,
    typer.Option(help="Absolute tolerance; by default rtol times each feature's spread."),
]


def simulate(
    model: MODEL,
    *,
    start: START,
    times: TIMES = None,
    output: OUTPUT = None,
    trajectory: TRAJECTORY = "trajectory",
    time: TIME = "time",
    method: METHOD = Method.DOP853,
    rtol: RTOL = 1e-8,
    atol: ATOL = None,
    force: FORCE = False,
) -> None:
    """Follow a model from given starts and write the trajectories as a table.

    The first time is that of the start. A start that stops early has its good rows written and
    the reason told; the program then ends with exit code 3.
    """
    with usage("--rtol"):
        check_real("rtol", rtol, above=0.0)
    if atol is not None:
        with usage("--atol"):
            check_real("atol", atol, at_least=0.0)
    asked = None if times is None or times == "data" else times_of(times, "--times")
    numbers = _as_numbers(start)
    if numbers is not None and asked is None:
        raise typer.BadParameter("needed where the start is given as numbers", param_hint="--times")
    if output is not None:
        _ending(output)
        inputs = [model] if numbers is not None else [model, Path(start)]
        check_output(output, force=force, inputs=inputs)

    with busy(f"reading {model}"):
        field = load(model)
        starts = (
            read_starts(
                Path(start),
                trajectory=trajectory,
                time=time,
                features=field.feature_names,
                own_times=asked is None,
            )
            if numbers is None
            else _one_start(numbers, field)
        )
    with busy(f"simulating {len(starts.ids)} starts"):
        run = integrate(
            field,
            starts.states,
            starts.times if asked is None else [asked] * len(starts.ids),
            method=method.value,
            rtol=rtol,
            atol=atol,
            on_failure="ignore",
        )
    good = _good_part(run, starts, field)
    if good is not None:
        _write(good, output, trajectory, time)
    _tell_stops(run, starts)


def _as_numbers(text: str) -> np.ndarray | None:
    """Return a start given as numbers; None where the text must be the name of a file."""
    try:
        numbers = np.array([float(part) for part in text.split(",")])
    except ValueError:
        return None
    if not np.isfinite(numbers).all():
        raise typer.BadParameter(f"a start must be finite, got {text!r}", param_hint="--from")
    return numbers


def _one_start(numbers: np.ndarray, field: VectorField) -> Starts:
    if len(numbers) != field.d:
        raise typer.BadParameter(
            f"{len(numbers)} numbers for {field.d} features {', '.join(field.feature_names)}",
            param_hint="--from",
        )
    return Starts(["0"], numbers[None, :], None)


def _good_rows(x: np.ndarray) -> int:
    finite = np.isfinite(x).all(axis=1)
    return len(x) if finite.all() else int(np.argmin(finite))


def _good_part(run: Simulation, starts: Starts, field: VectorField) -> Trajectories | None:
    """Return the good rows; a start without a second one is no trajectory and is left out."""
    counts = [_good_rows(x) for x in run.x]
    kept = [i for i, count in enumerate(counts) if count >= 2]
    if not kept:
        return None
    return Trajectories.from_arrays(
        [run.x[i][: counts[i]] for i in kept],
        [run.t[i][: counts[i]] for i in kept],
        ids=[starts.ids[i] for i in kept],
        feature_names=field.feature_names,
    )


def _write(result: Trajectories, output: Path | None, trajectory: str, time: str) -> None:
    if output is not None:
        with writing(output):
            write_trajectories(result, output, trajectory=trajectory, time=time)
        return
    with TemporaryDirectory() as folder:
        whole = Path(folder, "out.csv")
        write_trajectories(result, whole, trajectory=trajectory, time=time)
        sys.stdout.flush()
        with whole.open("rb") as stream:
            shutil.copyfileobj(stream, sys.stdout.buffer)


def _tell_stops(run: Simulation, starts: Starts) -> None:
    stopped = [i for i, outcome in enumerate(run.outcomes) if outcome is not Outcome.FINISHED]
    for i in stopped:
        lost = "" if _good_rows(run.x[i]) >= 2 else "; none of it is written"
        reason = in_shell_words(run.outcomes[i].value)
        say(
            f"warning: trajectory {starts.ids[i]} stopped at t = {run.reached[i]:.6g}: "
            f"{reason}{lost}"
        )
    if stopped:
        raise typer.Exit(STOPPED_EARLY)
