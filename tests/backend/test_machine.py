"""Threads: order, nesting, errors, and BLAS as it was however callers overlap."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from vectorfield._backend import alone, narrow_blas, one_blas, run_parallel


def blas_threads() -> list[int]:
    return [
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    ]


def test_results_come_in_the_order_of_the_items():
    assert run_parallel(lambda i: (time.sleep(0.01 * (5 - i)), i)[1], range(6)) == list(range(6))


def test_an_error_in_a_task_is_raised_and_leaves_blas_alone():
    before = blas_threads()
    with pytest.raises(ZeroDivisionError):
        run_parallel(lambda i: 1 / i, [1, 0, 2])
    assert blas_threads() == before


def test_a_task_may_run_tasks():
    inner = run_parallel(lambda i: sum(run_parallel(lambda j: i * j, range(50))), range(8))
    assert inner == [i * 1225 for i in range(8)]


def test_the_error_state_of_numpy_goes_along():
    with np.errstate(over="ignore"):
        values = run_parallel(lambda x: np.exp(np.full(3, x)), [1e3, 1e4])
    assert all(np.isinf(v).all() for v in values)


def test_overlapping_callers_leave_the_threads_of_blas_as_they_were():
    before = blas_threads()

    def later() -> None:
        time.sleep(0.05)
        run_parallel(lambda _: time.sleep(0.1), range(2))

    other = threading.Thread(target=later)
    other.start()
    with one_blas():
        run_parallel(lambda _: time.sleep(0.04), range(2))
    other.join()
    assert blas_threads() == before


def test_work_that_keeps_to_itself_has_one_thread_of_blas_and_no_pool():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        assert set(before) == {2}
        with narrow_blas():
            assert set(blas_threads()) == {1}
            with alone():
                assert set(blas_threads()) == {1}
                names = run_parallel(lambda _: threading.current_thread().name, range(4))
                assert set(names) == {threading.current_thread().name}
            assert set(blas_threads()) == {1}
        assert blas_threads() == before
        with pytest.raises(ZeroDivisionError), alone():
            run_parallel(lambda i: 1 / i, [1, 0, 2])
        assert blas_threads() == before
