"""`Known`: a part of the field that the user can write down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Self

import numpy as np
import scipy.sparse as sp

from vectorfield import _backend
from vectorfield._errors import DataError
from vectorfield.occupation import Occupations
from vectorfield.prior._base import Drift, Prior, spread_of
from vectorfield.trajectories import Trajectories

__all__ = ["Known", "KnownDrift"]


@dataclass(frozen=True, eq=False, repr=False)
class KnownDrift(Drift):
    """f0 is a callable.

    Values need not be finite everywhere: where they are not, a simulation ends. They are on the
    training data, or a fit refuses them.

    Attributes:
        function: (n, d) -> (n, d).
        derivative: (n, d) -> (n, d, d), the Jacobian; None for central differences.
        spread: (d,) or a number, the size of a state, by which differences choose their steps.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> drift = vf.prior.KnownDrift(lambda x: -(x**3))
        >>> drift.jacobian(np.array([[2.0]])).round(6)
        array([[[-12.]]])
    """

    function: Callable[[Any], Any]
    derivative: Callable[[Any], Any] | None = None
    spread: Any = 1.0

    def __call__(self, x: Any) -> Any:
        """Return f0(x), its shape checked."""
        return _checked(self.function, "the known part of the field", x, tuple(x.shape))

    def jacobian(self, x: Any) -> Any:
        """Return the Jacobian, or central differences with 2 d calls of the function.

        Their step is eps^(1/3) (|x| + spread), their error some eps^(2/3) of the field's scale.
        """
        n, d = x.shape
        if self.derivative is not None:
            return _checked(self.derivative, "the Jacobian of the known part", x, (n, d, d))
        xp = _backend.namespace(x)
        value = xp.empty((n, d, d), dtype=x.dtype, device=_backend.device(x))
        size = float(np.finfo(np.float64).eps) ** (1 / 3) * (xp.abs(x) + self.spread)
        for j in range(d):
            above, below = xp.asarray(x, copy=True), xp.asarray(x, copy=True)
            above[:, j] += size[:, j]
            below[:, j] -= size[:, j]
            rise = self(above) - self(below)
            value[:, :, j] = rise / (above[:, j] - below[:, j])[:, None]
        return value

    def describe(self) -> NoReturn:
        """Refuse: a model file holds numbers, and no code."""
        raise TypeError(
            f"the prior {_name(self.function)} is code and cannot be written to a model file; "
            "pickle the model, or save the learned rest, dataclasses.replace(field, prior=None), "
            "and after vf.load put the prior back with "
            "dataclasses.replace(field, prior=vf.prior.KnownDrift(function))"
        )

    @classmethod
    def restored(cls, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Self:
        """Refuse: no file holds one."""
        raise ValueError("a known function cannot come from a file")

    def check(self, d: int) -> None:
        """Nothing comes from a file."""

    def __repr__(self) -> str:
        return f"KnownDrift({_name(self.function)})"


@dataclass(frozen=True, repr=False)
class Known(Prior):
    """f0 is a function of yours: the part of the physics that is known.

    f = function + g, and only the rest g is learned. The function is called with all points at
    once, in the units of the data. Models with it can be pickled if the function can, but not
    be written to model files, which hold no code.

    Args:
        function: (n, d) -> (n, d): a plain function, a system of `vectorfield.systems`, or a
            `VectorField` from other data.
        jacobian: (n, d) -> (n, d, d), its Jacobian; by default ``function.jacobian`` where there
            is one, else central differences.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 3.0, 40)
        >>> x = np.exp(-t)[:, None]  # dx/dt = -x
        >>> prior = vf.prior.Known(lambda x: -x)
        >>> model = vf.MOCK(vf.kernels.Gaussian(1.0), 1e-6, prior=prior).fit(x, t)
        >>> model.predict([[10.0]]).round(3), round(model.rkhs_norm_, 2)  # next to nothing to learn
        (array([[-10.]]), 0.0)
    """

    function: Callable[[Any], Any]
    jacobian: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(
                f"function must be callable, (n, d) -> (n, d), got {self.function!r:.80}"
            )
        if self.jacobian is not None and not callable(self.jacobian):
            raise TypeError(
                "jacobian must be callable, (n, d) -> (n, d, d), or None, "
                f"got {self.jacobian!r:.80}"
            )

    def bind(
        self,
        trajectories: Trajectories,
        occupations: Occupations,
        *,
        covariance: sp.csr_array | None = None,
    ) -> KnownDrift:
        """Return the function with its Jacobian; it is tried on the first node."""
        derivative = self.jacobian
        if derivative is None:
            found = getattr(self.function, "jacobian", None)
            derivative = found if callable(found) else None
        spread = _backend.array_like(spread_of(trajectories).scale, trajectories.states)
        drift = KnownDrift(self.function, derivative, spread)
        drift(occupations.nodes[:1, :])
        return drift

    def __repr__(self) -> str:
        return f"Known({_name(self.function)})"


def _name(function: Any) -> str:
    """Return a name without the address in memory that a function's repr has."""
    return str(getattr(function, "__qualname__", None) or repr(function))


def _checked(function: Callable[[Any], Any], what: str, x: Any, shape: tuple[int, ...]) -> Any:
    value = function(x)
    if not _backend.is_array(value):
        value = np.asarray(value)
    if tuple(value.shape) != shape:
        raise DataError(
            f"{what}, {_name(function)}, must take (n, d) to (n, d{', d' * (len(shape) - 2)}): "
            f"for states of shape {tuple(x.shape)} expected {shape}, got {tuple(value.shape)}"
        )
    if not _backend.namespace(value).isdtype(value.dtype, ("real floating", "integral")):
        raise DataError(f"{what}, {_name(function)}, must return real numbers, got {value.dtype}")
    return _backend.array_like(value, x)
