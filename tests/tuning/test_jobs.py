"""Batches: results that do not depend on who judges, in which order, or on who fails."""

import os
import signal

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import vectorfield as vf
from vectorfield.kernels import CurlFree, Gaussian, Laplace, Monomials, Polynomial
from vectorfield.plan import Plan
from vectorfield.tuning import Search, Study, Windowed
from vectorfield.tuning.bench import Bench
from vectorfield.tuning.budget import Budget
from vectorfield.tuning.folds import folds
from vectorfield.tuning.heldout import levels
from vectorfield.tuning.jobs import carry_out_all, is_light
from vectorfield.tuning.judge import Judge
from vectorfield.tuning.tasks import Task, carry_out

POLYNOMIALS = (Monomials(1), Monomials(2))


def bench_of(data, count=2):
    parts = folds(data, None, count)
    return Bench(parts, Windowed(), levels(parts[0].held), np.ones(data.d), estimate=False)


def tasks_of(*kernels, ladder=(1.0, 1e-3, 1e-6)):
    return [Task(Plan(kernel), ladder, "test") for kernel in kernels]


@pytest.mark.parametrize("noise", [0.0, 0.05], ids=["clean", "noisy"])
def test_a_search_by_two_processes_is_that_by_one(orbits, same_reports, noise, tmp_path):
    pytest.importorskip("optuna")
    data, study = orbits(noise=noise), Study(tmp_path / "study.db")
    plan, left_open = Plan(), frozenset(("ridge", "rule", "noise", "refine"))
    one = Search(folds=2)(plan, left_open, data)
    two = Search(folds=2, n_jobs=2, study=study)(plan, left_open, data)
    same_reports(one, two)
    stored = Search(folds=2, study=study)(plan, left_open, data)  # by either, for the other
    assert [t.seconds for t in stored.trials] == [t.seconds for t in two.trials]
    assert len({trial.stage for trial in one.trials}) > 3


def test_the_order_in_a_batch_does_not_matter(orbits):
    bench = bench_of(orbits())
    tasks = tasks_of(Gaussian(1.0), Laplace(2.0), Monomials(2), Polynomial(2))
    forth = Judge(Budget(None))(bench, tasks, done=0.5)
    back = Judge(Budget(None))(bench, tasks[::-1], done=0.5)[::-1]
    for a, b in zip(forth, back, strict=True):
        assert [t.score for t in a] == [t.score for t in b]


def test_the_floor_of_substeps_is_raised_between_batches_only(orbits):
    far = vf.Trajectories.from_arrays([x[::2] for _, x in orbits()], 0.4)
    bench, judge = bench_of(far), Judge(Budget(None))
    rule = vf.occupation.Lagrange(6)  # so exact that one step of the integrator is too coarse
    tasks = [Task(Plan(kernel, rule=rule), (1e-8, 1e-12), "test") for kernel in POLYNOMIALS]
    first = judge(bench, tasks, done=0.1)
    fresh = [carry_out(bench, task, 1, lambda: False)[0] for task in tasks]
    assert [t.score for group in first for t in group] == [t.score for g in fresh for t in g]
    best = min((t for group in first for t in group), key=lambda t: t.score)
    assert best.substeps > 1
    again = judge(bench, tasks, done=0.2)
    assert min(t.substeps for group in again for t in group) >= best.substeps


def test_ladders_go_on_where_their_end_is_best(orbits):
    bench = bench_of(orbits())
    task = Task(Plan(Gaussian(3.0)), (1e-1, 1e-2), "test")
    trials, complete = carry_out(bench, task, 1, lambda: False)
    assert complete
    assert [t.level for t in trials[2:5]] == pytest.approx([1e-3, 1e-4, 1e-5])
    assert trials[-2].score == min(t.score for t in trials)
    trials, complete = carry_out(bench, task, 1, lambda: True)
    assert (len(trials), complete) == (2, False)


class Broken(RuntimeError):
    """What a kernel or prior of a user's may raise."""


def fails(x):
    raise Broken("no value here")


def ends(x):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_a_candidate_raises_is_its_status(orbits, n_jobs):
    bench = bench_of(orbits())
    bad = Task(Plan(Gaussian(1.0), prior=vf.prior.Known(fails)), (1e-3,), "test")
    tasks = [*tasks_of(Gaussian(1.0)), bad, *tasks_of(Laplace(1.0))]
    answers = sorted(carry_out_all(bench, tasks, 1, Budget(None), n_jobs=n_jobs))
    assert [answer.place for answer in answers] == [0, 1, 2]
    (failed,) = answers[1].trials
    assert failed.status == "Broken: no value here"
    assert failed.plan is bad.plan
    assert not failed.ok
    assert all(t.ok for answer in answers[::2] for t in answer.trials[:3])


