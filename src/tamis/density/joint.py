"""Entropies and information of every column together with a picked column and the target.

The variables of an entropy are given by a name: i is the picked column x_i, j is every column x_j,
and y is the target. "ijy" is the joint entropy of all three.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis.density.chance import expected_n_log_n
from tamis.density.discrete import rounded, settled


class Pair(ABC):
    """Information terms of every column x_j together with a picked column x_i and the target y.

    If terms are ``adjusted``, each is reduced by its expectation, see :mod:`tamis.density.chance`.
    For I(x_j; x_i) the expectation is over shuffled rows. For I(x_j; y | x_i) it is over rows
    shuffled within the levels of x_i. I(x_j, x_i; y) is I(x_i; y) + I(x_j; y | x_i).
    """

    adjusted: bool

    @abstractmethod
    def entropy(self, name: str) -> Any:
        """Return a joint entropy, such as H(x_j, x_i) for "ij"."""

    @abstractmethod
    def expected(self, name: str) -> Any:
        """Return the expectation of a joint entropy."""

    @property
    @abstractmethod
    def relevance(self) -> Any:
        """Mutual information I(x_i; y) of the picked column with the target."""

    @property
    def shared(self) -> Array:
        """Mutual information I(x_j; x_i)."""
        return self._information("ij", "j", "i")

    @property
    def conditional(self) -> Array:
        """Conditional mutual information I(x_j; y | x_i)."""
        return self._information("ijy", "ij", "iy", without="i")

    @property
    def together(self) -> Array:
        """Mutual information I(x_j, x_i; y) of both columns with the target."""
        if self.adjusted:
            return np.asarray(self.relevance + self.conditional)
        return self._information("ijy", "ij", "y")

    def excess(self, alone: Array) -> Array:
        """Return I(x_j; x_i) - I(x_j; x_i | y) - I(x_j; y). ``alone`` is the last term."""
        # I(x_j; x_i) - I(x_j; x_i | y) = I(x_i; y) + I(x_j; y) - I(x_j, x_i; y)
        return np.asarray(self.relevance - self.together)

    def _information(self, name: str, *parts: str, without: str = "") -> Array:
        """Return the joint entropy of independent variables minus the observed joint entropy.

        For independent variables, the joint entropy is the sum of the entropies ``parts`` minus the
        entropy ``without``. If terms are adjusted, it is an expectation.
        """
        observed = self.entropy(name)  # computed first, because the others reuse its counts
        if self.adjusted:
            return np.asarray(rounded(self.expected(name) - observed))
        independent = sum(self.entropy(part) for part in parts)
        if without:
            independent = independent - self.entropy(without)
        return np.asarray(settled(independent - observed))


class CompletePair(Pair):
    """Information terms from all rows. The terms I(x_j; y) of all columns are passed in."""

    def __init__(self, coded: Any, target: Any, i: int, relevance: Array, *, adjusted: bool):
        self.adjusted, self._relevance = adjusted, float(relevance[i])
        self._coded, self._target, self._i = coded, target, i
        self._entropies: dict[str, Callable[[], Any]] = {
            "i": lambda: coded.entropy[i],
            "j": lambda: coded.entropy,
            "y": lambda: coded.entropy_of(target),
            "ij": lambda: coded.joint_with(i),
            "iy": lambda: coded.entropy_of(self._both),
            "ijy": lambda: coded.joint_entropy(self._both),
        }
        self._known: dict[str, Any] = {}

    @cached_property
    def _both(self) -> Any:
        """Combination of x_i and y into a single variable."""
        return self._coded.crossed(self._coded.column(self._i), self._target)

    @property
    def relevance(self) -> float:
        return self._relevance

    def entropy(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = self._entropies[name]()
        return self._known[name]

    def expected(self, name: str) -> Any:
        picked = self._coded.column(self._i)
        if name == "ij":
            return self._coded.chance_entropy(picked)
        return self._coded.chance_entropy(self._target, picked)


class AvailablePair(Pair):
    """Information terms from the rows in which neither column i nor column j is missing.

    All entropies of a term are computed from these rows. The result is the term of
    :class:`CompletePair` for a table of only these rows, cut into the levels of the full table.
    """

    def __init__(self, coded: Any, target: Any, i: int, *, adjusted: bool = False):
        self.adjusted = adjusted
        found: dict[str, list[Array]] = {name: [] for name in AXES}
        chance: dict[str, list[Array]] = {name: [] for name in INDEPENDENT} if adjusted else {}
        for counts in coded.available_tables(target, i):
            for name, axes in AXES.items():
                found[name].append(_entropies(counts, axes))
            for name in chance:
                chance[name].append(_expected(counts, name))
        self._of = {name: np.concatenate(parts) for name, parts in found.items()}
        self._chance = {name: np.concatenate(parts) for name, parts in chance.items()}

    def entropy(self, name: str) -> Array:
        return self._of[name]

    def expected(self, name: str) -> Array:
        return self._chance[name]

    @property
    def relevance(self) -> Array:
        return self._information("iy", "i", "y")

    def excess(self, alone: Array) -> Array:
        """Return the same as :meth:`Pair.excess`.

        ``alone`` is I(x_j; y), computed from all rows in which x_j is not missing.
        """
        return super().excess(alone) + self._information("jy", "j", "y") - alone


#: Axes of each combination of variables in an array of counts, whose axes are (columns, levels of
#: x_i, levels of y, levels of x_j).
AXES = {"i": (1,), "y": (2,), "j": (3,), "ij": (1, 3), "iy": (1, 2), "jy": (2, 3), "ijy": (1, 2, 3)}
#: Largest number of rows for which three margins fit into a single integer. Repeated margins are
#: then detected, and computed only once.
ALIKE = 1 << 21
#: For each joint entropy, the axes of the two variables whose information it determines, and the
#: axes of the variables on which this information is conditional.
INDEPENDENT = {"ij": (3, 1, ()), "iy": (1, 2, ()), "jy": (3, 2, ()), "ijy": (3, 2, (1,))}


def available_relevance(coded: Any, target: Any, *, adjusted: bool = False) -> tuple[Array, Array]:
    """Return I(x_j; y) and H(x_j), each from the rows in which x_j is not missing."""
    information, entropies = [], []
    for counts in coded.available_tables(target):
        y, x, both = (_entropies(counts, AXES[name]) for name in ("y", "j", "jy"))
        own = rounded(_expected(counts, "jy") - both) if adjusted else settled(x + y - both)
        information.append(own)
        entropies.append(x)
    return np.concatenate(information), np.concatenate(entropies)


def _entropies(counts: NDArray[np.intp], axes: tuple[int, ...]) -> Array:
    """Return the entropy of the variables on the given axes for each array of counts, in nats.

    It is 0 if there are no rows.
    """
    others = tuple(axis for axis in range(1, counts.ndim) if axis not in axes)
    margin = counts.sum(axis=others).reshape(len(counts), -1).astype(float)
    return _from_sums(counts, (margin * np.log(np.maximum(margin, 1.0))).sum(axis=1))


def _expected(counts: NDArray[np.intp], name: str) -> Array:
    """Return the expected joint entropy for each array of counts, given its margins, in nats."""
    one, other, given = INDEPENDENT[name]
    table = counts.sum(axis=tuple({1, 2, 3} - {one, other, *given}), keepdims=True)
    a, b = (table.sum(axis=axis, keepdims=True) for axis in (other, one))
    n = a.sum(axis=one, keepdims=True)
    most = int(n.max(initial=0)) + 1
    if most > ALIKE:
        return _from_sums(counts, expected_n_log_n(n, a, b).sum(axis=(1, 2, 3)))
    keys, where = np.unique((n * most + a) * most + b, return_inverse=True)
    both, b = np.divmod(keys, most)
    found = expected_n_log_n(both // most, both % most, b)[where.reshape(len(counts), -1)]
    return _from_sums(counts, found.sum(axis=1))


def _from_sums(counts: NDArray[np.intp], sums: Array) -> Array:
    total = np.maximum(counts.sum(axis=(1, 2, 3)), 1)
    return np.asarray(settled(np.log(total) - sums / total))
