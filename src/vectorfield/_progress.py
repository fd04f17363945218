"""How far long work has come: those who work report, whoever wants to know listens."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

__all__ = ["bar", "listening", "progress", "report"]

Listener = Callable[[str, float], None]
Details = Callable[[str], None]

_listener: ContextVar[Listener | None] = ContextVar("vectorfield_progress", default=None)
_details: ContextVar[Details | None] = ContextVar("vectorfield_details", default=None)


def report(stage: str, done: float, detail: str = "") -> None:
    """Tell the listener, if there is one, that the fraction ``done`` of a stage is over.

    ``detail`` is a word on how it goes, for those who show one.
    """
    details = _details.get()
    if details is not None:
        details(detail)
    listener = _listener.get()
    if listener is not None:
        listener(stage, done)


@contextmanager
def listening(listener: Listener | None, details: Details | None = None) -> Iterator[None]:
    """Call ``listener(stage, done)`` on every report from inside, other threads' included.

    ``details(text)`` is called before it, with the empty text where there is no detail.
    """
    tokens = _listener.set(listener), _details.set(details)
    try:
        yield
    finally:
        _listener.reset(tokens[0])
        _details.reset(tokens[1])


@contextmanager
def progress(stream: Any = None) -> Iterator[None]:
    """Show the progress of fits and simulations inside the ``with`` block.

    A bar with the stage at work, on a terminal or in a notebook, by rich where it is installed
    (the extra ``cli``); elsewhere a line as each stage begins. Nothing is left on a terminal. Of a
    search the bar also shows how many trials are done, and the best score.

    Args:
        stream: where to write; standard error by default.

    Example:
        >>> import sys, numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 5.0, 51)
        >>> with vf.progress(stream=sys.stdout):  # no terminal here
        ...     model = vf.MOCK(vf.kernels.Gaussian(2.0), 1e-9).fit(np.exp(-t)[:, None], t)
        Gram matrix
        factor
    """
    stream = sys.stderr if stream is None else stream
    try:
        from rich.console import Console
    except ImportError:
        with listening(_Lines(stream)):
            yield
        return
    console = Console(file=stream)
    if not (console.is_terminal or console.is_jupyter):
        with listening(_Lines(stream)):
            yield
        return
    with bar(console):
        yield


class _Lines:
    """One line for each stage, as it begins."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._stage = stream, ""

    def __call__(self, stage: str, done: float) -> None:
        if stage != self._stage:
            self._stage = stage
            print(stage, file=self._stream, flush=True)


@contextmanager
def bar(console: Any, title: str = "") -> Iterator[None]:
    """Show reports as a bar of rich on ``console``; it only pulses until the first one."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as shown:
        task = shown.add_task(title, total=None)

        said = ""

        def details(text: str) -> None:
            nonlocal said
            said = f" ({text})" if text else ""

        def listener(stage: str, done: float) -> None:
            text = f"{title}: {stage}" if title else stage
            shown.update(task, description=text + said, total=1.0, completed=done)

        with listening(listener, details):
            yield
