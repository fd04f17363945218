"""Parquet, and what happens where a library is not installed."""

from __future__ import annotations

import gzip
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from table_cases import (
    BACKENDS,
    GOOD,
    SPLIT,
    same,
    two_sets,
    write,
)

from vectorfield._errors import DataError, MissingExtraError
from vectorfield.tables import (
    _parquet,
    read_splits,
    read_trajectories,
    write_splits,
    write_trajectories,
)


def test_damaged_gzip(folder: Path) -> None:
    whole = gzip.compress(SPLIT.encode())
    for damaged in (GOOD.encode(), whole[:-1], whole[:20], whole[:9], whole + b"rest"):
        path = write(folder, damaged, "bad.csv.gz")
        with pytest.raises(DataError, match=r"bad\.csv\.gz.*not a whole gzip file"):
            read_trajectories(path)


def test_damaged_parquet(folder: Path) -> None:
    path = folder / "good.parquet"
    write_splits(two_sets(), path)
    whole = path.read_bytes()
    for damaged in (b"", b"PAR1", GOOD.encode(), whole[:-1], whole[:50], b"PAR1" + bytes(99)):
        bad = write(folder, damaged, "bad.parquet")
        for read in (read_splits, read_trajectories):
            with pytest.raises(DataError, match=r"bad\.parquet.*not a whole Parquet file"):
                read(bad)


def test_every_changed_byte_of_parquet_is_refused(folder: Path) -> None:
    path = folder / "whole.parquet"
    write_splits(two_sets(), path)
    whole = path.read_bytes()
    assert read_splits(path).train is not None
    for place in range(0, len(whole), 3):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        with pytest.raises(DataError, match="not a whole Parquet file"):
            read_splits(write(folder, bytes(changed), "changed.parquet"))


def test_parquet_of_others_is_read_and_ours_is_read_by_others(folder: Path) -> None:
    polars, parquet = pytest.importorskip("polars"), pytest.importorskip("pyarrow.parquet")
    splits = two_sets()
    assert splits.train is not None
    ours, theirs = folder / "ours.parquet", folder / "theirs.parquet"
    write_trajectories(splits.train, ours)
    splits.train.to_frame("polars").write_parquet(theirs)
    assert read_trajectories(theirs).equals(splits.train)
    frame = splits.train.to_frame("polars")
    assert polars.read_parquet(ours).equals(frame)
    assert polars.scan_parquet(ours).select("v").collect().equals(frame.select("v"))
    assert polars.from_arrow(parquet.read_table(ours)).equals(frame)


def test_parquet_refusals_name_file_row_and_column(folder: Path) -> None:
    polars = pytest.importorskip("polars")
    path = folder / "wrong.parquet"
    frame = polars.DataFrame({"trajectory": [1, 1], "time": [0, 1], "v": [1.0, None]})
    frame.write_parquet(path)
    with pytest.raises(DataError, match=r"wrong\.parquet.*trajectory 1, row 1, column 'v'"):
        read_trajectories(path)


def hide(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    for name in names:
        monkeypatch.setitem(sys.modules, name, None)
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(_parquet, "find_spec", lambda n: None if n in names else find_spec(n))


def test_missing_libraries_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "there.parquet"
    splits = two_sets()
    write_splits(splits, path)
    hide(monkeypatch, *BACKENDS)
    with pytest.raises(MissingExtraError, match=r"vectorfield\[tables\]"):
        read_splits(path)
    with pytest.raises(MissingExtraError, match=r"vectorfield\[tables\]"):
        write_splits(splits, folder / "other.parquet")
    assert not (folder / "other.parquet").exists()
    assert splits.train is not None
    with pytest.raises(MissingExtraError, match="pip install pandas"):
        splits.train.to_frame()
    with pytest.raises(MissingExtraError, match=r"vectorfield\[tables\]"):
        splits.train.to_frame("polars")


def test_pyarrow_stands_in_for_polars(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    splits = two_sets()
    by_polars, by_pyarrow = folder / "polars.parquet", folder / "pyarrow.parquet"
    write_splits(splits, by_polars)
    with monkeypatch.context() as patch:
        hide(patch, "polars")
        write_splits(splits, by_pyarrow)
        here = read_splits(by_polars)
        with pytest.raises(DataError, match="not a whole Parquet file"):
            read_splits(write(folder, by_polars.read_bytes()[:-9], "bad.parquet"))
    there = read_splits(by_pyarrow)
    assert same(here.train, splits.train)
    assert same(there.train, splits.train)
    assert same(here.test, splits.test)
    assert same(there.test, splits.test)


def test_csv_needs_no_data_frame_library(folder: Path) -> None:
    path = write(folder, SPLIT, "core.csv")
    code = (
        "import sys\n"
        "for name in ('pandas', 'polars', 'pyarrow'):\n"
        "    sys.modules[name] = None\n"
        "from vectorfield.tables import read_splits, write_splits\n"
        f"splits = read_splits({str(path)!r})\n"
        f"write_splits(splits, {str(folder / 'core.csv.gz')!r})\n"
        "print(len(splits.train))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stderr == ""
    assert run.stdout == "1\n"
