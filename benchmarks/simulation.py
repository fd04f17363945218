"""Batched simulation of 1,000 starts of the fitted NFHN field against a loop of solve_ivp.

Target: at least 50 times the throughput at equal accuracy. Both use the same method and
tolerances; the errors against a reference at rtol 1e-11 are printed beside the times. The loop
runs over some of the starts, which are drawn like the others.   python benchmarks/simulation.py
"""

from __future__ import annotations

import time

import numpy as np
from measure import machine, table, verdict
from scipy.integrate import solve_ivp

import vectorfield as vf

STARTS, LOOPED = 1000, 20


def main() -> None:
    print(machine())
    data = vf.datasets.load("nfhn")
    model = vf.MOCK(vf.kernels.Gaussian(1.0), 1e-5, noise=vf.occupation.SnapshotNoise())
    model.fit(data.train)
    exact = model.field_
    begin = time.perf_counter()
    small = vf.compress(exact, 1e-8)
    packing = time.perf_counter() - begin
    print(
        f"{model.solution_.status.name}; {exact.expansion.nodes.shape[0]} nodes, compressed to "
        f"{small.expansion.nodes.shape[0]} in {packing:.1f} s, "
        f"error {small.info['compression_error']:.1e}"
    )
    rng = np.random.default_rng(1)
    starts = np.stack([rng.uniform(-2.5, 2.5, STARTS), rng.uniform(-1.0, 2.0, STARTS)], axis=1)
    t = np.linspace(0.0, 20.0, 201)
    reference = vf.simulate(exact, starts[:LOOPED], t, rtol=1e-11, atol=1e-11).x
    packed = vf.simulate(small, starts[:LOOPED], t, rtol=1e-11, atol=1e-11).x
    print(f"compression alone moves these trajectories by {np.abs(packed - reference).max():.1e}")
    rows, rates = [], {}
    for method in ("RK45", "DOP853"):
        for label, field in (("exact", exact), ("compressed", small)):
            for way, run, count in (("loop", _loop, LOOPED), ("batch", _batch, STARTS)):
                begin = time.perf_counter()
                states = run(field, starts[:count], t, method)
                wall = time.perf_counter() - begin
                error = np.abs(states[:LOOPED] - reference).max()
                rates[method, label, way] = count / wall
                rows.append([method, label, way, f"{count / wall:.2f}", f"{error:.1e}"])
                print(table(HEADER, rows[-1:]).splitlines()[-1], flush=True)
    print(table(HEADER, rows))
    for method in ("RK45", "DOP853"):
        batch = rates[method, "compressed", "batch"]
        for label in ("exact", "compressed"):
            gain = batch / rates[method, label, "loop"]
            print(
                f"{method}: batch (compressed) against a loop over the {label} field: {gain:.0f} "
                f"times, target 50: {verdict(gain, 50, at_most=False)}"
            )
        gain = rates[method, "exact", "batch"] / rates[method, "exact", "loop"]
        print(f"{method}: batch against loop, both over the exact field: {gain:.1f} times")


def _loop(field: vf.VectorField, starts: np.ndarray, t: np.ndarray, method: str) -> np.ndarray:
    runs = [
        solve_ivp(lambda _, x: field(x), (t[0], t[-1]), x, method, t, rtol=1e-6, atol=1e-6).y.T
        for x in starts
    ]
    return np.stack(runs)


def _batch(field: vf.VectorField, starts: np.ndarray, t: np.ndarray, method: str) -> np.ndarray:
    return vf.simulate(field, starts, t, method=method, rtol=1e-6, atol=1e-6).x


HEADER = ["method", "field", "way", "starts / s", "largest error"]

if __name__ == "__main__":
    main()
