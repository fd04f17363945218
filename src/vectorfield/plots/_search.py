"""What a search tried: scores against ridges and length scales, and where the time went."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from vectorfield._settings import check_integer
from vectorfield.plots._canvas import figure
from vectorfield.tuning import Report, Trial
from vectorfield.tuning.candidates import lengths_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["search"]

COLOURS = ("#3b6ea5", "#e08a1e", "#4f9d55", "#8a63b3", "#b5473c", "#6b6b6b", "#2aa198", "#c25b9a")
CHOSEN, RUNNER_UP, NULL, TIME = "black", "black", "0.35", "#9db4cc"
HIGHEST = 2.0  # scores above are as bad as any
LONGEST = 34  # letters of a label
BARE = ("kernel", "features")  # what a wrapping kernel calls the one inside


def search(report: Report, *, most: int = 6, axs: Any = None) -> np.ndarray:
    """Draw held-out scores by kernel, ridge and length scale, and the time of each stage.

    Left: for each kind of kernel, the best score at each ridge, in units of level 1 (see
    `vectorfield.tuning.bench.ridge_unit`). Middle: the best score at each length scale, for kinds
    that have one. In both smaller is better, the dashed line is the null model, and the plan that
    was chosen and the runner-up have their standard errors. Fits of whole windows are judged from
    estimated starts and are not on the lines; where one was chosen, both marks are from there.
    Right: seconds and trials by stage, in brackets those without a score, which failed or were
    left behind by other ridges after the shorter windows.

    Args:
        report: ``model.report_``.
        most: kinds of kernels to show, the best ones.
        axs: three Axes to draw on; by default a new figure that pyplot does not know.

    Returns:
        The three Axes, (3,).

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> from vectorfield.plots import search
        >>> t = np.linspace(0.0, 6.0, 61)
        >>> xs = [a * np.stack([np.cos(t), -np.sin(t)], axis=1) for a in (0.5, 1.0, 1.5, 2.0)]
        >>> model = vf.MOCK(vf.kernels.Gaussian(), search=vf.Search(folds=2)).fit(xs, t)
        >>> axs = search(model.report_)
        >>> axs[0].get_xlabel(), axs[0].get_ylabel()
        ('ridge level', 'held-out score')
    """
    _check_report(report)
    check_integer("most", most, at_least=1)
    if axs is None:
        axs = figure((11.5, 4.9)).subplots(1, 3, width_ratios=(1.0, 1.0, 0.8))
    panels = np.asarray(axs, dtype=object).reshape(-1)
    if len(panels) != 3:
        raise ValueError(f"axs has {len(panels)} Axes, expected 3")
    kinds = _kinds([t for t in report.trials if t.ok and t.plan.refine is None])
    shown = dict(list(kinds.items())[:most])
    for place, (name, trials) in enumerate(shown.items()):
        style = {
            "color": COLOURS[place % len(COLOURS)],
            "linewidth": 1.5,
            "marker": "o",
            "markersize": 3.5,
            "zorder": 3.0 - place / len(shown),  # the best one on top
        }
        panels[0].plot(*_envelope(trials, _level), label=name, **style)
        panels[1].plot(*_envelope(trials, _length), **style)
    named = [("chosen", report.best, "*", 13.0)]
    if report.runner_up is not None:
        named.append(("runner-up", report.runner_up, "D", 6.5))
    for name, trial, marker, size in named:
        if trial.ok:
            _mark(panels[0], trial.level, trial, marker=marker, size=size, label=name)
            length = _length(trial)
            if length is not None:
                _mark(panels[1], length, trial, marker=marker, size=size, label=name)
    if all(_length(t) is None for trials in shown.values() for t in trials):
        panels[1].set_xlim(0.1, 10.0)  # nothing to show, and a logarithmic axis needs limits
        panels[1].set_xticks([])
        panels[1].text(0.5, 0.5, "none", transform=panels[1].transAxes, ha="center", color=NULL)
    for ax in panels[:2]:
        ax.axhline(1.0, color=NULL, linestyle=(0, (4.0, 3.0)), linewidth=1.0, zorder=1)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_ylim(*_range([t.score for _, t, _, _ in named], shown.values()))
        ax.grid(visible=True, which="major", color="0.92", linewidth=0.7)
        ax.set_axisbelow(True)
    _set_ticks(panels[0], panels[1])
    panels[0].annotate(
        "null model",
        (0.02, 1.0),
        xycoords=("axes fraction", "data"),
        xytext=(0.0, 2.5),
        textcoords="offset points",
        fontsize="small",
        color=NULL,
    )
    panels[0].set_xlabel("ridge level")
    panels[0].set_ylabel("held-out score")
    panels[1].set_xlabel("length scale")
    panels[0].figure.legend(
        *panels[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=4,
        fontsize="small",
        frameon=False,
    )
    _draw_time(panels[2], report)
    return panels


def _check_report(report: Any) -> None:
    if not isinstance(report, Report):
        remedy = "; pass its report_" if hasattr(report, "report_") else ""
        raise TypeError(f"report must be a Report, got {type(report).__name__}{remedy}")


def _kinds(trials: Iterable[Trial]) -> dict[str, list[Trial]]:
    """Return the trials by kind of kernel, the best kind first."""
    found: dict[str, list[Trial]] = {}
    for trial in trials:
        found.setdefault(_label(trial.plan.kernel), []).append(trial)
    return dict(sorted(found.items(), key=lambda kind: min(t.score for t in kind[1])))


def _envelope(trials: list[Trial], place: Callable[[Trial], float | None]) -> tuple:
    """Return the places of trials, in order, and the best score at each."""
    found: dict[float, float] = {}
    for trial in trials:
        at = place(trial)
        if at is not None:
            found[at] = min(trial.score, found.get(at, np.inf))
    places = sorted(found)
    return np.array(places), np.array([found[at] for at in places])


def _level(trial: Trial) -> float:
    return float(f"{trial.level:.6g}")  # powers of ten, however they were come by


def _length(trial: Trial) -> float | None:
    """Return the geometric mean of the length scales of local parts."""
    lengths = lengths_of(trial.plan.kernel)
    return float(np.exp(np.mean(np.log(lengths)))) if lengths else None


def _mark(ax: Axes, at: float, trial: Trial, *, marker: str, size: float, label: str) -> None:
    spread = trial.spread if np.isfinite(trial.spread) else 0.0
    low = min(spread, 0.99 * trial.score)  # the axis is logarithmic
    ax.errorbar(
        [at],
        [trial.score],
        [[low], [spread]],
        marker=marker,
        markersize=size,
        color=CHOSEN,
        markerfacecolor="#ffd54a" if marker == "*" else "white",
        linestyle="none",
        linewidth=1.2,
        capsize=3.0,
        zorder=6,
        label=label,
    )


def _set_ticks(ridge: Axes, ax: Axes) -> None:
    """Few powers of ten for ridges; length scales as they are written by hand."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ridge.xaxis.set_major_locator(LogLocator(numticks=6))
    ridge.xaxis.set_minor_formatter(NullFormatter())
    ax.xaxis.set_minor_formatter(NullFormatter())
    low, high = ax.get_xlim()
    few = high < 30.0 * low
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _range(marks: list[float], kinds: Iterable[list[Trial]]) -> tuple[float, float]:
    """Return limits of the scores: a margin below the best, and not far above the null model."""
    scores = [t.score for trials in kinds for t in trials] + marks
    finite = [score for score in scores if np.isfinite(score) and score > 0]
    low, high = min([*finite, 1.0]), max([*finite, 1.0])
    top = min(1.4 * high, HIGHEST)
    return low / (top / low) ** 0.15, top


