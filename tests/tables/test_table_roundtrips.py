"""What is written is read back to the last bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_cases import (
    BACKENDS,
    ENDINGS,
    same,
    sets,
    two_sets,
)

from vectorfield.tables import (
    _csv,
    read_splits,
    read_trajectories,
    write_splits,
    write_trajectories,
)
from vectorfield.trajectories import Splits, Trajectories


@pytest.mark.parametrize("ending", ENDINGS)
@settings(max_examples=60, deadline=None)
@given(trajectories=sets())
def test_file_round_trip_is_exact(folder: Path, ending: str, trajectories: Trajectories) -> None:
    path = folder / f"round.{ending}"
    write_trajectories(trajectories, path)
    assert read_trajectories(path).equals(trajectories)


@pytest.mark.parametrize("ending", ENDINGS)
@settings(max_examples=30, deadline=None)
@given(data=st.data(), trajectories=sets())
def test_splits_round_trip_is_exact(
    folder: Path, ending: str, data: st.DataObject, trajectories: Trajectories
) -> None:
    n = len(trajectories)
    part = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    splits = Splits(*(trajectories[part == k] if (part == k).any() else None for k in range(3)))
    path = folder / f"splits.{ending}"
    write_splits(splits, path)
    again = read_splits(path)
    assert all(same(a, b) for a, b in zip(again, splits, strict=True))
    whole = read_trajectories(path)
    assert whole.feature_names == trajectories.feature_names
    assert len(whole) == n


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=30, deadline=None)
@given(trajectories=sets())
def test_frame_round_trip_is_exact(backend: str, trajectories: Trajectories) -> None:
    pytest.importorskip(backend)
    frame = trajectories.to_frame(backend)
    assert type(frame).__module__.partition(".")[0] == backend
    assert Trajectories.from_frame(frame).equals(trajectories)


@pytest.mark.parametrize("ending", ENDINGS)
def test_other_column_names(folder: Path, ending: str) -> None:
    splits = two_sets()
    path = folder / f"named.{ending}"
    write_splits(splits, path, trajectory="who, when", time='t "s"')
    again = read_splits(path, trajectory="who, when", time='t "s"')
    assert same(again.train, splits.train)
    assert again.validation is None
    assert same(again.test, splits.test)


def test_mixed_ids_become_text_only_where_they_must() -> None:
    splits = two_sets()
    assert splits.train is not None
    assert splits.test is not None
    assert splits.train.ids.dtype.kind == "i"
    assert splits.test.ids.dtype.kind == "U"


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_equal_data_give_equal_files(folder: Path, ending: str) -> None:
    first, second = folder / f"first.{ending}", folder / f"another name.{ending}"
    write_splits(two_sets(), first)
    write_splits(two_sets(), second)
    assert first.read_bytes() == second.read_bytes()
    if ending == "csv.gz":
        head = first.read_bytes()[:8]
        assert head[3] == 0  # no file name
        assert head[4:8] == bytes(4)  # no time


def test_torch_states_are_written(folder: Path) -> None:
    torch = pytest.importorskip("torch")
    trajectories = Trajectories.from_arrays([torch.tensor([[0.1], [0.2]])], 0.1)
    write_trajectories(trajectories, folder / "torch.csv")
    assert read_trajectories(folder / "torch.csv").equals(trajectories)


def test_blocks_join_without_a_seam(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    splits = two_sets()
    write_splits(splits, folder / "whole.csv")
    whole = read_splits(folder / "whole.csv")
    for cells in (1, 7, 14, 21):
        monkeypatch.setattr(_csv, "_CELLS", cells)
        write_splits(splits, folder / "blocks.csv")
        assert (folder / "blocks.csv").read_bytes() == (folder / "whole.csv").read_bytes()
        blocks = read_splits(folder / "blocks.csv")
        assert all(same(a, b) for a, b in zip(blocks, whole, strict=True))
