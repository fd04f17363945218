"""Drifts from what a model file says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vectorfield.prior._base import Drift
from vectorfield.prior._linear import AffineDrift
from vectorfield.prior._mean import KernelReversion, MeanReversion
from vectorfield.prior._sum import DriftSum

__all__ = ["restore"]

_KINDS: dict[str, type[Drift]] = {
    "affine": AffineDrift,
    "mean-reversion": MeanReversion,
    "kernel-reversion": KernelReversion,
    "sum": DriftSum,
}


def restore(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Drift:
    """Return the drift that `Drift.describe` gave; ValueError or KeyError if it is none.

    >>> import numpy as np, vectorfield as vf
    >>> drift = vf.prior.MeanReversion(rate=2.0, centre=np.array([1.0]))
    >>> vf.prior.restore(*drift.describe())
    MeanReversion(rate=2.0, centre=array([1.]))
    """
    kind = header["kind"]
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"unknown kind of prior {kind!r:.80}")
    return _KINDS[kind].restored(header, arrays)