def _draw_time(ax: Axes, report: Report) -> None:
    stages: dict[str, list[Trial]] = {}
    for trial in report.trials:
        stages.setdefault(trial.stage, []).append(trial)
    names = list(stages)
    seconds = [sum(t.seconds for t in stages[name]) for name in names]
    bars = ax.barh(range(len(names)), seconds, color=TIME, height=0.7)
    counts = []
    for name, spent in zip(names, seconds, strict=True):
        failed = sum(not t.ok for t in stages[name])
        bad = f" ({failed})" if failed else ""
        counts.append(f"{spent:.3g} s, {len(stages[name])}{bad}")
    ax.bar_label(bars, counts, padding=3.0, fontsize="small")
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlim(0.0, 1.55 * max([*seconds, 1e-9]))
    ax.set_xlabel("seconds, trials (without a score)")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _label(kernel: Any) -> str:
    """Return a short name: of what a kernel is made of, whatever its length scales."""
    text = _describe(kernel)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _describe(kernel: Any) -> str:
    params = kernel.get_params(deep=False)
    inner = [v for v in params.values() if hasattr(v, "get_params")]
    if len(inner) == 1 and any(name in params for name in BARE) and _is_wrapper(kernel):
        return _describe(inner[0])
    if len(inner) > 1:
        return " + ".join(_describe(value) for value in inner)
    name = type(kernel).__name__
    if "degree" in params:
        return f"degree {params['degree']}"
    if "nu" in params:
        return f"{name} {params['nu']:g}"
    return f"{name} of {_describe(inner[0])}" if inner else name


def _is_wrapper(kernel: Any) -> bool:
    """Whether fields of the kernel are those of the one inside: multiples, features of it, k I."""
    return type(kernel).__name__ in (
        "FeatureScaled",
        "Nystrom",
        "OperatorScaled",
        "RandomFourier",
        "Scaled",
        "Separable",
    )
