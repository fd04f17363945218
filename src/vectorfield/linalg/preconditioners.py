"""Approximate inverses of M + shift Sigma that conjugate gradients start from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vectorfield import _backend
from vectorfield._settings import Settings, check_integer
from vectorfield.kernels.tiles import row_blocks
from vectorfield.linalg.gramian import Gramian
from vectorfield.linalg.whitening import Whitener

__all__ = ["BlockJacobi", "NystromPreconditioner", "Preconditioner"]

Inverse = Callable[[Any], Any]
"""Takes (S, d) to (S, d): symmetric and positive definite."""


class Preconditioner(Settings, ABC):
    """Settings of an approximate inverse.

    Example:
        >>> import vectorfield as vf
        >>> isinstance(vf.linalg.BlockJacobi(), vf.linalg.Preconditioner)
        True
    """

    __slots__ = ()

    @abstractmethod
    def prepare(self, gramian: Gramian) -> Callable[[float], Inverse]:
        """Do what does not depend on the ridge; the result takes shift to the inverse."""


@dataclass(frozen=True)
class BlockJacobi(Preconditioner):
    """The inverse of the blocks of M + shift Sigma along its diagonal.

    A block is some consecutive observations of one trajectory or more. It mends what neighbours
    in time share and knows nothing of the rest: few iterations are saved where the kernel reaches
    far over the data. Cost S size^2 d^3 / 3 to factor, 2 S size d^2 for each iteration.

    Args:
        size: observations in a block.

    Example:
        >>> import vectorfield as vf
        >>> vf.linalg.BlockJacobi(size=50)
        BlockJacobi(size=50)
    """

    size: int = 100

    def __post_init__(self) -> None:
        check_integer("size", self.size, at_least=1)

    def prepare(self, gramian: Gramian) -> Callable[[float], Inverse]:
        """Assemble the blocks."""
        rows = row_blocks(len(gramian), self.size)
        corners = [gramian.corner(part) for part in rows]

        def inverse(shift: float) -> Inverse:
            factors = []
            for part, corner in zip(rows, corners, strict=True):
                noise = gramian.covariance[part, part].toarray()
                noise = np.kron(noise, np.eye(gramian.d))
                lower, failed = _backend.cholesky(
                    corner + shift * _backend.array_like(noise, corner)
                )
                factors.append(None if failed else lower)

            def apply(r: Any) -> Any:
                xp = _backend.namespace(r)
                value = xp.empty_like(r)
                for part, lower in zip(rows, factors, strict=True):
                    column = xp.reshape(r[part, :], (-1, 1))
                    if lower is not None:  # a singular block is left as it is
                        column = _backend.solve_triangle(lower, column)
                        column = _backend.solve_triangle(lower, column, transpose=True)
                    value[part, :] = xp.reshape(column, (-1, r.shape[1]))
                return value

            return apply

        return inverse


@dataclass(frozen=True)
class NystromPreconditioner(Preconditioner):
    """The inverse of B B^T + shift Sigma with M ~ B B^T from ``rank / d`` of the nodes.

    Smooth kernels on many nodes have few large eigenvalues, which is what slows conjugate
    gradients down; their part is inverted exactly, and the rest is like shift Sigma. Cost
    O(S d rank^2) once, 4 S d rank for each iteration; memory S d rank numbers.

    Args:
        rank: columns of B; None: 600, or a quarter of the unknowns if that is less.
        random_state: seed of the choice of nodes.

    Example:
        >>> import vectorfield as vf
        >>> vf.linalg.NystromPreconditioner(rank=300)
        NystromPreconditioner(rank=300, random_state=0)
    """

    rank: int | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        if self.rank is not None:
            check_integer("rank", self.rank, at_least=1)
        check_integer("random_state", self.random_state, at_least=0)

    def prepare(self, gramian: Gramian) -> Callable[[float], Inverse]:
        """Find an orthonormal basis of B's columns in the metric of Sigma."""
        d, unknowns = gramian.d, len(gramian) * gramian.d
        rank = min(600, max(d, unknowns // 4)) if self.rank is None else self.rank
        count = max(1, min(rank // d, gramian.nodes.shape[0]))
        rng = np.random.default_rng(self.random_state)
        chosen = np.sort(rng.choice(gramian.nodes.shape[0], count, replace=False))
        centres = gramian.nodes[_backend.index(chosen, gramian.nodes), :]
        basis = gramian.columns(centres)
        whitener = Whitener(gramian.covariance)
        xp = _backend.namespace(basis)
        shape = (len(gramian), -1)
        basis = xp.reshape(whitener.forward(xp.reshape(basis, shape)), (unknowns, -1))
        values, vectors = _spectrum(gramian, centres, basis)
        for rows in row_blocks(unknowns, 4096):  # in place: B is the largest array there is
            basis[rows, : vectors.shape[1]] = basis[rows, :] @ vectors
        basis = basis[:, : vectors.shape[1]]

        def inverse(shift: float) -> Inverse:
            inner = 1.0 / (values + shift) - 1.0 / shift

            def apply(r: Any) -> Any:
                white = xp.reshape(whitener.forward(r), (-1,))
                weights = inner * (basis.T @ white)
                value = white / shift + basis @ weights
                return whitener.backward(xp.reshape(value, r.shape))

            return apply

        return inverse


def _spectrum(gramian: Gramian, centres: Any, basis: Any) -> tuple[Any, Any]:
    """Return eigenvalues of B K^-1 B^T, largest last, and V such that B V is orthonormal.

    B is ``basis``, K the kernel on the centres; directions lost in rounding are left out, all of
    them where the kernel vanishes on the centres.
    """
    xp = _backend.namespace(basis)
    blocks = gramian.kernel.blocks(centres)(centres)
    m, d = centres.shape
    tile = blocks.tile(slice(0, m), slice(0, m))
    inner = xp.reshape(xp.permute_dims(tile, (2, 0, 3, 1)), (m * d, m * d))
    levels, turn = xp.linalg.eigh(0.5 * (inner + inner.T))
    kept = levels > 1e-13 * levels[-1:]
    half = turn[:, kept] / xp.sqrt(levels[kept])
    projected = half.T @ (basis.T @ basis) @ half
    values, vectors = xp.linalg.eigh(0.5 * (projected + projected.T))
    kept = values > 1e-13 * values[-1:]
    return values[kept], (half @ vectors[:, kept]) / xp.sqrt(values[kept])
