"""Gates on columns: of networks, and without a target."""

from typing import Any

from tamis.choice import Threshold
from tamis.criteria import Importances
from tamis.neural import GateSelector, NetworkClassifier, PerClass, UFeSCoR
from tamis.recipes.book import published
from tamis.search import RecursiveElimination

VARSHNEY = (
    "Varshney (2019), Feature selection with multi layer perceptron using approximate L0-norm and "
    "redundancy control"
)

BOUNDED: dict[str, Any] = {"gate": "bell", "sparsity": "bell"}


@published(VARSHNEY)
def fsmlp_al_grc(**options: Any) -> GateSelector:
    """Gates on a trained network, few and on columns that are not redundant over all rows."""
    return GateSelector(**options)


@published(VARSHNEY)
def fsmlp_al_grc_joint(**options: Any) -> GateSelector:
    """As fsmlp-al-grc, with the weights of the network learned together with the gates."""
    return GateSelector(**{"joint": True} | options)


def _per_class(options: dict[str, Any]) -> GateSelector:
    return GateSelector(**{"scope": "class", "n_features_to_select": PerClass(1)} | options)


@published(VARSHNEY)
def fsmlp_al_crc(**options: Any) -> GateSelector:
    """Gates for every class, not redundant inside it; the best column of each class is kept."""
    return _per_class(options)


@published(VARSHNEY)
def fsmlp_al_crc_joint(**options: Any) -> GateSelector:
    """As fsmlp-al-crc, with the weights of the network learned together with the gates."""
    return _per_class({"joint": True} | options)


@published(VARSHNEY)
def gated_fsmlp_crc(**options: Any) -> GateSelector:
    """Gates between closed and open for every class, not redundant inside it."""
    return GateSelector(**BOUNDED | {"scope": "class"} | options)


@published(VARSHNEY)
def gated_fsmlp_crc_open(threshold: float = 0.9, **options: Any) -> GateSelector:
    """As gated-fsmlp-crc, keeping the columns whose gate is above 0.9 for some class.

    How many that are depends on how long the gates learn, more than on their weights.
    """
    rule = {"n_features_to_select": Threshold(threshold)}
    return GateSelector(**BOUNDED | {"scope": "class"} | rule | options)


@published(VARSHNEY)
def gated_fsmlp_crc_joint(**options: Any) -> GateSelector:
    """As gated-fsmlp-crc, with the weights of the network learned together with the gates."""
    return GateSelector(**BOUNDED | {"scope": "class", "joint": True} | options)


@published("Chakraborty and Pal (2015), Feature selection with controlled redundancy")
def fsmlp_redundancy(**options: Any) -> GateSelector:
    """Gates between closed and open, learned with the network, that pay for redundancy alone."""
    network = NetworkClassifier(loss="squared", decay=0.01, combine="mean")
    return GateSelector(**BOUNDED | {"network": network, "mu": 0, "joint": True} | options)


@published("Sun, Huang, Wong and Jang (2017), Variable selection for MLP with lasso")
def lasso_mlp(mu: Any = "auto", network: Any = None, **options: Any) -> RecursiveElimination:
    """Gates that pay by their size, learned again on the columns that are left, half of them."""
    gates = GateSelector(sparsity="l1", mu=mu, lam=0, network=network)
    return RecursiveElimination(Importances(gates), **{"step": 0.5} | options)


@published("Banerjee and Pal (2015), Unsupervised feature selection with controlled redundancy")
def ufescor(gamma: float = 1.0, **options: Any) -> UFeSCoR:
    """Open the gates of columns that keep distances and are not redundant; needs no target."""
    return UFeSCoR(gamma=gamma, **options)
