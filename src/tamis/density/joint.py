"""Entropies and information of every column together with a picked column and the target."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis.density.chance import expected_n_log_n
from tamis.density.discrete import rounded, settled


class Pair:
    """Information terms of every column x_j together with a picked column x_i and the target y.

    Terms are in nats. Most are arrays with an entry for each column j.
    """

    def __init__(self, coded: Any, target: Any, i: int):
        self._coded, self._target, self._i = coded, target, i
        self.entropy = coded.entropy
        self.pick_entropy = float(coded.entropy[i])

    @cached_property
    def joint(self) -> Array:
        """Joint entropy H(x_j, x_i)."""
        return np.asarray(self._coded.joint_with(self._i))

    @cached_property
    def triple(self) -> Array:
        """Joint entropy H(x_j, x_i, y)."""
        return np.asarray(self._coded.joint_entropy(self._both))

    @cached_property
    def _both(self) -> Any:
        """Combination of x_i and y into a single variable."""
        return self._coded.crossed(self._coded.column(self._i), self._target)

    @cached_property
    def shared(self) -> Array:
        """Mutual information I(x_j; x_i)."""
        return settled(self.entropy + self.pick_entropy - self.joint)

    @cached_property
    def relevance(self) -> float:
        """Mutual information I(x_i; y) of the picked column with the target."""
        entropy_of = self._coded.entropy_of
        target = entropy_of(self._target)
        return float(settled(self.pick_entropy + target - entropy_of(self._both)))

    @cached_property
    def conditional(self) -> Array:
        """Conditional mutual information I(x_j; y | x_i)."""
        triple = self.triple  # computed first, because ``joint`` reuses its counts
        given = self._coded.entropy_of(self._both) - self.pick_entropy
        return np.asarray(settled(self.joint - triple + given))

    @cached_property
    def together(self) -> Array:
        """Mutual information I(x_j, x_i; y) of both columns with the target."""
        triple = self.triple  # computed first, because ``joint`` reuses its counts
        return np.asarray(settled(self.joint + self._coded.entropy_of(self._target) - triple))

    def excess(self, alone: Array) -> Array:
        """Return I(x_j; x_i) - I(x_j; x_i | y) - I(x_j; y). ``alone`` is the last term."""
        # I(x_j; x_i) - I(x_j; x_i | y) = I(x_i; y) + I(x_j; y) - I(x_j, x_i; y)
        return self.relevance - self.together


class AdjustedPair(Pair):
    """Information terms corrected for chance, see :mod:`tamis.density.chance`.

    Each term is reduced by its expectation. For I(x_j; x_i) the expectation is over shuffled rows,
    for I(x_j; y | x_i) it is over rows shuffled within the levels of x_i. I(x_j, x_i; y) is
    computed as I(x_i; y) + I(x_j; y | x_i).
    """

    def __init__(self, coded: Any, target: Any, i: int, relevance: Array):
        super().__init__(coded, target, i)
        self._relevance = relevance

    @cached_property
    def shared(self) -> Array:
        """Mutual information I(x_j; x_i)."""
        expected = self._coded.chance_entropy(self._coded.column(self._i))
        return np.asarray(rounded(expected - self.joint))

    @property
    def relevance(self) -> float:
        """Mutual information I(x_i; y) of the picked column with the target."""
        return float(self._relevance[self._i])

    @cached_property
    def conditional(self) -> Array:
        """Conditional mutual information I(x_j; y | x_i)."""
        expected = self._coded.chance_entropy(self._target, self._coded.column(self._i))
        return np.asarray(rounded(expected - self.triple))

    @property
    def together(self) -> Array:
        """Mutual information I(x_j, x_i; y) of both columns with the target."""
        return self.relevance + self.conditional


class AvailablePair:
    """Information terms from the rows in which neither column i nor column j is missing.

    All entropies of a term are computed from these rows. The result is the term of :class:`Pair`
    for a table of only these rows, cut into the levels of the full table.
    """

    def __init__(self, coded: Any, target: Any, i: int, *, adjusted: bool = False):
        found: dict[str, list[Array]] = {name: [] for name in AXES}
        chance: dict[str, list[Array]] = {name: [] for name in INDEPENDENT} if adjusted else {}
        for counts in coded.available_tables(target, i):
            for name, axes in AXES.items():
                found[name].append(_entropies(counts, axes))
            for name in chance:
                chance[name].append(_expected(counts, name))
        self._of = {name: np.concatenate(parts) for name, parts in found.items()}
        self._chance = {name: np.concatenate(parts) for name, parts in chance.items()}

    @property
    def entropy(self) -> Array:
        """Entropy H(x_j)."""
        return self._of["j"]

    @property
    def pick_entropy(self) -> Array:
        """Entropy H(x_i) of the picked column."""
        return self._of["i"]

    @property
    def triple(self) -> Array:
        """Joint entropy H(x_j, x_i, y)."""
        return self._of["ijy"]

    @property
    def shared(self) -> Array:
        """Mutual information I(x_j; x_i)."""
        return self._information("ij", self._of["j"] + self._of["i"])

    @property
    def relevance(self) -> Array:
        """Mutual information I(x_i; y) of the picked column with the target."""
        return self._information("iy", self._of["i"] + self._of["y"])

    @property
    def conditional(self) -> Array:
        """Conditional mutual information I(x_j; y | x_i)."""
        return self._information("ijy", self._of["ij"] - self._of["i"] + self._of["iy"])

    @property
    def together(self) -> Array:
        """Mutual information I(x_j, x_i; y) of both columns with the target."""
        if self._chance:
            return self.relevance + self.conditional
        return self._information("ijy", self._of["ij"] + self._of["y"])

    def excess(self, alone: Array) -> Array:
        """Return the same as :meth:`Pair.excess`.

        ``alone`` is I(x_j; y), computed from all rows in which x_j is not missing.
        """
        own = self._information("jy", self._of["j"] + self._of["y"])
        return self.relevance + own - self.together - alone

    def _information(self, name: str, independent: Array) -> Array:
        """Return the joint entropy of independent variables minus the observed joint entropy.

        The former is ``independent`` or, if terms are corrected for chance, an expectation.
        """
        if self._chance:
            return np.asarray(rounded(self._chance[name] - self._of[name]))
        return np.asarray(settled(independent - self._of[name]))


#: Axes of each combination of variables in an array of counts, whose axes are (columns, levels of
#: x_i, levels of y, levels of x_j).
AXES = {"i": (1,), "y": (2,), "j": (3,), "ij": (1, 3), "iy": (1, 2), "jy": (2, 3), "ijy": (1, 2, 3)}
#: Number of rows up to which three margins fit into a single integer. Repeated margins are then
#: found, and computed only once.
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
