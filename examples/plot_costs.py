"""
Columns that cost money
=======================

Each of ten measurements of a cell nucleus has a mean, a standard error and a worst value. Here a
measurement has a fee, which is paid once for its three columns. The automatic selection compares
lists within several price limits. The plot shows the lowest error at each price.
"""

from sklearn.datasets import load_breast_cancer

from tamis import FeatureCosts
from tamis.auto import Auto
from tamis.plot import front

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
# Select within the full price. In every fold, models are trained on the columns that fit into each
# price limit, and predict the held-out rows.

auto = Auto(budget=5, feature_costs=costs, cost_limit="100%", random_state=0).fit(X, y)
chart = front(auto.front_, title="error rate on held-out rows")

# %%
# Print the price of each step, its error, and what it adds.

seen: set[str] = set()
for one in auto.front_:
    print(f"{one.price:5g}  {one.loss:5.1%}  adds {', '.join(sorted(set(one.columns) - seen))}")
    seen |= set(one.columns)
