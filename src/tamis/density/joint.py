"""What two columns and the target tell of each other, for all columns beside one of them."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis.density.discrete import settled


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


class AvailablePair:
    """The same terms, each column's from the rows in which it and column i are there.

    All entropies of a term are of these rows, so that it is what :class:`Pair` finds in the table
    of the rows alone, but for the levels, which are those of all rows.
    """

    def __init__(self, coded: Any, target: Any, i: int):
        found: dict[str, list[Array]] = {name: [] for name in AXES}
        for counts in coded.available_tables(target, i):
            for name, axes in AXES.items():
                found[name].append(_entropies(counts, axes))
        self._of = {name: np.concatenate(parts) for name, parts in found.items()}

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
        return settled(self._of["j"] + self._of["i"] - self._of["ij"])

    @property
    def relevance(self) -> Array:
        """I(x_i; y)."""
        return settled(self._of["i"] + self._of["y"] - self._of["iy"])

    @property
    def conditional(self) -> Array:
        """I(x_j; y | x_i)."""
        return settled(self._of["ij"] - self._of["i"] - self._of["ijy"] + self._of["iy"])

    @property
    def together(self) -> Array:
        """I(x_j, x_i; y)."""
        return settled(self._of["ij"] + self._of["y"] - self._of["ijy"])

    def excess(self, alone: Array) -> Array:
        """As in :class:`Pair`; the I(x_j; y) that is given is of all rows with x_j."""
        own = settled(self._of["j"] + self._of["y"] - self._of["jy"])
        return self.relevance + own - self.together - alone


#: Axes of a table (columns, levels of x_i, of y, of x_j) that the entropy of some of them needs.
AXES = {"i": (1,), "y": (2,), "j": (3,), "ij": (1, 3), "iy": (1, 2), "jy": (2, 3), "ijy": (1, 2, 3)}


def available_relevance(coded: Any, target: Any) -> tuple[Array, Array]:
    """I(x_j; y) and H(x_j), each from the rows in which x_j is there."""
    told, own = [], []
    for counts in coded.available_tables(target):
        y, x, both = (_entropies(counts, AXES[name]) for name in ("y", "j", "jy"))
        told.append(settled(x + y - both))
        own.append(x)
    return np.concatenate(told), np.concatenate(own)


def _entropies(counts: NDArray[np.intp], axes: tuple[int, ...]) -> Array:
    """Entropy over some axes of each table of counts, in nats; that of no rows is 0."""
    others = tuple(axis for axis in range(1, counts.ndim) if axis not in axes)
    margin = counts.sum(axis=others).reshape(len(counts), -1).astype(float)
    total = np.maximum(margin.sum(axis=1), 1.0)
    sums: Any = (margin * np.log(np.maximum(margin, 1.0))).sum(axis=1)
    return np.asarray(settled(np.log(total) - sums / total))
