"""`VectorField`: a learned field as an immutable function of the state."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp

from vectorfield import _backend
from vectorfield._errors import DataError, ModelFileError
from vectorfield._intake import check_feature_names
from vectorfield.kernels.expansion import Expansion
from vectorfield.kernels.mixture import restore
from vectorfield.kernels.operators import OperatorKernel
from vectorfield.modelfile import read_model, write_model
from vectorfield.prior import Drift
from vectorfield.prior import restore as restore_prior

__all__ = ["VectorField", "load"]

PRIOR = "prior."  # begins the names of the prior's arrays in a model file


@dataclass(frozen=True, eq=False, repr=False)
class VectorField:
    """f(x) = scale * g((x - shift) / scale), plus a prior f0(x) where there is one.

    Attributes:
        expansion: g, the field in standardised coordinates; a `KernelExpansion`
            sum_p K(., z_p) c_p, for one, has ``nodes`` and ``coefficients``.
        shift, scale: (d,), the standardisation; 0 and 1 where there is none.
        feature_names: d names.
        info: what the maker wants kept in the model file (settings, figures), as JSON values.
        prior: f0, a `vectorfield.prior.Drift` in the units of the data, or None.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 3.0, 40)
        >>> decay = np.exp(-t)[:, None]  # dx/dt = -x
        >>> model = vf.MOCK(vf.kernels.Gaussian(2.0), 1e-10).fit(decay, t)
        >>> model.field_(np.array([[0.5]])).round(3)
        array([[-0.5]])
        >>> model.field_.jacobian(np.array([[0.5]])).round(2)
        array([[[-1.]]])
    """

    expansion: Expansion
    shift: Any
    scale: Any
    feature_names: tuple[str, ...]
    info: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    prior: Drift | None = None

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return len(self.feature_names)

    @property
    def spread(self) -> Any:
        """(d,) the spread of the training data, in units of which simulations are accurate."""
        return self.scale

    @property
    def kernel(self) -> OperatorKernel:
        """The operator-valued kernel whose space g is from, nothing left open."""
        return self.expansion.kernel

    @property
    def parts(self) -> tuple[VectorField, ...]:
        """Fields whose sum this one is, one for each term of a sum of kernels.

        A field of one kernel is its own and only part. A shared start of the coordinates, the
        ``shift``, is common to all of them. The prior is not among them: with one, the parts add up
        to the learned rest f - f0.
        """
        return tuple(replace(self, expansion=g, prior=None) for g in self.expansion.parts)

    def __call__(self, x: Any) -> Any:
        """Return f(x): (n, d) -> (n, d), or (d,) -> (d,). Cost O(n Q d) for Q nodes."""
        points, single = self._points(x)
        value = self.expansion((points - self.shift) / self.scale) * self.scale
        if self.prior is not None:
            value = value + self.prior(points)
        return value[0, :] if single else value

    def jacobian(self, x: Any) -> Any:
        """Return d f_i / d x_j: (n, d) -> (n, d, d), or (d,) -> (d, d). Cost O(n Q d^2)."""
        points, single = self._points(x)
        inner = self.expansion.jacobian((points - self.shift) / self.scale)
        value = inner * self.scale[None, :, None] / self.scale[None, None, :]
        if self.prior is not None:
            value = value + self.prior.jacobian(points)
        return value[0, :, :] if single else value

    def sparse_jacobian(self, x: Any) -> Any:
        """Return the Jacobian as a SciPy sparse matrix: (d,) -> (d, d), (n, d) -> n of them.

        Where the kernel is sparse (`SparseKernel`, `SparseFeatures`) cost and memory are those of
        the entries that are there; for others the dense Jacobian is made first.
        """
        points, single = self._points(x)
        inner = self.expansion.sparse_jacobian((points - self.shift) / self.scale)
        scale = _backend.to_numpy(self.scale)
        left, right = sp.diags_array(scale), sp.diags_array(1.0 / scale)
        values = [sp.csr_array(left @ one @ right) for one in inner]
        if self.prior is not None:
            known = _backend.to_numpy(self.prior.jacobian(points))
            values = [sp.csr_array(a + sp.csr_array(b)) for a, b in zip(values, known, strict=True)]
        return values[0] if single else values

    def potential(self, x: Any) -> Any:
        """Return V(x), up to a constant, of a gradient flow f = -grad V: (n, d) -> (n,).

        For fields of kernels that make such flows; TypeError for others. Cost O(n Q d).
        """
        return self._energy(x, "potential")

    def hamiltonian(self, x: Any) -> Any:
        """Return H(x), up to a constant, of a Hamiltonian field f = J grad H: (n, d) -> (n,).

        For fields of kernels that make such fields; TypeError for others. Cost O(n Q d).
        """
        return self._energy(x, "hamiltonian")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model file: one file, no pickle, checked when read.

        A prior that is a function, `vectorfield.prior.Known`, cannot be written: TypeError.
        """
        described, arrays = self.expansion.describe()
        arrays = arrays | {"shift": self.shift, "scale": self.scale}
        header = described | {
            "feature_names": list(self.feature_names),
            "info": dict(self.info),
        }
        version = self.expansion.format  # the earliest there is, for earlier versions
        if self.prior is not None:
            header["prior"], own = self.prior.describe()
            arrays |= {PRIOR + name: array for name, array in own.items()}
            version = max(version, 2)
        arrays = {name: _backend.to_numpy(a) for name, a in arrays.items()}
        write_model(path, header, arrays, version=version)

    def as_states(self, x: Any) -> Any:
        """Return ``x`` as real states, (n, d) or (d,), beside the nodes; DataError if it is not."""
        if not _backend.is_array(x) or isinstance(x, np.ndarray):
            try:
                x = np.asarray(x)
                if x.dtype.kind not in "biufO":
                    raise TypeError(f"{x.dtype} is not a real number")
                x = x.astype(np.float64, copy=False)
            except (TypeError, ValueError) as error:
                raise DataError(f"states must be an array of numbers: {error}") from error
        points = _backend.array_like(x, self.expansion.like)
        if points.ndim not in (1, 2) or points.shape[-1] != self.d:
            raise DataError(
                f"states must have shape (n, {self.d}) or ({self.d},), got {tuple(points.shape)}"
            )
        return points

    def _points(self, x: Any) -> tuple[Any, bool]:
        points = self.as_states(x)
        return (points[None, :], True) if points.ndim == 1 else (points, False)

    def _energy(self, x: Any, name: str) -> Any:
        if self.prior is not None:
            raise TypeError(
                f"a field with a prior has no {name}: the law of the kernel holds for the learned "
                f"rest f - f0 alone, and f0 need not have it; field.parts is that rest"
            )
        if self.kernel.energy != name:
            raise TypeError(
                f"a field of {type(self.kernel).__name__} has no {name}; see field.parts for the "
                "terms of a sum"
            )
        points, single = self._points(x)
        value = self.expansion.energy((points - self.shift) / self.scale)
        value = value * self.kernel.energy_unit(self.scale)
        return value[0] if single else value

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"info": dict(self.info)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, info=MappingProxyType(state["info"]))

    def __repr__(self) -> str:
        prior = "" if self.prior is None else f", prior={type(self.prior).__name__}"
        extent = f"d={self.d}, {self.expansion.extent}"
        return f"VectorField({extent}, kernel={self.kernel!r:.120}{prior})"


