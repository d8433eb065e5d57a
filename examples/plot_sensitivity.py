"""
What a kernel machine uses
==========================

Two of ten columns matter, and only together. A machine that has learned it is asked how far its
posterior moves as each column is replaced by the values of other rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from tamis.criteria import MutualInformation, PosteriorSensitivity

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 10))
y = (X[:, 2] * X[:, 6] > 0).astype(int)
columns = np.arange(10)

alone = MutualInformation().fit(X, y).gain(np.array([], dtype=int), columns)
moved = PosteriorSensitivity(SVC(C=10, gamma=0.1), random_state=0).fit(X, y).loss(columns)

# %%
# Alone the two tell no more than the others; in the machine they tell all.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
colours = ["#0b5394" if column in (2, 6) else "#858f99" for column in columns]
titled = {"information of each alone": alone, "sensitivity of the machine": moved}
for axis, (title, scores) in zip(axes, titled.items(), strict=True):
    axis.bar(columns, scores, color=colours)
    axis.set_title(title)
    axis.set_xlabel("column")
    axis.set_xticks(columns)
print("the two most sensitive:", sorted(np.argsort(-moved)[:2].tolist()))
plt.show()
