"""
Columns that beat noise
=======================

``Probes`` adds a copy of the table with permuted rows, whose columns are noise. A column is
selected if it ranks ahead of these probes more often than expected by chance.
"""

import numpy as np

from tamis import plot
from tamis.criteria import Correlation
from tamis.meta import Probes
from tamis.search import Ranking

rng = np.random.default_rng(2)
X = rng.normal(size=(200, 60))
y = X[:, 3] + 0.7 * X[:, 17] + 0.5 * X[:, 42] + 1.5 * rng.normal(size=200)

probes = Probes(Ranking(Correlation()), expected_false=0.5, random_state=0).fit(X, y)
print(probes.choice_.reason)
chart = plot.ranking(probes, n=12)
