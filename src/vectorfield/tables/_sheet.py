"""What is to be written as a long table, checked once for every format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vectorfield import _backend
from vectorfield._errors import DataError
from vectorfield.tables._columns import PARTS
from vectorfield.trajectories import Splits, Trajectories

__all__ = ["Sheet", "sheet_of_splits", "sheet_of_trajectories"]


@dataclass(frozen=True, eq=False)
class Sheet:
    """Columns of a long table with P rows, n trajectories one after another.

    Attributes:
        header: all column names, in order.
        ids: (n,) integers or strings.
        lengths: (n,) numbers of rows.
        times: (P,) times.
        states: (P, d) values.
        parts: (n,) positions in `PARTS`, or None for a table that is not split.
    """

    header: tuple[str, ...]
    ids: np.ndarray
    lengths: np.ndarray
    times: np.ndarray
    states: np.ndarray
    parts: np.ndarray | None

    def columns(self) -> dict[str, np.ndarray]:
        """Return the columns by name, (P,) each."""
        arrays = [np.repeat(self.ids, self.lengths), self.times, *self.states.T]
        if self.parts is not None:
            part = np.repeat(self.parts, self.lengths)
            arrays += [(part == k).astype(np.int64) for k in range(len(PARTS))]
        return dict(zip(self.header, arrays, strict=True))


def sheet_of_trajectories(trajectories: Trajectories, trajectory: str, time: str) -> Sheet:
    """Lay out one set of trajectories."""
    names = trajectories.feature_names
    split_names = PARTS if set(PARTS) <= set(names) else ()
    header = (trajectory, time, *names)
    _check_header(header, names, (trajectory, time, *split_names))
    return _sheet(header, [trajectories], None)


def sheet_of_splits(splits: Splits, trajectory: str, time: str) -> Sheet:
    """Lay out training, validation and test trajectories, in this order."""
    present = [(k, part) for k, part in enumerate(splits) if part is not None]
    if not present:
        raise DataError("all three parts are None; there is nothing to write")
    sets = [part for _, part in present]
    names = sets[0].feature_names
    for k, part in present:
        if part.feature_names != names:
            raise DataError(
                f"the {PARTS[k]} part has features {list(part.feature_names)} where "
                f"{PARTS[present[0][0]]} has {list(names)}; give all parts the same"
            )
    header = (trajectory, time, *names, *PARTS)
    _check_header(header, names, (trajectory, time, *PARTS))
    return _sheet(header, sets, np.repeat([k for k, _ in present], [len(s) for s in sets]))


def _sheet(
    header: tuple[str, ...], sets: Sequence[Trajectories], parts: np.ndarray | None
) -> Sheet:
    whole = all(part.ids.dtype.kind == "i" for part in sets)
    ids = np.concatenate([part.ids if whole else part.ids.astype(np.str_) for part in sets])
    texts = ids.astype(np.str_).tolist()
    if len(set(texts)) != len(texts):
        twice = next(name for name in texts if texts.count(name) > 1)
        raise DataError(
            f"two trajectories have the id {twice}, and a table tells them apart by it alone; "
            "give them other ids (Trajectories.from_arrays(..., ids=...))"
        )
    for text in (*header, *texts):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise DataError(f"{text!r} is no valid Unicode text; rename it") from error
    return Sheet(
        header,
        ids,
        np.concatenate([part.lengths for part in sets]),
        np.concatenate([part.times for part in sets]),
        np.concatenate([_backend.to_numpy(part.states) for part in sets]),
        parts,
    )


def _check_header(header: Sequence[str], features: Sequence[str], reserved: Sequence[str]) -> None:
    clashes = sorted(set(features) & set(reserved))
    if clashes:
        raise DataError(
            f"features may not be called {clashes}: columns of the table have these names; "
            "rename the features, or the columns with trajectory=... and time=..."
        )
    if not all(map(_is_name, header)):
        raise DataError(f"column names must be non-empty strings, got {list(header)!r}")
    if len(set(header)) != len(header):
        raise DataError(
            f"the columns need different names, got trajectory={header[0]!r} and "
            f"time={header[1]!r} beside {list(header[2:])}"
        )


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and name != ""
