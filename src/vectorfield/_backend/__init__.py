"""The one package that knows array libraries, accelerators and threads.

The numerical core is written against the array-API namespace of its input. What the standard
lacks is here: in-place functions, sparse times dense, triangular factors, host copies, and a
thread pool in which every thread has BLAS to itself.
"""

from vectorfield._backend.arrays import (
    array_like,
    cos_inplace,
    cos_sin,
    device,
    exp_inplace,
    index,
    is_array,
    is_numpy,
    namespace,
    sparse_apply,
    sqrt_inplace,
    to_numpy,
)
from vectorfield._backend.dense import (
    add_entries,
    cholesky,
    solve_right,
    solve_triangle,
    write_diagonal,
    write_lower,
)
from vectorfield._backend.machine import (
    alone,
    check_memory,
    n_threads,
    narrow_blas,
    one_blas,
    run_parallel,
)

__all__ = [
    "add_entries",
    "alone",
    "array_like",
    "check_memory",
    "cholesky",
    "cos_inplace",
    "cos_sin",
    "device",
    "exp_inplace",
    "index",
    "is_array",
    "is_numpy",
    "n_threads",
    "namespace",
    "narrow_blas",
    "one_blas",
    "run_parallel",
    "solve_right",
    "solve_triangle",
    "sparse_apply",
    "sqrt_inplace",
    "to_numpy",
    "write_diagonal",
    "write_lower",
]
