"""The command ``tamis``: its commands, and how they fail.

What a command does is imported when it runs, because scikit-learn and polars take over a second of
processor time, which ``--help`` has no use for.
"""

import sys
from collections.abc import Iterable
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from tamis._book import missing_book
from tamis.cli import options
from tamis.cli.terminal import notify
from tamis.exceptions import TamisError

#: Exit codes: the user's error, and Ctrl-C as every shell counts it.
WRONG, INTERRUPTED = 2, 130


class Sentences(TyperGroup):
    """Commands whose errors are one sentence on stderr, with exit code 2 and no traceback.

    Other distributions add commands by entry points.
    """

    def list_commands(self, context: Any) -> list[str]:
        """Return the names of the commands of tamis and of those that are installed besides."""
        found = {entry.name for entry in _entries()}
        return [*super().list_commands(context), *sorted(found)]

    def get_command(self, context: Any, name: str) -> Any:
        """Return a command; entry points are read for names that tamis does not have."""
        if (command := super().get_command(context, name)) is not None:
            return command
        for entry in _entries(name=name):
            return get_command(entry.load())
        if name == "reproduce":
            raise missing_book("tamis reproduce")
        return None

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command and leave with its exit code."""
        extra["standalone_mode"] = False
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):  # a name that cannot be shown is not an error
                stream.reconfigure(errors="replace")
        try:
            code = super().main(*args, **extra)
        except Exception as error:
            if (sentence := _describe(error)) is None:
                raise
            notify(sentence)
            code = WRONG
        sys.exit(code if isinstance(code, int) else 0)


def _entries(**which: Any) -> Iterable[Any]:
    # imported late: it takes as long as all of typer
    from importlib.metadata import entry_points

    return entry_points(group="tamis.commands", **which)


def _describe(error: Exception) -> str | None:
    """Return the sentence for the user; None if the fault is ours and a traceback is due."""
    if hasattr(error, "format_message"):  # arguments that typer cannot use
        words = error.format_message().rstrip(".")
        return f"{words}{'' if words.endswith('?') else '.'} Write tamis --help to see the options."
    # scikit-learn raises ValueError for data and parameters that it cannot use
    if isinstance(error, TamisError | ValueError):
        return str(error)
    if isinstance(error, MemoryError):
        return "The memory does not suffice. Give fewer rows or columns."
    if isinstance(error, OSError):
        return f"{error.filename or 'A file'}: {error.strerror or error}."
    return None


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


def _select(asked: options.SelectOptions) -> None:
    from tamis.cli.select import run_select

    run_select(asked)


def _compare(asked: options.CompareOptions) -> None:
    from tamis.cli.compare import run_compare

    run_compare(asked)


def _tune(asked: options.TuneOptions) -> None:
    from tamis.cli.tune import run_tune

    run_tune(asked)


def _methods(asked: options.MethodsOptions) -> None:
    from tamis.cli.methods import show_methods

    show_methods(" ".join(asked.words), as_json=asked.json, blocks=asked.blocks)


def _demo(asked: options.DemoOptions) -> None:
    from tamis.cli.demo import run_demo

    run_demo(asked.folder)


options.add_command(app, options.SelectOptions, _select)
options.add_command(app, options.CompareOptions, _compare)
options.add_command(app, options.TuneOptions, _tune)
options.add_command(app, options.MethodsOptions, _methods)
options.add_command(app, options.DemoOptions, _demo)
