"""Studies: a search that was killed goes on where it stopped, and nothing stands for another."""

import dataclasses
import functools
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import vectorfield as vf
from vectorfield.kernels import Gaussian, Monomials
from vectorfield.plan import Plan
from vectorfield.tuning import OneStep, Search, Study, Windowed
from vectorfield.tuning.bench import Bench
from vectorfield.tuning.budget import Budget
from vectorfield.tuning.fingerprint import fingerprint, library
from vectorfield.tuning.folds import folds
from vectorfield.tuning.heldout import levels
from vectorfield.tuning.judge import Judge
from vectorfield.tuning.tasks import Task

optuna = pytest.importorskip("optuna")

OPEN = frozenset(("ridge", "rule", "noise"))

PROGRAM = """
import sys
import numpy as np, vectorfield as vf

data = np.load(sys.argv[1])
xs = vf.Trajectories.from_arrays(list(data["x"]), data["t"])
search = vf.Search(folds=2, study=vf.tuning.Study(sys.argv[2]))
search(vf.Plan(), frozenset(("ridge", "rule", "noise")), xs)
"""


def stored(path):
    storage = optuna.storages.RDBStorage(f"sqlite:///{path}")
    try:
        study = optuna.load_study(study_name="vectorfield", storage=storage)
        return study.get_trials(deepcopy=False)
    except KeyError:  # not there yet
        return []
    finally:
        storage.remove_session()
        storage.engine.dispose()


def test_a_search_that_is_killed_goes_on_where_it_stopped(orbits, same_reports, tmp_path):
    data = orbits()
    np.savez(tmp_path / "data.npz", x=np.stack([x for _, x in data]), t=next(iter(data))[0])
    program, path = tmp_path / "program.py", tmp_path / "study.db"
    program.write_text(textwrap.dedent(PROGRAM))
    command = [sys.executable, str(program), str(tmp_path / "data.npz"), str(path)]
    source = str(tmp_path.joinpath(vf.__file__).parents[1])
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": source})
    end = time.monotonic() + 300.0
    while len(stored(path)) < 20 if path.exists() else True:
        assert process.poll() is None, "the search ended before it could be killed"
        assert time.monotonic() < end
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = stored(path)

    study = Study(path)
    resumed = Search(folds=2, study=study)(Plan(), OPEN, data)
    undisturbed = Search(folds=2)(Plan(), OPEN, data)
    same_reports(resumed, undisturbed)
    assert 20 <= len(kept) < len(resumed.trials)

    seconds = {trial.user_attrs["seconds"] for trial in kept}
    taken = [trial for trial in resumed.trials if trial.seconds in seconds]
    assert len(taken) >= len(kept) - 12  # the last task may have been stored in part
    assert not any(trial.seconds in seconds for trial in undisturbed.trials)  # no coincidence
    before = len(stored(path))
    again = Search(folds=2, study=study)(Plan(), OPEN, data)
    same_reports(again, resumed)
    assert [t.seconds for t in again.trials] == [t.seconds for t in resumed.trials]
    assert len(stored(path)) == before


def tasks_done(data, path, objective=None, plan=None, ladder=(1.0, 1e-3)):
    """Judge one task; say how many of its trials were taken from the study."""
    parts = folds(data, None, 2)
    objective = Windowed() if objective is None else objective
    bench = Bench(parts, objective, levels(parts[0].held), np.ones(data.d), estimate=False)
    task = Task(Plan(Gaussian(2.0)) if plan is None else plan, ladder, "test", widen=False)
    with Study(path).open() as record:
        found = record.find(bench, task, 1)
        Judge(Budget(None), record=record)(bench, [task], done=1.0)
    return 0 if found is None else len(found)


def test_other_data_plans_and_objectives_find_nothing(orbits, tmp_path):
    path, data = tmp_path / "study.db", orbits()
    assert tasks_done(data, path) == 0
    assert tasks_done(data, path) == 2
    states = data.states.copy()
    states[17, 1] = np.nextafter(states[17, 1], 9.0)
    assert tasks_done(dataclasses.replace(data, states=states), path) == 0
    assert tasks_done(dataclasses.replace(data, times=data.times * 1.5), path) == 0
    assert tasks_done(data[::-1], path) == 0
    assert tasks_done(data, path, objective=OneStep()) == 0
    assert tasks_done(data, path, ladder=(1.0, 1e-4)) == 0
    for plan in (
        Plan(Gaussian(np.nextafter(2.0, 3.0))),
        Plan(Gaussian(2.0), standardize=False),
        Plan(Gaussian(2.0), prior=vf.prior.Known(lambda x: -x)),
        Plan(Gaussian(2.0), prior=vf.prior.Known(lambda x: -2.0 * x)),
    ):
        assert tasks_done(data, path, plan=plan) == 0
        assert tasks_done(data, path, plan=plan) == 2


