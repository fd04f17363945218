"""Not-a-knot cubic splines through many trajectories at once, in one tridiagonal solve."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_banded

from vectorfield.occupation._layout import segments

__all__ = ["spline_slopes", "spline_states"]


def spline_states(
    times: np.ndarray, states: np.ndarray, offsets: np.ndarray, at: np.ndarray
) -> np.ndarray:
    """Evaluate the splines inside every segment.

    Args:
        times: (P,) times.
        states: (P, d) states.
        offsets: (n + 1,) where the trajectories begin.
        at: (G,) places in a segment, from 0 to 1.

    Returns:
        (M G, d) states, G for each of the M segments in turn.
    """
    left, _ = segments(offsets)
    slopes = spline_slopes(times, states, offsets)
    step = (times[left + 1] - times[left])[:, None]
    begin, rise = states[left], states[left + 1] - states[left]
    nodes = np.empty((len(left), len(at), states.shape[1]))
    for g, u in enumerate(at):  # the cubic Hermite form
        bend = (1.0 - u) * slopes[left] - u * slopes[left + 1]
        nodes[:, g] = begin + u**2 * (3.0 - 2.0 * u) * rise + u * (1.0 - u) * step * bend
    return nodes.reshape(-1, states.shape[1])


def spline_slopes(times: np.ndarray, states: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the derivatives (P, d) at the samples of each trajectory's not-a-knot spline.

    Two samples give the line, three the parabola (as `scipy.interpolate.CubicSpline` has it).
    Cost: O(P d); the block-diagonal system of all trajectories is still tridiagonal.
    """
    left, owner = segments(offsets)
    step = times[left + 1] - times[left]
    slope = (states[left + 1] - states[left]) / step[:, None]
    bands = np.zeros((3, len(times)))  # above, on and below the diagonal, by row
    right_side = np.empty(states.shape)
    inner = np.flatnonzero(owner[1:] == owner[:-1])  # segment before each interior sample
    before, after = step[inner], step[inner + 1]
    rows = left[inner] + 1
    bands[:, rows] = before, 2.0 * (before + after), after
    right_side[rows] = 3.0 * (after[:, None] * slope[inner] + before[:, None] * slope[inner + 1])
    lengths = np.diff(offsets)
    rank = np.arange(len(lengths))
    for ends, outer, inwards, band in (
        (offsets[:-1], offsets[:-1] - rank, 1, 0),
        (offsets[1:] - 1, offsets[1:] - rank - 2, -1, 2),
    ):
        next_to = outer + np.where(lengths > 2, inwards, 0)
        bands[band, ends], bands[1, ends], here, there = _end(lengths, step[outer], step[next_to])
        right_side[ends] = here[:, None] * slope[outer] + there[:, None] * slope[next_to]
    # LAPACK stores the bands by column.
    bands[0], bands[2] = np.roll(bands[0], 1), np.roll(bands[2], -1)
    return np.asarray(
        solve_banded(
            (1, 1), bands, right_side, overwrite_ab=True, overwrite_b=True, check_finite=False
        )
    )


def _end(
    lengths: np.ndarray, h: np.ndarray, g: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the equation of the derivative s' at the end of each trajectory.

    ``h`` are the steps at the end and ``g`` those next to them. The coefficients: of s' at the
    neighbour and at the end, and on the right-hand side of the slopes over h and g.
    """
    short = [lengths == 2, lengths == 3]
    zero, one, two = np.zeros_like(h), np.ones_like(h), np.full_like(h, 2.0)
    # Two samples: s' is the slope. Three, one parabola: the two s' average to the slope.
    # More: the third derivative is continuous at the sample next to the end.
    neighbour = np.select(short, [zero, one], h + g)
    own = np.select(short, [one, one], g)
    here = np.select(short, [one, two], (3.0 * h + 2.0 * g) * g / (h + g))
    there = np.select(short, [zero, zero], h**2 / (h + g))
    return neighbour, own, here, there
