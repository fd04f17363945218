"""Data frames of pandas, polars and pyarrow."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from table_cases import (
    BACKENDS,
    two_sets,
)

from vectorfield._errors import DataError
from vectorfield.tables import (
    splits_from_frame,
    trajectories_from_frame,
)
from vectorfield.trajectories import Trajectories


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
def test_large_whole_numbers_are_rounded_to_the_nearest_float(backend: str) -> None:
    frame = frame_with(backend, v=[2**63 - 1, 2**53 + 1])
    assert Trajectories.from_frame(frame).states.tolist() == [[2.0**63], [2.0**53]]


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
