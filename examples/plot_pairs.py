"""
Interactions
============

If the target is the XOR of two columns, neither column is informative alone. Rankings of single
columns miss such a pair, and so do searches that start with the best single column.
``PairInformation`` scores all pairs.
"""

import matplotlib.pyplot as plt
import numpy as np

from tamis.criteria import MutualInformation, PairInformation

rng = np.random.default_rng(0)
X = rng.uniform(size=(800, 40))
y = (X[:, 10] - 0.5) * (X[:, 25] - 0.5) > 0

alone = MutualInformation(n_bins=4).fit(X, y)
pairs = PairInformation().fit(X, y)
fig, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained", sharey=True)
for ax, criterion, title in zip(axes, (alone, pairs), ("single column", "best pair"), strict=True):
    ax.bar(np.arange(40), criterion.scores_, color="#858f99")
    ax.bar([10, 25], criterion.scores_[[10, 25]], color="#0b5394")
    ax.set(xlabel="column", title=title)
axes[0].set_ylabel("information about y (nats)")
plt.show()

# %%
# The best of many pairs has a high score by chance alone. Scores with permuted targets show how
# high it can be.

null = pairs.null_maxima(X, y, n_permutations=20)
print(f"greatest score of 20 permuted targets: {null.max():.3f}")
for first, second, information, _ in pairs.interactions_[:3]:
    print(f"columns {first} and {second}: {information:.3f} nats more than both alone")
