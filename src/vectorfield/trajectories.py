"""`Trajectories`: ragged, immutable sets of sampled trajectories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np

from vectorfield import _backend
from vectorfield._errors import DataError
from vectorfield._intake import (
    check_feature_names,
    check_ids,
    check_shape,
    check_values,
    is_frame,
    list_of_arrays,
    list_of_times,
    missing_rows,
    runs,
    whole_or_text,
)
from vectorfield._settings import check_choice

__all__ = ["Splits", "Trajectories", "Trajectory", "as_trajectories"]


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
        arrays = list_of_arrays(xs)
        times = list_of_times(ts, arrays)
        names = check_ids(ids, len(arrays))
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
            d = check_shape(x, t, None, where)
            columns = check_feature_names(feature_names, d)
            shown = range(d) if feature_names is None else columns
        check_shape(x, t, d, where)
        gaps = missing_rows(x)
        if missing == "split" and gaps.any():
            pieces = [p for p in runs(~gaps) if p.stop - p.start >= 2]
            keys: list[Any] = [f"{ids[i]!s}/{k}" for k in range(len(pieces))]
        else:
            pieces, keys = [slice(0, len(t))], [ids[i]]
        for piece, key in zip(pieces, keys, strict=True):
            check_values(x[piece, :], t[piece], labels[piece], f"{where}, {unit}", shown)
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
    ids = whole_or_text(ids)
    for array in (states, times, offsets, ids):
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    return Trajectories(states, times, offsets, ids, names)


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
