"""Structure as figures: the matrix of dependencies, and the stencil on rings and grids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vectorfield._settings import check_choice
from vectorfield.plots._canvas import figure
from vectorfield.structure import Dependencies

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["dependencies", "stencil"]

MARKS, BARS = "black", "#3b6ea5"
LABELS = {
    "shares": "share of the error without it",
    "scores": "standard errors",
    "stability": "stability",
}
MOST_NAMES = 40  # coordinates whose names fit beside a matrix


def dependencies(found: Dependencies, *, ax: Axes | None = None, values: str = "shares") -> Axes:
    """Draw which coordinate drives which: outputs down, inputs across, a mark for each edge.

    Args:
        found: what `discover_structure` returned.
        ax: where to draw; by default a new figure that pyplot does not know.
        values: what colours the marks, ``"shares"``, ``"scores"`` or ``"stability"``; edges that
            were given have none.

    Returns:
        The Axes.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> from vectorfield import plots
        >>> data = vf.Trajectories.from_arrays([np.ones((3, 4))], 1.0)
        >>> ring = np.eye(4) + np.roll(np.eye(4), 1, axis=1)
        >>> ax = plots.dependencies(vf.Structure(known=ring)(data))
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('input', 'output')
    """
    _check_found(found)
    check_choice("values", values, ("shares", "scores", "stability"))
    d = found.d
    side = float(np.clip(1.8 + 0.09 * d, 3.6, 8.0))
    ax = figure((side + 0.9, side)).add_subplot() if ax is None else ax
    rows, columns = found.matrix.nonzero()
    colours = np.asarray(getattr(found, values)[rows, columns], dtype=float).ravel()
    known = bool(np.isfinite(colours).all()) and len(colours) > 0
    span = float(ax.bbox.height) * 72.0 / ax.figure.dpi
    size = max(0.6, 0.8 * span / d) ** 2
    style: dict[str, Any] = {"c": MARKS}
    if known:
        top = 1.0 if values != "scores" else float(colours.max())
        style = {"c": colours, "cmap": "viridis_r", "vmin": 0.0, "vmax": top}
    marks = ax.scatter(columns, rows, s=size, marker="s", linewidths=0, **style)
    if known:
        ax.figure.colorbar(marks, ax=ax, label=LABELS[values], fraction=0.046, pad=0.03)
    ax.set(xlim=(-0.5, d - 0.5), ylim=(d - 0.5, -0.5), xlabel="input", ylabel="output")
    ax.set_aspect("equal")
    if d <= MOST_NAMES:
        ax.set_xticks(range(d), found.feature_names, rotation=90, fontsize="x-small")
        ax.set_yticks(range(d), found.feature_names, fontsize="x-small")
    return ax


def stencil(
    found: Dependencies, *, ax: Axes | None = None, shape: Sequence[int] | None = None
) -> Axes:
    """Draw the offsets from outputs to inputs on a ring, or on a grid of two dimensions.

    The height, or colour, is the share of outputs with an input at that offset: a law that is the
    same everywhere has shares near 1 at few offsets. Offsets below 1 % are left out on rings.

    Args:
        found: what `discover_structure` returned, the coordinates in the order of the grid.
        ax: where to draw; by default a new figure that pyplot does not know.
        shape: of the grid, (n,) or (n, m); a ring of all coordinates by default.

    Returns:
        The Axes.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> from vectorfield import plots
        >>> data = vf.Trajectories.from_arrays([np.ones((3, 4))], 1.0)
        >>> ring = np.eye(4) + np.roll(np.eye(4), 1, axis=1)
        >>> ax = plots.stencil(vf.Structure(known=ring)(data))
        >>> [float(bar.get_height()) for bar in ax.patches]
        [1.0, 1.0]
    """
    _check_found(found)
    shares = found.stencil(shape)
    axes = len(next(iter(shares))) if shares else 1
    if axes > 2:
        raise ValueError(f"shape must have one or two entries to be drawn, got {shape!r}")
    ax = figure((4.8, 3.2 if axes == 1 else 4.2)).add_subplot() if ax is None else ax
    if axes == 1:
        shown = {offset[0]: share for offset, share in shares.items() if share >= 0.01}
        ax.bar(list(shown), list(shown.values()), color=BARS)
        ax.set(xlabel="offset of the input", ylabel="share of outputs", ylim=(0.0, 1.05))
        return ax
    offsets = np.array(list(shares))
    marks = ax.scatter(
        offsets[:, 1], offsets[:, 0], c=list(shares.values()), cmap="viridis_r", vmin=0.0, vmax=1.0,
        marker="s", s=80,
    )  # fmt: skip
    ax.figure.colorbar(marks, ax=ax, label="share of outputs")
    ax.set(xlabel="offset along the second axis", ylabel="offset along the first axis")
    ax.invert_yaxis()
    return ax


def _check_found(found: Any) -> None:
    if not isinstance(found, Dependencies):
        raise TypeError(
            f"expected what vf.discover_structure returns, a Dependencies, got {found!r:.80}"
        )
