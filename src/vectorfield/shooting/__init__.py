"""Fits of whole windows of trajectories: for noisy snapshots, and for the errors of rollouts."""

from vectorfield.shooting.normal import best_starts
from vectorfield.shooting.paths import CLASSICAL, EIGHTH, Flow, Scheme, follow
from vectorfield.shooting.refine import Refined, Shooting
from vectorfield.shooting.refinement import Outcome, Refinement
from vectorfield.shooting.rollouts import RolledOut, Rollouts
from vectorfield.shooting.windows import Windows, cut

__all__ = [
    "CLASSICAL",
    "EIGHTH",
    "Flow",
    "Outcome",
    "Refined",
    "Refinement",
    "RolledOut",
    "Rollouts",
    "Scheme",
    "Shooting",
    "Windows",
    "best_starts",
    "cut",
    "follow",
]
