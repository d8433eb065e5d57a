"""A finished task as a row of a store: its address, its outcome as text, and a checksum of both."""

import json
from hashlib import sha256
from typing import Any, NamedTuple

from tamis.evaluation.outcome import Outcome, Score
from tamis.evaluation.row_losses import PackedLosses


class Address(NamedTuple):
    """What a task depends on; the same address always gives the same outcome."""

    expression: str
    data: str
    fingerprint: str
    realization: int
    seed: int
    version: str
    protocol: str

    @property
    def key(self) -> str:
        """Short name of the address."""
        return sha256("\x1f".join(map(str, self)).encode()).hexdigest()[:32]

    def __str__(self) -> str:
        return f"{self.expression} on {self.data}, realization {self.realization}"


def checksum(*values: Any) -> str:
    """Short name of values, the same again if no bit of them has changed.

    >>> checksum("a", 1, 0.5)
    '6b812aee0d8a9d11'
    """
    return sha256("\x1f".join(map(repr, values)).encode("utf-8", "replace")).hexdigest()[:16]


def written(outcome: Outcome) -> str:
    """An outcome as text, but for its time, which has a column of its own.

    Losses of rows stand in it where there are some, so that other texts are what they always were.
    """
    plain = outcome._asdict()
    del plain["seconds"]
    if not outcome.losses:
        del plain["losses"], plain["test_rows"]
    return json.dumps({**plain, "scores": [list(score) for score in outcome.scores]})


def outcome_of(text: str, seconds: float) -> Outcome:
    """The outcome that :func:`written` wrote.

    Raises
    ------
    ValueError
        The text is none.
    """
    try:
        plain = json.loads(text)
        scores = tuple(Score(*score) for score in plain.pop("scores"))
        columns = {
            name: None if plain[name] is None else tuple(plain[name])
            for name in ("order", "support")
        }
        losses = tuple(PackedLosses(*item) for item in plain.pop("losses", ()))
        whole = {**plain, **columns, "scores": scores, "losses": losses}
        return Outcome(**whole, seconds=float(seconds))
    # whatever it holds instead, be it null or ten thousand brackets
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise ValueError(f"no outcome ({type(error).__name__})") from None
