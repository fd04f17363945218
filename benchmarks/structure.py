"""Structure: which coordinate drives which, and fits on what was found; no hint is given.

Prints, for each system, precision and recall of the edges, the share of outputs with exactly the
right inputs, seconds and errors of rollouts. Lorenz96 has its coordinates shuffled.

    python benchmarks/structure.py                  # all but the largest
    python benchmarks/structure.py lorenz96-1024    # one part: a name below
"""

from __future__ import annotations

import resource
import sys
from time import perf_counter
from typing import Any

import numpy as np
import sparse_systems as systems
from measure import machine, table

import vectorfield as vf

HEAD = [
    "set",
    "precision",
    "recall",
    "exact",
    "find s",
    "fit s",
    "Err/null",
    "1-Err/null",
    "beside",
]


def with_noise(data: vf.Trajectories, share: float, seed: int) -> vf.Trajectories:
    """Return trajectories with noise of a share of each coordinate's standard deviation."""
    rng = np.random.default_rng(seed)
    noise = share * data.states.std(axis=0) * rng.normal(size=data.states.shape)
    parts = np.split(data.states + noise, data.offsets[1:-1])
    return vf.Trajectories.from_arrays(parts, [t for t, _ in data])


def judged(
    name: str,
    edges: Any,
    train: vf.Trajectories,
    held: vf.Trajectories,
    beside: dict[str, Any],
) -> list[str]:
    """Find, fit, roll out; ``beside`` are other fields whose errors are shown, too."""
    start = perf_counter()
    found = vf.discover_structure(train)
    middle = perf_counter()
    small = train.d <= 30  # where all inputs are compared, too, which a found structure leaves out
    model = vf.MOCK(structure=vf.Structure() if small else found).fit(train)
    end = perf_counter()
    own = found.matrix.toarray()
    true = int((own & edges).sum())
    scores = vf.metrics.evaluate(held, vf.rollout(model.field_, held, on_failure="ignore").x)
    others = []
    for label, field in beside.items():
        other = vf.metrics.evaluate(held, vf.rollout(field, held, on_failure="ignore").x)
        others.append(f"{label} {other.err / other.null_err:.2e}")
    row = [
        name,
        f"{true / max(1, own.sum()):.3f}",
        f"{true / max(1, edges.sum()):.3f}",
        f"{(own == edges).all(axis=1).mean():.3f}",
        f"{middle - start:.1f}",
        f"{end - middle:.1f}",
        f"{scores.err / scores.null_err:.2e}",
        f"{scores.one_err / scores.null_one_err:.2e}",
        "; ".join(others),
    ]
    print(" ".join(row), model.kernel_, file=sys.stderr, flush=True)
    return row


def lorenz96(d: int, noise: float = 0.0) -> list[str]:
    """Figures 1 and 2 of a shipped recipe, judged on its validation part."""
    data = vf.datasets.load(f"lorenz96-{d}")
    order = np.random.default_rng(5).permutation(d)
    place = np.argsort(order)
    edges = np.zeros((d, d), dtype=bool)
    for offset in (-2, -1, 0, 1):
        edges[place, place[(np.arange(d) + offset) % d]] = True

    def shuffled(part: vf.Trajectories) -> vf.Trajectories:
        return vf.Trajectories.from_arrays([x[:, order] for _, x in part], [t for t, _ in part])

    def oracle(x: Any) -> Any:
        return data.field(x[:, place])[:, order]  # type: ignore[misc]

    train, held = shuffled(data.train), shuffled(data.validation)
    if not noise:
        return judged(f"lorenz96-{d}", edges, train, held, {})
    train, held = with_noise(train, noise, 1), with_noise(held, noise, 2)
    return judged(f"lorenz96-{d}, {noise:.0%} noise", edges, train, held, {"oracle": oracle})


def unstructured(train: vf.Trajectories, held: vf.Trajectories) -> Any:
    """Return the field of the best of ten dense fits, the choice made on the held-out part."""
    best: tuple[float, Any] = (np.inf, None)
    rule = vf.occupation.Lagrange(4)
    affine = vf.kernels.Linear() + vf.kernels.Constant()
    for kernel in (affine, vf.kernels.Gaussian()):
        for ridge in (1e-10, 1e-8, 1e-6, 1e-4, 1e-2):
            try:
                field = vf.MOCK(kernel, ridge, rule=rule).fit(train).field_
            except vf.SolveError:
                continue
            run = vf.rollout(field, held, on_failure="ignore")
            error = 1.0 - vf.metrics.evaluate(held, run.x).skill
            if error < best[0]:
                best = (error, field)
    return best[1]


def network(system: systems.Sparse, noise: float = 0.0) -> list[str]:
    """Figure 3: rollouts from clean starts, beside the best dense fit of the same data."""
    train, held = system.trajectories(100, 1), system.trajectories(20, 2)
    name = system.name
    if noise:
        train, name = with_noise(train, noise, 3), f"{name}, {noise:.0%} noise"
    return judged(name, system.edges, train, held, {"dense": unstructured(train, held)})


def dense() -> list[str]:
    """Figure 4: a quadratic field of all ten coordinates."""
    rng = np.random.default_rng(0)
    linear = rng.normal(size=(10, 10)) / 3.0 - 1.5 * np.eye(10)
    square = rng.normal(size=(10, 10, 10)) / 30.0

    def rate(x: Any) -> Any:
        return x @ linear.T + np.einsum("ijk,nj,nk->ni", square, x, x)

    full = np.ones((10, 10), dtype=bool)
    system = systems.Sparse(
        "dense-10", full, lambda r, n: r.uniform(-1, 1, (n, 10)), rate, 0.05, 60
    )
    train, held = system.trajectories(60, 1), system.trajectories(20, 2)
    whole = vf.MOCK(structure=vf.Structure(known=full)).fit(train).field_
    best = {"all inputs": whole, "dense": unstructured(train, held)}
    return judged(system.name, full, train, held, best)


def growth() -> list[list[str]]:
    """Figure 5: Lorenz96 of 60 trajectories of 100 samples, d = 64 to 1024."""
    rows = []
    for d in (64, 128, 256, 512, 1024):
        system = systems.lorenz96(d)
        rows.append(
            judged(
                system.name, system.edges, system.trajectories(60, 1), system.trajectories(5, 2), {}
            )
        )
    return rows


PARTS: dict[str, Any] = {
    "lorenz96-32": lambda: [lorenz96(32)],
    "lorenz96-128": lambda: [lorenz96(128)],
    "lorenz96-128-noise": lambda: [lorenz96(128, 0.05)],
    "kuramoto": lambda: [network(systems.kuramoto(), noise) for noise in (0.0, 0.05)],
    "hill": lambda: [network(systems.hill(), noise) for noise in (0.0, 0.05)],
    "hopfield": lambda: [network(systems.hopfield(), noise) for noise in (0.0, 0.05)],
    "threshold": lambda: [network(systems.threshold_linear(), noise) for noise in (0.0, 0.05)],
    "dense": lambda: [dense()],
    "lorenz96-1024": lambda: [lorenz96(1024)],
    "growth": growth,
}
LARGE = ("lorenz96-1024", "growth")


def main() -> None:
    print(machine())
    names = sys.argv[1:] or [name for name in PARTS if name not in LARGE]
    rows = []
    for name in names:
        rows += PARTS[name]()
    print(table(HEAD, rows))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"largest memory {peak:.1f} GiB")


if __name__ == "__main__":
    main()
