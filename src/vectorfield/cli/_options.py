"""From the strings of a command line to kernels, rules, noise models and times."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, TypeVar

import numpy as np
import typer

from vectorfield import kernels, occupation
from vectorfield._settings import Settings
from vectorfield.cli._shell import usage

__all__ = [
    "FORCE",
    "TIME",
    "TRAJECTORY",
    "KernelName",
    "MissingName",
    "NoiseName",
    "RuleName",
    "kernel_of",
    "names_of",
    "noise_of",
    "numbers_of",
    "rule_of",
    "times_of",
]

MOST_TIMES = 10**8

Made = TypeVar("Made", bound=Settings)

TRAJECTORY = Annotated[
    str, typer.Option("--trajectory", metavar="COLUMN", help="Column with the trajectory's id.")
]
TIME = Annotated[str, typer.Option("--time", metavar="COLUMN", help="Column with the time.")]
FORCE = Annotated[bool, typer.Option("--force", help="Overwrite an existing output file.")]


class KernelName(StrEnum):
    """Scalar kernels; the operator-valued one is I-separable."""

    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"
    MATERN = "matern"
    RATIONAL_QUADRATIC = "rational-quadratic"
    POLYNOMIAL = "polynomial"
    LINEAR = "linear"


class RuleName(StrEnum):
    """How trajectories are observed."""

    TRAPEZOID = "trapezoid"
    LAGRANGE = "lagrange"
    SPLINE = "spline"
    WINDOWS = "windows"
    WEAK_FORM = "weak-form"
    FORWARD_DIFFERENCE = "forward-difference"
    CENTRAL_DIFFERENCE = "central-difference"


class NoiseName(StrEnum):
    """The metric of the loss."""

    WHITE = "white"
    SNAPSHOT = "snapshot"


class MissingName(StrEnum):
    """What becomes of trajectories with missing values."""

    RAISE = "raise"
    SPLIT = "split"


_KERNELS: dict[KernelName, type[kernels.ScalarKernel]] = {
    KernelName.GAUSSIAN: kernels.Gaussian,
    KernelName.LAPLACE: kernels.Laplace,
    KernelName.MATERN: kernels.Matern,
    KernelName.RATIONAL_QUADRATIC: kernels.RationalQuadratic,
    KernelName.POLYNOMIAL: kernels.Polynomial,
    KernelName.LINEAR: kernels.Linear,
}
_RULES: dict[RuleName, type[occupation.Rule]] = {
    RuleName.TRAPEZOID: occupation.Trapezoid,
    RuleName.LAGRANGE: occupation.Lagrange,
    RuleName.SPLINE: occupation.Spline,
    RuleName.WINDOWS: occupation.Windows,
    RuleName.WEAK_FORM: occupation.WeakForm,
    RuleName.FORWARD_DIFFERENCE: occupation.ForwardDifference,
    RuleName.CENTRAL_DIFFERENCE: occupation.CentralDifference,
}
_NOISES: dict[NoiseName, type[occupation.Noise]] = {
    NoiseName.WHITE: occupation.White,
    NoiseName.SNAPSHOT: occupation.SnapshotNoise,
}


def kernel_of(name: KernelName, **settings: Any) -> kernels.ScalarKernel:
    """Return the kernel; settings that are None are left at their defaults.

    >>> kernel_of(KernelName.MATERN, nu=1.5, alpha=None)
    Matern(nu=1.5, length_scale=None)
    """
    return _made(_KERNELS[name], f"--kernel {name.value}", settings)


def rule_of(name: RuleName, *, samples: int | None = None) -> occupation.Rule:
    """Return the rule.

    >>> rule_of(RuleName.LAGRANGE, samples=6)
    Lagrange(samples=6)
    """
    return _made(_RULES[name], f"--rule {name.value}", {"samples": samples})


def noise_of(name: NoiseName) -> occupation.Noise:
    """Return the noise model."""
    return _NOISES[name]()


def numbers_of(text: str, option: str) -> float | tuple[float, ...]:
    """Return one number, or a tuple where commas separate several.

    >>> numbers_of("0.5", "--length-scale"), numbers_of("1,2.5", "--length-scale")
    (0.5, (1.0, 2.5))
    """
    with usage(option):
        numbers = _floats(text.split(","))
    return numbers[0] if len(numbers) == 1 else numbers


def names_of(text: str | None, option: str) -> list[str] | None:
    """Return names between commas; a name with a comma in it stands in quotation marks.

    >>> names_of('a,"b,c"', "--features")
    ['a', 'b,c']
    """
    if text is None:
        return None
    rows = list(csv.reader([text], skipinitialspace=True))
    if not rows or not rows[0] or "" in rows[0]:
        raise typer.BadParameter(f"expected names between commas, got {text!r}", param_hint=option)
    return rows[0]


def times_of(text: str, option: str) -> np.ndarray:
    """Return the times of ``START:STOP:STEP`` (STOP included where a step ends there) or a list.

    >>> times_of("0:0.3:0.1", "--times").tolist(), times_of("0,0.5,2", "--times").tolist()
    ([0.0, 0.1, 0.2, 0.3], [0.0, 0.5, 2.0])
    """
    separator = ":" if ":" in text else ","
    parts = text.split(separator)
    with usage(option):
        times = np.array(_floats(parts))
        if not np.isfinite(times).all():
            raise ValueError(f"times must be finite, got {text!r}")
        if separator == ":":
            if len(times) != 3 or not times[2] > 0:
                raise ValueError(f"expected START:STOP:STEP with STEP > 0, got {text!r}")
            times = _grid(*parts)
        if len(times) < 2 or not (np.diff(times) > 0).all():
            raise ValueError(f"at least two increasing times are needed, got {text!r}")
    return times


def _floats(parts: Sequence[str]) -> tuple[float, ...]:
    try:
        return tuple(map(float, parts))
    except ValueError as error:
        raise ValueError(f"expected numbers, got {', '.join(parts)!r}") from error


def _grid(*parts: str) -> np.ndarray:
    # In decimals the third step of 0.1 ends at 0.3, and a STOP that is on the grid is met.
    start, stop, step = map(Decimal, parts)
    if stop - start > MOST_TIMES * step:
        raise ValueError(f"these are more than {MOST_TIMES:,} times; take larger steps")
    count = int((stop - start) // step) + 1
    return np.array([float(start + k * step) for k in range(count)])


def _made(cls: type[Made], choice: str, settings: dict[str, Any]) -> Made:
    given = {key: value for key, value in settings.items() if value is not None}
    known = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for key in given.keys() - known:
        option = f"--{key.replace('_', '-')}"
        raise typer.BadParameter(f"{choice} takes no {option}; leave it out", param_hint=option)
    with usage(choice):
        return cls(**given)
