"""
Number of columns by held-out error
===================================

A search selects the columns that look best on the given rows. An error estimated on the same rows,
even by cross-validation, is optimistic. It falls even if all columns are noise. ``HonestSize``
repeats the search inside every fold and evaluates it on held-out rows.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_predict

from tamis.criteria import Correlation
from tamis.meta import HonestSize
from tamis.search import Ranking

rng = np.random.default_rng(1)
X = rng.normal(size=(120, 300))
search = Ranking(Correlation())
fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for ax, n_relevant in zip(axes, (0, 4), strict=True):
    y = X[:, :n_relevant].sum(axis=1) + rng.normal(size=120)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # selecting nothing is expected here
        honest = HonestSize(search, random_state=0).fit(X, y)
    order, loss = search.fit(X, y).order_, []
    for size in honest.sizes_[1:]:
        predicted = cross_val_predict(Ridge(), X[:, order[:size]], y)
        loss.append(np.mean((y - predicted) ** 2))
    ax.plot(honest.sizes_[1:], loss, "o--", color="#858f99", label="selected on all rows")
    ax.errorbar(
        honest.sizes_, honest.losses_, honest.errors_, color="#0b5394", label="selected in folds"
    )
    ax.axvline(honest.n_features_, color="#b84d00", lw=1)
    ax.set(xlabel="number of columns", ylabel="squared error", ylim=0)
    ax.set_title(f"{n_relevant} relevant columns: {honest.n_features_} selected")
axes[0].legend()
plt.show()

# %%
# Print the reason for the selected number of columns.

print(honest.choice_.reason)
