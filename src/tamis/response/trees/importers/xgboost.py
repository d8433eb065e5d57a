"""Reader of XGBoost models, from their JSON format."""

import json
from typing import Any

import numpy as np

from tamis._arrays import Mask
from tamis.response.trees.forest import (
    Categories,
    Integers,
    NotFollowed,
    Trees,
    category_sets,
    join_trees,
    links_by_name,
)

#: Link function of each objective.
LINKS = links_by_name({
    "logistic": "binary:logistic reg:logistic",
    "softmax": "multi:softprob multi:softmax",
    "exponential": "count:poisson reg:gamma reg:tweedie",
    "identity": "reg:squarederror reg:squaredlogerror reg:pseudohubererror reg:absoluteerror "
    "reg:quantileerror",
})  # fmt: skip


def read(fitted: Any) -> Trees:
    """Read the trees that ``predict`` uses: with early stopping, those up to the best iteration."""
    if not np.isnan(fitted.missing):
        raise NotFollowed(f"it treats {fitted.missing} as missing")
    learner = json.loads(fitted.get_booster().save_raw("json"))["learner"]
    booster = learner["gradient_booster"]
    if booster["name"] not in ("gbtree", "dart"):
        raise NotFollowed(f"its booster is {booster['name']}")
    objective = learner["objective"]["name"]
    if objective not in LINKS:
        raise NotFollowed(f"its objective is {objective}")
    model = booster["gbtree"]["model"] if booster["name"] == "dart" else booster["model"]
    best = getattr(fitted, "best_iteration", None)  # not set without early stopping
    n_trees = len(model["trees"]) if best is None else int(model["iteration_indptr"][best + 1])
    nodes = join_trees([_tree(tree) for tree in model["trees"][:n_trees]])
    leaf = nodes["left"] < 0
    weights = np.asarray(booster.get("weight_drop", np.ones(n_trees)))[:n_trees]
    sets, members, categories = _categories(model["trees"][:n_trees], nodes)
    border = nodes["threshold"].astype(np.float32)
    values = np.where(leaf, border, 0.0) * np.repeat(weights, np.diff(nodes["starts"]))
    return Trees(
        n_columns=int(learner["learner_model_param"]["num_feature"]), starts=nodes["starts"],
        left=nodes["left"], right=nodes["right"], column=nodes["column"],
        # XGBoost tests x < border, which is the same as x <= the next smaller number
        threshold=np.nextafter(border, np.float32(-np.inf)).astype(np.float64),
        values=values[:, None], outputs=np.asarray(model["tree_info"][:n_trees], dtype=np.int64),
        bias=_bias(learner, LINKS[objective]), link=LINKS[objective], single=True,
        tolerance=1e-5, missing_left=nodes["missing_left"].astype(bool),
        sets=sets, members=members, categories=categories,
    )  # fmt: skip


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
    """Return the initial raw outputs, computed from the mean outputs that the model stores."""
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
    """Return the category sets of the nodes, inverted because XGBoost sends members right."""
    if not nodes["by_set"].any():
        return None, [], {}
    named: list[tuple[int, Mask]] = []
    for start, tree in zip(nodes["starts"], trees, strict=False):
        parts = (tree[f"categories_{part}"] for part in ("nodes", "segments", "sizes"))
        for node, first, size in zip(*parts, strict=True):
            inside = tree["categories"][first : first + size]
            named.append((int(start + node), np.isin(np.arange(max(inside) + 1), inside)))
    sets, members, known = category_sets(nodes["column"], named)
    goes_left = [~inside for inside in members]
    for (node, _), inside in zip(named, goes_left, strict=True):
        inside[-1] = nodes["missing_left"][node]
    return sets, goes_left, known
