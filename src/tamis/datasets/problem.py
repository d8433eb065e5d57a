"""A problem with a known answer, and what its makers share: draws and checks.

Every maker takes ``n_samples`` and ``random_state`` (an integer, None, a generator) and returns a
:class:`Problem`. The same integer gives the same problem. Classes are numbered from 0.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._checks import Constraint, check_values, integer, number
from tamis.exceptions import InvalidParameter

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Amounts of noise, and shares of rows.
LEVEL, SHARE = number(least=0), number(least=0, most=1)


class Problem(NamedTuple):
    """A problem with a known answer.

    A ranking answers it if its first ``len(relevant)`` columns hold one member of every group in
    ``equivalent``.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        The features, float64.
    y : ndarray of shape (n_samples,)
        Class numbers (int64), or a real target (float64).
    relevant : ndarray of int
        The columns that matter, ascending.
    equivalent : tuple of tuple of int
        Parallel to ``relevant``: the columns that may stand for ``relevant[i]`` without any loss,
        itself included, ascending. A column without a copy is alone in its group.

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
    """Return ``n`` numbers below ``k`` in random order, each equally often up to one."""
    return rng.permutation(np.arange(n, dtype=np.int64) % k)


def flip(rng: np.random.Generator, bits: Ints, share: float) -> Ints:
    """Flip exactly this share of the bits, up to rounding."""
    chosen = rng.permutation(len(bits)) < round(share * len(bits))
    return bits ^ chosen


def make_problem(
    X: NDArray[Any],
    y: NDArray[Any],
    relevant: Sequence[int],
    equivalent: Collection[Collection[int]] | None = None,
) -> Problem:
    """Return a problem; without ``equivalent`` every column stands for itself alone."""
    groups = [(j,) for j in relevant] if equivalent is None else equivalent
    return Problem(
        np.ascontiguousarray(X, dtype=np.float64),
        y,
        np.array(relevant, dtype=np.intp),
        tuple(tuple(int(j) for j in group) for group in groups),
    )


def begin(maker: str, given: Mapping[str, Any], **needed: Constraint) -> np.random.Generator:
    """Check the arguments of a maker by their names, and return the source of its draws."""
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
