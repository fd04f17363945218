"""Fields that return to the data: rate, width, kernel, length scale and ridge in one walk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from vectorfield.kernels import Gaussian, Laplace, Matern, ScalarKernel
from vectorfield.occupation import Noise, SnapshotNoise, White
from vectorfield.plan import Plan
from vectorfield.prior import MeanReverting
from vectorfield.tuning import candidates
from vectorfield.tuning.context import FEW, Context
from vectorfield.tuning.judge import ranked
from vectorfield.tuning.objectives import HeldOutErrors
from vectorfield.tuning.trials import Trial, beats_null

__all__ = ["Place", "return_to_data"]

CHOSEN = frozenset(("kernel", "ridge", "prior"))
TRACKED = 0.4  # of the null model's error: a plan that leaves less follows the data
JUDGED = 6000  # samples held out
RATES = (0.03, 0.1, 0.3)  # times the time between samples
FASTEST = 1.0  # within a step back at the mean: no faster rate could be told from it
WIDTH, NARROWEST, WIDEST = 0.3, 0.02, 4.0  # of the median distance of states
POINTS = 300  # states averaged
GAIN = 2e-3  # of the score: what gains less is not worth another step
LEVELS = (100.0, 10.0, 1.0)  # of the ridge; three are all followed to the end
FACTORS = (2.0, 2.0**0.5)


@dataclass(frozen=True)
class Place:
    """Where the walk is: all that a returning plan is made of but its ridge.

    Attributes:
        kernel: of the learned rest.
        rate: of the prior, times the time between samples.
        width: of the prior's average, over the median distance of states; None for the mean of all.
        noise: the metric of the loss.
    """

    kernel: ScalarKernel
    rate: float
    width: float | None
    noise: Noise

    def plan(self, base: Plan, step: float, middle: float) -> Plan:
        """Return the base plan with these parts.

        >>> from vectorfield.occupation import White
        >>> place = Place(Gaussian(2.0), 0.1, None, White())
        >>> place.plan(Plan(), step=0.5, middle=3.0).prior
        MeanReverting(rate=0.2, width=None, count=300, random_state=0)
        """
        width = None if self.width is None else _short(self.width * middle)
        prior = MeanReverting(_short(self.rate / step), width, count=POINTS)
        kernel = candidates.with_features(self.kernel, FEW)
        return replace(base, kernel=kernel, prior=prior, noise=self.noise)

    def ways(self, factor: float, noises: Sequence[Noise]) -> Iterator[Iterator[Place]]:
        """Yield ways to go from here, each the places along it, one beyond the other."""
        for by in (factor, 1.0 / factor):
            yield self._along("rate", by)
            yield self._along("length", by)
            if self.width is not None:
                yield self._along("width", by)
        if factor == FACTORS[0]:
            yield iter([replace(self, width=WIDTH if self.width is None else None)])
            for kernel in _kernels(_width_of(self.kernel)):
                if type(kernel) is not type(self.kernel):
                    yield iter([replace(self, kernel=kernel)])
            for noise in noises:
                if noise != self.noise:
                    yield iter([replace(self, noise=noise)])

    def _along(self, what: str, factor: float) -> Iterator[Place]:
        place = self
        while True:
            if what == "rate":
                place = replace(place, rate=place.rate * factor)
            elif what == "length":
                kernel = candidates.stretched(place.kernel, factor)
                place = replace(place, kernel=kernel)  # type: ignore[arg-type]
            else:
                place = replace(place, width=(place.width or WIDTH) * factor)
            if place.rate > FASTEST or not NARROWEST <= (place.width or WIDTH) <= WIDEST:
                return
            yield place


def return_to_data(context: Context, best: Sequence[Trial]) -> list[Trial]:
    """Walk to the best plan with a reverting prior, where no plan so far follows the data.

    Clean data are left alone: more of them are what helps there. Where noise or what was not
    measured hides most of where trajectories go, a field that goes back to the data is a far better
    thing to shrink to than one that stands still. With it the best ridge is another, and so is the
    best kernel: a prior added to a kernel and a ridge that were chosen without gains a part of what
    there is.

    All of the data and all folds are used, also by the stages that follow: what is to be told apart
    differs by little. By default single steps and whole trajectories count: windows between
    them tell how long a field follows the data, which none does here.
    """
    first = best[0]
    held_out = isinstance(context.search.objective, HeldOutErrors)
    if not (context.noisy and context.open >= CHOSEN and held_out and _astray(first)):
        return list(best)
    before = context.bench, context.splits, context.lengths, context.small
    context.widen(JUDGED)
    ladder = context.near(first)
    plain = context.try_all([(first.plan, ladder)], "returning", None, done=0.42)
    found = _walk(context, first.plan)
    if found is None or not beats_null(found) or (plain and plain[0].score <= found.score):
        context.bench, context.splits, context.lengths, context.small = before
        return list(best)
    context.jointly = CHOSEN | {"noise"}
    return [found, *plain]


def _astray(trial: Trial) -> bool:
    """Whether errors are most of the null model's, over whole trajectories and all in all.

    A chaotic flow is followed over short windows, one under noisy samples over long ones.
    """
    return trial.ok and min(trial.score, trial.ratios[-1]) > TRACKED


def _walk(context: Context, base: Plan) -> Trial | None:
    """Rates and widths on a grid, then one number or part after the other."""
    nodes = base.prepare(context.bench.train(None)[0]).occupations.nodes
    middle = float(Gaussian().resolved(nodes).length_scale)  # type: ignore[arg-type]
    step = context.facts.step
    noises = [White(), SnapshotNoise(0.1)] if "noise" in context.open else [base.noise]

    def tried(places: Sequence[Place], levels: Sequence[float]) -> list[Trial]:
        tasks = ((place.plan(base, step, middle), levels) for place in places)
        return context.try_all(tasks, "returning", None, done=0.45)

    kernel = _kernels(middle)[0]
    grid = [Place(kernel, rate, width, noises[0]) for width in (None, WIDTH) for rate in RATES]
    start = tried(grid, LEVELS)
    if not start or not start[0].ok:
        return None
    best = start[0]
    place = next(p for p in grid if p.plan(base, step, middle) == best.plan)
    seen = set(grid)
    for factor in FACTORS:
        moved = True
        while moved and not context.out_of_time():
            moved = False
            for way in list(place.ways(factor, noises)):
                for target in way:
                    if target in seen:
                        break
                    seen.add(target)
                    found = tried([target], context.near(best, 1))
                    if not found or not found[0].score < (1.0 - GAIN) * best.score:
                        break
                    best, place, moved = ranked([found])[0], target, True
    return best


def _kernels(width: float) -> list[ScalarKernel]:
    """Return kernels as wide as a Gaussian of that length scale."""
    return [Laplace(width), Gaussian(width), Matern(2.5, width / 5.0**0.5)]


def _width_of(kernel: ScalarKernel) -> float:
    length = candidates.lengths_of(kernel)[0]
    return length * 5.0**0.5 if isinstance(kernel, Matern) else length


def _short(value: float) -> float:
    return float(f"{value:.3g}")
