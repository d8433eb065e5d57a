"""What orders subsets on which a classifier is right equally often."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.dummy import DummyClassifier

from tamis._arrays import Array, Subset
from tamis.criteria.model import Metadata, rows_of, trained
from tamis.folds import Splits
from tamis.folds.losses import squared_losses


def gives_shares(estimator: Any) -> bool:
    """Whether a classifier says more of a row than its class."""
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        return False
    says = ("predict_proba", "decision_function")
    return is_classifier(estimator) and any(hasattr(estimator, name) for name in says)


def mean_squared_loss(
    estimator: Any,
    X: Array,
    y: NDArray[Any],
    columns: Subset,
    splits: Splits,
    metadata: Metadata,
    known: Array,
) -> float:
    """Mean over the splits of the squared loss of clones trained on some columns.

    Where a classifier cannot be trained, ``known`` has its accuracy; its answers are then certain,
    and a miss costs 2. Without any column the shares of the classes are answered.
    """
    if not len(columns):
        estimator, X, columns = DummyClassifier(), np.zeros((len(y), 1)), np.array([0])
        metadata = Metadata()
    chosen = X[:, columns]
    losses = 2 * (1 - known)
    for fold in np.flatnonzero(np.isnan(known)):
        train, test = splits[fold]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            model = trained(estimator, chosen[train], y[train], rows_of(metadata.fit, train))
            found = squared_losses(model, chosen[test], y[test], margins=True)
        losses[fold] = found.mean()
    return float(losses.mean())
