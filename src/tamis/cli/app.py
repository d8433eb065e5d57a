"""The commands: what each takes; those of a table are in :mod:`tamis.cli.table_commands`.

What they do is imported when they run, because scikit-learn and polars take over a second of
processor time, which ``--help`` has no use for.
"""

from pathlib import Path
from typing import Annotated

import typer

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
def demo(
    folder: Annotated[Path, typer.Option(help="Where to write the ranking.")] = Path("tamis-demo"),
) -> None:
    """Select columns of a table that comes with scikit-learn, and say what is lost by it."""
    from tamis.cli.demo import run_demo

    run_demo(folder)
