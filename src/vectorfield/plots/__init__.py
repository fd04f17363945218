"""Figures: fields and trajectories, what a search tried, and which coordinate drives which.

The functions draw and return; they show nothing, and leave matplotlib's settings and pyplot's
figures alone. Where no axes are given they make a figure of their own, ``ax.figure``, which
``savefig`` writes to a file and which a notebook displays.
"""

from vectorfield.plots._fields import PREDICTED, TRUE, phase_portrait, trajectories
from vectorfield.plots._search import search
from vectorfield.plots._structure import dependencies, stencil

__all__ = [
    "PREDICTED",
    "TRUE",
    "dependencies",
    "phase_portrait",
    "search",
    "stencil",
    "trajectories",
]
