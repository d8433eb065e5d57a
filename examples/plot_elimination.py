"""
Recursive elimination with a linear SVM
=======================================

Each step removes the column with the smallest weight from a linear SVM, and updates the SVM for the
remaining columns.
"""

from sklearn.datasets import load_breast_cancer

import tamis
from tamis import plot

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
found = tamis.select(X, y, "svm-rfe", n_features_to_select=8)
print(*found.columns, sep="\n")
chart = plot.ranking(found)

# %%
# Plot the score of each column when it was removed.

path = plot.path(found)

# %%
# Plot the correlations between the selected columns.

redundancy = plot.redundancy(found, X)

# %%
# Explain why a column was not selected.

print(found.explain("mean radius"))
