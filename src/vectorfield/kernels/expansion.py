"""Expansions: learned fields in the coordinates of the fit, as plain arrays and a kernel."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from vectorfield import _backend
from vectorfield.kernels.codec import decode, encode
from vectorfield.kernels.features import ExplicitKernel, FeatureMap, read_only
from vectorfield.kernels.operators import Evaluator, ImplicitKernel, OperatorKernel

__all__ = ["Expansion", "FeatureExpansion", "KernelExpansion", "restore"]


class Expansion(ABC):
    """A function g of d coordinates to d values that a kernel's space holds.

    What a regression gives, a field shifts and scales, and a model file keeps: ``describe``
    returns all of it as JSON values and arrays, `restore` takes it back.
    """

    format: ClassVar[int] = 1
    """The earliest format of model files that has it."""

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

    def sparse_jacobian(self, x: Any) -> list[sp.csr_array]:
        """Return the Jacobian at each point, n sparse (d, d) matrices; from the dense one here."""
        return [sp.csr_array(_backend.to_numpy(one)) for one in self.jacobian(x)]

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
    def norm(self) -> float:
        """|g| in the kernel's space."""

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
    def norm(self) -> float:
        """|g|, by |g|^2 = sum_p c_p . g(z_p). Cost O(Q^2 d)."""
        xp = _backend.namespace(self.coefficients)
        squared = float(xp.sum(self.coefficients * self(self.nodes)))
        return math.sqrt(max(squared, 0.0))

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

    def sparse_jacobian(self, x: Any) -> list[sp.csr_array]:
        """Return the Jacobian at each point, made sparse from the start by a sparse kernel."""
        return self._bound.sparse_jacobian(x)

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


@dataclass(frozen=True, eq=False)
class FeatureExpansion(Expansion):
    """g = psi(x) c for the features psi of an explicit kernel.

    Attributes:
        kernel: the kernel, nothing left open.
        features: psi, a `FeatureMap` with all its arrays.
        coefficients: c, (q, d) for scalar features, g = phi(x) c, and (q,) for matrix-valued ones.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> kernel = vf.kernels.Monomials(degree=1)
        >>> features = kernel.bind(np.zeros((1, 2)))  # 1, x, y
        >>> rotation = np.array([[0.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
        >>> vf.kernels.FeatureExpansion(kernel, features, rotation)(np.array([[2.0, 3.0]]))
        array([[-3.,  2.]])
    """

    kernel: ExplicitKernel
    features: FeatureMap
    coefficients: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "coefficients", read_only(self.coefficients))

    @property
    def like(self) -> Any:
        """The coefficients."""
        return self.coefficients

    @property
    def norm(self) -> float:
        """|g| = |c|."""
        xp = _backend.namespace(self.coefficients)
        return math.sqrt(float(xp.sum(self.coefficients**2)))

    @property
    def extent(self) -> str:
        """The number of features."""
        return f"features={self.features.q}"

    @cached_property
    def _bound(self) -> Evaluator:
        return self.features.bind(self.coefficients)

    def __call__(self, x: Any) -> Any:
        """Return g(x). Cost O(n q d)."""
        return self._bound(x)

    def jacobian(self, x: Any) -> Any:
        """Return the Jacobian in closed form. Cost O(n q d^2)."""
        return self._bound.jacobian(x)

    def sparse_jacobian(self, x: Any) -> list[sp.csr_array]:
        """Return the Jacobian at each point, made sparse from the start by sparse features."""
        return self._bound.sparse_jacobian(x)

    def energy(self, x: Any) -> Any:
        """Return the potential or Hamiltonian of g. Cost O(n q d)."""
        return self._bound.energy(x)

    @property
    def parts(self) -> tuple[FeatureExpansion, ...]:
        """One expansion for each term of a sum of kernels."""
        terms = self.kernel.split(self.features, self.coefficients)
        return (self,) if len(terms) == 1 else tuple(FeatureExpansion(*term) for term in terms)

    def describe(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the kernel's settings, the coefficients and the arrays of the features."""
        named = {f"features.{name}": array for name, array in self.features.arrays().items()}
        header = {"kind": "features", "kernel": encode(self.kernel)}
        return header, {"coefficients": self.coefficients} | named

    def check(self, d: int) -> None:
        """Check shapes, and that the features take d coordinates."""
        if self.features.d != d:
            raise ValueError(f"the features take {self.features.d} coordinates, expected {d}")
        q, shape = self.features.q, self.coefficients.shape
        expected = (q, d) if self.features.separable else (q,)
        if shape != expected:
            raise ValueError(f"coefficients have shape {shape}, expected {expected}")
        with np.errstate(all="ignore"):
            self._bound  # noqa: B018  (a length scale of another size is refused here)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_bound"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _restore_features(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> FeatureExpansion:
    kernel = decode(header["kernel"])
    if not isinstance(kernel, ExplicitKernel):
        raise ValueError("the kernel is not an explicit one")
    prefix = "features."
    own = {k[len(prefix) :]: a for k, a in arrays.items() if k.startswith(prefix)}
    return FeatureExpansion(kernel, kernel.restore(own), arrays["coefficients"])


def restore(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Expansion:
    """Return the expansion that `Expansion.describe` gave; ValueError or KeyError if it is none."""
    if header["kind"] == "kernel":
        return KernelExpansion(decode(header["kernel"]), arrays["nodes"], arrays["coefficients"])
    if header["kind"] == "features":
        return _restore_features(header, arrays)
    raise ValueError(f"unknown kind of field {header['kind']!r}")
