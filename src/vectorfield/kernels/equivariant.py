"""Kernels of symmetric fields, f(g x) = g f(x) for a finite group of signed permutations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from vectorfield import _backend
from vectorfield.kernels.base import ScalarKernel
from vectorfield.kernels.groups import Elements, Group
from vectorfield.kernels.operators import Blocks, Evaluator, ImplicitKernel
from vectorfield.kernels.separable import Separable
from vectorfield.kernels.tiles import Tile, row_blocks

__all__ = ["Equivariant"]

INVARIANT = 1e-8  # relative; rounding in distances leaves some 1e-12
TINY = 1e-200  # below, products are denormal and few of their digits are right
SIZE_BLOCK = 2**18  # entries of the blocks of which `size` reads the diagonals


@dataclass(frozen=True)
class Equivariant(ImplicitKernel):
    """K_G(x, y) = (1/|G|) sum_g K(x, g y) g: fields with f(g x) = g f(x) for all g in a group.

    The base kernel K must be invariant, K(g x, g y) = g K(x, y) g^T, as k(x, y) I is with a radial
    or dot-product kernel k of one length scale. Then K_G is the kernel of those fields of K's
    space that have the symmetry: of f its mean over the group, (1/|G|) sum_g g^T f(g x), is left.
    Every observation of a fit counts for all its images. What else K guarantees (no divergence,
    a Hamiltonian) stays, and f = sum_p K_G(., z_p) c_p is a field of K on the orbits of its nodes.
    Standardisation is made to commute with the group as well: f has the symmetry in the units of
    the data.

    Cost: |G| times the base's kernel values for each pair of points. The system couples the
    outputs, except that with `CyclicShifts` and K = k I a Fourier transform takes it apart
    (`vectorfield.linalg.Circulant`).

    Args:
        kernel: K; a scalar kernel k stands for `Separable` (k).
        group: the symmetry.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> odd = vf.kernels.Equivariant(vf.kernels.Gaussian(1.0), vf.kernels.Reflection())
        >>> t = np.linspace(0.0, 2.0, 21)
        >>> model = vf.MOCK(odd, 1e-9).fit(np.exp(-t)[:, None], t)  # dx/dt = -x seen at x > 0
        >>> model.predict(np.array([[0.5], [-0.5]])).round(2)
        array([[-0.5],
               [ 0.5]])
    """

    kernel: Any
    group: Group

    def __post_init__(self) -> None:
        if isinstance(self.kernel, ScalarKernel):
            object.__setattr__(self, "kernel", Separable(self.kernel))
        if not isinstance(self.kernel, ImplicitKernel):
            raise TypeError(
                "kernel must be a scalar kernel or an operator-valued one known pair by pair, "
                f"such as Gaussian() or DivergenceFree(), got {self.kernel!r}"
            )
        if not isinstance(self.group, Group):
            raise TypeError(f"group must be a group such as CyclicShifts(), got {self.group!r}")

    @property
    def energy(self) -> str | None:  # type: ignore[override]
        """What the fields are made of, the base's; see `OperatorKernel.energy`."""
        return self._base.energy

    @property
    def _base(self) -> ImplicitKernel:
        kernel: ImplicitKernel = self.kernel  # the constructor wraps scalar ones
        return kernel

    @property
    def scalar(self) -> ScalarKernel | None:
        """The scalar kernel k where the base is k I, else None."""
        base = self._base
        return base.kernel if isinstance(base, Separable) and base.matrix is None else None

    def resolved(self, nodes: Any) -> Self:
        """Set the base's open settings from the nodes; ValueError if the base is not invariant."""
        kernel = self._base.resolved(nodes)
        _check_invariance(kernel, self.group, nodes.shape[1])
        return self.replace(kernel=kernel)

    def size(self, nodes: Any) -> float:
        """Return the mean over nodes and coordinates of K_G(z, z)'s diagonal.

        Cost O(Q |G| d) for k I and Q nodes, and nearly nothing where no g but the identity has a
        trace, as with `CyclicShifts`.
        """
        scalar, elements = self.scalar, self.group.elements(nodes.shape[1])
        if scalar is None:
            return self._size_by_tiles(nodes)
        total = 0.0
        for g in np.flatnonzero(elements.traces):
            one = Elements(elements.permutation[g : g + 1], elements.sign[g : g + 1])
            total += int(elements.traces[g]) * _mean_pair(scalar, nodes, one.images(nodes)[:, 0, :])
        return total / (len(elements) * elements.d)

    def _size_by_tiles(self, nodes: Any) -> float:
        xp = _backend.namespace(nodes)
        count, d = nodes.shape
        blocks = self.blocks(nodes)(nodes)
        total = 0.0
        for part in row_blocks(count, max(1, int(SIZE_BLOCK**0.5) // d)):
            own = xp.linalg.diagonal(blocks.tile(part, part))  # (d, d, rows)
            total += float(xp.sum(xp.linalg.diagonal(xp.permute_dims(own, (2, 0, 1)))))
        return float(total / (count * d))

    def bind(self, nodes: Any, coefficients: Any) -> Evaluator:
        """Return the base's field on the orbits of the nodes, with coefficients g c_p / |G|."""
        elements = self.group.elements(nodes.shape[1])
        spread = _orbit(elements, coefficients) / len(elements)
        return self._base.bind(_orbit(elements, nodes), spread)

    def blocks(self, y: Any) -> Callable[[Any], Blocks]:
        """Prepare the orbits of ``y``; see `ImplicitKernel.blocks`.

        A product costs |G| kernel values for each pair, from one product of matrices, and forms
        no (d, d) block where the base forms none. Memory O(|G| m d).
        """
        elements = self.group.elements(y.shape[1])
        orbit, scalar = _orbit(elements, y), self.scalar
        base = self._base.blocks(orbit)
        at = None if scalar is None else scalar.bind(orbit)
        return lambda x: _OrbitBlocks(base(x), elements, None if at is None else at(x))

    def terms(self) -> tuple[ImplicitKernel, ...]:
        """Return the base's terms, each under the group."""
        terms = self._base.terms()
        if terms == (self.kernel,):
            return (self,)
        return tuple(Equivariant(term, self.group) for term in terms)

    def standardisation(self, shift: Any, scale: Any) -> tuple[Any, Any]:
        """Return a shift and scale that the group maps into themselves, and that suit the base.

        The shift is averaged over the group, (1/|G|) sum_g g shift; a scale is the root mean
        square of those of all coordinates that the group brings to its place.
        """
        elements = self.group.elements(shift.shape[0])
        symmetric = _symmetric(elements, shift, scale)
        # once more, in case the base's own choice does not respect the group
        return _symmetric(elements, *self._base.standardisation(*symmetric))

    def energy_unit(self, scale: Any) -> float:
        """Return the base's: its energy on the orbits is that of f."""
        return self._base.energy_unit(scale)


def _orbit(elements: Elements, y: Any) -> Any:
    """Return g y_j at row j |G| + g, (m, d) -> (m |G|, d): a slice of points stays a slice."""
    return _backend.namespace(y).reshape(elements.images(y), (-1, elements.d))


def _symmetric(elements: Elements, shift: Any, scale: Any) -> tuple[Any, Any]:
    xp = _backend.namespace(shift)
    unsigned = Elements(elements.permutation, np.ones_like(elements.sign))
    squares = unsigned.images((scale * scale)[None, :])[0, :, :]
    moved = elements.images(shift[None, :])[0, :, :]
    return xp.mean(moved, axis=0), xp.sqrt(xp.mean(squares, axis=0))


def _mean_pair(kernel: ScalarKernel, x: Any, y: Any) -> float:
    """Return the mean of k(x_i, y_i)."""
    xp = _backend.namespace(x)
    tile = kernel.bind(y)(x)
    total = 0.0
    for part in row_blocks(x.shape[0], 32):
        total += float(xp.sum(xp.linalg.diagonal(tile(part, part))))
    return float(total / x.shape[0])


class _OrbitBlocks(Blocks):
    """Tiles of K_G from those of the base between points and orbits; for k I those of k."""

    def __init__(self, base: Blocks, elements: Elements, scalar: Tile | None) -> None:
        self._base, self._elements, self._scalar = base, elements, scalar

    def _widened(self, columns: slice) -> slice:
        order = len(self._elements)
        return slice(columns.start * order, columns.stop * order)

    def tile(self, rows: slice, columns: slice) -> Any:
        """Return the tile, (d, d, rows, columns)."""
        if self._scalar is None:
            return self._tile_of_base(rows, columns)
        return self._tile_of_scalar(self._scalar(rows, self._widened(columns)))

    def _tile_of_scalar(self, values: Any) -> Any:
        """k(x, g y) goes to the d places (a, b) where (g y)_a is y_b. Cost O(|G| d) a pair."""
        xp = _backend.namespace(values)
        order, d = len(self._elements), self._elements.d
        by_element = xp.reshape(values, (values.shape[0], -1, order)) / order
        shape = (d, d, values.shape[0], by_element.shape[1])
        tile = xp.zeros(shape, dtype=values.dtype, device=_backend.device(values))
        each = _backend.index(np.arange(d), values)
        for g in range(order):
            sign = _backend.array_like(self._elements.sign[g, :, None, None], values)
            place = _backend.index(self._elements.permutation[g], values)
            tile[each, place, :, :] += sign * by_element[None, :, :, g]
        return tile

    def _tile_of_base(self, rows: slice, columns: slice) -> Any:
        """sum_g K(x, g y) g / |G|, a few columns at a time: the base's tile is |G| times wider."""
        order, d, height = len(self._elements), self._elements.d, rows.stop - rows.start
        parts = []
        for start in range(columns.start, columns.stop, max(1, 256 // order)):
            chosen = slice(start, min(start + max(1, 256 // order), columns.stop))
            wide = self._base.tile(rows, self._widened(chosen))
            xp = _backend.namespace(wide)
            wide = xp.reshape(wide, (d, d, height, -1, order))
            vectors = xp.reshape(xp.permute_dims(wide, (0, 2, 3, 4, 1)), (-1, order, d))
            pulled = self._elements.pull(vectors) / order  # a row K[a, :] times g is g^T K[a, :]
            pulled = xp.reshape(pulled, (d, height, -1, d))
            parts.append(xp.permute_dims(pulled, (0, 3, 1, 2)))
        return parts[0] if len(parts) == 1 else xp.concat(parts, axis=3)

    def product(self, rows: slice, columns: slice, right: Any) -> Any:
        """Return sum_j sum_g K(x_i, g y_j) g right_j / |G|."""
        spread = _orbit(self._elements, right) / len(self._elements)
        return self._base.product(rows, self._widened(columns), spread)

    def products(self, rows: slice, columns: slice, right: Any, left: Any) -> tuple[Any, Any]:
        """Return `product` and sum_i sum_g g^T K(x_i, g y_j)^T left_i / |G|."""
        order, d = len(self._elements), self._elements.d
        spread = _orbit(self._elements, right) / order
        forward, back = self._base.products(rows, self._widened(columns), spread, left)
        back = _backend.namespace(back).reshape(back, (-1, order, d))
        return forward, self._elements.pull(back) / order


def _check_invariance(kernel: ImplicitKernel, group: Group, d: int) -> None:
    """Raise ValueError unless K(g x, g y) g c = g K(x, y) c at random points on many scales.

    That the generators keep K is enough. The scales reach far, since a kernel shows its lengths
    only at distances like them; where numbers overflow or vanish nothing can be compared.
    """
    rng = np.random.default_rng(0)
    generating = group.generating(d)
    x, y, c = (rng.normal(size=(n, d)) for n in (4, 2, 2))
    for scale in 4.0 ** np.arange(-15, 16):
        with np.errstate(all="ignore"):
            field = kernel.bind(scale * y, c)(scale * x)
            for g in range(len(generating)):
                one = Elements(generating.permutation[g : g + 1], generating.sign[g : g + 1])
                moved = kernel.bind(_orbit(one, scale * y), _orbit(one, c))(_orbit(one, scale * x))
                expected = _orbit(one, field)
                size = np.abs(expected).max()
                comparable = np.isfinite(size) and size > TINY
                if comparable and np.abs(moved - expected).max() > INVARIANT * size:
                    raise ValueError(
                        f"kernel must be invariant under the group {group!r}, K(g x, g y) = "
                        f"g K(x, y) g^T, got {kernel!r}, which is not; give it one length scale "
                        "for all coordinates that the group exchanges, and a matrix that commutes "
                        "with the group"
                    )
