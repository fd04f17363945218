"""Sparse systems without polynomial fields, and who drives whom in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import vectorfield as vf

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Sparse:
    """dx/dt = f(x) with known inputs of every output.

    Attributes:
        name: of the system.
        edges: (d, d) bool, [i, j] where x_j is an input of f_i.
        starts: draws n starts, (n, d).
        rate: f, (n, d) -> (n, d).
        step, samples, spin_up: of the trajectories.
    """

    name: str
    edges: Array
    starts: Any
    rate: Any
    step: float
    samples: int
    spin_up: float = 0.0

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return len(self.edges)

    def trajectories(self, count: int, seed: int) -> vf.Trajectories:
        """Return ``count`` trajectories without noise."""
        rng = np.random.default_rng(seed)
        x = self.starts(rng, count)
        if self.spin_up:
            x = vf.simulate(self.rate, x, [0.0, self.spin_up], rtol=1e-9).x[:, -1]
        t = self.step * np.arange(self.samples)
        return vf.Trajectories.from_arrays(list(vf.simulate(self.rate, x, t, rtol=1e-9).x), t)


def kuramoto(d: int = 50, degree: int = 4, seed: int = 0) -> Sparse:
    """Phases: x_i' = w_i + K sum_j A_ij sin(x_j - x_i), A a random undirected graph."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((d, d)) < degree / (d - 1), k=1)
    graph = (upper | upper.T).astype(float)
    speed, coupling = rng.normal(0.0, 0.5, d), 1.0

    def rate(x: Array) -> Array:
        sine, cosine = np.sin(x), np.cos(x)
        return speed + coupling * (cosine * (sine @ graph) - sine * (cosine @ graph))

    own = np.eye(d, dtype=bool) & (graph.sum(axis=1) > 0)
    return Sparse(
        f"kuramoto-{d}",
        (graph > 0) | own,
        lambda r, n: r.uniform(-1.5, 1.5, (n, d)),
        rate,
        0.05,
        60,
    )


def hill(d: int = 60, inputs: int = 2, seed: int = 0) -> Sparse:
    """Genes: x_i' = b_i - x_i + a_i prod over regulators of an activating or repressing Hill term.

    Terms are x^3 / (k^3 + x^3) and k^3 / (k^3 + x^3) of one to ``inputs`` other genes.
    """
    rng = np.random.default_rng(seed)
    edges = np.eye(d, dtype=bool)
    terms = []
    for i in range(d):
        others = rng.choice(np.delete(np.arange(d), i), rng.integers(1, inputs + 1), replace=False)
        edges[i, others] = True
        terms.append((others, rng.random(len(others)) < 0.5, rng.uniform(0.5, 1.0, len(others))))
    strength, basal = rng.uniform(2.0, 3.0, d), rng.uniform(0.05, 0.2, d)

    def rate(x: Array) -> Array:
        value = basal - x
        for i, (others, activates, half) in enumerate(terms):
            power = np.maximum(x[:, others], 0.0) ** 3
            share = power / (half**3 + power)
            value[:, i] += strength[i] * np.prod(np.where(activates, share, 1.0 - share), axis=1)
        return value

    return Sparse(f"hill-{d}", edges, lambda r, n: r.uniform(0.0, 2.0, (n, d)), rate, 0.05, 60)


def threshold_linear(d: int = 100, inputs: int = 3, seed: int = 0) -> Sparse:
    """Neurons: x_i' = -x_i + [sum_j W_ij x_j + b_i]_+ with ``inputs`` others each."""
    rng = np.random.default_rng(seed)
    weights = np.zeros((d, d))
    for i in range(d):
        others = rng.choice(np.delete(np.arange(d), i), inputs, replace=False)
        weights[i, others] = rng.choice([-1.0, 1.0], inputs) * rng.uniform(0.4, 1.0, inputs)
    drive = rng.uniform(0.4, 1.2, d)

    def rate(x: Array) -> Array:
        return np.asarray(-x + np.maximum(x @ weights.T + drive, 0.0))

    return Sparse(
        f"threshold-{d}",
        (weights != 0) | np.eye(d, dtype=bool),
        lambda r, n: r.uniform(0.0, 2.0, (n, d)),
        rate,
        0.05,
        60,
    )


def hopfield(d: int = 100, inputs: int = 4, seed: int = 0) -> Sparse:
    """Neurons: x_i' = -x_i + sum_j W_ij tanh(2 x_j) with ``inputs`` others each."""
    rng = np.random.default_rng(seed)
    weights = np.zeros((d, d))
    for i in range(d):
        others = rng.choice(np.delete(np.arange(d), i), inputs, replace=False)
        weights[i, others] = rng.choice([-1.0, 1.0], inputs) * rng.uniform(0.5, 1.5, inputs)

    def rate(x: Array) -> Array:
        return np.asarray(-x + np.tanh(2.0 * x) @ weights.T)

    return Sparse(
        f"hopfield-{d}",
        (weights != 0) | np.eye(d, dtype=bool),
        lambda r, n: r.uniform(-2.0, 2.0, (n, d)),
        rate,
        0.05,
        60,
    )


def lorenz96(d: int, seed: int = 0) -> Sparse:
    """Lorenz96 with shuffled coordinates, on its attractor."""
    order = np.random.default_rng(seed).permutation(d)
    place = np.argsort(order)
    system = vf.systems.Lorenz96(d=d)
    edges = np.zeros((d, d), dtype=bool)
    for offset in (-2, -1, 0, 1):
        edges[place, place[(np.arange(d) + offset) % d]] = True

    def rate(x: Array) -> Array:
        return system(x[:, place])[:, order]

    return Sparse(
        f"lorenz96-{d}", edges, lambda r, n: r.uniform(-5, 10, (n, d)), rate, 0.0244, 100, 10.0
    )
