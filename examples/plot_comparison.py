"""
Compare several methods on one table
====================================

Each method selects columns on the training rows of every split. All methods use the same splits.
"""

from sklearn.datasets import load_wine
from sklearn.linear_model import RidgeClassifier

import tamis
from tamis import plot
from tamis.evaluation import Realizations, evaluate

X, y = load_wine(return_X_y=True)
results = evaluate(
    {name: tamis.recipe(name) for name in ("correlation", "mrmr", "ridge-rfe")},
    {"wine": (X, y)},
    Realizations(10, train=0.6, seed=0),
    estimators=RidgeClassifier(),
    sizes=[1, 2, 3, 5, 8, 13],
)
chart = plot.curve(results)
