"""From a structure to a plan: kernel, quadrature, noise and ridge of a sparse fit, held out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from vectorfield import _backend
from vectorfield._errors import SolveError
from vectorfield.kernels import (
    ExplicitKernel,
    Gaussian,
    Interactions,
    Monomials,
    Nystrom,
    OperatorKernel,
    ScalarKernel,
    SparseFeatures,
    SparseKernel,
)
from vectorfield.kernels.inputs import Inputs
from vectorfield.metrics import evaluate
from vectorfield.occupation import Lagrange, Rule, SnapshotNoise, Trapezoid, White
from vectorfield.plan import Plan
from vectorfield.simulate import rollout
from vectorfield.smoothing import SplineSmoother
from vectorfield.structure.design import cut, drawn
from vectorfield.structure.report import Dependencies
from vectorfield.structure.settings import Structure, check_width, is_noisy
from vectorfield.trajectories import Trajectories

__all__ = ["on_inputs", "sparse_plan", "structured"]

OUTPUTS = 16  # that are fitted to choose the settings of all
STEPS = 6_000
HELD = 4  # one trajectory of so many is held out
WINDOW = 10  # steps of the increments by which fits of noisy data are judged
TINY = 1e-24
CLOSE = 30.0  # times the least error of increments: plans below it are judged by rollouts
FINAL = 3  # of them at most
MOST = 600  # features of an output
RIDGES = 10.0 ** np.arange(-14.0, 0.0, 2.5)  # of the mean diagonal of the system


def on_inputs(kernel: Any, inputs: Inputs) -> OperatorKernel:
    """Return the kernel with every output on its own inputs."""
    if isinstance(kernel, ScalarKernel):
        return SparseKernel(kernel, inputs)
    if isinstance(kernel, ExplicitKernel) and not isinstance(kernel, SparseFeatures):
        return SparseFeatures(kernel, inputs)
    raise TypeError(
        "with a structure the kernel must be a scalar one such as Gaussian() or an explicit one "
        f"such as Monomials(), which is put on each output's inputs; got {kernel!r}"
    )


def sparse_plan(
    found: Dependencies, trajectories: Trajectories, plan: Plan, left_open: Iterable[str]
) -> Plan:
    """Return a plan with what is left open of kernel, rule, noise, smoother and ridge chosen.

    One after the other, with the others as they are so far, by the error of held-out increments of
    some of the outputs; of increments over ten steps, seen from smoothed states, where the
    data are noisy. Of the kernels whose errors are small rollouts of the held-out trajectories
    decide. ``plan`` has what is not open; its kernel is not on inputs yet.
    """
    left, inputs = frozenset(left_open), found.inputs
    bench = _Bench(inputs, trajectories, "ridge" in left)
    if "rule" in left:
        plan = plan.replace(rule=Lagrange(4 if bench.noisy else 8))
    if "noise" in left:
        plan = plan.replace(noise=SnapshotNoise(0.1) if bench.noisy else White())
    kernels = [plan.kernel]
    if "kernel" in left:
        kernels = _kernels(max(map(len, inputs)), bool((found.levels == 0).all()))
    best = bench.best([plan.replace(kernel=kernel) for kernel in kernels])
    if "rule" in left:
        rules: list[Rule] = [Trapezoid(), Lagrange(4), Lagrange(6), Lagrange(8)]
        best = bench.best([best.replace(rule=rule) for rule in rules], best)
    if "noise" in left and bench.noisy:
        noises = [White(), SnapshotNoise(0.01), SnapshotNoise(1.0)]
        best = bench.best([best.replace(noise=noise) for noise in noises], best)
    if "smoother" in left and bench.noisy:
        best = bench.best([best.replace(smoother=SplineSmoother())], best)
    if "kernel" in left:
        best = bench.final([best.replace(kernel=kernel) for kernel in kernels], inputs)
    ridge = bench.ridge(best) if "ridge" in left else best.ridge
    return best.replace(kernel=on_inputs(best.kernel, inputs), ridge=ridge)


def structured(
    structure: Any, trajectories: Trajectories, plan: Plan, left_open: Iterable[str]
) -> tuple[Dependencies, Plan]:
    """Return the structure found or given, and the plan on it: `MOCK`'s way through this module.

    ``structure`` is a `Structure`, a `Dependencies` or a matrix; with nothing left open the plan is
    as it was, its kernel on each output's inputs.
    """
    found = structure
    if not isinstance(structure, Dependencies):
        known = structure if isinstance(structure, Structure) else Structure(known=structure)
        found = known(trajectories)
    check_width(found.inputs, trajectories)
    left = frozenset(left_open)
    if left:
        chosen = sparse_plan(found, trajectories, plan, left)
        searched = isinstance(structure, Structure) and structure.known is None
        if searched and "kernel" in left and Monomials(2).count(trajectories.d) <= MOST:
            return _or_all(found, chosen, trajectories, plan, left)
        return found, chosen
    return found, plan.replace(kernel=on_inputs(plan.kernel, found.inputs))


def _or_all(
    found: Dependencies,
    chosen: Plan,
    trajectories: Trajectories,
    plan: Plan,
    left: frozenset[str],
) -> tuple[Dependencies, Plan]:
    """Return what was found, or all inputs for all outputs where rollouts are better with them."""
    d = trajectories.d
    everything = Dependencies.given((tuple(range(d)),) * d, trajectories)
    dense = sparse_plan(everything, trajectories, plan, left)
    bench = _Bench(found.inputs, trajectories, False)
    if bench.rolled(dense) < bench.rolled(chosen):
        return everything, dense
    return found, chosen


def _kernels(widest: int, quadratic: bool) -> list[Any]:
    """Return what is tried; where quadratic functions did for all outputs, nothing much richer."""
    if quadratic:
        return [Monomials(2), Monomials(3)]
    every: list[Any] = [
        Monomials(2),
        Monomials(3),
        Interactions(5, 3),
        Interactions(8, 5),
        Interactions(16, 1),
        Interactions(16, 3),
    ]
    small = [kernel for kernel in every if kernel.count(widest) <= MOST]
    return [*small, Nystrom(Gaussian(), 200)] if small else [Nystrom(Gaussian(), 200)]


class _Bench:
    """Plans judged by what they say of held-out increments."""

    def __init__(self, inputs: Inputs, trajectories: Trajectories, choose: bool) -> None:
        self.noisy = is_noisy(trajectories)
        rng = np.random.default_rng(0)
        d = len(inputs)
        self._outputs = np.sort(rng.choice(d, min(d, OUTPUTS), replace=False))
        own = set(self._outputs.tolist())
        self._inputs = tuple(one if i in own else () for i, one in enumerate(inputs))
        pieces = cut(drawn(trajectories, STEPS, 0), HELD)
        order = rng.permutation(len(pieces))
        count = max(1, len(pieces) // HELD)
        self._held = pieces[np.sort(order[:count])]
        self._train = pieces[np.sort(order[count:])] if len(pieces) > 1 else pieces
        self._seen = self._held
        if self.noisy:
            self._seen = SplineSmoother()(self._held).trajectories
        self._choose = choose
        self._known: dict[Any, tuple[float, float]] = {}

    def best(self, plans: list[Plan], current: Plan | None = None) -> Plan:
        """Return the plan of the least held-out error; the earlier of equals."""
        everyone = plans if current is None else [current, *plans]
        errors = [self._judge(plan)[0] for plan in everyone]
        return everyone[int(np.argmin(errors))]

    def final(self, plans: list[Plan], inputs: Inputs) -> Plan:
        """Return the plan of the least error of rollouts, of those with small held-out errors.

        Increments say little of where a field leads states to that no trajectory has visited.
        """
        ranked = sorted(plans, key=lambda plan: self._judge(plan)[0])
        least = self._judge(ranked[0])[0]
        best = (np.inf, ranked[0])
        for place, plan in enumerate(ranked):
            close = place < FINAL and self._judge(plan)[0] <= CLOSE * least
            if not close and best[0] < 1.0:  # further down only where none stays near the data
                break
            error = self._rollouts(plan, inputs)
            if error < best[0]:
                best = (error, plan)
        return best[1]

    def _rollouts(self, plan: Plan, inputs: Inputs) -> float:
        """Return the error of rollouts relative to the null model's."""
        ridge = self.ridge(plan) if self._choose else plan.ridge
        return self.rolled(plan.replace(kernel=on_inputs(plan.kernel, inputs), ridge=ridge))

    def rolled(self, whole: Plan) -> float:
        """Return the same of a plan whose kernel is on its inputs."""
        try:
            field = whole.fit(self._train).field
        except SolveError:
            return float("inf")
        run = rollout(field, self._held, rtol=1e-6, max_steps=2_000, on_failure="ignore")
        return 1.0 - evaluate(self._held, run.x).skill

    def ridge(self, plan: Plan) -> float:
        """Return the ridge of the least held-out error."""
        return self._judge(plan)[1]

    def _judge(self, plan: Plan) -> tuple[float, float]:
        key = (plan.kernel, plan.rule, plan.noise, plan.smoother)
        if key not in self._known:
            self._known[key] = self._fit(plan)
        return self._known[key]

    def _fit(self, plan: Plan) -> tuple[float, float]:
        sparse = plan.replace(kernel=on_inputs(plan.kernel, self._inputs))
        prepared = sparse.prepare(self._train)
        unit = prepared.default_ridge() * 1e3
        ridges = [unit * share for share in RIDGES] if self._choose else [plan.ridge or unit * 1e-3]
        best = (np.inf, float(ridges[0]))
        for ridge, fit in zip(ridges, prepared.path(ridges), strict=True):
            if fit.expansion is None or not fit.solution.status.ok:
                continue
            error = self._error(prepared.field(fit.expansion), plan.rule)
            if error < best[0]:
                best = (error, float(ridge))
        return best

    def _error(self, field: Any, rule: Rule) -> float:
        """Return the mean over outputs of the relative squared error of increments."""
        seen = rule(self._seen)
        values = _backend.to_numpy(seen.weights @ _backend.to_numpy(field(seen.nodes)))
        raw = replace(self._seen, states=self._held.states)
        targets = _backend.to_numpy(rule(raw).targets)
        left = (targets - values)[:, self._outputs]
        whole = targets[:, self._outputs]
        if self.noisy:
            ends = np.concatenate([[0], np.cumsum(np.bincount(seen.owner))])
            left, whole = (_windows(part, ends) for part in (left, whole))
        scale = np.mean(whole**2, axis=0)
        kept = scale > 0.0
        errors = np.mean(left**2, axis=0)[kept] / scale[kept]
        # of the outputs' errors the geometric mean: one that lacks an input does not hide the rest
        return float(np.exp(np.mean(np.log(errors + TINY)))) if kept.any() else 0.0


def _windows(rows: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return sums of ten successive rows within each piece, or of all of a shorter one."""
    total = np.concatenate([np.zeros((1, rows.shape[1])), np.cumsum(rows, axis=0)])
    parts = []
    for a, b in pairwise(ends):
        width = min(WINDOW, b - a)
        parts.append(total[a + width : b + 1] - total[a : b + 1 - width])
    return np.concatenate(parts)
