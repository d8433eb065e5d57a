"""Means and covariances within classes of every training fold, as far as they are asked for."""

import numpy as np

from tamis._arrays import Array, Mask, Subset
from tamis.validation import Rows, Splits

# Numbers in a block of rows times columns, and in the covariance rows that are kept: 16 megabytes
# pass through the caches quickly, and 256 hold every row of 2 500 columns in five folds.
BLOCK = 2**21
KEPT = 2**25


class FoldMoments:
    """Moments of the training folds, and the test rows of all folds one below the other.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    codes : array of int
        Class of each row, from 0.
    splits : list of (train, test)
        Every class must be in every training fold.
    priors : array or None
        Shares of the classes; None is what they are in each training fold.
    """

    def __init__(self, X: Array, codes: Rows, splits: Splits, priors: Array | None):
        self.codes = codes
        shift = X.mean(axis=0)
        # nothing depends on the origin, except the accuracy of what follows
        self.X = X - shift if (np.abs(shift) > X.std(axis=0)).any() else X
        self._cut(splits)
        self._average(priors)
        self._rows: dict[int, Array] = {}

    def _cut(self, splits: Splits) -> None:
        """Training masks, and the test rows."""
        self.training: Mask = np.zeros((len(splits), len(self.X)), dtype=bool)
        for mask, (train, _) in zip(self.training, splits, strict=True):
            mask[train] = True
        tests = [test for _, test in splits]
        self.sizes = np.array([len(test) for test in tests])
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.parts = [slice(a, a + n) for a, n in zip(self.starts, self.sizes, strict=True)]
        self.fold = np.repeat(np.arange(len(splits)), self.sizes)
        rows = np.concatenate(tests)
        self.tests: Array = np.asfortranarray(self.X[rows])
        self.truth = self.codes[rows]

    def _average(self, priors: Array | None) -> None:
        """Class means, priors and standard deviations within classes of each training fold."""
        n_classes = int(self.codes.max()) + 1
        members = self.codes == np.arange(n_classes)[:, None]
        weights = (self.training[:, None] & members).astype(float)
        counts = weights.sum(axis=2)
        self.n_train = counts.sum(axis=1)
        weights /= counts[..., None]
        self.means: Array = weights @ self.X
        shares = counts / self.n_train[:, None]
        self.priors: Array = shares if priors is None else np.broadcast_to(priors, shares.shape)
        self.log_odds = np.log(self.priors[:, 1:] / self.priors[:, :1])
        variance = np.empty((len(counts), self.X.shape[1]))
        for fold, mask in enumerate(self.training):
            variance[fold] = self._variances(fold, mask)
        self.spread = np.sqrt(variance)

    def _variances(self, fold: int, mask: Mask) -> Array:
        block = max(1, BLOCK // len(mask))
        codes, found = self.codes[mask], []
        for first in range(0, self.X.shape[1], block):
            columns = slice(first, first + block)
            centred = self.X[mask, columns] - self.means[fold, codes, columns]
            found.append(np.einsum("ij,ij->j", centred, centred) / len(codes))
        return np.concatenate(found)

    def covariance(self, subset: Subset) -> Array:
        """Covariances of the members of a subset with all columns, (folds, size, columns)."""
        if len(subset) == 0:
            return np.empty((len(self.sizes), 0, self.X.shape[1]))
        return np.stack([self._covariance_row(int(j)) for j in subset], axis=1)

    def _covariance_row(self, column: int) -> Array:
        """Covariances of one column with all others, within classes, in each fold."""
        if column not in self._rows:
            if (len(self._rows) + 1) * self.means[:, 0].size > KEPT:
                self._rows.clear()
            x = self.X[:, column]
            centred = np.where(self.training, x - self.means[:, self.codes, column], 0.0)
            # columns centred on one side only: the other side's means meet sums that are zero
            self._rows[column] = centred @ self.X / self.n_train[:, None]
        return self._rows[column]
