"""Batches of tasks carried out here, or by several processes at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import NamedTuple

from vectorfield import _backend
from vectorfield._progress import listening
from vectorfield.kernels import ExplicitKernel, ScalarKernel
from vectorfield.tuning.bench import Bench
from vectorfield.tuning.budget import Budget
from vectorfield.tuning.tasks import Task, carry_out
from vectorfield.tuning.trials import Trial

__all__ = ["Done", "carry_out_all", "is_light"]

EXACT, FEATURES = 2000, 8000  # rows up to which a fit gains nothing by threads of BLAS


class Done(NamedTuple):
    """What came of a task: its place in the batch, its trials, whether time allowed for all."""

    place: int
    trials: list[Trial]
    complete: bool


def is_light(bench: Bench, task: Task) -> bool:
    """Whether a task's fits are so small that BLAS is held to one thread for them.

    Light tasks are carried out side by side. The others have all cores, one after the other: each
    may need much of the memory. That does not depend on the number of processes, nor do results.
    """
    steps = bench.steps if task.steps is None else min(task.steps, bench.steps)
    kernel = task.plan.kernel
    if isinstance(kernel, ExplicitKernel):
        return steps <= FEATURES
    return steps * (1 if isinstance(kernel, ScalarKernel) else bench.d) <= EXACT


def carry_out_all(
    bench: Bench,
    tasks: Sequence[Task],
    substeps: int,
    budget: Budget,
    *,
    n_jobs: int | None = None,
    first: bool = False,
) -> Iterator[Done]:
    """Yield what comes of each task, in any order; those that time does not allow are left out.

    Args:
        bench: where they are judged.
        tasks: the tasks.
        substeps: those of the integrator to begin with.
        budget: the time.
        n_jobs: how many processes, as in scikit-learn: None is one, -1 as many as cores.
        first: whether the first task is carried out even where no time is left.
    """
    work = _Work(bench, substeps, budget)
    orders = [_Order(k, task, first and k == 0) for k, task in enumerate(tasks)]
    light = [order for order in orders if is_light(bench, order.task)]
    if len(light) > 1 and _count(n_jobs) > 1:
        yield from _elsewhere(work, light, _count(n_jobs))
        orders = [order for order in orders if not is_light(bench, order.task)]
    for order in orders:
        threads: AbstractContextManager[None] = (
            _backend.narrow_blas() if is_light(bench, order.task) else nullcontext()
        )
        with listening(None), threads:
            done = work(order)
        if done.trials:
            yield done


class _Order(NamedTuple):
    """A task, its place in the batch, and whether it is carried out even with no time left."""

    place: int
    task: Task
    always: bool


class _Work(NamedTuple):
    """What the tasks of a batch share."""

    bench: Bench
    substeps: int
    budget: Budget

    def __call__(self, order: _Order) -> Done:
        """Carry out a task, unless time is over."""
        if self.budget.over() and not order.always:
            return Done(order.place, [], False)
        done = carry_out(self.bench, order.task, self.substeps, self.budget.over)
        return Done(order.place, *done)

    def alone(self, order: _Order) -> Done:
        """Carry out a task in a process that has one core to itself."""
        with _backend.alone():
            return self(order)


def _count(n_jobs: int | None) -> int:
    if n_jobs is None or n_jobs == 1:
        return 1
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))


def _elsewhere(work: _Work, orders: Sequence[_Order], count: int) -> Iterator[Done]:
    """Carry tasks out in other processes.

    A process that ends without an answer, for want of memory say, takes the others with it. What
    is left then goes one by one to processes of its own, and what ends these is a failed trial.
    """
    from joblib import Parallel, delayed, parallel_config

    left = {order.place: order for order in orders}

    def send(chosen: Sequence[_Order]) -> Iterator[Done]:
        with parallel_config("loky", inner_max_num_threads=1):
            pool = Parallel(
                n_jobs=count, return_as="generator_unordered", max_nbytes=None, batch_size=1
            )
        for done in pool(delayed(work.alone)(order) for order in chosen):
            task = left.pop(done.place).task
            if done.trials:
                yield done._replace(trials=_named(task, done.trials))

    try:
        yield from send(orders)
    except BrokenProcessPool:
        for order in list(left.values()):
            try:
                yield from send([order])
            except BrokenProcessPool as error:
                task, reason = order.task, f"the process ended: {error}"
                levels = task.levels[:1] * len(task.iterations) or task.levels
                failed = work.bench.failures(task.plan, levels, task.stage, reason)
                yield Done(order.place, _named(task, failed), True)


def _named(task: Task, trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials with the task's own plans, not the copies that came back."""
    return [replace(trial, plan=task.plan_of(place)) for place, trial in enumerate(trials)]
