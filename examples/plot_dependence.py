"""
Non-linear dependence
=====================

Correlation detects linear relations. The Hilbert-Schmidt criterion (HSIC) tests whether rows that
are similar in the columns are also similar in the target. With enough rows, it detects relations of
any shape.
"""

import matplotlib.pyplot as plt
import numpy as np

from tamis.criteria import HSIC, Correlation

rng = np.random.default_rng(0)
x = rng.uniform(-1, 1, size=200)
noise = 0.15 * rng.normal(size=200)
targets = {
    "line": x + noise,
    "parabola": x**2 + noise,
    "sine wave": np.sin(6 * x) + noise,
    "noise": rng.permutation(x),
}

# %%
# HSIC is divided by the largest score of 20 shuffled targets.

empty, column = np.array([], dtype=int), np.array([0])
figure, axes = plt.subplots(1, 4, figsize=(10, 2.9), layout="constrained")
found = {}
for (name, target), axis in zip(targets.items(), axes, strict=True):
    table = x[:, None]
    correlation = Correlation().fit(table, target).gain(empty, column)[0]
    hsic = HSIC().fit(table, target).value(column)
    chance = max(HSIC().fit(table, rng.permutation(target)).value(column) for _ in range(20))
    found[name] = (correlation, hsic / chance)
    axis.plot(x, target, ".", color="#0b5394", ms=3)
    axis.set_title(f"|r| {correlation:.2f}   HSIC {hsic / chance:.1f} x chance", fontsize=9)
    axis.set_xlabel(name)
plt.show()
