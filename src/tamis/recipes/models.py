"""Methods around networks and trees."""

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

#: Gates between closed and open; gates for every class.
BOUNDED: dict[str, Any] = {"gate": "bell", "sparsity": "bell"}
BY_CLASS: dict[str, Any] = {"scope": "class"}


@register(VARSHNEY)
def fsmlp_al_grc(**options: Any) -> Selection:
    """Gates on a trained network, few and on columns that are not redundant over all rows."""
    return neural.GateSelector(**options)


@register(VARSHNEY)
def fsmlp_al_grc_joint(**options: Any) -> Selection:
    """As fsmlp-al-grc, with the weights of the network learned together with the gates."""
    return neural.GateSelector(**{"joint": True} | options)


@register(VARSHNEY)
def fsmlp_al_crc(**options: Any) -> Selection:
    """Gates for every class, not redundant inside it; the best column of each class is kept."""
    return neural.GateSelector(**BY_CLASS | {"n_features_to_select": neural.PerClass(1)} | options)


@register(VARSHNEY)
def fsmlp_al_crc_joint(**options: Any) -> Selection:
    """As fsmlp-al-crc, with the weights of the network learned together with the gates."""
    return fsmlp_al_crc(**{"joint": True} | options)


@register(VARSHNEY)
def gated_fsmlp_crc(**options: Any) -> Selection:
    """Gates between closed and open for every class, not redundant inside it."""
    return neural.GateSelector(**BOUNDED | BY_CLASS | options)


@register(VARSHNEY)
def gated_fsmlp_crc_open(threshold: float = 0.9, **options: Any) -> Selection:
    """As gated-fsmlp-crc, keeping the columns whose gate is above 0.9 for some class.

    How many that are depends on how long the gates learn, more than on their weights.
    """
    rule = {"n_features_to_select": Threshold(threshold)}
    return neural.GateSelector(**BOUNDED | BY_CLASS | rule | options)


@register(VARSHNEY)
def gated_fsmlp_crc_joint(**options: Any) -> Selection:
    """As gated-fsmlp-crc, with the weights of the network learned together with the gates."""
    return neural.GateSelector(**BOUNDED | BY_CLASS | {"joint": True} | options)


@register("Chakraborty and Pal (2015), Feature selection with controlled redundancy")
def fsmlp_redundancy(**options: Any) -> Selection:
    """Gates between closed and open, learned with the network, that pay for redundancy alone."""
    network = neural.NetworkClassifier(loss="squared", decay=0.01, combine="mean")
    return neural.GateSelector(**BOUNDED | {"network": network, "mu": 0, "joint": True} | options)


@register("Sun, Huang, Wong and Jang (2017), Variable selection for MLP with lasso")
def lasso_mlp(mu: Any = "auto", network: Any = None, **options: Any) -> Selection:
    """Gates that pay by their size, learned again on the columns that are left, half of them."""
    gates = neural.GateSelector(sparsity="l1", mu=mu, lam=0, network=network)
    return eliminate(criteria.Importances(gates), options, 0.5)


@register("Banerjee and Pal (2015), Unsupervised feature selection with controlled redundancy")
def ufescor(gamma: float = 1.0, **options: Any) -> Selection:
    """Open the gates of columns that keep distances and are not redundant; needs no target."""
    return neural.UFeSCoR(gamma=gamma, **options)


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
