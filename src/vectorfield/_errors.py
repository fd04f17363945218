"""Every exception that the library raises on purpose.

An error says which argument, what was expected, what came, and what to do about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vectorfield.linalg.solution import Solution
    from vectorfield.simulate import Simulation

__all__ = [
    "DataError",
    "MissingExtraError",
    "ModelFileError",
    "SearchWarning",
    "SimulationError",
    "SimulationWarning",
    "SolveError",
    "SolveWarning",
    "VectorFieldError",
]


class VectorFieldError(Exception):
    """Base of all errors of the library."""


class DataError(VectorFieldError, ValueError):
    """Trajectories, tables or states that cannot be used as given."""


class ModelFileError(VectorFieldError, ValueError):
    """A model file that is not one, is damaged, or is of a later format."""


class MissingExtraError(VectorFieldError, ImportError):
    """An optional dependency is needed; the message names the extra (or package) to install."""

    def __init__(self, package: str, extra: str | None, purpose: str) -> None:
        wanted = package if extra is None else f"'vectorfield[{extra}]'"
        super().__init__(f"{purpose} needs {package}: install it with  pip install {wanted}")


class SolveError(VectorFieldError, ArithmeticError):
    """The linear system could not be solved; ``solution`` holds status and figures."""

    def __init__(self, message: str, solution: Solution) -> None:
        super().__init__(message)
        self.solution = solution


class SolveWarning(UserWarning):
    """The linear system was close to singular; the fit may be less accurate than hoped."""


class SearchWarning(UserWarning):
    """A search found no field that is clearly better than the null model, x(t) = x(0)."""


class SimulationError(VectorFieldError, ArithmeticError):
    """A simulation stopped early; ``simulation`` holds the part that is good."""

    def __init__(self, message: str, simulation: Simulation) -> None:
        super().__init__(message)
        self.simulation = simulation


class SimulationWarning(UserWarning):
    """A simulation stopped early and the rest of its output is NaN."""
