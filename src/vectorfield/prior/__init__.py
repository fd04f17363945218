"""Prior mean fields: f = f0 + g, where f0 is set beforehand and g is learned.

A *prior* (settings) bound to trajectories is a *drift* f0, a function of the state in the units of
the data. Where there are no data the learned rest g goes to zero, and f to f0.
"""

from vectorfield.prior._base import Drift, Prior, centred
from vectorfield.prior._codec import restore
from vectorfield.prior._known import Known, KnownDrift
from vectorfield.prior._linear import AffineDrift, LinearPrior
from vectorfield.prior._mean import KernelReversion, MeanReversion, MeanReverting
from vectorfield.prior._sum import DriftSum

__all__ = [
    "AffineDrift",
    "Drift",
    "DriftSum",
    "KernelReversion",
    "Known",
    "KnownDrift",
    "LinearPrior",
    "MeanReversion",
    "MeanReverting",
    "Prior",
    "centred",
    "restore",
]
