"""Ocean currents around Madagascar from drifters: scalar, divergence-free, and both parts.

The tracks of 189 surface drifters train a flow and 62 are there to choose the settings; 64 are read
once, at the end. Eddies come and go within weeks, which no flow that stands still can follow, so
that all tracks look noisy and 62 are too few to tell settings apart: these are chosen by four folds
over the 251. Is the flow at the surface free of divergence? A scalar kernel does not ask, a
divergence-free one insists, and the sum of a divergence-free and a curl-free kernel weighs the two.

    python examples/drifters.py               # under a minute
    python examples/drifters.py --plot out    # the figure as well
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

import vectorfield as vf
from vectorfield.kernels import CurlFree, DivergenceFree, RationalQuadratic, Separable
from vectorfield.occupation import Trapezoid

LAWS = ("scalar", "divergence-free", "sum of both parts")
EVERY = 16  # samples are half a day apart: one in eight days, longer than drifters remember
DEGREES = (2.0, 4.0, 8.0)  # length scale in latitude
ASPECTS = (1.0, 2.0)  # that in longitude, over it
WEIGHTS = (3.0, 10.0)  # of the curl-free part, which needs one scale for both
RIDGES = (2.0, 6.0, 18.0)
FOLDS = 4

Track = tuple[np.ndarray, np.ndarray]  # states and times


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--plot", type=Path, help="draw the figure into this folder")
    folder = arguments.parse_args().plot

    data = vf.datasets.load("drifters")
    known = [(x, t) for part in (data.train, data.validation) for t, x in part]
    order = np.random.default_rng(0).permutation(len(known))
    folds = [[known[k] for k in order[fold::FOLDS]] for fold in range(FOLDS)]
    print("                  Err, folds  test Err     1-Err   skill  divergence")
    found = {law: choose(law, folds) for law in LAWS}
    models = {law: fitted(model, known) for law, (model, _) in found.items()}
    report("null model", np.zeros_like, mean_err([(np.zeros_like, fold) for fold in folds]), data)
    for law, model in models.items():
        report(law, model.field_, found[law][1], data)
    for law, model in models.items():
        print(f"\n{law}: {model.kernel!r}, ridge {model.ridge:g}")
        print(f"  {len(model.residuals_)} observations, |f| = {model.rkhs_norm_:.3g}")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        draw(models, data, folder / "drifters.png")


def choose(law: str, folds: list[list[Track]]) -> tuple[Callable, float]:
    """Return how to build the best candidate, and its mean Err on tracks left out."""
    best, lowest = None, float("inf")
    shapes = WEIGHTS if law == LAWS[2] else ASPECTS
    for degrees, shape, ridge in product(DEGREES, shapes, RIDGES):
        candidate = partial(build, law, degrees, shape, ridge)
        pairs = []
        for fold in folds:
            rest = [track for other in folds if other is not fold for track in other]
            pairs.append((fitted(candidate, rest).field_, fold))
        value = mean_err(pairs)
        if value < lowest:
            best, lowest = candidate, value
    return best, lowest


def build(law: str, degrees: float, shape: float, ridge: float, spread: np.ndarray) -> vf.MOCK:
    """Return a model whose length scales, in units of the spread, are these in degrees."""
    if law == LAWS[2]:  # gradients stay gradients in one scale for both coordinates
        radial = RationalQuadratic(1.0, length_scale=degrees / float(np.sqrt(np.mean(spread**2))))
        kernel = DivergenceFree(radial) + shape * CurlFree(radial)
    else:
        lengths = np.array([shape * degrees, degrees]) / spread
        radial = RationalQuadratic(1.0, length_scale=tuple(lengths))
        kernel = DivergenceFree(radial) if law == LAWS[1] else Separable(radial)
    return vf.MOCK(kernel, ridge, rule=Trapezoid())


def fitted(candidate: Callable, tracks: list[Track]) -> vf.MOCK:
    """Fit to every 16th sample of the tracks that have two of them."""
    thinned = together([(x[::EVERY], t[::EVERY]) for x, t in tracks if len(t) > EVERY])
    return candidate(thinned.states.std(axis=0)).fit(thinned)


def together(tracks: list[Track]) -> vf.Trajectories:
    return vf.Trajectories.from_arrays(
        *zip(*tracks, strict=True), feature_names=("longitude", "latitude")
    )


def mean_err(pairs: list[tuple[Callable, list[Track]]]) -> float:
    """Return the mean Err over all tracks of fields, each with those to be tested on."""
    return float(np.concatenate([score(f, together(tracks)).errs for f, tracks in pairs]).mean())


def score(field: Callable, part: vf.Trajectories) -> vf.metrics.Scores:
    run = vf.rollout(field, part, rtol=1e-4, on_failure="ignore")
    return vf.metrics.evaluate(part, run.x)


def report(name: str, field: Callable, folds: float, data: vf.datasets.Dataset) -> None:
    """Print one row of the table; the divergence is that over the test tracks."""
    scores = score(field, data.test)
    row = f"{name:18}{folds:10.2f}{scores.err:10.2f}{scores.one_err:10.4f}{scores.skill:8.3f}"
    if hasattr(field, "jacobian"):
        jacobian = field.jacobian(data.test.states[::20])
        divergence = np.trace(jacobian, axis1=1, axis2=2)
        row += f"{np.linalg.norm(divergence) / np.linalg.norm(jacobian):12.1e}"
    print(row)


def draw(models: dict[str, vf.MOCK], data: vf.datasets.Dataset, path: Path) -> None:
    """Draw the flows over the tracks that they were learned from."""
    from matplotlib.figure import Figure

    low, high = data.train.states.min(axis=0), data.train.states.max(axis=0)
    east, north = np.meshgrid(np.linspace(low[0], high[0], 80), np.linspace(low[1], high[1], 100))
    points = np.stack([east.ravel(), north.ravel()], axis=1)
    far = cKDTree(data.train.states).query(points)[0].reshape(east.shape) > 0.7  # land, mostly
    figure = Figure(figsize=(10.2, 4.4), layout="constrained")
    axes = figure.subplots(1, len(models), sharex=True, sharey=True)
    for ax, (law, model) in zip(axes, models.items(), strict=True):
        for _, track in data.train:
            ax.plot(track[:, 0], track[:, 1], color="0.72", linewidth=0.5, zorder=1)
        flow = model.predict(points).T.reshape(2, *east.shape)
        speed = np.linalg.norm(flow, axis=0)
        flow[:, far] = np.nan
        ax.streamplot(
            east,
            north,
            *flow,
            color="#1f4e79",
            density=1.4,
            linewidth=0.3 + 1.7 * speed / speed.max(),
            arrowsize=0.8,
        )
        ax.set_title(f"{law} kernel" if law != LAWS[2] else law, fontsize="medium")
        ax.set_xlabel("longitude")
        ax.set_xlim(low[0], high[0])
        ax.set_ylim(low[1], high[1])
        ax.set_aspect(1.0 / np.cos(np.deg2rad(20.0)))
    axes[0].set_ylabel("latitude")
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    main()
