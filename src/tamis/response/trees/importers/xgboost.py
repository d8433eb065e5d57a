"""XGBoost's classifiers and regressors, from the binary form of the model."""

from typing import Any

import numpy as np

from tamis._arrays import Mask
from tamis.response.trees.forest import Categories, Integers, NotFollowed, Trees, joined
from tamis.response.trees.importers.ubjson import decoded

#: What objectives apply to raw outputs.
LINKS = {
    "binary:logistic": "logistic",
    "reg:logistic": "logistic",
    "multi:softprob": "softmax",
    "multi:softmax": "softmax",
    "count:poisson": "exponential",
    "reg:gamma": "exponential",
    "reg:tweedie": "exponential",
    "reg:squarederror": "identity",
    "reg:squaredlogerror": "identity",
    "reg:pseudohubererror": "identity",
    "reg:absoluteerror": "identity",
    "reg:quantileerror": "identity",
}


def read(fitted: Any) -> Trees:
    """The trees that ``predict`` uses: up to the best iteration where training stopped early."""
    if not np.isnan(fitted.missing):
        raise NotFollowed(f"it takes {fitted.missing} for missing")
    learner = decoded(bytes(fitted.get_booster().save_raw("ubj")))["learner"]
    booster = learner["gradient_booster"]
    if booster["name"] not in ("gbtree", "dart"):
        raise NotFollowed(f"its booster is {booster['name']}")
    objective = learner["objective"]["name"]
    if objective not in LINKS:
        raise NotFollowed(f"its objective is {objective}")
    model = booster["gbtree"]["model"] if booster["name"] == "dart" else booster["model"]
    n_trees = _n_trees(fitted, model)
    nodes = joined([_tree(tree) for tree in model["trees"][:n_trees]])
    leaf = nodes["left"] < 0
    weights = np.asarray(booster.get("weight_drop", np.ones(n_trees)))[:n_trees]
    sets, members, categories = _categories(model["trees"][:n_trees], nodes)
    border = nodes["threshold"].astype(np.float32)
    values = np.where(leaf, border, 0.0) * np.repeat(weights, np.diff(nodes["starts"]))
    return Trees(
        n_columns=int(learner["learner_model_param"]["num_feature"]), starts=nodes["starts"],
        left=nodes["left"], right=nodes["right"], column=nodes["column"],
        # less than a border is at most the number before it
        threshold=np.nextafter(border, np.float32(-np.inf)).astype(np.float64),
        values=values[:, None], outputs=np.asarray(model["tree_info"][:n_trees], dtype=np.int64),
        bias=_bias(learner, LINKS[objective]), link=LINKS[objective], single=True,
        tolerance=1e-5, missing_left=nodes["missing_left"].astype(bool),
        sets=sets, members=members, categories=categories,
    )  # fmt: skip


def _n_trees(fitted: Any, model: dict[str, Any]) -> int:
    best = getattr(fitted, "best_iteration", None)  # an error of its own where there is none
    return len(model["trees"]) if best is None else int(model["iteration_indptr"][best + 1])


def _tree(tree: dict[str, Any]) -> dict[str, Any]:
    if int(tree["tree_param"]["size_leaf_vector"]) > 1:
        raise NotFollowed("its leaves are vectors")
    return {
        "left": np.asarray(tree["left_children"], dtype=np.int32),
        "right": np.asarray(tree["right_children"], dtype=np.int32),
        "column": np.asarray(tree["split_indices"], dtype=np.int32),
        "threshold": np.asarray(tree["split_conditions"], dtype=np.float32),
        "missing_left": np.asarray(tree["default_left"], dtype=np.uint8),
        "by_set": np.asarray(tree["split_type"], dtype=np.uint8),
    }


def _bias(learner: dict[str, Any], link: str) -> Any:
    """Where raw outputs start: scores are stored as means, before the link."""
    facts = learner["learner_model_param"]
    means = np.array([float(part) for part in facts["base_score"].strip("[]").split(",")])
    if link == "logistic":
        means = -np.log(1 / means - 1)
    elif link == "exponential":
        means = np.log(means)
    return np.broadcast_to(means, (max(1, int(facts["num_class"])),)).copy()


def _categories(
    trees: list[dict[str, Any]], nodes: dict[str, Any]
) -> tuple[Integers | None, list[Mask], dict[int, Categories]]:
    """Sets go right; categories beyond those that any set names go left."""
    if not nodes["by_set"].any():
        return None, [], {}
    named: list[tuple[int, Any]] = []
    for start, tree in zip(nodes["starts"], trees, strict=False):
        spans = zip(
            tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"],
            strict=True,
        )  # fmt: skip
        named += [
            (int(start + node), np.asarray(tree["categories"][first : first + size], dtype=int))
            for node, first, size in spans
        ]
    size: dict[int, int] = {}
    for node, inside in named:
        column = int(nodes["column"][node])
        size[column] = max(size.get(column, 0), int(inside.max()) + 1)
    sets, members = np.full(len(nodes["left"]), -1), list[Mask]()
    for node, inside in named:
        goes_left = np.ones(size[int(nodes["column"][node])] + 2, dtype=bool)
        goes_left[inside] = False
        goes_left[-1] = nodes["missing_left"][node]
        sets[node] = len(members)
        members.append(goes_left)
    known = {c: Categories(np.arange(float(n)), truncated=True) for c, n in size.items()}
    return sets, members, known
