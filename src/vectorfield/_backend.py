"""The one module that knows array libraries, accelerators and threads.

The numerical core is written against the array-API namespace of its input. What the standard
lacks is here: in-place functions, sparse times dense, triangular factors, host copies, and a
thread pool in which every thread has BLAS to itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from typing import Any

import array_api_compat
import numpy as np
import scipy.sparse as sp
from scipy.linalg import blas, lapack
from threadpoolctl import ThreadpoolController

__all__ = [
    "array_like",
    "check_memory",
    "cholesky",
    "device",
    "exp_inplace",
    "is_array",
    "is_numpy",
    "namespace",
    "run_parallel",
    "solve_right",
    "solve_triangle",
    "sparse_apply",
    "sqrt_inplace",
    "to_numpy",
    "write_lower",
]


def namespace(*arrays: Any) -> Any:
    """Return the array-API namespace of the arrays."""
    return array_api_compat.array_namespace(*arrays)


def is_array(x: Any) -> bool:
    """Whether ``x`` is an array of a library with an array-API namespace."""
    return bool(array_api_compat.is_array_api_obj(x))


def is_numpy(x: Any) -> bool:
    """Whether ``x`` lives in NumPy, where blocks, threads and LAPACK are ours to arrange."""
    return isinstance(x, np.ndarray)


def to_numpy(x: Any) -> np.ndarray:
    """Copy an array to the host as a NumPy array (no copy if it is one)."""
    if isinstance(x, np.ndarray) or not is_array(x):
        return np.asarray(x)
    if array_api_compat.is_cupy_array(x):
        return np.asarray(x.get())
    if array_api_compat.is_torch_array(x):
        return np.asarray(x.detach().cpu().numpy())
    return np.asarray(x)


def array_like(values: Any, like: Any) -> Any:
    """Return ``values`` as a float64 array of the library and on the device of ``like``."""
    if isinstance(like, np.ndarray):
        return np.asarray(to_numpy(values), dtype=np.float64)
    xp = namespace(like)
    device = array_api_compat.device(like)
    if is_array(values) and not isinstance(values, np.ndarray):
        return array_api_compat.to_device(values, device)
    return xp.asarray(
        np.ascontiguousarray(values, dtype=np.float64), dtype=xp.float64, device=device
    )


def exp_inplace(x: Any) -> Any:
    """x <- exp(x), and return it."""
    if isinstance(x, np.ndarray):
        return np.exp(x, out=x)
    if array_api_compat.is_torch_array(x):
        return x.exp_()
    x[...] = namespace(x).exp(x)
    return x


def sqrt_inplace(x: Any) -> Any:
    """x <- sqrt(max(x, 0)), and return it: rounding may have left tiny negative squares."""
    if isinstance(x, np.ndarray):
        np.maximum(x, 0.0, out=x)
        return np.sqrt(x, out=x)
    if array_api_compat.is_torch_array(x):
        return x.clamp_(min=0.0).sqrt_()
    xp = namespace(x)
    x[...] = xp.sqrt(xp.maximum(x, xp.zeros_like(x)))
    return x


def sparse_apply(matrix: sp.csr_array, x: Any) -> Any:
    """Return the product of a SciPy sparse matrix (S, P) and a dense array (P, k).

    Cost: 2 k nnz operations.
    """
    if isinstance(x, np.ndarray):
        return matrix @ x
    if array_api_compat.is_torch_array(x):
        import torch

        # SciPy's canonical CSR is sorted and without repeats, which is what coalesced means; the
        # CSR layout of PyTorch would do as well but warns that it is in beta
        coordinates = np.stack(sp.coo_array(matrix).coords).astype(np.int64)
        device_matrix = torch.sparse_coo_tensor(
            torch.tensor(coordinates, device=x.device),
            torch.tensor(matrix.data, dtype=x.dtype, device=x.device),
            size=matrix.shape,
            is_coalesced=True,
            check_invariants=False,
        )
        return device_matrix @ x
    if array_api_compat.is_cupy_array(x):
        from cupyx.scipy import sparse as cupy_sparse

        return cupy_sparse.csr_matrix(sp.csr_matrix(matrix)) @ x
    raise TypeError(
        f"no sparse product for arrays of type {type(x).__name__}; use NumPy, PyTorch or CuPy"
    )


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_blas() -> Iterator[None]:
    """Hold SciPy's BLAS to one thread while NumPy's does the work.

    Installed as wheels, NumPy and SciPy bring an OpenBLAS each. The idle threads of one spin for
    a while before they sleep, and take the cores from the other: a blocked factorisation that
    alternates between NumPy's products and SciPy's small triangular solves ran at half its speed.
    """
    libraries = _blas().select(user_api="blas").lib_controllers
    if len(libraries) < 2:
        yield
        return
    second = [library for library in libraries if "scipy.libs" in str(library.filepath)]
    before = [library.num_threads for library in second]
    try:
        for library in second:
            library.set_num_threads(1)
        yield
    finally:
        for library, count in zip(second, before, strict=True):
            library.set_num_threads(count)


@cache
def n_threads() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_memory(count: int, purpose: str) -> None:
    """Raise MemoryError, with the figures, if ``count`` doubles cannot fit into this machine.

    A system that lends more memory than it has would end the process without a word instead.
    """
    needed, free = 8 * count, _available_memory()
    if free is not None and needed > free:
        raise MemoryError(
            f"{purpose} needs {needed / 2**30:.1f} GiB of memory and {free / 2**30:.1f} GiB are "
            "available; fit fewer trajectories, or take every k-th sample"
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
    by side. The results come in the order of the items; the first error is raised.
    """
    work = list(items)
    if len(work) <= 1 or n_threads() == 1:
        return [task(item) for item in work]
    contexts = [copy_context() for _ in work]  # NumPy's errstate goes along
    with _blas().limit(limits=1):
        return list(_pool().map(lambda context, item: context.run(task, item), contexts, work))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads(), thread_name_prefix="vectorfield")


