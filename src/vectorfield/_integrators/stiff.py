"""SciPy's implicit methods, start by start, with the field's Jacobian where there is one."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from vectorfield import _backend
from vectorfield._integrators.problem import Ended, Problem

__all__ = ["integrate_stiff"]


def integrate_stiff(problem: Problem, method: str) -> Ended:
    """Integrate every start with ``"Radau"``, ``"BDF"`` or ``"LSODA"``."""
    field, starts = problem.field, problem.starts
    calls = 0

    def rate(_: float, x: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        return np.asarray(_backend.to_numpy(field(_backend.array_like(x[None, :], starts)))[0])

    settings: dict[str, Any] = {
        "method": method,
        "rtol": max(problem.rtol, 3e-14),
        "atol": _backend.to_numpy(problem.atol),
    }
    slope = getattr(field, "jacobian", None)
    if slope is not None:
        settings["jac"] = lambda _, x: _backend.to_numpy(
            slope(_backend.array_like(x[None, :], starts))
        )[0]
    states, outcomes = [], []
    reached = np.asarray([t[0] for t in problem.times])
    steps = np.zeros(len(problem.times), dtype=int)
    for i, (x0, t) in enumerate(zip(_backend.to_numpy(starts), problem.times, strict=True)):
        values = np.full((len(t), len(x0)), np.nan)
        values[0] = x0
        outcome = "FINISHED"
        if len(t) > 1:
            with np.errstate(over="ignore", invalid="ignore"):
                run = solve_ivp(rate, (t[0], t[-1]), x0, t_eval=t, **settings)
            finite = np.isfinite(run.y).all(axis=0)
            good = len(finite) if finite.all() else int(np.argmin(finite))
            values[1:good] = run.y[:, 1:good].T  # the first is x0 itself, not interpolated
            reached[i], steps[i] = t[max(good - 1, 0)], run.nfev
            if not finite.all():
                outcome = "BLEW_UP"
            elif run.status != 0:
                outcome = "SOLVER_FAILED"
        states.append(_backend.array_like(values, starts))
        outcomes.append(outcome)
    return Ended(states, outcomes, reached, steps, calls)
