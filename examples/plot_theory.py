"""
What theory promises, in pictures
=================================

How far can an error on the training rows be from the truth? The bounds of Vapnik and Chervonenkis
hold for every distribution. That makes them wide, and useful to order sizes rather than to state
an error.
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
# The probability that *some* hyperplane has a training error further than 0.1 from its true
# error, and that the hyperplane of the least training error is more than 0.1 worse than the best
# there is. The second needs four times the rows. Dotted: the rows that suffice by the closed
# formula of the sample complexity for the second to fall to 0.05, which is more generous still.

rows = np.unique(np.logspace(3.5, 7.2, 300).astype(int))
fig, ax = plt.subplots(layout="constrained")
for colour, n_columns in (("C0", 2), ("C1", 10)):
    V = theory.vc_of_perceptron(n_columns)
    for of, line in (("uniform", "-"), ("excess", "--")):
        bound = [theory.deviation_bound(int(n), V, 0.1, of=of) for n in rows]
        ax.plot(rows, bound, line, color=colour, label=f"{n_columns} columns, {of}")
    ax.axvline(theory.sample_complexity(V, 0.1, 0.05), color=colour, linestyle=":", linewidth=1)
ax.axhline(0.05, color="grey", linewidth=0.5)
ax.set(xscale="log", xlabel="rows N", ylabel="probability, at most", title="further off than 0.1")
ax.legend()
plt.show()

# %%
# The VC confidence
# -----------------
#
# What to add to a training error so that, with probability 0.95, the true error lies below: it
# falls with the rows as the square root does, and rises with the columns. Where it is above 0.5
# it says nothing of two classes.

rows = np.unique(np.logspace(2, 5, 200).astype(int))
fig, ax = plt.subplots(layout="constrained")
for n_columns in (2, 10, 40, 160):
    V = theory.vc_of_perceptron(n_columns)
    ax.plot(rows, [theory.vc_confidence(int(n), V) for n in rows], label=f"{n_columns} columns")
ax.axhspan(0.5, 1.0, color="grey", alpha=0.15, label="says nothing")
ax.set(xscale="log", ylim=(0, 1), xlabel="rows N", ylabel="to add to the training error")
ax.legend()
plt.show()

# %%
# Structural risk along a walk
# ----------------------------
#
# The subsets of a walk are nested classes of hyperplanes. The training error falls with every
# column, its confidence rises, and structural risk minimisation takes the size of the least sum.
# Here six of thirty columns matter, less and less; beside the sum stands the error on 20 000
# fresh rows, which nobody has in practice.

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
ax.plot(sizes, true, label="error on fresh rows")
ax.plot(sizes, risk, label="structural risk")
best = sizes[risk.argmin()]
ax.plot(best, risk.min(), "o", color="black", label=f"least at {best} columns")
ax.set(xlabel="columns", ylabel="error", ylim=(0, None))
ax.legend()
plt.show()

# %%
# The least is where the choice is. It is careful: of the columns that matter a little none is
# worth its confidence, and the bound itself is many times the error.

print(search.choice_.reason)
print(
    f"kept {search.n_features_}; the error on fresh rows is least at {sizes[true.argmin()]} columns"
)
