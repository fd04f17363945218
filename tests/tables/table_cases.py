"""Tables and sets that several tests of tables use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from vectorfield.trajectories import Splits, Trajectories

ENDINGS = ("csv", "csv.gz", "parquet")
BACKENDS = ("pandas", "polars", "pyarrow")
GOOD = "trajectory,time,v,w\na,0,1,2\na,1,3,4\nb,0,5,6\nb,2,7,8\n"
SPLIT = (
    "trajectory,time,v,train,validation,test\na,0,1,1,0,0\na,1,2,1,0,0\nb,0,3,0,0,1\nb,1,4,0,0,1\n"
)


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


def edited(line: int, new: str, text: str = GOOD) -> str:
    lines = text.split("\n")
    lines[line - 1] = new
    return "\n".join(lines)


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
