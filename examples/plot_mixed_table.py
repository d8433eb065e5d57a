"""
A table as people have it
=========================

Numbers, categories, gaps, an identifier and a column that gives the answer away: what is set
aside is said, the others are encoded, and what is kept are the columns of the table.
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
# The identifier is left out with a warning.

with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    found = tamis.select(frame, target="outcome", method="mrmr", n_features_to_select=2)
print(said[0].message)
print(found.columns)
chart = plot.ranking(found)
