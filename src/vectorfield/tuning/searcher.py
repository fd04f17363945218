"""What every search is: from a plan with parts left open to one that has all."""

from __future__ import annotations

from abc import ABC, abstractmethod

from vectorfield._settings import Settings
from vectorfield.plan import Plan
from vectorfield.trajectories import Trajectories
from vectorfield.tuning.trials import Report

__all__ = ["Searcher"]


class Searcher(Settings, ABC):
    """Settings of a search, which `MOCK` calls with what was left out; see `Search`."""

    def parts(
        self, train: Trajectories, validation: Trajectories | None
    ) -> tuple[Trajectories, Trajectories | None]:
        """Return what is learned from, and what is only judged on if there is any."""
        return train, validation

    @abstractmethod
    def __call__(
        self,
        plan: Plan,
        left_open: frozenset[str],
        train: Trajectories,
        validation: Trajectories | None = None,
    ) -> Report:
        """Choose the parts of ``plan`` named in ``left_open``; the others stay as they are.

        ``report.best.plan`` has all parts, its ridge that for fitting all of ``train``.
        """
