"""Access to tamis-book, a distribution of its own, for public names that tamis had before."""

from importlib import import_module
from typing import Any

from tamis.exceptions import MissingExtra


def load_from_book(name: str) -> Any:
    """Return a public name of ``tamis_book``.

    Raises
    ------
    MissingExtra
        The distribution is not installed; the sentence has the command that installs it.
    """
    try:
        book = import_module("tamis_book")
    except ModuleNotFoundError as error:
        if error.name != "tamis_book":
            raise
        raise missing_book(name) from None
    return getattr(book, name)


def missing_book(name: str) -> MissingExtra:
    """Return the error for a name or command of a distribution that is not installed."""
    return MissingExtra(
        f"{name} is in tamis-book, which is not installed. Write pip install tamis-book."
    )
