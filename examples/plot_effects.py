"""
Partial dependence of all columns
=================================

A column is set to the same value in all rows, and the predictions of an SVM are averaged. The
curves show this mean prediction against the value. They are computed for all columns together.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from tamis.response import effects

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = make_pipeline(StandardScaler(), SVR(C=50)).fit(X, y)
fig, axes = plt.subplots(2, 5, figsize=(10, 4), layout="constrained", sharey=True)
for ax, name, effect in zip(axes.flat, X.columns, effects(model, X), strict=True):
    ax.plot(effect.values, effect.means[:, 0], color="#0b5394")
    ax.set_title(name)
fig.supylabel("mean prediction")
plt.show()
