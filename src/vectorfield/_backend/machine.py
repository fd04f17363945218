"""The machine: its memory, its cores, and who of BLAS's threads and ours may use them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["alone", "check_memory", "n_threads", "narrow_blas", "one_blas", "run_parallel"]


@cache
def n_threads() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_memory(
    count: int, purpose: str, remedy: str = "fit fewer trajectories, or take every k-th sample"
) -> None:
    """Raise MemoryError, with the figures, if ``count`` doubles cannot fit into this machine.

    A system that lends more memory than it has would end the process without a word instead.
    """
    needed, free = 8 * count, _available_memory()
    if free is not None and needed > free:
        raise MemoryError(
            f"{purpose} needs {needed / 2**30:.1f} GiB of memory and {free / 2**30:.1f} GiB are "
            f"available; {remedy}"
        )


def _available_memory() -> int | None:
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            fields = dict(line.split(":", 1) for line in lines)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):  # not Linux: no promise, no check
        return None


def run_parallel(task: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Call ``task`` on every item, on all cores, with BLAS held to one thread in each.

    NumPy's element-wise functions and BLAS release the interpreter lock, so threads run side
    by side. The results come in the order of the items; the first error is raised. Called from
    inside a task it runs the items one by one: the threads are taken already.
    """
    work = list(items)
    if len(work) <= 1 or n_threads() == 1 or getattr(_worker, "busy", False):
        return [task(item) for item in work]
    contexts = [copy_context() for _ in work]  # NumPy's errstate goes along
    with _held(_blas()):
        return list(_pool().map(lambda context, item: context.run(task, item), contexts, work))


@contextmanager
def one_blas() -> Iterator[None]:
    """Hold SciPy's BLAS to one thread while NumPy's does the work.

    Installed as wheels, NumPy and SciPy bring an OpenBLAS each. The idle threads of one spin for
    a while before they sleep, and take the cores from the other: a blocked factorisation that
    alternates between NumPy's products and SciPy's small triangular solves ran at half its speed.
    """
    libraries = _blas()
    second = [library for library in libraries if "scipy.libs" in str(library.filepath)]
    with _held(second if len(libraries) > 1 else []):
        yield


@contextmanager
def narrow_blas() -> Iterator[None]:
    """Hold every BLAS to one thread, `run_parallel` excepted, for many small pieces of work.

    A matrix of a few hundred rows gains nothing by a second thread. Where other processes want the
    cores, threads that wait for one another cost a factor of ten.
    """
    with _held(_blas()):
        yield


@contextmanager
def alone() -> Iterator[None]:
    """Keep all work of this thread in it: one thread of BLAS, and no pool.

    For processes that share the cores. Results are those of `narrow_blas`, to the last bit.
    """
    before = getattr(_worker, "busy", False)
    _worker.busy = True
    try:
        with _held(_blas()):
            yield
    finally:
        _worker.busy = before


_worker = threading.local()
_lock = threading.Lock()
_holds: dict[str, list[int]] = {}  # library: how many hold it to one thread, threads before


@contextmanager
def _held(libraries: Iterable[Any]) -> Iterator[None]:
    """Hold libraries to one thread; counted, since callers overlap and end in any order."""
    libraries = list(libraries)
    with _lock:
        for library in libraries:
            hold = _holds.setdefault(str(library.filepath), [0, 0])
            if hold[0] == 0:
                hold[1] = library.num_threads
                library.set_num_threads(1)
            hold[0] += 1
    try:
        yield
    finally:
        with _lock:
            for library in libraries:
                hold = _holds[str(library.filepath)]
                hold[0] -= 1
                if hold[0] == 0:
                    library.set_num_threads(hold[1])


@cache
def _blas() -> tuple[Any, ...]:
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


def _begin_worker() -> None:
    _worker.busy = True


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads(), "vectorfield", initializer=_begin_worker)


if hasattr(os, "register_at_fork"):  # the threads of a pool do not survive a fork
    os.register_at_fork(after_in_child=_pool.cache_clear)
