"""The core works where only its own five dependencies are installed.

`.ci/run` calls it in an environment made by `pip install .`, from a folder in which the source tree
is not on the path.
"""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path

import numpy as np

import vectorfield as vf

EXTRAS = (
    "cupy", "jax", "matplotlib", "optuna", "pandas", "polars", "pyarrow", "pysindy", "rich",
    "skopt", "torch", "typer",
)  # fmt: skip


def require(condition: bool, claim: str) -> None:
    """Say what holds; end with status 1 when it does not."""
    if not condition:
        raise SystemExit(f"core check failed: {claim}")
    print(f"ok  {claim}")


def rotations(n: int, times: np.ndarray) -> list[np.ndarray]:
    """Return exact solutions of x' = y, y' = -x from n starts on circles about 0."""
    radii = np.linspace(0.5, 1.5, n)
    return [r * np.stack([np.sin(times + r), np.cos(times + r)], axis=1) for r in radii]


def main() -> None:
    """Import, fit, simulate, save, load, and read data."""
    present = [name for name in EXTRAS if importlib.util.find_spec(name) is not None]
    require(not present, f"no extra can be imported (found: {', '.join(present) or 'none'})")
    require("site-packages" in str(vf.__file__), "the installed package is the one imported")

    times = np.linspace(0.0, 3.0, 61)
    xs = rotations(8, times)
    kernel = vf.kernels.Gaussian(length_scale=2.0)
    model = vf.MOCK(kernel=kernel, ridge=1e-9).fit(xs, times)
    path = model.simulate(xs[3][0], times)
    error = float(np.abs(path - xs[3]).max())
    require(error < 1e-2, f"a rotation is learned: largest error of a trajectory {error:.1e}")

    points = np.array([[0.5, 0.5], [-1.0, 0.2]])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rotation.vf"
        model.save(file)
        same = np.array_equal(vf.load(file)(points), model.predict(points))
        require(same, "a saved model predicts the same to the last bit")

        table = Path(folder) / "table.csv"
        rows = [
            f"{i},{float(t)!r},{float(x[0])!r},{float(x[1])!r}"
            for i, states in enumerate(xs)
            for t, x in zip(times, states, strict=True)
        ]
        table.write_text("\n".join(["trajectory,time,a,b", *rows]) + "\n", encoding="utf-8")
        read = vf.read_trajectories(table)
        same = read.equals(vf.Trajectories.from_arrays(xs, times, feature_names=["a", "b"]))
        require(same, "a CSV file is read to the last bit")

    pbc = vf.datasets.load("pbc")
    require(len(pbc.train) == 198, "the data set pbc is there, with its 198 training trajectories")


if __name__ == "__main__":
    main()
