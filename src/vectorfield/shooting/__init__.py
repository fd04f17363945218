"""Fits of whole windows of trajectories, for noisy snapshots."""

from vectorfield.shooting.normal import best_starts
from vectorfield.shooting.paths import Flow, follow
from vectorfield.shooting.refine import Refined, Shooting
from vectorfield.shooting.windows import Windows, cut

__all__ = ["Flow", "Refined", "Shooting", "Windows", "best_starts", "cut", "follow"]
