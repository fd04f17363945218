"""`Trajectories`: what is refused, and that nothing else changes."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vectorfield._errors import DataError
from vectorfield._intake import check_feature_names
from vectorfield.trajectories import (
    Splits,
    Trajectories,
    Trajectory,
    as_trajectories,
)

NAN, INF = np.nan, np.inf


def ragged(lengths: tuple[int, ...] = (4, 2, 7), d: int = 3) -> Trajectories:
    rng = np.random.default_rng(0)
    xs = [rng.normal(size=(n, d)) for n in lengths]
    ts = [np.cumsum(rng.uniform(0.1, 1.0, size=n)) for n in lengths]
    return Trajectories.from_arrays(xs, ts)


def test_ragged_irregular_layout() -> None:
    xs = [np.arange(6.0).reshape(3, 2), np.arange(4.0).reshape(2, 2)]
    ts = [np.array([0.0, 0.5, 3.0]), np.array([-1.0, 8.0])]
    trajectories = Trajectories.from_arrays(xs, ts)
    assert len(trajectories) == 2
    assert trajectories.d == 2
    assert trajectories.lengths.tolist() == [3, 2]
    assert trajectories.offsets.tolist() == [0, 3, 5]
    assert trajectories.ids.tolist() == [0, 1]
    assert trajectories.feature_names == ("x0", "x1")
    for (t, x), t0, x0 in zip(trajectories, ts, xs, strict=True):
        np.testing.assert_array_equal(t, t0)
        np.testing.assert_array_equal(x, x0)
    got_xs, got_ts = trajectories.to_arrays()
    assert [x.shape for x in got_xs] == [(3, 2), (2, 2)]
    assert [t.tolist() for t in got_ts] == [[0.0, 0.5, 3.0], [-1.0, 8.0]]
    assert repr(trajectories) == "Trajectories(n=2, d=2, samples=5, lengths 2 to 3)"


@pytest.mark.parametrize(
    "ts",
    [0.5, np.float32(0.5), np.array(0.5), [0.0, 0.5, 1.0], np.array([0.0, 0.5, 1.0])],
)
def test_times_of_equal_trajectories_may_be_a_step_or_one_array(ts: Any) -> None:
    trajectories = Trajectories.from_arrays([np.ones((3, 1)), np.zeros((3, 1))], ts)
    assert [t.tolist() for t, _ in trajectories] == [[0.0, 0.5, 1.0]] * 2


def test_times_may_be_lists_of_lists_of_different_lengths() -> None:
    trajectories = Trajectories.from_arrays(
        [[[1.0], [2.0], [3.0]], [[1.0], [2.0]]], [[0, 1, 2], [0, 1]]
    )
    assert trajectories.lengths.tolist() == [3, 2]


def test_one_array_is_one_trajectory() -> None:
    assert len(Trajectories.from_arrays(np.ones((5, 2)), 0.1)) == 1


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.bool_, object])
def test_numbers_become_float64(dtype: Any) -> None:
    trajectories = Trajectories.from_arrays(np.array([[0], [1]], dtype=dtype), 1.0)
    assert trajectories.states.dtype == np.float64
    assert trajectories.states.tolist() == [[0.0], [1.0]]


def test_masked_values_are_missing_values() -> None:
    masked = np.ma.array([[1.0], [2.0], [3.0], [4.0]], mask=[[0], [0], [1], [0]])
    with pytest.raises(DataError, match=r"row 2.*nan"):
        Trajectories.from_arrays(masked, 1.0)


# Refusals: argument, keyword arguments, and what the message must name.
X2 = np.ones((2, 1))
REFUSALS: list[tuple[Any, Any, dict[str, Any], tuple[str, ...]]] = [
    ([], 0.1, {}, ("no trajectories", "at least one")),
    ("abc", 0.1, {}, ("states", "str")),
    ({"a": 1}, 0.1, {}, ("states", "dict")),
    (None, 0.1, {}, ("trajectory 0", "shape (n, d)")),
    (5.0, 0.1, {}, ("trajectory 0", "shape (n, d)")),
    ([1.0, 2.0], 0.1, {}, ("single numbers", "reshape")),
    (np.ones(4), 0.1, {}, ("trajectory 0", "(4,)", "x[:, None]")),
    (np.ones((2, 3, 4)), 0.1, {}, ("trajectory 0", "(2, 3, 4)", "list(x)")),
    (np.ones((2, 2, 2, 2)), 0.1, {}, ("trajectory 0", "one (n, d) array for each")),
    (np.ones((3, 0)), 0.1, {}, ("trajectory 0", "no features")),
    ([np.ones((3, 2)), np.ones((3, 1))], 0.1, {}, ("trajectory 1", "1 features", "have 2")),
    ([[[1.0, 2.0], [3.0]]], 0.1, {}, ("trajectory 0", "rectangular")),
    ([[["a"], ["b"]]], 0.1, {}, ("trajectory 0", "real numbers", "convert")),
    (np.ones((2, 1), dtype=complex), 0.1, {}, ("complex128", "real numbers")),
    (np.array([["2020-01-01"], ["2020-01-02"]], "M8[D]"), 0.1, {}, ("datetime64", "convert")),
    ([[[10**400], [1]]], 0.1, {}, ("trajectory 0", "too large", "rescale")),
    (np.ones((1, 2)), 0.1, {}, ("trajectory 0", "1 sample,", "at least two", "leave")),
    (np.ones((0, 2)), 0.1, {}, ("trajectory 0", "0 samples", "leave")),
    (X2, None, {}, ("times", "shape ()")),
    (X2, "ab", {}, ("time", "real numbers")),
    (X2, 0.0, {}, ("step", "> 0", "0.0")),
    (X2, -1.0, {}, ("step", "> 0", "-1.0")),
    (X2, NAN, {}, ("step", "finite", "nan")),
    (X2, [[0.0], [1.0]], {}, ("2 arrays of times for 1", "one for each")),
    (X2, np.ones((2, 1)), {}, ("times", "one axis", "(2, 1)")),
    (X2, np.arange(3), {}, ("3 times", "trajectory 0", "2 samples", "list")),
    ([X2, X2], [[0, 1], [0, 1, 2]], {}, ("trajectory 1", "2 samples but 3 times")),
    ([X2, X2], [[0, 1], [0, "b"]], {}, ("times of trajectory 1", "real numbers")),
    ([X2, X2], [[0, 1], [1, 1]], {}, ("trajectory 1", "row 1", "twice", "average")),
    ([X2, X2], [[0, 1], [1, 0]], {}, ("trajectory 1", "row 1", "back", "sort")),
    (X2, [0, NAN], {}, ("trajectory 0", "row 1", "nan", "finite time")),
    (X2, [0, INF], {}, ("trajectory 0", "row 1", "inf", "finite time")),
    (np.ones((4, 1)), 1e308, {}, ("trajectory 0", "row 2", "inf")),
    ([X2, [[1.0], [NAN]]], 1.0, {}, ("trajectory 1", "row 1", "column 0", "missing='split'")),
    ([[[1.0], [-INF]]], 1.0, {}, ("trajectory 0", "row 1", "column 0", "-inf", "correct")),
    ([[[1, INF]] * 2], 1.0, {"feature_names": ["v", "w"]}, ("row 0", "column 'w'", "inf")),
    ([X2, X2], 1.0, {"ids": [1]}, ("ids", "2 whole numbers", "[1]")),
    ([X2, X2], 1.0, {"ids": [1, 1]}, ("ids", "differ")),
    ([X2, X2], 1.0, {"ids": ["1", "1"]}, ("ids", "differ")),
    ([X2, X2], 1.0, {"ids": [0.5, 1.5]}, ("ids", "whole numbers")),
    ([X2, X2], 1.0, {"ids": [[1], [2, 3]]}, ("ids", "whole numbers")),
    (X2, 1.0, {"feature_names": ["a", "b"]}, ("feature_names", "2 names", "1 columns")),
    (X2, 1.0, {"feature_names": "v"}, ("feature_names", "list")),
    (X2, 1.0, {"feature_names": [""]}, ("feature_names", "non-empty")),
    (X2, 1.0, {"feature_names": 5}, ("feature_names", "5")),
    (np.ones((2, 2)), 1.0, {"feature_names": ["a", "a"]}, ("differ", "['a']")),
]


@pytest.mark.parametrize(("xs", "ts", "options", "named"), REFUSALS)
def test_refusal_names_place_and_remedy(
    xs: Any, ts: Any, options: dict[str, Any], named: tuple[str, ...]
) -> None:
    with pytest.raises(DataError) as caught:
        Trajectories.from_arrays(xs, ts, **options)
    for part in named:
        assert part in str(caught.value)


def test_refusal_names_the_users_id() -> None:
    with pytest.raises(DataError, match="trajectory patient 7, row 1"):
        Trajectories.from_arrays([X2], [[0, 0]], ids=["patient 7"])


def test_unknown_choice_of_missing_is_refused() -> None:
    with pytest.raises(ValueError, match="'raise', 'split'"):
        Trajectories.from_arrays(X2, 1.0, missing="drop")


def test_tables_in_the_place_of_arrays_are_refused() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0]})
    with pytest.raises(DataError, match="from_frame"):
        Trajectories.from_arrays([frame], 1.0)


def test_split_at_missing_rows() -> None:
    x = np.array([[1.0], [2.0], [NAN], [3.0], [NAN], [4.0], [5.0], [6.0]])
    cut = Trajectories.from_arrays(
        [x, np.ones((2, 1))], [np.arange(8.0), [0.0, 1.0]], missing="split"
    )
    assert cut.ids.tolist() == ["0/0", "0/1", "1"]  # the single row between the gaps is left out
    assert [t.tolist() for t, _ in cut] == [[0.0, 1.0], [5.0, 6.0, 7.0], [0.0, 1.0]]
    assert cut[1].x[:, 0].tolist() == [4.0, 5.0, 6.0]


def test_split_without_gaps_changes_nothing() -> None:
    assert Trajectories.from_arrays(X2, 1.0, missing="split").equals(
        Trajectories.from_arrays(X2, 1.0)
    )


def test_split_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(DataError, match="nothing is left"):
        Trajectories.from_arrays([[[1.0], [NAN], [2.0]]], 1.0, missing="split")


def test_split_still_refuses_infinite_values() -> None:
    with pytest.raises(DataError, match=r"row 3.*inf"):
        Trajectories.from_arrays([[[1.0], [NAN], [2.0], [INF]]], 1.0, missing="split")


def test_split_names_that_clash_are_refused() -> None:
    gap = [[1.0], [2.0], [NAN], [3.0], [4.0]]
    with pytest.raises(DataError, match="'/'"):
        Trajectories.from_arrays(
            [gap, X2], [np.arange(5.0), [0, 1]], ids=["a", "a/0"], missing="split"
        )


def test_inputs_are_neither_changed_nor_aliased() -> None:
    x, t = np.arange(6.0).reshape(3, 2), np.array([0.0, 1.0, 2.0])
    ids, names = np.array([5]), ["v", "w"]
    before = x.copy(), t.copy()
    trajectories = Trajectories.from_arrays([x], [t], ids=ids, feature_names=names)
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(t, before[1])
    for own, theirs in ((trajectories.states, x), (trajectories.times, t), (trajectories.ids, ids)):
        assert not np.shares_memory(own, theirs)
    x[:], t[:], ids[:] = -1.0, -1.0, -1
    names[0] = "changed"
    assert trajectories.states[0, 1] == 1.0
    assert trajectories.times[-1] == 2.0
    assert trajectories.ids.tolist() == [5]
    assert trajectories.feature_names == ("v", "w")
    assert x.flags.writeable
    assert t.flags.writeable


def test_everything_is_read_only() -> None:
    trajectories = ragged()
    part = trajectories[:2]
    arrays = [trajectories.states, trajectories.times, trajectories.offsets, trajectories.ids]
    arrays += [part.states, part.times, part.offsets, part.ids, *trajectories[0]]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(AttributeError):
        trajectories.times = np.zeros(1)  # type: ignore[misc]


def test_indexing() -> None:
    trajectories = ragged()
    assert isinstance(trajectories[0], Trajectory)
    np.testing.assert_array_equal(trajectories[-1].x, trajectories[2].x)
    np.testing.assert_array_equal(trajectories[np.int64(1)].t, trajectories[1].t)
    assert trajectories[1:].ids.tolist() == [1, 2]
    assert trajectories[[2, 0]].ids.tolist() == [2, 0]
    mask = np.array([True, False, True])
    assert trajectories[mask].equals(trajectories[np.array([0, 2])])
    assert trajectories[:].equals(trajectories)
    np.testing.assert_array_equal(trajectories[[2, 0]][0].x, trajectories[2].x)


def test_indexing_out_of_range() -> None:
    trajectories = ragged()
    for index in (3, -4, [0, 7]):
        with pytest.raises(IndexError):
            trajectories[index]
    with pytest.raises(DataError, match="no trajectory"):
        trajectories[3:]


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        (["3", "-1"], "i"),
        (["9223372036854775807", "-9223372036854775808"], "i"),
        (["9223372036854775808", "1"], "U"),
        (["01", "1"], "U"),
        (["-0", "0"], "U"),
        (["a", "1"], "U"),
        (np.array([1, 2], dtype=np.uint8), "i"),
        (np.array([2**63, 1], dtype=np.uint64), "U"),
    ],
)
def test_ids_that_are_all_whole_numbers_are_integers(ids: Any, kind: str) -> None:
    trajectories = Trajectories.from_arrays([X2, X2], 1.0, ids=ids)
    assert trajectories.ids.dtype.kind == kind
    assert [str(name) for name in trajectories.ids] == [str(name) for name in ids]


def test_ids_keep_their_form_in_a_selection() -> None:
    mixed = Trajectories.from_arrays([X2, X2], 1.0, ids=["a", "1"])
    assert mixed[1:].ids.dtype.kind == "i"
    assert mixed[:1].ids.dtype.kind == "U"


def test_equals_sees_every_bit() -> None:
    def one(x: float = 0.0, t: float = 0.0, name: str = "v", key: Any = 1) -> Trajectories:
        return Trajectories.from_arrays([[[x], [1.0]]], [[t, 1.0]], feature_names=[name], ids=[key])

    assert one().equals(one())
    others = [one(x=-0.0), one(x=5e-324), one(t=-0.0), one(name="w"), one(key=2), one(key="a")]
    assert not any(one().equals(other) for other in others)


def test_pickle_round_trip() -> None:
    trajectories = ragged()
    assert pickle.loads(pickle.dumps(trajectories)).equals(trajectories)


def test_as_trajectories() -> None:
    trajectories = ragged()
    assert as_trajectories(trajectories) is trajectories
    again = as_trajectories(list(trajectories))
    np.testing.assert_array_equal(again.states, trajectories.states)
    assert len(as_trajectories(trajectories[0])) == 1
    assert as_trajectories(*trajectories.to_arrays()).equals(trajectories)
    for given_twice in (trajectories, trajectories[0], list(trajectories)):
        with pytest.raises(DataError, match="times were given twice"):
            as_trajectories(given_twice, 0.1)
    with pytest.raises(DataError, match="no times given"):
        as_trajectories([X2])


def test_as_trajectories_takes_a_table() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"trajectory": [1, 1], "time": [0.0, 1.0], "v": [3.0, 4.0]})
    trajectories = as_trajectories(frame)
    assert trajectories.ids.tolist() == [1]
    assert trajectories.feature_names == ("v",)
    with pytest.raises(DataError, match="times were given twice"):
        as_trajectories(frame, 0.1)


def test_feature_names_are_plain_strings() -> None:
    names = check_feature_names(np.array(["a", "b"]), 2)
    assert names == ("a", "b")
    assert all(type(name) is str for name in names)


def test_splits_fields() -> None:
    trajectories = ragged()
    splits = Splits(trajectories, None, trajectories)
    assert splits.train is trajectories
    assert splits.validation is None


def test_torch_arrays_stay_in_torch() -> None:
    torch = pytest.importorskip("torch")
    xs = [torch.arange(6.0, dtype=torch.float32).reshape(3, 2), torch.ones((2, 2))]
    trajectories = Trajectories.from_arrays(xs, [torch.tensor([0.0, 1.0, 2.0]), np.arange(2.0)])
    assert isinstance(trajectories.states, torch.Tensor)
    assert trajectories.states.dtype == torch.float64
    assert isinstance(trajectories.times, np.ndarray)
    xs[0][0, 0] = 99.0
    assert float(trajectories.states[0, 0]) == 0.0
    assert isinstance(trajectories[1:].states, torch.Tensor)
    same = Trajectories.from_arrays(
        [np.arange(6.0).reshape(3, 2), np.ones((2, 2))], [[0.0, 1.0, 2.0], [0.0, 1.0]]
    )
    assert trajectories.equals(same)


def test_torch_refusals_and_gaps() -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor([[1.0], [2.0], [NAN], [4.0], [5.0]])
    with pytest.raises(DataError, match="trajectory 0, row 2, column 0"):
        Trajectories.from_arrays(x, 1.0)
    assert len(Trajectories.from_arrays(x, 1.0, missing="split")) == 2
    with pytest.raises(DataError, match="complex64"):
        Trajectories.from_arrays(torch.ones((2, 1), dtype=torch.complex64), 1.0)
    with pytest.raises(DataError, match="different libraries"):
        Trajectories.from_arrays([torch.ones((2, 1)), np.ones((2, 1))], 1.0)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_valid_input_comes_back_unchanged(data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(2, 6), min_size=1, max_size=5))
    d = data.draw(st.integers(1, 4))
    finite = st.floats(allow_nan=False, allow_infinity=False)
    xs = [data.draw(hnp.arrays(np.float64, (n, d), elements=finite)) for n in lengths]
    ts = [
        np.sort(data.draw(hnp.arrays(np.float64, n, elements=finite, unique=True))) for n in lengths
    ]
    if any((np.diff(np.argsort(t)) <= 0).any() or (t[1:] == t[:-1]).any() for t in ts):
        return  # -0.0 and 0.0 are one time
    trajectories = Trajectories.from_arrays(xs, ts)
    for (t, x), t0, x0 in zip(trajectories, ts, xs, strict=True):
        assert t.tobytes() == t0.tobytes()
        assert x.tobytes() == x0.tobytes()


ODD = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.complex_numbers(),
        st.text(max_size=3),
        st.binary(max_size=3),
        hnp.arrays(
            st.sampled_from([np.float64, np.int8, np.uint64, np.bool_, "U2", "S2", "M8[s]"]),
            hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
        ),
        hnp.arrays(np.float64, (3, 2), elements=st.sampled_from([0.0, 1.0, NAN, INF])),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.text(max_size=1), inner, max_size=2),
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(xs=ODD, ts=ODD, ids=st.one_of(st.none(), ODD), names=st.one_of(st.none(), ODD))
def test_whatever_comes_in_is_a_set_or_a_data_error(xs: Any, ts: Any, ids: Any, names: Any) -> None:
    result = set_or_none(xs, ts, ids=ids, feature_names=names)
    assert result is None or is_sound(result)


@settings(max_examples=150, deadline=None)
@given(
    x=hnp.arrays(
        st.sampled_from([np.float64, np.float32, np.longdouble]),
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
        elements=st.sampled_from([0.0, 1.0, -2.0, NAN, INF]),
    ),
    step=st.sampled_from([1.0, 1e308, 5e-324]),
    missing=st.sampled_from(["raise", "split"]),
)
def test_arrays_with_gaps_are_cut_or_refused(x: Any, step: float, missing: str) -> None:
    result = set_or_none(x, step, missing=missing)
    assert result is None or is_sound(result)


def set_or_none(xs: Any, ts: Any, **options: Any) -> Trajectories | None:
    try:
        return Trajectories.from_arrays(xs, ts, **options)
    except DataError:
        return None


def is_sound(trajectories: Trajectories) -> bool:
    return bool(
        trajectories.states.dtype == np.float64
        and np.isfinite(trajectories.states).all()
        and (trajectories.lengths >= 2).all()
        and trajectories.offsets[-1] == len(trajectories.times) == len(trajectories.states)
        and len(set(trajectories.ids.tolist())) == len(trajectories)
        and all((t[1:] > t[:-1]).all() for t, _ in trajectories)
    )


def test_no_warning_on_extreme_times() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trajectories = Trajectories.from_arrays(X2, [[-1.7e308, 1.7e308]])
    assert len(trajectories) == 1
