"""Expansions: learned fields in the coordinates of the fit, as plain arrays and a kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from vectorfield.kernels.codec import decode, encode
from vectorfield.kernels.operators import Evaluator, ImplicitKernel, OperatorKernel

__all__ = ["Expansion", "KernelExpansion", "restore"]


class Expansion(ABC):
    """A function g of d coordinates to d values that a kernel's space holds.

    What a regression gives, a field shifts and scales, and a model file keeps: ``describe``
    returns all of it as JSON values and arrays, `restore` takes it back.
    """

    kernel: OperatorKernel

    @property
    @abstractmethod
    def like(self) -> Any:
        """An array of the library, type and device that points come in."""

    @abstractmethod
    def __call__(self, x: Any) -> Any:
        """Return g(x), (n, d) -> (n, d)."""

    @abstractmethod
    def jacobian(self, x: Any) -> Any:
        """Return d g_i / d x_j, (n, d) -> (n, d, d)."""

    @abstractmethod
    def energy(self, x: Any) -> Any:
        """Return the potential or Hamiltonian of g, (n, d) -> (n,); TypeError if there is none."""

    @abstractmethod
    def describe(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return header (JSON values, with the key ``kind``) and arrays by name."""

    @abstractmethod
    def check(self, d: int) -> None:
        """Raise ValueError if arrays that came from a file do not make a field of d coordinates."""

    @property
    @abstractmethod
    def extent(self) -> str:
        """What it is made of, in two words: for representations."""

    @property
    def parts(self) -> tuple[Expansion, ...]:
        """The summands of g, one for each term of its kernel."""
        return (self,)


@dataclass(frozen=True, eq=False)
class KernelExpansion(Expansion):
    """g = sum_p K(., z_p) c_p.

    Attributes:
        kernel: K, nothing left open.
        nodes: z, (Q, d).
        coefficients: c, (Q, d).
    """

    kernel: ImplicitKernel
    nodes: Any
    coefficients: Any

    @property
    def like(self) -> Any:
        """The nodes."""
        return self.nodes

    @property
    def extent(self) -> str:
        """The number of nodes."""
        return f"nodes={self.nodes.shape[0]}"

    @cached_property
    def _bound(self) -> Evaluator:
        return self.kernel.bind(self.nodes, self.coefficients)

    def __call__(self, x: Any) -> Any:
        """Return g(x). Cost O(n Q d), a factor d more where K couples the outputs."""
        return self._bound(x)

    def jacobian(self, x: Any) -> Any:
        """Return the Jacobian in closed form. Cost O(n Q d^2)."""
        return self._bound.jacobian(x)

    def energy(self, x: Any) -> Any:
        """Return the potential or Hamiltonian of g."""
        return self._bound.energy(x)

    @property
    def parts(self) -> tuple[KernelExpansion, ...]:
        """One expansion on the same nodes for each term of the kernel."""
        terms = self.kernel.terms()
        return (self,) if terms == (self.kernel,) else tuple(replace(self, kernel=k) for k in terms)

    def describe(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the kernel's settings, nodes and coefficients."""
        header = {"kind": "kernel", "kernel": encode(self.kernel)}
        return header, {"nodes": self.nodes, "coefficients": self.coefficients}

    def check(self, d: int) -> None:
        """Check shapes, and that the kernel takes d coordinates."""
        if not isinstance(self.kernel, ImplicitKernel):
            raise ValueError("the kernel is not operator-valued")
        count = self.nodes.shape[0] if self.nodes.ndim == 2 else -1
        for name in ("nodes", "coefficients"):
            shape = getattr(self, name).shape
            if shape != (count, d):
                raise ValueError(f"{name} has shape {shape}, expected {(count, d)}")
        with np.errstate(all="ignore"):
            self._bound  # noqa: B018  (a length scale or matrix of another size is refused here)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_bound"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def restore(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Expansion:
    """Return the expansion that `Expansion.describe` gave; ValueError or KeyError if it is none."""
    if header["kind"] == "kernel":
        return KernelExpansion(decode(header["kernel"]), arrays["nodes"], arrays["coefficients"])
    raise ValueError(f"unknown kind of field {header['kind']!r}")
