"""What is asked of arrays before they become trajectories, and what is said where they fail."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import NoneType
from typing import Any

import numpy as np

from vectorfield import _backend
from vectorfield._errors import DataError

__all__ = [
    "check_feature_names",
    "check_ids",
    "check_shape",
    "check_values",
    "is_frame",
    "list_of_arrays",
    "list_of_times",
    "missing_rows",
    "runs",
    "whole_or_text",
]

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")
_INT64 = np.iinfo(np.int64)


def check_feature_names(names: Sequence[str] | None, d: int) -> tuple[str, ...]:
    """Return d distinct, non-empty feature names."""
    if names is None:
        return tuple(f"x{j}" for j in range(d))
    if not isinstance(names, (list, tuple, np.ndarray)) or not all(
        isinstance(name, str) and name for name in names
    ):
        raise DataError(f"feature_names must be a list of {d} non-empty strings, got {names!r}")
    if len(names) != d:
        raise DataError(f"feature_names has {len(names)} names for {d} columns")
    if len(set(names)) != d:
        twice = sorted({name for name in names if list(names).count(name) > 1})
        raise DataError(f"feature_names must differ from one another; repeated: {twice}")
    return tuple(str(name) for name in names)


def list_of_arrays(xs: Any) -> list[Any]:
    if isinstance(xs, (str, bytes, dict)):
        raise DataError(
            f"states must be an (n, d) array or a list of them, got {type(xs).__name__}"
        )
    if not isinstance(xs, (list, tuple)):
        return [_as_float(xs, "states")]
    if any(_is_scalar(x) for x in xs):
        raise DataError(
            "states hold single numbers where (n, d) arrays were expected; for one "
            "trajectory of one feature pass numpy.reshape(x, (-1, 1))"
        )
    arrays = [_as_float(x, f"trajectory {i}") for i, x in enumerate(xs)]
    kinds = sorted({type(x).__module__.partition(".")[0] for x in arrays})
    if len(kinds) > 1:
        raise DataError(
            f"states are arrays of different libraries ({', '.join(kinds)}); convert them to one"
        )
    return arrays


def list_of_times(ts: Any, xs: Sequence[Any]) -> list[np.ndarray]:
    lengths = [x.shape[0] if x.ndim > 0 else 0 for x in xs]
    if _is_scalar(ts) and ts is not None:
        step = float(_numeric(_backend.to_numpy(ts), "time step"))
        if not (np.isfinite(step) and step > 0):
            raise DataError(f"the time step must be a finite number > 0, got {step!r}")
        with np.errstate(over="ignore"):  # the check of the values names a time that overflows
            return [step * np.arange(n) for n in lengths]
    if isinstance(ts, (list, tuple)) and not all(_is_scalar(t) for t in ts):
        if len(ts) != len(xs):
            raise DataError(
                f"{len(ts)} arrays of times for {len(xs)} trajectories; pass one for each"
            )
        return [_as_times(t, f"times of trajectory {i}") for i, t in enumerate(ts)]
    shared = _as_times(ts, "times")
    for i, n in enumerate(lengths):
        if n != len(shared):
            raise DataError(
                f"one array of {len(shared)} times was given but trajectory {i} has {n} samples; "
                "pass a list with one array of times for each trajectory"
            )
    return [shared] * len(xs)


def _is_scalar(x: Any) -> bool:
    # np.ndim cannot be asked of a list: it fails when the list is ragged.
    return not isinstance(x, (list, tuple)) and np.ndim(x) == 0


def _as_float(x: Any, what: str) -> Any:
    if is_frame(x):
        raise DataError(
            f"{what} is a table; put all trajectories into one long table and use "
            "Trajectories.from_frame(table, trajectory=..., time=...)"
        )
    if _backend.is_array(x) and not isinstance(x, np.ndarray):
        xp = _backend.namespace(x)
        if not xp.isdtype(x.dtype, ("real floating", "integral")):
            raise DataError(f"{what} holds {x.dtype}, not real numbers")
        return xp.astype(x, xp.float64)
    return _numeric(x, what)


def _numeric(x: Any, what: str) -> np.ndarray:
    try:
        array = np.ma.asarray(x) if isinstance(x, np.ma.MaskedArray) else np.asarray(x)
    except ValueError as error:
        raise DataError(f"{what} is not a rectangular array: {error}") from error
    real = array.dtype.kind in "biuf" or (
        array.dtype.kind == "O" and all(isinstance(v, (int, float, NoneType)) for v in array.flat)
    )
    if array.size and not real:
        raise DataError(
            f"{what} holds {array.dtype} values, not real numbers; convert or drop them"
        )
    try:
        with np.errstate(over="ignore"):
            values = array.astype(np.float64)
    except OverflowError as error:
        raise DataError(f"{what} holds a number too large for float64; rescale it") from error
    return np.asarray(np.ma.filled(values, np.nan))


def _as_times(t: Any, what: str) -> np.ndarray:
    array = _numeric(_backend.to_numpy(t) if _backend.is_array(t) else t, what)
    if array.ndim != 1:
        raise DataError(f"{what} must have one axis, got shape {array.shape}")
    return array


def check_ids(ids: Any, n: int) -> np.ndarray:
    if ids is None:
        return np.arange(n)
    try:
        array = np.asarray(ids)
    except ValueError as error:
        raise DataError(f"ids must be {n} whole numbers or {n} strings, got {ids!r}") from error
    if array.shape != (n,) or array.dtype.kind not in "iuU":
        raise DataError(f"ids must be {n} whole numbers or {n} strings, got {ids!r}")
    if len(np.unique(array)) != n:
        raise DataError("ids must differ from one another")
    return whole_or_text(array)


def whole_or_text(ids: np.ndarray) -> np.ndarray:
    """Store ids that all read as whole numbers as integers, others as text."""
    if ids.dtype.kind == "i":
        return ids.astype(np.int64)
    names = [str(name) for name in ids.tolist()]
    if all(_WHOLE.fullmatch(name) and _INT64.min <= int(name) <= _INT64.max for name in names):
        return np.array([int(name) for name in names], dtype=np.int64)
    return np.array(names)


def check_shape(x: Any, t: np.ndarray, d: int | None, where: str) -> int:
    if x.ndim != 2:
        hint = {
            1: "for one feature pass x[:, None]",
            3: "for several trajectories pass list(x)",
        }.get(x.ndim, "pass one (n, d) array for each trajectory")
        raise DataError(f"{where}: expected states of shape (n, d), got {tuple(x.shape)}; {hint}")
    n, width = x.shape
    if width == 0:
        raise DataError(f"{where}: no features; states must have shape (n, d) with d >= 1")
    if d is not None and width != d:
        raise DataError(f"{where}: has {width} features where the trajectories before it have {d}")
    if len(t) != n:
        raise DataError(f"{where}: {n} samples but {len(t)} times; give one time for each sample")
    return int(width)


def check_values(
    x: Any, t: np.ndarray, labels: np.ndarray, where: str, columns: Sequence[Any]
) -> None:
    if len(t) < 2:
        raise DataError(
            f"{where.rpartition(',')[0]}: has {len(t)} sample{'' if len(t) == 1 else 's'}, "
            "at least two are needed; leave this trajectory out"
        )
    bad_times = ~np.isfinite(t)
    if bad_times.any():
        row = int(np.argmax(bad_times))
        raise DataError(f"{where} {labels[row]}: time is {t[row]}; give every sample a finite time")
    steps_back = t[1:] <= t[:-1]  # no difference is taken: it could overflow
    if steps_back.any():
        row = int(np.argmax(steps_back))
        if t[row] == t[row + 1]:
            raise DataError(
                f"{where} {labels[row + 1]}: time {t[row + 1]:g} occurs twice; "
                "keep or average one sample for each time"
            )
        raise DataError(
            f"{where} {labels[row + 1]}: time goes back from {t[row]:g} to {t[row + 1]:g}; "
            "sort the rows by time, or start a new trajectory there"
        )
    finite = _backend.to_numpy(_backend.namespace(x).isfinite(x))
    if not finite.all():
        row, column = (int(k) for k in np.argwhere(~finite)[0])
        value = float(x[row, column])
        remedy = (
            "use missing='split' to cut the trajectory at missing rows, or fill the value in"
            if np.isnan(value)
            else "correct the value, or mark it missing with NaN"
        )
        raise DataError(
            f"{where} {labels[row]}, column {columns[column]!r}: value is {value}; {remedy}"
        )


def missing_rows(x: Any) -> np.ndarray:
    xp = _backend.namespace(x)
    return np.asarray(_backend.to_numpy(xp.any(xp.isnan(x), axis=1)), dtype=bool)


def runs(keep: np.ndarray) -> list[slice]:
    """Maximal runs of True as slices."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], keep.astype(np.int8), [0]])))
    return [slice(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def is_frame(x: Any) -> bool:
    import narwhals as nw

    return isinstance(nw.from_native(x, pass_through=True), (nw.DataFrame, nw.LazyFrame))
