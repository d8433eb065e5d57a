"""
Dependence that is no line
==========================

Correlation sees lines. The Hilbert-Schmidt criterion compares which rows are alike in the columns
with which are alike in the target, and so sees any shape, given rows enough.
"""

import matplotlib.pyplot as plt
import numpy as np

from tamis.criteria import HSIC, Correlation

rng = np.random.default_rng(0)
x = rng.uniform(-1, 1, size=200)
noise = 0.15 * rng.normal(size=200)
targets = {
    "a line": x + noise,
    "a parabola": x**2 + noise,
    "a wave": np.sin(6 * x) + noise,
    "nothing": rng.permutation(x),
}

# %%
# Both scores of the one column, and what a shuffled target scores at most in 20 draws.

nothing, column = np.array([], dtype=int), np.array([0])
figure, axes = plt.subplots(1, 4, figsize=(10, 2.9), layout="constrained")
found = {}
for (name, target), axis in zip(targets.items(), axes, strict=True):
    table = x[:, None]
    line = Correlation().fit(table, target).gain(nothing, column)[0]
    hsic = HSIC().fit(table, target).value(column)
    chance = max(HSIC().fit(table, rng.permutation(target)).value(column) for _ in range(20))
    found[name] = (line, hsic / chance)
    axis.plot(x, target, ".", color="#0b5394", ms=3)
    axis.set_title(f"|r| {line:.2f}   HSIC {hsic / chance:.1f} x chance", fontsize=9)
    axis.set_xlabel(name)
plt.show()
