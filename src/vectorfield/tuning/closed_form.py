"""Objectives that come from the fit itself: nothing is held out by hand, no path is followed.

Both take a whole path of ridges from one decomposition (`vectorfield.linalg.spectrum`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from vectorfield._errors import DataError
from vectorfield._settings import check_integer
from vectorfield.kernels import ExplicitKernel, Separable
from vectorfield.linalg import Spectrum, spectrum
from vectorfield.linalg.whitening import Whitener
from vectorfield.occupation import IncrementRule, Noise
from vectorfield.plan import Plan, Prepared, as_operator
from vectorfield.trajectories import Trajectories
from vectorfield.tuning.bench import FAILURES, Bench, ridge_unit
from vectorfield.tuning.compact import compacted
from vectorfield.tuning.folds import blocks, thin
from vectorfield.tuning.objectives import Objective, Windowed, jackknifed
from vectorfield.tuning.trials import Trial

__all__ = ["FitItself", "LeftOut", "MarginalLikelihood"]

BEYOND = ("smoother", "refine", "robust")  # parts that change the targets, or a fit's being linear


class Appraisal(NamedTuple):
    """A score, its standard error, and the squares per trajectory behind it (1, trajectories)."""

    score: float = float("inf")
    spread: float = float("nan")
    errors: np.ndarray | None = None
    status: str = "ok"


class FitItself(Objective):
    """Made of one linear fit to all training data.

    It compares kernels, ridges, priors, and rules of increments, whose targets are all the same.
    Smoothed states, windows and refinements have other targets or no closed form: a search
    leaves them alone. The plans that are chosen are then fitted to the folds and followed, so
    that the report has their errors on held-out windows.
    """

    most: int

    @abstractmethod
    def appraise(
        self, found: Spectrum, prepared: Prepared, ridges: Sequence[float]
    ) -> list[Appraisal]:
        """Return what each ridge is worth; all of them are above rounding."""

    def arranged(self, train: Trajectories) -> Trajectories:
        """Return the trajectories as they are to be fitted."""
        return train

    def compares(self, part: str, value: object) -> bool:
        """Whether targets and metric stay the same."""
        if part == "rule":
            return isinstance(value, IncrementRule)
        return part not in BEYOND or value is None

    def check(self, plan: Plan) -> None:
        """Refuse fits that are refined or robust."""
        for name in ("refine", "robust"):
            if getattr(plan, name) is not None:
                raise ValueError(
                    f"{type(self).__name__} judges linear fits, and {name}="
                    f"{getattr(plan, name)!r} is not part of one; take an objective of held-out "
                    "errors such as Windowed(), or leave it out"
                )

    def judge(
        self, bench: Bench, plan: Plan, levels: Sequence[float], stage: str, **options: Any
    ) -> list[Trial]:
        """Decompose once, and appraise all ridge levels."""
        began = perf_counter()
        worth, size = [Appraisal(status="lost in rounding")] * len(levels), 0
        try:
            prepared = plan.prepare(self._data(bench, plan, options.get("steps")))
            size = len(prepared.occupations)
            if not options.get("whole"):
                prepared = compacted(prepared)
            found = spectrum(prepared.kernel, prepared.occupations, covariance=prepared.covariance)
            ridges = [level * ridge_unit(prepared) for level in levels]
            good = [j for j, ridge in enumerate(ridges) if found.resolves(ridge)]
            values = self.appraise(found, prepared, [ridges[j] for j in good])
            for j, value in zip(good, values, strict=True):
                worth[j] = value
        except FAILURES as error:
            worth = [Appraisal(status=f"{type(error).__name__}: {error}")] * len(levels)
        seconds = (perf_counter() - began) / len(levels)
        return [
            Trial(
                plan=plan,
                level=levels[j],
                refined_level=None,
                stage=stage,
                observations=size,
                score=worth[j].score,
                spread=worth[j].spread,
                ratios=(float("nan"),) * len(bench.lengths),
                errors=worth[j].errors,
                status=worth[j].status,
                seconds=seconds,
            )
            for j in range(len(levels))
        ]

    def reported(self, bench: Bench, trial: Trial) -> Trial:
        """Return the trial with the errors of such fits on held-out windows."""
        if not trial.ok:
            return trial
        (found,) = bench.follow(trial.plan, [trial.level], trial.stage, Windowed().score)
        return replace(trial, ratios=found.ratios)

    def _data(self, bench: Bench, plan: Plan, steps: int | None) -> Trajectories:
        """Return at most ``most`` rows of the matrix that is decomposed."""
        data = self.arranged(bench.data)
        kernel = as_operator(plan.kernel)
        coupled = not isinstance(kernel, (Separable, ExplicitKernel))
        most = self.most // data.d if coupled else self.most
        return thin(data, most if steps is None else min(steps, most))


@dataclass(frozen=True)
class LeftOut(FitItself):
    """Leave-one-trajectory-out errors of the increments, in closed form.

    With A = M + shift Sigma and a = A^-1 y the targets of trajectory b, less what a fit to all
    others says of them, are e_b = ([A^-1]_bb)^-1 a_b, at the same shift = ridge N. The score is

        (sum_b |e_b|^2 / sum_b |y_b|^2)^(1/2)

    in the metric of Sigma, with y_b the targets before any prior is taken out, so that the model
    that stands still has 1. Its standard error is the jackknife's. Fewer than ``pieces``
    trajectories are cut into about as many stretches of time. Length scales left to a formula,
    standardisation and priors see all data, as they do in the final fit.

    Cost: some 10 S^3 for S observations by exact kernels, 6 S q^2 by q features, and
    sum_b n_b^2 (r + n_b) for each ridge, r the smaller of S and q. Coupled kernels: S d for S.

    Args:
        metric: the noise model whose Sigma measures the errors. None is that of each plan; errors
            in two metrics cannot be compared, so noise models are then not searched.
        most: rows of the matrix that is decomposed; of larger data some trajectories are taken.
        pieces: the fewest parts to leave out.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 6.0, 61)
        >>> xs = [a * np.stack([np.cos(t), -np.sin(t)], axis=1) for a in (0.5, 1.0, 1.5, 2.0)]
        >>> search = vf.Search(vf.tuning.LeftOut())
        >>> model = vf.MOCK(vf.kernels.Linear(), search=search).fit(xs, t)
        >>> model.report_.best.score < 1e-3
        True
    """

    metric: Noise | None = None
    most: int = 2000
    pieces: int = 8

    def __post_init__(self) -> None:
        if self.metric is not None and not isinstance(self.metric, Noise):
            raise TypeError(f"metric must be a Noise such as White(), got {self.metric!r}")
        check_integer("most", self.most, at_least=10)
        check_integer("pieces", self.pieces, at_least=2)

    def arranged(self, train: Trajectories) -> Trajectories:
        """Return the trajectories, cut where there are few."""
        return train if len(train) >= self.pieces else blocks(train, self.pieces)

    def compares(self, part: str, value: object) -> bool:
        """Whether targets and metric stay the same."""
        return super().compares(part, value) and (part != "noise" or self.metric is not None)

    def appraise(
        self, found: Spectrum, prepared: Prepared, ridges: Sequence[float]
    ) -> list[Appraisal]:
        """Return the left-out errors of each ridge."""
        owner = prepared.occupations.owner
        sigma = prepared.covariance
        if self.metric is not None:
            sigma = self.metric.covariance(prepared.occupations)
        whitener = Whitener(sigma)
        null = _squares(whitener.forward(_targets(prepared)), owner)
        rows = np.argsort(owner, kind="stable")
        worth = []
        for ridge in ridges:
            error = np.empty_like(prepared.occupations.targets)
            try:
                error[rows] = np.concatenate(found.left_out(ridge, white=False))
            except DataError as refusal:
                worth.append(Appraisal(status=str(refusal)))
                continue
            squares = _squares(whitener.forward(error), owner)
            score, spread = jackknifed(squares, null, np.array([0.5]))
            worth.append(Appraisal(score, spread, squares))
        return worth


@dataclass(frozen=True)
class MarginalLikelihood(FitItself):
    """The likelihood of the increments under the Gaussian process that the fit is the mean of.

    y ~ N(0, tau^2 (Sigma kron I + M / shift)), tau at its likeliest value. With n = S d numbers in
    y the score is

        exp((log p_0(y) - log p(y)) / n)

    where p_0 has f = 0, no prior and white noise: by this factor the errors of one number shrink,
    less the price of the freedom that it took. It compares noise models too, and priors by what
    they leave (their few coefficients are not paid for). It has no standard error. Noise in the
    places where f is observed is not part of the model: on noisy snapshots of curved flows
    prefer held-out errors.

    Cost: some 10 S^3 for S observations by exact kernels, 6 S q^2 by q features, next to nothing
    for each ridge. Coupled kernels: S d for S.

    Args:
        most: rows of the matrix that is decomposed; of larger data some trajectories are taken.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 6.0, 61)
        >>> xs = [a * np.stack([np.cos(t), -np.sin(t)], axis=1) for a in (0.5, 1.0, 1.5, 2.0)]
        >>> search = vf.Search(vf.tuning.MarginalLikelihood())
        >>> model = vf.MOCK(vf.kernels.Linear(), search=search).fit(xs, t)
        >>> model.report_.best.score < 1e-3
        True
    """

    most: int = 2000

    def __post_init__(self) -> None:
        check_integer("most", self.most, at_least=10)

    def appraise(
        self, found: Spectrum, prepared: Prepared, ridges: Sequence[float]
    ) -> list[Appraisal]:
        """Return the likelihood of each ridge beside that of the null model."""
        y = _targets(prepared)
        mean_square = float((y**2).mean())
        if mean_square == 0.0:
            return [Appraisal(1.0)] * len(ridges)
        null = -0.5 * y.size * (np.log(2.0 * np.pi * mean_square) + 1.0)
        gains = [(null - found.log_likelihood(ridge)) / y.size for ridge in ridges]
        return [Appraisal(float(np.exp(gain))) for gain in gains]


def _targets(prepared: Prepared) -> np.ndarray:
    """Return y before the prior was taken out, (S, d): what the null model leaves."""
    if prepared.drift is None:
        return np.asarray(prepared.occupations.targets)
    smoothed = prepared.smoothed
    data = prepared.observed if smoothed is None else smoothed.trajectories
    states = (data.states - prepared.shift) / prepared.scale
    return np.asarray(prepared.occupations.differences @ states)


def _squares(rows: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """Return sums of squares by trajectory, (1, trajectories)."""
    _, place = np.unique(owner, return_inverse=True)
    return np.bincount(place, (rows**2).sum(axis=1))[None]
