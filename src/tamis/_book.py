"""Access to the separate distribution tamis-book."""

from importlib import import_module
from typing import Any

from tamis.exceptions import MissingExtra


def load_from_book(name: str) -> Any:
    """Return a public name of ``tamis_book``.

    Raises
    ------
    MissingExtra
        If the distribution is not installed. The message contains the command to install it.
    """
    try:
        book = import_module("tamis_book")
    except ModuleNotFoundError as error:
        if error.name != "tamis_book":
            raise
        raise missing_book(name) from None
    return getattr(book, name)


def missing_book(name: str) -> MissingExtra:
    """Return the error for a name or command that needs tamis-book, which is not installed."""
    return MissingExtra(
        f"{name} is in tamis-book, which is not installed. Run pip install ./book in the folder of "
        "the repository."
    )
