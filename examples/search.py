"""A search on held-out trajectories: what it chose, what it tried, and what it was worth.

Sixteen swings of a pendulum, each observed for five seconds with a little noise. Nothing is given
to the model but these.

    python examples/search.py --plot docs/img
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import vectorfield as vf

NOISE = 0.02


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--plot", type=Path, help="draw the figure into this folder")
    folder = arguments.parse_args().plot

    system = vf.systems.Pendulum()
    rng = np.random.default_rng(0)
    t = np.linspace(0.0, 5.0, 51)
    starts = rng.uniform((-2.0, -1.5), (2.0, 1.5), size=(16, 2))
    truth = vf.simulate(system, starts, t, rtol=1e-9).x
    noisy = truth + NOISE * rng.normal(size=truth.shape)

    model = vf.MOCK(search=vf.Search(folds=2)).fit(list(noisy), t)
    report = model.report_
    print(report)

    states = truth.reshape(-1, 2)
    exact = system(states)
    error = np.linalg.norm(model.predict(states) - exact) / np.linalg.norm(exact)
    print(f"\nnoise, estimated: {report.noise.round(3)}; true: {NOISE}")
    print(f"error of the field beside the true one: {error:.3f}")
    if folder is not None:
        from vectorfield.plots import search

        folder.mkdir(parents=True, exist_ok=True)
        search(report)[0].figure.savefig(folder / "search.png", dpi=110)
        print(f"figure: {folder / 'search.png'}")


if __name__ == "__main__":
    main()
