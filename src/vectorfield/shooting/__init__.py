"""Fits of whole windows of trajectories: for noisy snapshots, and for the errors of rollouts."""

from vectorfield.shooting.normal import best_starts
from vectorfield.shooting.paths import Flow, follow
from vectorfield.shooting.refine import Refined, Shooting
from vectorfield.shooting.refinement import Outcome, Refinement
from vectorfield.shooting.rollouts import RolledOut, Rollouts
from vectorfield.shooting.windows import Windows, cut

__all__ = [
    "Flow",
    "Outcome",
    "Refined",
    "Refinement",
    "RolledOut",
    "Rollouts",
    "Shooting",
    "Windows",
    "best_starts",
    "cut",
    "follow",
]
