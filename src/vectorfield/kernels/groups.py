"""Finite groups of signed permutations of the coordinates, as index arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from vectorfield import _backend
from vectorfield._settings import Settings, check_integer

__all__ = ["CyclicShifts", "Elements", "Group", "Reflection", "SignedPermutations"]

LARGEST = 10_000  # a fit costs |G| times as many kernel values; beyond this it is a mistake


@dataclass(frozen=True, eq=False)
class Elements:
    """Signed permutations g of d coordinates, (g x)_i = sign[g, i] x[permutation[g, i]].

    They act by indexing: no (d, d) matrix is formed.

    Attributes:
        permutation: (|G|, d) integers, read-only.
        sign: (|G|, d) of 1 and -1, read-only.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> quarter = vf.kernels.SignedPermutations([(-2, 1)]).elements(2)  # (x, y) -> (-y, x)
        >>> len(quarter)
        4
        >>> sorted(map(tuple, quarter.act(np.array([[3.0, 5.0]]))[:, 0].tolist()))
        [(-5.0, 3.0), (-3.0, -5.0), (3.0, 5.0), (5.0, -3.0)]
    """

    permutation: np.ndarray
    sign: np.ndarray

    def __post_init__(self) -> None:
        for array in (self.permutation, self.sign):
            array.flags.writeable = False

    def __len__(self) -> int:
        return int(self.permutation.shape[0])

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return int(self.permutation.shape[1])

    @property
    def traces(self) -> np.ndarray:
        """(|G|,) the traces of the matrices: how many coordinates stay, less those reversed."""
        stays = self.permutation == np.arange(self.d)
        return np.asarray(np.sum(stays * self.sign, axis=1, dtype=np.int64))

    def act(self, x: Any) -> Any:
        """Return g x_i for all g, (n, d) -> (|G|, n, d). Cost O(|G| n d)."""
        return _backend.namespace(x).permute_dims(self.images(x), (1, 0, 2))

    def images(self, x: Any) -> Any:
        """Return the orbits of points as rows, (n, d) -> (n, |G|, d): [i, g] is g x_i."""
        return self._signed(x[:, _backend.index(self.permutation, x)], self.sign)

    def pull(self, v: Any) -> Any:
        """Return sum_g g^T v[i, g], (n, |G|, d) -> (n, d): the adjoint of `images`."""
        inverse = np.argsort(self.permutation, axis=1)
        sign = np.take_along_axis(self.sign, inverse, axis=1)
        each = _backend.index(np.arange(len(self))[:, None], v)
        back = v[:, each, _backend.index(inverse, v)]
        return _backend.namespace(v).sum(self._signed(back, sign), axis=1)

    def _signed(self, x: Any, sign: np.ndarray) -> Any:
        return x * _backend.array_like(sign, x) if (sign < 0).any() else x


class Group(Settings, ABC):
    """A finite group of signed permutations of the coordinates of a state.

    What a field f is to commute with, f(g x) = g f(x): see `Equivariant`. A group is a setting,
    the same for every number d of coordinates that it can act on; `elements` gives its members
    for one d.

    Example:
        >>> import vectorfield as vf
        >>> isinstance(vf.kernels.CyclicShifts(), vf.kernels.Group)
        True
    """

    @abstractmethod
    def elements(self, d: int) -> Elements:
        """Return all members for d coordinates; ValueError if the group has none for this d."""

    @abstractmethod
    def generating(self, d: int) -> Elements:
        """Return members whose products are all of the group, as few as are known."""


@dataclass(frozen=True)
class CyclicShifts(Group):
    """Rotations of the coordinates of a ring: (g_h x)_i = x_(i + h step), indices modulo d.

    The group of d / step members under which all sites of a ring are alike, as in Lorenz96. Where
    each site has several coordinates that lie side by side (a position and a momentum, say)
    ``step`` is their number, of which d must be a multiple.

    Args:
        step: coordinates of one site.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> vf.kernels.CyclicShifts().elements(3).act(np.array([[1.0, 2.0, 3.0]]))[:, 0]
        array([[1., 2., 3.],
               [2., 3., 1.],
               [3., 1., 2.]])
        >>> vf.kernels.CyclicShifts(step=2).elements(4).permutation
        array([[0, 1, 2, 3],
               [2, 3, 0, 1]])
    """

    step: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", check_integer("step", self.step, at_least=1))

    def elements(self, d: int) -> Elements:
        """Return the d / step shifts, element h by h steps; the identity first."""
        return self._shifts(d, np.arange(0, d, self.step))

    def generating(self, d: int) -> Elements:
        """Return the shift by one step."""
        return self._shifts(d, np.array([self.step]))

    def _shifts(self, d: int, by: np.ndarray) -> Elements:
        if d % self.step:
            raise ValueError(
                f"step must divide the number of coordinates, got step={self.step} and states "
                f"with {d} features; give as step how many features each site of the ring has"
            )
        permutation = (np.arange(d) + by[:, None]) % d
        return Elements(permutation, np.ones(permutation.shape, dtype=np.int8))


@dataclass(frozen=True)
class Reflection(Group):
    """The two members x -> x and x -> -x: fields are odd, f(-x) = -f(x).

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> vf.kernels.Reflection().elements(2).act(np.array([[1.0, 2.0]]))[:, 0]
        array([[ 1.,  2.],
               [-1., -2.]])
    """

    def elements(self, d: int) -> Elements:
        """Return the identity and minus the identity."""
        return self._multiples(d, (1, -1))

    def generating(self, d: int) -> Elements:
        """Return minus the identity."""
        return self._multiples(d, (-1,))

    def _multiples(self, d: int, signs: tuple[int, ...]) -> Elements:
        sign = np.repeat(np.array(signs, dtype=np.int8)[:, None], d, axis=1)
        return Elements(np.tile(np.arange(d), (len(signs), 1)), sign)


@dataclass(frozen=True)
class SignedPermutations(Group):
    """The group that given signed permutations generate: all their products.

    A generator is a tuple of d nonzero whole numbers, whose absolute values are 1 ... d in some
    order. Entry i being +j or -j means (g x)_i = x_j or -x_j, counted from 1: it names the
    coordinate that comes to place i, and its sign. So (2, 3, 1) takes (x, y, z) to (y, z, x), and
    Lorenz63's symmetry (x, y, z) -> (-x, -y, z) is (-1, -2, 3).

    Args:
        generators: one or more; stored as a tuple of tuples. A group of more than 10,000 members
            is refused.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> lorenz = vf.kernels.SignedPermutations([(-1, -2, 3)])
        >>> lorenz.elements(3).act(np.array([[1.0, 2.0, 3.0]]))[:, 0]
        array([[ 1.,  2.,  3.],
               [-1., -2.,  3.]])
        >>> len(vf.kernels.SignedPermutations([(2, 3, 4, 1), (2, 1, 3, 4)]).elements(4))
        24
    """

    generators: Sequence[Sequence[int]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "generators", _check_generators(self.generators))
        _closure(self._checked)

    @property
    def _checked(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(generator) for generator in self.generators)

    def elements(self, d: int) -> Elements:
        """Return the closure, the identity first."""
        return self._arrays(d, _closure(self._checked))

    def generating(self, d: int) -> Elements:
        """Return the generators."""
        return self._arrays(d, self._checked)

    def _arrays(self, d: int, members: tuple[tuple[int, ...], ...]) -> Elements:
        own = len(self.generators[0])
        if own != d:
            raise ValueError(
                f"generators act on {own} coordinates but the states have {d} features; give "
                f"each generator {d} entries"
            )
        entries = np.array(members)
        return Elements(np.abs(entries) - 1, np.sign(entries).astype(np.int8))


def _check_generators(generators: Any) -> tuple[tuple[int, ...], ...]:
    if _backend.is_array(generators):
        generators = _backend.to_numpy(generators).tolist()
    given = list(generators) if isinstance(generators, Iterable) else [generators]
    if any(isinstance(g, str) or not isinstance(g, Iterable) for g in given):
        raise TypeError(
            f"generators must be a list of tuples such as [(-1, -2, 3)], got {generators!r}"
        )
    rows = tuple(tuple(g) for g in given)
    if not rows:
        raise ValueError("generators must hold at least one signed permutation, got none")
    checked = tuple(
        tuple(check_integer(f"an entry of generators[{k}]", j, at_least=-len(row)) for j in row)
        for k, row in enumerate(rows)
    )
    for k, row in enumerate(checked):
        if not row or sorted(map(abs, row)) != list(range(1, len(row) + 1)):
            raise ValueError(
                f"generators[{k}] must hold each of 1 ... d once, with a sign, got {row!r}; entry "
                "i = +-j means (g x)_i = +-x_j, counted from 1"
            )
        if len(row) != len(checked[0]):
            raise ValueError(
                f"generators must all have the same length, got {len(checked[0])} and {len(row)}; "
                "write coordinates that stay, too"
            )
    return checked


@lru_cache(maxsize=32)
def _closure(generators: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """All products of the generators, breadth first from the identity."""
    identity = tuple(range(1, len(generators[0]) + 1))
    found = dict.fromkeys([identity])  # keeps the order in which they are found
    fresh = [identity]
    while fresh:
        products = dict.fromkeys(_compose(g, h) for h in fresh for g in generators)
        fresh = [element for element in products if element not in found]
        found.update(dict.fromkeys(fresh))
        if len(found) > LARGEST:
            raise ValueError(
                f"generators make a group of more than {LARGEST:,} members, and a fit costs as "
                "many times one without the symmetry; give generators of a smaller group"
            )
    return tuple(found)


def _compose(g: tuple[int, ...], h: tuple[int, ...]) -> tuple[int, ...]:
    """(g h x)_i = +-(h x)_|g_i|."""
    return tuple(h[j - 1] if j > 0 else -h[-j - 1] for j in g)
