"""The command ``tamis`` with its subcommands and error messages.

The module of a subcommand is imported only when the subcommand runs. ``--help`` therefore does not
wait for scikit-learn and polars, whose import takes over a second.
"""

import shlex
import sys
from collections.abc import Iterable
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command

from tamis._book import missing_book
from tamis.cli import options
from tamis.cli.terminal import notify
from tamis.exceptions import TamisError

#: Exit codes after a user error and after Ctrl-C (by the convention of shells).
WRONG, INTERRUPTED = 2, 130


class Sentences(TyperGroup):
    """Group of commands that print an error as a single sentence on stderr, without a traceback.

    Other packages can add commands by entry points.
    """

    def list_commands(self, context: Any) -> list[str]:
        """Return the names of all commands, including those of entry points."""
        found = {entry.name for entry in _entries()}
        return [*super().list_commands(context), *sorted(found)]

    def get_command(self, context: Any, name: str) -> Any:
        """Return the command with this name, from tamis or from an entry point."""
        if (command := super().get_command(context, name)) is not None:
            return command
        for entry in _entries(name=name):
            return get_command(entry.load())
        if name == "reproduce":
            raise missing_book("tamis reproduce")
        return None

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command and exit with its exit code."""
        extra["standalone_mode"] = False
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):  # the encoding may lack characters of a name
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
    # imported lazily, because this import takes as long as importing typer
    from importlib.metadata import entry_points

    return entry_points(group="tamis.commands", **which)


def _describe(error: Exception) -> str | None:
    """Return the sentence to print, or None for a bug, which needs a traceback."""
    if hasattr(error, "format_message"):  # typer reports wrong arguments
        message = error.format_message().rstrip(".")
        end = "" if message.endswith("?") else "."
        return f"{message}{end} Write tamis --help to see the options."
    # scikit-learn raises ValueError for unusable data and parameters
    if isinstance(error, TamisError | ValueError):
        return str(error)
    if notes := getattr(error, "__notes__", ()):  # the user's own model failed
        return f"{notes[0].rstrip('.')}: {str(error).rstrip('.')}."
    if isinstance(error, MemoryError):
        return "There is not enough memory. Give fewer rows or columns."
    if isinstance(error, OSError):
        return f"{error.filename or 'A file'}: {error.strerror or error}."
    return None


def leave(stopped: str, store: Path | None, otherwise: str) -> NoReturn:
    """Exit after Ctrl-C, and print how to continue from the store.

    Without a store, ``otherwise`` is printed.
    """
    if store is None:
        notify(f"{stopped}; {otherwise}")
    else:
        again = shlex.join(["tamis", *sys.argv[1:]])
        notify(f"{stopped}; finished tasks are stored in {store}. To continue:", again)
    raise typer.Exit(INTERRUPTED)


app = typer.Typer(
    cls=Sentences,
    name="tamis",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", metavar="", help="Show the version.")
    ] = False,
) -> None:
    """Find the columns that matter, and the best C of an SVM."""
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
