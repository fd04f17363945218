"""Newton bases: nodes chosen one by one where a kernel's projection on the chosen ones is worst."""

from __future__ import annotations

import numpy as np

from vectorfield.kernels.base import ScalarKernel

__all__ = ["NewtonBasis"]

FLOOR = 1e-15  # squared power function below which a further node adds rounding errors alone


class NewtonBasis:
    """A growing orthonormal basis of the span of k(., z_p) over chosen nodes, as values at all.

    This is a Cholesky factorisation of the Gram matrix with full pivoting, of which only the
    columns asked for are ever computed. Cost O(Q q (d + q)) for q of Q nodes, memory Q q.

    Args:
        kernel: k.
        nodes: z, (Q, d), NumPy.
        most: the largest q.

    Attributes:
        chosen: the nodes' positions, in the order of choice.
        power: (Q,) k(z, z) less its projection: the squared power function.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> from vectorfield.kernels.newton import NewtonBasis
        >>> basis = NewtonBasis(vf.kernels.Linear(), np.array([[1.0], [2.0], [3.0]]), 3)
        >>> while basis.grow() is not None:
        ...     pass
        >>> basis.chosen, basis.columns  # one dimension: one node says it all
        ([2], array([[1.],
               [2.],
               [3.]]))
    """

    def __init__(self, kernel: ScalarKernel, nodes: np.ndarray, most: int) -> None:
        self.chosen: list[int] = []
        self.power = np.array(kernel.diagonal(nodes))
        self._kernel, self._nodes, self._most = kernel, nodes, most
        self._floor = FLOOR * float(self.power.max(initial=0.0))
        # columns never used are never touched
        self._values = np.zeros((len(nodes), most), order="F")

    @property
    def columns(self) -> np.ndarray:
        """The basis at all nodes, (Q, q); at the chosen ones a lower triangular factor."""
        return self._values[:, : len(self.chosen)]

    def grow(self) -> np.ndarray | None:
        """Add the node of the largest power; return its basis function (Q,), None at the end."""
        j = len(self.chosen)
        if j == self._most:
            return None
        pivot = int(np.argmax(self.power))
        if self.power[pivot] <= self._floor:
            return None
        column: np.ndarray = self._kernel(self._nodes, self._nodes[pivot : pivot + 1])[:, 0]
        column -= self._values[:, :j] @ self._values[pivot, :j]
        column /= np.sqrt(self.power[pivot])
        self._values[:, j] = column
        self.power = np.maximum(self.power - column * column, 0.0)
        self.power[pivot] = 0.0
        self.chosen.append(pivot)
        return column
