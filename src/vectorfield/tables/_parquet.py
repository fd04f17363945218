"""Long tables as Parquet, by polars or else by pyarrow.

Damage inside a Parquet file may pass unseen, as other numbers, or end the whole process inside
the reader (polars aborts when a damaged page header asks for more memory than there is). So the
files written here carry a checksum in the room between data and footer, where no reader looks.
A file of another writer has none and is read as it is.
"""

from __future__ import annotations

import io
import os
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from vectorfield._errors import DataError, MissingExtraError
from vectorfield._files import written_whole
from vectorfield.tables._columns import LongTable, Request
from vectorfield.tables._frames import frame_of, read_frame
from vectorfield.tables._sheet import Sheet

__all__ = ["read_parquet", "write_parquet"]

_MARK = b"<vectorfield checksum>"
_SIZE = 2 * len(_MARK) + 4  # a mark on both sides: damage to one cannot hide the other


def read_parquet(path: str | os.PathLike[str], request: Request) -> LongTable:
    """Read the columns asked for."""
    source = f"file {os.fspath(path)!r}"
    read = _read_polars if _engine("reading") == "polars" else _read_pyarrow
    content = Path(path).read_bytes()
    _verify(content, source)
    return read_frame(read(content, source), request, source)


def write_parquet(sheet: Sheet, path: str | os.PathLike[str]) -> None:
    """Write a sheet."""
    engine = _engine("writing")
    table = frame_of(sheet, engine)
    buffer = io.BytesIO()
    if engine == "polars":
        table.write_parquet(buffer)
    else:
        from pyarrow import parquet

        parquet.write_table(table, buffer, compression="zstd")
    content = buffer.getbuffer()
    footer = _footer(content)
    checksum = zlib.crc32(content).to_bytes(4, "little")
    with written_whole(path) as stream:
        stream.write(content[:footer])
        stream.write(_MARK + checksum + _MARK)
        stream.write(content[footer:])


def _engine(doing: str) -> str:
    for name in ("polars", "pyarrow"):
        if find_spec(name) is not None:
            return name
    raise MissingExtraError("polars", "tables", f"{doing} Parquet")


def _footer(content: bytes | memoryview) -> int:
    """Return where the footer begins: its length stands before the last four bytes."""
    return len(content) - 8 - int.from_bytes(content[-8:-4], "little")


def _verify(content: bytes, source: str) -> None:
    if _MARK not in content:
        return
    footer = max(0, _footer(content))
    start = max(0, footer - _SIZE)
    view = memoryview(content)
    checksum = zlib.crc32(view[footer:], zlib.crc32(view[:start])).to_bytes(4, "little")
    if content[start:footer] != _MARK + checksum + _MARK:
        raise _damaged(source, "its checksum is wrong")


def _read_polars(content: bytes, source: str) -> Any:
    import polars

    try:
        return polars.read_parquet(content)
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException) as error:
        raise _damaged(source, error) from error


def _read_pyarrow(content: bytes, source: str) -> Any:
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.read_table(pyarrow.BufferReader(content))
        table.validate(full=True)  # polars does so on its own
        _ = table.column_names
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _damaged(source, error) from error
    return table


def _damaged(source: str, reason: object) -> DataError:
    shown = str(reason).partition("\n")[0]
    return DataError(f"{source} is not a whole Parquet file ({shown}); fetch or write it again")
