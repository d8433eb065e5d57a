"""
How many columns, honestly
==========================

A search finds the columns that look best on the rows it sees. An error computed on these rows,
even by cross-validation, goes down and down, on pure noise too. Run inside every fold, the search
has to prove itself on rows that it has not seen.
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
        warnings.simplefilter("ignore")  # nothing found is an answer here
        honest = HonestSize(search, random_state=0).fit(X, y)
    order, loss = search.fit(X, y).order_, []
    for size in honest.sizes_[1:]:
        said = cross_val_predict(Ridge(), X[:, order[:size]], y)
        loss.append(np.mean((y - said) ** 2))
    ax.plot(honest.sizes_[1:], loss, "o--", color="#858f99", label="search on all rows")
    ax.errorbar(
        honest.sizes_, honest.losses_, honest.errors_, color="#0b5394", label="search in folds"
    )
    ax.axvline(honest.n_features_, color="#b84d00", lw=1)
    ax.set(xlabel="columns", ylabel="squared error", ylim=0)
    ax.set_title(f"{n_relevant} relevant columns: {honest.n_features_} kept")
axes[0].legend()
plt.show()

# %%
# It says why it kept what it kept.

print(honest.choice_.reason)