if hasattr(os, "register_at_fork"):  # the threads of a pool do not survive a fork
    os.register_at_fork(after_in_child=_pool.cache_clear)


def device(x: Any) -> Any:
    """Return the device on which ``x`` lives."""
    return array_api_compat.device(x)


def cholesky(a: Any) -> tuple[Any, int]:
    """Return the lower factor of a small matrix and 0, or something and the failing row (1-based).

    Only the lower triangle is read.
    """
    if isinstance(a, np.ndarray):
        (potrf,) = lapack.get_lapack_funcs(("potrf",), (a,))
        upper, info = potrf(a.T, lower=0, clean=1)  # the transpose of a row-major array is free
        return upper.T, int(info)
    if array_api_compat.is_torch_array(a):
        import torch

        lower, info = torch.linalg.cholesky_ex(a)
        return lower, int(info)
    lower = namespace(a).linalg.cholesky(a)  # CuPy marks failure by NaN
    return lower, 0 if bool(namespace(a).isfinite(lower[-1, -1])) else 1


def write_lower(target: Any, lower: Any) -> None:
    """Copy the lower triangle of ``lower`` into ``target``, whose strict upper part stays."""
    xp = namespace(target)
    target[...] = xp.triu(target, k=1) + xp.tril(lower)


def solve_right(lower: Any, panel: Any) -> Any:
    """Return panel L^-T for a lower triangular L; may overwrite ``panel`` (m, b)."""
    if isinstance(panel, np.ndarray):
        (trsm,) = blas.get_blas_funcs(("trsm",), (panel,))
        # L X^T = panel^T, on the column-major views of row-major arrays
        solved = trsm(1.0, lower.T, panel.T, side=0, lower=0, trans_a=1, overwrite_b=1)
        return solved.T
    return _solve_triangular(lower, panel.T, transpose=False).T


def solve_triangle(lower: Any, rhs: Any, transpose: bool = False) -> Any:
    """Return L^-1 rhs, or L^-T rhs with ``transpose``; only the lower triangle is read."""
    if isinstance(rhs, np.ndarray):
        (trsm,) = blas.get_blas_funcs(("trsm",), (rhs,))
        return trsm(1.0, lower.T, rhs, side=0, lower=0, trans_a=0 if transpose else 1)
    return _solve_triangular(lower, rhs, transpose)


def _solve_triangular(lower: Any, rhs: Any, transpose: bool) -> Any:
    if array_api_compat.is_torch_array(rhs):
        import torch

        a = torch.tril(lower)
        return torch.linalg.solve_triangular(a.T if transpose else a, rhs, upper=transpose)
    if array_api_compat.is_cupy_array(rhs):
        from cupyx.scipy.linalg import solve_triangular

        return solve_triangular(lower, rhs, lower=True, trans=1 if transpose else 0)
    raise TypeError(f"no triangular solve for arrays of type {type(rhs).__name__}")


def write_diagonal(target: Any, values: Any) -> None:
    """Overwrite the diagonal of a square matrix."""
    index = np.arange(target.shape[0])
    target[index, index] = values


def add_entries(target: Any, rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> None:
    """Add ``values`` to distinct entries of a matrix."""
    target[rows, columns] += namespace(target).astype(array_like(values, target), target.dtype)


def index(values: np.ndarray, like: Any) -> Any:
    """Return an integer or boolean index as an array of the library and device of ``like``."""
    if isinstance(like, np.ndarray):
        return values
    return namespace(like).asarray(values, device=array_api_compat.device(like))
