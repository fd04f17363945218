"""Phase portraits of a field, and predicted trajectories beside observed ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vectorfield import _backend
from vectorfield._errors import DataError
from vectorfield._settings import check_integer, check_real
from vectorfield.plots._canvas import figure
from vectorfield.simulate import Simulation
from vectorfield.trajectories import Trajectories

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PREDICTED", "TRUE", "phase_portrait", "trajectories"]

DOTS, STREAMS, TRUE, PREDICTED = "0.7", "#3b6ea5", "black", "#d62728"
MOST_DOTS = 20_000
MOST_PANELS = 24


def phase_portrait(
    field: Callable[[Any], Any] | None = None,
    *,
    ax: Axes | None = None,
    data: Trajectories | None = None,
    true: Trajectories | None = None,
    predicted: Any = None,
    axes: tuple[int, int] = (0, 1),
    at: Sequence[float] | np.ndarray | None = None,
    limits: tuple[tuple[float, float], tuple[float, float]] | None = None,
    resolution: int = 40,
    density: float = 1.2,
) -> Axes:
    """Draw the streamlines of a field with the data that it was learned from and tested on.

    The plane is that of two coordinates. Dots and paths are projected to it. In two dimensions
    the streamlines are those of f. In more they are a *slice*: the two components of f on the
    plane through ``at``, by default the median of the data in the other coordinates, and so need
    not follow the projected paths.

    Args:
        field: f, taking (n, d) to (n, d): a `VectorField`, a system, any callable; None draws
            no streamlines.
        ax: where to draw; by default a new figure that pyplot does not know.
        data: training snapshots, grey dots (every k-th of them if there are very many).
        true: test trajectories, black lines.
        predicted: states at the same times, red dashed lines: a `Simulation`, a `Trajectories`,
            or one (n_i, d) array for each trajectory. NaN is left out.
        axes: the two coordinates.
        at: (d,) point of the plane, for d > 2; its entries at ``axes`` do not matter.
        limits: ((low, high), (low, high)) of the two axes; by default the box around ``data``
            and ``true`` and a margin of 5 %. Predictions that run away do not widen it.
        resolution: the field is evaluated at resolution x resolution points.
        density: closeness of the streamlines, as in `matplotlib.axes.Axes.streamplot`.

    Returns:
        The Axes. Cost: one call of the field at resolution^2 points.

    Example:
        >>> import vectorfield as vf
        >>> from vectorfield.plots import phase_portrait
        >>> data = vf.datasets.load("pendulum")
        >>> ax = phase_portrait(data.field, data=data.train)
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('angle', 'rate')
    """
    check_integer("resolution", resolution, at_least=2)
    check_real("density", density, above=0.0)
    _check_field(field)
    _check_sets(data=data, true=true)
    paths = _paths(predicted, true)
    plain = 2 if at is None else len(at)  # what a bare function with limits is taken to have
    d, names = _coordinates(field, data, true, paths, None if limits is None else plain)
    i, j = _check_axes(axes, d)
    known = [_backend.to_numpy(part.states) for part in (data, true) if part is not None]
    if not known and paths:
        known = [np.concatenate([path[np.isfinite(path).all(axis=1)] for path in paths])]
    box = _limits(limits, known, (i, j))
    if ax is None:
        ax = figure((6.8, 4.8)).add_subplot()

    if data is not None:
        states = _backend.to_numpy(data.states)
        dots = states[:: -(-len(states) // MOST_DOTS)]
        ax.plot(
            dots[:, i],
            dots[:, j],
            ".",
            color=DOTS,
            markersize=2.0,
            zorder=1,
            rasterized=True,
            label="training snapshots",
        )
    if field is not None:
        u, v = (np.linspace(low, high, resolution) for low, high in box)
        flow = _slice(field, _plane(at, known, d), (i, j), (u, v))
        if (flow != 0.0).any():  # somewhere there is a direction to follow
            streams = ax.streamplot(
                u,
                v,
                flow[0],
                flow[1],
                color=STREAMS,
                density=density,
                linewidth=0.7,
                arrowsize=0.8,
                zorder=2,
            )
            streams.lines.set_label("field" if d == 2 else "field (slice)")
    seen = [] if true is None else [_backend.to_numpy(x) for _, x in true]
    _lines(ax, seen, (i, j), "true", color=TRUE, linewidth=2.0, zorder=4)
    _lines(ax, paths, (i, j), "predicted", color=PREDICTED, linewidth=1.2, zorder=5, dashed=True)
    starts = seen or paths
    if starts:
        first = np.stack([path[0] for path in starts])
        ax.plot(
            first[:, i],
            first[:, j],
            "o",
            markersize=5.0,
            markerfacecolor="white",
            markeredgecolor=TRUE,
            zorder=6,
            label="start",
        )
    ax.set_xlim(*box[0])
    ax.set_ylim(*box[1])
    ax.set_xlabel(names[i])
    ax.set_ylabel(names[j])
    if ax.get_legend_handles_labels()[0]:
        ax.legend(
            loc="lower center",
            bbox_to_anchor=(0.5, 1.0),
            borderaxespad=0.3,
            ncols=5,
            columnspacing=1.2,
            fontsize="small",
            frameon=False,
        )
    return ax


def trajectories(
    true: Trajectories,
    predicted: Any = None,
    *,
    which: Sequence[int] = (0, 1, 2),
    features: Sequence[str] | None = None,
    axs: Any = None,
) -> np.ndarray:
    """Draw x_j(t): one row of panels for each feature, one column for each trajectory.

    Args:
        true: observed trajectories, black dots.
        predicted: states at the same times, red lines; as in `phase_portrait`. A line ends
            where a prediction stops being finite.
        which: positions of the trajectories to show; those beyond the last are left out.
        features: names of the features to show; by default the first four.
        axs: array of Axes, (features, trajectories), to draw on; by default a new figure that
            pyplot does not know.

    Returns:
        The array of Axes.

    Example:
        >>> import vectorfield as vf
        >>> from vectorfield.plots import trajectories
        >>> test = vf.datasets.load("pendulum").test
        >>> axs = trajectories(test, vf.rollout(vf.systems.Pendulum(), test))
        >>> axs.shape
        (2, 3)
        >>> axs[1, 0].get_ylabel()
        'rate'
    """
    _check_sets(true=true)
    paths = _paths(predicted, true)
    rows = _features(features, true.feature_names)
    columns = [k for k in (check_integer("which", k, at_least=0) for k in which) if k < len(true)]
    if not columns:
        raise ValueError(f"which={which!r} names none of the {len(true)} trajectories")
    if len(rows) * len(columns) > MOST_PANELS:
        raise ValueError(
            f"{len(rows)} features of {len(columns)} trajectories are more than {MOST_PANELS} "
            "panels; name fewer with features= or which="
        )
    shape = (len(rows), len(columns))
    if axs is None:
        made = figure((3.0 * shape[1] + 0.6, 1.7 * shape[0] + 0.7))
        axs = made.subplots(*shape, squeeze=False, sharey="row", sharex="col")
    panels = np.asarray(axs, dtype=object).reshape(-1)
    if len(panels) != shape[0] * shape[1]:
        raise ValueError(f"axs has {len(panels)} Axes, expected {shape[0]} x {shape[1]}")
    panels = panels.reshape(shape)
    for column, k in enumerate(columns):
        t, x = true[k]
        x = _backend.to_numpy(x)
        for row, j in enumerate(rows):
            ax = panels[row, column]
            ax.plot(t, x[:, j], ".", color=TRUE, markersize=2.5, label="observed")
            if paths:
                ax.plot(t, paths[k][:, j], color=PREDICTED, linewidth=1.3, label="predicted")
            if column == 0:
                ax.set_ylabel(true.feature_names[j])
        panels[0, column].set_title(f"trajectory {true.ids[k]}", fontsize="medium")
        panels[-1, column].set_xlabel("time")
    panels[0, 0].legend(fontsize="small", framealpha=0.9)
    return panels


def _slice(
    field: Callable[[Any], Any],
    plane: np.ndarray,
    pair: tuple[int, int],
    grid: tuple[np.ndarray, np.ndarray],
) -> np.ma.MaskedArray:
    """Return the two components of f on a grid of the plane, (2, n, n), invalid ones masked."""
    u, v = grid
    points = np.tile(plane, (len(u) * len(v), 1))
    points[:, pair[0]] = np.tile(u, len(v))
    points[:, pair[1]] = np.repeat(v, len(u))
    value = _backend.to_numpy(field(points))
    return np.ma.masked_invalid(value[:, list(pair)].T.reshape(2, len(v), len(u)))


def _lines(
    ax: Axes,
    paths: list[np.ndarray],
    pair: tuple[int, int],
    label: str,
    dashed: bool = False,
    **style: Any,
) -> None:
    for k, path in enumerate(paths):
        ax.plot(
            path[:, pair[0]],
            path[:, pair[1]],
            linestyle=(0, (5.0, 2.5)) if dashed else "solid",
            label=label if k == 0 else None,
            **style,
        )


def _check_field(field: Any) -> None:
    if field is not None and not callable(field):
        remedy = "; pass its field_" if hasattr(field, "field_") else ""
        raise TypeError(f"field must take states (n, d), got {type(field).__name__}{remedy}")


def _check_sets(**sets: Any) -> None:
    for name, value in sets.items():
        if value is not None and not isinstance(value, Trajectories):
            raise TypeError(
                f"{name} must be a Trajectories, got {type(value).__name__}; build one with "
                "Trajectories.from_arrays(xs, ts)"
            )


def _paths(predicted: Any, true: Trajectories | None) -> list[np.ndarray]:
    """Predictions as a list of arrays, as long as the observed ones where there are any."""
    if predicted is None:
        return []
    if isinstance(predicted, Trajectories):
        predicted = predicted.to_arrays()[0]
    elif isinstance(predicted, Simulation):
        predicted = predicted.x
    if _backend.is_array(predicted) and predicted.ndim == 2:  # one start
        predicted = [predicted]
    paths = [_backend.to_numpy(path) for path in predicted]
    if any(path.ndim != 2 or len(path) == 0 for path in paths):
        raise DataError("predicted must hold one (n, d) array for each trajectory")
    if true is not None:
        shapes = [(int(n), true.d) for n in true.lengths]
        if [path.shape for path in paths] != shapes:
            raise DataError(
                f"predicted holds {len(paths)} arrays for {len(true)} trajectories, or arrays of "
                "other shapes; predict at the observed times, as vectorfield.rollout does"
            )
    return paths


def _coordinates(
    field: Any,
    data: Trajectories | None,
    true: Trajectories | None,
    paths: list[np.ndarray],
    otherwise: int | None,
) -> tuple[int, tuple[str, ...]]:
    """Return d and the names of the coordinates, from whatever knows them."""
    sizes, names = [], None
    for source in (data, true, field):
        if source is not None and hasattr(source, "d"):
            sizes.append(int(source.d))
        if names is None and source is not None and hasattr(source, "feature_names"):
            names = tuple(source.feature_names)
    sizes += [path.shape[1] for path in paths]
    if not sizes and otherwise is not None:
        sizes = [otherwise]
    if not sizes:
        raise ValueError("nothing tells the number of coordinates; pass data or true as well")
    if len(set(sizes)) > 1:
        raise DataError(
            f"field, data, true and predicted differ in coordinates: {sorted(set(sizes))}"
        )
    return sizes[0], names or tuple(f"x{j}" for j in range(sizes[0]))


def _check_axes(axes: Any, d: int) -> tuple[int, int]:
    if d < 2:
        raise ValueError("a phase portrait needs two coordinates; plots.trajectories shows one")
    pair = tuple(check_integer("axes", k, at_least=0) for k in axes)
    if len(pair) != 2 or pair[0] == pair[1] or max(pair) >= d:
        raise ValueError(f"axes must be two different coordinates below {d}, got {axes!r}")
    return pair[0], pair[1]


def _limits(
    limits: Any, known: list[np.ndarray], pair: tuple[int, int]
) -> tuple[tuple[float, float], tuple[float, float]]:
    if limits is not None:
        box = np.asarray(limits, dtype=np.float64)
        if box.shape != (2, 2) or not np.isfinite(box).all() or not (box[:, 0] < box[:, 1]).all():
            raise ValueError(f"limits must be ((low, high), (low, high)), got {limits!r}")
    else:
        points = np.concatenate(known)[:, list(pair)] if known else np.zeros((0, 2))
        if len(points) == 0:
            raise ValueError("pass data, true or limits: nothing tells which region to show")
        low, high = points.min(axis=0), points.max(axis=0)
        spread = high - low
        margin = np.where(spread > 0, 0.05 * spread, 0.5)
        box = np.stack([low - margin, high + margin], axis=1)
    (a, b), (c, e) = box.tolist()
    return (a, b), (c, e)


def _plane(at: Any, known: list[np.ndarray], d: int) -> np.ndarray:
    """A point (d,) of the plane to show."""
    if d == 2:
        return np.zeros(2)
    if at is not None:
        point = np.asarray(at, dtype=np.float64)
        if point.shape != (d,) or not np.isfinite(point).all():
            raise ValueError(f"at must be a finite point of shape ({d},), got {at!r}")
        return point
    if not known:
        raise ValueError(f"the field has {d} coordinates: pass data or at to say which slice")
    return np.asarray(np.median(known[0], axis=0))


def _features(features: Sequence[str] | None, names: tuple[str, ...]) -> list[int]:
    if features is None:
        return list(range(min(4, len(names))))
    unknown = [name for name in features if name not in names]
    if unknown or len(features) == 0:
        raise ValueError(f"features must be among {list(names)}, got {list(features)}")
    return [names.index(name) for name in features]
