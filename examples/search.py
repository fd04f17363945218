"""A search on held-out trajectories: what it chose, what it tried, and what that was worth.

Twelve swings of a pendulum, one second each, and not a setting given.

    python examples/search.py --plot docs/img
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import vectorfield as vf


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--plot", type=Path, help="draw the figure into this folder")
    folder = arguments.parse_args().plot

    data = vf.datasets.load("pendulum")
    train = data.train[:12]
    model = vf.MOCK(search=vf.Search(folds=2)).fit(train)
    print(model.report_)

    states = data.train[12:].states
    exact = data.field(states)
    error = np.linalg.norm(model.predict(states) - exact) / np.linalg.norm(exact)
    print(f"\nerror of the field beside the true one, along 48 other swings: {error:.1e}")
    if folder is not None:
        from vectorfield.plots import search

        folder.mkdir(parents=True, exist_ok=True)
        search(model.report_)[0].figure.savefig(folder / "search.png", dpi=110)
        print(f"figure: {folder / 'search.png'}")


if __name__ == "__main__":
    main()
