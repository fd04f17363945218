"""Manners in a shell: errors in one line, exit codes, tables, files that are not overwritten."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from vectorfield._errors import VectorFieldError
from vectorfield._progress import bar

__all__ = [
    "FAILED",
    "STOPPED_EARLY",
    "busy",
    "check_output",
    "fail",
    "in_shell_words",
    "reporting",
    "say",
    "show_table",
    "usage",
    "writing",
]

FAILED = 1
STOPPED_EARLY = 3
INTERRUPTED = 128 + 2  # as shells count a program that SIGINT ended
NOBODY_READS = 128 + 13  # and one that SIGPIPE ended

# The library names its remedies as Python arguments; here they are options.
_WORDS = (
    ("missing='split'", "--missing split"),
    ("trajectory=... and time=...", "--trajectory and --time"),
    ("features=[...]", "--features"),
    ("raise ridge", "raise --ridge"),
    ("pass search=False", "pass --no-search"),
    ("give kernel and ridge", "give --kernel and --ridge"),
    ("shorter length_scale", "shorter --length-scale"),
    ("write it again with model.save", "make it again with vectorfield fit"),
    (
        "not a vectorfield model file",
        "not a vectorfield model file; give one that vectorfield fit has written",
    ),
    (
        "max_steps was reached; raise it, loosen rtol, or try method='Radau'",
        "too many steps; loosen --rtol, or try --method Radau",
    ),
)


def in_shell_words(text: str) -> str:
    """Return a message of the library in one line, its remedies as options of the program.

    >>> in_shell_words("use missing='split' to cut the trajectory")
    'use --missing split to cut the trajectory'
    """
    for python, shell in _WORDS:
        text = text.replace(python, shell)
    return " ".join(text.splitlines())


def say(line: str) -> None:
    """Print a line on the error stream."""
    typer.echo(line, err=True)


def fail(message: str, code: int = FAILED) -> typer.Exit:
    """Print ``error: message`` in one line and return what ends the program, to be raised."""
    say(f"error: {in_shell_words(message)}")
    return typer.Exit(code)


@contextmanager
def reporting() -> Iterator[None]:
    """Turn the errors that a user can meet into one line and an exit code; no traceback."""
    try:
        yield
        sys.stdout.flush()
    except VectorFieldError as error:
        raise fail(str(error)) from error
    except MemoryError as error:
        raise fail(f"not enough memory ({error}); use fewer or shorter trajectories") from error
    except BrokenPipeError as error:
        # What is still buffered has no reader; without this Python complains at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(NOBODY_READS) from error
    except OSError as error:
        raise fail(_described(error)) from error
    except KeyboardInterrupt as error:
        raise typer.Exit(INTERRUPTED) from error


@contextmanager
def usage(option: str) -> Iterator[None]:
    """Report a setting that the library refuses as a wrong value of ``option``."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Show on a terminal how far something has come; print nothing anywhere else."""
    if not sys.stderr.isatty():
        yield
        return
    with bar(Console(stderr=True), what):
        yield


def check_output(path: Path, *, force: bool, inputs: Sequence[Path] = ()) -> None:
    """Refuse, before any work is done, an output file that cannot or should not be written."""
    if not path.parent.is_dir():
        raise fail(f"there is no folder {str(path.parent)!r}; make it first, or choose another")
    if path.is_dir() or (path.exists() and not path.is_file()):
        raise fail(f"{str(path)!r} is not a regular file; give -o the name of one")
    if not path.exists():
        return
    if any(source.exists() and path.samefile(source) for source in inputs):
        raise fail(f"{str(path)!r} is read from; give -o another name")
    if not force:
        raise fail(f"{str(path)!r} exists; use --force to overwrite it, or give -o another name")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Name the file where writing fails: the system names a temporary one, or none at all."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise fail(
            f"{str(path)!r} could not be written ({reason}); nothing was changed, "
            "choose another place with -o"
        ) from error


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on a terminal; where the output goes elsewhere, lines of cells and tabs.

    Piped lines have no header, no colour and no padding, and no cell is ever cut.
    """
    if not sys.stdout.isatty():
        for row in rows:
            typer.echo("\t".join(row))
        return
    table = Table(show_header=any(header))
    for name in header:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


def _described(error: OSError) -> str:
    name = "a file" if error.filename is None else repr(str(error.filename))
    if isinstance(error, FileNotFoundError):
        return f"there is no file {name}; check the path"
    if isinstance(error, IsADirectoryError):
        return f"{name} is a folder; give the name of a file in it"
    if isinstance(error, PermissionError):
        return f"{name} may not be read; change its permissions"
    return f"{name} cannot be used: {error.strerror or error}"
