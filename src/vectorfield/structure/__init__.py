"""Which coordinate drives which: sparse structure found from trajectories."""

from vectorfield.structure.fitting import on_inputs, sparse_plan, structured
from vectorfield.structure.report import Dependencies, Edge
from vectorfield.structure.settings import Structure, discover_structure

__all__ = [
    "Dependencies",
    "Edge",
    "Structure",
    "discover_structure",
    "on_inputs",
    "sparse_plan",
    "structured",
]
