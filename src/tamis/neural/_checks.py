"""Parameters of estimators that cannot work, refused in a sentence."""

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from tamis._arrays import Array
from tamis.exceptions import InvalidParameter

Part = TypeVar("Part", bound=BaseEstimator)


def check_among(estimator: BaseEstimator, choices: Mapping[str, Collection[Any]]) -> None:
    """Refuse a parameter that is none of its choices."""
    for name, known in choices.items():
        value = getattr(estimator, name)
        if not any(isinstance(value, type(word)) and value == word for word in known):
            raise InvalidParameter(
                f"{type(estimator).__name__} needs {name} as one of "
                f"{', '.join(map(repr, known))}, not {value!r}."
            )


def part_of(estimator: BaseEstimator, name: str, kind: type[Part], words: Collection[str]) -> Part:
    """The object that a parameter holds, or that the word given for it stands for."""
    given = getattr(estimator, name)
    if isinstance(given, str) and given in words:
        return kind(given)
    if not isinstance(given, kind):
        raise InvalidParameter(
            f"{type(estimator).__name__} needs {name} as one of {', '.join(map(repr, words))} or "
            f"as {kind.__name__}(...), not {given!r}."
        )
    return given


def as_numbers(given: Any) -> Array:
    """An array of numbers; nan where it is none, as for text."""
    try:
        return np.asarray(np.nan if isinstance(given, str) else given, dtype=float)
    except (TypeError, ValueError):
        return np.array(np.nan)
