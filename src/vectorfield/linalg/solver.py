"""What the settings of every linear solver have in common."""

from __future__ import annotations

from abc import ABC
from typing import TypeVar

from vectorfield._settings import Settings
from vectorfield.kernels.operators import OperatorKernel

__all__ = ["Solver", "chosen", "wrong_solver"]


class Solver(Settings, ABC):
    """Settings of a way to solve the linear system of a fit; each kind of kernel has its own.

    Example:
        >>> import vectorfield as vf
        >>> isinstance(vf.linalg.Dense(), vf.linalg.Solver)
        True
    """

    __slots__ = ()


S = TypeVar("S", bound=Solver)


def chosen(solver: Solver | None, default: S, kernel: OperatorKernel) -> S:
    """Return ``solver``, or ``default`` where it is None; TypeError if it is of another kind."""
    if solver is None:
        return default
    if not isinstance(solver, type(default)):
        raise wrong_solver(solver, kernel, type(default))
    return solver


def wrong_solver(solver: Solver, kernel: OperatorKernel, *kinds: type[Solver]) -> TypeError:
    """Return the error that says which kinds of solver there are for the kernel."""
    names = " or ".join(kind.__name__ for kind in kinds)
    return TypeError(
        f"a fit with the kernel {type(kernel).__name__} is solved by {names}, not by {solver!r}; "
        "leave solver out, or pass that"
    )