def test_trials_are_those_of_the_study_to_the_last_bit(orbits, tmp_path):
    data = orbits()
    parts = folds(data, None, 2)
    bench = Bench(parts, Windowed(), levels(parts[0].held), np.ones(2), estimate=False)
    plans = Plan(Gaussian(1.0)), Plan(Gaussian((1.0, 2.0, 3.0))), Plan(Monomials(2))
    tasks = [Task(plan, (1.0, 1e-3, 1e-17), "test") for plan in plans]
    with Study(tmp_path / "a.db").open() as record:
        fresh = Judge(Budget(None), record=record)(bench, tasks, done=1.0)
    with Study(tmp_path / "a.db").open() as record:
        replayed = [record.find(bench, task, 1) for task in tasks]
    for task, group, other in zip(tasks, fresh, replayed, strict=True):
        for a, b in zip(group, other, strict=True):
            assert b.plan is task.plan
            for name in ("level", "score", "spread", "ratios", "status", "seconds", "observations"):
                np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
            np.testing.assert_array_equal(a.errors, b.errors)
    assert {t.status for t in replayed[1]} == {t.status for t in fresh[1]}

    shown = stored(tmp_path / "a.db")
    assert {t.user_attrs["kernel"] for t in shown} == {repr(plan.kernel) for plan in plans}
    for trial in shown:
        failed = trial.user_attrs["status"] != "ok"
        assert (trial.state is optuna.trial.TrialState.FAIL) == failed
        assert trial.params["level"] == trial.user_attrs["level"]
        assert trial.params["steps"] == bench.steps
    lengths = [t.params.get("length_scale") for t in shown]
    assert set(lengths) == {1.0, None}


def test_any_storage_of_optuna_by_its_url(orbits, tmp_path):
    study = Study(f"sqlite:///{tmp_path / 'by-url.db'}", "mine")
    data = orbits(count=4)
    plan = Plan(Gaussian(2.0), 1e-6)
    first, again = (Search(folds=2, study=study)(plan, frozenset(), data) for _ in range(2))
    assert [t.seconds for t in first.trials] == [t.seconds for t in again.trials]
    names = optuna.study.get_all_study_names(study.url)
    assert names == ["mine"]


def test_wrong_studies_are_refused(tmp_path, monkeypatch):
    with pytest.raises(TypeError, match="storage must be a text"):
        Study(3)
    with pytest.raises(TypeError, match="name must be a text"):
        Study("a.db", "")
    with pytest.raises(TypeError, match=r"study must be a Study such as vf\.tuning\.Study"):
        Search(study="a.db")
    with pytest.raises(FileNotFoundError, match="there is no folder"), Study("no/a.db").open():
        pass
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(vf.MissingExtraError, match=r"vectorfield\[search\]"), Study().open():
        pass


def plus(x, by=1.0):
    return x + by


def minus(x, by=1.0):
    return x - by


def scaled(factor):
    return lambda x: factor * plus(x)


class Custom:
    """A callable of somebody's."""

    def __init__(self, by):
        self.by = by

    def __call__(self, x):
        return plus(x, self.by)


def test_fingerprints_tell_values_apart():
    values = [
        None, True, 1, 1.0, 1.0 + 1e-16 + 2.3e-16, -0.0, 0.0, "1", b"1", (1,), [1], {1}, {"a": 1},
        np.float32(1.5), np.ones(2), np.ones((2, 1)), np.ones(2, dtype=np.float32), np.arange(2.0),
        plus, minus, functools.partial(plus, by=2.0), functools.partial(plus, by=3.0),
        scaled(2.0), scaled(3.0), Custom(1.0), Custom(2.0), np.sin, np.cos, len, np.sum, np.mean,
        np.linalg.norm, vf.simulate, vf.rollout,
        Gaussian(1.0), Gaussian(2.0), Monomials(1), Plan(), Plan(Gaussian(3.0)),
        vf.prior.Known(plus), vf.prior.Known(minus), vf.systems.VanDerPol(), vf.systems.Lorenz63(),
        np.array([1, "a"], dtype=object), float("nan"), float("inf"), Custom(1.0).__call__,
        np.linspace(0.0, 1.0, 5000), np.nextafter(np.linspace(0.0, 1.0, 5000), 2.0),
    ]  # fmt: skip
    seen = [fingerprint(value) for value in values]
    assert len(set(seen)) == len(values)
    assert seen == [fingerprint(value) for value in values]
    assert fingerprint(np.float64(0.1)) == fingerprint(0.1)
    assert fingerprint("a", "b") != fingerprint("ab")
    assert fingerprint(scaled(2.0)) == fingerprint(scaled(2.0))
    with pytest.raises(TypeError, match="cannot be told from others of its kind"):
        fingerprint(np.random.default_rng(0))


def test_functions_count_with_what_they_refer_to():
    def made(number, body="by * x"):
        names = {"by": number, "np": np, "__name__": "somewhere"}
        exec(f"def inner(x):\n    return {body}\ndef outer(x):\n    return inner(x)", names)
        return names["outer"]

    assert fingerprint(made(2.0)) == fingerprint(made(2.0))
    assert fingerprint(made(2.0)) != fingerprint(made(3.0))
    assert fingerprint(made(2.0)) != fingerprint(made(2.0, "by + x"))
    assert fingerprint(made(np.arange(3.0))) != fingerprint(made(np.arange(4.0)))
    assert fingerprint(made(2.0, "np.sin(x)")) != fingerprint(made(2.0, "np.cos(x)"))

    def again(x, count=3):
        return x if count == 0 else again(x, count - 1)

    assert fingerprint(again) == fingerprint(again)  # which refers to itself


def test_fingerprints_are_those_of_other_processes():
    code = (
        "import numpy as np, vectorfield as vf\n"
        "from vectorfield.tuning.fingerprint import fingerprint, library\n"
        "plan = vf.Plan(prior=vf.prior.Known(lambda x: {'a', 'b', 'c'} and -x))\n"
        "print(fingerprint(plan, np.ones(3), {'u', 'v', 'w'}), library())\n"
    )
    source = os.path.dirname(os.path.dirname(vf.__file__))
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": source, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
    assert found.pop().split()[1] == library()
