"""Long tables as Parquet, by polars or else by pyarrow."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

from vectorfield._errors import DataError, MissingExtraError
from vectorfield._files import written_whole
from vectorfield.tables._columns import LongTable, Request
from vectorfield.tables._frames import frame_of, read_frame
from vectorfield.tables._sheet import Sheet

__all__ = ["read_parquet", "write_parquet"]


def read_parquet(path: str | os.PathLike[str], request: Request) -> LongTable:
    """Read the columns asked for."""
    source = f"file {os.fspath(path)!r}"
    read = _read_polars if _engine("reading") == "polars" else _read_pyarrow
    return read_frame(read(path, source), request, source)


def write_parquet(sheet: Sheet, path: str | os.PathLike[str]) -> None:
    """Write a sheet."""
    engine = _engine("writing")
    table = frame_of(sheet, engine)
    with written_whole(path) as stream:
        if engine == "polars":
            table.write_parquet(stream)
        else:
            from pyarrow import parquet

            parquet.write_table(table, stream, compression="zstd")


def _engine(doing: str) -> str:
    for name in ("polars", "pyarrow"):
        if find_spec(name) is not None:
            return name
    raise MissingExtraError("polars", "tables", f"{doing} Parquet")


def _read_polars(path: str | os.PathLike[str], source: str) -> Any:
    import polars

    with open(path, "rb") as stream:
        try:
            return polars.read_parquet(stream)
        except (polars.exceptions.PolarsError, polars.exceptions.PanicException) as error:
            raise _damaged(source, error) from error


def _read_pyarrow(path: str | os.PathLike[str], source: str) -> Any:
    import pyarrow
    from pyarrow import parquet

    with open(path, "rb") as stream:
        try:
            return parquet.read_table(stream)
        except (pyarrow.ArrowException, OSError) as error:
            raise _damaged(source, error) from error


def _damaged(source: str, error: BaseException) -> DataError:
    reason = str(error).partition("\n")[0]
    return DataError(f"{source} is not a whole Parquet file ({reason}); fetch or write it again")
