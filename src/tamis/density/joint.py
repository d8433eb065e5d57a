"""What two columns and the target tell of each other, for all columns beside one of them."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis.density.chance import expected_n_log_n
from tamis.density.discrete import rounded, settled


class Pair:
    """Every column beside one chosen column i: the pairwise terms that criteria are made of."""

    def __init__(self, coded: Any, target: Any, i: int):
        self._coded, self._target, self._i = coded, target, i
        self.entropy = coded.entropy
        self.pick_entropy = float(coded.entropy[i])

    @cached_property
    def joint(self) -> Array:
        """H(x_j, x_i)."""
        return np.asarray(self._coded.joint_with(self._i))

    @cached_property
    def triple(self) -> Array:
        """H(x_j, x_i, y)."""
        return np.asarray(self._coded.joint_entropy(self._both))

    @cached_property
    def _both(self) -> Any:
        """The pair (x_i, y) as one variable."""
        return self._coded.crossed(self._coded.column(self._i), self._target)

    @cached_property
    def shared(self) -> Array:
        """I(x_j; x_i)."""
        return settled(self.entropy + self.pick_entropy - self.joint)

    @cached_property
    def relevance(self) -> float:
        """I(x_i; y)."""
        entropy_of = self._coded.entropy_of
        target = entropy_of(self._target)
        return float(settled(self.pick_entropy + target - entropy_of(self._both)))

    @cached_property
    def conditional(self) -> Array:
        """I(x_j; y | x_i)."""
        triple = self.triple  # first: counts with the target have those without in them
        told = self.joint - self.pick_entropy - triple + self._coded.entropy_of(self._both)
        return np.asarray(settled(told))

    @cached_property
    def together(self) -> Array:
        """I(x_j, x_i; y)."""
        triple = self.triple
        return np.asarray(settled(self.joint + self._coded.entropy_of(self._target) - triple))

    def excess(self, alone: Array) -> Array:
        """I(x_j; x_i) - I(x_j; x_i | y) - I(x_j; y), of which the last is given."""
        # I(x_j; x_i) - I(x_j; x_i | y) = I(x_i; y) + I(x_j; y) - I(x_j, x_i; y)
        return self.relevance - self.together


class AdjustedPair(Pair):
    """The same terms, less what is expected of them if the margins are all that is given.

    Information of two columns is compared with that of shuffled rows, what a column tells beside
    the chosen one with that of rows shuffled within its levels; what both tell together is the sum
    of what the chosen one tells and of that.
    """

    def __init__(self, coded: Any, target: Any, i: int, relevance: Array):
        super().__init__(coded, target, i)
        self._told = relevance

    @cached_property
    def shared(self) -> Array:
        """I(x_j; x_i)."""
        expected = self._coded.chance_entropy(self._coded.column(self._i))
        return np.asarray(rounded(expected - self.joint))

    @property
    def relevance(self) -> float:
        """I(x_i; y)."""
        return float(self._told[self._i])

    @cached_property
    def conditional(self) -> Array:
        """I(x_j; y | x_i)."""
        expected = self._coded.chance_entropy(self._target, self._coded.column(self._i))
        return np.asarray(rounded(expected - self.triple))

    @property
    def together(self) -> Array:
        """I(x_j, x_i; y)."""
        return self.relevance + self.conditional


class AvailablePair:
    """The same terms, each column's from the rows in which it and column i are there.

    All entropies of a term are of these rows, so that it is what :class:`Pair` finds in the table
    of the rows alone, but for the levels, which are those of all rows.
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
        """H(x_j)."""
        return self._of["j"]

    @property
    def pick_entropy(self) -> Array:
        """H(x_i)."""
        return self._of["i"]

    @property
    def triple(self) -> Array:
        """H(x_j, x_i, y)."""
        return self._of["ijy"]

    @property
    def shared(self) -> Array:
        """I(x_j; x_i)."""
        return self._told("ij", self._of["j"] + self._of["i"])

    @property
    def relevance(self) -> Array:
        """I(x_i; y)."""
        return self._told("iy", self._of["i"] + self._of["y"])

    @property
    def conditional(self) -> Array:
        """I(x_j; y | x_i)."""
        return self._told("ijy", self._of["ij"] - self._of["i"] + self._of["iy"])

    @property
    def together(self) -> Array:
        """I(x_j, x_i; y)."""
        if self._chance:
            return self.relevance + self.conditional
        return self._told("ijy", self._of["ij"] + self._of["y"])

    def excess(self, alone: Array) -> Array:
        """As in :class:`Pair`; the I(x_j; y) that is given is of all rows with x_j."""
        own = self._told("jy", self._of["j"] + self._of["y"])
        return self.relevance + own - self.together - alone

    def _told(self, name: str, independent: Array) -> Array:
        """Information: the entropy without it, or what is expected of that, less the joint one."""
        if self._chance:
            return np.asarray(rounded(self._chance[name] - self._of[name]))
        return np.asarray(settled(independent - self._of[name]))


#: Axes of a table (columns, levels of x_i, of y, of x_j) that the entropy of some of them needs.
AXES = {"i": (1,), "y": (2,), "j": (3,), "ij": (1, 3), "iy": (1, 2), "jy": (2, 3), "ijy": (1, 2, 3)}
#: Rows up to which the margins of many tables are the same, and three of them are one number.
ALIKE = 1 << 21
#: Axes of two variables, and of what is given, in the information that ends with a joint entropy.
INDEPENDENT = {"ij": (3, 1, ()), "iy": (1, 2, ()), "jy": (3, 2, ()), "ijy": (3, 2, (1,))}


def available_relevance(coded: Any, target: Any, *, adjusted: bool = False) -> tuple[Array, Array]:
    """I(x_j; y) and H(x_j), each from the rows in which x_j is there."""
    told, own = [], []
    for counts in coded.available_tables(target):
        y, x, both = (_entropies(counts, AXES[name]) for name in ("y", "j", "jy"))
        told.append(rounded(_expected(counts, "jy") - both) if adjusted else settled(x + y - both))
        own.append(x)
    return np.concatenate(told), np.concatenate(own)


def _entropies(counts: NDArray[np.intp], axes: tuple[int, ...]) -> Array:
    """Entropy over some axes of each table of counts, in nats; that of no rows is 0."""
    others = tuple(axis for axis in range(1, counts.ndim) if axis not in axes)
    margin = counts.sum(axis=others).reshape(len(counts), -1).astype(float)
    return _from_sums(counts, (margin * np.log(np.maximum(margin, 1.0))).sum(axis=1))


def _expected(counts: NDArray[np.intp], name: str) -> Array:
    """Expected joint entropy of each table of counts if its margins are all that is given."""
    one, other, given = INDEPENDENT[name]
    kept = {one, other, *given}
    table = counts.sum(axis=tuple({1, 2, 3} - kept), keepdims=True)
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
