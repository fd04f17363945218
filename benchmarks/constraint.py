"""What a law in the kernel buys: the pendulum, scalar against divergence-free kernel.

In the plane the divergence-free kernel is the Hamiltonian one.

Err over 6, 10, 20, 60 training trajectories of 50 samples, steps 0.02 and 0.1, clean and with 5 %
noise, the mean over data seeds. Both kernels have the same choices of radial kernel, length scale,
ridge and rule, made on validation trajectories by the same search; test trajectories are read
once. Starts are uniform in a box, angle up to 2 and rate up to 5, of which some go over the top and
out of the data ("box"), or those of the box that do not ("swings"). Targets: never worse than 1.05
times the scalar kernel's mean; at least 1.5 times better at 6 and 10 trajectories.

python benchmarks/constraint.py --csv sweep.csv --plot sweep.png    # two hours on one core
python benchmarks/constraint.py --read sweep.csv --plot sweep.png   # the table of a file, again
python benchmarks/constraint.py --pair                              # where the paper's figures are
"""

from __future__ import annotations

import argparse
import csv
import os
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from measure import machine, table, verdict

import vectorfield as vf
from vectorfield.kernels import DivergenceFree, Gaussian, Matern, Separable
from vectorfield.occupation import Lagrange, SnapshotNoise, Trapezoid, White

LAWS: dict[str, Callable] = {"scalar": Separable, "divergence-free": DivergenceFree}
RADIAL = (Gaussian, lambda s: Matern(5.5, s / 3.0))  # alike in width, docs/guide
LENGTHS = tuple(0.5 * 2.0 ** (0.5 * j) for j in range(11))
RIDGES = tuple(10.0**-j for j in range(1, 20))
MOST_STEPS = 300  # of a rollout; good fields take about 80, and a wild one has lost by then
STARTS = ["box", "swings"]
WALKS = 3  # walks downhill, from the best places of the first grid
PENDULUM = vf.systems.Pendulum()
WIDE = 40  # training trajectories from which on a search keeps radial kernel and loss
LOSSES = {
    0.0: ((Lagrange(6), White()), (Lagrange(8), White())),
    0.05: ((Trapezoid(), SnapshotNoise()), (Lagrange(4), SnapshotNoise()), (Trapezoid(), White())),
}


@dataclass(frozen=True)
class Data:
    train: vf.Trajectories
    validation: vf.Trajectories  # under noise from four starts each, which averages theirs
    clean: vf.Trajectories
    noisy: vf.Trajectories


@dataclass(frozen=True)
class Choice:
    """A place in the grid; neighbours differ in one setting by one step."""

    radial: int = 0
    length: int = 4
    ridge: int = 8
    loss: int = 0

    def neighbours(self, losses: int, wide: bool) -> Iterator[Choice]:
        for step in (-1, 1):
            for jump in (step, 3 * step) if wide else (step,):
                if 0 <= self.ridge + jump < len(RIDGES):
                    yield replace(self, ridge=self.ridge + jump)
            if 0 <= self.length + step < len(LENGTHS):
                yield replace(self, length=self.length + step)
        if wide:
            yield replace(self, radial=1 - self.radial)
            yield from (replace(self, loss=j) for j in range(losses) if j != self.loss)


def generate(seed: int, step: float, noise: float, starts: str = "box") -> Data:
    rng = np.random.default_rng(1000 + seed)
    pool = rng.uniform([-2.0, -5.0], [2.0, 5.0], size=(100 if starts == "box" else 400, 2))
    if starts == "swings":
        pool = pool[PENDULUM.energy(pool) < 0.9 * PENDULUM.gravity]
    t = step * np.arange(50)
    x = vf.simulate(PENDULUM, pool[:100], t, rtol=1e-11, atol=1e-11).x
    spread = noise * x[:60].reshape(-1, 2).std(axis=0)
    noisy = x + spread * rng.normal(size=x.shape)

    def part(states: np.ndarray, which: slice, firsts: tuple[int, ...] = (0,)) -> vf.Trajectories:
        pieces = [(y[k:], t[k:]) for y in states[which] for k in firsts]
        return vf.Trajectories.from_arrays(*zip(*pieces, strict=True))

    return Data(
        part(noisy, slice(0, 60)),
        part(noisy, slice(60, 80), (0, 10, 20, 30) if noise else (0,)),
        part(x, slice(80, 100)),
        part(noisy, slice(80, 100)),
    )


