"""The commands: what each takes; those of a table are in :mod:`tamis.cli.table_commands`.

What they do is imported when they run, because scikit-learn and polars take over a second of
processor time, which ``--help`` has no use for.
"""

from pathlib import Path
from typing import Annotated

import typer

from tamis.cli import options
from tamis.cli.completing import method_words
from tamis.cli.failing import Sentences
from tamis.cli.table_commands import compare, select, tune

app = typer.Typer(
    cls=Sentences,
    name="tamis",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """Find the features that matter."""
    if version:
        import tamis

        typer.echo(f"tamis {tamis.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for command in (select, compare, tune):
    app.command()(command)


@app.command()
def methods(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME or words]",
            help="A name, or words to look for.",
            show_default=False,
            autocompletion=method_words,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="As JSON, with all that is known.")
    ] = False,
    blocks: Annotated[
        bool,
        typer.Option("--blocks", help="Those that select from tables larger than memory."),
    ] = False,
) -> None:
    """List the methods by the question they answer, or show one of them in full.

    tamis methods

    tamis methods floating

    tamis methods svm-rfe

    tamis methods --blocks
    """
    from tamis.cli.listing import show_methods

    show_methods(" ".join(words or []), as_json=as_json, blocks=blocks)


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
    from tamis.cli.reproducing import list_experiments, run_experiments

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


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where to write the ranking.")] = Path("tamis-demo"),
) -> None:
    """Select columns of a table that comes with scikit-learn, and say what is lost by it."""
    from tamis.cli.demo import run_demo

    run_demo(folder)
