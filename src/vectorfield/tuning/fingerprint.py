"""Fingerprints: what tells settings and data apart from one run of a program to the next."""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["fingerprint", "library"]

STABLE = ("numpy", "scipy", "vectorfield")  # what their functions refer to is not read
SIMPLE = (type(None), bool, int, float, complex, str, bytes, range, slice, type(Ellipsis))


def fingerprint(*values: Any) -> str:
    """Return a digest of values: the same in every process, another for other values.

    Numbers count to the last bit, arrays with type and shape, settings with all their fields,
    functions with their code, defaults and what they refer to. A value of which none of this is
    known is refused with TypeError, since guessing would let one trial stand for another.

    >>> fingerprint(1.0, "a") == fingerprint(1.0, "a")
    True
    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 2)
    False
    """
    digest = hashlib.sha256()
    _Reader(digest.update)(values)
    return digest.hexdigest()


@functools.cache
def library() -> str:
    """Return a digest of the library's own code: what an older one found may not hold any more."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")) or sorted(root.rglob("*.pyc")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


class _Reader:
    """Feeds values to a digest, each with its type, so that no two kinds read the same."""

    def __init__(self, update: Callable[[bytes], None]) -> None:
        self._update = update
        self._open: list[Any] = []  # what is being read: functions may refer to themselves

    def __call__(self, value: Any) -> None:
        if any(value is other for other in self._open):
            self._say("again", str([value is other for other in self._open].index(True)))
            return
        self._open.append(value)
        try:
            self._read(value)
        finally:
            self._open.pop()

    def _say(self, *words: str) -> None:
        for word in words:
            data = word.encode()
            self._update(len(data).to_bytes(8, "little") + data)

    def _read(self, value: Any) -> None:
        for kinds, read in KINDS:
            if isinstance(value, kinds):
                read(self, value)
                return
        self._object(value)

    def _enum(self, value: Any) -> None:
        self._say("enum", _name(type(value)), value.name)

    def _scalar(self, value: Any) -> None:
        self._read(value.item())  # a stored number comes back as Python's own

    def _simple(self, value: Any) -> None:
        self._say(type(value).__name__, repr(value))

    def _array(self, value: Any) -> None:
        self._say("array", str(value.dtype), str(value.shape))
        if value.dtype.hasobject:
            self(value.tolist())
        else:
            self._update(np.ascontiguousarray(value).tobytes())

    def _sequence(self, value: Any) -> None:
        self._say(type(value).__name__, str(len(value)))
        for item in value:
            self(item)

    def _set(self, value: Any) -> None:
        self._say("set", *sorted(fingerprint(item) for item in value))

    def _mapping(self, value: Any) -> None:
        self._say("mapping", str(len(value)))
        for key in sorted(value, key=repr):
            self((key, value[key]))

    def _method(self, value: Any) -> None:
        self._say("method", value.__func__.__qualname__)
        self((value.__self__, value.__func__))

    def _partial(self, value: Any) -> None:
        self._say("partial")
        self((value.func, value.args, value.keywords))

    def _module(self, value: Any) -> None:
        self._say("module", value.__name__)

    def _class(self, value: Any) -> None:
        self._say("class", _name(value))
        self._methods(value)

    def _builtin(self, value: Any) -> None:
        self._say("builtin", str(getattr(value, "__module__", "")), value.__name__)

    def _object(self, value: Any) -> None:
        kind = type(value)
        if dataclasses.is_dataclass(value):
            state = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        elif "__reduce__" not in _defined(kind) and hasattr(value, "__dict__"):
            state = vars(value)
        else:
            raise TypeError(
                f"{value!r} cannot be told from others of its kind in another run; use settings, "
                "numbers, arrays and functions, or search without a study"
            )
        self._say("object", _name(kind))
        self._methods(kind)
        self(state)

    def _methods(self, kind: type) -> None:
        """Read the code of a class of somebody else's; the library's own has a digest."""
        for base in kind.__mro__[:-1]:
            if base.__module__.split(".")[0] in ("vectorfield", "abc", "builtins", "typing"):
                continue
            for name in sorted(vars(base)):
                member = vars(base)[name]
                member = getattr(member, "__func__", getattr(member, "fget", member))
                if isinstance(member, types.FunctionType):
                    self._say("member", name)
                    self(member)

    def _function(self, value: types.FunctionType) -> None:
        self._say("function", value.__module__, value.__qualname__)
        self((value.__defaults__, value.__kwdefaults__, value.__code__))
        for cell in value.__closure__ or ():
            self(cell.cell_contents)
        if value.__module__.split(".")[0] in STABLE:
            return
        for name in sorted(_names(value.__code__)):
            if name in value.__globals__:
                self._say("global", name)
                self(value.__globals__[name])

    def _code(self, code: types.CodeType) -> None:
        self._say("code", code.co_code.hex(), *code.co_names, *code.co_varnames)
        self(tuple(code.co_consts))


def _names(code: types.CodeType) -> set[str]:
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return set(code.co_names).union(*(_names(c) for c in inner))


def _defined(kind: type) -> set[str]:
    """Names that a class and its bases define, those of every object left out."""
    return set().union(*(vars(base) for base in kind.__mro__[:-1]))


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


KINDS: tuple[tuple[Any, Callable[[_Reader, Any], None]], ...] = (  # the first that fits counts
    (enum.Enum, _Reader._enum),
    (np.generic, _Reader._scalar),
    (SIMPLE, _Reader._simple),
    (np.ndarray, _Reader._array),
    ((tuple, list), _Reader._sequence),
    ((set, frozenset), _Reader._set),
    (Mapping, _Reader._mapping),
    (types.FunctionType, _Reader._function),
    (types.MethodType, _Reader._method),
    (functools.partial, _Reader._partial),
    (types.CodeType, _Reader._code),
    (types.ModuleType, _Reader._module),
    (type, _Reader._class),
    ((types.BuiltinFunctionType, np.ufunc, type(np.sum)), _Reader._builtin),
)
