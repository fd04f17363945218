"""The demonstration, `make demo`: learn a vector field from noisy trajectories.

FitzHugh-Nagumo trajectories with heavy noise are computed. Two ways to weigh the data are
compared, each with the kernel, length scale and ridge that do best on the validation part: the
paper's (all increments alike) and one that knows that neighbouring increments share a noisy
snapshot. The test part is read once, at the end. Nothing is downloaded.

    python examples/demo.py          # the last fits with 40 of the 90 training trajectories
    python examples/demo.py --all    # with all: 18,000 observations, and a minute more
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from time import perf_counter

import numpy as np

import vectorfield as vf
from vectorfield import metrics, plots
from vectorfield.kernels import Gaussian, Matern
from vectorfield.occupation import SnapshotNoise, Trapezoid, White

OUT = Path("out")
KERNELS = [Gaussian(s) for s in (1.0, 2.0, 4.0, 8.0)] + [Matern(5.5, s) for s in (1.0, 2.0)]
RIDGES = (1e-9, 1e-8, 1e-7, 1e-6)
# All candidates meet on a few trajectories; the better ones go on to the next, larger round.
ROUNDS = ((8, 3), (20, 1))  # training trajectories, and how many candidates are left after it
LAST = 40

Field = Callable[[np.ndarray], np.ndarray]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--all", action="store_true", help="fit all training trajectories")
    everything = arguments.parse_args().all
    began = perf_counter()

    data = vf.datasets.load("nfhn")
    last = data.train if everything else data.train[:LAST]
    print("Noisy FitzHugh-Nagumo:  v' = v - v^3/3 - w + 0.5,  12.5 w' = v + 0.7 - 0.8 w")
    print(f"  training    {data.train}")
    print(f"  validation  {data.validation}")
    print(f"  test        {data.test}, read once at the end\n")

    paper, ours = [
        choose(
            [vf.MOCK(k, r, rule=Trapezoid(), noise=noise) for k in KERNELS for r in RIDGES], data
        )
        for noise in (White(), SnapshotNoise())
    ]
    print(f"The last fits, with {len(last)} training trajectories:")
    for model in (paper, ours):
        start = perf_counter()
        model.fit(last)
        n, seconds = len(model.residuals_), perf_counter() - start
        print(f"  {describe(model)}: N = {n:,} in {seconds:.1f} s, {model.solution_.status.value}")

    best = max(paper, ours, key=lambda model: scores(model.field_, data.validation).skill)
    fields: dict[str, Field] = {
        "null model, x(t) = x(0)": np.zeros_like,
        "the paper's loss": paper.field_,
        "snapshot noise": ours.field_,
        "oracle, the true field": data.field,
    }
    rows = [judge(name, field, data) for name, field in fields.items()]
    show(rows)

    OUT.mkdir(exist_ok=True)
    best.save(OUT / "fhn.vf")
    draw(vf.load(OUT / "fhn.vf"), data)
    explain(rows, best, perf_counter() - began)


def choose(candidates: list[vf.MOCK], data: vf.datasets.Dataset) -> vf.MOCK:
    """Return the candidate of the highest skill on the validation trajectories."""
    name = type(candidates[0].noise).__name__
    failures = 0
    for count, kept in ROUNDS:
        ranked = []
        title = f"{name}: {len(candidates)} candidates on {count} trajectories"
        for model in progress(candidates, title):
            try:
                with warnings.catch_warnings(action="error", category=vf.SolveWarning):
                    model.fit(data.train[:count])
            except (vf.SolveError, vf.SolveWarning):  # a ridge too small for that kernel
                failures += 1
                continue
            ranked.append((scores(model.field_, data.validation).skill, model))
        ranked.sort(key=lambda pair: pair[0], reverse=True)
        candidates = [model for _, model in ranked[:kept]]
    print(f"  best: {describe(candidates[0])}, validation skill {ranked[0][0]:.3f}", end="")
    print(f" ({failures} close to singular)\n" if failures else "\n")
    return candidates[0]


def scores(field: Field, trajectories: vf.Trajectories) -> metrics.Scores:
    """Simulate from the first sample of every trajectory and compare all the others."""
    run = vf.rollout(field, trajectories, rtol=1e-6, on_failure="ignore")
    return metrics.evaluate(trajectories, run.x)


def judge(name: str, field: Field, data: vf.datasets.Dataset) -> tuple[str, list[float]]:
    """Return the row of the table: errors on noisy test data, on clean ones, and of the field."""
    skill = scores(field, data.validation).skill
    noisy, clean = scores(field, data.test), scores(field, data.clean.test)
    points = data.clean.test.states
    truth = data.field(points)
    field_error = np.linalg.norm(field(points) - truth) / np.linalg.norm(truth)
    return name, [skill, noisy.err, noisy.one_err, noisy.skill, clean.err, float(field_error)]


def show(rows: list[tuple[str, list[float]]]) -> None:
    """Print the table."""
    print(f"\n{'':24}validation   test, from the noisy first sample   test, from clean starts")
    print(
        f"{'':24}{'skill':>10}{'Err':>15}{'1-Err':>10}{'skill':>10}{'Err':>15}{'field error':>13}"
    )
    for name, (first, err, one_err, skill, clean, field_error) in rows:
        print(f"{name:24}{first:10.3f}{err:15.3f}{one_err:10.4f}{skill:10.3f}", end="")
        print(f"{clean:15.3f}{field_error:13.3f}")


def draw(field: vf.VectorField, data: vf.datasets.Dataset) -> None:
    """Write the phase portrait and the time courses."""
    clean = data.clean.test[:8]
    run = vf.rollout(field, clean)
    ax = plots.phase_portrait(field, data=data.train, true=clean, predicted=run)
    ax.figure.savefig(OUT / "fhn.png", dpi=110)
    panels = plots.trajectories(data.test, vf.rollout(field, data.test))
    panels[0, 0].figure.savefig(OUT / "fhn-time.png", dpi=110)


def explain(rows: list[tuple[str, list[float]]], best: vf.MOCK, seconds: float) -> None:
    """Say what to look at."""
    figures = dict(rows)
    paper, ours = figures["the paper's loss"], figures["snapshot noise"]
    oracle = figures["oracle, the true field"]
    changes = [f"{ours[k] / paper[k] - 1:+.0%}" for k in (1, 4)]
    print(f"""
