"""A weighted sum of drifts, the prior of a mixture of fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vectorfield._settings import check_real
from vectorfield.prior._base import Drift

__all__ = ["DriftSum"]


@dataclass(frozen=True, eq=False)
class DriftSum(Drift):
    """f0(x) = sum_m w_m f0_m(x).

    Attributes:
        drifts: the f0_m, no sums themselves.
        weights: the w_m >= 0; they need not add up to 1, since members of a mixture may have none.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> home = vf.prior.MeanReversion(1.0, np.array([0.0]))
        >>> away = vf.prior.MeanReversion(1.0, np.array([4.0]))
        >>> vf.prior.DriftSum((home, away), (0.5, 0.25))(np.array([[0.0]]))
        array([[1.]])
    """

    drifts: tuple[Drift, ...]
    weights: tuple[float, ...]

    def __call__(self, x: Any) -> Any:
        """Return f0(x). The cost is that of all of them."""
        return sum(w * f0(x) for w, f0 in zip(self.weights, self.drifts, strict=True))

    def jacobian(self, x: Any) -> Any:
        """Return the weighted sum of the Jacobians."""
        return sum(w * f0.jacobian(x) for w, f0 in zip(self.weights, self.drifts, strict=True))

    def describe(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what they return, and the weights."""
        headers: list[dict[str, Any]] = []
        arrays: dict[str, Any] = {"weights": np.asarray(self.weights, dtype=float)}
        for m, drift in enumerate(self.drifts):
            header, own = drift.describe()
            headers.append(header)
            arrays |= {f"{m}.{name}": array for name, array in own.items()}
        return {"kind": "sum", "drifts": headers}, arrays

    @classmethod
    def restored(cls, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> DriftSum:
        """Return the drift that `describe` gave."""
        from vectorfield.prior._codec import restore  # which knows this class

        described, weights = header["drifts"], arrays["weights"]
        if not isinstance(described, list) or weights.shape != (len(described),):
            raise ValueError(f"drifts must be a list with {weights.shape} weights")
        drifts = []
        for m, inner in enumerate(described):
            if not isinstance(inner, dict) or inner.get("kind") == "sum":
                raise ValueError(f"drifts[{m}] must be an object, and no sum itself")
            prefix = f"{m}."
            own = {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}
            drifts.append(restore(inner, own))
        return cls(tuple(drifts), tuple(weights.tolist()))

    def check(self, d: int) -> None:
        """Check each."""
        if not self.drifts:
            raise ValueError("a sum of drifts has at least one")
        for m, (weight, drift) in enumerate(zip(self.weights, self.drifts, strict=True)):
            check_real(f"weights[{m}] of the prior", weight, at_least=0.0)
            drift.check(d)
