"""How the commands fail: one sentence on stderr, exit code 2, no traceback."""

import sys
from collections.abc import Iterable
from io import TextIOWrapper
from typing import Any

from typer.core import TyperGroup
from typer.main import get_command

from tamis._book import missing_book
from tamis.cli.printing import say
from tamis.exceptions import TamisError

#: Exit codes: the user's error, and Ctrl-C as every shell counts it.
WRONG, INTERRUPTED = 2, 130


class Sentences(TyperGroup):
    """Commands whose errors are one sentence; other distributions may add commands."""

    def list_commands(self, context: Any) -> list[str]:
        """Names of the commands of tamis and of those that are installed besides."""
        found = {entry.name for entry in _entries()}
        return [*super().list_commands(context), *sorted(found)]

    def get_command(self, context: Any, name: str) -> Any:
        """Find a command; entry points are read for names that tamis does not have."""
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
            if isinstance(stream, TextIOWrapper):  # a name that cannot be shown is no error
                stream.reconfigure(errors="replace")
        try:
            code = super().main(*args, **extra)
        except Exception as error:
            if (sentence := spoken(error)) is None:
                raise
            say(sentence)
            code = WRONG
        sys.exit(code if isinstance(code, int) else 0)


def _entries(**which: Any) -> Iterable[Any]:
    # imported late: it takes as long as all of typer
    from importlib.metadata import entry_points

    return entry_points(group="tamis.commands", **which)


def spoken(error: Exception) -> str | None:
    """What to tell the user; None where the fault is ours and a traceback is due."""
    if hasattr(error, "format_message"):  # arguments that typer cannot use
        said = error.format_message().rstrip(".")
        end = "" if said.endswith("?") else "."
        return f"{said}{end} Write tamis --help to see what there is."
    # ValueError is how scikit-learn speaks of data and parameters that it cannot use
    if isinstance(error, TamisError | ValueError):
        return str(error)
    if isinstance(error, MemoryError):
        return "The memory does not suffice. Give fewer rows or columns."
    if isinstance(error, OSError):
        return f"{error.filename or 'A file'}: {error.strerror or error}."
    return None
