"""Immutable settings objects (kernels, rules, solvers) in scikit-learn's manners.

A settings object is a frozen dataclass: its fields are its parameters, nothing else.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from typing import Any, Self

__all__ = ["Settings", "check_choice", "check_integer", "check_real"]


class Settings:
    """Mix-in for frozen dataclasses: parameters can be read and replaced, never changed.

    `replace` returns a new object; nested names go through ``__`` as in scikit-learn
    (``kernel.replace(left__length_scale=2.0)``). `sklearn.base.clone` returns the object
    itself, since it cannot change.
    """

    __slots__ = ()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; with ``deep`` those of nested settings as well."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        params = {f.name: getattr(self, f.name) for f in fields if f.init}
        if deep:
            nested = [(name, v) for name, v in params.items() if isinstance(v, Settings)]
            for name, value in nested:
                params.update({f"{name}__{k}": v for k, v in value.get_params().items()})
        return params

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some parameters changed; unknown names are refused."""
        own = self.get_params(deep=False)
        direct: dict[str, Any] = {}
        nested: dict[str, dict[str, Any]] = {}
        for key, value in changes.items():
            name, _, rest = key.partition("__")
            if name not in own:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {sorted(own)}"
                )
            if rest:
                nested.setdefault(name, {})[rest] = value
            else:
                direct[name] = value
        for name, rest_changes in nested.items():
            inner = direct.get(name, own[name])
            if not isinstance(inner, Settings):
                raise ValueError(f"{name}={inner!r} has no parameters of its own to set")
            direct[name] = inner.replace(**rest_changes)
        return dataclasses.replace(self, **direct)  # type: ignore[type-var]

    def __sklearn_clone__(self) -> Self:
        return self


def check_real(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
) -> float:
    """Return ``value`` as a float, or say what was wrong with the setting ``name``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:  # a Python integer may have any number of digits
        number = math.inf
    bound = (
        f"> {above:g}" if above is not None else f">= {at_least:g}" if at_least is not None else ""
    )
    low = (above is not None and not number > above) or (
        at_least is not None and not number >= at_least
    )
    if not math.isfinite(number) or low:
        raise ValueError(f"{name} must be a finite number {bound}".rstrip() + f", got {value!r}")
    return number


def check_integer(name: str, value: Any, *, at_least: int) -> int:
    """Return ``value`` as an int, or say what was wrong with the setting ``name``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if value < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {value!r}")
    return int(value)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of ``choices``, or list them."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return str(value)
