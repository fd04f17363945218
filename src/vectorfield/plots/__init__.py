"""Figures: fields and trajectories, and what a search tried.

The functions draw and return; they show nothing, and leave matplotlib's settings and pyplot's
figures alone. Where no axes are given they make a figure of their own, ``ax.figure``, which
``savefig`` writes to a file and which a notebook displays.
"""

from vectorfield.plots._fields import PREDICTED, TRUE, phase_portrait, trajectories
from vectorfield.plots._search import search

__all__ = ["PREDICTED", "TRUE", "phase_portrait", "search", "trajectories"]
