"""Simulation of a field: many starts at once, each with its own steps, its own end."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from vectorfield import _backend
from vectorfield._errors import DataError, SimulationError, SimulationWarning
from vectorfield._integrators import Problem, integrate, integrate_stiff
from vectorfield._settings import check_choice, check_integer, check_real
from vectorfield.trajectories import Trajectories

__all__ = ["Outcome", "Simulation", "rollout", "simulate"]

EXPLICIT = ("DOP853", "RK45")
IMPLICIT = ("Radau", "BDF", "LSODA")


class Outcome(Enum):
    """How the simulation of one start ended."""

    FINISHED = "finished"
    BLEW_UP = "the state or the field stopped being finite"
    STEP_TOO_SMALL = "the step fell below the spacing of floating-point times (a singularity?)"
    TOO_MANY_STEPS = "max_steps was reached; raise it, loosen rtol, or try method='Radau'"
    SOLVER_FAILED = "SciPy's solver stopped"


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """Trajectories of a simulation and how each ended.

    Attributes:
        t: the times asked, (m,), or a list of b arrays where each start had its own.
        x: the states there: (m, d) for one start, (b, m, d) for a batch, or a list of b arrays
            (m_i, d); NaN from where a start failed.
        outcomes: one `Outcome` a start.
        reached: (b,) the times up to which the states are good.
        steps: (b,) accepted steps.
        evaluations: number of calls of the field, each for a whole batch.
    """

    t: Any
    x: Any
    outcomes: tuple[Outcome, ...]
    reached: np.ndarray
    steps: np.ndarray
    evaluations: int

    @property
    def success(self) -> bool:
        """Whether every start reached its last time."""
        return all(outcome is Outcome.FINISHED for outcome in self.outcomes)

    def message(self) -> str:
        """Say in one sentence how it went.

        >>> import numpy as np, vectorfield as vf
        >>> run = vf.simulate(lambda x: x**2, np.array([1.0]), [0.0, 0.5, 2.0], on_failure="ignore")
        >>> print(run.message())
        1 of 1 starts stopped early; start 0 at t = 1: the step fell below the spacing of
        floating-point times (a singularity?)
        """
        failed = [i for i, o in enumerate(self.outcomes) if o is not Outcome.FINISHED]
        if not failed:
            return f"{len(self.outcomes)} of {len(self.outcomes)} starts finished"
        i = failed[0]
        return (
            f"{len(failed)} of {len(self.outcomes)} starts stopped early; start {i} at "
            f"t = {self.reached[i]:.6g}: {self.outcomes[i].value}"
        )

    def __repr__(self) -> str:
        return f"Simulation({self.message()}; {self.evaluations} evaluations)"


def simulate(
    field: Callable[[Any], Any],
    x0: Any,
    t: Any,
    *,
    method: str = "DOP853",
    rtol: float = 1e-8,
    atol: Any = None,
    max_steps: int = 100_000,
    on_failure: str = "warn",
) -> Simulation:
    """Solve dx/dt = f(x), x(t_0) = x0, and return the states at the times asked.

    The explicit methods step all starts together, one call of the field for the whole batch a
    stage, yet every start has its own step size and its own end: where one blows up, that one
    alone stops, with NaN from there on. Between steps the method's own interpolant is used.

    Args:
        field: f, taking (n, d) to (n, d); a `VectorField`, a system, or any callable.
        x0: one start (d,) or a batch (b, d).
        t: increasing or (to go back in time) decreasing times, the first one that of x0: an
            array shared by all starts, or a list of b arrays.
        method: ``"DOP853"`` (order 8, for smooth fields), ``"RK45"`` (order 5, for rough ones);
            for stiff fields SciPy's ``"Radau"``, ``"BDF"`` or ``"LSODA"``, start by start, with
            ``field.jacobian`` where there is one.
        rtol, atol: the local error of a step is kept below atol + rtol |x|, in the root mean
            square over the coordinates. atol may be (d,); by default rtol times ``field.spread``
            where the field has one (the spread of its training data), else rtol.
        max_steps: most steps for each start; rejected ones count with the explicit methods.
        on_failure: ``"warn"``, ``"raise"`` (`SimulationError`, carrying the simulation) or
            ``"ignore"``.

    Returns:
        A `Simulation`; ``.x`` holds the states.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> run = vf.simulate(lambda x: -x, np.array([[1.0], [2.0]]), np.array([0.0, 1.0]))
        >>> run.x.round(6)[:, 1, 0]
        array([0.367879, 0.735759])
    """
    check_choice("method", method, EXPLICIT + IMPLICIT)
    check_choice("on_failure", on_failure, ("warn", "raise", "ignore"))
    check_real("rtol", rtol, above=0.0)
    check_integer("max_steps", max_steps, at_least=1)
    starts, single = _check_starts(x0)
    d = getattr(field, "d", starts.shape[1])
    if starts.shape[1] != d:
        raise DataError(f"x0 has {starts.shape[1]} coordinates where the field has {d}")
    times, shared = _check_times(t, starts.shape[0])
    tolerance = _check_atol(atol, rtol, field, starts)
    problem = Problem(field, starts, times, rtol, tolerance)
    with _backend.narrow_blas():  # thousands of small products, one after the other
        if method in EXPLICIT:
            ended = integrate(problem, method, max_steps)
        else:
            ended = integrate_stiff(problem, method, max_steps)
    outcomes = tuple(Outcome[name] for name in ended.outcomes)
    x: Any = ended.x
    if shared:
        x = x[0] if single else _backend.namespace(starts).stack(x)
    result = Simulation(
        times[0] if shared else times, x, outcomes, ended.reached, ended.steps, ended.evaluations
    )
    if not result.success and on_failure == "raise":
        raise SimulationError(result.message(), result)
    if not result.success and on_failure == "warn":
        warnings.warn(result.message() + "; NaN from there", SimulationWarning, stacklevel=2)
    return result


def rollout(field: Callable[[Any], Any], trajectories: Trajectories, **options: Any) -> Simulation:
    """Simulate from the first sample of every trajectory, over its own times, in one batch.

    ``options`` are those of `simulate`; ``.x`` of the result is a list of (n_i, d) arrays.

    Example:
        >>> import vectorfield as vf
        >>> data = vf.Trajectories.from_arrays([[[1.0], [0.4]], [[2.0], [0.7], [0.3]]], 1.0)
        >>> [x.round(3).tolist() for x in vf.rollout(lambda x: -x, data).x]
        [[[1.0], [0.368]], [[2.0], [0.736], [0.271]]]
    """
    starts = [trajectory.x[0, :] for trajectory in trajectories]
    times = [trajectory.t for trajectory in trajectories]
    stacked = _backend.namespace(trajectories.states).stack(starts)
    return simulate(field, stacked, times, **options)


def _check_starts(x0: Any) -> tuple[Any, bool]:
    try:
        starts = x0 if _backend.is_array(x0) else np.asarray(x0)
    except ValueError as error:
        raise DataError(f"x0 is not a rectangular array: {error}") from error
    xp = _backend.namespace(starts)
    if not xp.isdtype(starts.dtype, ("real floating", "integral")):
        raise DataError(f"x0 holds {starts.dtype}, not real numbers")
    if starts.ndim not in (1, 2) or 0 in starts.shape:
        raise DataError(f"x0 must have shape (d,) or (b, d), got {tuple(starts.shape)}")
    if not bool(xp.all(xp.isfinite(starts))):
        raise DataError("x0 holds values that are not finite; every start needs all coordinates")
    starts = xp.astype(starts, xp.float64)
    return (starts[None, :], True) if starts.ndim == 1 else (starts, False)


def _check_times(t: Any, count: int) -> tuple[list[np.ndarray], bool]:
    if isinstance(t, (list, tuple)) and any(np.ndim(v) > 0 for v in t):
        if len(t) != count:
            raise DataError(f"{len(t)} arrays of times for {count} starts; pass one for each")
        return [_check_monotone(v, f"times of start {i}") for i, v in enumerate(t)], False
    return [_check_monotone(t, "times")] * count, True


def _check_monotone(t: Any, what: str) -> np.ndarray:
    array = np.asarray(_backend.to_numpy(t) if _backend.is_array(t) else t)
    if array.ndim != 1 or len(array) == 0 or array.dtype.kind not in "iuf":
        raise DataError(f"{what} must be a one-dimensional array of numbers, got {t!r:.60}")
    array = array.astype(np.float64)
    steps = np.diff(array)
    if not np.isfinite(array).all() or not ((steps > 0).all() or (steps < 0).all()):
        raise DataError(f"{what} must be finite and strictly increasing or strictly decreasing")
    return array


def _check_atol(atol: Any, rtol: float, field: Any, starts: Any) -> Any:
    if atol is None:
        spread = getattr(field, "spread", None)
        atol = rtol if spread is None else rtol * _backend.to_numpy(spread)
    values, shape = np.asarray(_backend.to_numpy(atol)), (starts.shape[1],)
    good = values.shape in ((), shape) and values.dtype.kind in "iuf"
    if not good or not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError(f"atol must be >= 0, a number or one for each coordinate, got {atol!r}")
    return _backend.array_like(np.broadcast_to(values, shape).astype(np.float64), starts)
