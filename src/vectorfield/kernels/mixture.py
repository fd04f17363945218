"""Weighted sums of learned fields, each in coordinates of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np

from vectorfield import _backend
from vectorfield._settings import check_real
from vectorfield.kernels.expansion import Expansion
from vectorfield.kernels.expansion import restore as restore_one
from vectorfield.kernels.operators import OperatorKernel

__all__ = ["MixedKernel", "Mixture", "restore"]

MEMBER = "members."  # begins the names of the members' arrays in a model file


@dataclass(frozen=True)
class MixedKernel(OperatorKernel):
    """The kernels of a weighted sum of fields, each with coordinates of its own.

    It says where a `Mixture` is from. Nothing is fitted with it: each member has its own fit, see
    `vectorfield.Blend`; to fit one field in the sum of several spaces, add the kernels.

    Attributes:
        kernels: those of the members, nothing left open.

    Example:
        >>> import vectorfield as vf
        >>> kernel = vf.kernels.MixedKernel((vf.kernels.CurlFree(vf.kernels.Gaussian(1.0)),) * 2)
        >>> kernel.energy
        'potential'
    """

    kernels: tuple[OperatorKernel, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernels", tuple(self.kernels))
        if not self.kernels or not all(isinstance(k, OperatorKernel) for k in self.kernels):
            raise TypeError(
                "kernels must be operator-valued kernels such as Separable(Gaussian(1.0)), "
                f"got {self.kernels!r}"
            )

    @property
    def energy(self) -> str | None:  # type: ignore[override]
        """What the fields are made of, where it is the same for all members."""
        kinds = {kernel.energy for kernel in self.kernels}
        return kinds.pop() if len(kinds) == 1 else None

    def resolved(self, nodes: Any) -> NoReturn:
        """Raise TypeError: there is no single fit with it."""
        raise TypeError(
            "a MixedKernel describes a weighted sum of fields that were fitted one by one, and "
            "cannot be fitted itself; use vf.Blend for such sums, or add the kernels"
        )

    def size(self, nodes: Any) -> float:
        """Return the sum of the sizes."""
        return sum(kernel.size(nodes) for kernel in self.kernels)

    def energy_unit(self, scale: Any) -> float:
        """Return the first member's; see `OperatorKernel.energy_unit`."""
        return self.kernels[0].energy_unit(scale)


