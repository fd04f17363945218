"""The program ``vectorfield``: fit, simulate and data sets from a shell.

Strings stand for kernels, rules and noise here and nowhere else. One command a file.
"""

from __future__ import annotations

import sys

from vectorfield._errors import MissingExtraError

__all__ = ["main"]


def main() -> None:
    """Run the program on the arguments of the process, and end the process."""
    try:
        from vectorfield.cli._app import app
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in ("typer", "rich"):
            raise
        print(f"error: {MissingExtraError(package, 'cli', 'the command line')}", file=sys.stderr)
        raise SystemExit(1) from error
    app(prog_name="vectorfield")
