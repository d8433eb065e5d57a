"""tamis finds the features that matter and the hyper-parameters that are provably best.

A **criterion** says how good features are, a **search** explores subsets, a **choice** says which
subset of the trace is kept; any criterion works with any search that can use it::

    from tamis.criteria import Scatter
    from tamis.search import FloatingForward

    FloatingForward(Scatter("J3"), n_features_to_select=5).fit(X, y).get_feature_names_out()

The methods of the literature are there by name: ``tamis.recipe("svm-rfe")``, all in one line:
``tamis.select(X, y, "svm-rfe")``.
"""

from importlib.metadata import version

from tamis.recipes import recipe, select

__version__ = version("tamis")
__all__ = ["__version__", "recipe", "select"]
