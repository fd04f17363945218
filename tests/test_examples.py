"""The examples run as they stand, without a warning, and print the figures that they promise.

`examples/demo.py` is run by `make demo`, which CI does in an environment of its own.
"""

import re
import subprocess
import sys
from pathlib import Path

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


def test_every_example_is_tested_here_or_run_by_make():
    tested = {"pendulum", "dataframe", "gridsearch", "demo"}
    assert {path.stem for path in EXAMPLES.glob("*.py")} == tested
