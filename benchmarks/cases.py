"""Known fields, trajectories of them, and how a method that learned one is judged.

Shared by noise.py and generalise.py. Trajectories are solved by DOP853 at rtol = 1e-10. What is
learned from and what is held out for tuning may be noisy, uneven and have holes; errors are counted
on clean test trajectories, each feature in units of its standard deviation:

    Err, 1-Err      from the true start, over those of the null model x(t) = x(0)
    field           |f - f0| / |f0| at the test states

and, where there is noise, Err and 1-Err from the noisy first sample against the noisy ones too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

import vectorfield as vf
from vectorfield.comparators import GradientMatching, Paper, SINDy

PARTS = (24, 10, 10)  # trajectories for training, validation, test


def mock() -> vf.MOCK:
    """Return our method: no hints."""
    return vf.MOCK()


METHODS: dict[str, Callable] = {
    "mock": mock,
    "pysindy": SINDy,
    "paper": Paper,
    "matching": GradientMatching,
}


@dataclass(frozen=True)
class Known:
    """A field with the box its starts are drawn from, and how it is sampled.

    Starts are uniform in the box, and followed for ``spin`` before the first sample.
    """

    name: str
    field: Callable[[np.ndarray], np.ndarray]  # (n, d) -> (n, d)
    low: tuple[float, ...]
    high: tuple[float, ...]
    span: float
    samples: int = 80
    spin: float = 0.0
    polynomial: bool = False

    @property
    def d(self) -> int:
        return len(self.low)


@dataclass(frozen=True)
class Sampling:
    """Noise in standard deviations of each feature, the share of samples lost, and jitter.

    Times are moved by up to ``jitter`` of a step either way.
    """

    noise: float = 0.0
    missing: float = 0.0
    jitter: float = 0.0

    def __str__(self) -> str:
        noise = f"{100 * self.noise:g} % noise" if self.noise else "clean"
        missing = f", {100 * self.missing:g} % missing" if self.missing else ""
        return noise + missing + (", jittered" if self.jitter else "")


@dataclass(frozen=True, eq=False)
class Data:
    train: vf.Trajectories
    validation: vf.Trajectories
    test: vf.Trajectories  # as observed
    clean: vf.Trajectories  # the same without noise
    unit: np.ndarray  # (d,)


def generate(known: Known, sampling: Sampling, seed: int = 0) -> Data:
    rng = np.random.default_rng([seed, sum(map(ord, known.name))])
    count = sum(PARTS)
    starts = rng.uniform(known.low, known.high, size=(count, known.d))
    if known.spin:
        starts = solve(known, starts, [np.array([0.0, known.spin])] * count)
        starts = np.stack([x[-1] for x in starts])
    grid = np.linspace(0.0, known.span, known.samples)
    step = grid[1]
    times = []
    for _ in range(count):
        t = grid + sampling.jitter * step * rng.uniform(-1.0, 1.0, size=len(grid))
        kept = rng.uniform(size=len(grid)) >= sampling.missing
        kept[0] = True
        times.append(t[kept] - t[0])
    xs = solve(known, starts, times)
    unit = np.concatenate(xs[: PARTS[0]]).std(axis=0)
    noisy = [x + sampling.noise * unit * rng.normal(size=x.shape) for x in xs]
    a, b = PARTS[0], PARTS[0] + PARTS[1]

    def part(states: list[np.ndarray], which: slice) -> vf.Trajectories:
        return vf.Trajectories.from_arrays(states[which], times[which])

    return Data(
        part(noisy, slice(0, a)),
        part(noisy, slice(a, b)),
        part(noisy, slice(b, count)),
        part(xs, slice(b, count)),
        unit,
    )


def solve(known: Known, starts: np.ndarray, times: list[np.ndarray]) -> list[np.ndarray]:
    size = np.maximum(np.abs(known.low), np.abs(known.high))
    options = {"rtol": 1e-10, "atol": 1e-10 * size, "on_failure": "raise"}
    return vf.simulate(known.field, starts, times, **options).x


def scores(field: Callable, part: vf.Trajectories, unit: np.ndarray) -> tuple[float, float]:
    """Return Err and 1-Err over those of the null model; a rollout that fails counts 1e6 times."""
    run = vf.rollout(field, part, rtol=1e-8, max_steps=5000, on_failure="ignore")
    found = vf.metrics.evaluate([(t, x / unit) for t, x in part], [x / unit for x in run.x])
    return 1.0 - found.skill, 1.0 - found.one_skill


def judge(known: Known, sampling: Sampling, data: Data, method: str) -> dict[str, object]:
    """Tune and fit one method, and read the test part once."""
    warnings.simplefilter("ignore", vf.SolveWarning)
    began = perf_counter()
    row: dict[str, object] = {
        "system": known.name,
        "d": known.d,
        "polynomial": int(known.polynomial),
        "sampling": str(sampling),
        "method": method,
    }
    names = ("err", "one_err", "field", "noisy_err", "noisy_one_err")
    try:
        model = METHODS[method]().fit(data.train, validation=data.validation)
    except vf.VectorFieldError as error:
        row |= dict.fromkeys(names, float("inf"))
        row |= {"seconds": f"{perf_counter() - began:.1f}", "settings": f"failed: {error}"}
        return row
    row["seconds"] = f"{perf_counter() - began:.1f}"
    x = data.clean.states
    truth = known.field(x) / data.unit
    values = [
        *scores(model.field_, data.clean, data.unit),
        np.linalg.norm(model.predict(x) / data.unit - truth) / np.linalg.norm(truth),
        *(scores(model.field_, data.test, data.unit) if sampling.noise else (np.nan, np.nan)),
    ]
    row |= {name: f"{value:.4g}" for name, value in zip(names, values, strict=True)}
    row["settings"] = settings(model)
    return row


def settings(model: object) -> str:
    """Return what was chosen, in a line."""
    best = model.report_.best  # type: ignore[attr-defined]
    if not isinstance(model, vf.MOCK):
        return str(best)
    plan = best.plan
    return f"{plan.kernel!r}, {plan.rule!r}, {plan.noise!r}, refine={plan.refine!r}"
