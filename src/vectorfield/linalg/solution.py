"""What a solver returns: a value, a status that says what to do, and figures."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

__all__ = ["Solution", "Status"]


class Status(Enum):
    """Outcome of a linear solve, and what it means for the user."""

    SOLVED = "solved in float64"
    REFINED = "solved with a float32 factor, refined to float64 accuracy"
    FELL_BACK = "the float32 factor did not converge; solved with a float64 factor instead"
    ILL_CONDITIONED = (
        "solved as well as float64 can, but the system is close to singular and the residual shows "
        "it; raise ridge, or use a less smooth kernel or a shorter length_scale"
    )
    CONVERGED = "solved by conjugate gradients to the tolerance asked for"
    NOT_CONVERGED = (
        "conjugate gradients stopped above the tolerance: allow more max_iterations, raise ridge "
        "or the rank of the preconditioner, or solve by Dense() where memory allows"
    )
    INACCURATE = (
        "the residual is large: the system is singular to working precision; raise ridge, or use "
        "a less smooth kernel or a shorter length_scale"
    )
    NOT_POSITIVE_DEFINITE = (
        "not positive definite to working precision: raise ridge, or use a less smooth kernel or a "
        "shorter length_scale"
    )

    @property
    def ok(self) -> bool:
        """Whether the solution can be used as it is."""
        return self not in (
            Status.INACCURATE,
            Status.NOT_POSITIVE_DEFINITE,
            Status.NOT_CONVERGED,
        )


@dataclass(frozen=True, eq=False)
class Solution:
    """Value and story of one solve of (M + shift Sigma) a = y.

    Attributes:
        value: a, (S, d); None when nothing was solved.
        status: what happened.
        residual: largest over the columns of |y - (M + shift Sigma) a| / |y|; where there are
            many columns and a float64 factor, over 16 random combinations of them.
        iterations: refinement steps (0: none were needed), or those of conjugate gradients.
        condition: estimate of the condition number; None where it was not needed.
        detail: a sentence with the figures and the remedy where something went wrong.
        seconds: time of each stage.
        history: the relative residual after each iteration of an iterative solver.
    """

    value: Any
    status: Status
    residual: float
    iterations: int = 0
    condition: float | None = None
    detail: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    history: tuple[float, ...] = ()
