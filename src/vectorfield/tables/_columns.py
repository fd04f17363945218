"""What a long table says, once it is arrays: one check for files and frames of every kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from vectorfield._errors import DataError
from vectorfield.trajectories import Splits, Trajectories, build

__all__ = ["PARTS", "Choice", "LongTable", "Request", "choose", "to_splits", "to_trajectories"]

PARTS = ("train", "validation", "test")


@dataclass(frozen=True)
class Request:
    """Which columns are asked for, by name.

    ``parts`` says what to do with the three split columns: ``"need"`` them, ``"skip"`` them
    where a table has all three, or ``"refuse"`` to guess what they are for.
    """

    trajectory: str
    time: str
    features: Sequence[str] | None
    parts: Literal["need", "skip", "refuse"]


@dataclass(frozen=True)
class Choice:
    """The columns to read, by position; ``parts`` is empty when they are not read."""

    trajectory: int
    time: int
    features: tuple[int, ...]
    parts: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class LongTable:
    """A long table of P rows as arrays, in the order of the rows.

    Attributes:
        source: what messages call the table.
        unit: what messages call a row of it (a line of a file, say).
        labels: (P,) numbers of the rows, for messages.
        keys: the distinct ids in the order of their first rows.
        codes: (P,) positions in ``keys``.
        times: (P,) times; NaN where missing.
        states: (P, d) values; NaN where missing.
        feature_names: d names.
        parts: (P, 3) values of the split columns, or None when they were not read.
    """

    source: str
    unit: str
    labels: np.ndarray
    keys: Sequence[Any]
    codes: np.ndarray
    times: np.ndarray
    states: np.ndarray
    feature_names: tuple[str, ...]
    parts: np.ndarray | None

    def rows(self, mask: np.ndarray) -> LongTable:
        """Return the table of some rows."""
        present, codes = np.unique(self.codes[mask], return_inverse=True)
        return replace(
            self,
            labels=self.labels[mask],
            keys=[self.keys[int(k)] for k in present],
            codes=codes,
            times=self.times[mask],
            states=self.states[mask],
            parts=None,
        )


def choose(names: Sequence[Any], request: Request, source: str) -> Choice:
    """Find the columns asked for, or say which are missing and which there are."""
    repeated = sorted(str(name) for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise DataError(f"{source}: column names must differ; repeated: {repeated}")
    if request.trajectory == request.time:
        raise DataError(
            f"{source}: trajectory and time are both {request.time!r}; name two columns"
        )
    parts = _choose_parts(names, request, source)
    keys = [request.trajectory, request.time]
    _require(names, keys, source, "name them with trajectory=... and time=...")
    features = _choose_features(names, request, {*keys, *parts}, source)
    place = {name: k for k, name in enumerate(names)}
    return Choice(
        place[request.trajectory],
        place[request.time],
        tuple(place[name] for name in features),
        tuple(place[name] for name in parts),
    )


def to_trajectories(table: LongTable, missing: str) -> Trajectories:
    """Group the rows by trajectory and check them.

    Trajectories come in the order of their first rows, and rows in the order they have.
    """
    order = np.argsort(table.codes, kind="stable")
    cuts = np.cumsum(np.bincount(table.codes, minlength=len(table.keys)))[:-1]
    try:
        return build(
            np.split(table.states[order], cuts),
            np.split(table.times[order], cuts),
            np.asarray(table.keys),
            feature_names=table.feature_names,
            missing=missing,
            rows=np.split(table.labels[order], cuts),
            unit=table.unit,
        )
    except DataError as error:
        raise DataError(f"{table.source}: {error}") from error


def to_splits(table: LongTable, missing: str) -> Splits:
    """Divide the rows by the three split columns, then do as `to_trajectories`."""
    if table.parts is None:
        raise TypeError("the table was read without its split columns")
    part = _part_of_rows(table, table.parts)
    found = [
        to_trajectories(table.rows(part == k), missing) if (part == k).any() else None
        for k in range(len(PARTS))
    ]
    return Splits(*found)


def _choose_parts(names: Sequence[Any], request: Request, source: str) -> tuple[str, ...]:
    if request.parts == "need":
        _require(names, PARTS, source, "read_trajectories reads a table that is not split")
        return PARTS
    # A table with fewer than all three is not split; then such a name is any feature's.
    reserved = all(name in names for name in PARTS) and not (
        {request.trajectory, request.time} & set(PARTS)
    )
    if reserved and request.parts == "refuse" and request.features is None:
        raise DataError(
            f"{source} is split: it has the columns train, validation and test. Use "
            "splits_from_frame(frame).train to take the training rows alone, or name "
            "features=[...] to take all rows"
        )
    return PARTS if reserved else ()


def _choose_features(
    names: Sequence[Any], request: Request, reserved: set[str], source: str
) -> list[Any]:
    if request.features is None:
        features = [name for name in names if name not in reserved]
        unnamed = [k for k, name in enumerate(names, start=1) if name == ""]
        if unnamed:
            raise DataError(
                f"{source}: column {unnamed[0]} has no name (an index, written by accident?); "
                "name it, take it out, or name features=[...]"
            )
    else:
        if isinstance(request.features, str) or not all(
            isinstance(name, str) for name in request.features
        ):
            raise DataError(f"features must be a list of column names, got {request.features!r}")
        features = list(request.features)
        _require(names, features, source, "correct features=[...]")
        taken = [name for name in features if name in reserved]
        if taken:
            raise DataError(f"{source}: {taken} cannot be features as well; take them out")
    if not features:
        raise DataError(
            f"{source}: no feature columns beside {sorted(reserved)}; there must be at least one"
        )
    return features


def _require(names: Sequence[Any], wanted: Sequence[str], source: str, remedy: str) -> None:
    absent = [name for name in wanted if name not in names]
    if not absent:
        return
    shown = ", ".join(repr(name) for name in names[:20])
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    spaced = {name.strip(): name for name in names if isinstance(name, str)}
    if any(name in spaced for name in absent):
        remedy = "take the spaces out of the header"
    elif len(names) == 1 and any(mark in str(names[0]) for mark in ";\t|"):
        remedy = "separate the columns by commas"
    raise DataError(f"{source}: no column {absent}; there are {shown}{more}; {remedy}")


def _part_of_rows(table: LongTable, parts: np.ndarray) -> np.ndarray:
    def where(row: int) -> str:
        name = table.keys[int(table.codes[row])]
        return f"{table.source}: trajectory {name!s}, {table.unit} {table.labels[row]}"

    bad = ~np.isin(parts, (0.0, 1.0))
    if bad.any():
        row, column = (int(k) for k in np.argwhere(bad)[0])
        value = parts[row, column]
        raise DataError(f"{where(row)}: {PARTS[column]} is {value:g}, it must be 0 or 1")
    times_used = parts.sum(axis=1)
    if (times_used != 1).any():
        row = int(np.argmax(times_used != 1))
        names = [name for name, on in zip(PARTS, parts[row], strict=True) if on]
        found = f"is in {' and '.join(names)}" if names else "is in no split"
        raise DataError(
            f"{where(row)}: the row {found}; exactly one of train, validation, test must be 1"
        )
    part: np.ndarray = np.argmax(parts, axis=1)
    first = np.unique(table.codes, return_index=True)[1]
    strays = part != part[first[table.codes]]
    if strays.any():
        row = int(np.argmax(strays))
        own, other = PARTS[int(part[row])], PARTS[int(part[first[table.codes[row]]])]
        raise DataError(
            f"{where(row)}: the row is in {own} but the trajectory began in {other}; "
            "all rows of a trajectory must be in the same split"
        )
    return part
