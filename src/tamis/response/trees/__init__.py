"""Engine of tree ensembles (forests and boosting), which computes exact outputs for new values.

>>> import numpy as np
>>> from sklearn.datasets import load_iris
>>> from sklearn.ensemble import RandomForestClassifier
>>> X, y = load_iris(return_X_y=True)
>>> forest = RandomForestClassifier(20, random_state=0).fit(X, y)
>>> trees = open_trees(forest, "predict_proba", forest.predict_proba, X)
>>> engine = TreeEngine(trees, "predict_proba", forest.predict_proba, X)
>>> [batch] = engine.batches(np.arange(4)[:, None])  # four units of one column each
>>> reversed_rows = batch.paired(X[::-1, :, None])[:, :, 0]
>>> np.abs(reversed_rows - engine.outputs()).mean(axis=(1, 2)).round(2)
array([0.07, 0.01, 0.24, 0.27])
"""

from tamis.response.trees.engine import TreeBatch, TreeEngine
from tamis.response.trees.models import is_tree_model, open_trees

__all__ = ["TreeBatch", "TreeEngine", "is_tree_model", "open_trees"]
