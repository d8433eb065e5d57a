"""Forests and boosting: what a tree ensemble answers as its columns are altered, exactly.

>>> import numpy as np
>>> from sklearn.datasets import load_iris
>>> from sklearn.ensemble import RandomForestClassifier
>>> X, y = load_iris(return_X_y=True)
>>> forest = RandomForestClassifier(20, random_state=0).fit(X, y)
>>> trees = open_trees(forest, "predict_proba", forest.predict_proba, X)
>>> engine = TreeEngine(trees, "predict_proba", forest.predict_proba, X)
>>> (engine.absolute(X) / 2 / len(X)).round(2)
array([0.07, 0.02, 0.34, 0.33])
"""

from tamis.response.trees.engine import TreeBatch, TreeEngine
from tamis.response.trees.opening import is_tree_model, open_trees

__all__ = ["TreeBatch", "TreeEngine", "is_tree_model", "open_trees"]
