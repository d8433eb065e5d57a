"""Tree ensembles of any library as flat arrays, and model outputs from sums of leaf values."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from tamis._arrays import Array, Mask

Integers = NDArray[Any]
#: Largest absolute value that LightGBM treats as 0.
NOTHING = float(np.float32(1e-35))


class NotFollowed(Exception):
    """Error for a tree model that the engine does not support. The message gives the reason."""


class Categories(NamedTuple):
    """Categories of a column that occurred in the training rows."""

    values: Array  # in increasing order
    truncated: bool  # whether the library truncates values to integers


@dataclass
class Trees:
    """Nodes of all trees of an ensemble, in one array for each property.

    Children are counted from the root of their tree. A row goes left if its value is at most the
    threshold. Its raw outputs are (bias + sum of its leaf values) / divisor.
    """

    n_columns: int
    starts: Integers  # first node of each tree, followed by the number of nodes
    left: Integers  # -1 at a leaf
    right: Integers
    column: Integers
    threshold: Array
    values: Array  # leaf values, of shape (nodes, width)
    outputs: Integers  # for each tree, the first output to which its values are added
    bias: Array
    link: str
    divisor: float = 1.0
    #: Factor by which raw outputs are multiplied before the link function.
    slope: float = 1.0
    #: Whether the model casts values to 32 bits before it compares them with thresholds.
    single: bool = False
    #: Largest relative rounding error of the model's outputs.
    tolerance: float = 1e-9
    missing_left: Mask | None = None
    #: Columns in which NaN is treated as 0, and columns in which 0 is treated as missing.
    nan_is_zero: Mask | None = None
    zero_is_missing: Mask | None = None
    #: For each node, the index of its category set, whose members go left; -1 if the node has a
    #: threshold.
    sets: Integers | None = None
    #: Mask of the members of each set: first the categories of its column, then one entry for all
    #: other values, then one for NaN.
    members: list[Mask] = field(default_factory=list)
    categories: dict[int, Categories] = field(default_factory=dict)

    @property
    def n_outputs(self) -> int:
        """Number of outputs of the ensemble."""
        return len(self.bias)


def join_trees(parts: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Concatenate the arrays of all trees, and add the first node of each tree as "starts"."""
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    found["starts"] = np.cumsum([0, *(len(part["left"]) for part in parts)])
    return found


def category_sets(
    column: Integers, named: list[tuple[int, Mask]]
) -> tuple[Integers, list[Mask], dict[int, Categories]]:
    """Return the set of each node, the members of each set, and the categories of each column.

    Each item of ``named`` is a node and a mask of the categories 0, 1, ... in its set. Other values
    and NaN belong to no set.
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
    """Return a mapping from objective to link, given the objectives of each link as one string."""
    return {name: link for link, listed in names.items() for name in listed.split()}


def _logistic(raw: Array) -> Array:
    """Return 1 / (1 + exp(-raw)). Unlike scipy's function, numpy's exponential is vectorised."""
    found = np.negative(raw)
    with np.errstate(over="ignore"):  # the exponential may be infinite; the result is then 0
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
#: Leaf values that are integer multiples of this number (such as 0 and 1) are summed without
#: rounding errors.
GRAIN = 2.0**-20


class Answer:
    """Function from sums of leaf values to the outputs of one method of a model.

    ``method`` is "predict", "predict_proba", "decision_function", or "codes" for the predicted
    class. With two classes the only output belongs to the second class. With more classes there is
    one output per class.
    """

    def __init__(self, trees: Trees, method: str):
        self.trees, self.method = trees, method
        # sums without rounding errors have the same ties as in the model
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
        """Return a mask of the rows whose predicted class depends on rounding errors."""
        if not self.rounds:
            return np.zeros(sums.shape[:-1], dtype=bool)
        raw = sums / self.trees.divisor
        if raw.shape[-1] == 1:
            lead, size = raw[..., 0] - self._border, np.abs(raw[..., 0])
        else:
            top = np.partition(raw, -2, axis=-1)
            lead, size = top[..., -1] - top[..., -2], np.abs(top[..., -1])
        return np.abs(lead) <= self.trees.tolerance * np.maximum(size, 1.0)
