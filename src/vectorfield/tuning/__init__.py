"""Choosing plans on held-out trajectories."""

from vectorfield.tuning.closed_form import LeftOut, MarginalLikelihood
from vectorfield.tuning.objectives import Both, Objective, OneStep, Rollout, Windowed
from vectorfield.tuning.search import Search
from vectorfield.tuning.trials import Report, Trial

__all__ = [
    "Both",
    "LeftOut",
    "MarginalLikelihood",
    "Objective",
    "OneStep",
    "Report",
    "Rollout",
    "Search",
    "Trial",
    "Windowed",
]
