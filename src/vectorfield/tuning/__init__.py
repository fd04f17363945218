"""Choosing plans on held-out trajectories."""

from vectorfield.tuning.bayesian import BayesianSearch
from vectorfield.tuning.closed_form import LeftOut, MarginalLikelihood
from vectorfield.tuning.objectives import Both, Objective, OneStep, Rollout, Windowed
from vectorfield.tuning.search import Search
from vectorfield.tuning.searcher import Searcher
from vectorfield.tuning.study import Study
from vectorfield.tuning.trials import Report, Trial

__all__ = [
    "BayesianSearch",
    "Both",
    "LeftOut",
    "MarginalLikelihood",
    "Objective",
    "OneStep",
    "Report",
    "Rollout",
    "Search",
    "Searcher",
    "Study",
    "Trial",
    "Windowed",
]
