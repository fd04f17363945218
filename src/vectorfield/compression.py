"""Fields with fewer nodes: the same function, to a tolerance, far faster to evaluate."""

from __future__ import annotations

import dataclasses
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.linalg

from vectorfield import _backend
from vectorfield._errors import VectorFieldError
from vectorfield._settings import check_integer, check_real
from vectorfield.field import VectorField
from vectorfield.kernels import KernelExpansion, Mixture, ScalarKernel, Separable

__all__ = ["compress"]

FLOOR = 1e-15  # squared power function below which a further node adds rounding errors alone


def compress(field: VectorField, tolerance: float = 1e-8, *, max_nodes: int = 2000) -> VectorField:
    """Return a field on few of the nodes that agrees with ``field`` on all of them.

    Smooth kernels on many nodes in few dimensions are nearly dependent: some hundred nodes carry
    the field of 18,000. Nodes are added where the field is matched worst relative to what one
    more node can mend (the f/P-greedy rule on the Newton basis); the coefficients interpolate
    the field there. The error at the nodes is measured, not estimated, before anything is
    returned, and kept in ``info["compression_error"]``.

    Args:
        field: a field of a separable kernel.
        tolerance: the largest deviation allowed at any node, relative to the largest |f| there,
            in standardised coordinates.
        max_nodes: give up beyond this number.

    Returns:
        A `VectorField` with q of the Q nodes. Cost O(Q q^2 + Q^2 d) once; a call then costs
        O(n q d) in place of O(n Q d).

    Raises:
        VectorFieldError: the tolerance was not reached; the message says how far it went.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 6.0, 241)
        >>> circle = np.stack([np.cos(t), np.sin(t)], axis=1)
        >>> model = vf.MOCK(vf.kernels.Gaussian(1.0), ridge=1e-8).fit(circle, t)
        >>> small = vf.compress(model.field_, 1e-6)
        >>> small.expansion.nodes.shape[0] < 60, small.info["compression_error"] <= 1e-6
        (True, True)
    """
    check_real("tolerance", tolerance, above=0.0)
    check_integer("max_nodes", max_nodes, at_least=1)
    full = field.expansion
    if not isinstance(full, KernelExpansion) or not isinstance(full.kernel, Separable):
        hint = "; compress the fields before they are mixed" if isinstance(full, Mixture) else ""
        raise TypeError(
            f"compress needs a field of a Separable kernel, got {type(field.kernel).__name__}{hint}"
        )
    nodes, coefficients = full.nodes, full.coefficients
    if full.kernel.matrix is not None:
        coefficients = coefficients @ full.kernel.mixing(coefficients)
    values = full(nodes)
    chosen, weights = _project(
        full.kernel.kernel,
        _backend.to_numpy(nodes),
        _backend.to_numpy(coefficients),
        _backend.to_numpy(values),
        tolerance=tolerance / 2,
        most=min(max_nodes, nodes.shape[0]),
    )
    small = KernelExpansion(
        kernel=Separable(full.kernel.kernel),  # A is in the coefficients now
        nodes=nodes[_backend.index(chosen, nodes), :],
        coefficients=_backend.array_like(weights, nodes),
    )
    difference = _backend.to_numpy(small(nodes) - values)
    largest = np.linalg.norm(_backend.to_numpy(values), axis=1).max()
    error = float(np.linalg.norm(difference, axis=1).max() / (largest if largest > 0 else 1.0))
    if not error <= tolerance:
        raise VectorFieldError(
            f"{len(chosen)} of {nodes.shape[0]} nodes reach a relative error of {error:.1e}, "
            f"not {tolerance:.1e}; ask for a larger tolerance or allow more max_nodes"
        )
    info = dict(field.info) | {"compression_error": error, "compressed_from": len(values)}
    return dataclasses.replace(field, expansion=small, info=MappingProxyType(info))


def _project(
    kernel: ScalarKernel,
    nodes: np.ndarray,
    coefficients: np.ndarray,
    values: np.ndarray,
    *,
    tolerance: float,
    most: int,
) -> tuple[np.ndarray, Any]:
    """Choose nodes one by one; return them and the coefficients of the projection.

    Columns of ``newton`` are an orthonormal (Newton) basis v_j of the chosen nodes' span, as
    values at all nodes; its rows at the chosen nodes are their lower triangular Cholesky factor.
    The moments <f, v_j> = sum_p c_p v_j(z_p) need no differences of nearly equal numbers, which
    is what keeps the projection accurate when the basis is almost dependent.
    """
    goal = tolerance * np.linalg.norm(values, axis=1).max()
    power = np.array(kernel.diagonal(nodes))
    floor = FLOOR * power.max()
    newton = np.zeros((len(nodes), most), order="F")  # columns never used are never touched
    moments = np.zeros((most, values.shape[1]))
    residual = values.copy()
    chosen: list[int] = []
    while len(chosen) < most and np.linalg.norm(residual, axis=1).max() > goal:
        pivot = int(np.argmax(power))
        if power[pivot] <= floor:
            break
        j = len(chosen)
        column = kernel(nodes, nodes[pivot : pivot + 1])[:, 0]
        column -= newton[:, :j] @ newton[pivot, :j]
        column /= np.sqrt(power[pivot])
        newton[:, j] = column
        moments[j] = column @ coefficients
        residual -= column[:, None] * moments[j]
        power = np.maximum(power - column * column, 0.0)
        power[pivot] = 0.0
        chosen.append(pivot)
    index = np.asarray(chosen, dtype=int)
    lower = newton[index, : len(chosen)]
    return index, scipy.linalg.solve_triangular(lower, moments[: len(chosen)], lower=True, trans=1)
