"""Observations of a field: from trajectories to sparse linear functionals of f.

A *rule* turns `vectorfield.trajectories.Trajectories` into `Occupations`: rows
(L f)_s = sum_q W[s, q] f(z_q) with targets y = D x that are linear in the snapshots. A *noise
model* turns `Occupations` into the covariance Sigma of the targets, the metric of the loss.
"""

from vectorfield.occupation.differences import CentralDifference, ForwardDifference
from vectorfield.occupation.increments import IncrementRule, Lagrange, Spline, Trapezoid
from vectorfield.occupation.noise import Noise, SnapshotNoise, White
from vectorfield.occupation.occupations import Occupations, Rule
from vectorfield.occupation.windows import WeakForm, Windows

__all__ = [
    "CentralDifference",
    "ForwardDifference",
    "IncrementRule",
    "Lagrange",
    "Noise",
    "Occupations",
    "Rule",
    "SnapshotNoise",
    "Spline",
    "Trapezoid",
    "WeakForm",
    "White",
    "Windows",
]
