"""Reader of LightGBM models, from their text format."""

from itertools import pairwise
from typing import Any

import numpy as np

from tamis._arrays import Array, Mask
from tamis.response.trees.forest import (
    NOTHING,
    Categories,
    Integers,
    NotFollowed,
    Trees,
    category_sets,
    links_by_name,
)

LINKS = links_by_name({
    "logistic": "binary cross_entropy multiclassova",
    "softmax": "multiclass",
    "exponential": "poisson gamma tweedie",
    "identity": "regression regression_l1 huber fair quantile mape",
})  # fmt: skip
#: Bits of a node's decision type: the node tests a category set; missing values go left. The next
#: two bits encode which values are missing: none, 0 or NaN.
BY_SET, DEFAULT_LEFT = 1, 2


def read(fitted: Any) -> Trees:
    """Read the trees that ``predict`` uses: with early stopping, those up to the best iteration."""
    head, *texts = fitted.booster_.model_to_string().split("\nTree=")
    facts = _facts(head)
    objective, *options = facts.get("objective", "custom").split()
    link = LINKS.get(objective)
    if link is None:
        raise NotFollowed(f"its objective is {objective}")
    if "sqrt" in options:
        link = "signed square"
    slopes = [float(option.partition(":")[2]) for option in options if "sigmoid:" in option]
    n_outputs = int(facts["num_tree_per_iteration"])
    trees = [_facts(text.split("end of trees")[0]) for text in texts]
    n_columns = int(facts["max_feature_idx"]) + 1
    nodes = _nodes(trees)
    kinds = _missing_kinds(nodes, n_columns)
    sets, members, categories = _categories(nodes, trees)
    averaged = "average_output" in facts
    return Trees(
        n_columns=n_columns, starts=nodes["starts"], left=nodes["left"], right=nodes["right"],
        column=nodes["column"], threshold=_outside_zero(nodes["threshold"]),
        values=nodes["values"][:, None],
        outputs=np.tile(np.arange(n_outputs), len(trees) // n_outputs),
        bias=np.zeros(n_outputs), link=link,
        divisor=len(trees) // n_outputs if averaged else 1.0,
        slope=slopes[0] if slopes else 1.0, missing_left=(nodes["kind"] & DEFAULT_LEFT) > 0,
        nan_is_zero=kinds == 0, zero_is_missing=kinds == 1,
        sets=sets, members=members, categories=categories,
    )  # fmt: skip


def _facts(text: str) -> dict[str, str]:
    """Parse lines of the form name=value. A line without a value is a flag."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {name: value for name, _, value in pairs if name}


def _outside_zero(thresholds: Array) -> Array:
    """Move thresholds near 0 outwards, because LightGBM treats values near 0 as 0."""
    below = (thresholds >= -NOTHING) & (thresholds < 0)
    above = (thresholds >= 0) & (thresholds < NOTHING)
    return np.where(below, np.nextafter(-NOTHING, -1), np.where(above, NOTHING, thresholds))


def _nodes(trees: list[dict[str, str]]) -> dict[str, Any]:
    """Return the nodes of all trees, with the inner nodes of each tree first."""
    if any(tree.get("is_linear", "0") != "0" for tree in trees):
        raise NotFollowed("its leaves are linear models")

    def numbers(name: str, dtype: Any) -> Any:
        # parse all trees at once, which is faster than one numpy call per tree
        return np.array(" ".join(tree.get(name, "") for tree in trees).split(), dtype=dtype)

    n_leaves = np.array([int(tree["num_leaves"]) for tree in trees])
    n_inner = n_leaves - 1
    sizes = n_leaves + n_inner
    starts = np.r_[0, np.cumsum(sizes)]
    within = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
    inner = within < np.repeat(n_inner, sizes)

    def spread(values: Any, at: Any, empty: float) -> Any:
        found = np.full(len(inner), empty, dtype=values.dtype)
        found[at] = values
        return found

    def child(name: str) -> Integers:
        below = numbers(name, np.int32)  # a leaf is given by the bitwise inverse of its index
        leaf = np.repeat(n_inner, n_inner) + ~below
        return spread(np.where(below < 0, leaf, below).astype(np.int32), inner, -1)

    return {
        "starts": starts,
        "left": child("left_child"),
        "right": child("right_child"),
        "column": spread(numbers("split_feature", np.int32), inner, 0),
        "threshold": spread(numbers("threshold", np.float64), inner, 0.0),
        "kind": spread(numbers("decision_type", np.int64), inner, 0),
        "values": spread(numbers("leaf_value", np.float64), ~inner, 0.0),
    }


def _missing_kinds(nodes: dict[str, Any], n_columns: int) -> Integers:
    """Return which values of each column are missing: none (0), zeros and NaN (1), or NaN (2)."""
    found = np.full(n_columns, 2)
    inner = (nodes["left"] >= 0) & ((nodes["kind"] & BY_SET) == 0)
    columns, kinds = nodes["column"][inner], nodes["kind"][inner] >> 2 & 3
    found[columns] = kinds
    if (found[columns] != kinds).any():
        raise NotFollowed("nodes of one column treat missing values differently")
    return found


def _categories(
    nodes: dict[str, Any], trees: list[dict[str, str]]
) -> tuple[Integers | None, list[Mask], dict[int, Categories]]:
    """Return the category sets of the nodes. Values outside a node's set go right."""
    by_set = np.flatnonzero((nodes["left"] >= 0) & ((nodes["kind"] & BY_SET) > 0))
    if not len(by_set):
        return None, [], {}
    bitsets = [_bitsets(tree) for tree in trees]
    tree = np.searchsorted(nodes["starts"], by_set, side="right") - 1
    named = [
        (int(node), bitsets[t][int(nodes["threshold"][node])])
        for t, node in zip(tree, by_set, strict=True)
    ]
    return category_sets(nodes["column"], named)


def _bitsets(tree: dict[str, str]) -> list[Mask]:
    """Return the category sets of a tree. The threshold of a node is the index of its set."""
    bounds = np.array(tree.get("cat_boundaries", "").split(), dtype=np.int64)
    words = np.array(tree.get("cat_threshold", "").split(), dtype=np.uint32)
    return [
        np.unpackbits(words[first:last].view(np.uint8), bitorder="little").astype(bool)
        for first, last in pairwise(bounds)
    ]
