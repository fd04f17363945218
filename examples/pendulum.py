"""Clean data reward a better rule: the same pendulum, observed by rules of growing order.

The trapezoid takes f to be straight between two samples. Where samples carry no noise that
error is all there is, and a rule of higher order takes it away. The ridge is so small because
nothing has to be smoothed.

    python examples/pendulum.py
"""

from __future__ import annotations

import numpy as np

import vectorfield as vf
from vectorfield.occupation import Lagrange, Rule, Spline, Trapezoid

RULES: list[Rule] = [Trapezoid(), Spline(), Lagrange(4), Lagrange(8)]


def main() -> None:
    data = vf.datasets.load("pendulum")
    print(f"{data.field}: {len(data.train)} training swings, samples 0.02 apart, no noise")
    # Nobody tells the model that energy is conserved. It is followed for ten times as long as
    # any training swing, from starts that do not go over the top and out of the data.
    starts = data.test.states[data.test.offsets[:-1]]
    starts = starts[data.field.energy(starts) < 0.9 * data.field.gravity]
    t = np.linspace(0.0, 10.0, 201)
    print("\nrule                  test Err     1-Err   energy drift")
    for rule in RULES:
        model = vf.MOCK(vf.kernels.Gaussian(2.0), ridge=1e-18, rule=rule).fit(data.train)
        run = vf.rollout(model.field_, data.test)
        scores = vf.metrics.evaluate(data.test, run.x)
        states = model.simulate(starts, t)
        energy = data.field.energy(states.reshape(-1, 2)).reshape(states.shape[:2])
        drift = np.abs(energy - energy[:, :1]).max()
        print(f"{rule!r:20}{scores.err:10.1e}{scores.one_err:10.1e}{drift:15.1e}")
    print(f"null model          {scores.null_err:10.1e}{scores.null_one_err:10.1e}")


if __name__ == "__main__":
    main()
