"""
Recursive elimination, and what is left
=======================================

A linear support vector machine drops the gene, here the measurement, that it weighs least, and is
trained again.
"""

from sklearn.datasets import load_breast_cancer

import tamis
from tamis import plot

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
found = tamis.select(X, y, "svm-rfe", n_features_to_select=8)
print(*found.columns, sep="\n")
chart = plot.ranking(found)

# %%
# What each column was worth when it left.

path = plot.path(found)

# %%
# Which of the kept ones say the same.

redundancy = plot.redundancy(found, X)

# %%
# And why a column is not among them.

print(found.explain("mean radius"))
