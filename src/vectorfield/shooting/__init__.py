"""Fits of whole windows of trajectories, for noisy snapshots."""

from vectorfield.shooting.refine import Refined, Shooting

__all__ = ["Refined", "Shooting"]
