"""Cross-validated accuracy of k nearest neighbours, all candidates of a step at once.

The squared distance of two rows is a sum over columns. For each test row the sum over the subset is
formed once, and each candidate adds or takes away its own column: O(1) per pair of rows.

Where the k-th and the next distance are equal, or differ by rounding only, and the vote depends on
which of them is taken, the estimator itself is asked for those rows: its choice follows the layout
of its tree, and differs between its algorithms.
"""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn import config_context
from sklearn.base import clone
from sklearn.neighbors import KDTree, KNeighborsClassifier

from tamis._arrays import Array, Subset
from tamis.compiled import thresholds
from tamis.contract.criterion import with_unit
from tamis.validation import Rows, Splits

# Candidates whose votes are held at a time: of ten thousand rows in five folds, 16 megabytes.
AT_ONCE = 1024


class KNNFolds:
    """Votes of the nearest neighbours in every fold.

    Parameters
    ----------
    estimator : KNeighborsClassifier
        With uniform weights and Euclidean distances.
    X : array of shape (n_samples, n_features)
    codes : array of int
        Class of each row, from 0.
    splits : list of (train, test)
    """

    @classmethod
    def suited(cls, estimator: Any, X: Array, codes: Rows, splits: Splits) -> Self | None:
        """The folds if the estimator is one that they describe exactly, else None."""
        if type(estimator) is not KNeighborsClassifier or estimator.weights != "uniform":
            return None
        euclidean = estimator.metric == "euclidean" or (
            estimator.metric == "minkowski" and estimator.p == 2
        )
        k, (n_samples, n_features) = estimator.n_neighbors, X.shape
        enough = min(len(train) for train, _ in splits) > k
        if not (euclidean and estimator.metric_params is None and enough):
            return None
        if n_features < thresholds.NEIGHBOUR_COLUMNS or n_samples > thresholds.NEIGHBOUR_ROWS:
            return None
        return cls(estimator, X, codes, splits)

    @staticmethod
    def cost(n_samples: int, n_features: int, n_folds: int) -> float:
        """Estimate the bytes held while all candidates are scored."""
        return 5.0 * n_samples * min(n_features, AT_ONCE) + 300 * n_samples

    def __init__(self, estimator: KNeighborsClassifier, X: Array, codes: Rows, splits: Splits):
        self.estimator, self.X, self.codes, self.splits = estimator, X, codes, splits

    def essential(self, subset: Subset) -> Subset:
        """The subset itself: every column counts."""
        return subset

    def untrainable(self, subset: Subset) -> Array:
        """Nowhere: neighbours are always found."""
        return np.full(len(self.splits), np.nan)

    def value(self, subset: Subset) -> float:
        """Mean accuracy of one subset."""
        return float(self.grown(subset[:-1], subset[-1:])[0])

    def grown(self, subset: Subset, candidates: Subset) -> Array:
        """Mean accuracy of the subset and each candidate."""
        return self._in_blocks(subset, candidates, 1.0, self._accuracy)

    def shrunk(self, subset: Subset) -> Array:
        """Mean accuracy of the subset without each of its members."""
        return self._in_blocks(subset, subset, -1.0, self._accuracy)

    def losses(self, subset: Subset, units: Subset, *, entering: bool) -> Array:
        """Mean squared loss of the shares of votes once each of the units has entered, or left."""
        return self._in_blocks(subset, units, 1.0 if entering else -1.0, self._squared_loss)

    def _in_blocks(
        self, subset: Subset, candidates: Subset, sign: float, measure: Callable[..., Array]
    ) -> Array:
        found = np.empty(len(candidates))
        for first in range(0, len(candidates), AT_ONCE):
            block = slice(first, first + AT_ONCE)
            found[block] = measure(subset, candidates[block], sign)
        return found

    def _accuracy(self, subset: Subset, candidates: Subset, sign: float) -> Array:
        # imported here because it brings numba, which takes longer to load than most criteria run
        from tamis.compiled.neighbours import UNDECIDED

        accuracies = np.empty((len(candidates), len(self.splits)))
        for fold, (train, test) in enumerate(self.splits):
            said = self._votes(subset, candidates, sign, train, test, squared=False)
            undecided = said == UNDECIDED
            for index in np.flatnonzero(undecided.any(axis=1)):
                rows, unit = np.flatnonzero(undecided[index]), candidates[index]
                changed = with_unit(subset, unit) if sign > 0 else subset[subset != unit]
                said[index, rows] = self._asked(changed, train, test[rows])
            accuracies[:, fold] = (said == self.codes[test]).mean(axis=1)
        return accuracies.mean(axis=1)

    def _squared_loss(self, subset: Subset, candidates: Subset, sign: float) -> Array:
        found = np.empty((len(candidates), len(self.splits)))
        for fold, (train, test) in enumerate(self.splits):
            said = self._votes(subset, candidates, sign, train, test, squared=True)
            found[:, fold] = said.mean(axis=1)  # nan where neighbours are equally far in a row
        return found.mean(axis=1)

    def _votes(
        self,
        subset: Subset,
        candidates: Subset,
        sign: float,
        train: Rows,
        test: Rows,
        *,
        squared: bool,
    ) -> Array:
        """What a compiled loop says of every candidate and test row, in calls of bounded length."""
        from tamis.compiled.neighbours import votes

        k, n_classes = self.estimator.n_neighbors, int(self.codes.max()) + 1
        columns = subset, candidates, sign, k, n_classes, squared
        parts = thresholds.in_calls(len(test), len(train) * float(len(subset) + len(candidates)))
        return np.hstack([votes(self.X, self.codes, train, test[p], *columns) for p in parts])

    def _asked(self, subset: Subset, train: Rows, rows: Rows) -> Rows:
        """What the estimator itself says of some rows."""
        known, asked = self.X[np.ix_(train, subset)], self.X[np.ix_(rows, subset)]
        k, n_classes = self.estimator.n_neighbors, int(self.codes.max()) + 1
        with config_context(assume_finite=True, skip_parameter_validation=True):
            if not self._grows_tree(*known.shape):
                model = clone(self.estimator).fit(known, self.codes[train])
                return np.asarray(model.predict(asked))
            # the very tree that the estimator grows, without the cost of its checks
            tree = KDTree(known, leaf_size=self.estimator.leaf_size)
            neighbours = self.codes[train][tree.query(asked, k, return_distance=False)]
        return (neighbours[..., None] == np.arange(n_classes)).sum(axis=1).argmax(axis=1)

    def _grows_tree(self, n_samples: int, n_features: int) -> bool:
        """Whether the estimator searches with a k-d tree: scikit-learn's rule."""
        if self.estimator.algorithm == "auto":
            return n_features <= 15 and self.estimator.n_neighbors < n_samples // 2
        return bool(self.estimator.algorithm == "kd_tree")
