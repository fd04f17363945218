"""Long tables as CSV, by the standard library alone, a block of rows at a time."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import IO, Any

import numpy as np

from vectorfield._errors import DataError
from vectorfield._files import written_whole
from vectorfield.tables._columns import Choice, LongTable, Request, choose
from vectorfield.tables._sheet import Sheet

__all__ = ["read_csv", "write_csv"]

_MISSING = frozenset({"", "nan", "NaN", "NA", "null", "NULL"})
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{1,2}:\d{2}")
_LINE_END = re.compile(r"\r\n|\r|\n")
_CELLS = 5_000  # in one block: it stays in the cache, and the garbage collector stays idle


def read_csv(path: str | os.PathLike[str], request: Request) -> LongTable:
    """Read the columns asked for; the labels of the rows are line numbers.

    Cost: about a microsecond a cell; memory for the numbers and for one block of rows.
    """
    source = f"file {os.fspath(path)!r}"
    with _named_errors(source), _opened(path) as stream:
        reader = csv.reader(_lines(stream, source), strict=True)
        try:
            header = next(reader, None)
            if header is None:
                raise DataError(f"{source} is empty; it needs a header and rows")
            choice = choose(header, request, source)
            blocks = _Blocks(source, header, choice, reader.line_num)
            size = max(1, _CELLS // len(header))
            while rows := list(islice(reader, size)):
                blocks.add(rows, reader.line_num)
        except csv.Error as error:
            raise DataError(
                f"{source}, line {reader.line_num}: not valid CSV ({error}); "
                "look for an odd quotation mark or line ending"
            ) from error
    return blocks.table()


def write_csv(sheet: Sheet, path: str | os.PathLike[str], *, zipped: bool) -> None:
    """Write a sheet; every float is written with the digits that bring it back exactly."""
    header = ",".join(_quoted(name, "column name") for name in sheet.header)
    names = [_quoted(str(name), "trajectory id") for name in sheet.ids]
    tails = ["\n"] * len(names)
    if sheet.parts is not None:
        marks = ("1,0,0", "0,1,0", "0,0,1")
        tails = [f",{marks[int(k)]}\n" for k in sheet.parts]
    with written_whole(path) as file:
        if not zipped:
            _write_rows(file, header, sheet, names, tails)
            return
        # No name and no time inside, so that equal data give equal files.
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as stream:
            _write_rows(stream, header, sheet, names, tails)


class _Blocks:
    """Collects the numbers of one block of text rows after another."""

    def __init__(self, source: str, header: Sequence[str], choice: Choice, last: int) -> None:
        self._source, self._header, self._choice = source, header, choice
        self._last = last
        self._codes: dict[str, int] = {}
        self._parsed: list[tuple[np.ndarray, ...]] = []

    def add(self, rows: list[list[str]], last: int) -> None:
        """Take rows of which the last one ends at line ``last`` of the file."""
        lines, self._last = _first_lines(rows, self._last, last), last
        if [] in rows:  # what the reader makes of an empty line
            lines = lines[[len(row) > 0 for row in rows]]
            rows = [row for row in rows if row]
        width = len(self._header)
        if any(len(row) != width for row in rows):
            k = next(k for k, row in enumerate(rows) if len(row) != width)
            raise DataError(
                f"{self._source}, line {lines[k]}: {len(rows[k])} cells, the header has {width}; "
                "a decimal comma, or a comma inside a name, needs quotation marks"
            )
        if not rows:
            return
        columns = list(zip(*rows, strict=True))
        choice = self._choice
        codes = self._key_codes(columns[choice.trajectory], lines)
        times = self._numbers(columns, choice.time, lines)
        states = np.empty((len(rows), len(choice.features)))
        parts = np.empty((len(rows), len(choice.parts)))
        for values, places in ((states, choice.features), (parts, choice.parts)):
            for j, k in enumerate(places):
                values[:, j] = self._numbers(columns, k, lines)
        self._parsed.append((lines, codes, times, states, parts))

    def table(self) -> LongTable:
        if not self._parsed:
            raise DataError(f"{self._source} has a header but no rows")
        lines, codes, times, states, parts = map(np.concatenate, zip(*self._parsed, strict=True))
        return LongTable(
            source=self._source,
            unit="line",
            labels=lines,
            keys=list(self._codes),
            codes=codes,
            times=times,
            states=states,
            feature_names=tuple(self._header[k] for k in self._choice.features),
            parts=parts if self._choice.parts else None,
        )

    def _key_codes(self, cells: Sequence[str], lines: np.ndarray) -> np.ndarray:
        index = self._codes
        codes = [index.setdefault(cell, len(index)) for cell in cells]
        absent = _MISSING & index.keys()
        if absent:
            row = next(k for k, cell in enumerate(cells) if cell in absent)
            raise DataError(
                f"{self._source}, line {lines[row]}, column "
                f"{self._header[self._choice.trajectory]!r}: no trajectory id "
                f"({cells[row]!r} reads as missing); give every row one"
            )
        return np.array(codes)

    def _numbers(self, columns: Sequence[Sequence[str]], k: int, lines: np.ndarray) -> np.ndarray:
        cells = columns[k]
        try:
            values = np.fromiter(map(float, cells), np.float64, len(cells))
        except ValueError:
            pairs = zip(cells, lines, strict=True)
            values = np.array([self._number(cell, k, line) for cell, line in pairs])
        if "_" in "".join(cells):  # Python reads 1_0 as 10; a table does not
            row = next(row for row, cell in enumerate(cells) if "_" in cell)
            raise self._not_a_number(cells[row], k, lines[row])
        return values

    def _number(self, cell: str, k: int, line: int) -> float:
        if cell.strip() in _MISSING:
            return float("nan")
        try:
            return float(cell)
        except ValueError as error:
            raise self._not_a_number(cell, k, line) from error

    def _not_a_number(self, cell: str, k: int, line: int) -> DataError:
        shown = cell if len(cell) <= 40 else cell[:40] + "..."
        remedy = "convert the column to numbers, or leave it out with features=[...]"
        if k in {self._choice.trajectory, self._choice.time, *self._choice.parts}:
            remedy = "convert the column to numbers"
        if _DATE.search(cell):
            remedy = "convert dates to a number, such as the days since the first"
        where = f"{self._source}, line {line}, column {self._header[k]!r}"
        return DataError(f"{where}: {shown!r} is not a number; {remedy}")


@contextmanager
def _named_errors(source: str) -> Iterator[None]:
    """Turn what a damaged gzip file raises into an error that names the file."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            f"{source} is not a whole gzip file ({error}); fetch or write it again"
        ) from error


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[IO[str]]:
    # Bytes that are not UTF-8 become lone surrogates, which `_lines` finds and places.
    with open(path, "rb") as raw:
        zipped = os.fspath(path).lower().endswith(".gz")
        stream: Any = gzip.GzipFile(fileobj=raw) if zipped else raw
        yield io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")


