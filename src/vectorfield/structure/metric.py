"""The metric of errors: how what a model leaves out goes together in time, from the data."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.linalg import toeplitz

__all__ = ["Metric"]

LEAST = 1e-7  # of the variance: directions in time that vary less count no more than that


@dataclass(frozen=True, eq=False)
class Metric:
    """Sigma_kl = h_k h_l c(k - l), with c the autocovariance of the rates that are left over.

    What an incomplete model leaves is as smooth in time as the dynamics; neighbouring increments
    then say nearly the same; a metric that counts them as independent sees in one trajectory
    one error and not n. The covariance is that of the errors at hand, pooled over outputs: of the
    increments themselves at first, of what a selection left afterwards. Noise of snapshots, by
    which successive increments have opposite errors, is a part of it as of them.

    Attributes:
        autocovariance: (m,) of a stationary process, by lag in samples.
    """

    autocovariance: np.ndarray

    @classmethod
    def of(cls, errors: np.ndarray, durations: np.ndarray, ends: np.ndarray) -> Metric:
        """Estimate from errors (d, S) of pieces that end at ``ends`` (first entry 0)."""
        rates = errors / durations
        scale = np.sqrt(np.mean(rates * rates, axis=1))
        moving = scale > 1e-12 * scale.max(initial=0.0)
        if not moving.any():
            return cls(np.eye(1, int(np.diff(ends).max()))[0])
        rates = rates[moving] / scale[moving, None]
        lengths = np.diff(ends)
        longest = int(lengths.max())
        size = 1 << int(2 * longest - 1).bit_length()
        power = np.zeros(size // 2 + 1)
        for a, b in pairwise(ends):
            # the biased estimate: its Toeplitz matrices are positive semi-definite, and their least
            # eigenvalues are far above the quadrature's errors, which a sharper metric would weigh
            power += np.sum(np.abs(np.fft.rfft(rates[:, a:b], size, axis=1)) ** 2, axis=0)
        covariance = np.fft.irfft(power, size)[:longest]
        return cls(covariance / covariance[0])

    def covariance(self, durations: np.ndarray) -> np.ndarray:
        """Return Sigma for one piece, (rows, rows), scaled to a mean diagonal of about 1."""
        count = len(durations)
        sigma = toeplitz(self.autocovariance[:count])
        sigma[np.diag_indices(count)] += LEAST
        relative = durations / durations.mean()
        value: np.ndarray = sigma * np.outer(relative, relative)
        return value
