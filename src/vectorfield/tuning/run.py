"""The stages of a search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from vectorfield import _backend
from vectorfield._errors import DataError
from vectorfield._progress import report
from vectorfield.kernels import (
    CurlFree,
    DivergenceFree,
    Equivariant,
    Gaussian,
    Gradient,
    Hamiltonian,
    Monomials,
    OperatorKernel,
    OperatorScaled,
    OperatorSum,
    ScalarKernel,
)
from vectorfield.occupation import SnapshotNoise, Trapezoid
from vectorfield.plan import Plan
from vectorfield.prior import MeanReverting
from vectorfield.shooting import Shooting
from vectorfield.smoothing import SplineSmoother
from vectorfield.trajectories import Trajectories
from vectorfield.tuning import candidates, reversion
from vectorfield.tuning.bench import Bench, ridge_unit
from vectorfield.tuning.folds import folds
from vectorfield.tuning.heldout import levels
from vectorfield.tuning.survey import survey
from vectorfield.tuning.trials import Report, Trial

if TYPE_CHECKING:
    from vectorfield.tuning.search import Search

__all__ = ["Run"]

LAWS = (CurlFree, DivergenceFree, Equivariant, Gradient, Hamiltonian, OperatorScaled, OperatorSum)
LOWEST, HIGHEST = 1e-18, 1e8  # ridge levels

NOISY = tuple(10.0**k for k in range(3, -6, -1))  # ridge levels; see `ridge_unit`
CLEAN = tuple(10.0**k for k in range(0, -17, -2))
SMALL, MEDIUM = 1200, 4000  # steps of the data that a screening and its second round use
JOINTLY = 6000  # samples held out that choices among returning fields are judged on
CHEAP = 3000  # steps up to which all folds are used
COEFFICIENTS = 1400  # the most that shooting is tried with
FEATURES = 250
FEW, MANY = 200, 600  # features in place of exact fits to noisy data: to screen, and at the end
LONGEST = 80  # samples of windows whose starts are estimated
WINDOWS = (60, 20)  # samples; whole trajectories too where they are longer


class Run:
    """One search: its stages in order, each beginning from what the one before it found."""

    def __init__(
        self,
        search: Search,
        plan: Plan,
        left_open: frozenset[str],
        train: Trajectories,
        validation: Trajectories | None,
    ) -> None:
        self._began = perf_counter()
        for part in (train, validation):
            if part is not None and not _backend.is_numpy(part.states):
                raise DataError("Search runs on NumPy arrays; pass the states as such")
        law = getattr(plan.kernel, "energy", None) is not None
        if "kernel" not in left_open and (law or isinstance(plan.kernel, LAWS)):
            left_open -= {"prior"}  # with one, the law would hold for the learned rest alone
        self._search, self._open, self._train = search, left_open, train
        splits = folds(train, validation, search.folds, search.random_state)
        self._every = splits
        if (train.lengths - 1).sum() > CHEAP:
            splits = splits[:1]
        self._lengths = levels(splits[0].held)
        self._facts = facts = survey(train)
        self._noisy = facts.noisy
        self._splits = splits
        self._bench = self._make_bench(estimate=False)
        self._estimated = self._make_bench(estimate=True)
        self._small = 4 * SMALL if self._noisy else SMALL  # features cost less than exact fits
        self._ladder = NOISY if self._noisy else CLEAN
        self._plan = self._base(plan)
        self._trials: list[Trial] = []

    def report(self) -> Report:
        """Search, and say what was found."""
        kernels = self._kernels()
        best = self._screen(kernels)
        best = self._revert(best)
        best = self._vary(best)
        finalists = self._grow(best)
        chosen, runner = self._refine(finalists) or (
            finalists[0],
            next(iter(finalists[1:]), None),
        )
        bench = self._bench if len(chosen.ratios) == len(self._lengths) else self._estimated
        final = replace(chosen, plan=self._with_ridge(chosen))
        if runner is not None:
            runner = replace(runner, plan=self._with_ridge(runner))
        notes = []
        if not chosen.ok:
            notes.append("no plan could be fitted; " + chosen.status)
        elif chosen.score + (0.0 if np.isnan(chosen.spread) else chosen.spread) >= 1.0:
            notes.append(
                "nothing is clearly better than the null model, x(t) = x(0): the data do not show "
                "a field"
            )
        if chosen.plan.refine is not None and "refine" in self._open:
            notes.append(
                "snapshots are noisy: these errors are from starts that were estimated on each "
                "window, and have the noise of the samples in them, as the true field's would"
            )
        if self._out_of_time():
            notes.append(f"stopped after max_time = {self._search.max_time:g} s")
        return Report(
            best=final,
            runner_up=runner,
            trials=tuple(self._trials),
            lengths=bench.lengths,
            null=tuple(bench.null().tolist()),
            noise=self._facts.noise,
            folds=len(self._splits),
            seconds=perf_counter() - self._began,
            notes=tuple(notes),
        )

    # the stages

    def _kernels(self) -> list:
        """The kernels to begin with."""
        plan = self._plan
        nodes = plan.prepare(self._bench.train(self._small)[0]).occupations.nodes
        if "kernel" not in self._open:
            return [plan.kernel.resolved(nodes)]
        middle = float(Gaussian().resolved(nodes).length_scale)  # type: ignore[arg-type]
        local = candidates.families(middle)
        if self._noisy:  # smooth beside the noise: features lose nothing, and are far cheaper
            local = [candidates.with_features(kernel, FEW) for kernel in local]
        return [*local, *candidates.polynomials(self._train.d)]

    def _screen(self, kernels: Sequence) -> Trial:
        """Judge the kernels, then length scales and sums of the better ones."""
        steps = self._small
        ranked = self._rank(
            self._try(replace(self._plan, kernel=k), self._ladder, "kernels", steps, done=0.2)
            for k in kernels
        )
        if "kernel" in self._open:
            local = [t for t in ranked if candidates.lengths_of(t.plan.kernel)][:2]
            ranked += [self._stretch(trial, steps) for trial in local]
            ranked = self._rank([t] for t in ranked)
            best = next((t for t in ranked if candidates.local_part(t.plan.kernel)), None)
            part = None if best is None else candidates.local_part(best.plan.kernel)
            if best is not None and part is not None:
                mixed = candidates.mixtures(part, self._train.d)
                if self._noisy:
                    mixed = [candidates.with_features(kernel, FEW) for kernel in mixed]
                ranked += self._rank(
                    self._try(
                        replace(self._plan, kernel=k), self._near(best), "sums", steps, done=0.4
                    )
                    for k in mixed
                )
        elif self._has_open_length():
            ranked.append(self._stretch(ranked[0], steps))
        return self._rank([t] for t in ranked)[0]

    def _stretch(self, trial: Trial, steps: int) -> Trial:
        """Walk to the best length scale by factors of 2, then of sqrt(2)."""
        best, tried = trial, {1.0}
        place = 1.0
        for factor in (2.0, np.sqrt(2.0)):
            moved = True
            while moved and not self._out_of_time():
                moved = False
                for way in (factor, 1.0 / factor):
                    at = round(place * way, 6)
                    if at in tried or not 1 / 64 <= at <= 64:
                        continue
                    tried.add(at)
                    kernel = candidates.stretched(trial.plan.kernel, at)
                    plan = replace(best.plan, kernel=kernel)
                    found = self._rank(
                        [self._try(plan, self._near(best), "lengths", steps, done=0.3)]
                    )
                    if found and found[0].score < best.score:
                        best, place, moved = found[0], at, True
                        break
        return best

    def _revert(self, best: Trial) -> Trial:
        """Fields that return to the data, where rollouts of others go astray.

        From there on all data count: what is to be told apart differs by little.
        """
        if not ({"kernel", "ridge", "prior"} <= self._open and reversion.applies(best)):
            return best
        before = self._bench, self._small, self._splits
        self._splits = self._every
        self._bench = self._make_bench(estimate=False, most=JOINTLY)
        self._small = max(self._small, self._bench.steps)
        plain = self._rank([self._try(best.plan, self._near(best), "returning", None, done=0.35)])
        nodes = best.plan.prepare(self._bench.train(None)[0]).occupations.nodes
        noises = candidates.noises(True) if "noise" in self._open else [best.plan.noise]
        found = reversion.walk(
            lambda plan, levels: self._try(plan, levels, "returning", None, done=0.4),
            best.plan,
            self._ladder[::2],
            middle=float(Gaussian().resolved(nodes).length_scale),  # type: ignore[arg-type]
            step=self._facts.step,
            noises=noises[::-1],
            features=FEW,
            stop=self._out_of_time,
        )
        ranked = self._rank([[t] for t in [*plain, found] if t is not None])
        if found is not None and ranked and ranked[0] is found:
            return found
        self._bench, self._small, self._splits = before
        return best

    def _vary(self, best: Trial) -> Trial:
        """Change one part after the other."""
        groups: list[dict[str, list]] = [
            {
                "noise": list(candidates.noises(self._noisy)),
                "rule": list(candidates.rules(self._facts.even, self._noisy)),
            },
            {"smoother": [None, SplineSmoother()] if self._noisy else []},
            {"prior": [None, *candidates.priors(self._facts.step)]},
        ]
        for group in groups:
            changes = {name: values for name, values in group.items() if name in self._open}
            plans = list(candidates.variations(best.plan, changes))
            found = self._rank(
                self._try(plan, self._near(best, 3), "parts", self._small, done=0.5)
                for plan in plans
            )
            best = self._rank([[best], found])[0]
        return self._hasten(best)

    def _hasten(self, best: Trial) -> Trial:
        """Walk to the best rate of a prior that has one, by factors of 2."""
        for factor in (2.0, 0.5):
            while isinstance(best.plan.prior, MeanReverting) and "prior" in self._open:
                prior = candidates.faster(best.plan.prior, factor)
                if (prior.rate or 0.0) * self._facts.step > 1.0:
                    break  # back within a step: no rate that the data could tell
                plan = replace(best.plan, prior=prior)
                found = self._rank(
                    [self._try(plan, self._near(best), "rates", self._small, done=0.6)]
                )
                if not found or not found[0].score < best.score:
                    break
                best = found[0]
        return best

    def _grow(self, best: Trial) -> list[Trial]:
        """Judge the best plans on more data; return them, best first."""
        leaders = self._leaders(best)
        total = self._bench.steps
        if self._noisy:
            leaders = [
                replace(t, plan=replace(t.plan, kernel=self._by_features(t.plan.kernel)))
                for t in leaders
            ]
        for steps, keep, span in ((max(MEDIUM, self._small), 2, 2), (total, 1, 1)):
            if total <= self._small or (steps < total <= 1.5 * steps):
                continue
            whole = steps == total
            near = {
                id(t): self._near(t, span) if not whole or total <= MEDIUM * 2 else [t.level]
                for t in leaders
            }
            grown = self._rank(
                self._try(t.plan, near[id(t)], f"{steps} steps", steps, done=0.7, whole=whole)
                for t in leaders
            )
            distinct = self._distinct(grown)
            leaders = (distinct or leaders)[: max(keep, 2)]
        if total <= self._small:
            grown = self._rank(
                self._try(t.plan, self._near(t), "all", None, done=0.7, whole=True) for t in leaders
            )
            leaders = grown or leaders
        return self._distinct(leaders)

    def _refine(self, finalists: list[Trial]) -> tuple[Trial, Trial] | None:
        """Fit whole windows, where snapshots are noisy; the best, if it is better than without."""
        if not self._noisy or "refine" not in self._open or "noise" not in self._open:
            return None
        d = self._train.d
        count = min(FEATURES, COEFFICIENTS // d, max(20, self._bench.steps // 8))
        if count < 3 * d or not finalists[0].ok:
            return None
        bench = self._estimated
        longest = int(np.median(self._train.lengths))
        window = min(WINDOWS[0], longest)
        plain = self._judged(bench, finalists[0].plan, [finalists[0].level])
        seen, best = set(), None
        for trial in [*self._leaders(finalists[0], 2), *self._smooth_polynomials(finalists[0])]:
            if self._out_of_time():
                break
            kernel = candidates.without_features(trial.plan.kernel)
            kernel = candidates.with_features(kernel, count)
            if not candidates.is_explicit(kernel) or kernel in seen:
                continue
            seen.add(kernel)
            plan = replace(
                trial.plan,
                kernel=kernel,
                rule=Trapezoid() if "rule" in self._open else trial.plan.rule,
                noise=SnapshotNoise(),
                smoother=None if "smoother" in self._open else trial.plan.smoother,
                prior=None if "prior" in self._open else trial.plan.prior,
                refine=Shooting(window),
            )
            found = self._judged(bench, plan, [trial.level], evidence=True)
            if found.ok and (best is None or found.score < best.score):
                best = found
        if best is None or best.score >= plain.score:
            return None
        for other in (WINDOWS[1], None if longest > WINDOWS[0] else WINDOWS[0]):
            if longest <= WINDOWS[1] or self._out_of_time():
                break
            plan = replace(best.plan, refine=Shooting(other))
            found = self._judged(bench, plan, [best.level], evidence=True)
            if found.ok and found.score < best.score:
                best = found
        return best, plain

    # what they share

    def _try(
        self,
        plan: Plan,
        ladder: Iterable[float],
        stage: str,
        steps: int | None,
        *,
        done: float,
        whole: bool = False,
    ) -> list[Trial]:
        if self._out_of_time() and self._trials:
            return []
        report("search", done)
        if "ridge" not in self._open:
            ladder = [self._fixed_level(plan, steps)]
        found = self._bench.judge(plan, list(ladder), stage, steps=steps, whole=whole)
        self._trials += found
        best = min(found, key=lambda t: t.score)
        ladder = [t.level for t in found]
        while best.ok and len(ladder) > 1 and best.level in (max(ladder), min(ladder)):
            factor = 10.0 if best.level == max(ladder) else 0.1  # an optimum at the end: go on
            level = best.level * factor
            if not LOWEST <= level <= HIGHEST or self._out_of_time():
                break
            more = self._bench.judge(plan, [level], stage, steps=steps, whole=whole)
            self._trials += more
            found += more
            ladder.append(level)
            if not more[0].score < best.score:
                break
            best = more[0]
        return found

    def _judged(
        self,
        bench: Bench,
        plan: Plan,
        ladder: list[float],
        *,
        evidence: bool = False,
    ) -> Trial:
        report("search", 0.9)
        stage = "windows" if plan.refine is None else "shooting"
        found = bench.judge(plan, ladder, stage, steps=3 * MEDIUM // 2, evidence=evidence)
        self._trials += found
        return found[0]

    def _rank(self, groups: Iterable[list[Trial]]) -> list[Trial]:
        """The best ridge of each group, best first."""
        best = [min(group, key=lambda t: t.score) for group in groups if group]
        return sorted(best, key=lambda t: t.score)

    def _distinct(self, trials: list[Trial]) -> list[Trial]:
        seen: set[str] = set()
        kept = []
        for trial in trials:
            if _name(trial.plan) not in seen:
                seen.add(_name(trial.plan))
                kept.append(trial)
        return kept

    def _smooth_polynomials(self, best: Trial) -> list[Trial]:
        """Polynomials that did not fail: with the noise out of the way one may be all there is."""
        found = self._rank([t] for t in self._trials if t.ok and t.stage == "kernels")
        plans = [t for t in self._distinct(found) if isinstance(t.plan.kernel, Monomials)]
        return [
            replace(t, plan=replace(best.plan, kernel=t.plan.kernel))
            for t in plans
            if t.plan.kernel.degree > 1  # type: ignore[union-attr]
        ]

    def _leaders(self, best: Trial, count: int = 3) -> list[Trial]:
        """The best plan, and the best of other kinds of kernels with its other parts."""
        others = self._distinct(self._rank([t] for t in self._trials if t.ok))
        kinds = {_kind(best.plan.kernel)}
        found = [best]
        for trial in others:
            if _kind(trial.plan.kernel) not in kinds and len(found) < count:
                kinds.add(_kind(trial.plan.kernel))
                found.append(replace(trial, plan=replace(best.plan, kernel=trial.plan.kernel)))
        return found

    def _near(self, trial: Trial, span: int = 2) -> list[float]:
        step = 10.0 if self._noisy else 100.0
        near = [trial.level * step**k for k in range(span, -span - 1, -1)]
        return [v for v in near if LOWEST <= v <= HIGHEST] or [trial.level]

    def _make_bench(self, estimate: bool, most: int = 1500) -> Bench:
        lengths = self._lengths
        if estimate:  # over longer windows a start is hard to find, however good the field
            lengths = tuple(k for k in lengths if k <= LONGEST) or lengths[:1]
        return Bench(
            self._splits,
            self._search.objective,
            lengths,
            self._facts.unit,
            estimate=estimate,
            most=most,
        )

    def _base(self, plan: Plan) -> Plan:
        """Set open parts to what the noise suggests."""
        changes: dict[str, object] = {}
        if "rule" in self._open:
            changes["rule"] = candidates.rules(self._facts.even, self._noisy)[0]
        if "noise" in self._open:
            changes["noise"] = candidates.noises(self._noisy)[0]
        if "kernel" in self._open:
            changes["kernel"] = Gaussian()
        return replace(plan, **changes)  # type: ignore[arg-type]

    def _by_features(self, kernel: ScalarKernel | OperatorKernel) -> ScalarKernel | OperatorKernel:
        if "kernel" not in self._open:
            return kernel
        bare = candidates.without_features(kernel)
        few = self._bench.steps <= MEDIUM
        return bare if few else candidates.with_features(bare, MANY)

    def _with_ridge(self, trial: Trial) -> Plan:
        if "ridge" not in self._open:
            return trial.plan
        unit = ridge_unit(trial.plan.prepare(self._train))
        plan = replace(trial.plan, ridge=trial.level * unit)
        if plan.refine is None or trial.refined_level is None:
            return plan
        return replace(plan, refine=plan.refine.replace(ridge=trial.refined_level * unit))

    def _fixed_level(self, plan: Plan, steps: int | None) -> float:
        ridge = 1.0 if plan.ridge is None else plan.ridge
        return ridge / ridge_unit(plan.prepare(self._bench.train(steps)[0]))

    def _has_open_length(self) -> bool:
        return any(
            name.endswith("length_scale") and value is None
            for name, value in self._plan.kernel.get_params().items()
        )

    def _out_of_time(self) -> bool:
        limit = self._search.max_time
        return limit is not None and perf_counter() - self._began > limit


def _name(plan: Plan) -> str:
    return repr(replace(plan, ridge=None))


def _kind(kernel: object) -> str:
    """What a kernel is made of, whatever its length scales."""
    inner = [
        _kind(v)
        for v in kernel.get_params(deep=False).values()  # type: ignore[attr-defined]
        if hasattr(v, "get_params")
    ]
    numbers = [
        str(v)
        for k, v in kernel.get_params(deep=False).items()  # type: ignore[attr-defined]
        if k in ("nu", "degree")
    ]
    return f"{type(kernel).__name__}({', '.join(inner + numbers)})"
