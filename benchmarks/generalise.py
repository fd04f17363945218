"""Systems that played no part in the making of `MOCK`: how often it beats its rivals.

The systems and their samplings were written down, and tried with the rivals alone, before `MOCK`
was run on any of them; nothing is tuned to them, and none is used anywhere else in the project.
Every method is tuned on the same validation trajectories. Of each, Err and 1-Err of rollouts from
the starts of clean test trajectories over those of the null model, and the relative field error at
the test states, are compared: a pair (case, metric) is won where the error is smaller by more than
one per cent. Target: 80 % of the pairs, against each rival.

Rows go to a CSV file as they come; a restart skips those that are there.

python benchmarks/generalise.py                 # 25 minutes; benchmarks/results/generalise.csv
python benchmarks/generalise.py --read          # the tables of that file, again
python benchmarks/generalise.py --methods pysindy paper --csv rivals.csv
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from cases import METHODS, Known, Sampling, generate, judge
from measure import machine, table, verdict

TARGET = 0.8
CLOSE = 0.99  # within one per cent nobody has won
METRICS = {"err": "Err", "one_err": "1-Err", "field": "field"}
RESULTS = Path(__file__).parent / "results" / "generalise.csv"
COLUMNS = [
    "system", "d", "polynomial", "sampling", "method", "seconds",
    "err", "one_err", "field", "noisy_err", "noisy_one_err", "settings",
]  # fmt: skip


def grazing(x: np.ndarray) -> np.ndarray:
    """Rosenzweig and MacArthur: prey, and predators that can eat only so much."""
    prey, predator = x.T
    eaten = 2.0 * prey * predator / (1.0 + prey)
    return np.stack([prey * (1.0 - prey / 4.0) - eaten, 0.6 * eaten - 0.6 * predator], axis=1)


def morris_lecar(x: np.ndarray) -> np.ndarray:
    """A muscle fibre: membrane potential in mV, share of open potassium channels."""
    v, w = x.T
    calcium = 0.5 * (1.0 + np.tanh((v + 1.2) / 18.0))
    open_share, rate = 0.5 * (1.0 + np.tanh((v - 2.0) / 30.0)), np.cosh((v - 2.0) / 60.0)
    current = 100.0 - 4.4 * calcium * (v - 120.0) - 8.0 * w * (v + 84.0) - 2.0 * (v + 60.0)
    return np.stack([current / 20.0, 0.04 * rate * (open_share - w)], axis=1)


def thomas(x: np.ndarray) -> np.ndarray:
    """Thomas' cyclically symmetric flow, chaotic."""
    return np.sin(np.roll(x, -1, axis=1)) - 0.2 * x


def chua(x: np.ndarray) -> np.ndarray:
    """Chua's circuit with its piecewise linear diode: two scrolls."""
    a, b, c = x.T
    diode = -0.714 * a - 0.2145 * (np.abs(a + 1.0) - np.abs(a - 1.0))
    return np.stack([15.6 * (b - a - diode), a - b + c, -28.0 * b], axis=1)


def rigid_body(x: np.ndarray) -> np.ndarray:
    """Euler's equations for the moments of inertia 1, 2, 3, with a little friction."""
    a, b, c = x.T
    return np.stack([-b * c, a * c, -a * b / 3.0], axis=1) - 0.05 * x


def chemostat(x: np.ndarray) -> np.ndarray:
    """Substrate that inhibits growth when there is much of it (Haldane), biomass, product."""
    substrate, biomass, product = x.T
    growth = 1.2 * substrate / (0.5 + substrate + substrate**2 / 4.0) * biomass
    flow = 0.35
    return np.stack(
        [
            flow * (4.0 - substrate) - growth / 0.6,
            growth - flow * biomass,
            0.8 * growth - flow * product,
        ],
        axis=1,
    )


def wilson_cowan(x: np.ndarray) -> np.ndarray:
    """Two populations of neurons that excite and inhibit each other."""
    e, i = x.T

    def response(drive: np.ndarray, slope: float, threshold: float) -> np.ndarray:
        at_rest = 1.0 / (1.0 + np.exp(slope * threshold))
        return 1.0 / (1.0 + np.exp(-slope * (drive - threshold))) - at_rest

    return np.stack(
        [
            -e + (1.0 - e) * response(16.0 * e - 12.0 * i + 1.25, 1.3, 4.0),
            -i + (1.0 - i) * response(15.0 * e - 3.0 * i, 2.0, 3.7),
        ],
        axis=1,
    )