@pytest.mark.parametrize("prior", [None, vf.prior.Known(ends)], ids=["ok", "killed"])
def test_trials_from_other_processes_keep_the_plan_of_each_iteration(orbits, prior):
    bench, counts = bench_of(orbits(count=4, samples=10)), (0, 2, 4)
    plan = Plan(Monomials(1), prior=prior, refine=vf.Rollouts(4, starts=2))
    path = Task(plan, (1e-3,), "test", iterations=counts)
    tasks = [path, *tasks_of(Gaussian(1.0))]
    answers = {a.place: a.trials for a in carry_out_all(bench, tasks, 1, Budget(None), n_jobs=2)}
    assert [t.plan.refine.iterations for t in answers[0]] == list(counts)
    assert all(t.ok == (prior is None) for t in answers[0])


def test_a_process_that_is_killed_costs_its_own_task_alone(orbits):
    bench = bench_of(orbits())
    deadly = Task(Plan(Gaussian(1.0), prior=vf.prior.Known(ends)), (1e-3, 1e-4), "test")
    tasks = [*tasks_of(Gaussian(1.0)), deadly, *tasks_of(Laplace(1.0), Polynomial(2))]
    answers = {a.place: a.trials for a in carry_out_all(bench, tasks, 1, Budget(None), n_jobs=2)}
    assert sorted(answers) == [0, 1, 2, 3]
    assert all(t.status.startswith("the process ended") for t in answers[1])
    assert len(answers[1]) == 2
    for place in (0, 2, 3):
        alone = carry_out(bench, tasks[place], 1, lambda: False)[0]
        assert [t.score for t in answers[place]] == [t.score for t in alone]


def test_small_fits_are_told_from_large_ones(orbits):
    bench = bench_of(orbits())
    assert bench.steps == 57
    assert is_light(bench, Task(Plan(Gaussian(1.0)), (1.0,), "test"))
    wide = bench_of(orbits(250, 20))
    assert wide.steps > 2000
    assert not is_light(wide, Task(Plan(Gaussian(1.0)), (1.0,), "test"))
    assert is_light(wide, Task(Plan(Gaussian(1.0)), (1.0,), "test", steps=1200))
    assert not is_light(wide, Task(Plan(CurlFree(Gaussian(1.0))), (1.0,), "test", steps=1200))
    assert is_light(wide, Task(Plan(Monomials(2)), (1.0,), "test"))


def test_small_fits_have_one_thread_of_blas_and_large_ones_all(orbits, monkeypatch):
    bench, seen = bench_of(orbits()), []

    def threads(x):
        seen.append({info["num_threads"] for info in threadpool_info() if "blas" in info.values()})
        return 0.0 * x

    task = Task(Plan(Gaussian(1.0), prior=vf.prior.Known(threads)), (1.0,), "test", widen=False)
    with threadpool_limits(2, user_api="blas"):
        list(carry_out_all(bench, [task], 1, Budget(None)))
        assert seen
        assert all(counts == {1} for counts in seen)
        seen.clear()
        monkeypatch.setattr("vectorfield.tuning.jobs.EXACT", 10)
        list(carry_out_all(bench, [task], 1, Budget(None)))
        assert seen[0] == {2}


def test_no_time_is_left_but_the_first_task_is_carried_out(orbits):
    bench, budget = bench_of(orbits()), Budget(1e-9)
    tasks = tasks_of(Gaussian(1.0), Laplace(1.0), Polynomial(2))
    for n_jobs in (1, 2):
        answers = list(carry_out_all(bench, tasks, 1, budget, n_jobs=n_jobs, first=True))
        assert [(a.place, len(a.trials)) for a in answers] == [(0, 3)]
        assert not list(carry_out_all(bench, tasks, 1, budget, n_jobs=n_jobs))


def test_wrong_numbers_of_processes_are_refused():
    with pytest.raises(ValueError, match="n_jobs must be None, a positive number or -1"):
        Search(n_jobs=0)
    with pytest.raises(TypeError, match="n_jobs must be a whole number"):
        Search(n_jobs=1.5)
