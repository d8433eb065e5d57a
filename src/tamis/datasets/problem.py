"""Synthetic problems with known relevant columns, and helpers for the functions that make them.

Every function takes ``n_samples`` and ``random_state`` (an int, None or a generator) and returns a
:class:`Problem`. The same int always makes the same problem. Classes are numbered from 0.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._checks import Constraint, check_values, integer, number
from tamis.exceptions import InvalidParameter

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Constraints on a noise level, and on a share of rows.
LEVEL, SHARE = number(least=0), number(least=0, most=1)


class Problem(NamedTuple):
    """Synthetic problem with known relevant columns.

    A ranking is correct if its first ``len(relevant)`` columns contain one member of every group in
    ``equivalent``.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        The features, float64.
    y : ndarray of shape (n_samples,)
        Class numbers (int64), or a numeric target (float64).
    relevant : ndarray of int
        The relevant columns, in ascending order.
    equivalent : tuple of tuple of int
        For each relevant column, the column itself and all columns that can replace it without any
        loss, in ascending order.

    Examples
    --------
    >>> from tamis.datasets import make_corral
    >>> problem = make_corral(variant=46, random_state=0)
    >>> problem.relevant
    array([0, 1, 2, 3])
    >>> problem.equivalent
    ((0, 4), (1, 11), (2, 18), (3, 25))
    """

    X: Floats
    y: NDArray[Any]
    relevant: NDArray[np.intp]
    equivalent: tuple[tuple[int, ...], ...]


def balance(rng: np.random.Generator, n: int, k: int) -> Ints:
    """Return ``n`` ints from 0 to ``k`` - 1 in random order, whose counts differ by at most one."""
    return rng.permutation(np.arange(n, dtype=np.int64) % k)


def flip(rng: np.random.Generator, bits: Ints, share: float) -> Ints:
    """Flip randomly chosen bits. Their share is ``share``, up to rounding."""
    chosen = rng.permutation(len(bits)) < round(share * len(bits))
    return bits ^ chosen


def make_problem(
    X: NDArray[Any],
    y: NDArray[Any],
    relevant: Sequence[int],
    equivalent: Collection[Collection[int]] | None = None,
) -> Problem:
    """Return a problem. By default, each relevant column is equivalent only to itself."""
    groups = [(j,) for j in relevant] if equivalent is None else equivalent
    return Problem(
        np.ascontiguousarray(X, dtype=np.float64),
        y,
        np.array(relevant, dtype=np.intp),
        tuple(tuple(int(j) for j in group) for group in groups),
    )


def begin(maker: str, given: Mapping[str, Any], **needed: Constraint) -> np.random.Generator:
    """Check the arguments of a ``make_`` function, and return its random generator."""
    for name, constraint in ({"n_samples": integer(1)} | needed).items():
        value = given[name].item() if isinstance(given[name], np.generic) else given[name]
        check_values(maker, {name: constraint}, **{name: value})
    try:
        return np.random.default_rng(given["random_state"])
    except (TypeError, ValueError) as error:
        raise InvalidParameter(
            f"{maker} needs random_state to be a non-negative integer, None, a Generator or a "
            f"RandomState; got {given['random_state']!r}. Write {maker}(random_state=0)."
        ) from error
