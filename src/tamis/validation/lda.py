"""Cross-validated accuracy of linear discriminant analysis, all candidates of a step at once.

With the pooled within-class covariance W and the class means m_k of a training fold, class k beats
class 0 at x by

    z_k(x) = δ_k' W⁻¹ (x - μ_k) + log(π_k / π_0),   δ_k = m_k - m_0,   μ_k = (m_k + m_0) / 2.

Adding a column to the subset S borders W, and removing one takes a border away. Both change the
bilinear form v'W⁻¹w by a term ω e(v) e(w) with one linear function e per column:

    adding j:    e(v) = v_j - u'v_S,  u = W_SS⁻¹ W_Sj,  ω = 1 / (W_jj - u'W_Sj)
    removing i:  e(v) = a_i'v_S,      a_i column i of W_SS⁻¹,  ω = -1 / a_ii

so that a candidate costs one product per test row. Whatever rounding could decide, a test row on
the border or a rank near the tolerance of scikit-learn, is answered nan, and asked of scikit-learn.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import softmax
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from tamis._arrays import Array, Mask, Subset, in_range
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


# Weights of rows in folds and classes, 256 megabytes of them: past this (leave-one-out of
# thousands) they are not worth their memory.
MOST_WEIGHTS = 2**25
# Numbers in a block of test rows times candidates: 16 megabytes, several of which are held at once.
BLOCK = 2**21
# Eigenvalues of a correlation matrix below this are rounding: a thousand columns leave 1e-13.
ZERO = 1e-12


def is_plain_lda(estimator: Any) -> bool:
    """Whether moments describe an estimator exactly: discriminant analysis without options.

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
    trace: Array  # (folds,), of the inverse correlations: at least 1 / the least eigenvalue
    rank: Rows  # (folds,)
    clear: bool  # no eigenvalue near the tolerance that decides the rank
    exact: bool  # what is left out is rounding

    @property
    def full(self) -> bool:
        return bool((self.rank == self.matrix.shape[1]).all())


