"""`Structure`: settings of the search for the inputs of each output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vectorfield import _backend
from vectorfield._errors import DataError
from vectorfield._settings import Settings, check_integer, check_real
from vectorfield.kernels.inputs import Inputs, check_inputs, inputs_of
from vectorfield.occupation import Lagrange, Rule, Trapezoid
from vectorfield.smoothing import noise_level
from vectorfield.structure.basis import LEVELS
from vectorfield.structure.design import Design, cut, drawn
from vectorfield.structure.report import Dependencies, collected
from vectorfield.structure.selection import Limits, select
from vectorfield.trajectories import Trajectories, as_trajectories

__all__ = ["Structure", "discover_structure", "is_noisy"]

NOISY = 1e-4  # of the mean square of increments: above it snapshots count as noisy
UNEVEN = 3.0  # ratio of steps beyond which high orders of quadrature amplify errors


@dataclass(frozen=True)
class Structure(Settings):
    """How the inputs of every output are found: which coordinates each dx_i/dt depends on.

    For all outputs at once, inputs enter one by one. Held-out errors decide, of small fits with
    functions of each input, of pairs that interact, and of triples where that shows; inputs without
    which the errors do not grow are dropped at the end. The guide on structure has the details,
    what is proved of it and what it cannot see.

    Args:
        level: probability with which an output is to get a wrong input, 0 < level < 1.
        candidates: how many inputs, best by score, are fitted in each step.
        most_inputs: largest number of inputs of an output.
        folds: parts of the trajectories that are held out in turn.
        samples: of the rule of quadrature, 2, 4, 6 or 8; None takes 8 for clean and evenly
            sampled trajectories, 4 else.
        steps: most increments that are looked at; pieces of trajectories are drawn beyond.
        pairs_up_to: largest d for which all pairs of coordinates are scored where no single one
            helps.
        resamples: how many times the search is repeated, each on half of the trajectories, for the
            stability of what it finds; 0 resamples the held-out errors instead, at no cost.
        known: the inputs, where they need no search: a (d, d) matrix, dense or SciPy sparse, or
            the indices for each output.
        random_state: seed of folds and resamples.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> system = vf.systems.Lorenz96(d=8)
        >>> starts = np.random.default_rng(0).normal(size=(20, 8)) + 2.0
        >>> t = np.linspace(0.0, 1.0, 41)
        >>> data = vf.Trajectories.from_arrays(list(vf.simulate(system, starts, t).x), t)
        >>> vf.Structure()(data).inputs[3]
        (1, 2, 3, 4)
    """

    level: float = 0.05
    candidates: int = 6
    most_inputs: int = 20
    folds: int = 4
    samples: int | None = None
    steps: int = 20_000
    pairs_up_to: int = 200
    resamples: int = 0
    known: Any = None
    random_state: int = 0

    def __post_init__(self) -> None:
        level = check_real("level", self.level, above=0.0)
        if level >= 1.0:
            raise ValueError(f"level must be below 1, got {self.level!r}")
        object.__setattr__(self, "level", level)
        for name, least in (
            ("candidates", 1),
            ("most_inputs", 1),
            ("folds", 2),
            ("steps", 100),
            ("pairs_up_to", 0),
            ("resamples", 0),
            ("random_state", 0),
        ):
            value = check_integer(name, getattr(self, name), at_least=least)
            object.__setattr__(self, name, value)
        if self.samples is not None and self.samples not in (2, 4, 6, 8):
            raise ValueError(f"samples must be 2, 4, 6, 8 or None, got {self.samples!r}")
        if self.known is not None:
            object.__setattr__(self, "known", _known(self.known))

    def __call__(self, x: Any, t: Any = None) -> Dependencies:
        """Return the inputs of every output; the arguments are those of `MOCK.fit`."""
        trajectories = as_trajectories(x, t)
        if self.known is not None:
            return Dependencies.given(check_width(self.known, trajectories), trajectories)
        enough = trajectories.lengths - 1 >= 2
        if int((trajectories.lengths - 1).sum()) < 10 * self.folds or not enough.any():
            raise DataError(
                f"{int((trajectories.lengths - 1).sum())} increments are too few to find inputs "
                f"by held-out errors; give at least {10 * self.folds}, or the structure"
            )
        some = drawn(trajectories, self.steps, self.random_state)
        design = self._design(some)
        outputs = list(range(trajectories.d))
        limits = Limits(self.level, self.candidates, self.most_inputs, self.pairs_up_to)
        chosen = select(design, outputs, limits)
        frequency = self._frequency(some, limits) if self.resamples else None
        rule, _ = self.rules(some)
        return collected(chosen, trajectories.feature_names, rule, frequency, self.random_state)

    def rules(self, trajectories: Trajectories) -> tuple[Rule, Rule]:
        """Return the rule of quadrature, and the one by which its error is estimated."""
        samples = self.samples
        if samples is None:
            steps = np.diff(trajectories.times)
            inner = np.delete(steps, trajectories.offsets[1:-1] - 1)
            uneven = float(inner.max()) > UNEVEN * float(inner.min())
            samples = 4 if uneven or is_noisy(trajectories) else 8
        if samples == 2:
            return Trapezoid(), Lagrange(4)
        return Lagrange(samples), Trapezoid() if samples == 4 else Lagrange(samples - 2)

    def _design(self, trajectories: Trajectories) -> Design:
        rule, check = self.rules(trajectories)
        return Design.of(
            trajectories,
            rule=rule,
            check=check,
            folds=self.folds,
            random_state=self.random_state,
            order=max(level.main for level in LEVELS),
        )

    def _frequency(self, trajectories: Trajectories, limits: Limits) -> np.ndarray:
        """Return how often each edge is found on half of the trajectories, (d, d)."""
        pieces = cut(trajectories, self.folds)
        count = np.zeros((trajectories.d, trajectories.d))
        rng = np.random.default_rng(self.random_state)
        for _ in range(self.resamples):
            half = np.sort(rng.choice(len(pieces), max(2, len(pieces) // 2), replace=False))
            for one in select(self._design(pieces[half]), list(range(trajectories.d)), limits):
                count[one.model.output, list(one.model.inputs)] += 1.0
        return count / self.resamples


def discover_structure(x: Any, t: Any = None, *, settings: Structure | None = None) -> Dependencies:
    """Return which coordinates each dx_i/dt depends on, found on trajectories.

    ``x`` and ``t`` are those of `MOCK.fit`, ``settings`` by default `Structure`.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> rng, t = np.random.default_rng(0), np.linspace(0.0, 2.0, 41)
        >>> f = lambda x: np.stack([-x[:, 0] + np.sin(x[:, 1]), -x[:, 1], -x[:, 2]], axis=1)
        >>> data = list(vf.simulate(f, rng.normal(size=(30, 3)), t).x)
        >>> vf.discover_structure(data, t).matrix.toarray().astype(int)
        array([[1, 1, 0],
               [0, 1, 0],
               [0, 0, 1]])
    """
    settings = Structure() if settings is None else settings
    if not isinstance(settings, Structure):
        raise TypeError(f"settings must be a Structure, got {settings!r}")
    return settings(x, t)


def is_noisy(trajectories: Trajectories) -> bool:
    """Return whether the noise of the snapshots shows in their increments."""
    states = _backend.to_numpy(trajectories.states)
    inner = np.ones(len(states) - 1, dtype=bool)
    inner[trajectories.offsets[1:-1] - 1] = False
    squares = np.mean(np.diff(states, axis=0)[inner] ** 2, axis=0)
    noise = np.nan_to_num(noise_level(trajectories)) ** 2
    moving = squares > 0.0
    if not moving.any():
        return False
    return bool(np.median(2.0 * noise[moving] / squares[moving]) > NOISY)


def check_width(inputs: Inputs, trajectories: Trajectories) -> Inputs:
    """Return inputs if they are those of as many outputs as the trajectories have features."""
    if len(inputs) != trajectories.d:
        raise ValueError(
            f"the structure has {len(inputs)} outputs but the states have {trajectories.d} features"
        )
    return inputs


def _known(value: Any) -> Inputs:
    if isinstance(value, (list, tuple)) and any(np.ndim(own) == 1 for own in value):
        sizes = {len(own) for own in value}
        flags = all(isinstance(v, (bool, np.bool_)) for own in value for v in own)
        if not (flags and sizes == {len(value)}):
            return check_inputs(value)
    return inputs_of(value)
