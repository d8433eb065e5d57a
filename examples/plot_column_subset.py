"""
Columns that stand for all others
=================================

Without a target a column is worth what the others can be rebuilt from it. How much of a table do
a few of its columns hold? No subset holds more than as many principal components.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from tamis.criteria import ColumnSubset
from tamis.search import Forward

X = scale(load_breast_cancer().data)
sizes = np.arange(1, 16)
search = Forward(ColumnSubset(), n_features_to_select=15).fit(X)
total = (X**2).sum()
greedy = 1 + search.trace_.values / total

# %%
# Beside it the mean of ten random subsets, and the bound of the components.

rng = np.random.default_rng(0)
criterion = ColumnSubset().fit(X)
lots = [[criterion.value(np.sort(rng.permutation(30)[:k])) for k in sizes] for _ in range(10)]
by_lot = 1 + np.mean(lots, axis=0) / total
bound = np.cumsum(np.linalg.svd(X, compute_uv=False) ** 2)[:15] / total

figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
axis.plot(sizes, bound, color="#858f99", label="principal components (bound)")
axis.plot(sizes, greedy, "o-", color="#0b5394", label="columns, added one by one")
axis.plot(sizes, by_lot, "--", color="#b84d00", label="columns by lot")
axis.set(xlabel="columns", ylabel="share of the squares rebuilt", ylim=(0, 1.02))
axis.legend(frameon=False)
plt.show()
