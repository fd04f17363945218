"""What the array-API standard lacks: host copies, in-place functions, sparse times dense."""

from __future__ import annotations

from typing import Any

import array_api_compat
import numpy as np
import scipy.sparse as sp

__all__ = [
    "array_like",
    "cos_inplace",
    "cos_sin",
    "device",
    "exp_inplace",
    "index",
    "is_array",
    "is_numpy",
    "namespace",
    "sparse_apply",
    "sqrt_inplace",
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


def device(x: Any) -> Any:
    """Return the device on which ``x`` lives."""
    return array_api_compat.device(x)


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
    return xp.asarray(np.array(values, dtype=np.float64), dtype=xp.float64, device=device)


def index(values: np.ndarray, like: Any) -> Any:
    """Return an integer or boolean index as an array of the library and device of ``like``."""
    if isinstance(like, np.ndarray):
        return values
    return namespace(like).asarray(values.copy(), device=array_api_compat.device(like))


def exp_inplace(x: Any) -> Any:
    """x <- exp(x), and return it."""
    if isinstance(x, np.ndarray):
        return np.exp(x, out=x)
    if array_api_compat.is_torch_array(x):
        return x.exp_()
    x[...] = namespace(x).exp(x)
    return x


def cos_inplace(x: Any) -> Any:
    """x <- cos(x), and return it."""
    if isinstance(x, np.ndarray):
        return np.cos(x, out=x)
    if array_api_compat.is_torch_array(x):
        return x.cos_()
    x[...] = namespace(x).cos(x)
    return x


def cos_sin(x: Any) -> Any:
    """Return cos(x) and sin(x) of (n, m) side by side, (n, 2 m)."""
    if isinstance(x, np.ndarray):
        n, m = x.shape
        value = np.empty((n, 2 * m), dtype=x.dtype)
        np.cos(x, out=value[:, :m])
        np.sin(x, out=value[:, m:])
        return value
    xp = namespace(x)
    return xp.concat([xp.cos(x), xp.sin(x)], axis=1)


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
