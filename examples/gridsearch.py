"""scikit-learn's searches work on whole trajectories: folds never cut one in two.

A list of arrays, with the times in the second place, is what GridSearchCV divides. Settings of
kernels and rules are reached through double underscores.

    python examples/gridsearch.py
"""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import GridSearchCV, KFold

import vectorfield as vf


def main() -> None:
    data = vf.datasets.load("nfhn")
    xs, ts = data.train[:9].to_arrays()
    search = GridSearchCV(
        vf.MOCK(vf.kernels.Gaussian(), rule=vf.occupation.Trapezoid()),
        {
            "kernel__length_scale": [2.0, 4.0],
            "ridge": [1e-7, 1e-6, 1e-5],
            "noise": [vf.occupation.White(), vf.occupation.SnapshotNoise()],
        },
        cv=KFold(3, shuffle=True, random_state=0),  # folds of trajectories
    )
    search.fit(xs, ts)

    results = search.cv_results_
    print("rank  skill  settings")
    for k in np.argsort(results["rank_test_score"])[:5]:
        rank, skill = results["rank_test_score"][k], results["mean_test_score"][k]
        print(f"{rank:4d}  {skill:5.3f}  {results['params'][k]}")

    model = search.best_estimator_
    print(f"\nTest skill of the best, read once: {model.score(data.test):.3f}")
    oracle = vf.metrics.evaluate(data.test, vf.rollout(data.field, data.test).x)
    print(f"The true field from the same noisy starts: {oracle.skill:.3f}")


if __name__ == "__main__":
    main()
