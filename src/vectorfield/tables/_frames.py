"""Long tables from and to data frames: pandas, polars and pyarrow, through narwhals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np

from vectorfield._errors import DataError, MissingExtraError
from vectorfield._settings import check_choice
from vectorfield.tables._columns import LongTable, Request, choose
from vectorfield.tables._sheet import Sheet

__all__ = ["frame_of", "read_frame", "read_states"]


def read_frame(frame: Any, request: Request, source: str = "the table") -> LongTable:
    """Read the columns asked for; the labels of the rows are 0, 1, ...

    Cost: a copy of the columns that are read.
    """
    table = _eager(frame, source)
    names = list(table.columns)
    choice = choose(names, request, source)
    if len(table) == 0:
        raise DataError(f"{source} has no rows")
    keys, codes = _keys(table[names[choice.trajectory]], source)
    states = np.empty((len(table), len(choice.features)))
    parts = np.empty((len(table), len(choice.parts)))
    for values, places in ((states, choice.features), (parts, choice.parts)):
        for j, k in enumerate(places):
            values[:, j] = _numbers(table[names[k]], source)
    return LongTable(
        source=source,
        unit="row",
        labels=np.arange(len(table)),
        keys=keys,
        codes=codes,
        times=_numbers(table[names[choice.time]], source),
        states=states,
        feature_names=tuple(names[k] for k in choice.features),
        parts=parts if choice.parts else None,
    )


def read_states(frame: Any, features: Sequence[str], source: str = "the table") -> np.ndarray:
    """Read the named columns, in that order, as an (n, d) array; other columns do not matter."""
    table = _eager(frame, source)
    absent = [name for name in features if name not in table.columns]
    if absent:
        raise DataError(
            f"{source} has no column {absent}; the model was fitted on {list(features)}"
        )
    return np.stack([_numbers(table[name], source) for name in features], axis=1)


def frame_of(sheet: Sheet, backend: str) -> Any:
    """Build a pandas, polars or pyarrow table."""
    check_choice("backend", backend, ("pandas", "polars", "pyarrow"))
    extra = "tables" if backend == "polars" else None
    try:
        library = import_module(backend)
    except ImportError as error:
        raise MissingExtraError(backend, extra, f"a {backend} table") from error
    columns: dict[str, Any] = dict(sheet.columns())
    ids = columns[sheet.header[0]]
    if ids.dtype.kind == "U":
        columns[sheet.header[0]] = ids.tolist()
    return library.table(columns) if backend == "pyarrow" else library.DataFrame(columns)


def _eager(frame: Any, source: str) -> nw.DataFrame:
    try:
        table = nw.from_native(frame)
    except TypeError as error:
        raise DataError(
            f"{source} must be a pandas, polars or pyarrow table, got {type(frame).__name__}"
        ) from error
    except nw.exceptions.NarwhalsError as error:
        raise DataError(f"{source} cannot be used: {error}") from error
    table = table.collect() if isinstance(table, nw.LazyFrame) else table
    names = list(table.columns)
    unusual = [name for name in names if not isinstance(name, str)]
    if unusual:
        raise DataError(
            f"{source}: column names must be strings, got {unusual[0]!r}; "
            "rename the columns (frame.columns = frame.columns.astype(str))"
        )
    return table


def _keys(column: nw.Series, source: str) -> tuple[Sequence[Any], np.ndarray]:
    """Return the distinct ids in the order of appearance, and their positions row by row."""
    where = f"column {column.name!r}"
    absent = _absent(column)
    if absent.any():
        row = int(np.argmax(absent))
        raise DataError(f"{source}, row {row}, {where}: no trajectory id; give every row one")
    if column.dtype.is_integer():
        return _ranked(column.to_numpy())
    if column.dtype.is_float():
        # pandas turns whole numbers into floats wherever a column once had a gap.
        values = column.to_numpy()
        exact = (np.abs(values) < 2.0**53) & (values == np.floor(values))
        if exact.all():
            return _ranked(values.astype(np.int64))
        row = int(np.argmin(exact))
        raise DataError(
            f"{source}, row {row}, {where}: ids must be whole numbers or text, "
            f"got {values[row]!r}; convert the column to text"
        )
    names = column.to_list()
    kinds = {type(name) for name in names}
    if not kinds <= {int, str}:
        raise DataError(
            f"{source}, {where}: ids must be whole numbers or text, "
            f"got {column.dtype}; convert the column to text"
        )
    if len(kinds) > 1:
        names = [str(name) for name in names]
    if any("\0" in name for name in names if isinstance(name, str)):
        raise DataError(f"{source}, {where}: an id holds a NUL character; rename it")
    index: dict[Any, int] = {}
    codes = np.array([index.setdefault(name, len(index)) for name in names])
    return list(index), codes


def _ranked(ids: np.ndarray) -> tuple[Sequence[Any], np.ndarray]:
    distinct, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return distinct[order].tolist(), rank[inverse]


def _numbers(column: nw.Series, source: str) -> np.ndarray:
    where = f"{source}, column {column.name!r}"
    if column.dtype.is_temporal():
        raise DataError(
            f"{where}: holds {column.dtype}; convert dates to a number, such as the seconds "
            "since the first: (t - t.min()).dt.total_seconds()"
        )
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        absent = _absent(column)
        filled = column.fill_null(False if column.dtype == nw.Boolean else 0)
        # NumPy converts, since pyarrow refuses whole numbers above 2^53.
        values = np.array(filled.to_numpy(), dtype=np.float64)
        values[absent] = np.nan
        return values
    return np.array(
        [_number(value, row, column, source) for row, value in enumerate(column.to_list())]
    )


def _number(value: Any, row: int, column: nw.Series, source: str) -> float:
    if value is None:
        return math.nan
    if not isinstance(value, Real):
        shown = repr(value) if len(repr(value)) <= 40 else f"{repr(value)[:40]}..."
        raise DataError(
            f"{source}, row {row}, column {column.name!r}: {shown} is not a number; convert the "
            "column to numbers, or leave it out with features=[...]"
        )
    try:
        return float(value)
    except OverflowError as error:
        raise DataError(
            f"{source}, row {row}, column {column.name!r}: too large for float64; rescale it"
        ) from error


def _absent(column: nw.Series) -> np.ndarray:
    absent = np.array(column.is_null().to_numpy(), dtype=bool)
    if column.dtype.is_float():
        absent |= np.asarray(column.fill_null(0.0).is_nan().to_numpy(), dtype=bool)
    return absent
