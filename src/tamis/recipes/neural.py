"""Gates on columns: of networks, and without a target."""

from typing import Any

from tamis import criteria, neural
from tamis.choice import Threshold
from tamis.contract import Selection
from tamis.recipes.book import eliminate, register

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
