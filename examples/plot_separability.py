"""
What scatter matrices see, and what they do not
===============================================

J1 looks at the columns one by one, J3 at how they vary together inside of the classes. Neither
sees classes that differ in their spread alone; the divergence of Gaussian classes does.
"""

import matplotlib.pyplot as plt
import numpy as np

from tamis.criteria import Divergence, Scatter

rng = np.random.default_rng(0)
y = np.repeat([0, 1], 150)


def clouds(correlation, shift, spread):
    """Two columns of two classes: how they hang together, lie apart, and differ in width."""
    X = rng.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], size=300)
    X[y == 1] = X[y == 1] * spread + shift
    return X


tables = {
    "apart": clouds(0.0, [2, 2], 1),
    "together": clouds(0.95, [0.7, -0.7], 1),
    "spread": clouds(0.0, [0, 0], 4),
}

# %%
# The value of both columns, by each measure: J1 and J3 are 1 and 2 where the classes are the same
# cloud, the divergence 0.

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
