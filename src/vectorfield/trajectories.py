"""`Trajectories`: ragged, immutable sets of sampled trajectories."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, NamedTuple, overload

import numpy as np

from vectorfield import _backend
from vectorfield._errors import DataError
from vectorfield._settings import check_choice

__all__ = ["Splits", "Trajectories", "Trajectory", "as_trajectories"]

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")
_INT64 = np.iinfo(np.int64)


class Trajectory(NamedTuple):
    """One trajectory: times ``t`` (n,) and states ``x`` (n, d)."""

    t: Any
    x: Any


@dataclass(frozen=True, eq=False, repr=False)
class Trajectories:
    """Sampled trajectories x_i(t_ij), j = 1 ... n_i, of any lengths n_i >= 2 and any times.

    Build one with `from_arrays`, `from_frame` or `vectorfield.read_trajectories`; all three
    check what they are given. The states of all trajectories lie in one array; trajectory i
    owns rows ``offsets[i]:offsets[i + 1]``. Iterating, or an integer index, gives `Trajectory`
    pairs ``(t, x)``; a slice, an array of integers or a boolean mask gives a smaller set.

    Attributes:
        states: (P, d) array, all samples one below the other.
        times: (P,) NumPy array, strictly increasing within a trajectory.
        offsets: (n + 1,) NumPy array of integers.
        ids: (n,) NumPy array of integers or strings. Names that are all whole numbers are
            stored as integers, so that a set read from a file equals the one written.
        feature_names: d distinct strings.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> xs = [np.ones((3, 2)), np.zeros((2, 2))]
        >>> trajectories = vf.Trajectories.from_arrays(xs, 0.1)
        >>> trajectories
        Trajectories(n=2, d=2, samples=5, lengths 2 to 3)
        >>> t, x = trajectories[0]
        >>> t
        array([0. , 0.1, 0.2])
    """

    states: Any
    times: np.ndarray
    offsets: np.ndarray
    ids: np.ndarray
    feature_names: tuple[str, ...]

    @classmethod
    def from_arrays(
        cls,
        xs: Any,
        ts: Any,
        *,
        ids: Sequence[int] | Sequence[str] | np.ndarray | None = None,
        feature_names: Sequence[str] | None = None,
        missing: str = "raise",
    ) -> Trajectories:
        """Build from arrays: one (n, d) array, or a list of (n_i, d) arrays.

        Args:
            xs: one array is one trajectory; a list (or tuple) holds one array a trajectory.
                Numbers become float64; arrays of other array-API libraries stay where they are.
            ts: the step (a number; times 0, h, 2h, ...), one array of times for a single
                trajectory or shared by trajectories of equal length, or a list of arrays.
            ids: names of the trajectories, 0, 1, ... by default.
            feature_names: names of the coordinates, ``x0``, ``x1``, ... by default.
            missing: ``"raise"`` refuses NaN; ``"split"`` cuts a trajectory at rows with a NaN
                and keeps the pieces of at least two samples, under ids such as ``"3/1"``.
        """
        arrays = _list_of_arrays(xs)
        times = _list_of_times(ts, arrays)
        names = _check_ids(ids, len(arrays))
        return build(arrays, times, names, feature_names=feature_names, missing=missing)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        trajectory: str = "trajectory",
        time: str = "time",
        features: Sequence[str] | None = None,
        missing: str = "raise",
    ) -> Trajectories:
        """Build from a pandas, polars or pyarrow table in long form, one row a sample.

        Args:
            frame: any table that narwhals knows.
            trajectory: column with the id of the trajectory. Rows of one trajectory need not be
                adjacent, but must come in the order of time.
            time: column with the time.
            features: columns of the coordinates; all other columns by default.
            missing: as in `from_arrays`.
        """
        from vectorfield.tables import trajectories_from_frame

        return trajectories_from_frame(
            frame, trajectory=trajectory, time=time, features=features, missing=missing
        )

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return int(self.states.shape[1])

    @property
    def lengths(self) -> np.ndarray:
        """Number of samples of each trajectory, (n,)."""
        return np.diff(self.offsets)

    def to_arrays(self) -> tuple[list[Any], list[np.ndarray]]:
        """Return ``(xs, ts)``, the lists of states and of times.

        >>> import vectorfield as vf
        >>> xs, ts = vf.Trajectories.from_arrays([[[1.0], [2.0]]], 0.5).to_arrays()
        >>> ts
        [array([0. , 0.5])]
        """
        return [trajectory.x for trajectory in self], [trajectory.t for trajectory in self]

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a long table with columns trajectory, time and the features.

        ``backend`` is ``"pandas"``, ``"polars"`` or ``"pyarrow"``.
        """
        from vectorfield.tables import frame_from_trajectories

        return frame_from_trajectories(self, backend=backend)

    def equals(self, other: Trajectories) -> bool:
        """Whether times, states, ids and names are all the same, to the last bit."""
        return (
            self.feature_names == other.feature_names
            and self.ids.dtype.kind == other.ids.dtype.kind
            and np.array_equal(self.ids, other.ids)
            and np.array_equal(self.offsets, other.offsets)
            and _same_bits(self.times, other.times)
            and _same_bits(_backend.to_numpy(self.states), _backend.to_numpy(other.states))
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Trajectory]:
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Trajectory: ...
    @overload
    def __getitem__(self, index: slice | np.ndarray | Sequence[int]) -> Trajectories: ...
    def __getitem__(self, index: Any) -> Trajectory | Trajectories:
        if isinstance(index, (int, np.integer)):
            i = range(len(self))[int(index)]
            rows = slice(int(self.offsets[i]), int(self.offsets[i + 1]))
            return Trajectory(self.times[rows], self.states[rows, :])
        chosen = np.arange(len(self))[index if isinstance(index, slice) else np.asarray(index)]
        if len(chosen) == 0:
            raise DataError("the selection holds no trajectory; select at least one")
        return join([self[int(i)] for i in chosen], self.ids[chosen], self.feature_names)

    def __repr__(self) -> str:
        n, lengths = len(self), self.lengths
        return (
            f"Trajectories(n={n}, d={self.d}, samples={len(self.times)}, "
            f"lengths {lengths.min()} to {lengths.max()})"
        )


