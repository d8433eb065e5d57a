"""
A table with mixed columns
==========================

This table has numbers, categories, missing values and an identifier. Identifiers are excluded with
a warning, the other columns are encoded, and the result names columns of the original table.
"""

import warnings

import numpy as np
import pandas as pd

import tamis
from tamis import plot

rng = np.random.default_rng(3)
n = 300
frame = pd.DataFrame(
    {
        "patient": [f"P{i:04d}" for i in range(n)],
        "age": rng.integers(20, 90, n).astype(float),
        "smoker": rng.choice(["never", "former", "current"], n),
        "pressure": rng.normal(130, 15, n),
        "sodium": rng.normal(140, 3, n),
        "ward": rng.choice(list("ABCD"), n),
    }
)
risk = 0.05 * (frame["age"] - 55) + 1.5 * (frame["smoker"] == "current") + rng.normal(size=n)
frame["outcome"] = np.where(risk > 0.5, "event", "none")
frame.loc[rng.uniform(size=n) < 0.2, "age"] = np.nan
print(tamis.inspect(frame, target="outcome"))

# %%
# The identifier is excluded with a warning.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    found = tamis.select(frame, target="outcome", method="mrmr", n_features_to_select=2)
print(caught[0].message)
print(found.columns)
chart = plot.ranking(found)
