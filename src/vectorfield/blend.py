"""Blends: convex combinations of fields that were fitted one by one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from vectorfield import _backend
from vectorfield._errors import VectorFieldError
from vectorfield._settings import Settings, check_real
from vectorfield.field import VectorField
from vectorfield.kernels import Mixture
from vectorfield.prior import DriftSum

if TYPE_CHECKING:
    from vectorfield.plan import Plan

__all__ = ["Blend", "mix"]


@dataclass(frozen=True)
class Blend(Settings):
    """Other plans to mix in: f = (1 - sum_m w_m) f_own + sum_m w_m f_m.

    Each field is learned from the same trajectories by a plan of its own, and the weights are
    given; a `Search` finds them on held-out trajectories. Since all weights are positive and their
    sum is 1, a blend keeps units, priors and whatever linear law all of its members obey.

    Args:
        plans: the others, each a `Plan` without a blend of its own.
        weights: theirs, positive; what their sum leaves to 1, also positive, is that of the plan
            or model that has the blend.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 3.0, 40)
        >>> data = vf.Trajectories.from_arrays([np.exp(-t)[:, None]], t)
        >>> line, wave = vf.Plan(vf.kernels.Linear()), vf.Plan(vf.kernels.Gaussian(2.0))
        >>> both = line.replace(blend=vf.Blend((wave,), (0.25,))).fit(data).field
        >>> x = np.array([[0.5]])
        >>> expected = 0.75 * line.fit(data).field(x) + 0.25 * wave.fit(data).field(x)
        >>> bool(np.allclose(both(x), expected, rtol=1e-12))
        True
    """

    plans: tuple[Plan, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        for name in ("plans", "weights"):
            value = getattr(self, name)
            if not isinstance(value, (tuple, list)) or not value:
                raise TypeError(f"{name} must be a tuple of one or more, got {value!r:.80}")
            object.__setattr__(self, name, tuple(value))
        weights = tuple(
            check_real(f"weights[{m}]", w, above=0.0) for m, w in enumerate(self.weights)
        )
        object.__setattr__(self, "weights", weights)
        if len(self.plans) != len(weights):
            raise ValueError(
                f"weights must be one for each plan, got {len(weights)} for {len(self.plans)}"
            )
        if not math.fsum(weights) < 1.0:
            raise ValueError(
                "weights must have a sum below 1, the rest being the weight of the plan that has "
                f"the blend, got {weights}"
            )
        for m, plan in enumerate(self.plans):
            if not hasattr(plan, "fit") or not hasattr(plan, "blend"):
                raise TypeError(f"plans[{m}] must be a Plan such as vf.Plan(), got {plan!r:.80}")
            if plan.blend is not None:
                raise ValueError(f"plans[{m}] has a blend of its own; put its plans into this one")

    @property
    def own(self) -> float:
        """The weight of the plan that has the blend."""
        return 1.0 - math.fsum(self.weights)


def mix(fields: Sequence[VectorField], weights: Sequence[float]) -> VectorField:
    """Return sum_m w_m f_m as one field, for w_m >= 0.

    Its shift, scale and spread are the first one's, its ``parts`` the weighted learned fields, and
    its prior the weighted sum of the priors. ``info`` is the first one's with a key ``blend``. A
    call costs as much as calls of all of them; it can be saved if each of them can.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 3.0, 40)
        >>> data = vf.Trajectories.from_arrays([np.exp(-t)[:, None]], t)
        >>> kernels = vf.kernels.Gaussian(2.0), vf.kernels.Linear()
        >>> fields = [vf.Plan(kernel).fit(data).field for kernel in kernels]
        >>> half = vf.blend.mix(fields, [0.5, 0.5])
        >>> x = np.array([[0.4], [0.7]])
        >>> bool(np.allclose(half(x), 0.5 * fields[0](x) + 0.5 * fields[1](x), rtol=1e-12))
        True
    """
    fields, weights = tuple(fields), tuple(weights)
    if not fields or len(fields) != len(weights):
        raise ValueError(
            f"fields and weights must be as many, at least one; got {len(fields)} and "
            f"{len(weights)}"
        )
    weights = tuple(check_real(f"weights[{m}]", w, at_least=0.0) for m, w in enumerate(weights))
    first = fields[0]
    for m, f in enumerate(fields):
        if f.feature_names != first.feature_names:
            raise VectorFieldError(
                f"fields[{m}] has the features {f.feature_names}, fields[0] {first.feature_names}; "
                "mix fields of the same coordinates"
            )
        if isinstance(f.expansion, Mixture):
            raise VectorFieldError(f"fields[{m}] is a mixture itself; mix its members instead")
    xp = _backend.namespace(first.shift)
    expansion = Mixture(
        members=tuple(f.expansion for f in fields),
        weights=weights,
        shifts=xp.stack([(f.shift - first.shift) / first.scale for f in fields]),
        scales=xp.stack([f.scale / first.scale for f in fields]),
    )
    drifts = [(f.prior, w) for f, w in zip(fields, weights, strict=True) if f.prior is not None]
    prior = DriftSum(*(tuple(part) for part in zip(*drifts, strict=True))) if drifts else None
    inner: dict[str, Any] = {"weights": list(weights), "members": [dict(f.info) for f in fields]}
    return VectorField(
        expansion=expansion,
        shift=first.shift,
        scale=first.scale,
        feature_names=first.feature_names,
        info=MappingProxyType(dict(first.info) | {"blend": inner}),
        prior=prior,
    )
