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
        vf.MOCK(ridge=1e-9).fit(circle)
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


def test_a_file_gets_a_line_a_stage(circle):
    stream = io.StringIO()
    with vf.progress(stream):
        model = vf.MOCK(ridge=1e-9).fit(circle)
        model.simulate([1.0, 0.0], [0.0, 1.0])
    assert stream.getvalue().splitlines() == ["Gram matrix", "factor", "simulation"]


def test_without_rich(circle, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    stream = io.StringIO()
    with vf.progress(stream):
        vf.MOCK(ridge=1e-9).fit(circle)
    assert stream.getvalue().splitlines() == ["Gram matrix", "factor"]


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a POSIX terminal")
def test_a_terminal_gets_a_bar_that_is_taken_away(circle, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    leader, follower = os.openpty()
    with open(follower, "w") as terminal:
        with vf.progress(terminal):
            report("factor", 0.5)
            assert _progress._listener.get() is not None
        terminal.flush()
        os.write(follower, b"end of the test")
        shown = b""
        while b"end of the test" not in shown:
            shown += os.read(leader, 4096)
    os.close(leader)
    assert "factor" in shown.decode()
    assert _progress._listener.get() is None
