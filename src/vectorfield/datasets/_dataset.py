"""What a data set is, loaded and described."""

from __future__ import annotations

from dataclasses import dataclass

from vectorfield.systems import System
from vectorfield.trajectories import Splits, Trajectories

__all__ = ["Dataset", "Description"]


@dataclass(frozen=True)
class Description:
    """A data set in words and figures, known without loading it.

    Attributes:
        name: what `load` calls it.
        real: whether it was measured; otherwise it is computed from a known system.
        d: number of features.
        trajectories: number of trajectories in all three parts.
        samples: mean number of samples of a trajectory.
        text: what it holds, in a sentence or two.
        source: where it comes from.
        terms: on what terms it may be used, and what its makers ask for.

    Example:
        >>> from vectorfield.datasets import describe
        >>> [one.d for one in describe() if one.name == "pbc"]
        [6]
    """

    name: str
    real: bool
    d: int
    trajectories: int
    samples: float
    text: str
    source: str
    terms: str


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Trajectories for training, validation and test, and what is known about them.

    Attributes:
        name: name of the set.
        train: training trajectories.
        validation: validation trajectories.
        test: test trajectories.
        clean: the trajectories without noise, row for row those of ``splits``; None for
            measured sets.
        field: the true vector field in the coordinates of the data; None for measured sets.
        source: where the data come from.
        terms: on what terms they may be used.
        description: what they are.

    Example:
        >>> from vectorfield.datasets import load
        >>> load("pendulum")
        Dataset('pendulum', d=2, trajectories 60 + 20 + 20)
    """

    name: str
    train: Trajectories
    validation: Trajectories
    test: Trajectories
    clean: Splits | None
    field: System | None
    source: str
    terms: str
    description: str

    @property
    def splits(self) -> Splits:
        """The three parts as one value, such as `vectorfield.write_splits` takes."""
        return Splits(self.train, self.validation, self.test)

    def __repr__(self) -> str:
        counts = f"{len(self.train)} + {len(self.validation)} + {len(self.test)}"
        return f"Dataset({self.name!r}, d={self.train.d}, trajectories {counts})"
