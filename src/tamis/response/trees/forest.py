"""Trees of any library as flat arrays, and the outputs that a model makes of their sums."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from tamis._arrays import Array, Mask

Integers = NDArray[Any]
#: Up to this size LightGBM takes a value for 0.
NOTHING = float(np.float32(1e-35))


class NotFollowed(Exception):
    """Why a tree model must be asked by altered copies of the rows."""


class Categories(NamedTuple):
    """Values of a column that tests can name; any other value is one more, NaN the last."""

    values: Array  # rising
    truncated: bool  # whether a library cuts decimals off first


@dataclass
class Trees:
    """All nodes, tree after tree; children are counted from the root of their tree.

    A row goes left where its value, cast, is at most the threshold. Its raw outputs are the bias
    and the sum of its leaves, divided by the divisor.
    """

    n_columns: int
    starts: Integers  # of each tree, and the end
    left: Integers  # -1 at a leaf
    right: Integers
    column: Integers
    threshold: Array
    values: Array  # (nodes, width)
    outputs: Integers  # the first output that each tree adds to
    bias: Array
    link: str
    divisor: float = 1.0
    #: Factor on raw outputs before the logistic function.
    slope: float = 1.0
    #: Whether values are cast to 32 bits before they are compared.
    single: bool = False
    #: Largest relative difference from the model's own outputs that is rounding.
    tolerance: float = 1e-9
    missing_left: Mask | None = None
    #: Columns where NaN is a 0, and those where a 0 is missing like NaN.
    nan_is_zero: Mask | None = None
    zero_is_missing: Mask | None = None
    #: For each node which set sends its members left, -1 where a threshold decides.
    sets: Integers | None = None
    #: Members of each set among the categories of its column, then other values, then NaN.
    members: list[Mask] = field(default_factory=list)
    categories: dict[int, Categories] = field(default_factory=dict)

    @property
    def n_outputs(self) -> int:
        """Outputs of a row."""
        return len(self.bias)


def join_trees(parts: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Nodes of all trees, and where each tree starts, from the arrays of each."""
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    found["starts"] = np.cumsum([0, *(len(part["left"]) for part in parts)])
    return found


def category_sets(
    column: Integers, named: list[tuple[int, Mask]]
) -> tuple[Integers, list[Mask], dict[int, Categories]]:
    """Sets of nodes over all categories 0, 1, ... that any set of the column names.

    ``named`` are nodes, and which of the first categories are in their sets. Other values and NaN
    are in none.
    """
    sizes: dict[int, int] = {}
    for node, inside in named:
        sizes[int(column[node])] = max(sizes.get(int(column[node]), 0), len(inside))
    sets = np.full(len(column), -1)
    sets[[node for node, _ in named]] = np.arange(len(named))
    members = [
        np.pad(inside, (0, sizes[int(column[node])] + 2 - len(inside))) for node, inside in named
    ]
    known = {c: Categories(np.arange(float(n)), truncated=True) for c, n in sizes.items()}
    return sets, members, known


def links_by_name(names: dict[str, str]) -> dict[str, str]:
    """The link of each objective, from the names of the objectives of each link."""
    return {name: link for link, listed in names.items() for name in listed.split()}


def _logistic(raw: Array) -> Array:
    """1 / (1 + exp(-raw)); numpy's exponential is vectorised, scipy's logistic function is not."""
    found = np.negative(raw)
    with np.errstate(over="ignore"):  # the answer is 0 there
        np.exp(found, out=found)
    found += 1
    return np.divide(1, found, out=found)


LINKS: dict[str, Callable[[Array], Array]] = {
    "identity": lambda raw: raw,
    "logistic": _logistic,
    "softmax": lambda raw: softmax(raw, axis=-1),
    "exponential": np.exp,
    "signed square": lambda raw: np.sign(raw) * raw**2,
}
#: Leaves that are whole multiples of this (as 0 and 1 are) have sums without rounding.
GRAIN = 2.0**-20


class Answer:
    """What one method of a model gives for rows with some sums.

    ``method`` is "predict", "predict_proba" (of two classes the second alone), "decision_function",
    or "codes": the class, of two classes 1 where it is the second, of more one column for each.
    """

    def __init__(self, trees: Trees, method: str):
        self.trees, self.method = trees, method
        # sums of whole multiples are exact, and a tie is the model's own tie
        exact = trees.link == "identity" and bool((trees.values % GRAIN == 0).all())
        self.rounds = method == "codes" and not exact

    def __call__(self, sums: Array) -> Array:
        raw = sums if self.trees.divisor == 1 else sums / self.trees.divisor
        if self.method == "decision_function":
            return raw
        if self.method == "codes":
            return self._codes(raw)
        return LINKS[self.trees.link](raw if self.trees.slope == 1 else raw * self.trees.slope)

    @property
    def _border(self) -> float:
        return 0.5 if self.trees.link == "identity" else 0.0

    def _codes(self, raw: Array) -> Array:
        if raw.shape[-1] == 1:
            return (raw > self._border).astype(np.float64)
        return np.eye(raw.shape[-1])[raw.argmax(axis=-1)]

    def doubtful(self, sums: Array) -> Mask:
        """Rows whose class hangs on the rounding of their sums: the model itself must say."""
        if not self.rounds:
            return np.zeros(sums.shape[:-1], dtype=bool)
        raw = sums / self.trees.divisor
        if raw.shape[-1] == 1:
            lead, size = raw[..., 0] - self._border, np.abs(raw[..., 0])
        else:
            top = np.partition(raw, -2, axis=-1)
            lead, size = top[..., -1] - top[..., -2], np.abs(top[..., -1])
        return np.abs(lead) <= self.trees.tolerance * np.maximum(size, 1.0)
