"""Kernels of low rank on the nodes of a screening, by features that lose nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vectorfield.kernels import Nystrom, Separable
from vectorfield.plan import Prepared

__all__ = ["compacted"]

FEWEST = 200  # observations: below, a dense solve costs nothing
MOST = 400  # features that still pay
LOSSLESS = 1e-12  # of k(z, z) that features may leave out


def compacted(prepared: Prepared) -> Prepared:
    """Return the fit with its kernel by features, if few of them are the kernel on its nodes.

    A smooth kernel in few dimensions has a rank on its nodes far below their number. Its ridge
    path by features costs one pass, where a dense one costs a factorisation for each ridge. Where
    features leave out more than rounding does, the fit is returned as it came. Cost O(N q^2).

    >>> import vectorfield as vf
    >>> data = vf.datasets.load("pendulum").train[:10]
    >>> smooth, rough = vf.Plan(vf.kernels.Gaussian(2.0)), vf.Plan(vf.kernels.Laplace(2.0))
    >>> [type(compacted(plan.prepare(data)).kernel).__name__ for plan in (smooth, rough)]
    ['Nystrom', 'Separable']
    """
    kernel, count = prepared.kernel, len(prepared.occupations)
    if (
        count < FEWEST
        or prepared.plan.solver is not None
        or prepared.plan.refine is not None
        or not isinstance(kernel, Separable)
        or kernel.matrix is not None
    ):
        return prepared
    nodes = prepared.occupations.nodes
    low = Nystrom(kernel.kernel, min(MOST, count // 3), "pivoted", tolerance=LOSSLESS)
    left = kernel.kernel.diagonal(nodes) - np.sum(low.bind(nodes)(nodes) ** 2, axis=1)
    if left.max() > 10.0 * LOSSLESS * kernel.kernel.diagonal(nodes).max():
        return prepared
    return replace(prepared, kernel=low)
