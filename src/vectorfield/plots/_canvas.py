"""A figure of our own, which pyplot does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vectorfield._errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["figure"]


def figure(size: tuple[float, float]) -> Figure:
    """Return an empty figure of that size in inches; MissingExtraError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plots", "drawing a figure") from error
    return Figure(figsize=size, layout="constrained")
