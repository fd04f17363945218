"""SciPy's implicit methods, start by start, with the field's Jacobian where there is one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.integrate import BDF, LSODA, OdeSolver, Radau

from vectorfield import _backend
from vectorfield._integrators.problem import TINY, Ended, Problem
from vectorfield._progress import report

__all__ = ["integrate_stiff"]

SOLVERS = {"Radau": Radau, "BDF": BDF, "LSODA": LSODA}


def integrate_stiff(problem: Problem, method: str, max_steps: int) -> Ended:
    """Integrate every start with ``"Radau"``, ``"BDF"`` or ``"LSODA"``."""
    one = _OneState(problem)
    settings: dict[str, Any] = {
        "rtol": max(problem.rtol, 3e-14),
        "atol": np.maximum(_backend.to_numpy(problem.atol), TINY),
    }
    if hasattr(problem.field, "jacobian"):
        settings["jac"] = one.jacobian
    make = partial(SOLVERS[method], one.rate, **settings)
    states, outcomes = [], []
    reached = np.asarray([t[0] for t in problem.times])
    steps = np.zeros(len(problem.times), dtype=int)
    for i, (x0, t) in enumerate(zip(_backend.to_numpy(problem.starts), problem.times, strict=True)):
        values = np.full((len(t), len(x0)), np.nan)
        values[0] = x0
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="lsoda:")  # what it says is a status here
            outcome, reached[i], steps[i] = _run(one, make, values, t, max_steps)
        states.append(_backend.array_like(values, problem.starts))
        outcomes.append(outcome)
        report("simulation", (i + 1) / len(problem.times))
    return Ended(states, outcomes, reached, steps, one.calls)


class _OneState:
    """f and its Jacobian at one state, as SciPy calls them; notes whether they stay finite."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.calls = 0
        self.was_finite = True

    def rate(self, _: float, x: np.ndarray) -> np.ndarray:
        self.calls += 1
        return self._noted(self.problem.rate(self._batch(x)))

    def jacobian(self, _: float, x: np.ndarray) -> np.ndarray:
        return self._noted(self.problem.field.jacobian(self._batch(x)))  # type: ignore[attr-defined]

    def _batch(self, x: np.ndarray) -> Any:
        return _backend.array_like(x[None, :], self.problem.starts)

    def _noted(self, value: Any) -> np.ndarray:
        result = np.asarray(_backend.to_numpy(value)[0])
        self.was_finite = self.was_finite and bool(np.isfinite(result).all())
        return result


def _run(
    one: _OneState,
    make: Callable[[float, np.ndarray, float], OdeSolver],
    values: np.ndarray,
    t: np.ndarray,
    max_steps: int,
) -> tuple[str, float, int]:
    """Fill ``values`` from row 1 on; return the outcome, the time reached and the steps taken."""
    last, done, steps = float(t[0]), 1, 0
    one.was_finite = True
    if len(t) == 1:
        return "FINISHED", last, steps
    if not np.isfinite(one.rate(last, values[0])).all():
        return "BLEW_UP", last, steps
    solver = make(t[0], values[0], t[-1])
    outcome = "FINISHED"
    while done < len(t):
        outcome = _step(one, solver) if steps < max_steps else "TOO_MANY_STEPS"
        if outcome != "FINISHED":
            break
        last, steps = float(solver.t), steps + 1
        until = int(np.searchsorted(solver.direction * t, solver.direction * last, side="right"))
        if until > done:
            values[done:until] = solver.dense_output()(t[done:until]).T
            done = until
    return outcome, last, steps


def _step(one: _OneState, solver: OdeSolver) -> str:
    before = solver.t
    try:
        solver.step()
    except ValueError as error:  # SciPy cannot factor a Jacobian that is not finite
        if one.was_finite and "infs or NaNs" not in str(error):
            raise
        return "BLEW_UP"
    if not np.isfinite(solver.y).all():
        return "BLEW_UP"
    if solver.status == "failed":
        return "SOLVER_FAILED" if one.was_finite else "BLEW_UP"
    return "STEP_TOO_SMALL" if solver.t == before else "FINISHED"
