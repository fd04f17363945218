"""Files as people write them, and an error that names the place in every wrong one."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from table_cases import (
    ENDINGS,
    GOOD,
    SPLIT,
    edited,
    two_sets,
    write,
)

from vectorfield._errors import DataError
from vectorfield.tables import (
    _csv,
    read_splits,
    read_trajectories,
    write_splits,
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
