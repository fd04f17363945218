"""Trajectories in long tables, one row a sample: CSV, Parquet and data frames.

A table has a column with the id of the trajectory, one with the time, one for each feature and,
where the data are split, three columns ``train``, ``validation`` and ``test`` of which exactly
one is 1 in each row, the same in all rows of a trajectory.

Files are told apart by their endings: ``.csv`` and ``.csv.gz`` need nothing more than the core
dependencies, ``.parquet`` needs the extra ``tables``. What was written is read back the same to
the last bit. In CSV files empty cells, ``nan``, ``NA`` and ``null`` are missing values.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vectorfield._errors import DataError
from vectorfield.tables._columns import LongTable, Request, to_splits, to_trajectories
from vectorfield.tables._csv import read_csv, write_csv
from vectorfield.tables._frames import frame_of, read_frame, read_states
from vectorfield.tables._parquet import read_parquet, write_parquet
from vectorfield.tables._sheet import Sheet, sheet_of_splits, sheet_of_trajectories
from vectorfield.trajectories import Splits, Trajectories

__all__ = [
    "frame_from_trajectories",
    "read_splits",
    "read_trajectories",
    "splits_from_frame",
    "states_from_frame",
    "trajectories_from_frame",
    "write_splits",
    "write_trajectories",
]

_ENDINGS = (".csv", ".csv.gz", ".parquet")


def read_trajectories(
    path: str | os.PathLike[str],
    *,
    trajectory: str = "trajectory",
    time: str = "time",
    features: Sequence[str] | None = None,
    missing: str = "raise",
) -> Trajectories:
    """Read all rows of a file, of whatever split.

    Args:
        path: a file whose name ends in ``.csv``, ``.csv.gz`` or ``.parquet``.
        trajectory: column with the id of the trajectory. Rows of one trajectory need not be
            adjacent, but must come in the order of time.
        time: column with the time, as numbers.
        features: columns of the coordinates; by default all others, save for ``train``,
            ``validation`` and ``test`` where a file has all three.
        missing: ``"raise"`` refuses missing values; ``"split"`` cuts a trajectory at rows with
            one and keeps the pieces of at least two samples, under ids such as ``"3/1"``.

    Returns:
        Trajectories in the order of their first rows.

    Raises:
        DataError: the file cannot be used; says file, line, trajectory, column and remedy.
        FileNotFoundError: there is no such file.

    Cost: for CSV about a microsecond a cell.

    Example:
        >>> import pathlib, tempfile
        >>> from vectorfield.tables import read_trajectories
        >>> folder = tempfile.TemporaryDirectory()
        >>> file = pathlib.Path(folder.name, "two.csv")
        >>> _ = file.write_text("trajectory,time,v,w\\na,0,1,2\\na,0.1,3,4\\nb,0,5,6\\nb,2,7,8\\n")
        >>> read_trajectories(file)
        Trajectories(n=2, d=2, samples=4, lengths 2 to 2)
        >>> folder.cleanup()
    """
    request = Request(trajectory, time, features, "skip")
    return to_trajectories(_read(path, request), missing)


def read_splits(
    path: str | os.PathLike[str],
    *,
    trajectory: str = "trajectory",
    time: str = "time",
    features: Sequence[str] | None = None,
    missing: str = "raise",
) -> Splits:
    """Read a file with the three split columns; a part without rows is None.

    Arguments, errors and cost are those of `read_trajectories`. It is an error as well if a
    row is in no split or in two, or if the rows of a trajectory are in different ones.

    Example:
        >>> import pathlib, tempfile
        >>> from vectorfield.tables import read_splits
        >>> folder = tempfile.TemporaryDirectory()
        >>> file = pathlib.Path(folder.name, "split.csv")
        >>> rows = "trajectory,time,v,train,validation,test\\na,0,1,1,0,0\\na,1,2,1,0,0\\n"
        >>> _ = file.write_text(rows + "b,0,3,0,0,1\\nb,1,4,0,0,1\\n")
        >>> splits = read_splits(file)
        >>> splits.train, splits.validation
        (Trajectories(n=1, d=1, samples=2, lengths 2 to 2), None)
        >>> folder.cleanup()
    """
    request = Request(trajectory, time, features, "need")
    return to_splits(_read(path, request), missing)


def trajectories_from_frame(
    frame: Any,
    *,
    trajectory: str = "trajectory",
    time: str = "time",
    features: Sequence[str] | None = None,
    missing: str = "raise",
) -> Trajectories:
    """Build from all rows of a pandas, polars (also lazy) or pyarrow table.

    A table with the three split columns is refused unless ``features`` are named, so that
    nobody trains on test rows unawares; `splits_from_frame` takes such a table apart. The
    other arguments are those of `read_trajectories`. Cost: a copy of the columns.

    Example:
        >>> import polars as pl
        >>> from vectorfield.tables import trajectories_from_frame
        >>> frame = pl.DataFrame({"who": ["a", "a"], "time": [0, 1], "v": [0.5, 0.25]})
        >>> trajectories_from_frame(frame, trajectory="who").states
        array([[0.5 ], [0.25]])
    """
    request = Request(trajectory, time, features, "refuse")
    return to_trajectories(read_frame(frame, request), missing)


def splits_from_frame(
    frame: Any,
    *,
    trajectory: str = "trajectory",
    time: str = "time",
    features: Sequence[str] | None = None,
    missing: str = "raise",
) -> Splits:
    """Build from a table with the three split columns; a part without rows is None.

    Arguments are those of `read_trajectories`. Cost: a copy of the columns.

    Example:
        >>> import polars as pl
        >>> from vectorfield.tables import splits_from_frame
        >>> frame = pl.DataFrame({"trajectory": [7, 7], "time": [0, 1], "v": [0.5, 0.25],
        ...                       "train": [0, 0], "validation": [0, 0], "test": [1, 1]})
        >>> splits_from_frame(frame).test.ids
        array([7])
    """
    request = Request(trajectory, time, features, "need")
    return to_splits(read_frame(frame, request), missing)


def states_from_frame(frame: Any, features: Sequence[str]) -> np.ndarray:
    """Read the columns named ``features``, in that order, as states (n, d).

    Example:
        >>> import pandas as pd
        >>> from vectorfield.tables import states_from_frame
        >>> states_from_frame(pd.DataFrame({"b": [1.0], "a": [2.0]}), ["a", "b"])
        array([[2., 1.]])
    """
    return read_states(frame, features)


def frame_from_trajectories(
    trajectories: Trajectories,
    *,
    backend: str = "pandas",
    trajectory: str = "trajectory",
    time: str = "time",
) -> Any:
    """Return a long table with P rows: columns for id and time, then the features.

    Args:
        trajectories: any set whose ids differ.
        backend: ``"pandas"``, ``"polars"`` or ``"pyarrow"``.
        trajectory: name for the column of ids.
        time: name for the column of times.

    Raises:
        MissingExtraError: the library is not installed.
        DataError: a feature has the name of another column, or two trajectories the same id.

    Cost: a copy of the data.

    Example:
        >>> import vectorfield.trajectories as vt
        >>> from vectorfield.tables import frame_from_trajectories
        >>> one = vt.Trajectories.from_arrays([[[1.0], [2.0]]], 0.5, feature_names=["v"])
        >>> frame_from_trajectories(one, backend="polars").rows()
        [(0, 0.0, 1.0), (0, 0.5, 2.0)]
    """
    return frame_of(sheet_of_trajectories(trajectories, trajectory, time), backend)


def write_trajectories(
    trajectories: Trajectories,
    path: str | os.PathLike[str],
    *,
    trajectory: str = "trajectory",
    time: str = "time",
) -> None:
    """Write a file that `read_trajectories` reads back to the last bit.

    The file appears only once it is complete; equal data give equal ``.csv`` and ``.csv.gz``
    files. Arguments and errors are those of `frame_from_trajectories`; the ending of ``path``
    chooses the format. Cost: for CSV about half a microsecond a number.

    Example:
        >>> import pathlib, tempfile
        >>> import vectorfield.trajectories as vt
        >>> from vectorfield.tables import write_trajectories
        >>> one = vt.Trajectories.from_arrays([[[1.0], [2.0]]], 0.5, feature_names=["v"])
        >>> folder = tempfile.TemporaryDirectory()
        >>> write_trajectories(one, pathlib.Path(folder.name, "one.csv"))
        >>> pathlib.Path(folder.name, "one.csv").read_text().split()
        ['trajectory,time,v', '0,0.0,1.0', '0,0.5,2.0']
        >>> folder.cleanup()
    """
    _write(sheet_of_trajectories(trajectories, trajectory, time), path)


def write_splits(
    splits: Splits,
    path: str | os.PathLike[str],
    *,
    trajectory: str = "trajectory",
    time: str = "time",
) -> None:
    """Write a file that `read_splits` reads back to the last bit.

    As `write_trajectories`, with the columns train, validation and test. No id may be in two
    parts.

    Example:
        >>> import pathlib, tempfile
        >>> import vectorfield.trajectories as vt
        >>> from vectorfield.tables import write_splits
        >>> one = vt.Trajectories.from_arrays([[[1.0], [2.0]]], 0.5, feature_names=["v"])
        >>> folder = tempfile.TemporaryDirectory()
        >>> write_splits(vt.Splits(None, None, one), pathlib.Path(folder.name, "split.csv"))
        >>> pathlib.Path(folder.name, "split.csv").read_text().split()[1]
        '0,0.0,1.0,0,0,1'
        >>> folder.cleanup()
    """
    _write(sheet_of_splits(splits, trajectory, time), path)


def _ending(path: str | os.PathLike[str]) -> str:
    name = Path(path).name.lower()
    for ending in _ENDINGS:
        if name.endswith(ending):
            return ending
    raise DataError(f"file {os.fspath(path)!r}: the name must end in one of {', '.join(_ENDINGS)}")


def _read(path: str | os.PathLike[str], request: Request) -> LongTable:
    if _ending(path) == ".parquet":
        return read_parquet(path, request)
    return read_csv(path, request)


def _write(sheet: Sheet, path: str | os.PathLike[str]) -> None:
    ending = _ending(path)
    if ending == ".parquet":
        write_parquet(sheet, path)
    else:
        write_csv(sheet, path, zipped=ending == ".csv.gz")
