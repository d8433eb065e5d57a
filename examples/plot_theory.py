"""
Generalisation bounds
=====================

How far can the training error be from the true error? The bounds of Vapnik and Chervonenkis hold
for every distribution. They are therefore loose. Use them to compare sizes, not to estimate an
error.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from tamis.choice import Information, theory
from tamis.criteria import Correlation
from tamis.search import Ranking

# %%
# Two bounds on deviations
# ------------------------
#
# *Uniform*: the probability that the training error of *some* hyperplane differs from its true
# error by more than 0.1. *Excess*: the probability that the hyperplane with the smallest training
# error is more than 0.1 worse than the best hyperplane. The second bound needs about four times as
# many rows for the same value. Dotted lines show the sample complexity, a number of rows at which
# the second bound is at most 0.05. It is not tight: the bound falls to 0.05 (grey line) earlier.

rows = np.unique(np.logspace(3.5, 7.2, 300).astype(int))
fig, ax = plt.subplots(layout="constrained")
for colour, n_columns in (("C0", 2), ("C1", 10)):
    V = theory.vc_of_perceptron(n_columns)
    for of, line in (("uniform", "-"), ("excess", "--")):
        bound = [theory.deviation_bound(int(n), V, 0.1, of=of) for n in rows]
        ax.plot(rows, bound, line, color=colour, label=f"{n_columns} columns, {of}")
    ax.axvline(theory.sample_complexity(V, 0.1, 0.05), color=colour, linestyle=":", linewidth=1)
ax.axhline(0.05, color="grey", linewidth=0.5)
ax.set(xscale="log", xlabel="rows N", ylabel="probability bound", title="deviation above 0.1")
ax.legend()
plt.show()

# %%
# The VC confidence
# -----------------
#
# With probability 0.95 the true error is below the training error plus this term. It decreases
# with the square root of the number of rows and increases with the number of columns. Above 0.5 it
# is uninformative for two classes.

rows = np.unique(np.logspace(2, 5, 200).astype(int))
fig, ax = plt.subplots(layout="constrained")
for n_columns in (2, 10, 40, 160):
    V = theory.vc_of_perceptron(n_columns)
    ax.plot(rows, [theory.vc_confidence(int(n), V) for n in rows], label=f"{n_columns} columns")
ax.axhspan(0.5, 1.0, color="grey", alpha=0.15, label="uninformative")
ax.set(xscale="log", ylim=(0, 1), xlabel="rows N", ylabel="VC confidence")
ax.legend()
plt.show()

# %%
# Structural risk along a search path
# -----------------------------------
#
# The subsets of a search path define nested classes of hyperplanes. With each added column, the
# training error falls and the confidence term rises. Structural risk minimisation selects the size
# with the smallest sum. Here six of thirty columns matter, with decreasing weights. The error on
# 20 000 new rows is shown for comparison.

rng = np.random.default_rng(0)
weights = np.array([2.0, 1.5, 1.0, 0.7, 0.4, 0.2])


def draw(n):
    X = rng.normal(size=(n, 30))
    return X, (X[:, :6] @ weights + rng.normal(size=n) > 0).astype(int)


(X, y), (fresh, truth) = draw(2000), draw(20_000)
search = Ranking(Correlation(), n_features_to_select=Information("srm")).fit(X, y)
sizes = np.arange(1, 31)
models = [LogisticRegression(C=np.inf).fit(X[:, search.order_[:k]], y) for k in sizes]
seen = np.array([np.mean(m.predict(X[:, search.order_[: m.n_features_in_]]) != y) for m in models])
true = np.array(
    [np.mean(m.predict(fresh[:, search.order_[: m.n_features_in_]]) != truth) for m in models]
)
risk = theory.structural_risk(seen, [theory.vc_of_perceptron(int(k)) for k in sizes], len(y))

fig, ax = plt.subplots(layout="constrained")
ax.plot(sizes, seen, label="training error")
ax.plot(sizes, true, label="error on new rows")
ax.plot(sizes, risk, label="structural risk")
best = sizes[risk.argmin()]
ax.plot(best, risk.min(), "o", color="black", label=f"minimum at {best} columns")
ax.set(xlabel="number of columns", ylabel="error", ylim=(0, None))
ax.legend()
plt.show()

# %%
# The minimum is the size that the choice selects. It is conservative: columns with small weights
# lower the training error by less than they raise the confidence term. The bound is many times the
# true error.

print(search.choice_.reason)
print(
    f"kept {search.n_features_}; the error on new rows is least at {sizes[true.argmin()]} columns"
)
