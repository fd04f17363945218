"""A table goes in as it is: long form, irregular times, missing values.

A pandas table of measurements, one row a sample, is written to a CSV file and read back; rows
with a missing value cut a trajectory in two, and nothing is filled in. The columns say what is
what, in whatever order they come.

    python examples/dataframe.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import vectorfield as vf


def measurements() -> pd.DataFrame:
    """Forty runs of Van der Pol's oscillator, at 30 random times each; one value in 50 is lost."""
    rng = np.random.default_rng(0)
    system = vf.systems.VanDerPol()
    tables = []
    for run in range(40):
        hours = np.sort(rng.uniform(0.0, 6.0, size=30))
        states = vf.simulate(system, rng.uniform(-2.5, 2.5, size=2), hours).x
        tables.append(
            pd.DataFrame(
                {
                    "voltage": states[:, 0],
                    "run": f"run-{run}",
                    "hours": hours,
                    "current": states[:, 1],
                }
            )
        )
    table = pd.concat(tables, ignore_index=True)
    for column in ("voltage", "current"):
        table.loc[rng.random(len(table)) < 0.02, column] = np.nan
    return table


def main() -> None:
    table = measurements()
    print(table.head(3).to_string(index=False))
    print(f"... {len(table)} rows, {int(table.isna().sum().sum())} values missing\n")

    columns = {"trajectory": "run", "time": "hours", "features": ["voltage", "current"]}
    try:
        vf.Trajectories.from_frame(table, **columns)
    except vf.DataError as error:
        print(f"Gaps are never passed over in silence:\n  {error}\n")

    pieces = vf.Trajectories.from_frame(table, **columns, missing="split")
    print(f"missing='split': {pieces}")
    print(f"  ids such as {', '.join(pieces.ids[:3])}\n")

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "runs.csv")
        vf.write_trajectories(pieces, file)
        same = vf.read_trajectories(file).equals(pieces)
        print(f"Written to CSV and read back, equal to the last bit: {same}")

    train = pieces[: int(0.8 * len(pieces))]
    test = pieces[int(0.8 * len(pieces)) :]
    # The spline goes through the samples of a piece, however its times lie.
    model = vf.MOCK(vf.kernels.Gaussian(2.0), 1e-6, rule=vf.occupation.Spline()).fit(train)
    print(f"Skill on {len(test)} pieces left out: {model.score(test):.3f}")

    # Names, not positions: a table with its columns in another order means the same.
    where = pd.DataFrame({"current": [0.0, 1.0], "voltage": [1.0, 0.0]})
    rates = pd.DataFrame(model.predict(where), columns=model.feature_names_in_)
    exact = vf.systems.VanDerPol()(where[["voltage", "current"]].to_numpy())
    print(f"\nRates at two points:\n{rates.round(3).to_string(index=False)}")
    print(f"exact:\n{exact}")


if __name__ == "__main__":
    main()
