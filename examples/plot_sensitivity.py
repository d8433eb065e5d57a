"""
Sensitivity of an SVM
=====================

Two of ten columns matter, and only together. To measure how sensitive a trained SVM is to a column,
the values of this column are replaced by values of other rows. The sensitivity is the mean change
of the posterior probabilities.
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
sensitivity = PosteriorSensitivity(SVC(C=10, gamma=0.1), random_state=0).fit(X, y).loss(columns)

# %%
# The two columns have no information alone, but the SVM depends on them.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
colours = ["#0b5394" if column in (2, 6) else "#858f99" for column in columns]
titled = {"mutual information": alone, "sensitivity of the SVM": sensitivity}
for axis, (title, scores) in zip(axes, titled.items(), strict=True):
    axis.bar(columns, scores, color=colours)
    axis.set_title(title)
    axis.set_xlabel("column")
    axis.set_xticks(columns)
print("the two most sensitive:", sorted(np.argsort(-sensitivity)[:2].tolist()))
plt.show()
