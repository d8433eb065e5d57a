"""Scores of models trained in every fold, and the loss that breaks ties."""

import warnings
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import UndefinedMetricWarning

from tamis._arrays import Array, Subset
from tamis.criteria.model import Metadata
from tamis.exceptions import InvalidScore
from tamis.response.fold_models import fit_clone, take_rows
from tamis.validation import Splits
from tamis.validation.held_out import squared_losses


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


class FoldScores(NamedTuple):
    """A table with its folds, on which clones of an estimator are trained and scored."""

    X: Array
    y: NDArray[Any] | None
    splits: Splits
    scorer: Any
    metadata: Metadata

    def scores(self, estimator: Any, columns: Subset, known: Array) -> Array:
        """Score of each fold on some columns; ``known`` has those that need no training, or NaN."""
        scores, table = known.copy(), self._replace(X=self.X[:, columns])
        for fold in np.flatnonzero(np.isnan(known)).tolist():
            try:
                scores[fold] = table._score(estimator, fold)
            except Exception as error:
                error.add_note(
                    f"CrossValidated: {type(estimator).__name__} failed in fold {fold} on "
                    f"column(s) {columns.tolist()}."
                )
                raise
            if np.isnan(scores[fold]):
                raise InvalidScore(
                    f"CrossValidated: the score of {type(estimator).__name__} is NaN in fold "
                    f"{fold} on column(s) {columns.tolist()}. Use fewer folds, or another scoring."
                )
        return scores

    def mean_score(self, estimator: Any, columns: Subset, known: Array) -> float:
        """Mean over the folds."""
        return float(np.mean(self.scores(estimator, columns, known)))

    def _score(self, estimator: Any, fold: int) -> float:
        # discriminant analysis divides zero by zero if class means agree, to no effect
        with np.errstate(divide="ignore", invalid="ignore"):
            model, test = self._fit(estimator, fold), self.splits[fold][1]
        truth = () if self.y is None else (self.y[test],)
        # a score that is not defined is NaN, and refused
        with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            weights = take_rows(self.metadata.score, test)
            return float(self.scorer(model, self.X[test], *truth, **weights))

    def _fit(self, estimator: Any, fold: int) -> Any:
        """Train a clone on the training rows of a fold."""
        train = self.splits[fold][0]
        y = None if self.y is None else self.y[train]
        return fit_clone(estimator, self.X[train], y, take_rows(self.metadata.fit, train))

    def mean_loss(self, estimator: Any, columns: Subset, known: Array) -> float:
        """Mean over the folds of the squared loss of clones trained on some columns.

        If a classifier cannot be trained in a fold, ``known`` has its accuracy there; its
        predictions are then certain, and a miss costs 2. Without any column the shares of the
        classes are predicted.
        """
        assert self.y is not None
        table, losses = self._replace(X=self.X[:, columns]), 2 * (1 - known)
        if not len(columns):
            table = self._replace(X=np.zeros((len(self.y), 1)), metadata=Metadata())
            estimator = DummyClassifier()
        for fold in np.flatnonzero(np.isnan(known)).tolist():
            test = self.splits[fold][1]
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                model = table._fit(estimator, fold)
                found = squared_losses(model, table.X[test], self.y[test], margins=True)
            losses[fold] = found.mean()
        return float(losses.mean())


def gives_shares(estimator: Any) -> bool:
    """Whether a classifier says more of a row than its class."""
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        return False
    says = ("predict_proba", "decision_function")
    return is_classifier(estimator) and any(hasattr(estimator, name) for name in says)
