"""Long tables: exact round trips, and an error that names the place for every wrong table."""

from __future__ import annotations

import gzip
import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from vectorfield._errors import DataError, MissingExtraError
from vectorfield.tables import (
    _csv,
    _parquet,
    frame_from_trajectories,
    read_splits,
    read_trajectories,
    splits_from_frame,
    trajectories_from_frame,
    write_splits,
    write_trajectories,
)
from vectorfield.trajectories import Splits, Trajectories

ENDINGS = ("csv", "csv.gz", "parquet")
BACKENDS = ("pandas", "polars", "pyarrow")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.fixture(scope="module", autouse=True)
def no_syncing() -> Iterator[None]:
    """Files here need not outlive a power cut, and thousands are written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        yield


def two_sets() -> Splits:
    def one(ids: list[Any]) -> Trajectories:
        xs = [[[0.1 * k, -0.0], [1.0, 5e-324]] for k in range(len(ids))]
        return Trajectories.from_arrays(xs, 0.1, ids=ids, feature_names=["v", "w"])

    return Splits(one([3, 1]), None, one(["b", "a,"]))


def same(a: Trajectories | None, b: Trajectories | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.equals(b)


def write(folder: Path, text: str | bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


# ---------------------------------------------------------------------------- round trips

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
LETTERS = st.characters(exclude_categories=("Cs",), exclude_characters="\0")
NAMES = st.one_of(
    st.sampled_from(
        ["a,b", 'a"b', "a\nb", "a\r\nb", "a\rb", " a", "a ", "\ufeffa", "é", "1", "#", "'", "="]
    ),
    st.text(LETTERS, min_size=1, max_size=5),
)
WHOLE = st.integers(-(2**63), 2**63 - 1)
READS_AS_MISSING = {"", "nan", "NaN", "NA", "null", "NULL"}
IDS = st.one_of(
    st.lists(WHOLE, min_size=1, max_size=5, unique=True),
    st.lists(
        NAMES.filter(lambda name: name not in READS_AS_MISSING),
        min_size=1,
        max_size=5,
        unique=True,
    ),
)


@st.composite
def sets(draw: st.DrawFn) -> Trajectories:
    ids = draw(IDS)
    reserved = {"trajectory", "time", "train", "validation", "test"}
    names = draw(
        st.lists(NAMES.filter(lambda s: s not in reserved), min_size=1, max_size=4, unique=True)
    )
    xs, ts = [], []
    for _ in ids:
        n = draw(st.integers(2, 5))
        xs.append(draw(hnp.arrays(np.float64, (n, len(names)), elements=FLOATS)))
        t = np.sort(draw(hnp.arrays(np.float64, n, elements=FLOATS, unique=True)))
        assume((t[1:] > t[:-1]).all())  # -0.0 and 0.0 are one time
        ts.append(t)
    return Trajectories.from_arrays(xs, ts, ids=ids, feature_names=names)


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


# ------------------------------------------------------------------------------- reading CSV

GOOD = "trajectory,time,v,w\na,0,1,2\na,1,3,4\nb,0,5,6\nb,2,7,8\n"
SPLIT = (
    "trajectory,time,v,train,validation,test\na,0,1,1,0,0\na,1,2,1,0,0\nb,0,3,0,0,1\nb,1,4,0,0,1\n"
)


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD.rstrip("\n"),
        GOOD + "\n\n",
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\n", "\r"),
        GOOD.replace("\n", "\n\n"),
        "\ufeff" + GOOD,
        GOOD.replace("a,", '"a",'),
        GOOD.replace(",1,", ", 1.0 ,"),
        "w,time,v,trajectory\n2,0,1,a\n4,1,3,a\n6,0,5,b\n8,2,7,b\n",
        "trajectory,time,v,w\na,0,1,2\nb,0,5,6\na,1,3,4\nb,2,7,8\n",
    ],
)
def test_ways_to_write_the_same_table(folder: Path, text: str) -> None:
    trajectories = read_trajectories(write(folder, text), features=["v", "w"])
    assert trajectories.ids.tolist() == ["a", "b"]
    assert trajectories.states.tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]
    assert trajectories.times.tolist() == [0.0, 1.0, 0.0, 2.0]


def test_features_are_the_other_columns_or_those_named(folder: Path) -> None:
    assert read_trajectories(write(folder, GOOD)).feature_names == ("v", "w")
    assert read_trajectories(write(folder, GOOD), features=["w"]).feature_names == ("w",)
    assert read_trajectories(write(folder, GOOD), features=["w", "v"]).states[0].tolist() == [2, 1]
    assert read_trajectories(write(folder, SPLIT)).feature_names == ("v",)
    fewer = SPLIT.replace("validation", "valid")
    assert read_trajectories(write(folder, fewer)).feature_names == ("v", "train", "valid", "test")


@pytest.mark.parametrize("cell", ["", " ", "nan", "NaN", "NA", "null", "NULL", " NA "])
def test_missing_cells(folder: Path, cell: str) -> None:
    text = f"trajectory,time,v\na,0,1\na,1,2\na,2,{cell}\na,3,4\na,4,5\n"
    with pytest.raises(DataError, match=r"trajectory a, line 4, column 'v'.*missing='split'"):
        read_trajectories(write(folder, text))
    cut = read_trajectories(write(folder, text), missing="split")
    assert cut.ids.tolist() == ["a/0", "a/1"]
    assert cut.times.tolist() == [0.0, 1.0, 3.0, 4.0]


def test_splits_of_a_file(folder: Path) -> None:
    splits = read_splits(write(folder, SPLIT))
    assert splits.train is not None
    assert splits.train.ids.tolist() == ["a"]
    assert splits.validation is None
    assert splits.test is not None
    assert splits.test.states.tolist() == [[3.0], [4.0]]


def edited(line: int, new: str, text: str = GOOD) -> str:
    lines = text.split("\n")
    lines[line - 1] = new
    return "\n".join(lines)


WRONG: list[tuple[str, str | bytes, tuple[str, ...]]] = [
    ("empty", "", ("is empty", "header")),
    ("only a byte order mark", "\ufeff", ("is empty",)),
    ("only a header", "trajectory,time,v\n", ("header but no rows",)),
    ("short line", edited(3, "a,1,3"), ("line 3", "3 cells", "has 4")),
    ("long line", edited(4, "b,0,5,6,7"), ("line 4", "5 cells", "has 4")),
    ("decimal comma", edited(2, "a,0,1,5,2"), ("line 2", "5 cells", "decimal comma")),
    ("repeated name", edited(1, "trajectory,time,v,v"), ("repeated: ['v']",)),
    ("no id column", edited(1, "who,time,v,w"), ("'trajectory'", "'who', 'time'", "trajectory=")),
    ("no time column", edited(1, "trajectory,t,v,w"), ("'time'", "'t'", "time=")),
    ("no header", GOOD.partition("\n")[2], ("'trajectory', 'time'", "'a', '0'")),
    ("spaces in the header", GOOD.replace(",", ", "), ("'time'", "' time'", "spaces")),
    ("semicolons", GOOD.replace(",", ";"), ("by commas",)),
    ("no features", "trajectory,time\na,0\na,1\n", ("no feature columns",)),
    ("nameless column", edited(1, "trajectory,time,,w"), ("column 3 has no name", "index")),
    ("text among numbers", edited(5, "b,2,seven,8"), ("line 5", "'v'", "'seven'", "features=")),
    ("first bad value", edited(3, "a,1,x,y"), ("line 3", "'v'", "'x'")),
    ("underscores", edited(3, "a,1,1_0,4"), ("line 3", "'v'", "'1_0'")),
    ("long bad value", edited(3, "a,1," + "x" * 99 + ",4"), ("line 3", "x...'")),
    ("date as time", edited(2, "a,2020-01-31,1,2"), ("line 2", "'time'", "dates", "days")),
    ("clock as time", edited(2, "a,12:30,1,2"), ("line 2", "'time'", "dates")),
    ("no id", edited(4, ",0,5,6"), ("line 4", "'trajectory'", "id", "give every row one")),
    ("missing id", edited(4, "NA,0,5,6"), ("line 4", "'NA'", "missing")),
    ("no time", edited(3, "a,,3,4"), ("trajectory a, line 3", "time is nan")),
    ("infinite time", edited(3, "a,inf,3,4"), ("trajectory a, line 3", "time is inf")),
    ("infinite value", edited(3, "a,1,3,-inf"), ("trajectory a, line 3", "'w'", "-inf")),
    ("time goes back", edited(5, "b,-1,7,8"), ("trajectory b, line 5", "back", "sort")),
    ("time stands still", edited(5, "b,0,7,8"), ("trajectory b, line 5", "twice")),
    ("one sample", edited(5, "c,0,7,8"), ("trajectory b", "1 sample", "leave")),
    ("not UTF-8", GOOD.encode().replace(b"b,2", b"\xe9,2"), ("line 5", "UTF-8")),
    ("UTF-16", GOOD.encode("utf-16"), ("line 1", "byte")),
    ("NUL", edited(3, "a,1,\0,4"), ("line 3", "NUL")),
    ("open quotation", edited(3, 'a,1,"3,4'), ("not valid CSV", "quotation")),
    ("text after quotation", edited(3, '"a"b,1,3,4'), ("line 3", "not valid CSV")),
    ("endless cell", edited(3, "a,1," + "1" * 200_000 + ",4"), ("line 3", "not valid CSV")),
]


@pytest.mark.parametrize(("text", "named"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_wrong_file_is_refused_by_place_and_remedy(
    folder: Path, ending: str, text: str | bytes, named: tuple[str, ...]
) -> None:
    content = text.encode() if isinstance(text, str) else text
    path = write(folder, content if ending == "csv" else gzip.compress(content), f"bad.{ending}")
    with pytest.raises(DataError) as caught:
        read_trajectories(path)
    message = str(caught.value)
    assert f"bad.{ending}" in message
    for part in named:
        assert part in message


def test_lines_are_counted_across_cells_that_span_some(folder: Path) -> None:
    text = 'trajectory,time,v\n"a\nb\r\nc",0,1\n\n"a\nb\r\nc",1,2\nd,0,oops\n'
    with pytest.raises(DataError, match=r"line 9, column 'v': 'oops'"):
        read_trajectories(write(folder, text))
    with pytest.raises(DataError, match=r"line 6: 2 cells"):
        read_trajectories(write(folder, text.replace(",1,2", ",1")))


def test_line_numbers_are_right_in_every_block(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_csv, "_CELLS", 8)
    rows = "".join(f"a,{k},{k}\n" for k in range(50))
    with pytest.raises(DataError, match=r"line 42, column 'v': 'x'"):
        read_trajectories(write(folder, "trajectory,time,v\n" + rows.replace("a,40,40", "a,40,x")))
    with pytest.raises(DataError, match=r"line 42: time 0 occurs twice|line 42: time goes back"):
        read_trajectories(write(folder, "trajectory,time,v\n" + rows.replace("a,40,40", "a,0,0")))


WRONG_SPLITS = [
    (edited(3, "a,1,2,1,0,1", SPLIT), ("trajectory a, line 3", "train and test", "exactly one")),
    (edited(3, "a,1,2,0,0,0", SPLIT), ("trajectory a, line 3", "no split", "exactly one")),
    (edited(5, "b,1,4,0,1,0", SPLIT), ("trajectory b, line 5", "validation", "began in test")),
    (edited(4, "b,0,3,0,0,2", SPLIT), ("trajectory b, line 4", "test is 2", "0 or 1")),
    (edited(4, "b,0,3,0,,1", SPLIT), ("trajectory b, line 4", "validation is nan", "0 or 1")),
    (edited(4, "b,0,3,0,0,yes", SPLIT), ("line 4", "'test'", "'yes'")),
    (GOOD, ("['train', 'validation', 'test']", "read_trajectories")),
    (SPLIT.replace("validation", "valid"), ("['validation']", "'valid'")),
    (edited(5, "c,1,4,0,0,1", SPLIT), ("trajectory b", "1 sample")),
]


@pytest.mark.parametrize(("text", "named"), WRONG_SPLITS)
def test_wrong_splits_are_refused(folder: Path, text: str, named: tuple[str, ...]) -> None:
    with pytest.raises(DataError) as caught:
        read_splits(write(folder, text, "bad.csv"))
    for part in ("bad.csv", *named):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"features": "v"}, ("features", "list", "'v'")),
        ({"features": ["u"]}, ("['u']", "'v', 'w'", "features=")),
        ({"features": ["v", "time"]}, ("['time']", "features")),
        ({"features": []}, ("no feature columns",)),
        ({"features": ["v", "v"]}, ("differ", "['v']")),
        ({"features": [1]}, ("features", "[1]")),
        ({"time": "trajectory"}, ("two columns",)),
    ],
)
def test_wrong_column_options_are_refused(
    folder: Path, options: dict[str, Any], named: tuple[str, ...]
) -> None:
    with pytest.raises(DataError) as caught:
        read_trajectories(write(folder, GOOD), **options)
    for part in named:
        assert part in str(caught.value)


def test_split_columns_are_never_features(folder: Path) -> None:
    with pytest.raises(DataError, match="'train'"):
        read_trajectories(write(folder, SPLIT), features=["v", "train"])


def test_many_columns_are_not_all_listed(folder: Path) -> None:
    header = ",".join(f"c{k}" for k in range(500))
    with pytest.raises(DataError, match="and 480 more"):
        read_trajectories(write(folder, header + "\n"))


def test_no_such_file(folder: Path) -> None:
    for ending in ENDINGS:
        with pytest.raises(FileNotFoundError, match="nowhere"):
            read_trajectories(folder / f"nowhere.{ending}")
        with pytest.raises(FileNotFoundError):
            write_splits(two_sets(), folder / "no folder" / f"x.{ending}")


@pytest.mark.parametrize("name", ["data.txt", "data", "data.gz", "data.xlsx", "csv"])
def test_other_endings_are_refused(folder: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"\.csv, \.csv\.gz, \.parquet"):
        read_trajectories(folder / name)
    with pytest.raises(DataError, match=r"\.csv, \.csv\.gz, \.parquet"):
        write_splits(two_sets(), folder / name)
    assert not (folder / name).exists()


def test_endings_in_capitals(folder: Path) -> None:
    assert len(read_trajectories(write(folder, GOOD, "CAPITALS.CSV"))) == 2
    assert len(read_trajectories(write(folder, gzip.compress(GOOD.encode()), "C.Csv.GZ"))) == 2


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


def test_parquet_refusals_name_file_row_and_column(folder: Path) -> None:
    polars = pytest.importorskip("polars")
    path = folder / "wrong.parquet"
    frame = polars.DataFrame({"trajectory": [1, 1], "time": [0, 1], "v": [1.0, None]})
    frame.write_parquet(path)
    with pytest.raises(DataError, match=r"wrong\.parquet.*trajectory 1, row 1, column 'v'"):
        read_trajectories(path)


# ---------------------------------------------------------------------------------- writing


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


# ---------------------------------------------------------------------------------- frames


def frame_with(backend: str, **columns: Any) -> Any:
    library = pytest.importorskip(backend)
    full = {"trajectory": [1, 1], "time": [0.0, 1.0], "v": [1.0, 2.0], **columns}
    return library.table(full) if backend == "pyarrow" else library.DataFrame(full)


@pytest.mark.parametrize("backend", BACKENDS)
def test_frame_columns_of_many_types(backend: str) -> None:
    frame = frame_with(
        backend, trajectory=["a", "a"], time=[0, 1], v=[True, False], w=[3, 4], u=[0.5, 0.25]
    )
    trajectories = Trajectories.from_frame(frame)
    assert trajectories.ids.tolist() == ["a"]
    assert trajectories.feature_names == ("v", "w", "u")
    assert trajectories.states.tolist() == [[1.0, 3.0, 0.5], [0.0, 4.0, 0.25]]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"v": [1.0, None]}, ("trajectory 1, row 1", "'v'", "nan")),
        ({"v": [None, None]}, ("trajectory 1, row 0", "'v'")),
        ({"v": [1, None]}, ("trajectory 1, row 1", "'v'")),
        ({"v": [True, None]}, ("trajectory 1, row 1", "'v'")),
        ({"v": ["1", "x"]}, ("row 0", "'v'", "'1'", "not a number", "features=")),
        ({"time": [0.0, None]}, ("row 1", "time is nan")),
        ({"time": [0.0, float("inf")]}, ("row 1", "time is inf")),
        ({"trajectory": [1, None]}, ("row 1", "'trajectory'", "id")),
        ({"trajectory": ["a", None]}, ("row 1", "'trajectory'", "id")),
        ({"trajectory": [1.0, 1.5]}, ("row 1", "'trajectory'", "1.5", "text")),
        ({"trajectory": [True, True]}, ("'trajectory'", "whole numbers or text")),
        ({"trajectory": [1, 2]}, ("trajectory 1", "1 sample")),
        ({"time": [datetime(2020, 1, 1)] * 2}, ("'time'", "dates", "seconds")),
        ({"v": [timedelta(seconds=1)] * 2}, ("'v'", "seconds")),
        ({"train": [1, 1], "validation": [0, 0], "test": [0, 0]}, ("splits_from_frame", "train")),
        ({"trajectory": [], "time": [], "v": []}, ("no rows",)),
    ],
)
def test_wrong_frame_is_refused(
    backend: str, columns: dict[str, Any], named: tuple[str, ...]
) -> None:
    frame = frame_with(backend, **columns)
    with pytest.raises(DataError) as caught:
        Trajectories.from_frame(frame)
    for part in named:
        assert part in str(caught.value)


@pytest.mark.parametrize("backend", BACKENDS)
def test_whole_floats_are_ids(backend: str) -> None:
    frame = frame_with(backend, trajectory=[7.0, 7.0])
    assert Trajectories.from_frame(frame).ids.tolist() == [7]


@pytest.mark.parametrize("backend", BACKENDS)
def test_splits_from_frame(backend: str) -> None:
    frame = frame_with(backend, train=[0, 0], validation=[1, 1], test=[False, False])
    splits = splits_from_frame(frame)
    assert splits.train is None
    assert splits.test is None
    assert splits.validation is not None
    assert splits.validation.feature_names == ("v",)
    named = Trajectories.from_frame(frame, features=["v"])
    assert named.equals(splits.validation)
    strays = frame_with(backend, train=[0, 1], validation=[1, 0], test=[0, 0])
    with pytest.raises(DataError, match=r"trajectory 1, row 1.*began in validation"):
        splits_from_frame(strays)
    with pytest.raises(DataError, match=r"\['train', 'validation', 'test'\]"):
        splits_from_frame(frame_with(backend))


def test_frame_gaps_are_cut() -> None:
    for backend in BACKENDS:
        frame = frame_with(
            backend, trajectory=[1] * 5, time=[0, 1, 2, 3, 4], v=[1.0, 2.0, None, 4.0, 5.0]
        )
        cut = Trajectories.from_frame(frame, missing="split")
        assert cut.ids.tolist() == ["1/0", "1/1"]


def test_lazy_frame() -> None:
    polars = pytest.importorskip("polars")
    lazy = frame_with("polars").lazy()
    assert isinstance(lazy, polars.LazyFrame)
    assert Trajectories.from_frame(lazy).equals(Trajectories.from_frame(lazy.collect()))


def test_pandas_peculiarities() -> None:
    pandas = pytest.importorskip("pandas")
    base = frame_with("pandas")
    plain = Trajectories.from_frame(base)
    for other in (
        base.convert_dtypes(),
        base.convert_dtypes(dtype_backend="pyarrow"),
        base.set_index(pandas.Index([5, 5])),
        base.astype({"v": object}),
        base.astype({"v": np.float32}),
    ):
        assert Trajectories.from_frame(other).equals(plain)
    text = base.assign(trajectory=pandas.Categorical(["b", "b"]))
    assert Trajectories.from_frame(text).ids.tolist() == ["b"]
    mixed = base.assign(trajectory=pandas.Series([1, "a"], dtype=object))
    with pytest.raises(DataError, match="trajectory 1: has 1 sample"):
        Trajectories.from_frame(mixed)
    gap = base.astype({"v": "Float64"})
    gap.loc[1, "v"] = pandas.NA
    with pytest.raises(DataError, match="row 1, column 'v': value is nan"):
        Trajectories.from_frame(gap)
    with pytest.raises(DataError, match=r"unique column names[^$]*'v'"):
        Trajectories.from_frame(pandas.concat([base, base[["v"]]], axis=1))
    with pytest.raises(DataError, match="must be strings"):
        Trajectories.from_frame(base.rename(columns={"v": 3}))
    with pytest.raises(DataError, match="too large"):
        Trajectories.from_frame(base.assign(v=pandas.Series([10**400, 1], dtype=object)))
    with pytest.raises(DataError, match=r"'v'.*is not a number"):
        Trajectories.from_frame(base.assign(v=pandas.Series([1j, 1], dtype=object)))


def test_repeated_columns_of_pyarrow() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    arrays = [pyarrow.array([1, 1]), pyarrow.array([0, 1]), pyarrow.array([0, 1])]
    with pytest.raises(DataError, match=r"unique column names[^$]*'time'"):
        Trajectories.from_frame(pyarrow.table(arrays, names=["trajectory", "time", "time"]))


@pytest.mark.parametrize("thing", [None, 3, "text", np.ones((2, 2)), {"trajectory": [1]}])
def test_no_frame(thing: Any) -> None:
    with pytest.raises(DataError, match="pandas, polars or pyarrow"):
        trajectories_from_frame(thing)


def test_unknown_backend() -> None:
    splits = two_sets()
    assert splits.train is not None
    with pytest.raises(ValueError, match="'pandas', 'polars', 'pyarrow'"):
        splits.train.to_frame("excel")


# ------------------------------------------------------------------------------ dependencies


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


# ---------------------------------------------------------------------------------- fuzzing


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
    # fmt: off
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
    # fmt: on
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
