"""Whatever is read is a sound set or a `DataError`."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from table_cases import (
    ENDINGS,
    GOOD,
    SPLIT,
    two_sets,
    write,
)

from vectorfield._errors import DataError
from vectorfield.tables import (
    read_splits,
    read_trajectories,
    write_splits,
)
from vectorfield.trajectories import Trajectories


def sets_or_none(path: Path) -> list[Trajectories]:
    """Read by both readers; what they refuse is left out, any other error fails the test."""
    found: list[Trajectories] = []
    for read in (read_trajectories, read_splits):
        try:
            result = read(path)
        except DataError:
            continue
        parts = [result] if isinstance(result, Trajectories) else list(result)
        found.extend(part for part in parts if part is not None)
    return found


def all_sound(found: list[Trajectories]) -> bool:
    return all(
        np.isfinite(part.states).all() and (part.lengths >= 2).all() and len(part) > 0
        for part in found
    )


FUZZ = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize("ending", ENDINGS)
@FUZZ
@given(content=st.binary(max_size=200))
@example(b"")
@example(b"\xff\xfe")
@example(b'"')
def test_random_bytes(folder: Path, ending: str, content: bytes) -> None:
    assert sets_or_none(write(folder, content, f"random.{ending}")) == []


PIECES = st.sampled_from(
    [
        b",",
        b"\n",
        b"\r",
        b'"',
        b"\0",
        b"",
        b" ",
        b"nan",
        b"inf",
        b"1e999",
        b"-",
        b"\xff",
        b"\xc3",
        b"NA",
        b"_",
        b"1,",
        b"a,0,1,1,0,0\n",
        b"\n\n",
        b"\xef\xbb\xbf",
        b"\xe2\x80\xa8",
        b"9" * 400,
    ]
)
EDITS = st.lists(
    st.tuples(st.integers(0, 200), st.integers(0, 12), st.one_of(PIECES, st.binary(max_size=4))),
    min_size=1,
    max_size=4,
)


def mutate(content: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    for start, length, new in edits:
        at = start % (len(content) + 1)
        content = content[:at] + new + content[at + length :]
    return content


@FUZZ
@given(edits=EDITS, text=st.sampled_from([GOOD, SPLIT]))
def test_mutated_csv(folder: Path, edits: list[tuple[int, int, bytes]], text: str) -> None:
    content = mutate(text.encode(), edits)
    found = sets_or_none(write(folder, content, "mutated.csv"))
    zipped = sets_or_none(write(folder, gzip.compress(content), "mutated.csv.gz"))
    assert all_sound(found)
    assert len(zipped) == len(found)
    assert all(a.equals(b) for a, b in zip(found, zipped, strict=True))


@pytest.mark.parametrize("ending", ["csv.gz", "parquet"])
@FUZZ
@given(data=st.data())
def test_mutated_packed_files(folder: Path, ending: str, data: st.DataObject) -> None:
    path = folder / f"whole.{ending}"
    write_splits(two_sets(), path)
    whole = path.read_bytes()
    edits = data.draw(
        st.lists(
            st.tuples(st.integers(0, len(whole)), st.integers(0, 3), st.binary(max_size=3)),
            min_size=1,
            max_size=3,
        )
    )
    found = sets_or_none(write(folder, mutate(whole, edits), f"mutated.{ending}"))
    assert all_sound(found)


@pytest.mark.parametrize("ending", ["csv.gz", "parquet"])
def test_every_truncation_is_refused(folder: Path, ending: str) -> None:
    path = folder / f"whole.{ending}"
    write_splits(two_sets(), path)
    whole = path.read_bytes()
    for stop in range(0, len(whole), max(1, len(whole) // 150)):
        assert sets_or_none(write(folder, whole[:stop], f"cut.{ending}")) == []


CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=2), st.just(1j)
)


@settings(max_examples=150, deadline=None)
@given(
    columns=st.fixed_dictionaries(
        {name: st.lists(CELLS, min_size=3, max_size=3) for name in ("trajectory", "time", "v")},
        optional={n: st.lists(CELLS, min_size=3, max_size=3) for n in ("train", "test", "")},
    )
)
def test_random_pandas_frames(columns: dict[str, list[Any]]) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({k: pandas.Series(v, dtype=object) for k, v in columns.items()})
    for table in (frame, frame.infer_objects()):
        try:
            trajectories = Trajectories.from_frame(table)
        except DataError:
            continue
        assert all_sound([trajectories])
