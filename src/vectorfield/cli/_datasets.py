"""``vectorfield datasets``: list, show and export the data sets of the library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vectorfield import datasets
from vectorfield.cli._options import FORCE
from vectorfield.cli._shell import busy, check_output, show_table, writing
from vectorfield.tables import _ending, write_splits

__all__ = ["app"]

app = typer.Typer(help="List, show and export the data sets of the library.")


def _known(name: str) -> str:
    if name.lower() not in datasets.names():
        known = ", ".join(datasets.names())
        raise typer.BadParameter(f"there is no data set {name!r}; there are {known}")
    return name.lower()


NAME = Annotated[str, typer.Argument(metavar="NAME", callback=_known, help="Name of a data set.")]


@app.callback(invoke_without_command=True)
def list_all(context: typer.Context) -> None:
    """List the data sets of the library; show one, or export one as a table."""
    if context.invoked_subcommand is not None:
        return
    rows = [
        (one.name, str(one.d), str(one.trajectories), f"{one.samples:g}", one.text)
        for one in datasets.describe()
    ]
    show_table(("name", "d", "trajectories", "mean samples", "what"), rows)


@app.command()
def show(name: NAME) -> None:
    """Print what a data set holds, its source and its terms."""
    one = next(one for one in datasets.describe() if one.name == name)
    rows = [
        ("name", one.name),
        ("kind", "measured" if one.real else "computed"),
        ("features", str(one.d)),
        ("trajectories", str(one.trajectories)),
        ("mean samples", f"{one.samples:g}"),
        ("what", one.text),
        ("source", one.source),
        ("terms", one.terms),
    ]
    show_table(("", ""), rows)


@app.command()
def export(
    name: NAME,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A .csv, .csv.gz or .parquet file to write.")
    ],
    seed: Annotated[
        int, typer.Option(min=0, help="Of starts, noise and parts; measured sets have none.")
    ] = 0,
    force: FORCE = False,
) -> None:
    """Write a data set as a table with the columns train, validation and test."""
    _ending(output)
    check_output(output, force=force)
    with busy(f"loading {name}"):
        data = datasets.load(name, seed=seed)
    with busy(f"writing {output}"), writing(output):
        write_splits(data.splits, output)