def load(path: str | os.PathLike[str]) -> VectorField:
    """Read the `VectorField` in a model file.

    Nothing in the file is executed. A file that is truncated, changed or of a later format is
    refused with `ModelFileError`.

    Example:
        >>> import numpy as np, tempfile, vectorfield as vf
        >>> t = np.linspace(0.0, 3.0, 40)
        >>> model = vf.MOCK(vf.kernels.Gaussian(2.0), 1e-10).fit(np.exp(-t)[:, None], t)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/decay.vf")
        ...     field = vf.load(f"{folder}/decay.vf")
        >>> bool(np.all(field([[0.5]]) == model.predict([[0.5]])))
        True
    """
    header, arrays = read_model(path)
    try:
        names, info = header["feature_names"], header["info"]
        if not isinstance(names, list) or not isinstance(info, dict):
            raise ValueError("feature_names must be a list and info an object")
        result = VectorField(
            expansion=restore(header, arrays),
            shift=arrays["shift"],
            scale=arrays["scale"],
            feature_names=check_feature_names(names, len(names)),
            info=MappingProxyType(info),
            prior=_prior(header, arrays),
        )
        _check_parts(result, arrays)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{path}: the header does not describe a field: {error}") from error
    return result


def _prior(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Drift | None:
    if "prior" not in header:
        return None
    if not isinstance(header["prior"], dict):
        raise ValueError("prior must be an object")
    own = {k.removeprefix(PRIOR): a for k, a in arrays.items() if k.startswith(PRIOR)}
    return restore_prior(header["prior"], own)


def _check_parts(f: VectorField, arrays: Mapping[str, Any]) -> None:
    for name in ("shift", "scale"):
        if arrays[name].shape != (f.d,):
            raise ValueError(f"{name} has shape {arrays[name].shape}, expected {(f.d,)}")
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ValueError(f"{name} holds values that are not finite")
    if not (f.scale > 0).all():
        raise ValueError("scale must be positive")
    f.expansion.check(f.d)
    if f.prior is not None:
        f.prior.check(f.d)
