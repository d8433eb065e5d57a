"""Forests and boosting: elimination by the exact sensitivity of trees on rows they did not see.

``random-forest-rfe``, which looks at the forest's own importances, stays beside them, and
``boruta`` holds these against columns that say nothing.
"""

from typing import Any

from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from tamis.choice import Contest
from tamis.criteria import DensitySensitivity, Importances, PosteriorSensitivity
from tamis.recipes.book import published
from tamis.search import Ranking, RecursiveElimination

BREIMAN = "Breiman (2001), Random forests; Gregorutti, Michel and Saint-Pierre (2017)"
KURSA = "Kursa and Rudnicki (2010), Feature selection with the Boruta package"
FRIEDMAN = "Friedman (2001), Greedy function approximation: a gradient boosting machine"
#: Trees of a forest, and the share of columns that leaves at a time. On sonar and german (three
#: splits, error of a forest on the columns kept) 50 trees err 25.5 and 27.3 %, 100 trees 24.0 and
#: 27.3 % in twice the time. Steps of 0.1, 0.2 and 0.3 of boosting err 22.5, 22.1 and 22.1 % on
#: sonar, 27.5, 27.6 and 28.6 % on german: a fifth takes half the time of a tenth.
N_TREES, STEP = 100, 0.2
#: Rounds of Boruta, at most, as in the authors' package.
N_ROUNDS = 100


def _eliminated(criterion: Any, options: dict[str, Any]) -> RecursiveElimination:
    return RecursiveElimination(criterion, **{"step": STEP} | options)


@published(BREIMAN)
def forest_rfe(n_estimators: int = N_TREES, **options: Any) -> RecursiveElimination:
    """Drop the fifth whose perturbation moves a random forest least on rows it has not seen."""
    forest = RandomForestClassifier(n_estimators=n_estimators)
    return _eliminated(PosteriorSensitivity(forest, on="held-out"), options)


@published(BREIMAN)
def forest_regression_rfe(n_estimators: int = N_TREES, **options: Any) -> RecursiveElimination:
    """Drop the fifth whose perturbation moves a regression forest's density least, train again."""
    forest = RandomForestRegressor(n_estimators=n_estimators)
    return _eliminated(DensitySensitivity(forest, on="held-out"), options)


@published(FRIEDMAN)
def boosting_rfe(estimator: Any = None, **options: Any) -> RecursiveElimination:
    """Drop the fifth whose perturbation moves boosted trees least on rows they have not seen.

    The estimator is a ``HistGradientBoostingClassifier()`` unless another is given, such as
    ``LGBMClassifier(verbose=-1)``. A row of weight 2 does not count as two rows: folds and the
    least size of a leaf count rows, and the average over rows is not weighted.
    """
    trees = HistGradientBoostingClassifier() if estimator is None else estimator
    return _eliminated(PosteriorSensitivity(trees, on="held-out"), options)


@published(FRIEDMAN)
def boosting_regression_rfe(estimator: Any = None, **options: Any) -> RecursiveElimination:
    """Drop the fifth whose perturbation moves the density of boosted trees least, train again.

    The estimator is a ``HistGradientBoostingRegressor()`` unless another is given, such as
    ``LGBMRegressor(verbose=-1)``. A row of weight 2 does not count as two rows, see
    ``boosting-rfe``.
    """
    trees = HistGradientBoostingRegressor() if estimator is None else estimator
    return _eliminated(DensitySensitivity(trees, on="held-out"), options)


def _against_the_best(search: Any, forest: Any, options: dict[str, Any]) -> Contest:
    if search is not None:
        return Contest(search, **options)
    # a forest is drowned by thousands of columns: those that lose have to leave
    early = {"n_rounds": N_ROUNDS, "early_rejection": True}
    return Contest(Ranking(Importances(forest)), **early | options)


@published(KURSA)
def boruta(search: Any = None, n_estimators: int = N_TREES, **options: Any) -> Contest:
    """Keep what a random forest finds more important than the best shuffled column again and again.

    Shuffled columns go with the columns that lose, as published. Any other search may stand in
    place of the forest, ``boruta(search=Forward(JMI()))``: no column then leaves early, which only
    models gain by that many columns drown.
    """
    return _against_the_best(search, RandomForestClassifier(n_estimators=n_estimators), options)


@published(KURSA)
def boruta_regression(search: Any = None, n_estimators: int = N_TREES, **options: Any) -> Contest:
    """Keep what a regression forest finds more important than the best shuffled column."""
    return _against_the_best(search, RandomForestRegressor(n_estimators=n_estimators), options)
