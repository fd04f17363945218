"""Errors on held-out trajectories, from a sample on over windows of several lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vectorfield.kernels.expansion import Expansion
from vectorfield.shooting import EIGHTH, Flow, best_starts, cut, follow
from vectorfield.shooting.windows import Windows
from vectorfield.smoothing import SplineSmoother
from vectorfield.trajectories import Trajectories
from vectorfield.tuning.bundle import Bundle

__all__ = ["FEWEST", "Errors", "HeldOut", "Level", "levels"]

FINEST = 16
SETTLED = 0.05  # the share of an error that the integrator may have in it
CAP = 10.0  # a path that ran away counts as this many times the null model's error
PASSES = 5
FEWEST = 3  # fields that are judged on all levels


@dataclass(frozen=True, eq=False)
class Level:
    """Windows of one length of some trajectories, in the units of the data."""

    samples: int
    windows: Windows
    owner: np.ndarray
    null: np.ndarray
    guess: np.ndarray  # (n, d) where to look for starts from, if they are estimated


class Errors(NamedTuple):
    """Errors of fields, and what it took to have them.

    Attributes:
        sums: (R, levels, trajectories) sums of Err over the windows.
        substeps: steps of the integrator in one step of the data, as settled in the end.
    """

    sums: np.ndarray
    substeps: int


class Way(NamedTuple):
    """How fields are followed: their coordinates (x - shift) / scale, what is added, the steps."""

    shift: np.ndarray
    scale: np.ndarray
    drift: Flow | None
    substeps: int


class HeldOut:
    """Held-out trajectories, cut into windows of several lengths.

    Args:
        trajectories: in the units of the data.
        lengths: samples of the windows of each level.
        unit: (d,) in units of which errors are measured.
        estimate: whether each window's start is estimated, by the field that is judged, from all
            samples of the window. Else it is the first sample.
    """

    def __init__(
        self,
        trajectories: Trajectories,
        lengths: tuple[int, ...],
        unit: np.ndarray,
        estimate: bool = False,
    ) -> None:
        self._unit, self._estimate = unit, estimate
        self.count = len(trajectories)
        owners = np.repeat(np.arange(self.count), trajectories.lengths)
        self.levels: list[Level] = []
        near = SplineSmoother()(trajectories).trajectories if estimate else trajectories
        guess = np.asarray(near.states)
        for samples in lengths:
            windows = cut(trajectories, samples)
            start = windows.observed[:, :1]
            if estimate and samples > 2:  # the null model has its best start too
                share = self._weights(windows)[:, :, None]
                start = (share * windows.observed).sum(axis=1) / share.sum(axis=1)
                start = start[:, None]
            still = np.broadcast_to(start, windows.observed.shape)
            null = self._err(windows, still, np.ones(trajectories.d))
            first = windows.places[:, 0]
            self.levels.append(Level(samples, windows, owners[first], null, guess[first]))

    def errors(
        self,
        expansions: Sequence[Expansion | Flow],
        shift: np.ndarray,
        scale: np.ndarray,
        drift: Flow | None = None,
        *,
        substeps: int = 1,
        halve: bool = True,
    ) -> Errors:
        """Return the sums of Err over the windows of each trajectory.

        The fields are in the coordinates (x - shift) / scale. Paths are followed in ``substeps``
        steps to a step of the data, twice as many until the best field's errors do not change. Of
        many fields, half go on to the next level each time, unless ``halve`` is false; the others'
        errors there are infinite.
        """
        found = np.full((len(expansions), len(self.levels), self.count), np.inf)
        alive = np.arange(len(expansions))
        way = Way(shift, scale, drift, substeps)
        placed = np.zeros(len(expansions))
        for j, level in enumerate(self.levels):
            chosen = [expansions[r] for r in alive.tolist()]
            found[alive, j], way = self._settled(level, chosen, way)
            placed += np.log(np.maximum(found[:, j].sum(axis=1), 1e-300))
            keep = max(FEWEST, -(-len(alive) // 2)) if halve else len(alive)
            alive = alive[np.argsort(placed[alive], kind="stable")[:keep]]
        return Errors(found, way.substeps)

    def _settled(
        self, level: Level, expansions: Sequence[Expansion | Flow], way: Way
    ) -> tuple[np.ndarray, Way]:
        found = self._measure(level, expansions, way)
        while way.substeps < FINEST:
            totals = found.sum(axis=1)
            best = int(np.argmin(totals))
            half = way._replace(substeps=2 * way.substeps)
            finer = float(self._measure(level, [expansions[best]], half).sum())
            wild = finer > 0.5 * CAP * level.null.sum()  # capped errors are alike at any step
            if not wild and abs(finer - totals[best]) <= SETTLED * finer:
                break
            way = half
            found = self._measure(level, expansions, way)
        return found, way

    def counts(self) -> np.ndarray:
        """Return how many windows there are of each, (levels, trajectories)."""
        return np.stack([np.bincount(k.owner, minlength=self.count) for k in self.levels])

    def null(self) -> np.ndarray:
        """Return the same of the model that stands still, (levels, trajectories)."""
        return np.stack([self._by_owner(level, level.null[None])[0] for level in self.levels])

    def _measure(
        self, level: Level, expansions: Sequence[Expansion | Flow], way: Way
    ) -> np.ndarray:
        """Return the errors of one level, (R, trajectories)."""
        bundle, count, windows = Bundle(expansions, way.drift), len(expansions), level.windows
        observed = (windows.observed - way.shift) / way.scale
        scaled = Windows(observed, windows.steps, windows.present, windows.places)
        start = np.tile(observed[:, 0], (1, count))
        if self._estimate and level.samples > 2:
            guess = (level.guess - way.shift) / way.scale
            start = self._estimated(expansions, scaled, guess, way)
        paths = _followed(bundle, start, windows.steps, way.substeps)
        paths = paths.reshape(len(windows), paths.shape[1], count, -1)
        errors = np.stack([self._err(scaled, paths[:, :, r], way.scale) for r in range(count)])
        errors = np.where(np.isfinite(errors), errors, np.inf)
        return self._by_owner(level, np.minimum(errors, CAP * self._worst(level)))

    def _estimated(
        self, expansions: Sequence[Expansion | Flow], windows: Windows, guess: np.ndarray, way: Way
    ) -> np.ndarray:
        found = []
        weights = np.ones(windows.observed.shape[2])
        for expansion in expansions:
            flow, start = Bundle([expansion], way.drift), guess
            paths = _followed(flow, start, windows.steps, way.substeps)
            error, reach = self._err(windows, paths, weights), np.ones(len(windows))
            for _ in range(PASSES):
                step = best_starts(flow, windows, start, weights, way.substeps) - start
                trial = start + reach[:, None] * step
                paths = _followed(flow, trial, windows.steps, way.substeps)
                after = self._err(windows, paths, weights)
                better = after < error  # not so where a path has run away
                start = np.where(better[:, None], trial, start)
                error = np.where(better, after, error)
                reach = np.where(better, 1.0, 0.25 * reach)
            found.append(start)
        return np.concatenate(found, axis=1)

    def _err(self, windows: Windows, paths: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Return Err of each window, of states in units of ``scale`` / ``unit``."""
        with np.errstate(all="ignore"):
            gap = (paths - windows.observed) * (scale / self._unit)
            squared = np.einsum("nkd,nkd->nk", gap, gap)
            skip = 0 if self._estimate else 1  # the first sample is then no longer given
            weight = self._weights(windows)
            return np.asarray(np.sqrt((squared[:, skip:] * weight[:, skip:]).sum(axis=1)))

    @staticmethod
    def _weights(windows: Windows) -> np.ndarray:
        """Return the time that each sample stands for, (n, samples); 0 beyond the end."""
        steps = np.concatenate([windows.steps[:, :1], windows.steps], axis=1)
        return np.asarray(steps * windows.present)

    @staticmethod
    def _worst(level: Level) -> np.ndarray:
        return np.asarray(np.maximum(level.null, level.null.mean()))

    def _by_owner(self, level: Level, errors: np.ndarray) -> np.ndarray:
        """Return sums over the windows of each trajectory, (R, trajectories)."""
        value = np.zeros((len(errors), self.count))
        for r, row in enumerate(errors):
            value[r] = np.bincount(level.owner, row, minlength=self.count)
        return value


def _followed(flow: Flow, starts: np.ndarray, steps: np.ndarray, substeps: int) -> np.ndarray:
    """Return paths as fine as that many substeps of order 4; from 4 on by order 8.

    One step of order 8 takes 12 calls of the flow where four of order 4 take 16, and errs far less.
    """
    if substeps < 4:
        return follow(flow, starts, steps, substeps)
    return follow(flow, starts, steps, substeps // 4, EIGHTH)


def levels(trajectories: Trajectories) -> tuple[int, ...]:
    """Return lengths of windows: a step, a tenth, a third and all of the typical trajectory."""
    length = int(np.median(trajectories.lengths))
    longest = int(trajectories.lengths.max())
    wanted = {2, max(2, round(length / 10) + 1), max(2, round(length / 3) + 1), longest}
    return tuple(sorted(wanted))
