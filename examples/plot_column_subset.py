"""
Columns that represent all others
=================================

Without a target, a subset of columns is good if all other columns can be reconstructed from it. No
subset reconstructs more than the same number of principal components.
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
# Compare with the mean of ten random subsets, and with the principal components (upper bound).

rng = np.random.default_rng(0)
criterion = ColumnSubset().fit(X)
draws = [[criterion.value(np.sort(rng.permutation(30)[:k])) for k in sizes] for _ in range(10)]
at_random = 1 + np.mean(draws, axis=0) / total
bound = np.cumsum(np.linalg.svd(X, compute_uv=False) ** 2)[:15] / total

figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
axis.plot(sizes, bound, color="#858f99", label="principal components (bound)")
axis.plot(sizes, greedy, "o-", color="#0b5394", label="selected columns (forward)")
axis.plot(sizes, at_random, "--", color="#b84d00", label="random columns")
axis.set(xlabel="number of columns", ylabel="share of variance reconstructed", ylim=(0, 1.02))
axis.legend(frameon=False)
plt.show()