What to look at
  Err     The first sample is noisy too, so even the true field has an Err of {oracle[1]:.2f}: no
          learner can expect less. From clean starts without noise the true field has 0.
  losses  Same data, same kernels and ridges to choose from. Weighing by the covariance of the
          increments changes Err by {changes[0]}, and by {changes[1]} from clean starts.
  files   These are of the better one on validation data, {best.noise!r}:
          {OUT / "fhn.png"}: training snapshots (grey), streamlines of the learned field (blue),
          test trajectories without noise (black) and as predicted (red).
          {OUT / "fhn-time.png"}: noisy test trajectories over time, and what the learned field
          makes of their first samples.
          {OUT / "fhn.vf"}: the learned field, to be used by vectorfield.load("{OUT / "fhn.vf"}").

Done in {seconds:.0f} s.""")


def describe(model: vf.MOCK) -> str:
    """Name the settings that were searched."""
    return f"{model.kernel!r}, ridge {model.ridge:g}, {model.noise!r}"


def progress(items: list[vf.MOCK], title: str) -> Iterable[vf.MOCK]:
    """Show a progress bar on a terminal that rich knows how to use, one line elsewhere."""
    if sys.stdout.isatty():
        try:
            from rich.progress import track
        except ImportError:
            return announced(items, title)
        return track(items, description=f"  {title}")
    return announced(items, title)


def announced(items: list[vf.MOCK], title: str) -> Iterator[vf.MOCK]:
    """Print the title before the first item and the time after the last."""
    start = perf_counter()
    print(f"  {title} ... ", end="", flush=True)
    yield from items
    print(f"{perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
