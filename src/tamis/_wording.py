"""What sentences to users share: names that are near, lists that end, words of a command line."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

#: How many names a sentence lists.
NAMED = 5


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`` Did you mean A or B?``, or nothing where no known name is near.

    >>> did_you_mean("scater", ["Scatter", "Divergence"])
    ' Did you mean Scatter?'
    >>> print(did_you_mean("vote", ["'vote'", " age"]).strip())
    Did you mean "'vote'"?
    """
    plain: dict[str, str] = {}
    for name in known:
        plain.setdefault(name.lower(), name)
    near = get_close_matches(word.lower(), plain, n=3)
    if len(near) > 1:  # beside a very near name, far ones only confuse
        near = get_close_matches(word.lower(), near, cutoff=0.8) or near
    return f" Did you mean {' or '.join(_told(plain[name]) for name in near)}?" if near else ""


def _told(name: str) -> str:
    """A name as it is, in quotes where one would not see what belongs to it."""
    return name if name == name.strip("'\"") and name.split() == name.split(" ") else repr(name)


def listed(names: Iterable[Any], most: int = NAMED) -> str:
    """The first names in quotes, and how many follow.

    >>> listed(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    names = list(names)
    shown = ", ".join(map(repr, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def counted(number: int, word: str) -> str:
    """The number with its word.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1200 rows')
    """
    return f"{number} {word}{'s' * (number != 1)}"


def shell_word(name: str) -> str:
    """A name as a command line takes it."""
    return name if name.isidentifier() else f'"{name}"'
