"""Clean data reward a better rule: the same pendulum, observed by rules of growing order.

The trapezoid takes the field to be straight between two samples. For coarse but clean samples
that error is all there is, and a rule of higher order takes it away.

    python examples/pendulum.py
"""

from __future__ import annotations

import numpy as np

import vectorfield as vf
from vectorfield.occupation import Lagrange, Rule, Spline, Trapezoid

RULES: list[Rule] = [Trapezoid(), Spline(), Lagrange(4), Lagrange(6), Lagrange(8)]


def main() -> None:
    data = vf.datasets.load("pendulum")
    print(f"{data.field}: {len(data.train)} swings, samples 0.02 apart, no noise")
    print("\nrule                     test Err      1-Err   energy drift")
    swings = data.test.states[data.test.offsets[:-1]]
    t = np.linspace(0.0, 10.0, 201)
    for rule in RULES:
        model = vf.MOCK(vf.kernels.Gaussian(3.0), ridge=1e-16, rule=rule).fit(data.train)
        run = vf.rollout(model.field_, data.test)
        scores = vf.metrics.evaluate(data.test, run.x)
        # Nobody told the model that energy is conserved; ten times as long as any swing seen.
        states = model.simulate(swings, t)
        energy = data.field.energy(states.reshape(-1, 2)).reshape(states.shape[:2])
        drift = np.abs(energy - energy[:, :1]).max()
        print(f"{rule!r:20}{scores.err:13.1e}{scores.one_err:11.1e}{drift:15.1e}")
    print(f"null model          {scores.null_err:13.1e}{scores.null_one_err:11.1e}")


if __name__ == "__main__":
    main()
