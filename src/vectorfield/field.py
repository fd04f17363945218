"""`VectorField`: a learned field as an immutable function of the state."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from vectorfield import _backend
from vectorfield._errors import DataError, ModelFileError
from vectorfield._intake import check_feature_names
from vectorfield.kernels.base import Evaluator, OperatorKernel
from vectorfield.kernels.codec import decode, encode
from vectorfield.modelfile import read_model, write_model

__all__ = ["VectorField", "load"]


@dataclass(frozen=True, eq=False, repr=False)
class VectorField:
    """f(x) = scale * sum_p K((x - shift) / scale, z_p) c_p.

    Attributes:
        kernel: the operator-valued kernel K, nothing left open.
        nodes: z, (Q, d), in standardised coordinates.
        coefficients: c, (Q, d).
        shift, scale: (d,), the standardisation; 0 and 1 where there is none.
        feature_names: d names.
        info: what the maker wants kept in the model file (settings, figures), as JSON values.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 3.0, 40)
        >>> model = vf.MOCK(ridge=1e-10).fit(np.exp(-t)[:, None], t)  # dx/dt = -x
        >>> model.field_(np.array([[0.5]])).round(3)
        array([[-0.5]])
        >>> model.field_.jacobian(np.array([[0.5]])).round(2)
        array([[[-1.]]])
    """

    kernel: OperatorKernel
    nodes: Any
    coefficients: Any
    shift: Any
    scale: Any
    feature_names: tuple[str, ...]
    info: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return len(self.feature_names)

    @property
    def spread(self) -> Any:
        """(d,) the spread of the training data, in units of which simulations are accurate."""
        return self.scale

    @cached_property
    def _evaluator(self) -> Evaluator:
        return self.kernel.bind(self.nodes, self.coefficients)

    def __call__(self, x: Any) -> Any:
        """Return f(x): (n, d) -> (n, d), or (d,) -> (d,). Cost O(n Q d)."""
        points, single = self._points(x)
        value = self._evaluator((points - self.shift) / self.scale) * self.scale
        return value[0, :] if single else value

    def jacobian(self, x: Any) -> Any:
        """Return d f_i / d x_j: (n, d) -> (n, d, d), or (d,) -> (d, d). Cost O(n Q d^2)."""
        points, single = self._points(x)
        inner = self._evaluator.jacobian((points - self.shift) / self.scale)
        value = inner * self.scale[None, :, None] / self.scale[None, None, :]
        return value[0, :, :] if single else value

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model file: one file, no pickle, checked when read."""
        arrays = {
            name: _backend.to_numpy(getattr(self, name))
            for name in ("nodes", "coefficients", "shift", "scale")
        }
        header = {
            "kind": "kernel",
            "kernel": encode(self.kernel),
            "feature_names": list(self.feature_names),
            "info": dict(self.info),
        }
        write_model(path, header, arrays)

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
        points = _backend.array_like(x, self.nodes)
        if points.ndim not in (1, 2) or points.shape[-1] != self.d:
            raise DataError(
                f"states must have shape (n, {self.d}) or ({self.d},), got {tuple(points.shape)}"
            )
        return points

    def _points(self, x: Any) -> tuple[Any, bool]:
        points = self.as_states(x)
        return (points[None, :], True) if points.ndim == 1 else (points, False)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("_evaluator", "info")} | {
            "info": dict(self.info)
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, info=MappingProxyType(state["info"]))

    def __repr__(self) -> str:
        return f"VectorField(d={self.d}, nodes={self.nodes.shape[0]}, kernel={self.kernel!r:.120})"


def load(path: str | os.PathLike[str]) -> VectorField:
    """Read the `VectorField` in a model file.

    Nothing in the file is executed. A file that is truncated, changed or of a later format is
    refused with `ModelFileError`.

    Example:
        >>> import numpy as np, tempfile, vectorfield as vf
        >>> t = np.linspace(0.0, 3.0, 40)
        >>> model = vf.MOCK(ridge=1e-10).fit(np.exp(-t)[:, None], t)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/decay.vf")
        ...     field = vf.load(f"{folder}/decay.vf")
        >>> bool(np.all(field([[0.5]]) == model.predict([[0.5]])))
        True
    """
    header, arrays = read_model(path)
    try:
        if header["kind"] != "kernel":
            raise ValueError(f"unknown kind of field {header['kind']!r}")
        names, info = header["feature_names"], header["info"]
        if not isinstance(names, list) or not isinstance(info, dict):
            raise ValueError("feature_names must be a list and info an object")
        result = VectorField(
            kernel=decode(header["kernel"]),
            nodes=arrays["nodes"],
            coefficients=arrays["coefficients"],
            shift=arrays["shift"],
            scale=arrays["scale"],
            feature_names=check_feature_names(names, len(names)),
            info=MappingProxyType(info),
        )
        _check_parts(result)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{path}: the header does not describe a field: {error}") from error
    return result


def _check_parts(f: VectorField) -> None:
    if not isinstance(f.kernel, OperatorKernel):
        raise ValueError("the kernel is not operator-valued")
    count = f.nodes.shape[0] if f.nodes.ndim == 2 else -1
    expected = {
        "nodes": (count, f.d),
        "coefficients": (count, f.d),
        "shift": (f.d,),
        "scale": (f.d,),
    }
    for name, shape in expected.items():
        array = getattr(f, name)
        if array.shape != shape or array.dtype != np.float64:
            raise ValueError(f"{name} has shape {array.shape}, expected {shape} of float64")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} holds values that are not finite")
    if not (f.scale > 0).all():
        raise ValueError("scale must be positive")
    with np.errstate(all="ignore"):
        f.kernel.bind(f.nodes, f.coefficients)  # a length scale or matrix of another size