def build(law: str, choice: Choice, noise: float) -> vf.MOCK:
    rule, loss = LOSSES[noise][choice.loss]
    kernel = LAWS[law](RADIAL[choice.radial](LENGTHS[choice.length]))
    return vf.MOCK(kernel, RIDGES[choice.ridge], rule=rule, noise=loss)


def err(model: vf.MOCK, part: vf.Trajectories, rtol: float, steps: int) -> float:
    run = vf.rollout(model.field_, part, rtol=rtol, max_steps=steps, on_failure="ignore")
    return vf.metrics.evaluate(part, run.x).err


def final_err(model: vf.MOCK, part: vf.Trajectories) -> float:
    """Return Err at the first tolerance that the rounding errors of the field allow."""
    values = (err(model, part, rtol, 3000) for rtol in (1e-9, 1e-8, 1e-6))
    return next((value for value in values if np.isfinite(value)), float("inf"))


def tune(
    law: str,
    train: vf.Trajectories,
    validation: vf.Trajectories,
    noise: float,
    starts: list[Choice],
    rtol: float,
) -> tuple[Choice, vf.MOCK]:
    """Walk downhill on the grid by validation Err, from the best few of ``starts``.

    The first better neighbour is taken. From ``WIDE`` trajectories on, only ridge and length scale
    still move.
    """
    seen: dict[Choice, float] = {}
    lowest = float("inf")
    kept: tuple[Choice, vf.MOCK] | None = None

    def value(choice: Choice) -> float:
        nonlocal kept, lowest
        if choice not in seen:
            model = build(law, choice, noise)
            try:
                seen[choice] = err(model.fit(train), validation, rtol, MOST_STEPS)
            except vf.SolveError:
                seen[choice] = float("inf")
            if seen[choice] < lowest:
                lowest, kept = seen[choice], (choice, model)
        return seen[choice]

    wide, losses = len(train) < WIDE, len(LOSSES[noise])
    for start in sorted(starts, key=value)[:WALKS]:
        here: Choice | None = start
        while here is not None:
            order = here.neighbours(losses, wide)
            at = value(here)
            here = next((choice for choice in order if value(choice) < at), None)
    if kept is None:
        raise SystemExit(f"no candidate could be fitted: {law}, {len(train)} trajectories")
    return kept


