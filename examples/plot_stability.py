"""
Stability across resamples
==========================

The search is repeated on random halves of the rows. A column is reliable if nearly all repeats
select it. Columns that can replace each other are selected less often.
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
