"""A problem with a known answer, and what its makers share: draws and checks.

Every maker takes ``n_samples`` and ``random_state`` (an integer, None, a generator) and returns a
:class:`Problem`. The same integer gives the same problem. Classes are numbered from 0.
"""

from collections.abc import Collection, Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.exceptions import InvalidParameter

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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


def balanced(rng: np.random.Generator, n: int, k: int) -> Ints:
    """``n`` numbers below ``k`` in random order, each equally often up to one."""
    return rng.permutation(np.arange(n, dtype=np.int64) % k)


def flipped(rng: np.random.Generator, bits: Ints, share: float) -> Ints:
    """``bits`` with exactly this share of them, up to rounding, turned around."""
    chosen = rng.permutation(len(bits)) < round(share * len(bits))
    return bits ^ chosen


def made_problem(
    X: NDArray[Any],
    y: NDArray[Any],
    relevant: Sequence[int],
    equivalent: Collection[Collection[int]] | None = None,
) -> Problem:
    """The problem of these parts; without ``equivalent`` every column stands for itself alone."""
    groups = [(j,) for j in relevant] if equivalent is None else equivalent
    return Problem(
        np.ascontiguousarray(X, dtype=np.float64),
        y,
        np.array(relevant, dtype=np.intp),
        tuple(tuple(int(j) for j in group) for group in groups),
    )


def begin(
    maker: str, n_samples: int, random_state: Any, least: int = 1
) -> tuple[int, np.random.Generator]:
    """Number of rows and source of the draws, checked."""
    check_count(maker, "n_samples", n_samples, least=least, example=200)
    try:
        return int(n_samples), np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise InvalidParameter(
            f"{maker} needs random_state to be a non-negative integer, None, a Generator or a "
            f"RandomState; got {random_state!r}. Write {maker}(random_state=0)."
        ) from error


def check_count(
    maker: str, name: str, value: Any, *, example: int, least: int = 1, most: float = inf
) -> None:
    """Refuse what is no whole number in these bounds."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        bounds = f"at least {least}" + ("" if most == inf else f" and at most {most}")
        raise InvalidParameter(
            f"{maker} needs {name} to be an integer of {bounds}; got {value!r}. "
            f"Write {maker}({name}={example})."
        )


def check_level(maker: str, name: str, value: Any, *, example: float, most: float = inf) -> None:
    """Refuse what is no finite number in these bounds."""
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not real or not 0 <= value <= most or value == inf:
        bounds = "not below 0" if most == inf else f"between 0 and {most:g}"
        raise InvalidParameter(
            f"{maker} needs {name} to be a finite number {bounds}; got {value!r}. "
            f"Write {maker}({name}={example})."
        )


def check_choice(maker: str, name: str, value: Any, options: Sequence[Any]) -> None:
    """Refuse what is none of the options."""
    plain = value.item() if isinstance(value, np.generic) else value
    # by type too: 1 == True and 6 == 6.0, but neither was meant
    if not any(type(plain) is type(option) and plain == option for option in options):
        raise InvalidParameter(
            f"{maker} needs {name} to be one of {', '.join(map(repr, options))}; got {value!r}. "
            f"Write {maker}({name}={options[0]!r})."
        )
