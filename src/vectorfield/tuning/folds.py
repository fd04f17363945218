"""Who is learned from and who is held out: by trajectory, or by stretches of time."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from vectorfield._errors import DataError
from vectorfield.trajectories import Trajectories

__all__ = ["Fold", "blocks", "folds", "pooled", "thin"]


class Fold(NamedTuple):
    """A split of the data."""

    train: Trajectories
    held: Trajectories


def folds(
    train: Trajectories, validation: Trajectories | None, count: int, random_state: int = 0
) -> list[Fold]:
    """Return one fold with the validation trajectories, or ``count`` over the trajectories.

    With fewer than two trajectories a fold, each is cut into stretches of time first, so that one
    long trajectory will do.

    >>> import numpy as np, vectorfield as vf
    >>> data = vf.Trajectories.from_arrays([np.arange(12.0)[:, None]], 1.0)
    >>> [(len(fold.train), len(fold.held)) for fold in folds(data, None, 3)]
    [(2, 1), (2, 1), (2, 1)]
    """
    if validation is not None:
        _check_features(train, validation)
        return [Fold(train, validation)]
    pieces = train if len(train) >= 2 * count else blocks(train, 2 * count)
    if len(pieces) < 2:
        raise DataError(
            f"{len(train.states)} samples cannot be held out in part; pass search=False for "
            "plain defaults, give kernel and ridge, or give more data"
        )
    order = np.random.default_rng(random_state).permutation(len(pieces))
    parts = [np.sort(part) for part in np.array_split(order, min(count, len(pieces)))]
    everyone = np.arange(len(pieces))
    return [Fold(pieces[np.setdiff1d(everyone, part)], pieces[part]) for part in parts]


def pooled(train: Trajectories, validation: Trajectories) -> Trajectories:
    """Return the trajectories of both parts as one set; they keep their ids if these differ.

    >>> import numpy as np, vectorfield as vf
    >>> data = vf.Trajectories.from_arrays(np.ones((2, 1)), 1.0)
    >>> pooled(data, data).ids.tolist()
    ['train/0', 'validation/0']
    """
    _check_features(train, validation)
    xs, ts = (a + b for a, b in zip(train.to_arrays(), validation.to_arrays(), strict=True))
    ids = [*train.ids.tolist(), *validation.ids.tolist()]
    if len({str(name) for name in ids}) < len(ids):
        parts = (("train", train), ("validation", validation))
        ids = [f"{part}/{name}" for part, data in parts for name in data.ids.tolist()]
    if len({type(name) for name in ids}) > 1:
        ids = [str(name) for name in ids]
    return Trajectories.from_arrays(xs, ts, ids=ids, feature_names=train.feature_names)


def _check_features(train: Trajectories, validation: Trajectories) -> None:
    if validation.feature_names != train.feature_names:
        raise DataError(
            f"validation has the features {validation.feature_names}, the training data "
            f"{train.feature_names}; give both the same columns in the same order"
        )


def blocks(trajectories: Trajectories, count: int) -> Trajectories:
    """Cut trajectories into about ``count`` stretches of equal length in samples, at least two."""
    size = max(4, -(-len(trajectories.states) // count))
    xs, ts, ids = [], [], []
    for name, (t, x) in zip(trajectories.ids, trajectories, strict=True):
        pieces = max(1, round(len(t) / size))
        cuts = np.linspace(0, len(t), pieces + 1).round().astype(int)
        for number, (a, b) in enumerate(pairwise(cuts)):
            if b - a >= 2:
                xs.append(x[a:b])
                ts.append(t[a:b])
                ids.append(f"{name}/{number}" if pieces > 1 else str(name))
    return Trajectories.from_arrays(xs, ts, ids=ids, feature_names=trajectories.feature_names)


def thin(
    trajectories: Trajectories, steps: int, random_state: int = 0, *, longest: int | None = None
) -> Trajectories:
    """Return some trajectories, drawn at random, with about that many steps in all.

    Where one trajectory has more, stretches of it are drawn. With ``longest`` the draw is from
    stretches of about so many samples: few samples of all trajectories see more of the states than
    all of a few.
    """
    total = int((trajectories.lengths - 1).sum())
    if total <= steps:
        return trajectories
    size = int(trajectories.lengths.max())
    if longest is not None and size >= 2 * longest:
        trajectories = blocks(trajectories, -(-len(trajectories.states) // longest))
    elif size > steps / 4:
        trajectories = blocks(trajectories, -(-4 * total // steps))
    order = np.random.default_rng(random_state).permutation(len(trajectories))
    until = np.cumsum(trajectories.lengths[order] - 1)
    return trajectories[np.sort(order[: 1 + int(np.searchsorted(until, steps))])]
