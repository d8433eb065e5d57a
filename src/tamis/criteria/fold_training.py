"""Training in every fold: scores of the folds, and the loss that orders equal ones."""

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import UndefinedMetricWarning

from tamis._arrays import Array, Subset
from tamis.criteria.model import Metadata, rows_of, trained
from tamis.exceptions import InvalidScore
from tamis.folds import Rows, Splits
from tamis.folds.losses import squared_losses


class ConstantRisk(BaseEstimator):
    """Gives every row the same risk, of which the concordance index is 1/2."""

    def fit(self, X: Array, y: NDArray[Any]) -> Self:
        """Learn nothing."""
        return self

    def predict(self, X: Array) -> Array:
        """The same risk for every row."""
        return np.zeros(X.shape[0])

    def score(self, X: Array, y: NDArray[Any]) -> float:
        """Half of all pairs are in order, since none is in any."""
        return 0.5


def validated(*folds: Any) -> float:
    """Mean score over the splits, see :func:`scored_folds`."""
    return float(np.mean(scored_folds(*folds)))


def scored_folds(
    estimator: Any,
    X: Array,
    y: NDArray[Any] | None,
    columns: Subset,
    splits: Splits,
    scorer: Any,
    metadata: Metadata,
    known: Array,
) -> Array:
    """Score in each split of clones trained on some columns, but where it is known."""
    chosen = X[:, columns]
    scores = known.copy()
    for fold in np.flatnonzero(np.isnan(known)):
        train, test = splits[fold]
        try:
            score = _fold_score(estimator, chosen, y, train, test, scorer, metadata)
        except Exception as error:
            error.add_note(
                f"CrossValidated: {type(estimator).__name__} failed in fold {fold} on column(s) "
                f"{columns.tolist()}."
            )
            raise
        if np.isnan(score):
            raise InvalidScore(
                f"CrossValidated: the score of {type(estimator).__name__} is NaN in fold {fold} on "
                f"column(s) {columns.tolist()}. Use fewer folds, or another scoring."
            )
        scores[fold] = score
    return scores


def _fold_score(
    estimator: Any,
    X: Array,
    y: NDArray[Any] | None,
    train: Rows,
    test: Rows,
    scorer: Any,
    metadata: Metadata,
) -> float:
    known = None if y is None else y[train]
    # discriminant analysis divides zero by zero where class means agree, to no effect
    with np.errstate(divide="ignore", invalid="ignore"):
        model = trained(estimator, X[train], known, rows_of(metadata.fit, train))
    truth = () if y is None else (y[test],)
    # a score that is not defined is NaN, and refused
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return float(scorer(model, X[test], *truth, **rows_of(metadata.score, test)))


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
