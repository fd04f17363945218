"""Reports of progress: they rise to 1, come from every stage, and go where they are wanted."""

from __future__ import annotations

import io
import os
import sys

import numpy as np
import pytest

import vectorfield as vf
from vectorfield import _progress
from vectorfield._progress import listening, report


@pytest.fixture
def circle() -> vf.Trajectories:
    t = np.linspace(0.0, 6.0, 801)
    return vf.Trajectories.from_arrays(np.stack([np.cos(t), np.sin(t)], axis=1), t)


def test_nobody_listens():
    report("anything", 0.5)  # goes nowhere
    seen: list[float] = []
    with listening(lambda stage, done: seen.append(done)):
        report("a", 0.25)
        with listening(None):
            report("a", 0.5)
    report("a", 1.0)
    assert seen == [0.25]


def test_a_fit_reports_its_stages_up_to_the_end(circle):
    seen: list[tuple[str, float]] = []
    with listening(lambda stage, done: seen.append((stage, done))):
        vf.MOCK(ridge=1e-9, search=False).fit(circle)
    for stage in ("Gram matrix", "factor"):
        values = [done for name, done in seen if name == stage]
        assert len(values) > 1
        assert max(values) == pytest.approx(1.0)
        assert min(values) > 0.0


@pytest.mark.parametrize("method", ["DOP853", "Radau"])
def test_a_simulation_reports_up_to_the_end(method):
    seen: list[float] = []
    with listening(lambda stage, done: seen.append(done)):
        vf.simulate(lambda x: -x, [[1.0], [2.0]], [0.0, 1.0, 3.0], method=method)
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1.0)


@pytest.mark.parametrize("max_time", [None, 1e-9], ids=["", "no time"])
def test_a_search_reports_its_trials_and_the_best_of_them(circle, max_time):
    seen: list[tuple[str, float]] = []
    said: list[str] = []
    search = vf.Search(folds=2, max_time=max_time)
    with listening(lambda stage, done: seen.append((stage, done)), said.append):
        report = search(vf.Plan(vf.kernels.Linear(1.0)), frozenset(("ridge", "rule")), circle[:])
    stages, done = zip(*seen, strict=True)
    assert all(stage.startswith("search: ") for stage in stages)  # and nothing of fits inside
    assert list(done) == sorted(done)
    assert done[-1] == 1.0
    assert said[0] == "0 trials"
    lowest = min(trial.score for trial in report.trials)
    assert said[-1] == f"{len(report.trials)} trials, best {lowest:.3g}"
    if max_time is not None:
        assert done[-2] == 1.0  # the time is used up
    else:
        assert stages[0] == "search: kernels"
        assert "search: parts" in stages
        assert any(0.0 < value < 1.0 for value in done)


def test_a_file_gets_a_line_a_stage(circle):
    stream = io.StringIO()
    with vf.progress(stream):
        model = vf.MOCK(ridge=1e-9, search=False).fit(circle)
        model.simulate([1.0, 0.0], [0.0, 1.0])
    assert stream.getvalue().splitlines() == ["Gram matrix", "factor", "simulation"]


def test_without_rich(circle, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    stream = io.StringIO()
    with vf.progress(stream):
        vf.MOCK(ridge=1e-9, search=False).fit(circle)
    assert stream.getvalue().splitlines() == ["Gram matrix", "factor"]


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a POSIX terminal")
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (("factor", 0.5), "factor"),
        (("search: sums", 0.7, "38 trials, best 0.01"), "search: sums (38 trials, best 0.01)"),
    ],
    ids=["stage", "search"],
)
def test_a_terminal_gets_a_bar_that_is_taken_away(said, expected, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    leader, follower = os.openpty()
    with open(follower, "w") as terminal:
        with vf.progress(terminal):
            report(*said)
            assert _progress._listener.get() is not None
        terminal.flush()
        os.write(follower, b"end of the test")
        shown = b""
        while b"end of the test" not in shown:
            shown += os.read(leader, 4096)
    os.close(leader)
    assert expected in shown.decode()
    assert _progress._listener.get() is None
