"""
Greedy, floating and exact search
=================================

Three searches maximise the same criterion on the wine data. The plot shows how close each search is
to the optimum. The legend shows the number of evaluations.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from tamis.criteria import Scatter
from tamis.search import BranchAndBound, FloatingForward, Forward

X, y = load_wine(return_X_y=True)
sizes = range(1, 13)
fig, ax = plt.subplots(layout="constrained")
for cls in (Forward, FloatingForward, BranchAndBound):
    fitted = [cls(Scatter("J2"), n_features_to_select=k).fit(X, y) for k in sizes]
    values = [search.trace_[search.record_.chosen].value for search in fitted]
    evaluations = sum(search.n_evaluations_ for search in fitted)
    ax.plot(sizes, values, marker="o", label=f"{cls.__name__} ({evaluations} evaluations)")
ax.set(xlabel="number of features", ylabel="J2 = |Sm| / |Sw|", title="wine")
ax.legend()
plt.show()

# %%
# The trace lists every step. Negative numbers are columns that were removed.

search = FloatingForward(Scatter("J2"), n_features_to_select=8).fit(X, y)
for step in search.trace_:
    print(len(step.subset), step.moved, round(step.value, 2))
