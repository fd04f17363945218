"""What cannot be written is refused, and a failing write leaves nothing behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from table_cases import (
    ENDINGS,
    READS_AS_MISSING,
    two_sets,
)

from vectorfield._errors import DataError
from vectorfield.tables import (
    _csv,
    frame_from_trajectories,
    read_trajectories,
    write_splits,
    write_trajectories,
)
from vectorfield.trajectories import Splits, Trajectories


def test_clashing_names_are_refused(folder: Path) -> None:
    def named(*names: str) -> Trajectories:
        return Trajectories.from_arrays([np.ones((2, len(names)))], 1.0, feature_names=names)

    path = folder / "clash.csv"
    for name in ("trajectory", "time"):
        with pytest.raises(DataError, match=name):
            write_trajectories(named("v", name), path)
        with pytest.raises(DataError, match=name):
            frame_from_trajectories(named("v", name))
    with pytest.raises(DataError, match="validation"):
        write_splits(Splits(named("validation"), None, None), path)
    with pytest.raises(DataError, match=r"'test', 'train', 'validation'"):
        write_trajectories(named("train", "validation", "test"), path)
    with pytest.raises(DataError, match="different names"):
        write_trajectories(named("v"), path, trajectory="t", time="t")
    with pytest.raises(DataError, match="non-empty"):
        write_trajectories(named("v"), path, time="")
    assert not path.exists()
    write_trajectories(named("time", "test"), path, time="t")
    assert read_trajectories(path, time="t").feature_names == ("time", "test")


def test_repeated_ids_are_refused(folder: Path) -> None:
    trajectories = Trajectories.from_arrays([np.ones((2, 1))] * 2, 1.0)
    path = folder / "repeated.csv"
    with pytest.raises(DataError, match=r"the id 0.*ids="):
        write_trajectories(trajectories[[0, 0]], path)
    with pytest.raises(DataError, match=r"the id 0.*ids="):
        write_splits(Splits(trajectories, None, trajectories), path)
    assert not path.exists()


def test_unequal_or_absent_parts_are_refused(folder: Path) -> None:
    one = Trajectories.from_arrays([np.ones((2, 1))], 1.0, ids=[7])
    two = Trajectories.from_arrays([np.ones((2, 2))], 1.0)
    with pytest.raises(DataError, match="nothing to write"):
        write_splits(Splits(None, None, None), folder / "none.csv")
    with pytest.raises(DataError, match=r"the test part.*\['x0', 'x1'\]"):
        write_splits(Splits(one, None, two), folder / "unequal.csv")


@pytest.mark.parametrize("key", [*sorted(READS_AS_MISSING), "a\0b", "\ud800"])
def test_ids_that_csv_cannot_hold(folder: Path, key: str) -> None:
    trajectories = Trajectories.from_arrays([np.ones((2, 1))], 1.0, ids=[key])
    for ending in ("csv", "csv.gz"):
        path = folder / f"ids.{ending}"
        with pytest.raises(DataError, match="rename"):
            write_trajectories(trajectories, path)
        assert not path.exists()


@pytest.mark.parametrize("ending", ENDINGS)
def test_failing_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"kept.{ending}"
    write_splits(two_sets(), path)
    before = path.read_bytes()

    class FullDiskError(OSError):
        pass

    def fail(*_: Any) -> None:
        raise FullDiskError("no space left")

    monkeypatch.setattr("os.replace", fail)
    for target in (path, tmp_path / f"new.{ending}"):
        with pytest.raises(FullDiskError):
            write_splits(two_sets(), target)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == before


def test_writing_that_fails_midway_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class BrokenError(RuntimeError):
        pass

    def fail(*_: Any) -> None:
        raise BrokenError

    monkeypatch.setattr(_csv, "_write_rows", fail)
    for ending in ("csv", "csv.gz"):
        with pytest.raises(BrokenError):
            write_splits(two_sets(), tmp_path / f"x.{ending}")
    assert list(tmp_path.iterdir()) == []
