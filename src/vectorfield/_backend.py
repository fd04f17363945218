"""The one module that knows array libraries, accelerators and threads.

The numerical core is written against the array-API namespace of its input. What the standard
lacks is here: in-place functions, sparse times dense, triangular factors, host copies, and a
thread pool in which every thread has BLAS to itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import array_api_compat
import numpy as np
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController

__all__ = [
    "array_like",
    "exp_inplace",
    "is_array",
    "is_numpy",
    "namespace",
    "run_parallel",
    "sparse_apply",
    "to_numpy",
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
    return xp.asarray(np.ascontiguousarray(values, dtype=np.float64), dtype=xp.float64, device=device)


def exp_inplace(x: Any) -> Any:
    """x <- exp(x), and return it."""
    if isinstance(x, np.ndarray):
        return np.exp(x, out=x)
    if array_api_compat.is_torch_array(x):
        return x.exp_()
    x[...] = namespace(x).exp(x)
    return x


def sparse_apply(matrix: sp.csr_array, x: Any) -> Any:
    """Return the product of a SciPy sparse matrix (S, P) and a dense array (P, k).

    Cost: 2 k nnz operations.
    """
    if isinstance(x, np.ndarray):
        return matrix @ x
    if array_api_compat.is_torch_array(x):
        import torch

        device_matrix = torch.sparse_csr_tensor(
            torch.as_tensor(matrix.indptr.astype(np.int64)),
            torch.as_tensor(matrix.indices.astype(np.int64)),
            torch.as_tensor(matrix.data),
            size=matrix.shape,
            dtype=x.dtype,
            device=x.device,
        )
        return device_matrix @ x
    if array_api_compat.is_cupy_array(x):
        from cupyx.scipy import sparse as cupy_sparse

        return cupy_sparse.csr_matrix(sp.csr_matrix(matrix)) @ x
    raise TypeError(f"no sparse product for arrays of type {type(x).__name__}; use NumPy, PyTorch or CuPy")


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


@cache
def n_threads() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_parallel(task: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Call ``task`` on every item, on all cores, with BLAS held to one thread in each.

    NumPy's element-wise functions and BLAS release the interpreter lock, so threads run side
    by side. The results come in the order of the items; the first error is raised.
    """
    work = list(items)
    if len(work) <= 1 or n_threads() == 1:
        return [task(item) for item in work]
    with _blas().limit(limits=1), ThreadPoolExecutor(n_threads()) as pool:
        return list(pool.map(task, work))
