"""What a search chooses with no hints, set by set: accuracy against the oracle, and time.

`MOCK()` on the training part, judged by the search on the validation part (on measured sets, which
are small, by folds over both: `Search(pool=True)`); the test part is read once, at the end. The
oracle is the true field from the same first samples. On computed sets "field" is |f - f0| / |f0|
at the clean test states, and the paper's procedure (white loss, trapezoid, Gaussian kernel, length
scale and ridge by the best validation Err of a grid) stands beside it.
python benchmarks/tuned.py [nfhn lorenz63 ...] [--seeds 5]
"""

from __future__ import annotations

import argparse
import warnings
from time import perf_counter

import numpy as np
from measure import machine, table

import vectorfield as vf
from vectorfield.kernels import Gaussian, Nystrom

SETS = ("nfhn", "lorenz63", "pendulum", "lorenz96-16", "pbc", "drifters", "cmu_walk")
HEADER = [
    "set", "seed", "seconds", "Err", "Err / null", "1-Err / null", "Err / oracle", "field",
    "field, paper's", "kernel", "refine",
]  # fmt: skip


def scores(field: object, part: vf.Trajectories, unit: np.ndarray) -> vf.metrics.Scores:
    run = vf.rollout(field, part, rtol=1e-8, on_failure="ignore")
    xs, ts = zip(*((x / unit, t) for t, x in part), strict=True)
    scaled = vf.Trajectories.from_arrays(list(xs), list(ts))
    return vf.metrics.evaluate(scaled, [x / unit for x in run.x])


def paper(data: vf.datasets.Dataset) -> vf.MOCK:
    """The paper's loss and kernel; a Nystrom kernel stands in for the exact one beyond 4,000."""
    best, lowest = None, float("inf")
    many = (data.train.lengths - 1).sum() > 4000
    for length in (0.5, 1.0, 2.0, 4.0, 8.0):
        for ridge in 10.0 ** np.arange(-12.0, -2.0):
            kernel = Nystrom(Gaussian(length), 600, "pivoted") if many else Gaussian(length)
            model = vf.MOCK(kernel, ridge)
            try:
                model.fit(data.train)
            except vf.SolveError:
                continue
            run = vf.rollout(model.field_, data.validation, rtol=1e-5, on_failure="ignore")
            value = vf.metrics.evaluate(data.validation, run.x).err
            if value < lowest:
                best, lowest = model, value
    if best is None:
        raise SystemExit("no candidate could be fitted")
    return best


def row(name: str, seed: int, compare: bool) -> list[str]:
    data = vf.datasets.load(name, seed=seed) if seed else vf.datasets.load(name)
    began = perf_counter()
    search = vf.Search(pool=data.field is None)
    model = vf.MOCK(search=search).fit(data.train, validation=data.validation)
    seconds = perf_counter() - began
    spread = data.train.states.std(axis=0)
    unit = np.where(spread > 0, spread, 1.0) if data.field is None else np.ones(data.train.d)
    found = scores(model.field_, data.test, unit)
    against, own, theirs = "", "", ""
    if data.field is not None:
        oracle = scores(data.field, data.test, unit).err
        clean = not np.allclose(data.test.states, data.clean.test.states)
        against = f"{found.err / oracle:.3f}" if clean else ""
        x = data.clean.test.states
        truth = data.field(x)
        own = f"{np.linalg.norm(model.predict(x) - truth) / np.linalg.norm(truth):.2e}"
        if compare:
            rival = paper(data).predict(x)
            theirs = f"{np.linalg.norm(rival - truth) / np.linalg.norm(truth):.2e}"
    plan = model.report_.best.plan
    print(model.report_, flush=True)
    return [
        name,
        str(seed),
        f"{seconds:.0f}",
        f"{found.err:.3g}",
        f"{found.err / found.null_err:.3g}",
        f"{found.one_err / found.null_one_err:.3g}",
        against,
        own,
        theirs,
        f"{plan.kernel!r:.60}",
        "" if plan.refine is None else f"{plan.refine.samples} samples",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--compare", action="store_true", help="with the paper's procedure")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", vf.SolveWarning)
    print(machine())
    rows = []
    for name in arguments.sets:
        real = vf.datasets.load(name).field is None
        for seed in range(1 if real else arguments.seeds):
            rows.append(row(name, seed, arguments.compare))
            print(table(HEADER, rows[-1:]), flush=True)
    print(table(HEADER, rows))


if __name__ == "__main__":
    main()
