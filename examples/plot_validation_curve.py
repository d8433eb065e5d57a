"""
The exact validation curve of an SVM
====================================

The cross-validated error of an SVM is a step function of C. A grid evaluates it at a few points.
This example shows the whole function, for a linear kernel and five folds, and the curve of a single
fold. It corresponds to figure 6.2 of Yang (2011), Feature selection and model selection for
supervised learning algorithms, National University of Singapore.

The data of the figure are svmguide3. They are used if the folder in the environment variable
TAMIS_DATA contains them. Otherwise the breast cancer data of scikit-learn are used.
"""

from pathlib import Path
from tempfile import gettempdir

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import scale

from tamis.datasets import load, names
from tamis.svm import GridC, SVCPathCV

table = load("svmguide3" if "svmguide3" in names() else "wdbc")
# the test rows of svmguide3 repeat training rows, so only the training rows are used
rows = table.extras.get("train_idx", np.arange(len(table.y)))
X, y = scale(table.X[rows]), table.y[rows]
folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))

search = SVCPathCV("linear", cv=folds).fit(X, y)
fold = SVCPathCV("linear", cv=folds[:1], refit=False).fit(X, y)
grid = GridC("linear", cv=folds, solver="path", refit=False).fit(X, y)
print(search.curve_)
print(search.certificate_)

# %%
# Save the curve as a table. Each row is a step, with the value on the step and at its two ends.

frame = search.curve_.to_frame()
frame.to_csv(Path(gettempdir()) / "validation_curve.csv", index=False)
print(frame.head())

# %%
# Plot the curve over lambda = 1 / C, with the points of the usual grid. Every C in an interval has
# the smallest error.

fig, ax = plt.subplots(layout="constrained")
for curve, style in (
    (search.curve_, {"label": "five folds"}),
    (fold.curve_, {"label": "first fold", "alpha": 0.4}),
):
    ax.stairs(curve.values[::-1], 1 / curve.breakpoints[::-1], baseline=None, **style)
ax.plot(1 / grid.C_, 1 - grid.scores_, "o", fillstyle="none", label="grid")
ax.plot(1 / search.best_C_, 1 - search.best_score_, "v", label="exact best")
ax.set_xscale("log", base=2)
ax.set(xlabel="lambda = 1 / C", ylabel="cross-validated error", title=table.name)
ax.legend()
plt.show()