@dataclass(frozen=True, eq=False)
class Mixture(Expansion):
    """g(u) = sum_m w_m b_m g_m((u - a_m) / b_m), elementwise in the d coordinates.

    Attributes:
        members: the g_m, expansions that are no mixtures themselves.
        weights: the w_m >= 0.
        shifts, scales: a and b, (M, d).

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> kernel = vf.kernels.Monomials(degree=1)
        >>> features = kernel.bind(np.zeros((1, 1)))  # 1, x
        >>> one = vf.kernels.FeatureExpansion(kernel, features, np.array([[0.0], [1.0]]))
        >>> mixture = vf.kernels.Mixture(
        ...     (one, one), (0.25, 0.75), np.array([[0.0], [1.0]]), np.array([[1.0], [2.0]])
        ... )
        >>> mixture(np.array([[3.0]]))  # 0.25 * 3 + 0.75 * 2 * (3 - 1) / 2
        array([[2.25]])
    """

    format: ClassVar[int] = 3

    members: tuple[Expansion, ...]
    weights: tuple[float, ...]
    shifts: Any
    scales: Any

    @property
    def kernel(self) -> OperatorKernel:  # type: ignore[override]
        """That of the only member, or the `MixedKernel` of all."""
        if len(self.members) == 1:
            return self.members[0].kernel
        return MixedKernel(tuple(member.kernel for member in self.members))

    @property
    def like(self) -> Any:
        """An array of the first member."""
        return self.members[0].like

    @property
    def norm(self) -> float:
        """(sum_m |w_m g_m|^2)^(1/2), a bound of that in the space of the summed kernels."""
        sizes = (w * g.norm for w, g in zip(self.weights, self.members, strict=True))
        return math.hypot(*sizes)

    @property
    def extent(self) -> str:
        """The extents of the members."""
        return " + ".join(member.extent for member in self.members)

    @property
    def parts(self) -> tuple[Mixture, ...]:
        """One weighted member each."""
        return tuple(
            Mixture((g,), (w,), self.shifts[m : m + 1, :], self.scales[m : m + 1, :])
            for m, (g, w) in enumerate(zip(self.members, self.weights, strict=True))
        )

    def __call__(self, x: Any) -> Any:
        """Return g(x). The cost is that of all members."""
        value = None
        for m, (g, w) in enumerate(zip(self.members, self.weights, strict=True)):
            part = g((x - self.shifts[m, :]) / self.scales[m, :]) * (w * self.scales[m, :])
            value = part if value is None else value + part
        return value

    def jacobian(self, x: Any) -> Any:
        """Return the Jacobian in closed form. The cost is that of all members."""
        value = None
        for m, (g, w) in enumerate(zip(self.members, self.weights, strict=True)):
            b = self.scales[m, :]
            part = g.jacobian((x - self.shifts[m, :]) / b)
            part = part * (w * b)[None, :, None] / b[None, None, :]
            value = part if value is None else value + part
        return value

    def energy(self, x: Any) -> Any:
        """Return the potential or Hamiltonian, where every member has one of the same kind."""
        value = None
        for m, (g, w) in enumerate(zip(self.members, self.weights, strict=True)):
            b = self.scales[m, :]
            part = g.energy((x - self.shifts[m, :]) / b) * (w * g.kernel.energy_unit(b))
            value = part if value is None else value + part
        return value

    def describe(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what the members return, and weights and coordinates."""
        headers: list[dict[str, Any]] = []
        arrays: dict[str, Any] = {
            "weights": np.asarray(self.weights, dtype=float),
            "shifts": self.shifts,
            "scales": self.scales,
        }
        for m, member in enumerate(self.members):
            header, own = member.describe()
            headers.append(header)
            arrays |= {f"{MEMBER}{m}.{name}": array for name, array in own.items()}
        return {"kind": "mixture", "members": headers}, arrays

    def check(self, d: int) -> None:
        """Check shapes, signs, and every member."""
        count = len(self.members)
        for name in ("shifts", "scales"):
            shape = getattr(self, name).shape
            if shape != (count, d):
                raise ValueError(f"{name} has shape {shape}, expected {(count, d)}")
        if not bool((_backend.to_numpy(self.scales) > 0).all()):
            raise ValueError("scales must be positive")
        if len(self.weights) != count:
            raise ValueError(f"there are {len(self.weights)} weights for {count} members")
        for m, weight in enumerate(self.weights):
            check_real(f"weights[{m}]", weight, at_least=0.0)
        for member in self.members:
            member.check(d)


def restore(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Expansion:
    """Return the expansion that `Expansion.describe` gave; ValueError or KeyError if it is none.

    >>> import numpy as np, vectorfield as vf
    >>> kernel = vf.kernels.Separable(vf.kernels.Gaussian(1.0))
    >>> one = vf.kernels.KernelExpansion(kernel, np.zeros((1, 1)), np.ones((1, 1)))
    >>> pair = vf.kernels.Mixture((one, one), (0.5, 0.5), np.zeros((2, 1)), np.ones((2, 1)))
    >>> restore(*pair.describe())(np.zeros((1, 1)))
    array([[1.]])
    """
    if header["kind"] != "mixture":
        return restore_one(header, arrays)
    described = header["members"]
    if not isinstance(described, list) or not described:
        raise ValueError("members must be a list of one or more")
    members = []
    for m, inner in enumerate(described):
        if not isinstance(inner, dict):
            raise ValueError(f"members[{m}] must be an object")
        prefix = f"{MEMBER}{m}."
        own = {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}
        members.append(restore_one(inner, own))  # which knows no mixtures: none is nested
    weights = arrays["weights"]
    if weights.ndim != 1:
        raise ValueError(f"weights have shape {weights.shape}, expected ({len(members)},)")
    return Mixture(tuple(members), tuple(weights.tolist()), arrays["shifts"], arrays["scales"])