def _lines(stream: IO[str], source: str) -> Iterator[str]:
    for number, line in enumerate(stream, start=1):
        if "\0" in line:
            raise DataError(
                f"{source}, line {number}: holds a NUL byte; it is no text file, or is damaged"
            )
        if not line.isascii():
            try:
                line.encode()
            except UnicodeEncodeError as error:
                raise DataError(
                    f"{source}, line {number}: not UTF-8; save the file as 'CSV UTF-8'"
                ) from error
        yield line


def _first_lines(rows: Sequence[Sequence[str]], before: int, last: int) -> np.ndarray:
    """Return the lines that the rows begin at, when line ``before`` precedes the first."""
    if last - before == len(rows):
        return np.arange(before + 1, last + 1)
    spans = [1 + sum(len(_LINE_END.findall(cell)) for cell in row) for row in rows]
    return before + 1 + np.concatenate([[0], np.cumsum(spans[:-1])]).astype(np.int64)


def _quoted(text: str, what: str) -> str:
    if "\0" in text or (what == "trajectory id" and text in _MISSING):
        trouble = "holds a NUL" if "\0" in text else "reads as missing"
        raise DataError(f"{what} {text!r} {trouble} in a CSV file; rename it or write Parquet")
    if text != text.strip() or any(mark in text for mark in ',"\r\n\ufeff'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _write_rows(
    stream: Any, header: str, sheet: Sheet, names: Sequence[str], tails: Sequence[str]
) -> None:
    stream.write(f"{header}\n".encode())
    owners = np.repeat(np.arange(len(names)), sheet.lengths)
    size = max(1, _CELLS // (1 + sheet.states.shape[1]))
    for start in range(0, len(owners), size):
        rows = slice(start, start + size)
        lines = [
            f"{names[k]},{time!r},{','.join(map(repr, values))}{tails[k]}"
            for k, time, values in zip(
                owners[rows].tolist(),
                sheet.times[rows].tolist(),
                sheet.states[rows].tolist(),
                strict=True,
            )
        ]
        stream.write("".join(lines).encode())
