"""Fields that return to the data: rate, width, kernel, length scale and ridge in one walk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vectorfield.kernels import Gaussian, Laplace, Matern, ScalarKernel
from vectorfield.occupation import Noise
from vectorfield.plan import Plan
from vectorfield.prior import MeanReverting
from vectorfield.tuning.candidates import lengths_of, stretched, with_features
from vectorfield.tuning.trials import Trial

__all__ = ["Place", "applies", "walk"]

TRACKED = 0.5  # a field that halves the error over windows of some length needs no way back
RATES = (0.03, 0.1, 0.3)  # times the time between samples
FASTEST = 1.0  # in one step back at the mean: no faster rate could be told from it
WIDTH = 0.3  # of the median distance of states
POINTS = 300  # states averaged
GAIN = 5e-4  # of the score; a step that gains less is not worth another round
FACTORS = (2.0, 2.0**0.5)

Judge = Callable[[Plan, Sequence[float]], list[Trial]]


@dataclass(frozen=True)
class Place:
    """Where the walk is: all that a reverting plan is made of but its ridge.

    Attributes:
        kernel: of the learned rest.
        rate: of the prior, in units of 1 / step.
        width: of the prior's average, in units of ``middle``; None for the mean of all states.
        noise: the metric of the loss.
    """

    kernel: ScalarKernel
    rate: float
    width: float | None
    noise: Noise

    def plan(self, base: Plan, step: float, middle: float, features: int) -> Plan:
        """Return the base plan with these parts.

        >>> from vectorfield.occupation import White
        >>> place = Place(Gaussian(2.0), 0.1, None, White())
        >>> place.plan(Plan(), 0.5, 3.0, 100).prior
        MeanReverting(rate=0.2, width=None, count=300, random_state=0)
        """
        width = None if self.width is None else _short(self.width * middle)
        prior = MeanReverting(_short(self.rate / step), width, count=POINTS)
        kernel = with_features(self.kernel, features)
        return replace(base, kernel=kernel, prior=prior, noise=self.noise)

    def moves(self, factor: float, noises: Sequence[Noise]) -> Iterator[Iterator[Place]]:
        """Yield ways to go, each as the places along it, one beyond the other."""
        for way in (factor, 1.0 / factor):
            yield self._along("rate", way)
            yield self._along("length", way)
            if self.width is not None:
                yield self._along("width", way)
        if factor == FACTORS[0]:
            yield iter([replace(self, width=WIDTH if self.width is None else None)])
            length = _gaussian_length(self.kernel)
            for kernel in _kernels(length):
                if type(kernel) is not type(self.kernel):
                    yield iter([replace(self, kernel=kernel)])
            for noise in noises:
                if noise != self.noise:
                    yield iter([replace(self, noise=noise)])

    def _along(self, what: str, way: float) -> Iterator[Place]:
        place = self
        while True:
            if what == "rate":
                place = replace(place, rate=place.rate * way)
                if place.rate > FASTEST:
                    return
            elif what == "length":
                place = replace(place, kernel=stretched(place.kernel, way))  # type: ignore[arg-type]
            else:
                place = replace(place, width=(place.width or WIDTH) * way)
            yield place


def applies(trial: Trial) -> bool:
    """Whether the plan leaves most of where trajectories go unexplained, over any time.

    A chaotic flow is followed over short windows, one of noisy samples over long ones.
    """
    return trial.ok and min(trial.ratios) > TRACKED


def walk(
    judge: Judge,
    base: Plan,
    ladder: Sequence[float],
    *,
    middle: float,
    step: float,
    noises: Sequence[Noise],
    features: int,
    stop: Callable[[], bool],
) -> Trial | None:
    """Walk to the best reverting plan: rates, widths and kernels on a grid, then one by one.

    Ridge towards f = 0 trades the error of a field that stands still against that of a noisy one.
    Towards a field that goes back to the data the best ridge is another, and so is the best
    kernel; a prior added to a kernel and a ridge chosen without it gains half of what there is.

    Args:
        judge: fits a plan for ridge levels, and returns a trial for each.
        base: the plan with all other parts.
        ladder: ridge levels to begin with.
        middle: median distance of the standardised states.
        step: the median time between samples.
        noises: noise models to choose from.
        features: most features of the kernels.
        stop: whether time is out.
    """

    def tried(place: Place, levels: Sequence[float]) -> Trial | None:
        if stop():
            return None
        found = judge(place.plan(base, step, middle, features), levels)
        return min(found, key=lambda t: t.score) if found else None

    best: Trial | None = None
    place: Place | None = None
    for kernel in _kernels(middle)[:1]:
        for width in (None, WIDTH):
            for rate in RATES:
                start = Place(kernel, rate, width, noises[0])
                near = ladder if best is None else _near(best, 2)
                trial = tried(start, near)
                if trial is not None and trial.ok and (best is None or trial.score < best.score):
                    best, place = trial, start
    if best is None or place is None:
        return None
    seen = {place}
    for factor in FACTORS:
        moved = True
        while moved and not stop():
            moved = False
            for way in list(place.moves(factor, noises)):
                for target in way:
                    if target in seen or not _reasonable(target):
                        break
                    seen.add(target)
                    trial = tried(target, _near(best, 1))
                    if trial is None or not trial.score < (1.0 - GAIN) * best.score:
                        break
                    best, place, moved = trial, target, True
    return best


def _kernels(length: float) -> list[ScalarKernel]:
    """Return kernels as wide as a Gaussian of that length scale."""
    return [Laplace(length), Gaussian(length), Matern(2.5, length / 5.0**0.5)]


def _gaussian_length(kernel: ScalarKernel) -> float:
    length = lengths_of(kernel)[0]
    return length * 5.0**0.5 if isinstance(kernel, Matern) else length


def _reasonable(place: Place) -> bool:
    width = 1.0 if place.width is None else place.width
    return 1e-4 < place.rate and 0.02 < width < 4.0


def _near(trial: Trial, span: int) -> list[float]:
    return [trial.level * 10.0**k for k in range(span, -span - 1, -1)]


def _short(value: Any) -> float:
    return float(f"{value:.3g}")
