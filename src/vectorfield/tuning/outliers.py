"""Whether the residuals of a fit have outliers, so that a robust loss is worth a trial."""

from __future__ import annotations

import numpy as np

from vectorfield.plan import Prepared
from vectorfield.robust import Huber

__all__ = ["are_suspect", "share_of_outliers"]

FAR = 5.0  # of normal errors one in two million is as many robust standard deviations away
MATERIAL = 0.1  # of a typical target: smaller residuals are errors of the quadrature or the kernel
SHARE = 0.005
FEWEST = 3


def share_of_outliers(prepared: Prepared, ridge: float) -> float:
    """Return the share of observations whose residual in the linear fit is far out.

    Sizes are those of `Huber`, in robust standard deviations: the root mean square over the
    features, each in units of 1.4826 times its median absolute residual. Far is beyond 5, and
    beyond a tenth of the median target: on clean data the errors of a good fit have long tails
    too, where the flow is fast, and are no outliers. Of uneven steps only the shorter half is
    looked at: the quadrature errs most over the long ones. NaN where the fit fails. Cost: one fit.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 6.0, 121)
        >>> circle = np.stack([np.cos(t), np.sin(t)], axis=1)
        >>> circle += 0.01 * np.random.default_rng(0).normal(size=circle.shape)
        >>> circle[40] += 2.0  # one sample is wrong, and two increments with it
        >>> data = vf.Trajectories.from_arrays([circle], t)
        >>> prepared = vf.Plan(vf.kernels.Linear()).prepare(data)
        >>> round(120 * share_of_outliers(prepared, 1e-6))
        2
    """
    (fit,) = prepared.path([ridge])
    if fit.expansion is None:
        return float("nan")
    occupations = prepared.occupations
    weights = Huber(threshold=FAR).weights(fit.residuals, occupations, prepared.covariance)
    residual, target = (np.linalg.norm(v, axis=1) for v in (fit.residuals, occupations.targets))
    far = (weights < 1.0) & (residual > MATERIAL * np.median(target))
    lasting = np.abs(occupations.durations)
    return float(np.mean(far[lasting <= np.median(lasting) * (1.0 + 1e-9)]))


def are_suspect(share: float, count: int) -> bool:
    """Whether so many outliers of ``count`` observations ask for a robust loss to be tried.

    They are more than 0.5 %, and three at least. Whether it is taken is for held-out errors to
    say: residuals may also be large where the flow is fast.
    """
    return bool(share > SHARE and share * count >= FEWEST - 0.5)