def hindmarsh_rose(x: np.ndarray) -> np.ndarray:
    """A neuron that fires in bursts."""
    v, fast, slow = x.T
    return np.stack(
        [
            fast - v**3 + 3.0 * v**2 - slow + 3.0,
            1.0 - 5.0 * v**2 - fast,
            0.006 * (4.0 * (v + 1.6) - slow),
        ],
        axis=1,
    )


def brusselator(x: np.ndarray) -> np.ndarray:
    a, b = x.T
    return np.stack([1.0 + a**2 * b - 3.5 * a, 2.5 * a - a**2 * b], axis=1)


def glycolysis(x: np.ndarray) -> np.ndarray:
    """Glycolytic oscillations of yeast: seven metabolites (Wolf and Heinrich 2000)."""
    s1, s2, s3, s4, s5, s6, s7 = x.T
    uptake = 100.0 * s1 * s6 / (1.0 + (s6 / 0.52) ** 4)
    second, third = 6.0 * s2 * (1.0 - s5), 16.0 * s3 * (4.0 - s6)
    fourth, branch, out = 100.0 * s4 * s5, 12.0 * s2 * s5, 13.0 * (s4 - s7)
    return np.stack(
        [
            2.5 - uptake,
            2.0 * uptake - second - branch,
            second - third,
            third - fourth - out,
            second - fourth - branch,
            -2.0 * uptake + 2.0 * third - 1.28 * s6,
            0.1 * out - 1.8 * s7,
        ],
        axis=1,
    )


def repressilator(x: np.ndarray) -> np.ndarray:
    """Three genes in a ring, each repressing the next: messengers and proteins."""
    messenger, protein = x[:, :3], x[:, 3:]
    made = 30.0 / (1.0 + np.roll(protein, 1, axis=1) ** 2) + 0.2
    return np.concatenate([made - messenger, messenger - protein], axis=1)


def chain(x: np.ndarray) -> np.ndarray:
    """Fermi, Pasta, Ulam and Tsingou: five masses between walls, springs that stiffen."""
    place, speed = x[:, :5], x[:, 5:]
    walls = np.zeros((len(x), 1))
    stretch = np.diff(np.concatenate([walls, place, walls], axis=1), axis=1)
    return np.concatenate([speed, np.diff(stretch + 0.5 * stretch**3, axis=1)], axis=1)


def competition(x: np.ndarray) -> np.ndarray:
    """Four competing species (Vano et al. 2006)."""
    rates = np.array([1.0, 0.72, 1.53, 1.27])
    matrix = np.array(
        [
            [1.0, 1.09, 1.52, 0.0],
            [0.0, 1.0, 0.44, 1.36],
            [2.33, 0.0, 1.0, 0.47],
            [1.21, 0.51, 0.35, 1.0],
        ]
    )
    return rates * x * (1.0 - x @ matrix.T)


def tilted_wells(x: np.ndarray) -> np.ndarray:
    """A ball with friction in two wells of unequal depth."""
    place, speed = x.T
    return np.stack([speed, place - place**3 + 0.2 - 0.25 * speed], axis=1)


def reactor(x: np.ndarray) -> np.ndarray:
    """A stirred tank with an exothermic reaction, by Arrhenius' law: conversion, temperature."""
    conversion, heat = x.T
    made = 0.072 * (1.0 - conversion) * np.exp(heat / (1.0 + heat / 20.0))
    return np.stack([made - conversion, 8.0 * made - 1.3 * heat], axis=1)


CLEAN, UNEVEN = Sampling(), Sampling(missing=0.3, jitter=0.4)
SOME, MUCH, HOLES = Sampling(0.01), Sampling(0.05), Sampling(0.02, missing=0.3, jitter=0.4)

GLYCOLYSIS = (
    (0.15, 0.19, 0.04, 0.1, 0.08, 0.14, 0.05),
    (1.6, 2.16, 0.2, 0.35, 0.3, 2.67, 0.1),
)

