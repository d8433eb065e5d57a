"""The command ``tamis reproduce``, which tamis finds by an entry point.

What it does is imported when it runs: ``tamis --help`` has no use for it.
"""

from pathlib import Path
from typing import Annotated

import typer

from tamis.cli import options

app = typer.Typer(add_completion=False)


@app.command()
def reproduce(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME...", help="Experiments, see --list; or *.toml.", show_default=False
        ),
    ] = None,
    list_names: Annotated[bool, typer.Option("--list", help="List the names.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Run all of them.")] = False,
    realizations: Annotated[
        int | None, typer.Option(min=1, help="How many; by default as published.")
    ] = None,
    jobs: options.Jobs = None,
    dask: options.Cluster = None,
    store: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep finished tasks here, and go on from them."),
    ] = None,
    tune: Annotated[
        bool, typer.Option("--tune", help="Choose hyper-parameters as published.")
    ] = False,
    output: options.Outputs = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page of the experiment: *.html."),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write pages, tables and pictures of all there."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Compute published tables again, and print ours beside the published numbers.

    tamis reproduce --list

    tamis reproduce thesis-3.1 --realizations 10 --jobs 2

    tamis reproduce thesis-5.10 --store wine.sqlite

    tamis reproduce mine.toml --output mine.csv --output mine.tex --report mine.html
    """
    from tamis_book.terminal import list_experiments, run_experiments

    if list_names:
        list_experiments()
        return
    run_experiments(
        experiments or [],
        everything=everything,
        realizations=realizations,
        tune=tune,
        n_jobs=jobs,
        cluster=dask,
        store=store,
        output=tuple(output or ()),
        report=report,
        folder=folder,
        quiet=quiet,
    )
