"""Fitting on the training part of a realization: scaled columns, seeds that follow from labels."""

from copy import deepcopy
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from tamis._arrays import EMPTY, Array, Subset, target_kind
from tamis._seeds import fix_seeds, seed_of
from tamis.evaluation.checkpoint import Bookmark, fit
from tamis.evaluation.columns import fitted_before, seen_columns
from tamis.evaluation.sources import Rows

#: Powers of two up to which columns are squared as they are: squares of 2**400, about 1e240, can
#: be added up over any number of rows before they overflow, and those of 2**-400 do not vanish.
FARTHEST = 400


class Training:
    """The rows of one realization, and what is fitted on parts of them.

    Parameters
    ----------
    rows : Rows
    normalise : bool
        Whether columns are scaled to mean 0 and standard deviation 1 of the training part.
    seed : int
    labels : tuple of (str, int)
        The data and the realization, which draws follow from.
    """

    def __init__(self, rows: Rows, normalise: bool, seed: int, labels: tuple[str, int]):
        self.rows, self.normalise, self.seed, self.labels = rows, normalise, seed, labels
        self._parts: dict[tuple[int, int], tuple[Array, Array]] = {}

    def scaled(self, train: Subset, other: Subset) -> tuple[Array, Array]:
        """Two parts, scaled by the statistics of the first where that is asked for.

        They are taken once for all estimators: rows of a frame are gathered column by column.
        """
        X, key = self.rows.X, (id(train), id(other))  # the rows outlive this object
        if key not in self._parts:
            parts = X[train], X[other]
            self._parts[key] = _scaled(*parts) if self.normalise else parts
        return self._parts[key]

    def selection(
        self, method: Any, label: str, train: Subset, bookmark: Bookmark | None = None
    ) -> tuple[Any, float]:
        """The method fitted on the training part, and the time this took.

        ``label`` names the method for its draws. A pipeline whose first step keeps no column
        predicts the most frequent class, or the mean.
        """
        fresh = deepcopy(method) if fitted_before(method) else clone(method)
        self._fix_seeds(fresh, "method", label)
        X, _ = self.scaled(train, train)
        start = perf_counter()
        try:
            fit(fresh, X, self.rows.y[train], bookmark)
        except ValueError:  # estimators refuse a table without columns
            if not _passes_nothing(fresh):
                raise
            constant = self._constant().fit(_taken(X, EMPTY), self.rows.y[train])
            fresh.steps[1:] = [("constant", constant)]
        return fresh, perf_counter() - start

    def estimator(
        self, estimator: BaseEstimator, name: str, train: Subset, test: Subset, columns: Subset
    ) -> tuple[Any, Array]:
        """An estimator trained on some columns, and these columns of the test part.

        Without any column it is what predicts the most frequent class, or the mean.
        """
        fresh = clone(estimator) if len(columns) else self._constant()
        self._fix_seeds(fresh, "estimator", name)
        X, X_test = self.scaled(train, test)
        fresh.fit(_taken(X, columns), self.rows.y[train])
        return fresh, _taken(X_test, columns)

    def _fix_seeds(self, estimator: BaseEstimator, *labels: str) -> None:
        root = seed_of(self.seed, *labels, *self.labels)
        fix_seeds(estimator, root=root)

    def _constant(self) -> Any:
        of_classes = target_kind(self.rows.y) == "classification"
        return DummyClassifier() if of_classes else DummyRegressor()


def _passes_nothing(method: Any) -> bool:
    """Whether it is a pipeline whose first step was fitted and keeps no column."""
    try:
        kept = seen_columns(method)
    except NotFittedError:
        return False
    return kept is not None and not len(kept)


def _taken(X: Array, columns: Subset) -> Array:
    """Some columns; of none there are as many rows, which a frame would forget."""
    return X[:, columns] if len(columns) else np.empty((len(X), 0))


def _scaled(train: Array, other: Array) -> tuple[Array, Array]:
    """Two parts with mean 0 and standard deviation 1 of the first.

    Columns out of all proportion are first brought near 1 by powers of two, which change no digit.
    """
    exponent = np.frexp(np.abs(train).max(axis=0))[1]
    exponent[np.abs(exponent) <= FARTHEST] = 0
    if exponent.any():
        with np.errstate(over="ignore"):  # a test row may be out of all proportion to the others
            train, other = np.ldexp(train, -exponent), np.ldexp(other, -exponent)
    scaler = StandardScaler().fit(train)
    return scaler.transform(train), scaler.transform(other)