CASES: tuple[tuple[Known, tuple[Sampling, ...]], ...] = (
    (Known("grazing", grazing, (0.3, 0.3), (3.0, 1.5), 15.0), (MUCH, UNEVEN)),
    (Known("morris-lecar", morris_lecar, (-50.0, 0.0), (30.0, 0.5), 150.0, 100), (CLEAN,)),
    (Known("thomas", thomas, (-3,) * 3, (3,) * 3, 20.0, 100, spin=50.0), (CLEAN, SOME)),
    (Known("chua", chua, (-0.3,) * 3, (0.3,) * 3, 5.0, 100, spin=20.0), (CLEAN,)),
    (Known("rigid-body", rigid_body, (-1.5,) * 3, (1.5,) * 3, 10.0, polynomial=True), (UNEVEN,)),
    (Known("chemostat", chemostat, (0.2, 0.2, 0.0), (4.0, 2.5, 2.0), 8.0), (HOLES,)),
    (Known("wilson-cowan", wilson_cowan, (0.0, 0.0), (0.5, 0.5), 15.0), (MUCH,)),
    (
        Known(
            "hindmarsh-rose", hindmarsh_rose, (-1.5, -8.0, 2.5), (1.5, 0.0, 3.5), 25.0, 100,
            spin=10.0, polynomial=True,
        ),
        (CLEAN,),
    ),
    (
        Known("brusselator", brusselator, (0.3, 0.5), (3, 4), 8.0, spin=0.5, polynomial=True),
        (MUCH,),
    ),
    (Known("glycolysis", glycolysis, *GLYCOLYSIS, 3.0, 100, spin=0.3), (CLEAN,)),
    (Known("repressilator", repressilator, (0.0,) * 6, (10.0,) * 6, 15.0), (CLEAN, SOME)),
    (Known("chain", chain, (-1.0,) * 10, (1.0,) * 10, 10.0, polynomial=True), (CLEAN,)),
    (
        Known("competition", competition, (0.05,) * 4, (0.8,) * 4, 15.0, polynomial=True),
        (HOLES,),
    ),
    (
        Known("tilted-wells", tilted_wells, (-2.0, -1.5), (2.0, 1.5), 10.0, polynomial=True),
        (HOLES,),
    ),
    (Known("reactor", reactor, (0.0, 0.0), (1.0, 5.0), 5.0), (CLEAN, MUCH)),
)  # fmt: skip


def run(methods: list[str], systems: list[str], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    done = {(row["system"], row["sampling"], row["method"]) for row in read(path)}
    for known, samplings in CASES:
        for sampling in samplings if known.name in systems else ():
            data = None
            for method in methods:
                if (known.name, str(sampling), method) in done:
                    continue
                data = generate(known, sampling) if data is None else data
                row = judge(known, sampling, data, method)
                fresh = not path.exists() or path.stat().st_size == 0
                with path.open("a", newline="") as file:
                    writer = csv.DictWriter(file, COLUMNS)
                    if fresh:
                        writer.writeheader()
                    writer.writerow(row)
                shown = {name: row[name] for name in COLUMNS[:-1]}
                print(", ".join(f"{k} {v}" for k, v in shown.items()), flush=True)


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def show(rows: list[dict[str, str]]) -> None:
    found: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for row in rows:
        found.setdefault((row["system"], row["sampling"]), {})[row["method"]] = row
    for metric, name in METRICS.items():
        lines = []
        for (system, sampling), by_method in found.items():
            values = {m: float(by_method[m][metric]) for m in METHODS if m in by_method}
            best = min(values, key=lambda m: values[m])
            cells = [f"{values[m]:.2e}" if m in values else "" for m in METHODS]
            lines.append([system, next(iter(by_method.values()))["d"], sampling, *cells, best])
        print(f"\n{name}")
        print(table(["system", "d", "sampling", *METHODS, "best"], lines))
    rivals = [method for method in METHODS if method != "mock"]
    complete = [case for case in found.values() if set(METHODS) <= set(case)]
    if not complete:
        return
    tally = {}
    for rival in [*rivals, "all of them"]:
        outcomes = []
        for case in complete:
            for metric in METRICS:
                ours = float(case["mock"][metric])
                names = rivals if rival == "all of them" else [rival]
                theirs = min(float(case[other][metric]) for other in names)
                won, lost = ours < CLOSE * theirs, theirs < CLOSE * ours
                outcomes.append("won" if won else "lost" if lost else "even")
        tally[rival] = [outcomes.count(word) for word in ("won", "even", "lost")]
    lines = []
    for rival, (won, even, lost) in tally.items():
        share = won / (won + even + lost)
        met = "" if rival == "all of them" else verdict(share, TARGET, at_most=False)
        lines.append([rival, won, even, lost, f"{100 * share:.0f} %", met])
    print(f"\npairs of case and metric, {len(complete)} cases; target {100 * TARGET:.0f} %")
    print(table(["MOCK against", "won", "even", "lost", "share won", ""], lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--systems", nargs="*", default=[known.name for known, _ in CASES])
    parser.add_argument("--csv", type=Path, default=RESULTS)
    parser.add_argument("--read", action="store_true", help="only show what the file has")
    arguments = parser.parse_args()
    if not arguments.read:
        print(machine())
        run(arguments.methods, arguments.systems, arguments.csv)
    show(read(arguments.csv))


if __name__ == "__main__":
    main()
