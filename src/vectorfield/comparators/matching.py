"""Gradient matching: kernel ridge regression of difference quotients, the paper's ablation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vectorfield.comparators.attempts import Attempts
from vectorfield.comparators.grid import LogGrid
from vectorfield.comparators.rival import Rival
from vectorfield.kernels import Gaussian, OperatorKernel, ScalarKernel
from vectorfield.occupation import CentralDifference, ForwardDifference, Rule
from vectorfield.plan import Plan
from vectorfield.trajectories import Trajectories
from vectorfield.tuning.searcher import Searcher

__all__ = ["GradientMatching"]

GAUSSIAN, GRID = Gaussian(), LogGrid()
RIDGE = frozenset(("ridge",))
QUOTIENTS = (CentralDifference(), ForwardDifference())


class GradientMatching(Rival):
    """f minimises the mean of |f(x_k) - v_k|^2 plus ridge |f|^2, v_k difference quotients.

    The regression of the paper's ablation: the same space and ridge as `MOCK`'s, but values of f
    at the samples in place of its integrals. The paper's quotients are forward ones,
    v_k = (x_(k+1) - x_k) / (t_(k+1) - t_k); central ones, of second order, are tried as well.
    Length scale and ridge are chosen on held-out rollouts, and so is the quotient.

    Cost: O(N^2 d) for the matrix of each length scale and quotient, N^3 / 3 for each ridge, with
    N about the number of samples; memory N^2. A call of the field O(n N d).

    Args:
        kernel: Gaussian as in the paper; an open length scale is looked for, a given one is
            where the search is centred.
        rules: the quotients that are tried.
        search: how length scale and ridge are looked for, for each quotient: `LogGrid`, or
            `tuning.BayesianSearch` as in the paper.

    Attributes:
        field_: a `VectorField`.
        report_: what was tried.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 6.0, 61)
        >>> xs = [a * np.stack([np.cos(t), -np.sin(t)], axis=1) for a in (0.5, 1.0, 1.5, 2.0)]
        >>> model = vf.comparators.GradientMatching(search=vf.comparators.LogGrid(folds=2))
        >>> model.fit(xs, t).report_.best.settings["rule"], model.score(xs, t) > 0.95
        (CentralDifference(), True)
    """

    def __init__(
        self,
        kernel: ScalarKernel | OperatorKernel = GAUSSIAN,
        *,
        rules: Sequence[Rule] = QUOTIENTS,
        search: Searcher = GRID,
    ) -> None:
        self.kernel = kernel
        self.rules = rules
        self.search = search

    def _learn(self, train: Trajectories, validation: Trajectories | None) -> tuple[Any, Attempts]:
        plans = [Plan(self.kernel, rule=rule) for rule in self.rules]
        reports = [self.search(plan, RIDGE, train, validation) for plan in plans]
        best = min(reports, key=lambda report: report.best.score).best.plan
        return best.fit(train).field, Attempts.of(reports)

    def _check_settings(self) -> None:
        if not isinstance(self.search, Searcher):
            raise TypeError(f"search must be a search such as LogGrid(), got {self.search!r}")
        if not isinstance(self.rules, (tuple, list)) or not self.rules:
            raise ValueError(f"rules must be a tuple of at least one rule, got {self.rules!r}")
        for rule in self.rules:
            if not isinstance(rule, Rule):
                raise TypeError(f"rules must hold values such as CentralDifference(), got {rule!r}")