class Splits(NamedTuple):
    """Training, validation and test trajectories; a part without rows is None."""

    train: Trajectories | None
    validation: Trajectories | None
    test: Trajectories | None


def as_trajectories(x: Any, t: Any = None, *, missing: str = "raise") -> Trajectories:
    """Turn whatever ``fit`` accepts into `Trajectories`.

    ``x`` is a `Trajectories`; a `Trajectory` or a list of them (what cross-validation makes of a
    set); a table with columns ``trajectory`` and ``time``; or arrays, and then ``t`` is needed.
    """
    if isinstance(x, Trajectories):
        _refuse_times(t, "Trajectories carry their own times")
        return x
    if isinstance(x, Trajectory):
        x = [x]
    if isinstance(x, (list, tuple)) and len(x) > 0 and all(isinstance(v, Trajectory) for v in x):
        _refuse_times(t, "each Trajectory carries its own times")
        return Trajectories.from_arrays([v.x for v in x], [v.t for v in x], missing=missing)
    if is_frame(x):
        _refuse_times(t, "the times of a table are in its column 'time'")
        return Trajectories.from_frame(x, missing=missing)
    if t is None:
        raise DataError(
            "no times given: pass a step, one array of times or a list of them after the states"
        )
    return Trajectories.from_arrays(x, t, missing=missing)


