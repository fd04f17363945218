"""Learn the vector field f of an ODE dx/dt = f(x) from trajectories.

>>> import numpy as np, vectorfield as vf
>>> t = np.linspace(0.0, 5.0, 51)
>>> xs = [a * np.stack([np.cos(t), -np.sin(t)], axis=1) for a in (0.5, 1.0, 1.5)]
>>> model = vf.MOCK(vf.kernels.Gaussian(2.0), 1e-9).fit(xs, t)
>>> model.predict(np.array([[1.0, 0.0]])).round(2)
array([[ 0., -1.]])
"""

from vectorfield import (
    blend,
    comparators,
    datasets,
    kernels,
    linalg,
    metrics,
    occupation,
    prior,
    robust,
    shooting,
    smoothing,
    systems,
    tables,
)
from vectorfield._errors import (
    DataError,
    MissingExtraError,
    ModelFileError,
    SearchWarning,
    SimulationError,
    SimulationWarning,
    SolveError,
    SolveWarning,
    VectorFieldError,
)
from vectorfield._progress import progress
from vectorfield.blend import Blend
from vectorfield.compression import compress
from vectorfield.field import VectorField, load
from vectorfield.mock import MOCK
from vectorfield.plan import Plan
from vectorfield.robust import Huber
from vectorfield.shooting import Rollouts, Shooting
from vectorfield.simulate import Outcome, Simulation, rollout, simulate
from vectorfield.smoothing import SplineSmoother, noise_level
from vectorfield.structure import Dependencies, Structure, discover_structure
from vectorfield.tables import read_splits, read_trajectories, write_splits, write_trajectories
from vectorfield.trajectories import Splits, Trajectories, Trajectory
from vectorfield.tuning import Report, Search

__version__ = "0.1.0"

__all__ = [
    "MOCK",
    "Blend",
    "DataError",
    "Dependencies",
    "Huber",
    "MissingExtraError",
    "ModelFileError",
    "Outcome",
    "Plan",
    "Report",
    "Rollouts",
    "Search",
    "SearchWarning",
    "Shooting",
    "Simulation",
    "SimulationError",
    "SimulationWarning",
    "SolveError",
    "SolveWarning",
    "SplineSmoother",
    "Splits",
    "Structure",
    "Trajectories",
    "Trajectory",
    "VectorField",
    "VectorFieldError",
    "blend",
    "comparators",
    "compress",
    "datasets",
    "discover_structure",
    "kernels",
    "linalg",
    "load",
    "metrics",
    "noise_level",
    "occupation",
    "prior",
    "progress",
    "read_splits",
    "read_trajectories",
    "robust",
    "rollout",
    "shooting",
    "simulate",
    "smoothing",
    "systems",
    "tables",
    "write_splits",
    "write_trajectories",
]
