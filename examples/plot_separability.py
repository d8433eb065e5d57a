"""
What scatter matrices detect
============================

J1 uses the variances of single columns. J3 also uses their correlations within classes. Neither
detects classes that differ only in spread, but the divergence of Gaussian classes does.
"""

import matplotlib.pyplot as plt
import numpy as np

from tamis.criteria import Divergence, Scatter

rng = np.random.default_rng(0)
y = np.repeat([0, 1], 150)


def clouds(correlation, shift, spread):
    """Draw two columns of two classes with a given correlation, shift and spread of class 1."""
    X = rng.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], size=300)
    X[y == 1] = X[y == 1] * spread + shift
    return X


tables = {
    "different means": clouds(0.0, [2, 2], 1),
    "correlated": clouds(0.95, [0.7, -0.7], 1),
    "different spread": clouds(0.0, [0, 0], 4),
}

# %%
# Compute each measure for the two columns together. For identical classes J1 is 1, J3 is 2 and the
# divergence is 0.

both = np.array([0, 1])
figure, axes = plt.subplots(1, 3, figsize=(9, 3.4), layout="constrained")
found = {}
for (name, X), axis in zip(tables.items(), axes, strict=True):
    measures = (Scatter("J1"), Scatter("J3"), Divergence())
    found[name] = [measure.fit(X, y).value(both) for measure in measures]
    axis.scatter(*X.T, c=np.where(y == 1, "#d55e00", "#0072b2"), s=8)
    axis.set_title("J1 {:.1f}   J3 {:.1f}   divergence {:.1f}".format(*found[name]), fontsize=9)
    axis.set_xlabel(name)
plt.show()