def run(task: tuple[str, float, float, int, str, tuple[int, ...]]) -> list[dict[str, Any]]:
    """All sizes for one kernel on one data set; the larger sizes start from the smaller's."""
    warnings.simplefilter("ignore", vf.SolveWarning)
    where, noise, step, seed, law, sizes = task
    data = generate(seed, step, noise, where)
    rows: list[dict[str, Any]] = []
    # noise, or the quadrature of long steps, drowns what a looser tolerance leaves
    rtol = 1e-5 if noise else 1e-8 if step < 0.05 else 1e-6
    starts = [
        Choice(0, length, ridge) for length in (2, 4, 6, 8) for ridge in (2, 5, 8, 11, 14, 17)
    ]
    for size in sizes:
        choice, model = tune(law, data.train[:size], data.validation, noise, starts, rtol)
        starts = [choice]
        rows.append(
            {
                "starts": where,
                "noise": noise,
                "step": step,
                "seed": seed,
                "law": law,
                "size": size,
                "err": final_err(model, data.clean),
                "noisy_err": final_err(model, data.noisy),
                "validation_err": final_err(model, data.validation),
                "kernel": repr(model.kernel_),
                "ridge": model.ridge_,
                "rule": repr(model.rule),
                "loss": repr(model.noise),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--sizes", type=int, nargs="+", default=[6, 10, 20, 60])
    parser.add_argument("--steps", type=float, nargs="+", default=[0.02, 0.1])
    parser.add_argument("--starts", nargs="+", choices=STARTS, default=STARTS)
    parser.add_argument("--noises", type=float, nargs="+", default=[0.0, 0.05])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--csv", type=Path, help="keep every seed's figures here")
    parser.add_argument("--read", type=Path, help="read the figures here, and measure nothing")
    parser.add_argument("--plot", type=Path, help="draw the figure here")
    parser.add_argument("--pair", action="store_true", help="look for the paper's two figures")
    arguments = parser.parse_args()
    print(machine())
    # the systems are small: a process a core, each with one thread, does more than two threads
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    if arguments.pair:
        pair(arguments.seeds, arguments.jobs)
        return
    rows = read(arguments.read) if arguments.read else sweep(arguments)
    print(summary(rows))
    if arguments.plot:
        draw(rows, arguments.plot)


def sweep(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure everything that was asked for; print and keep it as it comes."""
    rows: list[dict[str, Any]] = []
    sizes = tuple(sorted(arguments.sizes))
    # seed after seed, so that a sweep that is stopped has whole cells
    cells = product(range(arguments.seeds), arguments.starts, arguments.noises, arguments.steps)
    tasks = [
        (where, noise, step, seed, law, sizes)
        for (seed, where, noise, step), law in product(cells, LAWS)
    ]
    with ProcessPoolExecutor(arguments.jobs, get_context("spawn")) as pool:
        for done in as_completed([pool.submit(run, task) for task in tasks]):
            found = done.result()
            rows += found
            print(*(f"{value:.3g}" for value in (r["err"] for r in found)), found[0], flush=True)
            if arguments.csv:
                write(rows, arguments.csv)
    return rows


def write(rows: list[dict[str, Any]], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def read(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    for row in rows:
        row.update({key: float(row[key]) for key in ("noise", "step", "err")})
        row.update({key: int(row[key]) for key in ("seed", "size")})
    return rows


def summary(rows: list[dict[str, Any]]) -> str:
    lines = []
    cells = sorted({(r["starts"], r["noise"], r["step"], r["size"]) for r in rows})
    for cell in cells:
        where, noise, step, size = cell
        scalar, free = both(rows, cell)
        gain = scalar.mean() / free.mean()
        gains = scalar / free
        target = 1.5 if size <= 10 else 1 / 1.05
        lines.append(
            [
                where,
                f"{100 * noise:g} %",
                step,
                size,
                f"{scalar.mean():.2e}",
                f"{free.mean():.2e}",
                f"{gain:.2f}",
                f"{np.median(gains):.2f}",
                f"{int(np.sum(gains > 1))} of {len(gains)}",
                f">= {target:.2f}: {verdict(gain, target, at_most=False)}",
            ]
        )
    header = [
        "starts", "noise", "step", "trajectories", "Err scalar", "Err divergence-free", "gain",
        "median gain", "seeds won", "target",
    ]  # fmt: skip
    return table(header, lines)


def both(rows: list[dict[str, Any]], cell: tuple) -> tuple[np.ndarray, np.ndarray]:
    """Return Err of both kernels for the seeds of a cell that both have."""
    found: dict[str, dict[int, float]] = {law: {} for law in LAWS}
    for r in rows:
        if (r["starts"], r["noise"], r["step"], r["size"]) == cell:
            found[r["law"]][r["seed"]] = r["err"]
    seeds = sorted(set.intersection(*(set(values) for values in found.values())))
    scalar, free = (np.array([found[law][seed] for seed in seeds]) for law in LAWS)
    return scalar, free


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    from matplotlib.figure import Figure

    settings = sorted({(r["noise"], r["step"]) for r in rows})
    starts = sorted({r["starts"] for r in rows})
    sizes = sorted({r["size"] for r in rows})
    shape = (len(starts), len(settings))
    figure = Figure(figsize=(2.3 * shape[1] + 0.5, 2.2 * shape[0] + 0.6), layout="constrained")
    axes = figure.subplots(*shape, squeeze=False, sharex=True, sharey="col")
    for row, where in zip(axes, starts, strict=True):
        for ax, (noise, step) in zip(row, settings, strict=True):
            pairs = {size: both(rows, (where, noise, step, size)) for size in sizes}
            for law, colour, shift in (("scalar", "0.35", 0.97), ("divergence-free", "C3", 1.03)):
                values = {size: pair[list(LAWS).index(law)] for size, pair in pairs.items()}
                known = [size for size in sizes if len(values[size])]
                means = [values[size].mean() for size in known]
                for size in known:
                    x = np.full(len(values[size]), shift * size)
                    ax.plot(x, values[size], ".", color=colour, alpha=0.35, markersize=4)
                ax.plot(shift * np.array(known), means, "-o", color=colour, label=law, markersize=4)
            ax.set_xscale("log")
            ax.set_yscale("log")
            ax.set_xticks(sizes, [str(size) for size in sizes])
            ax.minorticks_off()
            ax.grid(alpha=0.3)
            noisy = f"{100 * noise:g} % noise" if noise else "clean"
            ax.set_title(f"{where}, step {step:g}, {noisy}", fontsize="small")
        row[0].set_ylabel("test Err")
    for ax in axes[-1]:
        ax.set_xlabel("training trajectories")
    axes[0][0].legend(frameon=False, fontsize="small")
    figure.savefig(path, dpi=100)


PAPER = {"scalar": 1.5e-1, "divergence-free": 1.9e-2}
PAIR_LENGTHS = (0.5, 1.0, 2.0, 4.0)
PAIR_RIDGES = tuple(10.0**-j for j in range(2, 17, 2))


def pair(seeds: int, jobs: int) -> None:
    """Look for the paper's two figures, with its kernel (Matern C^10) and its rule."""
    cells = list(product(STARTS, (0.02, 0.1), (3, 6, 10)))
    tasks = [(*cell, seed) for cell in cells for seed in range(seeds)]
    grid = list(product(PAIR_LENGTHS, PAIR_RIDGES))
    found: dict[tuple, list] = {cell: [] for cell in cells}
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for task, value in zip(tasks, pool.map(pair_errors, tasks), strict=True):
            found[task[:-1]].append(value)
    lines, near = [], []
    for cell, values in found.items():
        validation, test = np.moveaxis(np.array(values), 2, 0)  # each (seeds, laws, grid)
        chosen = np.argmin(validation, axis=2)
        tuned = np.take_along_axis(test, chosen[..., None], axis=2)[..., 0].mean(axis=0)
        lines.append([*cell, *(f"{value:.1e}" for value in tuned), f"{tuned[0] / tuned[1]:.1f}"])
        for seed, (length, ridge), scalar, free in each(test, grid):
            fits = np.log([scalar / PAPER["scalar"], free / PAPER["divergence-free"]])
            if np.abs(fits).max() < np.log(1.5):
                near.append([*cell, seed, length, f"{ridge:g}", f"{scalar:.1e}", f"{free:.1e}"])
    header = ["starts", "step", "trajectories", "Err scalar", "Err divergence-free"]
    print(f"each tuned on its own, mean over {seeds} seeds")
    print(table([*header, "gain"], lines))
    tried = len(tasks) * len(grid)
    print("\none data set, one length scale and ridge for both, within a factor of 1.5 of the")
    print(f"paper's pair: {len(near)} of {tried}")
    print(table([*header[:3], "seed", "length scale", "ridge", *header[3:]], near))


def each(test: np.ndarray, grid: list[tuple]) -> Iterator[tuple]:
    """Give seed, settings and both Errs of test (seeds, laws, grid), one after the other."""
    for seed, (scalars, frees) in enumerate(test):
        for settings, scalar, free in zip(grid, scalars, frees, strict=True):
            yield seed, settings, scalar, free


def pair_errors(task: tuple[str, float, int, int]) -> list[list[list[float]]]:
    """Return the Errs, (laws, validation and test, grid)."""
    warnings.simplefilter("ignore", vf.SolveWarning)
    where, step, size, seed = task
    data = generate(seed, step, 0.0, where)
    errors: list[list[list[float]]] = []
    for kernel in LAWS.values():
        values = []
        for length, ridge in product(PAIR_LENGTHS, PAIR_RIDGES):
            model = vf.MOCK(kernel(Matern(5.5, length)), ridge, rule=Trapezoid())
            try:
                model.fit(data.train[:size])
            except vf.SolveError:
                values.append([float("inf")] * 2)
                continue
            parts = (data.validation, data.clean)
            values.append([err(model, part, 1e-6, MOST_STEPS) for part in parts])
        errors.append(np.transpose(values).tolist())
    return errors


if __name__ == "__main__":
    main()
