"""Readers of decision trees, forests and boosting models of scikit-learn."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask
from tamis.response.trees.forest import Categories, NotFollowed, Trees

#: Link functions of histogram boosting, by loss.
INVERSES = {"poisson": "exponential", "gamma": "exponential"}


def read_forest(fitted: Any) -> Trees:
    """Read a forest, whose output is the mean of its trees, or a single tree."""
    if fitted.n_outputs_ != 1:
        raise NotFollowed(f"it predicts {fitted.n_outputs_} targets at once")
    trees = [member.tree_ for member in getattr(fitted, "estimators_", [fitted])]
    leaves = np.concatenate([tree.value[:, 0] for tree in trees])
    if leaves.shape[1] == 2:  # with two classes, the probability of the second suffices
        leaves = leaves[:, 1:]
    return Trees(
        values=leaves, outputs=np.zeros(len(trees), dtype=np.int64),
        bias=np.zeros(leaves.shape[1]), link="identity", divisor=len(trees),
        **_nodes(trees, fitted.n_features_in_),
    )  # fmt: skip


def _nodes(trees: list[Any], n_columns: int) -> dict[str, Any]:
    def gathered(name: str, dtype: Any) -> NDArray[Any]:
        return np.concatenate([getattr(tree, name) for tree in trees]).astype(dtype)

    return {
        "n_columns": n_columns,
        "starts": np.cumsum([0, *(tree.node_count for tree in trees)]),
        "left": gathered("children_left", np.int32),
        "right": gathered("children_right", np.int32),
        "column": gathered("feature", np.int32),
        "threshold": gathered("threshold", np.float64),
        "missing_left": gathered("missing_go_to_left", bool),
        "single": True,
    }


def read_boosting(fitted: Any) -> Trees:
    """Read a gradient boosting model, which has one tree per stage and output."""
    start = fitted.init_
    if not isinstance(start, str) and type(start).__name__ not in (
        "DummyClassifier",
        "DummyRegressor",
    ):
        raise NotFollowed(f"it starts from another model, {type(start).__name__}")
    n_stages, n_outputs = fitted.estimators_.shape
    trees = [member.tree_ for member in fitted.estimators_.ravel()]
    nothing = np.zeros((1, fitted.n_features_in_), dtype=np.float32)
    link = "identity"
    if hasattr(fitted, "classes_"):
        link = "logistic" if n_outputs == 1 else "softmax"
    return Trees(
        values=np.concatenate([tree.value[:, 0] for tree in trees]) * fitted.learning_rate,
        outputs=np.tile(np.arange(n_outputs), n_stages),
        bias=fitted._raw_predict_init(nothing)[0], link=link,
        slope=2.0 if fitted.loss == "exponential" else 1.0,
        **{**_nodes(trees, fitted.n_features_in_), "missing_left": None},
    )  # fmt: skip


def read_histogram_boosting(fitted: Any) -> Trees:
    """Read a histogram gradient boosting model, including missing values and categories."""
    predictors = [tree for stage in fitted._predictors for tree in stage]
    n_outputs = fitted.n_trees_per_iteration_
    nodes = np.concatenate([tree.nodes for tree in predictors])
    leaf = nodes["is_leaf"].astype(bool)
    order = _column_order(fitted)
    link = INVERSES.get(getattr(fitted, "loss", ""), "identity")
    if hasattr(fitted, "classes_"):
        link = "logistic" if n_outputs == 1 else "softmax"
    categories, sets, members = _categories(fitted, predictors, nodes, order)
    return Trees(
        n_columns=fitted.n_features_in_,
        starts=np.cumsum([0, *(len(tree.nodes) for tree in predictors)]),
        left=np.where(leaf, -1, nodes["left"].astype(np.int32)),
        right=np.where(leaf, -1, nodes["right"].astype(np.int32)),
        column=order[nodes["feature_idx"]].astype(np.int32),
        threshold=nodes["num_threshold"].astype(np.float64), values=nodes["value"][:, None],
        outputs=np.tile(np.arange(n_outputs), len(fitted._predictors)),
        bias=np.ravel(fitted._baseline_prediction).astype(np.float64), link=link,
        missing_left=nodes["missing_go_to_left"].astype(bool),
        sets=sets, members=members, categories=categories,
    )  # fmt: skip


def _column_order(fitted: Any) -> NDArray[np.intp]:
    """Return the table column of each internal column. Internally, categories come first."""
    named = fitted.is_categorical_
    if named is None:
        return np.arange(fitted.n_features_in_)
    return np.r_[np.flatnonzero(named), np.flatnonzero(~named)]


def _categories(
    fitted: Any, predictors: list[Any], nodes: NDArray[Any], order: NDArray[np.intp]
) -> tuple[dict[int, Categories], NDArray[Any] | None, list[Mask]]:
    """Return the categories of each column, the set of each node, and the members of each set.

    Members of a node's set go left, and other known categories go right. Unknown values go the same
    way as missing values.
    """
    if fitted.is_categorical_ is None:
        return {}, None, []
    encoder = fitted._preprocessor.named_transformers_["encoder"]
    found: dict[int, Categories] = {}
    for column, values in zip(order, encoder.categories_, strict=False):
        if values.dtype.kind not in "iuf":
            raise NotFollowed("its categories are not numeric")
        known: Array = np.asarray(values, dtype=np.float64)
        found[int(column)] = Categories(known[~np.isnan(known)], truncated=False)
    sets = np.full(len(nodes), -1, dtype=np.int64)
    members: list[Mask] = []
    bitsets = np.concatenate([tree.raw_left_cat_bitsets for tree in predictors])
    sizes = [len(tree.raw_left_cat_bitsets) for tree in predictors]
    first = np.repeat(np.r_[0, np.cumsum(sizes)[:-1]], [len(tree.nodes) for tree in predictors])
    for node in np.flatnonzero(
        nodes["is_categorical"].astype(bool) & ~nodes["is_leaf"].astype(bool)
    ):
        bits = bitsets[first[node] + nodes["bitset_idx"][node]]
        n = len(found[int(order[nodes["feature_idx"][node]])].values)
        inside = np.unpackbits(bits.view(np.uint8), bitorder="little")[:n].astype(bool)
        missing_left = bool(nodes["missing_go_to_left"][node])
        sets[node] = len(members)
        members.append(np.r_[inside, missing_left, missing_left])
    return found, sets, members
