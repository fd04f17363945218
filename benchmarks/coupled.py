"""Kernels that couple the outputs: conjugate gradients against the dense factor.

A divergence-free field (the ABC flow) from 50 trajectories in three dimensions, 5,000 observations
and 15,000 unknowns. Targets, at a relative residual of 1e-8: less time than the dense solve and at
most a tenth of its memory.   python benchmarks/coupled.py
"""

from __future__ import annotations

import argparse

import numpy as np
from measure import PeakMemory, machine, seconds, table, verdict

import vectorfield as vf
from vectorfield.linalg import BlockJacobi, ConjugateGradient, Dense, NystromPreconditioner


def abc_flow(x: np.ndarray) -> np.ndarray:
    """The Arnold-Beltrami-Childress flow with A = sqrt(3), B = sqrt(2), C = 1."""
    a, b, c = np.sqrt(3.0), np.sqrt(2.0), 1.0
    u, v, w = x.T
    return np.stack(
        [
            a * np.sin(w) + c * np.cos(v),
            b * np.sin(u) + a * np.cos(w),
            c * np.sin(v) + b * np.cos(u),
        ],
        axis=1,
    )


def trajectories(count: int, seed: int, noise: float) -> vf.Trajectories:
    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, 2.0, 101)
    starts = rng.uniform(0.0, 2 * np.pi, size=(count, 3))
    x = vf.simulate(abc_flow, starts, t, rtol=1e-9, atol=1e-9).x
    return vf.Trajectories.from_arrays(list(x + noise * rng.normal(size=x.shape)), t)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--noise", type=float, default=0.02)
    arguments = parser.parse_args()
    train = trajectories(50, 0, arguments.noise)
    rule, noise = vf.occupation.Lagrange(4), vf.occupation.White()
    occupations = rule(train)
    covariance = noise.covariance(occupations)
    x = np.random.default_rng(2).uniform(0.0, 2 * np.pi, size=(500, 3))
    truth = abc_flow(x)
    print(machine())
    rows = []
    solvers = {
        "dense": Dense(),
        "CG, Nystrom": ConjugateGradient(1e-8),
        "CG, Nystrom 300": ConjugateGradient(1e-8, preconditioner=NystromPreconditioner(300)),
        "CG, block Jacobi": ConjugateGradient(1e-8, preconditioner=BlockJacobi(100)),
    }
    for kernel, ridge in (
        (vf.kernels.Gaussian(1.5), 1e-6),
        (vf.kernels.Gaussian(1.5), 1e-8),
        (vf.kernels.Matern(5.5, 0.7), 1e-8),
    ):
        dense_wall = dense_memory = float("nan")
        for name, solver in solvers.items():
            if name == "CG, block Jacobi" and ridge < 1e-6:
                continue  # minutes, and for the comparison of preconditioners one is enough
            fits = []

            def fit(kernel=kernel, ridge=ridge, solver=solver, fits=fits) -> None:
                fits.append(
                    vf.linalg.regress(
                        vf.kernels.DivergenceFree(kernel),
                        occupations,
                        ridge=ridge,
                        covariance=covariance,
                        solver=solver,
                    )
                )

            with PeakMemory() as memory:
                wall = seconds(fit)
            solution = fits[0].solution
            error = np.linalg.norm(fits[0].expansion(x) - truth) / np.linalg.norm(truth)
            if name == "dense":
                dense_wall, dense_memory = wall, memory.growth
            rows.append(
                [
                    repr(kernel),
                    f"{ridge:g}",
                    name,
                    solution.status.name,
                    f"{solution.residual:.1e}",
                    solution.iterations,
                    f"{wall:.1f}",
                    _against(name, wall / dense_wall, 1.0),
                    f"{memory.growth / 2**20:.0f}",
                    _against(name, memory.growth / dense_memory, 0.1),
                    f"{error:.2e}",
                ]
            )
            print(table(HEADER, rows[-1:]), flush=True)
    print(f"\n{len(occupations)} observations, {3 * len(occupations)} unknowns")
    print(table(HEADER, rows))


def _against(name: str, ratio: float, limit: float) -> str:
    return "1" if name == "dense" else f"{ratio:.3f} ({verdict(ratio, limit)})"


HEADER = [
    "kernel", "ridge", "solver", "status", "residual", "iterations", "seconds", "against dense",
    "MiB", "against dense", "error of the field",
]  # fmt: skip

if __name__ == "__main__":
    main()
