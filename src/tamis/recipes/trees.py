"""Forests and boosting: elimination by the exact sensitivity of trees on held-out rows.

``random-forest-rfe`` uses the forest's own importances, and ``boruta`` compares these with those of
shuffled columns.
"""

from typing import Any

from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from tamis import criteria, meta
from tamis.contract import Selection
from tamis.recipes.book import eliminate, register
from tamis.search import Ranking

BREIMAN = "Breiman (2001), Random forests; Gregorutti, Michel and Saint-Pierre (2017)"
KURSA = "Kursa and Rudnicki (2010), Feature selection with the Boruta package"
FRIEDMAN = "Friedman (2001), Greedy function approximation: a gradient boosting machine"
#: Trees of a forest, and the share of columns that leaves at a time: 50 trees err more, and smaller
#: steps take longer without a gain.
N_TREES, STEP = 100, 0.2
#: Rounds of Boruta, at most, as in the authors' package.
N_ROUNDS = 100


@register(BREIMAN)
def forest_rfe(n_estimators: int = N_TREES, **options: Any) -> Selection:
    """Drop the fifth whose perturbation moves a random forest least on rows it has not seen."""
    forest = RandomForestClassifier(n_estimators=n_estimators)
    return eliminate(criteria.PosteriorSensitivity(forest, on="held-out"), options, STEP)


@register(BREIMAN)
def forest_regression_rfe(n_estimators: int = N_TREES, **options: Any) -> Selection:
    """Drop the fifth whose perturbation moves a regression forest's density least, train again."""
    forest = RandomForestRegressor(n_estimators=n_estimators)
    return eliminate(criteria.DensitySensitivity(forest, on="held-out"), options, STEP)


@register(FRIEDMAN)
def boosting_rfe(estimator: Any = None, **options: Any) -> Selection:
    """Drop the fifth whose perturbation moves boosted trees least on rows they have not seen.

    The estimator is a ``HistGradientBoostingClassifier()`` unless another is given, such as
    ``LGBMClassifier(verbose=-1)``. A row of weight 2 does not count as two rows: folds and the
    least size of a leaf count rows, and the average over rows is not weighted.
    """
    trees = HistGradientBoostingClassifier() if estimator is None else estimator
    return eliminate(criteria.PosteriorSensitivity(trees, on="held-out"), options, STEP)


@register(FRIEDMAN)
def boosting_regression_rfe(estimator: Any = None, **options: Any) -> Selection:
    """Drop the fifth whose perturbation moves the density of boosted trees least, train again.

    The estimator is a ``HistGradientBoostingRegressor()`` unless another is given, such as
    ``LGBMRegressor(verbose=-1)``. A row of weight 2 does not count as two rows, see
    ``boosting-rfe``.
    """
    trees = HistGradientBoostingRegressor() if estimator is None else estimator
    return eliminate(criteria.DensitySensitivity(trees, on="held-out"), options, STEP)


def _contest(search: Any, forest: Any, options: dict[str, Any]) -> Selection:
    if search is None:  # thousands of columns drown a forest: those that lose have to leave
        search = Ranking(criteria.Importances(forest))
        options = {"n_rounds": N_ROUNDS, "early_rejection": True} | options
    return meta.Contest(search, **options)


@register(KURSA)
def boruta(search: Any = None, n_estimators: int = N_TREES, **options: Any) -> Selection:
    """Keep what a random forest finds more important than the best shuffled column again and again.

    Shuffled columns go with the columns that lose, as published. Any other search may stand in
    place of the forest, ``boruta(search=Forward(JMI()))``: no column then leaves early, which only
    models gain by that many columns drown.
    """
    return _contest(search, RandomForestClassifier(n_estimators=n_estimators), options)


@register(KURSA)
def boruta_regression(search: Any = None, n_estimators: int = N_TREES, **options: Any) -> Selection:
    """Keep what a regression forest finds more important than the best shuffled column."""
    return _contest(search, RandomForestRegressor(n_estimators=n_estimators), options)
