"""Reader of CatBoost models with numeric columns, from the JSON file that CatBoost writes."""

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
    """Read the trees of a CatBoost model: symmetric ones with one test per level, or any others."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        fitted.save_model(str(path), format="json")
        model = json.loads(path.read_text(encoding="utf-8"))
    loss = model["model_info"]["params"]["loss_function"]["type"]
    if loss not in LINKS:
        raise NotFollowed(f"its loss is {loss}")
    scale, bias = model["scale_and_bias"]
    if model["features_info"].get("categorical_features"):
        raise NotFollowed("it has categorical columns")
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
    """Return the numeric column of a split and its border. Rows above the border go right."""
    if split["split_type"] != "FloatFeature":
        raise NotFollowed("it has categorical columns")
    return split["float_feature_index"], split["border"]


def _read_symmetric(tree: dict[str, Any], width: int) -> dict[str, Array]:
    """Read a complete binary tree, in which bit q of a leaf's index is the result of test q."""
    tests = [_read_split(split) for split in tree["splits"]]
    depth = len(tests)
    n_inner, n = 2**depth - 1, 2 ** (depth + 1) - 1
    node = np.arange(n)
    inner = node < n_inner
    level = np.repeat(np.arange(depth + 1), 2 ** np.arange(depth + 1))
    tested = np.array([*tests, (0, 0.0)])[level]
    # the index of the i-th leaf from the left has the bits of i in reverse order
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
    """Read a tree given as nested dictionaries, without recursion."""
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