class LDAFolds:
    """Fold statistics of linear discriminant analysis.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    codes : array of int
        Class of each row, from 0.
    splits : list of (train, test)
        Every class must be in every training fold.
    priors : array or None
    tol : float
        Tolerance of the estimator for its ranks.
    """

    @classmethod
    def suited(cls, estimator: Any, X: Array, codes: Rows, splits: Splits) -> Self | None:
        """The fold statistics if the estimator is one that they describe exactly, else None."""
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
        """Estimate the bytes held by the moments and while all candidates are scored."""
        size = n_samples * n_features
        return 24.0 * size + 24 * min(size, BLOCK) + 8.0 * n_folds * n_features * 5

    def __init__(
        self,
        X: Array,
        codes: Rows,
        splits: Splits,
        priors: Array | None = None,
        tol: float = 1e-4,
    ):
        self.tol = tol
        self.X = X = in_range(X)  # discriminant analysis does not depend on the scale of a column
        self.moments = moments = FoldMoments(X, codes, splits, priors)
        self.constant: Mask = X.min(axis=0) == X.max(axis=0)
        # a spread that is only rounding is noise, which scikit-learn scales up in its own way
        self.flat: Mask = moments.spread <= 1e-7 * np.abs(moments.X).max(axis=0)
        self.dubious: Mask = self.constant | self.flat.any(axis=0)

    def essential(self, subset: Subset) -> Subset:
        """The subset without constant columns, which scikit-learn leaves out of the model."""
        return subset[~self.constant[subset]]

    def untrainable(self, subset: Subset) -> Array:
        """Accuracy in each fold where nothing varies inside the classes, nan in the others.

        scikit-learn fails there. What its answer tends to as such a spread shrinks to nothing is
        the class of the nearest mean, of equally near ones the one of the greatest prior.
        """
        found = np.full(len(self.moments.sizes), np.nan)
        for fold in np.flatnonzero(self.flat[:, subset].all(axis=1)).tolist():
            if not self._rank(fold, subset):
                found[fold] = self._nearest_mean(fold, subset)
        return found

    def _rank(self, fold: int, subset: Subset) -> int:
        """Rank of the spread inside the classes, by scikit-learn's rule."""
        # of the columns as scikit-learn sees them: a shift would leave rounding where is nothing
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
        # in units of what the means differ by, so that no column decides by its scale
        unit = np.ptp(means, axis=0)
        rounding = 1e-12 * np.abs(self.moments.X[:, subset]).max(axis=0)
        unit = np.where(unit > rounding, unit, np.inf)
        away = (self.moments.tests[rows][:, None, subset] - means) / unit
        distances = np.square(away).sum(axis=2).round(9)
        by_prior = np.argsort(-self.moments.priors[fold], kind="stable")
        answers = by_prior[distances[:, by_prior].argmin(axis=1)]
        return float((answers == self.moments.truth[rows]).mean())

    def value(self, subset: Subset) -> float:
        """Mean accuracy of one subset."""
        inverse = self._inverse(subset)
        if not inverse.clear:
            return float("nan")
        none = np.zeros((len(self.moments.tests), 1)), np.zeros((*self.moments.means.shape[:2], 1))
        weight = np.zeros((len(self.moments.sizes), 1))
        base, spaces = self._base(subset, inverse), self._between(subset, inverse)
        return float(
            self._accuracy(base, spaces, *none, weight, inverse.trace[:, None], inverse.rank)[0]
        )

    def grown(self, subset: Subset, candidates: Subset) -> Array:
        """Mean accuracy of the subset and each candidate."""
        return self._grown(subset, candidates, self._accuracy, BLOCK)

    def shrunk(self, subset: Subset) -> Array:
        """Mean accuracy of the subset without each of its members."""
        return self._shrunk(subset, self._accuracy)

    def losses(self, subset: Subset, units: Subset, *, entering: bool) -> Array:
        """Mean squared loss of the probabilities once each of the units has entered, or left."""
        if entering:  # all classes are held at a time
            return self._grown(
                subset, units, self._squared_loss, BLOCK // self.moments.means.shape[1]
            )
        return self._shrunk(subset, self._squared_loss)[np.searchsorted(subset, units)]

    def _grown(
        self, subset: Subset, candidates: Subset, measure: Callable[..., Array], held: int
    ) -> Array:
        """What is measured of the subset and each candidate, so many numbers at a time."""
        inverse = self._inverse(subset)
        found = np.full(len(candidates), np.nan)
        usable = np.flatnonzero(~self.dubious[candidates])
        if not (inverse.clear and inverse.exact):
            return found
        base, spaces = self._base(subset, inverse), self._between(subset, inverse)
        block = max(1, held // len(self.moments.tests))
        for first in range(0, len(usable), block):
            indices = usable[first : first + block]
            border = self._bordered(subset, candidates[indices], inverse)
            found[indices] = measure(base, spaces, *border, inverse.rank + 1)
        return found

    def _shrunk(self, subset: Subset, measure: Callable[..., Array]) -> Array:
        """What is measured of the subset without each of its members."""
        inverse = self._inverse(subset)
        if not (inverse.clear and inverse.full) or len(subset) < 2:
            return np.full(len(subset), np.nan)
        A = inverse.matrix
        rows = np.empty((len(self.moments.tests), len(subset)))
        for part, a in zip(self.moments.parts, A, strict=True):
            rows[part] = self.moments.tests[part][:, subset] @ a
        centres = self.moments.means[:, :, subset] @ A
        diagonal = np.diagonal(A, axis1=1, axis2=2)
        # columns of the inverse correlations, but for the deviation of the column itself
        scaled = A * self.moments.spread[:, subset, None]
        trace = inverse.trace[:, None] - np.square(scaled).sum(axis=1) / diagonal
        base, spaces = self._base(subset, inverse), self._between(subset, inverse)
        return measure(base, spaces, rows, centres, -1 / diagonal, trace, inverse.rank - 1)

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
        # scikit-learn cuts singular values of the data, whose squares these are: within a twentieth
        # of the cut, or of the rounding of such a square, either side may be taken
        near = np.abs(roots - limit) <= 0.05 * limit + 10 * ZERO * limit**0.5
        return Inverse(
            matrix,
            inverted.sum(axis=1),
            kept.sum(axis=1),
            not near.any(),
            bool((np.abs(roots[~kept]) < ZERO).all()),
        )

    def _base(self, subset: Subset, inverse: Inverse) -> Array:
        """z_k of the subset itself at every test row, (rows, classes - 1)."""
        means = self.moments.means[:, :, subset]
        step, middle = means[:, 1:] - means[:, :1], (means[:, 1:] + means[:, :1]) / 2
        normal = step @ inverse.matrix
        constant = self.moments.log_odds - np.einsum("fkj,fkj->fk", normal, middle)
        scores = constant[self.moments.fold]
        for part, w in zip(self.moments.parts, normal, strict=True):
            scores[part] += self.moments.tests[part][:, subset] @ w.T
        return scores

    def _between(self, subset: Subset, inverse: Inverse) -> Array | None:
        """Products of the whitened, weighted class means, (folds, classes, classes).

        Two classes span one direction; with more, their rank is checked.
        """
        if self.moments.means.shape[1] == 2:
            return None
        centres = self._weighted(self.moments.means[:, :, subset])
        return centres @ inverse.matrix @ centres.transpose(0, 2, 1)

    def _weighted(self, means: Array) -> Array:
        overall = np.einsum("fk,fkj->fj", self.moments.priors, means)
        return np.sqrt(self.moments.priors)[..., None] * (means - overall[:, None])

    def _bordered(
        self, subset: Subset, candidates: Subset, inverse: Inverse
    ) -> tuple[Array, Array, Array, Array]:
        """e at the test rows and at the class means, ω, and the trace, for each candidate."""
        across = self.moments.covariance(subset)[:, :, candidates]
        u = inverse.matrix @ across
        rows = self.moments.tests[:, candidates]
        for part, coefficients in zip(self.moments.parts, u, strict=True):
            rows[part] -= self.moments.tests[part][:, subset] @ coefficients
        centres = self.moments.means[:, :, candidates] - self.moments.means[:, :, subset] @ u
        variance = self.moments.spread[:, candidates] ** 2
        left = variance - np.einsum("fsj,fsj->fj", across, u)
        # a candidate that depends on the subset is left to ``value``: its trace is infinite
        weight = np.divide(1.0, left, out=np.zeros_like(left), where=left > ZERO * variance)
        scaled = np.square(u * self.moments.spread[:, subset, None]).sum(axis=1)
        trace = inverse.trace[:, None] + (variance + scaled) * weight
        return rows, centres, weight, np.where(weight > 0, trace, np.inf)

    def _accuracy(
        self,
        base: Array,
        spaces: Array | None,
        rows: Array,
        centres: Array,
        weight: Array,
        trace: Array,
        rank: Rows,
    ) -> Array:
        """Mean accuracy of each change of the subset, nan where rounding could decide."""
        margins = self._margins(base, rows, centres, weight)
        hits = np.add.reduceat(margins > 0, self.moments.starts, axis=0, dtype=np.intp)
        accuracies = (hits.T / self.moments.sizes).mean(axis=1)
        size = np.abs(margins)
        trust = self._ranked(spaces, centres, weight, trace, rank)
        # a margin that is rounding (of sums, and of the inverse, which the trace magnifies) decides
        # nothing; a thousandfold of what double precision leaves is asked
        worst = np.where(trust, trace.max(axis=0), 0.0)
        trust &= size.min(axis=0) > (1e-10 + 1e-13 * worst) * (1 + size.max(axis=0))
        return np.where(trust, accuracies, np.nan)

    def _squared_loss(
        self,
        base: Array,
        spaces: Array | None,
        rows: Array,
        centres: Array,
        weight: Array,
        trace: Array,
        rank: Rows,
    ) -> Array:
        """Mean squared loss of each change of the subset, nan where it may have lost digits."""
        scores = self._log_odds(base, rows, centres, weight)
        worst = np.abs(scores).max(axis=(0, 1))
        shares = softmax(scores, axis=0)
        losses = np.zeros_like(rows)
        for k, share in enumerate(shares):
            losses += (share - (self.moments.truth == k)[:, None]) ** 2
        sums = np.add.reduceat(losses, self.moments.starts, axis=0)
        trust = self._ranked(spaces, centres, weight, trace, rank)
        # log-odds lose as many digits as the trace has, and a loss moves by less than they do
        trust &= np.where(trust, trace.max(axis=0), 0.0) * (1 + worst) < 1e6
        return np.where(trust, (sums.T / self.moments.sizes).mean(axis=1), np.nan)

    def _ranked(
        self, spaces: Array | None, centres: Array, weight: Array, trace: Array, rank: Rows
    ) -> Mask:
        """Whether the ranks that scikit-learn finds are sure to be those that are used here."""
        # the trace bounds the condition number: past this the rank, or half the digits, are lost
        trust: Mask = np.all(trace < 1 / max(1.05 * self.tol**2, 1e-10), axis=0)
        if spaces is not None:
            trust &= self._spanned(spaces, centres, weight, rank)
        return trust

    def _log_odds(self, base: Array, rows: Array, centres: Array, weight: Array) -> Array:
        """z_k at every test row for every class, that of class 0 being 0, (classes, rows, ...)."""
        found = np.zeros((base.shape[1] + 1, *rows.shape))
        slope = (centres[:, 1:] - centres[:, :1]) * weight[:, None]
        offset = slope * (centres[:, 1:] + centres[:, :1]) / 2
        for k in range(base.shape[1]):
            fold = self.moments.fold
            found[k + 1] = slope[fold, k] * rows - offset[fold, k] + base[:, k, None]
        return found

    def _margins(self, base: Array, rows: Array, centres: Array, weight: Array) -> Array:
        """By how much the true class beats the best other, (rows, candidates)."""
        slope = (centres[:, 1:] - centres[:, :1]) * weight[:, None]
        offset = slope * (centres[:, 1:] + centres[:, :1]) / 2
        true = np.zeros_like(rows)
        other = np.where(self.moments.truth == 0, -np.inf, 0.0)[:, None] + true
        for k in range(base.shape[1]):
            score = slope[self.moments.fold, k]
            score *= rows
            score -= offset[self.moments.fold, k]
            score += base[:, k, None]
            mine = self.moments.truth == k + 1
            true[mine] = score[mine]
            score[mine] = -np.inf
            np.maximum(other, score, out=other)
        return true - other

    def _spanned(self, spaces: Array, centres: Array, weight: Array, rank: Rows) -> Mask:
        """Whether the class means clearly span as many directions as they can.

        scikit-learn leaves out directions below its tolerance, which the bilinear form keeps.
        """
        g = self._weighted(centres).transpose(0, 2, 1)  # (folds, candidates, classes)
        products = spaces[:, None] + weight[..., None, None] * g[..., :, None] * g[..., None, :]
        roots = np.linalg.eigvalsh(products)[..., ::-1]
        last = np.clip(np.minimum(rank, roots.shape[-1] - 1) - 1, 0, None)
        least = np.take_along_axis(roots, last[:, None, None], axis=2)[..., 0]
        return np.all(least > 1.05 * self.tol**2 * roots[..., 0], axis=0)
