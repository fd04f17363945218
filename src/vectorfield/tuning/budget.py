"""The time that a search may take."""

from __future__ import annotations

from time import monotonic

__all__ = ["Budget"]


class Budget:
    """Time since the budget was made, and whether it is used up; never, with a limit of None."""

    def __init__(self, limit: float | None) -> None:
        self.limit = limit
        self._began = monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return monotonic() - self._began

    @property
    def share(self) -> float:
        """Share of the limit that is used; 0 without one."""
        return 0.0 if self.limit is None else min(1.0, self.seconds / self.limit)

    def over(self) -> bool:
        """Whether no further trial should begin."""
        return self.limit is not None and self.seconds > self.limit
