"""
Columns that cost money
=======================

Each of ten measurements of a cell nucleus has a mean, a standard error and a worst value. Here a
measurement has a fee, which is paid once for its three columns. The columns are selected in each
fold within several price limits. The plot shows the lowest error at each price.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tamis import FeatureCosts
from tamis.choice import CostLimit
from tamis.choice.front import PricedList, undominated
from tamis.criteria import Scatter
from tamis.plot import front
from tamis.search import Forward

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
measurements = [name.removeprefix("mean ") for name in X.columns[:10]]
fees = dict(zip(measurements, [2, 20, 30, 30, 60, 40, 80, 80, 50, 15], strict=True))
shared, prices = {}, {}
for name, fee in fees.items():
    columns = [f"mean {name}", f"{name} error", f"worst {name}"]
    shared[name] = (fee, columns)
    prices |= dict.fromkeys(columns, fee + 1.0)
costs = FeatureCosts(prices, shared=shared)

# %%
# Select within a limit, in every fold. The held-out rows are predicted by a model that was trained
# on the other rows.


def held_out_errors(search):
    """Return the mean error on held-out rows, and its standard error."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    errors = []
    for train, test in folds.split(X, y):
        names = search.fit(X.iloc[train], y.iloc[train]).columns
        model = make_pipeline(StandardScaler(), LogisticRegression())
        model.fit(X.iloc[train][names], y.iloc[train])
        errors.append(np.mean(model.predict(X.iloc[test][names]) != y.iloc[test]))
    return float(np.mean(errors)), float(np.std(errors) / np.sqrt(len(errors)))


lists = []
for limit in (5, 10, 25, 50, 100, 200, 437):
    search = Forward(Scatter("J3"), feature_costs=costs, n_features_to_select=CostLimit(limit))
    loss, error = held_out_errors(search)
    search.fit(X, y)
    lists.append(PricedList(search.cost_, loss, error, tuple(search.columns)))
chart = front(lists, title="error rate on held-out rows")

# %%
# Print the price of each step, its error, and what it adds.

seen: set[str] = set()
for one in undominated(lists):
    print(f"{one.price:5g}  {one.loss:5.1%}  adds {', '.join(sorted(set(one.columns) - seen))}")
    seen |= set(one.columns)
