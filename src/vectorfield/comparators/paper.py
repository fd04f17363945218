"""The occupation kernel methods of the paper, tuned as it tuned them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from vectorfield.comparators.attempts import Attempts
from vectorfield.comparators.rival import Rival
from vectorfield.kernels import (
    Gaussian,
    Laplace,
    Matern,
    OperatorKernel,
    RandomFourier,
    ScalarKernel,
)
from vectorfield.occupation import Trapezoid, White
from vectorfield.plan import Plan
from vectorfield.trajectories import Trajectories
from vectorfield.tuning import BayesianSearch
from vectorfield.tuning.searcher import Searcher

__all__ = ["PAPER_KERNELS", "Paper"]

BAYESIAN = BayesianSearch()

PAPER_KERNELS: Mapping[str, ScalarKernel | OperatorKernel] = MappingProxyType(
    {
        "ockG": Gaussian(),
        "ockL": Laplace(),
        "ockM": Matern(5.5),
        "ockF": RandomFourier(Gaussian(), 200, orthogonal=False),
    }
)
"""The kernels of the paper's four methods: Gaussian, Laplace, Matern C^10, random features."""


class Paper(Rival):
    """The paper's procedure: `MOCK` with its loss and rule, length scale and ridge tuned.

    f minimises the mean of |y - L f|^2 plus ridge |f|^2, with y the increments from sample to
    sample and L the trapezoid rule: white loss, no prior, no smoothing. Length scale and ridge
    have the lowest Err of whole rollouts on held-out trajectories, out of 40 candidates that
    scikit-optimize's ``gp_minimize`` proposes (the extra ``bayes``).

    Cost: O(N^2 d) for the matrix of each length scale, N^3 / 3 for each ridge; with q random
    features N q^2 + q^3 / 3. A call of the field O(n N d), or O(n q d).

    Args:
        kernel: one of `PAPER_KERNELS`; an open length scale is looked for, a given one is where
            the search is centred.
        standardize: as `MOCK`'s; the paper's sets are in such units already.
        search: how length scale and ridge are looked for: `tuning.BayesianSearch`, as the paper
            did, or `LogGrid`, which needs no extra.

    Attributes:
        field_: a `VectorField`.
        report_: what was tried.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 6.0, 61)
        >>> xs = [a * np.stack([np.cos(t), -np.sin(t)], axis=1) for a in (0.5, 1.0, 1.5, 2.0)]
        >>> search = vf.comparators.LogGrid(folds=2)
        >>> ockG = vf.comparators.Paper(vf.comparators.PAPER_KERNELS["ockG"], search=search)
        >>> ockG.fit(xs, t).score(xs, t) > 0.95, len(ockG.report_)
        (True, 40)
    """

    def __init__(
        self,
        kernel: ScalarKernel | OperatorKernel = PAPER_KERNELS["ockG"],
        *,
        standardize: bool = True,
        search: Searcher = BAYESIAN,
    ) -> None:
        self.kernel = kernel
        self.standardize = standardize
        self.search = search

    def _learn(self, train: Trajectories, validation: Trajectories | None) -> tuple[Any, Attempts]:
        plan = Plan(self.kernel, rule=Trapezoid(), noise=White(), standardize=self.standardize)
        report = self.search(plan, frozenset(("ridge",)), train, validation)
        return report.best.plan.fit(train).field, Attempts.of([report])

    def _check_settings(self) -> None:
        if not isinstance(self.search, Searcher):
            raise TypeError(f"search must be a search such as LogGrid(), got {self.search!r}")
