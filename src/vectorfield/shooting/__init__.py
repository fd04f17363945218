"""Fits of whole windows of trajectories, for noisy snapshots."""

from vectorfield.shooting.normal import best_starts
from vectorfield.shooting.paths import CLASSICAL, EIGHTH, Flow, Scheme, follow
from vectorfield.shooting.refine import Refined, Shooting
from vectorfield.shooting.windows import Windows, cut

__all__ = [
    "CLASSICAL",
    "EIGHTH",
    "Flow",
    "Refined",
    "Scheme",
    "Shooting",
    "Windows",
    "best_starts",
    "cut",
    "follow",
]
