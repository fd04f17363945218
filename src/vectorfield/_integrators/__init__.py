"""Integrators behind `vectorfield.simulate`: our batched explicit pairs, and SciPy's stiff ones."""

from vectorfield._integrators.batch import integrate
from vectorfield._integrators.problem import Ended, Problem
from vectorfield._integrators.stiff import integrate_stiff

__all__ = ["Ended", "Problem", "integrate", "integrate_stiff"]
