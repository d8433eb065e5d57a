"""
Exact permutation importance of a forest
========================================

Permutation importance depends on random shuffles. Its expectation over all shuffles follows from
one pass over the trees, for all columns at once.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.inspection import permutation_importance

from tamis.response import importance

X, y = load_diabetes(return_X_y=True, as_frame=True)
train, test = np.arange(len(y)) % 2 == 0, np.arange(len(y)) % 2 == 1
forest = RandomForestRegressor(100, random_state=0).fit(X[train], y[train])
shuffles = permutation_importance(forest, X[test], y[test], n_repeats=10, random_state=0)
exact = importance(forest, X[test], y[test])

order = exact.importances_mean.argsort()
fig, ax = plt.subplots(layout="constrained")
ax.plot(shuffles.importances[order], np.arange(10), ".", color="#858f99")
ax.plot(exact.importances_mean[order], np.arange(10), "D", color="#0b5394")
ax.set_yticks(np.arange(10), X.columns[order])
ax.set(xlabel="loss of R² on held-out rows", title="ten shuffles (dots), exact (diamonds)")
plt.show()
