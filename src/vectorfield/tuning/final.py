"""The fit to all training data that follows a search."""

from __future__ import annotations

from dataclasses import replace

from vectorfield._errors import SolveError
from vectorfield.plan import Fitted, Plan
from vectorfield.trajectories import Trajectories
from vectorfield.tuning.trials import Report

__all__ = ["RAISES", "fit_chosen"]

RAISES = 6  # times ten


def fit_chosen(
    report: Report, trajectories: Trajectories, *, raises: int = RAISES
) -> tuple[Report, Fitted]:
    """Fit the plan that a search chose; return the report of what was fitted, and the fit.

    The system of all data is closer to singular than those of the folds were. Where it cannot be
    solved at the ridge that was judged, the next larger ones are taken, ``raises`` times at most
    by a factor of 10, and ``report.notes`` says so; after the last SolveError.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 6.0, 61)
        >>> xs = [a * np.stack([np.cos(t), -np.sin(t)], axis=1) for a in (0.5, 1.0, 1.5, 2.0)]
        >>> data = vf.Trajectories.from_arrays(xs, t)
        >>> found = vf.Search(folds=2)(vf.Plan(vf.kernels.Linear()), frozenset({"ridge"}), data)
        >>> report, fitted = fit_chosen(found, data)
        >>> report.best.plan.ridge == fitted.ridge
        True
    """
    while True:
        plan = report.best.plan
        try:
            return report, plan.fit(trajectories)
        except SolveError:
            if raises == 0 or plan.ridge is None:
                raise
            raises -= 1
            report = report.with_ridge(_raised(plan))


def _raised(plan: Plan) -> Plan:
    """Return the plan with ten times the ridge, its own and that of each plan of its blend."""
    blend = plan.blend
    if blend is not None:
        blend = replace(blend, plans=tuple(_raised(other) for other in blend.plans))
    return replace(plan, ridge=None if plan.ridge is None else 10.0 * plan.ridge, blend=blend)
