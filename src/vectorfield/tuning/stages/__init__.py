"""The stages of a search, in their order.

A stage is a function of the `Context` and of the best trials so far, best first; it returns the
best trials after it. The first is given none. A new stage takes its place in `STAGES`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vectorfield.tuning.context import Context
from vectorfield.tuning.stages.axes import choose_axes
from vectorfield.tuning.stages.blends import blend
from vectorfield.tuning.stages.growth import grow
from vectorfield.tuning.stages.kernels import choose_kernel
from vectorfield.tuning.stages.outliers import try_robust
from vectorfield.tuning.stages.parts import vary_parts
from vectorfield.tuning.stages.rates import choose_rate
from vectorfield.tuning.stages.reversion import return_to_data
from vectorfield.tuning.stages.rollouts import refine_rollouts
from vectorfield.tuning.stages.windows import fit_windows
from vectorfield.tuning.trials import Trial

__all__ = ["STAGES", "Stage"]

Stage = Callable[[Context, Sequence[Trial]], list[Trial]]

STAGES: tuple[Stage, ...] = (
    choose_kernel,
    return_to_data,
    choose_axes,
    try_robust,
    vary_parts,
    choose_rate,
    grow,
    fit_windows,
    refine_rollouts,
    blend,
)