def build(
    xs: Sequence[Any],
    ts: Sequence[np.ndarray],
    ids: np.ndarray,
    *,
    feature_names: Sequence[str] | None,
    missing: str,
    rows: Sequence[np.ndarray] | None = None,
    unit: str = "row",
) -> Trajectories:
    """Check trajectory after trajectory and join them; the one gate to `Trajectories`.

    ``rows[i]`` names the rows of trajectory i in messages (file lines, say), each called a
    ``unit``; 0, 1, ... by default.
    """
    check_choice("missing", missing, ("raise", "split"))
    if len(xs) == 0:
        raise DataError("no trajectories given; at least one with two samples is needed")
    checked: list[Trajectory] = []
    names: list[Any] = []
    d = None
    for i, (x, t) in enumerate(zip(xs, ts, strict=True)):
        where = f"trajectory {ids[i]!s}"
        labels = np.arange(len(t)) if rows is None else rows[i]
        if d is None:
            d = _check_shape(x, t, None, where)
            columns = check_feature_names(feature_names, d)
            shown = range(d) if feature_names is None else columns
        _check_shape(x, t, d, where)
        gaps = _missing_rows(x)
        if missing == "split" and gaps.any():
            pieces = [p for p in _runs(~gaps) if p.stop - p.start >= 2]
            keys: list[Any] = [f"{ids[i]!s}/{k}" for k in range(len(pieces))]
        else:
            pieces, keys = [slice(0, len(t))], [ids[i]]
        for piece, key in zip(pieces, keys, strict=True):
            _check_values(x[piece, :], t[piece], labels[piece], f"{where}, {unit}", shown)
            checked.append(Trajectory(t[piece], x[piece, :]))
            names.append(key)
    if not checked:
        raise DataError(
            "no two successive samples without a missing value anywhere: nothing is left after "
            "missing='split'; fill some values in or leave out the emptiest columns"
        )
    if any(isinstance(name, str) for name in names):
        names = [str(name) for name in names]
    keys_left = np.asarray(names)
    if len(np.unique(keys_left)) != len(keys_left):
        raise DataError(
            "the names that missing='split' gives to the pieces (such as '3/1') are names of "
            "other trajectories already; choose ids without a '/'"
        )
    return join(checked, keys_left, columns)


def join(parts: Sequence[Trajectory], ids: np.ndarray, names: tuple[str, ...]) -> Trajectories:
    """Lay checked trajectories end to end (always a copy)."""
    xp = _backend.namespace(parts[0].x)
    states = xp.concat([part.x for part in parts], axis=0)
    times = np.concatenate([part.t for part in parts])
    offsets = np.concatenate([[0], np.cumsum([len(part.t) for part in parts])])
    ids = _whole_or_text(ids)
    for array in (states, times, offsets, ids):
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    return Trajectories(states, times, offsets, ids, names)


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


def _list_of_arrays(xs: Any) -> list[Any]:
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


def _list_of_times(ts: Any, xs: Sequence[Any]) -> list[np.ndarray]:
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


def _check_ids(ids: Any, n: int) -> np.ndarray:
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
    return _whole_or_text(array)


def _whole_or_text(ids: np.ndarray) -> np.ndarray:
    """Store ids that all read as whole numbers as integers, others as text."""
    if ids.dtype.kind == "i":
        return ids.astype(np.int64)
    names = [str(name) for name in ids.tolist()]
    if all(_WHOLE.fullmatch(name) and _INT64.min <= int(name) <= _INT64.max for name in names):
        return np.array([int(name) for name in names], dtype=np.int64)
    return np.array(names)


def _check_shape(x: Any, t: np.ndarray, d: int | None, where: str) -> int:
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


def _check_values(
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


def _missing_rows(x: Any) -> np.ndarray:
    xp = _backend.namespace(x)
    return np.asarray(_backend.to_numpy(xp.any(xp.isnan(x), axis=1)), dtype=bool)


def _runs(keep: np.ndarray) -> list[slice]:
    """Maximal runs of True as slices."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], keep.astype(np.int8), [0]])))
    return [slice(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    # array_equal would call -0.0 and 0.0 the same.
    return bool(
        a.dtype == b.dtype
        and np.array_equal(a, b, equal_nan=True)
        and np.array_equal(np.signbit(a), np.signbit(b))
    )


def _refuse_times(t: Any, reason: str) -> None:
    if t is not None:
        raise DataError(f"times were given twice: {reason}; leave the second argument out")


def is_frame(x: Any) -> bool:
    import narwhals as nw

    return isinstance(nw.from_native(x, pass_through=True), (nw.DataFrame, nw.LazyFrame))
