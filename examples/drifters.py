"""Ocean currents around Madagascar from drifters, with a scalar and a divergence-free kernel.

The tracks of 189 surface drifters train a flow, 62 choose the settings, and 64 are read once, at the
end. Water at the surface is nearly free of divergence, and a divergence-free kernel makes the flow so.
Eddies come and go within weeks, which no flow that stands still can follow: tracks are seen through
stretches of one to four weeks, and the ridge is large.

    python examples/drifters.py               # under a minute
    python examples/drifters.py --plot out    # the figure as well
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np

import vectorfield as vf
from vectorfield.kernels import DivergenceFree, RationalQuadratic, Separable
from vectorfield.occupation import Rule, Trapezoid, Windows

LAWS: dict[str, Callable] = {"scalar": Separable, "divergence-free": DivergenceFree}
# Every k-th sample (they are half a day apart), and what is observed of it.
VIEWS: tuple[tuple[int, Rule], ...] = (
    (8, Windows(5, stride=4)),
    (16, Trapezoid()),
    (24, Trapezoid()),
)
ALPHAS = (0.5, 1.0)
DEGREES = (2.0, 3.0)  # length scale in latitude
ASPECTS = (1.0, 2.0)  # that in longitude, over it
RIDGES = (4.0, 12.0, 36.0)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--plot", type=Path, help="draw the figure into this folder")
    folder = arguments.parse_args().plot

    data = vf.datasets.load("drifters")
    models = {law: choose(law, data) for law in LAWS}
    print("kernel            validation Err  test Err     1-Err   skill")
    fields = {"null model": np.zeros_like} | {law: model.field_ for law, model in models.items()}
    for name, field in fields.items():
        scores = score(field, data.test)
        print(
            f"{name:16}{score(field, data.validation).err:16.2f}{scores.err:10.2f}"
            f"{scores.one_err:10.4f}{scores.skill:8.3f}"
        )
    for law, model in models.items():
        print(f"\n{law}: {len(model.residuals_)} observations, {model.rule!r}")
        print(f"  {model.kernel!r}, ridge {model.ridge:g}")
        jacobian = model.field_.jacobian(data.test.states[::20])
        divergence = np.trace(jacobian, axis1=1, axis2=2)
        size = np.linalg.norm(jacobian, axis=(1, 2))
        share = np.sqrt(np.mean(divergence**2) / np.mean(size**2))
        print(f"  divergence over the test tracks, of the Jacobian's norm: {share:.1e}")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        draw(models, data, folder / "drifters.png")


def choose(law: str, data: vf.datasets.Dataset) -> vf.MOCK:
    """Return the candidate of the lowest validation Err."""
    best, lowest = None, float("inf")
    for every, rule in VIEWS:
        tracks = thinned(data.train, every)
        spread = tracks.states.std(axis=0)  # length scales are in units of it
        for alpha, degrees, aspect, ridge in product(ALPHAS, DEGREES, ASPECTS, RIDGES):
            lengths = tuple(np.array([aspect * degrees, degrees]) / spread)
            kernel = LAWS[law](RationalQuadratic(alpha, length_scale=lengths))
            model = vf.MOCK(kernel, ridge, rule=rule).fit(tracks)
            value = score(model.field_, data.validation).err
            if value < lowest:
                best, lowest = model, value
    return best


def thinned(tracks: vf.Trajectories, every: int) -> vf.Trajectories:
    """Return every k-th sample of the tracks that have two of them."""
    long = [(x[::every], t[::every]) for t, x in tracks if len(t) > every]
    xs, ts = zip(*long, strict=True)
    return vf.Trajectories.from_arrays(xs, ts, feature_names=tracks.feature_names)


def score(field: Callable, part: vf.Trajectories) -> vf.metrics.Scores:
    run = vf.rollout(field, part, rtol=1e-5, on_failure="ignore")
    return vf.metrics.evaluate(part, run.x)


def draw(models: dict[str, vf.MOCK], data: vf.datasets.Dataset, path: Path) -> None:
    """Draw both flows over the tracks that they were learned from."""
    from matplotlib.figure import Figure

    low, high = data.train.states.min(axis=0), data.train.states.max(axis=0)
    east, north = np.meshgrid(np.linspace(low[0], high[0], 80), np.linspace(low[1], high[1], 100))
    points = np.stack([east.ravel(), north.ravel()], axis=1)
    figure = Figure(figsize=(8.6, 4.9), layout="constrained")
    axes = figure.subplots(1, len(models), sharex=True, sharey=True)
    for ax, (law, model) in zip(axes, models.items(), strict=True):
        for _, track in data.train:
            ax.plot(track[:, 0], track[:, 1], color="0.72", linewidth=0.5, zorder=1)
        flow = model.predict(points).T.reshape(2, *east.shape)
        speed = np.linalg.norm(flow, axis=0)
        ax.streamplot(
            east,
            north,
            *flow,
            color="#1f4e79",
            density=1.4,
            linewidth=0.3 + 1.7 * speed / speed.max(),
            arrowsize=0.8,
        )
        ax.set_title(f"{law} kernel", fontsize="medium")
        ax.set_xlabel("longitude")
        ax.set_xlim(low[0], high[0])
        ax.set_ylim(low[1], high[1])
        ax.set_aspect(1.0 / np.cos(np.deg2rad(20.0)))
    axes[0].set_ylabel("latitude")
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    main()
