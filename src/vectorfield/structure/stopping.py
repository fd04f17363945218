"""When an input is worth having: by held-out errors, and by nothing finer than the quadrature."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

__all__ = ["improvement", "improvements", "threshold"]


def improvement(old: np.ndarray, new: np.ndarray) -> float:
    """Return z, the mean paired gain in held-out error in its standard errors.

    ``old`` and ``new`` are sums of squared held-out errors of the same groups of rows, (G,). The
    gain of a group is (old - new) / (old + new), between -1 and 1, so that no group outweighs the
    others because it is harder to predict.

    >>> import numpy as np
    >>> from vectorfield.structure.stopping import improvement
    >>> round(improvement(np.array([2.0, 4.0, 3.0]), np.array([1.0, 2.0, 2.0])), 1)
    6.5
    """
    return float(improvements(old, new))


def improvements(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return `improvement` along the last axis."""
    both = old + new
    gain = (old - new) / np.where(both > 0.0, both, 1.0)
    count = gain.shape[-1]
    spread = gain.std(axis=-1, ddof=1) if count > 1 else np.zeros(gain.shape[:-1])
    mean = gain.mean(axis=-1)
    sure = np.where(np.abs(mean) > 1e-12, np.copysign(np.inf, mean), 0.0)
    flat = spread <= 1e-12
    z: np.ndarray = np.where(flat, sure, mean * math.sqrt(count) / np.where(flat, 1.0, spread))
    return z


def threshold(level: float, tried: int, groups: int) -> float:
    """Return the z above which the best of ``tried`` candidates is believed.

    Student's quantile at 1 - level / tried for the number of groups: what the best of so many
    worthless candidates reaches with a probability of at most ``level`` on fresh data. The held-out
    errors are not fresh, as candidates are ranked on all rows. That costs less than the quantile
    allows: the best of m worthless candidates with q functions each lowers the residual sum of
    squares by T sigma^2, T the chi^2_q quantile at 1 - level / m. Errors of fits that held the rows
    out fall by T - 2 q then, with a standard deviation of 2 sqrt(T) (the paired difference of
    a row is 2 e delta - delta^2, and the delta^2 add up to T sigma^2), so that z reaches
    (T - 2 q) / (2 sqrt(T)): 1.8 for q = 1 and m = 1000, where the quantile is 3.9.

    >>> from vectorfield.structure.stopping import threshold
    >>> round(threshold(0.05, 1, 60), 2), round(threshold(0.05, 1000, 60), 2)
    (1.67, 4.17)
    """
    return float(stats.t.isf(level / max(1, tried), max(1, groups - 1)))
