"""CatBoost's classifier and regressor, from the file it writes; columns of numbers only."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tamis._arrays import Array
from tamis.response.trees.forest import NotFollowed, Trees, join_trees, links_by_name

LINKS = links_by_name({
    "logistic": "Logloss CrossEntropy MultiClassOneVsAll",
    "softmax": "MultiClass",
    "exponential": "Poisson Tweedie",
    "identity": "RMSE MAE Quantile MAPE Huber Expectile LogCosh Lq",
})  # fmt: skip


def read(fitted: Any) -> Trees:
    """Symmetric trees, a test for each level; and trees of any other shape."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        fitted.save_model(str(path), format="json")
        model = json.loads(path.read_text())
    loss = model["model_info"]["params"]["loss_function"]["type"]
    if loss not in LINKS:
        raise NotFollowed(f"its loss is {loss}")
    scale, bias = model["scale_and_bias"]
    if model["features_info"].get("categorical_features"):
        raise NotFollowed("it counts categories")
    columns = model["features_info"]["float_features"]
    width = len(bias)
    if "oblivious_trees" in model:
        parts = [_read_symmetric(tree, width) for tree in model["oblivious_trees"]]
    else:
        parts = [_read_branched(tree, width) for tree in model["trees"]]
    nodes = join_trees(parts)
    flat = np.array([column["flat_feature_index"] for column in columns])
    above = np.array([column["nan_value_treatment"] == "AsTrue" for column in columns])
    return Trees(
        n_columns=fitted.n_features_in_, starts=nodes["starts"],
        left=nodes["left"].astype(np.int32), right=nodes["right"].astype(np.int32),
        column=flat[nodes["column"]].astype(np.int32), threshold=nodes["threshold"],
        values=nodes["values"] * scale, outputs=np.zeros(len(parts), dtype=np.int64),
        bias=np.array(bias, dtype=np.float64), link=LINKS[loss], single=True,
        missing_left=~above[nodes["column"]],
    )  # fmt: skip


def _read_split(split: dict[str, Any]) -> tuple[int, float]:
    """Column among those of numbers, and border: above it goes right."""
    if split["split_type"] != "FloatFeature":
        raise NotFollowed("it counts categories")
    return split["float_feature_index"], split["border"]


def _read_symmetric(tree: dict[str, Any], width: int) -> dict[str, Array]:
    """A whole binary tree; bit q of a leaf's index is the answer to the q-th test."""
    tests = [_read_split(split) for split in tree["splits"]]
    depth = len(tests)
    n_inner, n = 2**depth - 1, 2 ** (depth + 1) - 1
    node = np.arange(n)
    inner = node < n_inner
    level = np.repeat(np.arange(depth + 1), 2 ** np.arange(depth + 1))
    tested = np.array([*tests, (0, 0.0)])[level]
    # the path to the i-th leaf from the left reads the bits of its index from the lowest on
    path = np.zeros(2**depth, dtype=int)
    for q in range(depth):
        path |= (np.arange(2**depth) >> (depth - 1 - q) & 1) << q
    leaves = np.array(tree["leaf_values"], dtype=np.float64).reshape(-1, width)
    return {
        "left": np.where(inner, 2 * node + 1, -1),
        "right": np.where(inner, 2 * node + 2, -1),
        "column": tested[:, 0].astype(int),
        "threshold": tested[:, 1],
        "values": np.r_[np.zeros((n_inner, width)), leaves[path]],
    }


def _read_branched(tree: dict[str, Any], width: int) -> dict[str, Any]:
    """A tree of tests within tests, by a list of what is still to be written down."""
    nodes: list[list[Any]] = []
    waiting: list[tuple[dict[str, Any], int, int]] = [(tree, -1, 0)]
    while waiting:
        branch, parent, side = waiting.pop()
        if parent >= 0:
            nodes[parent][side] = len(nodes)
        if "split" in branch:
            waiting += [(branch["left"], len(nodes), 0), (branch["right"], len(nodes), 1)]
            nodes.append([-1, -1, *_read_split(branch["split"]), np.zeros(width)])
        else:
            nodes.append([-1, -1, 0, 0.0, np.broadcast_to(branch["value"], (width,))])
    left, right, column, threshold, values = zip(*nodes, strict=True)
    return {
        "left": np.array(left), "right": np.array(right), "column": np.array(column),
        "threshold": np.array(threshold), "values": np.array(values, dtype=np.float64),
    }  # fmt: skip
