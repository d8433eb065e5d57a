"""
Would other rows give the same columns?
=======================================

The search is repeated on other rows of the same table. Columns that are kept nearly always can be
relied on; where hollow ones stand beside them, another could take the place.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import RidgeClassifier

import tamis
from tamis import plot
from tamis.evaluation import Realizations, evaluate, stability

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
search = tamis.recipe("mrmr", n_features_to_select=6)
results = evaluate(
    {"mrmr": search}, {"cancer": (X, y)}, Realizations(20, train=0.5, seed=0),
    estimators=RidgeClassifier(), sizes=[6],
)  # fmt: skip
print(stability(results.supports("mrmr", size=6)))
chart = plot.stability(results, search.fit(X, y))
