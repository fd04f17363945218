"""What a law in the kernel is worth: the pendulum with and without conservation built in.

The field of a pendulum has no divergence and keeps its energy. A scalar kernel has to learn both, a
divergence-free or Hamiltonian one has them from the start. With 60 training trajectories all are
exact for most purposes; with 6 the law shows. Length scale and ridge of every kernel are chosen on
the validation part, from the same grid; the test part is read once.

    python examples/pendulum_laws.py               # under a minute
    python examples/pendulum_laws.py --plot out    # the figures as well
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.special import ellipk

import vectorfield as vf
from vectorfield.kernels import DivergenceFree, Gaussian, Hamiltonian, Separable
from vectorfield.occupation import Lagrange

LENGTHS = (1.4, 2.0, 2.8, 4.0)
RIDGES = (1e-16, 1e-18, 1e-19, 1e-20)  # clean data: nothing is to be smoothed
ROUNDS = {6: ((6, 1),), 60: ((20, 3), (60, 1))}  # trajectories, and how many are left after it
LAWS: dict[str, Callable] = {"scalar": Separable, "divergence-free": DivergenceFree}
PERIODS = 100
TOP = 9.8  # energy of the pendulum at rest, upside down
COLOURS = {"scalar": "0.35", "divergence-free": "#d62728"}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--plot", type=Path, help="draw the figures into this folder")
    folder = arguments.parse_args().plot

    data = vf.datasets.load("pendulum")
    starts = swings(data)
    periods = 4.0 * ellipk((data.field.energy(starts) + TOP) / (2.0 * TOP)) / np.sqrt(TOP)
    times = [np.linspace(0.0, PERIODS * period, 8 * PERIODS + 1) for period in periods]
    print(f"{len(starts)} unseen swings are followed for {PERIODS} periods\n")
    print("trajectories  kernel           length    ridge  test Err  field error  energy drift")
    models, drifts = {}, {}
    for size in ROUNDS:
        for law in LAWS:
            model = models[size, law] = choose(law, size, data)
            run = vf.simulate(model.field_, starts, times, max_steps=5000, on_failure="ignore")
            drifts[size, law] = drift(run.x, data.field)
            report(size, law, model, data, f"{max(map(np.max, drifts[size, law])):12.1e}")
    best = models[60, "divergence-free"]
    twin = vf.MOCK(Hamiltonian(best.kernel.kernel), best.ridge, rule=best.rule).fit(data.train)
    report(60, "Hamiltonian", twin, data, "   the same")
    points = data.test.states
    gap = np.abs(twin.predict(points) - best.predict(points)).max()
    print(f"In the plane the last two are one kernel; their fields differ by {gap:.1e}.")
    energy = data.field.energy(points) - twin.hamiltonian(points)
    print(f"The learned energy is off by {np.ptp(energy):.1e} over the test states.")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        draw_errors(models, data, folder / "pendulum-error.png")
        draw_drifts(drifts, folder / "pendulum-energy.png")


def choose(law: str, size: int, data: vf.datasets.Dataset) -> vf.MOCK:
    """Return the candidate of the lowest validation Err, fitted to ``size`` trajectories."""
    candidates = [
        vf.MOCK(LAWS[law](Gaussian(length)), ridge, rule=Lagrange(8))
        for length in LENGTHS
        for ridge in RIDGES
    ]
    for count, kept in ROUNDS[size]:
        ranked = []
        for model in candidates:
            try:
                with warnings.catch_warnings(action="error", category=vf.SolveWarning):
                    model.fit(data.train[:count])
            except (vf.SolveError, vf.SolveWarning):  # a ridge too small for that kernel
                continue
            ranked.append((err(model, data.validation), model))
        ranked.sort(key=lambda pair: pair[0])
        candidates = [model for _, model in ranked[:kept]]
    return candidates[0]


def err(model: vf.MOCK, part: vf.Trajectories) -> float:
    run = vf.rollout(model.field_, part, rtol=1e-10, max_steps=500, on_failure="ignore")
    return vf.metrics.evaluate(part, run.x).err


def swings(data: vf.datasets.Dataset, count: int = 4) -> np.ndarray:
    """Return the first starts of the test part that do not go over the top."""
    starts = data.test.states[data.test.offsets[:-1]]
    return starts[data.field.energy(starts) < 0.9 * TOP][:count]


def drift(paths: list[np.ndarray], system: vf.systems.Pendulum) -> list[np.ndarray]:
    """Return the change of the true energy along each path, relative to that above rest."""
    energies = [system.energy(path[np.isfinite(path).all(axis=1)]) for path in paths]
    return [np.abs(energy - energy[0]) / (energy[0] + TOP) for energy in energies]


def report(size: int, law: str, model: vf.MOCK, data: vf.datasets.Dataset, last: str) -> None:
    """Print one row of the table; the error of the field is that over the test states."""
    points = data.test.states
    truth = data.field(points)
    error = np.linalg.norm(model.predict(points) - truth) / np.linalg.norm(truth)
    length = model.kernel.kernel.length_scale
    print(
        f"{size:12}  {law:16}{length:7g}{model.ridge:9g}{err(model, data.test):10.1e}"
        f"{error:13.1e}  {last}",
        flush=True,
    )


def draw_errors(models: dict, data: vf.datasets.Dataset, path: Path) -> None:
    """Draw |f - true f| over the region, with the training trajectories on it."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    angle, rate = np.meshgrid(np.linspace(-3.0, 3.0, 121), np.linspace(-6.5, 6.5, 121))
    points = np.stack([angle.ravel(), rate.ravel()], axis=1)
    figure = Figure(figsize=(7.2, 5.6), layout="constrained")
    axes = figure.subplots(len(ROUNDS), len(LAWS), sharex=True, sharey=True)
    for row, size in zip(axes, ROUNDS, strict=True):
        errors = {
            law: np.linalg.norm(models[size, law].predict(points) - data.field(points), axis=1)
            for law in LAWS
        }
        top = np.ceil(np.log10(np.max(list(errors.values()))))
        norm = LogNorm(10.0 ** (top - 7), 10.0**top)
        for ax, (law, error) in zip(row, errors.items(), strict=True):
            image = ax.pcolormesh(
                angle, rate, error.reshape(angle.shape), norm=norm, cmap="viridis", rasterized=True
            )
            for _, x in data.train[:size]:
                ax.plot(x[:, 0], x[:, 1], color="white", linewidth=0.7, alpha=0.8)
            ax.set_xlim(-3.0, 3.0)
            ax.set_ylim(-6.5, 6.5)
            ax.set_title(f"{law} kernel, {size} trajectories", fontsize="medium")
        row[0].set_ylabel("rate")
        figure.colorbar(image, ax=row, label="error of the field", extend="min")
    for ax in axes[-1]:
        ax.set_xlabel("angle")
    figure.savefig(path, dpi=110)


def draw_drifts(drifts: dict, path: Path) -> None:
    """Draw the change of energy over the periods, its largest value so far in each swing."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.0), layout="constrained")
    axes = figure.subplots(1, len(ROUNDS), sharex=True, sharey=True)
    for ax, size in zip(axes, ROUNDS, strict=True):
        for law, colour in COLOURS.items():
            for k, change in enumerate(drifts[size, law]):
                period = np.arange(1, len(change)) / 8
                worst = np.maximum.accumulate(change[1:])
                label = f"{law} kernel" if k == 0 else None
                ax.plot(period, worst, color=colour, linewidth=1.0, label=label)
        ax.set_yscale("log")
        ax.set_xscale("log")
        ax.set_title(f"{size} training trajectories", fontsize="medium")
        ax.set_xlabel("periods")
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("largest relative change of energy")
    axes[0].legend(frameon=False, fontsize="small", loc="lower right")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
