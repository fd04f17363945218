"""What a refinement is: a fit that goes on from a regression's field along its paths."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

from vectorfield._settings import Settings
from vectorfield.kernels.expansion import Expansion
from vectorfield.shooting.paths import Flow
from vectorfield.trajectories import Trajectories

__all__ = ["Outcome", "Refinement"]


class Outcome(Protocol):
    """What every refinement gives; each kind adds its own figures."""

    @property
    def expansion(self) -> Expansion:
        """The refined field."""

    @property
    def shift(self) -> float:
        """The ridge term, ridge N, that the field goes with."""

    @property
    def converged(self) -> bool:
        """Whether it settled within the iterations."""


class Refinement(Settings, ABC):
    """Settings of a refinement: the part ``refine`` of `MOCK` and `Plan`.

    A regression compares increments with integrals of the field along the data. A refinement
    starts from its field and compares whole paths: `Shooting` with starts that are estimated
    along, for noisy snapshots, `Rollouts` from observed starts, for what a simulation will be
    asked.

    Example:
        >>> import vectorfield as vf
        >>> all(isinstance(r, vf.shooting.Refinement) for r in (vf.Shooting(), vf.Rollouts()))
        True
    """

    __slots__ = ()

    def shift(self, ridge: float, count: int) -> float:
        """Return the ridge term to begin with, of ``count`` observations fitted with ``ridge``."""
        return ridge * count

    @abstractmethod
    def __call__(
        self,
        expansion: Expansion,
        trajectories: Trajectories,
        shift: float,
        drift: Flow | None = None,
        *,
        choose: bool = False,
    ) -> Outcome:
        """Refine the field of ``expansion`` on trajectories in its coordinates.

        ``shift`` is the ridge term of the regression; with ``choose`` a refinement that knows how
        goes on to a better one. ``drift`` is a known part of the field, which is not changed.
        """
