"""The commands, joined, and what all of them share."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import vectorfield
from vectorfield.cli import _datasets
from vectorfield.cli._fit import fit
from vectorfield.cli._shell import reporting
from vectorfield.cli._simulate import simulate

__all__ = ["app"]


class Commands(TyperGroup):
    """Every command runs where errors become one line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        with reporting():
            return super().invoke(ctx)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",  # paragraphs are filled
    pretty_exceptions_enable=False,
    help="Learn the vector field f of an ODE dx/dt = f(x) from trajectories.",
    epilog="Exit codes: 0 done, 1 data, model or solve error, 2 usage, 3 simulation stopped early.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vectorfield {vectorfield.__version__}")
        raise typer.Exit


@app.callback()
def _common(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


app.command()(fit)
app.command()(simulate)
app.add_typer(_datasets.app, name="datasets")
