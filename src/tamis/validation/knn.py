"""Cross-validated accuracy of k nearest neighbours for all candidates of a search step.

The squared distance between two rows is a sum over columns. The sum over the subset is computed
once for each pair of rows. Each candidate adds or subtracts its own column, which takes O(1) per
pair.

If the k-th and the next distance are equal up to rounding, the vote may depend on which of the two
neighbours is used. Such rows are predicted by scikit-learn itself, because its choice depends on
its algorithm and the layout of its tree.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn import config_context
from sklearn.base import clone
from sklearn.neighbors import KDTree, KNeighborsClassifier

from tamis._arrays import Array, Subset
from tamis.compiled import thresholds
from tamis.contract.criterion import with_unit
from tamis.validation import Rows, Splits

# Number of candidates whose votes are in memory at a time. For ten thousand rows in five folds,
# they take 16 megabytes.
AT_ONCE = 1024


@dataclass(eq=False, repr=False)
class KNNFolds:
    """Cross-validated accuracy of k nearest neighbours for all candidates of a search step.

    Parameters
    ----------
    estimator : KNeighborsClassifier
        With uniform weights and Euclidean distances.
    X : array of shape (n_samples, n_features)
    codes : array of int
        Class of each row as a number from 0.
    splits : list of (train, test)
    """

    estimator: KNeighborsClassifier
    X: Array
    codes: Rows
    splits: Splits

    @classmethod
    def suited(cls, estimator: Any, X: Array, codes: Rows, splits: Splits) -> Self | None:
        """Return an instance if it can reproduce the estimator exactly, else None."""
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
        """Estimate the memory in bytes that is needed to score all candidates."""
        return 5.0 * n_samples * min(n_features, AT_ONCE) + 300 * n_samples

    def essential(self, subset: Subset) -> Subset:
        """Return the subset itself, because the classifier uses every column."""
        return subset

    def untrainable(self, subset: Subset) -> Array:
        """Return nan for every fold, because the classifier can always be trained."""
        return np.full(len(self.splits), np.nan)

    def value(self, subset: Subset) -> float:
        """Return the mean accuracy of a subset over the folds."""
        return float(self.grown(subset[:-1], subset[-1:])[0])

    def grown(self, subset: Subset, candidates: Subset) -> Array:
        """Return the mean accuracy of the subset with each candidate added."""
        return self._in_blocks(subset, candidates, 1.0, self._accuracy)

    def shrunk(self, subset: Subset) -> Array:
        """Return the mean accuracy of the subset with each of its members removed."""
        return self._in_blocks(subset, subset, -1.0, self._accuracy)

    def losses(self, subset: Subset, units: Subset, *, entering: bool) -> Array:
        """Return the mean squared loss of the vote shares with each unit added or removed."""
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
        # imported here because numba takes longer to load than most criteria run
        from tamis.compiled.neighbours import UNDECIDED

        accuracies = np.empty((len(candidates), len(self.splits)))
        for fold, (train, test) in enumerate(self.splits):
            predicted = self._votes(subset, candidates, sign, train, test, squared=False)
            undecided = predicted == UNDECIDED
            for index in np.flatnonzero(undecided.any(axis=1)):
                rows, unit = np.flatnonzero(undecided[index]), candidates[index]
                changed = with_unit(subset, unit) if sign > 0 else subset[subset != unit]
                predicted[index, rows] = self._predict(changed, train, test[rows])
            accuracies[:, fold] = (predicted == self.codes[test]).mean(axis=1)
        return accuracies.mean(axis=1)

    def _squared_loss(self, subset: Subset, candidates: Subset, sign: float) -> Array:
        found = np.empty((len(candidates), len(self.splits)))
        for fold, (train, test) in enumerate(self.splits):
            losses = self._votes(subset, candidates, sign, train, test, squared=True)
            found[:, fold] = losses.mean(axis=1)  # nan if the k-th neighbour of a row is tied
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
        """Return the predicted class, or the squared loss, for each candidate and test row.

        The compiled loop is called for a block of test rows at a time, so that it can be
        interrupted.
        """
        from tamis.compiled.neighbours import votes

        k, n_classes = self.estimator.n_neighbors, int(self.codes.max()) + 1
        columns = subset, candidates, sign, k, n_classes, squared
        parts = thresholds.in_calls(len(test), len(train) * float(len(subset) + len(candidates)))
        return np.hstack([votes(self.X, self.codes, train, test[p], *columns) for p in parts])

    def _predict(self, subset: Subset, train: Rows, rows: Rows) -> Rows:
        """Predict the given rows as scikit-learn does, after training on the training rows."""
        known, new = self.X[np.ix_(train, subset)], self.X[np.ix_(rows, subset)]
        k, n_classes = self.estimator.n_neighbors, int(self.codes.max()) + 1
        with config_context(assume_finite=True, skip_parameter_validation=True):
            if not self._grows_tree(*known.shape):
                model = clone(self.estimator).fit(known, self.codes[train])
                return np.asarray(model.predict(new))
            # the same tree that the estimator would build, without the cost of its checks
            tree = KDTree(known, leaf_size=self.estimator.leaf_size)
            neighbours = self.codes[train][tree.query(new, k, return_distance=False)]
        return (neighbours[..., None] == np.arange(n_classes)).sum(axis=1).argmax(axis=1)

    def _grows_tree(self, n_samples: int, n_features: int) -> bool:
        """Return whether scikit-learn would use a k-d tree to find the neighbours."""
        if self.estimator.algorithm == "auto":
            return n_features <= 15 and self.estimator.n_neighbors < n_samples // 2
        return bool(self.estimator.algorithm == "kd_tree")
