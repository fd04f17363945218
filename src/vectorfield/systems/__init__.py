"""Known ODEs: vector fields with their exact Jacobians, to make data and to judge learners by.

A system is a value: its parameters are its fields, and `replace` gives another one. All take
points (n, d) to vectors (n, d), or one point (d,) to one vector (d,).
"""

from vectorfield.systems._affine import Linear, Scaled
from vectorfield.systems._base import System
from vectorfield.systems._classics import (
    FitzHughNagumo,
    Lorenz63,
    Lorenz96,
    Pendulum,
    VanDerPol,
)

__all__ = [
    "FitzHughNagumo",
    "Linear",
    "Lorenz63",
    "Lorenz96",
    "Pendulum",
    "Scaled",
    "System",
    "VanDerPol",
]
