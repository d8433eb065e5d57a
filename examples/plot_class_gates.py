"""
Gates with redundancy control within classes
============================================

Columns 1 and 3 separate three classes perfectly, but they are also the pair with the highest
correlation over all rows. Within each class all three columns are nearly identical.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from tamis.datasets import make_class_redundancy
from tamis.exceptions import DegenerateData
from tamis.neural import GateSelector, NetworkClassifier

lams = [0, 0.1, 1, 10, 100]
network = NetworkClassifier(hidden=5, decay=0.01, combine="mean")
settings = {"n_features_to_select": 2, "network": network, "mu": 0, "random_state": 0}
for scope in ("global", "class"):
    kept = {lam: [] for lam in lams}
    for draw in range(5):
        X, y, *_ = make_class_redundancy(600, random_state=draw)
        for lam in lams:
            gates = GateSelector(scope=scope, lam=lam, **settings).fit(X, y)
            kept[lam].append(gates.get_support(indices=True).tolist() == [0, 2])
    print(scope, {lam: f"{sum(hits)} of 5" for lam, hits in kept.items()})

# %%
# Global redundancy control drops the pair as soon as ``lam`` is greater than 0. Control within
# classes penalises all columns equally, so the loss of the network decides which gates stay open.
#
# The opposite case has two columns with a correlation above 0.99 within both classes. Neither of
# them separates the classes alone. Here control within classes removes a column that is needed.
# Both bounded gates shrink in the same way and are below 0.9 for ``lam`` of 0.1 or more.
# Between ``lam`` = 18 and 32 one of them closes completely.

draws = np.random.default_rng(0)
y = np.arange(400) % 2
first = 3 * draws.normal(size=400)
X = np.column_stack([first, first + np.where(y, 1, -1) + 0.3 * draws.normal(size=400)])
print("correlation within the classes:", [np.corrcoef(X[y == c].T)[0, 1].round(3) for c in (0, 1)])

warnings.simplefilter("ignore", DegenerateData)  # closed gates are kept here
lams = np.geomspace(0.01, 100, 17)
bell = GateSelector(
    network=network, gate="bell", sparsity="bell", scope="class", mu=0, random_state=0
)
fitted = [bell.set_params(lam=lam).fit(X, y).gates_ for lam in lams]

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for c, colour in enumerate(("tab:red", "tab:green")):
    left.scatter(*X[y == c].T, s=6, color=colour, label=f"class {c}")
left.set(xlabel="column 1", ylabel="column 2")
left.legend()
right.semilogx(lams, fitted, marker="o", label=["column 1", "column 2"])
right.axhline(0.9, linestyle=":", color="gray")
right.set(xlabel="lam (weight of redundancy)", ylabel="gate")
right.legend()
plt.show()

lost = lams[np.argmax(np.min(fitted, axis=1) < 0.01)]
print(f"both gates above 0.9 up to lam = {lams[np.min(fitted, axis=1) > 0.9].max():.3g}")
print(f"one closes at lam = {lost:.3g}")
