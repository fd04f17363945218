"""Sums over the second derivatives of a radial kernel, without forming a (d, d) block a pair.

With u = (x - z) / sigma and F_m as in `Radial`, the Hessian of k is
H = D (F_1 I + F_2 u u^T) D, D = diag(1 / sigma), its trace tau = F_1 |1 / sigma|^2 + F_2 |D u|^2.
A product with a vector needs u . (D c) only, so that sums over pairs are a few matrix products.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from vectorfield import _backend
from vectorfield.kernels.lengths import divide_lengths
from vectorfield.kernels.operators import Blocks
from vectorfield.kernels.radial import Radial
from vectorfield.kernels.tiles import contract, row_blocks

__all__ = ["HessianBlocks", "HessianSums"]


class _Side:
    """Points in length scales from a common origin: u (n, d)."""

    def __init__(self, x: Any, origin: Any, kernel: Radial) -> None:
        self.points = x
        self.u = divide_lengths(x - origin, kernel.length_scale)


class _Profiles(NamedTuple):
    """F_1, F_2 and tau of a tile; tau is None where it is not asked for."""

    first: Any
    second: Any
    trace: Any


class HessianBlocks(Blocks):
    """H, or with ``traceless`` H - tau I, between points x (n, d) and y (m, d), times ``sign``."""

    def __init__(self, kernel: Radial, x: Any, y: Any, *, sign: float, traceless: bool) -> None:
        xp = _backend.namespace(y)
        origin = xp.mean(y, axis=0)
        self._left, self._right = _Side(x, origin, kernel), _Side(y, origin, kernel)
        self._kernel, self._sign, self._traceless = kernel, sign, traceless
        self._squared = kernel.bind_squared(y, kernel.is_rough(2))(x)
        self.inverse = divide_lengths(xp.ones_like(origin), kernel.length_scale)
        if traceless:  # |D u|^2 between the two sides, by one product a tile
            self._stretched = self._left.u * self.inverse, self._right.u * self.inverse

    def _profiles(self, rows: slice, columns: slice) -> _Profiles:
        squared = self._squared(rows, columns)
        first, second = self._kernel.profiles(squared, (1, 2))
        if not self._traceless:
            return _Profiles(first, second, None)
        xp = _backend.namespace(squared)
        total = float(xp.sum(self.inverse * self.inverse))
        if isinstance(self._kernel.length_scale, float):
            squared *= self._kernel.length_scale**-2
        else:
            a, b = self._stretched[0][rows, :], self._stretched[1][columns, :]
            squared = a @ (-2.0 * b.T)
            squared += xp.sum(a * a, axis=1)[:, None]
            squared += xp.sum(b * b, axis=1)
        squared *= second
        squared += total * first
        return _Profiles(first, second, squared)

    def tile(self, rows: slice, columns: slice) -> Any:
        """Return the tile, (d, d, rows, columns)."""
        xp = _backend.namespace(self.inverse)
        first, second, trace = self._profiles(rows, columns)
        u, v = self._left.u[rows, :], self._right.u[columns, :]
        scaled = (u.T[:, :, None] - v.T[:, None, :]) * self.inverse[:, None, None]
        tile = scaled[:, None, :, :] * scaled[None, :, :, :]
        tile *= second
        for a in range(tile.shape[0]):
            tile[a, a, :, :] += first * self.inverse[a] ** 2
            if trace is not None:
                tile[a, a, :, :] -= trace
        return tile if self._sign == 1.0 else xp.negative(tile)

    def product(self, rows: slice, columns: slice, right: Any) -> Any:
        """Return sum_j K(x_i, y_j) right_j. Cost of a few products (rows, columns) x d."""
        return self._forward(rows, columns, right, self._profiles(rows, columns))

    def products(self, rows: slice, columns: slice, right: Any, left: Any) -> tuple[Any, Any]:
        """Return `product` and its transpose with ``left``, from the same profiles."""
        profiles = self._profiles(rows, columns)
        first, second, trace = profiles
        forward = self._forward(rows, columns, right, profiles)
        xp = _backend.namespace(left)
        u, v = self._left.u[rows, :], self._right.u[columns, :]
        c = left * self.inverse
        along = c @ (-1.0 * v.T)
        along += xp.sum(u * c, axis=1)[:, None]
        along *= second
        back = first.T @ c + along.T @ u - v * xp.sum(along, axis=0)[:, None]
        back *= self.inverse
        if trace is not None:
            back -= trace.T @ left
        return forward, self._sign * back

    def _forward(self, rows: slice, columns: slice, right: Any, profiles: _Profiles) -> Any:
        xp = _backend.namespace(right)
        first, second, trace = profiles
        u, v = self._left.u[rows, :], self._right.u[columns, :]
        c = right * self.inverse
        along = u @ c.T
        along -= xp.sum(v * c, axis=1)
        along *= second
        value = first @ c + u * xp.sum(along, axis=1)[:, None] - along @ v
        value *= self.inverse
        if trace is not None:
            value -= trace @ right
        return self._sign * value


class _Pairs(NamedTuple):
    """u (n, d), v (m, d), D c (m, d), 1 / sigma (d,), r^2 (n, m) and (u - v) . D c (n, m)."""

    u: Any
    v: Any
    c: Any
    inverse: Any
    squared: Any
    along: Any


class HessianSums:
    """The field, Jacobian and energy of sum_p H(., z_p) c_p, or with H - tau I, times ``sign``."""

    def __init__(
        self, kernel: Radial, nodes: Any, coefficients: Any, *, sign: float, traceless: bool
    ) -> None:
        self._kernel, self._nodes, self._c = kernel, nodes, coefficients
        self._sign, self._traceless = sign, traceless
        divide_lengths(nodes[:1, :], kernel.length_scale)  # refuses one that does not fit

    def value(self, x: Any) -> Any:
        """Return the field at x, (n, d)."""
        blocks = HessianBlocks(
            self._kernel, x, self._nodes, sign=self._sign, traceless=self._traceless
        )
        m = self._nodes.shape[0]
        columns = row_blocks(m, 1024 if _backend.is_numpy(x) else 2**14)

        def part(rows: slice) -> Any:
            total = blocks.product(rows, columns[0], self._c[columns[0], :])
            for chosen in columns[1:]:
                total += blocks.product(rows, chosen, self._c[chosen, :])
            return total

        return _stack(part, x, 64 if _backend.is_numpy(x) else 2**13)

    def jacobian(self, x: Any) -> Any:
        """Return the derivative of the field, (n, d, d). Cost O(n m d^2).

        The derivative of (H c)_i by x_j is s_i s_j times
        sum_p F_2 [w_i c_j + c_i w_j + delta_ij (w . c)] + F_3 (w . c) w_i w_j, symmetric to the
        last bit, with w = u - v and c scaled by s = 1 / sigma.
        """
        return _stack(lambda rows: self._jacobian(x[rows, :]), x, self._rows())

    def energy(self, x: Any) -> Any:
        """Return e(x), (n,), with sign * sum_p H(., z_p) c_p = sign * grad e."""
        return _stack(lambda rows: self._energy(x[rows, :]), x, self._rows())

    def _rows(self) -> int:
        return max(1, 2**19 // max(1, int(self._nodes.shape[0])))

    def _bound(self, x: Any) -> _Pairs:
        xp = _backend.namespace(x)
        origin = xp.mean(self._nodes, axis=0)
        u = _Side(x, origin, self._kernel).u
        v = _Side(self._nodes, origin, self._kernel).u
        inverse = divide_lengths(xp.ones_like(origin), self._kernel.length_scale)
        c = self._c * inverse
        everything = slice(0, u.shape[0]), slice(0, v.shape[0])
        squared = self._kernel.bind_squared(self._nodes, exact=True)(x)(*everything)
        along = u @ c.T - xp.sum(v * c, axis=1)
        return _Pairs(u, v, c, inverse, squared, along)

    def _energy(self, x: Any) -> Any:
        pairs = self._bound(x)
        (first,) = self._kernel.profiles(pairs.squared, (1,))
        return _backend.namespace(x).sum(first * pairs.along, axis=1)

    def _jacobian(self, x: Any) -> Any:
        xp = _backend.namespace(x)
        pairs = self._bound(x)
        u, v, c, inverse, squared, along = pairs
        second, third = self._kernel.profiles(squared, (2, 3))
        outer = contract(second, c, v, u)  # F_2 c_i w_j
        total = outer + xp.permute_dims(outer, (0, 2, 1))
        total += xp.sum(second * along, axis=1)[:, None, None] * xp.eye(
            x.shape[1], dtype=x.dtype, device=_backend.device(x)
        )
        weight = third * along
        for a in range(x.shape[0]):
            w = u[a, :] - v
            cubic = (w.T * weight[a, :]) @ w
            total[a, :, :] += 0.5 * (cubic + cubic.T)  # the product rounds its halves apart
        total *= inverse[:, None] * inverse
        if self._traceless:
            total -= self._trace_slope(pairs, second, third)
        return self._sign * total

    def _trace_slope(self, pairs: _Pairs, second: Any, third: Any) -> Any:
        """Return sum_p c_i d tau / d x_j, (n, d, d)."""
        u, v, _, inverse, squared, _ = pairs
        xp = _backend.namespace(u)
        if isinstance(self._kernel.length_scale, float):
            stretched = squared * self._kernel.length_scale**-2
        else:
            a, b = u * inverse, v * inverse
            stretched = xp.sum(a * a, axis=1)[:, None] + xp.sum(b * b, axis=1) - 2.0 * (a @ b.T)
        slope = float(xp.sum(inverse * inverse)) * second + third * stretched
        value = contract(slope, self._c, v, u)
        value += 2.0 * (inverse * inverse) * contract(second, self._c, v, u)
        return value * inverse


def _stack(part: Any, x: Any, size: int) -> Any:
    """Call ``part`` on slices of the rows of x, on all cores, and join what it returns."""
    rows = row_blocks(x.shape[0], size) or [slice(0, 0)]
    if _backend.is_numpy(x) and len(rows) > 1:
        parts = _backend.run_parallel(part, rows)
    else:
        parts = [part(chosen) for chosen in rows]
    return parts[0] if len(parts) == 1 else _backend.namespace(x).concat(parts, axis=0)
