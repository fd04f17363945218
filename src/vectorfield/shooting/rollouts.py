"""Refinement on rollouts: the error that a simulation from observed starts will have, minimised.

Regression is linear in the field because it reads it along the data. That makes it biased where
steps are long, quadrature is coarse or snapshots are noisy, and it weighs increments where what
is asked for are paths. From its field on, this lowers

    J(g) = sum_w rho(Err_w(f_0 + delta_g)) / sum_w null_w + ridge tau^2 |g|^2

by L-BFGS (Liu and Nocedal 1989), with g coordinates of the change delta in which the kernel's norm
is the plain one, windows w that start at observed samples, and tau their mean duration. rho is
the identity but for paths that run away; see `Goal`.

The regression's field is where it starts, where ridge holds it, and what early stopping leaves:
directions of small norm in the kernel's space come first, so that the number of iterations is the
regularisation. It is chosen on held-out trajectories, for which one run gives a path of fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize

from vectorfield import _backend
from vectorfield._errors import DataError
from vectorfield._progress import report
from vectorfield._settings import check_integer, check_real
from vectorfield.kernels.expansion import Expansion
from vectorfield.shooting.adjoint import ordered
from vectorfield.shooting.adjustable import Adjustable, adjustable
from vectorfield.shooting.goal import Goal
from vectorfield.shooting.paths import Flow
from vectorfield.shooting.refinement import Refinement
from vectorfield.shooting.windows import overlapping
from vectorfield.trajectories import Trajectories

__all__ = ["RolledOut", "Rollouts"]

FIRST = 0.1  # the part of J that the first step would win if J were linear
MEMORY = 10  # pairs of steps and gradients that L-BFGS keeps


@dataclass(frozen=True, eq=False)
class RolledOut:
    """What `Rollouts` gives.

    Attributes:
        expansion: the field.
        shift: ridge N of the regression, which is the same as before.
        history: J at the regression's field and after each iteration.
        converged: whether L-BFGS ended before its iterations were used up.
    """

    expansion: Expansion
    shift: float
    history: tuple[float, ...]
    converged: bool


@dataclass(frozen=True)
class Rollouts(Refinement):
    """Refine a fit on the errors of its rollouts; see the module for the objective.

    For kernels with features, and for separable ones. An iteration follows all windows once
    forward and once backward, O(M m d) for M samples and m nodes or features.

    Args:
        iterations: of L-BFGS; 0 leaves the field of the regression as it is. Few regularise.
        samples: the most samples in a window; None for whole trajectories, as `MOCK.score` asks.
        starts: how many windows begin within the reach of one, at even distances. With whole
            trajectories and 2, a window begins in the middle of each besides, say.
        ridge: of the change of the field, beside an objective of 1 for the model at rest.
        count: the most nodes that may change of a kernel without features.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.arange(0.0, 6.0, 0.75)  # the trapezoid rule is poor on such steps
        >>> xs = [r * np.stack([np.cos(t), -np.sin(t)], axis=1) for r in (0.5, 1.0, 1.5)]
        >>> plain = vf.MOCK(vf.kernels.Monomials(1), 1e-9).fit(xs, t)
        >>> better = vf.MOCK(vf.kernels.Monomials(1), 1e-9, refine=vf.Rollouts(30)).fit(xs, t)
        >>> [float(m.predict([[1.0, 0.0]])[0, 1].round(3)) for m in (plain, better)]  # truth: -1
        [-1.05, -1.0]
    """

    iterations: int = 20
    samples: int | None = None
    starts: int = 1
    ridge: float = 0.0
    count: int = 500

    def __post_init__(self) -> None:
        check_integer("iterations", self.iterations, at_least=0)
        if self.samples is not None:
            check_integer("samples", self.samples, at_least=2)
        check_integer("starts", self.starts, at_least=1)
        check_real("ridge", self.ridge, at_least=0.0)
        check_integer("count", self.count, at_least=1)

    def __call__(
        self,
        expansion: Expansion,
        trajectories: Trajectories,
        shift: float,
        drift: Flow | None = None,
        *,
        choose: bool = False,
    ) -> RolledOut:
        """Refine the field of ``expansion`` on trajectories in its coordinates.

        ``shift`` and ``choose`` are those of every `Refinement`; they change nothing here.
        """
        run = self._run(expansion, trajectories, drift)
        kept = run.minimise((self.iterations,))
        return RolledOut(kept[0], shift, tuple(run.history), run.converged)

    def path(
        self,
        expansion: Expansion,
        trajectories: Trajectories,
        drift: Flow | None = None,
        *,
        iterations: Sequence[int] = (5, 10, 20, 40),
    ) -> list[Expansion]:
        """Return the fields after each of these numbers of iterations, by one run.

        They are those that calls with these ``iterations`` give, to the last bit; numbers beyond
        the end of the run have its last field.
        """
        return self._run(expansion, trajectories, drift).minimise(tuple(iterations))

    def _run(self, expansion: Expansion, trajectories: Trajectories, drift: Flow | None) -> _Run:
        if not _backend.is_numpy(trajectories.states):
            raise DataError("Rollouts runs on NumPy arrays; pass the states as such")
        field = adjustable(expansion, drift, self.count)
        windows, active = ordered(overlapping(trajectories, self.samples, self.starts))
        spread = np.asarray(trajectories.states).std(axis=0)
        size = np.abs(trajectories.states).max(axis=0)
        weights = 1.0 / np.where(spread > 1e-12 * size, spread, 1.0)
        goal = Goal(windows, active, weights)
        return _Run(expansion, field, goal, self.ridge)


class _Run:
    """One minimisation, from the field of the regression on."""

    def __init__(self, expansion: Expansion, field: Adjustable, goal: Goal, ridge: float) -> None:
        self._expansion, self._field, self._goal = expansion, field, goal
        duration = float(goal.windows.steps.sum(axis=1).mean())
        self._ridge = ridge * duration**2
        self.history: list[float] = []
        self.converged = False

    def minimise(self, iterations: tuple[int, ...]) -> list[Expansion]:
        """Return the expansions after these numbers of iterations."""
        most = max(iterations, default=0)
        if most == 0:
            return [self._expansion for _ in iterations]
        zero = np.zeros(self._field.shape)
        self._field.move(zero)
        self._substeps = self._goal.substeps(self._field)
        value, slope = self.sloped(zero)
        self.history.append(value)
        steepness = float(np.linalg.norm(slope))
        kept = {0: zero}
        if steepness > 0.0 and np.isfinite(steepness):
            self._descend(FIRST * max(value, 1e-12) / steepness, most, kept)
        last = max(kept)
        found = [kept[min(number, last)] for number in iterations]
        return [self._field.expansion(g) if g.any() else self._expansion for g in found]

    def sloped(self, g: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its derivative at coordinates g."""
        self._field.move(g)
        tape = self._goal.record(self._field, self._substeps)
        value, slopes = self._goal.sloped(tape.states)
        points, weights = [], []
        for x, v in tape.pull(self._field, slopes):
            points.append(x.reshape(-1, x.shape[2]))
            weights.append(v.reshape(-1, x.shape[2]))
        gradient = self._field.gather(np.concatenate(points), np.concatenate(weights))
        if not np.isfinite(gradient).all():  # paths that turn within a step: no way to go on
            gradient = np.zeros_like(g)
        value += self._ridge * float(np.sum(g**2))
        return value, gradient + 2.0 * self._ridge * g

    def _descend(self, unit: float, most: int, kept: dict[int, np.ndarray]) -> None:
        """L-BFGS in steps of ``unit``, its first trial step; keep g after every iteration."""
        shape = self._field.shape

        def objective(u: np.ndarray) -> tuple[float, np.ndarray]:
            value, slope = self.sloped(unit * u.reshape(shape))
            return value, unit * slope.reshape(-1)

        def after(intermediate_result: Any) -> None:
            number = len(kept)
            kept[number] = unit * np.array(intermediate_result.x).reshape(shape)
            self.history.append(float(intermediate_result.fun))
            report("rollouts", number / most)

        callback: Callable[..., None] = after
        ended = scipy.optimize.minimize(
            objective,
            np.zeros(int(np.prod(shape))),
            jac=True,
            method="L-BFGS-B",
            callback=callback,
            options={
                "maxiter": most,
                "maxfun": 20 * most + 20,
                "maxcor": MEMORY,
                "ftol": 1e-10,
                "gtol": 0.0,
            },
        )
        self.converged = ended.nit < most
