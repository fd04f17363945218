"""Data sets to try things on: computed from known systems, or measured and shipped."""

from __future__ import annotations

from vectorfield._settings import check_integer
from vectorfield.datasets._dataset import Dataset, Description
from vectorfield.datasets._shipped import SHIPPED, read_shipped
from vectorfield.datasets._synthetic import RECIPES, compute

__all__ = ["Dataset", "Description", "describe", "load", "names"]


def names() -> tuple[str, ...]:
    """Return the names that `load` knows.

    Example:
        >>> from vectorfield.datasets import names
        >>> names()[:3]
        ('nfhn', 'lorenz63', 'lorenz96-16')
    """
    return (*RECIPES, *SHIPPED)


def describe() -> tuple[Description, ...]:
    """Return what every set holds, where it comes from and its terms; nothing is loaded.

    Example:
        >>> from vectorfield.datasets import describe
        >>> print(describe()[0].text)
        FitzHughNagumo with 2 coordinates, 201 samples 0.1 apart; Gaussian noise of sd 0.12.
    """
    return (*(recipe.describe(name) for name, recipe in RECIPES.items()), *SHIPPED.values())


def load(name: str, *, seed: int = 0) -> Dataset:
    """Return a data set; equal arguments give equal data.

    Args:
        name: one of `names`, in capitals or not.
        seed: of the starts, the noise and the parts of a computed set. Measured sets are
            divided as stored, whatever the seed.

    Cost: under a second for most; the larger Lorenz96 sets are integrated in some seconds.

    Example:
        >>> from vectorfield.datasets import load
        >>> data = load("Pendulum")
        >>> data.train
        Trajectories(n=60, d=2, samples=3000, lengths 50 to 50)
        >>> data.field
        Pendulum(length=1.0, gravity=9.8)
    """
    known = str(name).lower()
    check_integer("seed", seed, at_least=0)
    if known in RECIPES:
        return compute(known, seed)
    if known in SHIPPED:
        return read_shipped(known)
    raise ValueError(f"no data set {name!r}; there are {', '.join(names())}")
