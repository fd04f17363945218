"""Rivals of `MOCK`: other ways to learn a field, behind the same methods, tuned alike.

Each has ``fit(x, t, validation=...)``, ``predict``, ``simulate`` and ``score``, and chooses its
settings by Err of rollouts on held-out trajectories, over that of the null model, each feature in
units of its standard deviation. What was tried, and how it went, is in ``report_``.
"""

from vectorfield.comparators.attempts import Attempt, Attempts
from vectorfield.comparators.derivatives import (
    Derivatives,
    Differences,
    SmoothedDifferences,
    Splines,
)
from vectorfield.comparators.grid import LogGrid
from vectorfield.comparators.matching import GradientMatching
from vectorfield.comparators.null import NullModel
from vectorfield.comparators.paper import PAPER_KERNELS, Paper
from vectorfield.comparators.polynomial import PolynomialField
from vectorfield.comparators.rival import Rival
from vectorfield.comparators.sindy import SINDy

__all__ = [
    "PAPER_KERNELS",
    "Attempt",
    "Attempts",
    "Derivatives",
    "Differences",
    "GradientMatching",
    "LogGrid",
    "NullModel",
    "Paper",
    "PolynomialField",
    "Rival",
    "SINDy",
    "SmoothedDifferences",
    "Splines",
]
