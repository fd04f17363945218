"""The examples run as they stand, without a warning, and print the figures that they promise.

`examples/demo.py` is run by `make demo`, which CI does in an environment of its own.
"""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def output(name, folder):
    """Run an example in an empty folder; return what it printed."""
    run = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / f"{name}.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    return run.stdout


def figure(pattern, text):
    found = re.search(pattern, text)
    assert found, text
    return float(found[1])


def test_pendulum_higher_rules_are_far_better_on_clean_data(tmp_path):
    text = output("pendulum", tmp_path)
    row = r" +(\S+) +\S+ +\S+\n"
    trapezoid = figure(r"Trapezoid\(\)" + row, text)
    lagrange = figure(r"Lagrange\(samples=8\)" + row, text)
    assert lagrange < 5e-6 < 5e-4 < trapezoid < 5e-3
    assert list(tmp_path.iterdir()) == []


def test_dataframe_reads_a_table_with_gaps(tmp_path):
    pytest.importorskip("pandas")
    text = output("dataframe", tmp_path)
    assert "use missing='split'" in text
    assert "equal to the last bit: True" in text
    assert figure(r"pieces left out: (\S+)", text) > 0.9
    assert list(tmp_path.iterdir()) == []


def test_gridsearch_chooses_on_folds_of_trajectories(tmp_path):
    text = output("gridsearch", tmp_path)
    oracle = figure(r"the same noisy starts: (\S+)", text)
    assert 0.5 < figure(r"read once: (\S+)", text) < oracle
    assert text.startswith("rank  skill")


def test_a_search_finds_the_pendulum_and_draws_nothing_unasked(tmp_path):
    text = output("search", tmp_path)
    assert figure(r"along 48 other swings: (\S+)", text) < 2e-3
    assert "chosen: " in text
    assert "runner-up: " in text
    assert list(tmp_path.iterdir()) == []


def test_pendulum_laws_keep_the_energy(tmp_path):
    text = output("pendulum_laws", tmp_path)
    number = r"(\d\S*)"

    def row(size, law):
        found = re.search(rf" {size}  {law} +\S+ +\S+ +{number} +{number} +(\S.*)", text)
        assert found, text
        return float(found[1]), float(found[2]), found[3]

    for law in ("divergence-free", "Hamiltonian"):
        assert row(60, law)[0] < 2e-6
    assert row(60, "scalar")[0] < 2e-6
    assert float(row(60, "divergence-free")[2]) < 1e-4
    scalar, free = row(6, "scalar"), row(6, "divergence-free")
    assert free[0] < scalar[0] / 2
    assert float(free[2]) < float(scalar[2]) / 100
    assert figure(r"their fields differ by (\S+)\.\n", text) < 1e-5
    assert figure(r"off by (\S+) over the test", text) < 1e-4
    assert list(tmp_path.iterdir()) == []


def test_drifters_are_followed_better_than_standing_still(tmp_path):
    text = output("drifters", tmp_path)

    def row(name):
        found = re.search(rf"{name} +(\S+) +(\S+) +(\S+) +(\S+)", text)
        assert found, text
        return [float(value) for value in found.groups()]

    null = row("null model")
    for law in ("scalar", "divergence-free", "sum of both parts"):
        folds, err, one_err, skill = row(law)
        assert all(np.less([folds, err, one_err], null[:3]))
        assert skill > 0.1
    assert figure(r"divergence-free +\S+ +\S+ +\S+ +\S+ +(\S+)", text) < 1e-12
    assert list(tmp_path.iterdir()) == []


def test_every_example_is_tested_here_or_run_by_make():
    tested = {"pendulum", "dataframe", "gridsearch", "demo", "pendulum_laws", "drifters", "search"}
    assert {path.stem for path in EXAMPLES.glob("*.py")} == tested
