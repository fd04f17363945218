"""When an input is worth having: by held-out error, and by nothing finer than the quadrature."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

__all__ = ["improvement", "threshold"]


def improvement(old: np.ndarray, new: np.ndarray) -> float:
    """Return z, the mean paired difference of held-out errors in its standard errors.

    ``old`` and ``new`` are sums of squared held-out errors of the same groups of rows, (G,).
    """
    gain = old - new
    spread = float(gain.std(ddof=1)) * math.sqrt(len(gain))
    total = float(gain.sum())
    if spread == 0.0:
        return math.inf if total > 0.0 else 0.0
    return total / spread


def threshold(level: float, tried: int, added: int, groups: int) -> float:
    """Return the z above which the best of ``tried`` candidates is believed.

    A candidate of no worth that brings q functions lowers the residual sum of squares by sigma^2
    chi^2_q; the best of m candidates by T = chi^2_q quantile at 1 - level / m. The candidate was
    chosen on all the rows, and its held-out errors know that: they fall by about T - 2 q, with a
    standard deviation of 2 sqrt(T) (both in sigma^2: the paired difference of a row is
    2 e delta - delta^2 where the sum of delta^2 is T). So z = (T - 2 q) / (2 sqrt(T)) is what the
    best of m reaches by luck alone; no less is asked for than from a single candidate. The
    quantile is Student's for the number of groups.

    >>> from vectorfield.structure.stopping import threshold
    >>> round(threshold(0.05, 128, 3, 60), 2), round(threshold(0.05, 128, 30, 60), 2)
    (1.98, 1.02)
    """
    worst = float(stats.chi2.isf(level / max(1, tried), added))
    lucky = (worst - 2.0 * added) / (2.0 * math.sqrt(worst))
    normal = max(float(stats.norm.isf(level)), lucky)
    return float(stats.t.isf(stats.norm.sf(normal), max(1, groups - 1)))
