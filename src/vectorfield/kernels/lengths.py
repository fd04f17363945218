"""Length scales: one for all coordinates or one for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vectorfield import _backend
from vectorfield._settings import check_real

__all__ = ["LengthScale", "check_length_scale", "divide_lengths", "median_distance"]

LengthScale = float | Sequence[float] | None


def check_length_scale(value: Any) -> float | tuple[float, ...] | None:
    """Return a positive float, a tuple of them, or None (to be set from data)."""
    if value is None:
        return None
    if _backend.is_array(value):
        value = _backend.to_numpy(value).tolist()
    if not isinstance(value, (list, tuple)):
        return check_real("length_scale", value, above=0.0)
    if len(value) == 0:
        raise ValueError(f"length_scale must be a number or one for each coordinate, got {value!r}")
    return tuple(check_real(f"length_scale[{j}]", v, above=0.0) for j, v in enumerate(value))


def divide_lengths(x: Any, length_scale: LengthScale) -> Any:
    """Return x / sigma along the last axis."""
    if length_scale is None:
        raise ValueError(
            "length_scale is None, which is set from data when a model is fitted; give a number, "
            "or call kernel.resolved(nodes) first"
        )
    if isinstance(length_scale, float):
        return x / length_scale
    lengths = tuple(length_scale)
    if len(lengths) != x.shape[-1]:
        raise ValueError(
            f"length_scale has {len(lengths)} entries but the states have {x.shape[-1]} features"
        )
    return x / _backend.array_like(np.asarray(lengths), x)


def median_distance(nodes: Any, most: int = 1000) -> float:
    """Return the median distance between distinct nodes, from an even sample of them.

    The sample takes every k-th node, so that the result repeats. Cost O(most^2 d).

    >>> import numpy as np
    >>> median_distance(np.array([[0.0], [3.0]]))
    3.0
    """
    step = max(1, nodes.shape[0] // most)
    sample = _backend.to_numpy(nodes[::step, :][:most, :])
    sample = sample - sample.mean(axis=0)
    sizes = np.sum(sample * sample, axis=1)
    squared = sizes[:, None] + sizes - 2.0 * (sample @ sample.T)
    # what cancellation leaves of equal nodes counts as nothing
    positive = squared[np.triu(squared > 1e-14 * sizes.max(initial=0.0), k=1)]
    return float(np.sqrt(np.median(positive))) if positive.size else 1.0
