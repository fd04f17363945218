"""Tables as the commands need them: with or without splits, or the starts alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vectorfield._errors import DataError
from vectorfield.tables import _read
from vectorfield.tables._columns import PARTS, LongTable, Request, to_splits, to_trajectories
from vectorfield.trajectories import Splits, Trajectories

__all__ = ["Starts", "read_data", "read_starts"]


@dataclass(frozen=True, eq=False)
class Starts:
    """Where simulations begin.

    Attributes:
        ids: names of b starts.
        states: (b, d).
        times: each one's own times, b arrays; None where it has none.
    """

    ids: Sequence[str]
    states: np.ndarray
    times: list[np.ndarray] | None


def read_data(
    path: Path, *, trajectory: str, time: str, features: Sequence[str] | None, missing: str
) -> Trajectories | Splits:
    """Read a file once: `Splits` where it has the three split columns, else `Trajectories`.

    A file with one or two of the three columns is refused unless features are named: they
    would be taken for features, and test rows for training rows.
    """
    table = _read(path, Request(trajectory, time, features, "skip"))
    if table.parts is not None:
        return to_splits(table, missing)
    stray = [name for name in PARTS if name in table.feature_names]
    if stray and features is None:
        absent = [name for name in PARTS if name not in table.feature_names]
        raise DataError(
            f"{table.source}: has the column {stray[0]!r} but not {absent[0]!r}; add it (0 in all "
            "rows where that part is empty), or name features=[...] if it is not split"
        )
    return to_trajectories(table, missing)


def read_starts(
    path: Path, *, trajectory: str, time: str, features: Sequence[str], own_times: bool
) -> Starts:
    """Read the first row of every trajectory, and all its times where ``own_times`` is set.

    Later states do not matter here and may be missing.
    """
    try:
        table = _read(path, Request(trajectory, time, features, "skip"))
    except DataError as error:
        # The features are the model's, not an option.
        needed = f"the model needs {', '.join(features)}"
        message = str(error).replace("correct features=[...]", needed)
        raise DataError(message.replace(", or leave it out with features=[...]", "")) from error
    order = np.argsort(table.codes, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(table.codes))[:-1])
    for rows in groups:
        _check_start(table, int(rows[0]))
    return Starts(
        ids=[str(key) for key in table.keys],
        states=table.states[[rows[0] for rows in groups]],
        times=[_checked_times(table, rows) for rows in groups] if own_times else None,
    )


def _check_start(table: LongTable, row: int) -> None:
    bad = ~np.isfinite(table.states[row])
    if bad.any():
        name = table.feature_names[int(np.argmax(bad))]
        raise DataError(
            f"{_place(table, row)}, column {name!r}: the value is missing or not finite; a "
            "simulation starts there and needs all of them"
        )


def _checked_times(table: LongTable, rows: np.ndarray) -> np.ndarray:
    times: np.ndarray = table.times[rows]
    if len(times) < 2:
        raise DataError(
            f"{_place(table, int(rows[0]))}: the only row of its trajectory, so there is no time "
            "to simulate to; give --times"
        )
    bad = ~np.isfinite(times)
    bad[1:] |= ~(times[1:] > times[:-1])
    if bad.any():
        row = int(rows[np.argmax(bad)])
        raise DataError(
            f"{_place(table, row)}: time is {table.times[row]:g}; times must be finite and "
            "increase along a trajectory"
        )
    return times


def _place(table: LongTable, row: int) -> str:
    name = table.keys[int(table.codes[row])]
    return f"{table.source}: trajectory {name!s}, {table.unit} {table.labels[row]}"
