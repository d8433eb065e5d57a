"""Cross-validated accuracy of linear discriminant analysis for all candidates of a search step.

With the pooled within-class covariance W and the class means m_k of a training fold, the log-odds
of class k against class 0 at x are

    z_k(x) = δ_k' W⁻¹ (x - μ_k) + log(π_k / π_0),   δ_k = m_k - m_0,   μ_k = (m_k + m_0) / 2.

Here x is a row of the table, and π_k is the prior of class k. Adding a column to the subset S adds
a row and a column to W, and removing it removes them. Both change the bilinear form v'W⁻¹w by a
term ω e(v) e(w), with a linear function e for each column:

    adding j:    e(v) = v_j - u'v_S,  u = W_SS⁻¹ W_Sj,  ω = 1 / (W_jj - u'W_Sj)
    removing i:  e(v) = a_i'v_S,      a_i column i of W_SS⁻¹,  ω = -1 / a_ii

So a candidate takes a single inner product per test row. If rounding could change a value, it is
nan, and scikit-learn computes it instead. This happens if a test row is on a decision boundary, or
if an eigenvalue is near the tolerance that decides a rank in scikit-learn.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import softmax
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from tamis._arrays import Array, Mask, Subset, in_range
from tamis.validation import Rows, Splits

# Number of entries in a block of rows times columns or candidates. They take 16 megabytes, which
# pass through the CPU caches quickly.
BLOCK = 2**21
# Number of covariances in the cache. They take 256 megabytes, enough for all rows of the covariance
# matrices of 2 500 columns in five folds.
KEPT = 2**25
# Maximum product of the numbers of rows, folds and classes. At this limit, the weights take 256
# megabytes. Above it, as in leave-one-out of thousands of rows, LDAFolds is not used.
MOST_WEIGHTS = 2**25
# Eigenvalues of a correlation matrix below this are treated as rounding, which is about 1e-13 for a
# thousand columns.
ZERO = 1e-12


class FoldMoments:
    """Moments of the training folds, and the stacked test rows of all folds.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    codes : array of int
        Class of each row, from 0.
    splits : list of (train, test)
        Every class must be in every training fold.
    priors : array or None
        Prior probabilities of the classes. None uses their shares in each training fold.
    """

    def __init__(self, X: Array, codes: Rows, splits: Splits, priors: Array | None):
        self.codes = codes
        shift = X.mean(axis=0)
        # subtracting a constant changes no result, but large means would lose digits
        self.X = X - shift if (np.abs(shift) > X.std(axis=0)).any() else X
        self._split(splits)
        self._average(priors)
        self._rows: dict[int, Array] = {}

    def _split(self, splits: Splits) -> None:
        """Set the mask of the training rows of each fold, and the test rows of all folds."""
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
        """Set class means, priors and within-class standard deviations of each training fold."""
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
        """Return the covariances between a subset and all columns, (folds, subset, columns)."""
        if len(subset) == 0:
            return np.empty((len(self.sizes), 0, self.X.shape[1]))
        return np.stack([self._covariance_row(int(j)) for j in subset], axis=1)

    def _covariance_row(self, column: int) -> Array:
        """Return the within-class covariances between a column and all columns, for each fold."""
        if column not in self._rows:
            if (len(self._rows) + 1) * self.means[:, 0].size > KEPT:
                self._rows.clear()
            x = self.X[:, column]
            centred = np.where(self.training, x - self.means[:, self.codes, column], 0.0)
            # it suffices to centre one factor, because it sums to zero within each class
            self._rows[column] = centred @ self.X / self.n_train[:, None]
        return self._rows[column]


def is_plain_lda(estimator: Any) -> bool:
    """Return whether an estimator is LDA with the solver "svd" and without special options.

    Its result can be computed exactly from the moments.

    >>> is_plain_lda(LinearDiscriminantAnalysis()), is_plain_lda(None)
    (True, False)
    """
    if type(estimator) is not LinearDiscriminantAnalysis or estimator.solver != "svd":
        return False
    special = (estimator.shrinkage, estimator.n_components, estimator.covariance_estimator)
    return all(option is None for option in special)


class Inverse(NamedTuple):
    """Inverse of the within-class covariance of a subset in each fold."""

    matrix: Array  # (folds, size, size)
    trace: Array  # (folds,): trace of the inverse correlation matrix
    rank: Rows  # (folds,)
    clear: bool  # whether no eigenvalue is near the tolerance that decides the rank
    exact: bool  # whether all eigenvalues below the tolerance are only rounding

    @property
    def full(self) -> bool:
        """Whether the covariance has full rank in every fold."""
        return bool((self.rank == self.matrix.shape[1]).all())


class Start(NamedTuple):
    """The discriminants of a subset before a column is added or removed."""

    scores: Array  # log-odds z_k of each test row, (rows, classes - 1)
    means: Array | None  # inner products of the whitened class means, None for two classes


class SubsetChange(NamedTuple):
    """The change ω e(v) e(w) of the bilinear form for each candidate that is added or removed."""

    rows: Array  # e of each test row, (rows, candidates)
    centres: Array  # e of each class mean, (folds, classes, candidates)
    weight: Array  # ω, (folds, candidates)
    trace: Array  # trace of the inverse correlation matrix after the change, (folds, candidates)
    rank: Rows  # rank after the change, (folds,)


class LDAFolds:
    """Cross-validated accuracy of linear discriminant analysis for all candidates of a search step.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    codes : array of int
        Class of each row as a number from 0.
    splits : list of (train, test)
        Every class must be in every training fold.
    priors : array or None
        Prior probabilities of the classes. None uses their shares in each training fold.
    tol : float
        Tolerance with which the estimator determines ranks.
    """

    @classmethod
    def suited(cls, estimator: Any, X: Array, codes: Rows, splits: Splits) -> Self | None:
        """Return an instance if it can reproduce the estimator exactly, else None."""
        n_classes = int(codes.max()) + 1
        if not is_plain_lda(estimator) or len(codes) * len(splits) * n_classes > MOST_WEIGHTS:
            return None
        for train, _ in splits:
            counts = np.bincount(codes[train], minlength=n_classes)
            if counts.min() == 0 or len(train) <= n_classes or len(np.unique(train)) < len(train):
                return None
        priors = estimator.priors
        if priors is not None:
            priors = np.asarray(priors, dtype=float)
            if priors.shape != (n_classes,) or priors.min() <= 0 or abs(priors.sum() - 1) > 1e-9:
                return None
        return cls(X, codes, splits, priors, estimator.tol)

    @staticmethod
    def cost(n_samples: int, n_features: int, n_folds: int) -> float:
        """Estimate the memory in bytes that the moments and the scoring of all candidates need."""
        size = n_samples * n_features
        return 24.0 * size + 24 * min(size, BLOCK) + 8.0 * n_folds * n_features * 5

    def __init__(
        self, X: Array, codes: Rows, splits: Splits, priors: Array | None = None, tol: float = 1e-4
    ):
        self.tol = tol
        self.X = X = in_range(X)  # discriminant analysis does not depend on the scale of a column
        self.moments = moments = FoldMoments(X, codes, splits, priors)
        self.constant: Mask = X.min(axis=0) == X.max(axis=0)
        # a standard deviation this small is only rounding, which scikit-learn would scale up
        self.flat: Mask = moments.spread <= 1e-7 * np.abs(moments.X).max(axis=0)
        self.dubious: Mask = self.constant | self.flat.any(axis=0)

    def essential(self, subset: Subset) -> Subset:
        """Return the subset without constant columns, which scikit-learn drops."""
        return subset[~self.constant[subset]]

    def untrainable(self, subset: Subset) -> Array:
        """Return an accuracy for each fold in which all columns are constant within the classes.

        For all other folds, the value is nan. scikit-learn cannot be trained in such a fold. As the
        variance goes to zero, LDA predicts the class with the nearest mean, so the accuracy of this
        prediction is returned. Ties go to the greatest prior.
        """
        found = np.full(len(self.moments.sizes), np.nan)
        for fold in np.flatnonzero(self.flat[:, subset].all(axis=1)).tolist():
            if not self._rank(fold, subset):
                found[fold] = self._nearest_mean(fold, subset)
        return found

    def _rank(self, fold: int, subset: Subset) -> int:
        """Return the rank of the within-class covariance, determined as in scikit-learn."""
        # columns without a shift, as in scikit-learn: a shift would turn zeros into rounding errors
        mask, codes = self.moments.training[fold], self.moments.codes
        centred = self.X[np.ix_(mask, subset)]
        for k in range(self.moments.means.shape[1]):
            mine = codes[mask] == k
            centred[mine] -= centred[mine].mean(axis=0)
        spread = centred.std(axis=0)
        spread[spread == 0] = 1.0
        freedom = len(centred) - self.moments.means.shape[1]
        singular = np.linalg.svd(centred / spread / np.sqrt(freedom), compute_uv=False)
        return int((singular > self.tol).sum())

    def _nearest_mean(self, fold: int, subset: Subset) -> float:
        means, rows = self.moments.means[fold][:, subset], self.moments.parts[fold]
        # in units of the range of the means, so that the scale of a column does not matter
        unit = np.ptp(means, axis=0)
        rounding = 1e-12 * np.abs(self.moments.X[:, subset]).max(axis=0)
        unit = np.where(unit > rounding, unit, np.inf)
        away = (self.moments.tests[rows][:, None, subset] - means) / unit
        distances = np.square(away).sum(axis=2).round(9)
        by_prior = np.argsort(-self.moments.priors[fold], kind="stable")
        predicted = by_prior[distances[:, by_prior].argmin(axis=1)]
        return float((predicted == self.moments.truth[rows]).mean())

    def value(self, subset: Subset) -> float:
        """Return the mean accuracy of a subset over the folds."""
        inverse = self._inverse(subset)
        if not inverse.clear:
            return float("nan")
        none = np.zeros((len(self.moments.tests), 1)), np.zeros((*self.moments.means.shape[:2], 1))
        weight = np.zeros((len(self.moments.sizes), 1))
        change = SubsetChange(*none, weight, inverse.trace[:, None], inverse.rank)
        return float(self._accuracy(self._start(subset, inverse), change)[0])

    def grown(self, subset: Subset, candidates: Subset) -> Array:
        """Return the mean accuracy of the subset with each candidate added."""
        return self._grown(subset, candidates, self._accuracy, BLOCK)

    def shrunk(self, subset: Subset) -> Array:
        """Return the mean accuracy of the subset with each of its members removed."""
        return self._shrunk(subset, self._accuracy)

    def losses(self, subset: Subset, units: Subset, *, entering: bool) -> Array:
        """Return the mean squared loss of the probabilities with each unit added or removed."""
        if entering:  # smaller blocks, because the scores of all classes are in memory at once
            return self._grown(
                subset, units, self._squared_loss, BLOCK // self.moments.means.shape[1]
            )
        return self._shrunk(subset, self._squared_loss)[np.searchsorted(subset, units)]

    def _grown(
        self, subset: Subset, candidates: Subset, measure: Callable[..., Array], held: int
    ) -> Array:
        """Return the measure of the subset with each candidate added.

        At most about ``held`` numbers are in memory at a time.
        A value that rounding could change is nan.
        """
        inverse = self._inverse(subset)
        found = np.full(len(candidates), np.nan)
        usable = np.flatnonzero(~self.dubious[candidates])
        if not (inverse.clear and inverse.exact):
            return found
        start, block = self._start(subset, inverse), max(1, held // len(self.moments.tests))
        for first in range(0, len(usable), block):
            indices = usable[first : first + block]
            found[indices] = measure(start, self._additions(subset, candidates[indices], inverse))
        return found

    def _shrunk(self, subset: Subset, measure: Callable[..., Array]) -> Array:
        """Return the measure of the subset with each of its members removed.

        A value that rounding could change is nan.
        """
        inverse = self._inverse(subset)
        if not (inverse.clear and inverse.full) or len(subset) < 2:
            return np.full(len(subset), np.nan)
        A = inverse.matrix
        rows = np.empty((len(self.moments.tests), len(subset)))
        for part, a in zip(self.moments.parts, A, strict=True):
            rows[part] = self.moments.tests[part][:, subset] @ a
        centres = self.moments.means[:, :, subset] @ A
        diagonal = np.diagonal(A, axis1=1, axis2=2)
        # columns of the inverse correlation matrix, each divided by its own standard deviation
        scaled = A * self.moments.spread[:, subset, None]
        trace = inverse.trace[:, None] - np.square(scaled).sum(axis=1) / diagonal
        change = SubsetChange(rows, centres, -1 / diagonal, trace, inverse.rank - 1)
        return measure(self._start(subset, inverse), change)

    def _inverse(self, subset: Subset) -> Inverse:
        spread = self.moments.spread[:, subset]
        scale = spread[:, :, None] * spread[:, None, :]
        if self.dubious[subset].any():
            size = len(subset)
            nothing = np.zeros((len(spread), size, size))
            rank = np.zeros(len(spread), dtype=np.intp)
            return Inverse(nothing, np.zeros(len(spread)), rank, False, False)
        correlation = self.moments.covariance(subset)[:, :, subset] / scale
        correlation = (correlation + correlation.transpose(0, 2, 1)) / 2
        roots, vectors = np.linalg.eigh(correlation)
        limit = self.tol**2
        kept = roots > limit
        inverted = np.divide(1.0, roots, out=np.zeros_like(roots), where=kept)
        matrix = (vectors * inverted[:, None]) @ vectors.transpose(0, 2, 1) / scale
        # scikit-learn compares the singular values of the data with tol. The eigenvalues here are
        # their squares. Within 5 % of the limit, or within a rounding error of it, scikit-learn may
        # determine a different rank.
        near = np.abs(roots - limit) <= 0.05 * limit + 10 * ZERO * limit**0.5
        return Inverse(
            matrix,
            inverted.sum(axis=1),
            kept.sum(axis=1),
            not near.any(),
            bool((np.abs(roots[~kept]) < ZERO).all()),
        )

    def _start(self, subset: Subset, inverse: Inverse) -> Start:
        """Return the discriminants of the subset before any change."""
        means = self.moments.means[:, :, subset]
        step, middle = means[:, 1:] - means[:, :1], (means[:, 1:] + means[:, :1]) / 2
        normal = step @ inverse.matrix
        constant = self.moments.log_odds - np.einsum("fkj,fkj->fk", normal, middle)
        scores = constant[self.moments.fold]
        for part, w in zip(self.moments.parts, normal, strict=True):
            scores[part] += self.moments.tests[part][:, subset] @ w.T
        if means.shape[1] == 2:  # the means of two classes always span a single direction
            return Start(scores, None)
        centres = self._weighted(means)
        return Start(scores, centres @ inverse.matrix @ centres.transpose(0, 2, 1))

    def _weighted(self, means: Array) -> Array:
        overall = np.einsum("fk,fkj->fj", self.moments.priors, means)
        return np.sqrt(self.moments.priors)[..., None] * (means - overall[:, None])

    def _additions(self, subset: Subset, candidates: Subset, inverse: Inverse) -> SubsetChange:
        """Return how the discriminant function changes if each candidate is added to the subset."""
        across = self.moments.covariance(subset)[:, :, candidates]
        u = inverse.matrix @ across
        rows = self.moments.tests[:, candidates]
        for part, coefficients in zip(self.moments.parts, u, strict=True):
            rows[part] -= self.moments.tests[part][:, subset] @ coefficients
        centres = self.moments.means[:, :, candidates] - self.moments.means[:, :, subset] @ u
        variance = self.moments.spread[:, candidates] ** 2
        left = variance - np.einsum("fsj,fsj->fj", across, u)
        # the infinite trace of a linearly dependent candidate makes its result nan
        weight = np.divide(1.0, left, out=np.zeros_like(left), where=left > ZERO * variance)
        scaled = np.square(u * self.moments.spread[:, subset, None]).sum(axis=1)
        trace = inverse.trace[:, None] + (variance + scaled) * weight
        trace = np.where(weight > 0, trace, np.inf)
        return SubsetChange(rows, centres, weight, trace, inverse.rank + 1)

    def _accuracy(self, start: Start, change: SubsetChange) -> Array:
        """Return the mean accuracy after each change of the subset.

        A value that rounding could change is nan.
        """
        margins = self._margins(start, change)
        hits = np.add.reduceat(margins > 0, self.moments.starts, axis=0, dtype=np.intp)
        accuracies = (hits.T / self.moments.sizes).mean(axis=1)
        size = np.abs(margins)
        trust = self._ranked(start, change)
        # a margin must exceed 1000 times the rounding errors of sums and of the inverse, which grow
        # with the trace
        worst = np.where(trust, change.trace.max(axis=0), 0.0)
        trust &= size.min(axis=0) > (1e-10 + 1e-13 * worst) * (1 + size.max(axis=0))
        return np.where(trust, accuracies, np.nan)

    def _squared_loss(self, start: Start, change: SubsetChange) -> Array:
        """Return the mean squared loss after each change of the subset, or nan if it is inexact."""
        scores = np.stack([np.zeros_like(change.rows), *self._log_odds(start, change)])
        worst = np.abs(scores).max(axis=(0, 1))
        shares = softmax(scores, axis=0)
        losses = np.zeros_like(change.rows)
        for k, share in enumerate(shares):
            losses += (share - (self.moments.truth == k)[:, None]) ** 2
        sums = np.add.reduceat(losses, self.moments.starts, axis=0)
        trust = self._ranked(start, change)
        # the relative error of the log-odds grows with the trace; losses are less sensitive
        trust &= np.where(trust, change.trace.max(axis=0), 0.0) * (1 + worst) < 1e6
        return np.where(trust, (sums.T / self.moments.sizes).mean(axis=1), np.nan)

    def _ranked(self, start: Start, change: SubsetChange) -> Mask:
        """Return a mask of the candidates for which scikit-learn certainly finds the same ranks."""
        # the trace bounds the condition number; above this limit, the rank may differ, or more than
        # half of the digits are lost
        trust: Mask = np.all(change.trace < 1 / max(1.05 * self.tol**2, 1e-10), axis=0)
        if start.means is not None:
            trust &= self._spanned(start.means, change)
        return trust

    def _log_odds(self, start: Start, change: SubsetChange) -> Iterator[Array]:
        """Yield the log-odds z_k of shape (rows, candidates) for each class k > 0. z_0 is 0."""
        centres = change.centres
        slope = (centres[:, 1:] - centres[:, :1]) * change.weight[:, None]
        offset = slope * (centres[:, 1:] + centres[:, :1]) / 2
        for k in range(start.scores.shape[1]):
            score = slope[self.moments.fold, k]
            score *= change.rows
            score -= offset[self.moments.fold, k]
            score += start.scores[:, k, None]
            yield score

    def _margins(self, start: Start, change: SubsetChange) -> Array:
        """Return the log-odds of the true class against the best other, (rows, candidates)."""
        true = np.zeros_like(change.rows)
        other = np.where(self.moments.truth == 0, -np.inf, 0.0)[:, None] + true
        for k, score in enumerate(self._log_odds(start, change), 1):
            mine = self.moments.truth == k
            true[mine] = score[mine]
            score[mine] = -np.inf
            np.maximum(other, score, out=other)
        return true - other

    def _spanned(self, means: Array, change: SubsetChange) -> Mask:
        """Return a mask of the candidates whose class means span as many directions as they can.

        scikit-learn drops directions below its tolerance, but the bilinear form keeps them.
        """
        g = self._weighted(change.centres).transpose(0, 2, 1)  # (folds, candidates, classes)
        outer = g[..., :, None] * g[..., None, :]
        roots = np.linalg.eigvalsh(means[:, None] + change.weight[..., None, None] * outer)
        roots = roots[..., ::-1]
        last = np.clip(np.minimum(change.rank, roots.shape[-1] - 1) - 1, 0, None)
        least = np.take_along_axis(roots, last[:, None, None], axis=2)[..., 0]
        return np.all(least > 1.05 * self.tol**2 * roots[..., 0], axis=0)
