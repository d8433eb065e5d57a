"""Recipes based on neural networks and trees."""

from typing import Any

from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from tamis import criteria, meta, neural
from tamis.choice import Threshold
from tamis.contract import Selection
from tamis.recipes.book import eliminate, register
from tamis.search import Ranking

VARSHNEY = (
    "Varshney (2019), Feature selection with multi layer perceptron using approximate L0-norm and "
    "redundancy control"
)

#: Gates with values between 0 (closed) and 1 (open). Each class has its own gates.
BOUNDED: dict[str, Any] = {"gate": "bell", "sparsity": "bell"}
BY_CLASS: dict[str, Any] = {"scope": "class"}


@register(VARSHNEY)
def fsmlp_al_grc(**options: Any) -> Selection:
    """Select columns by gates of a trained network, penalising open gates and redundancy."""
    return neural.GateSelector(**options)


@register(VARSHNEY)
def fsmlp_al_grc_joint(**options: Any) -> Selection:
    """As fsmlp-al-grc, with network weights and gates trained together."""
    return neural.GateSelector(**{"joint": True} | options)


@register(VARSHNEY)
def fsmlp_al_crc(**options: Any) -> Selection:
    """Select the best column of each class, by network gates per class, penalising redundancy."""
    return neural.GateSelector(**BY_CLASS | {"n_features_to_select": neural.PerClass(1)} | options)


@register(VARSHNEY)
def fsmlp_al_crc_joint(**options: Any) -> Selection:
    """As fsmlp-al-crc, with network weights and gates trained together."""
    return fsmlp_al_crc(**{"joint": True} | options)


@register(VARSHNEY)
def gated_fsmlp_crc(**options: Any) -> Selection:
    """Select columns by gates from 0 to 1 per class, penalising redundancy within a class."""
    return neural.GateSelector(**BOUNDED | BY_CLASS | options)


@register(VARSHNEY)
def gated_fsmlp_crc_open(threshold: float = 0.9, **options: Any) -> Selection:
    """As gated-fsmlp-crc, but select the columns whose gate is above 0.9 for at least one class.

    The number of selected columns depends more on the training time of the gates than on the
    penalties.
    """
    rule = {"n_features_to_select": Threshold(threshold)}
    return neural.GateSelector(**BOUNDED | BY_CLASS | rule | options)


@register(VARSHNEY)
def gated_fsmlp_crc_joint(**options: Any) -> Selection:
    """As gated-fsmlp-crc, with network weights and gates trained together."""
    return neural.GateSelector(**BOUNDED | BY_CLASS | {"joint": True} | options)


@register("Chakraborty and Pal (2015), Feature selection with controlled redundancy")
def fsmlp_redundancy(**options: Any) -> Selection:
    """Select columns by gates from 0 to 1, trained with the network, penalising only redundancy."""
    network = neural.NetworkClassifier(loss="squared", decay=0.01, combine="mean")
    return neural.GateSelector(**BOUNDED | {"network": network, "mu": 0, "joint": True} | options)


@register("Sun, Huang, Wong and Jang (2017), Variable selection for MLP with lasso")
def lasso_mlp(mu: Any = "auto", network: Any = None, **options: Any) -> Selection:
    """Repeatedly drop the half of the columns with the smallest lasso-penalised network gates."""
    gates = neural.GateSelector(sparsity="l1", mu=mu, lam=0, network=network)
    return eliminate(criteria.Importances(gates), options, 0.5)


@register("Banerjee and Pal (2015), Unsupervised feature selection with controlled redundancy")
def ufescor(gamma: float = 1.0, **options: Any) -> Selection:
    """Select columns that preserve distances and are not redundant, by gates; needs no target."""
    return neural.UFeSCoR(gamma=gamma, **options)


BREIMAN = "Breiman (2001), Random forests; Gregorutti, Michel and Saint-Pierre (2017)"
KURSA = "Kursa and Rudnicki (2010), Feature selection with the Boruta package"
FRIEDMAN = "Friedman (2001), Greedy function approximation"
#: Number of trees in a forest, and share of the columns that each step drops. With only 50 trees,
#: the error is higher. Smaller steps take longer and do not lower the error.
N_TREES, STEP = 100, 0.2
#: Maximum number of iterations of Boruta, as in the authors' package.
N_ROUNDS = 100


@register(BREIMAN)
def forest_rfe(n_estimators: int = N_TREES, **options: Any) -> Selection:
    """Repeatedly drop the 20 % of columns to which a random forest is least sensitive.

    The sensitivity is measured on held-out rows.
    """
    forest = RandomForestClassifier(n_estimators=n_estimators)
    return eliminate(criteria.PosteriorSensitivity(forest, on="held-out"), options, STEP)


@register(BREIMAN)
def forest_regression_rfe(n_estimators: int = N_TREES, **options: Any) -> Selection:
    """Repeatedly drop the 20 % of columns that affect the predictions of a forest least."""
    forest = RandomForestRegressor(n_estimators=n_estimators)
    return eliminate(criteria.DensitySensitivity(forest, on="held-out"), options, STEP)


@register(FRIEDMAN)
def boosting_rfe(estimator: Any = None, **options: Any) -> Selection:
    """Repeatedly drop the 20 % of columns to which boosted trees are least sensitive.

    The sensitivity is measured on held-out rows.
    The default estimator is ``HistGradientBoostingClassifier()``. ``LGBMClassifier(verbose=-1)``
    works as well. A row of weight 2 is not equivalent to two rows: folds and the minimum leaf size
    count rows, and the average over rows is not weighted.
    """
    trees = HistGradientBoostingClassifier() if estimator is None else estimator
    return eliminate(criteria.PosteriorSensitivity(trees, on="held-out"), options, STEP)


@register(FRIEDMAN)
def boosting_regression_rfe(estimator: Any = None, **options: Any) -> Selection:
    """Repeatedly drop the 20 % of columns that affect the predictions of boosted trees least.

    The default estimator is ``HistGradientBoostingRegressor()``. ``LGBMRegressor(verbose=-1)``
    works as well. A row of weight 2 is not equivalent to two rows; see ``boosting-rfe``.
    """
    trees = HistGradientBoostingRegressor() if estimator is None else estimator
    return eliminate(criteria.DensitySensitivity(trees, on="held-out"), options, STEP)


def _contest(search: Any, forest: Any, options: dict[str, Any]) -> Selection:
    if search is None:  # with thousands of columns, a forest needs rejected columns to be dropped
        search = Ranking(criteria.Importances(forest))
        options = {"n_rounds": N_ROUNDS, "early_rejection": True} | options
    return meta.Contest(search, **options)


@register(KURSA)
def boruta(search: Any = None, n_estimators: int = N_TREES, **options: Any) -> Selection:
    """Select columns that a random forest repeatedly finds better than all shuffled columns.

    Rejected columns are dropped together with their shuffled copies, as published. Any other search
    can replace the forest, for example ``boruta(search=Forward(JMI()))``. In that case, no columns
    are dropped before the last round.
    """
    return _contest(search, RandomForestClassifier(n_estimators=n_estimators), options)


@register(KURSA)
def boruta_regression(search: Any = None, n_estimators: int = N_TREES, **options: Any) -> Selection:
    """Select columns that a regression forest repeatedly finds better than all shuffled columns."""
    return _contest(search, RandomForestRegressor(n_estimators=n_estimators), options)
