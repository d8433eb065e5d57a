"""Cross-validated linear discriminant analysis of a table in row blocks.

A first pass over the data adds up the moments of the folds. They determine the discriminants of any
subset in every fold. Each further pass counts the correctly predicted held-out rows of several
subsets at once. So a search step takes a single pass for any number of candidates.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from tamis._arrays import Array, Mask, Subset
from tamis._linalg import blocks, stacked
from tamis.blocks.labels import Labels
from tamis.blocks.moments import FoldRule, ShiftedSums, mirrored, scale_columns, sum_blocks
from tamis.blocks.source import OfChangedBlocks, RowBlock, RowStatistic
from tamis.blocks.table import BlockTable
from tamis.exceptions import InvalidParameter

#: Number of scores in memory at a time, which take 16 megabytes.
BLOCK = 2**21
#: Number of subsets whose results are cached, because a search returns to the subsets of its last
#: few steps.
REMEMBERED = 100_000
#: Nearest-mean scores are multiplied by SURE, so that the class with the nearest mean has a
#: probability of 1. AHEAD is added for each rank of the prior, so that ties go to the class with
#: the greater prior. It is far greater than rounding errors, and far smaller than a distance.
SURE, AHEAD = 1e20, 1e-10
#: A within-class standard deviation below this share of the largest value is treated as rounding,
#: as in :class:`tamis.validation.lda.LDAFolds`.
FLAT = 1e-7


class Discriminants(NamedTuple):
    """Linear discriminants of several subsets. A score is a sum of weighted columns plus an offset.

    For two classes there is a single score, positive for the second class. For more classes, each
    class has a score. ``own`` lists the columns that occur in only one subset, as triples: the
    columns, the subset of each column, and weights of shape (folds, columns, scores).
    """

    shared: Subset  # columns that several subsets have
    weights: Array  # (folds, shared columns, subsets * scores)
    own: "list[tuple[Subset, Subset, Array]]"
    offsets: Array  # (folds, subsets, scores)


@dataclass(eq=False, repr=False)
class HeldOutSums(RowStatistic):
    """Number of correctly predicted held-out rows in each fold, or the sum of their losses.

    Parameters
    ----------
    shift : array of shape (n_columns,)
    labels : Labels
    rule : FoldRule
    found : Discriminants
    losses : bool
        Whether to add up squared losses of the probabilities instead of correct predictions.
    """

    is_small = True

    shift: Array
    labels: Labels
    rule: FoldRule
    found: Discriminants
    losses: bool

    def empty(self) -> Any:
        shape = self.found.offsets.shape[:2]
        return np.zeros(shape) if self.losses else np.zeros(shape, dtype=np.int64)

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        codes = self.labels.codes(block.y)
        at_once = max(1, BLOCK // self.found.offsets[0].size)
        folds = self.rule.of(block.start, codes)
        for fold in np.unique(folds):
            rows = np.flatnonzero(folds == fold)
            for start in range(0, len(rows), at_once):
                some = rows[start : start + at_once]
                measure = self._sum_losses if self.losses else self._count_correct
                state[fold] += measure(self._scores(fold, block.X, some), codes[some])
        return state

    def _scores(self, fold: int, X: NDArray[Any], rows: NDArray[np.intp]) -> Array:
        """Return the scores of the given rows, of shape (rows, subsets, scores)."""
        found = self.found
        scores: Array = self._values(X, rows, found.shared) @ found.weights[fold]
        scores = scores.reshape(len(rows), *found.offsets.shape[1:])
        for columns, subsets, weights in found.own:
            scores[:, subsets] += self._values(X, rows, columns)[..., None] * weights[fold]
        scores += found.offsets[fold]
        return scores

    def _values(self, X: NDArray[Any], rows: NDArray[np.intp], columns: Subset) -> Array:
        return np.asarray(X[np.ix_(rows, columns)].astype(float) - self.shift[columns])

    def _count_correct(self, scores: Array, codes: NDArray[np.intp]) -> NDArray[np.int64]:
        if scores.shape[2] == 1:
            right = (scores[..., 0] > 0) == (codes == 1)[:, None]
        else:
            right = scores.argmax(axis=2) == codes[:, None]
        return right.sum(axis=0, dtype=np.int64)

    def _sum_losses(self, scores: Array, codes: NDArray[np.intp]) -> Array:
        if scores.shape[2] == 1:
            scores = np.concatenate([np.zeros_like(scores), scores], axis=2)
        shares = softmax(scores, axis=2)
        shares -= (codes[:, None] == np.arange(scores.shape[2]))[:, None]
        return np.asarray(np.einsum("rmc,rmc->m", shares, shares))


class SummedFolds:
    """Class means and within-class covariances of every training fold of a table in row blocks.

    Attributes
    ----------
    sizes : array of int
        Number of held-out rows of each fold.
    counts : array of shape (n_folds, n_classes)
        Number of held-out rows of each class in each fold.
    trained : array of shape (n_folds, n_classes)
        Number of training rows of each class in each fold.
    means : array of shape (n_folds, n_classes, n_columns)
        Class means of the training rows, after the shift. They are 0 for a missing class.
    within : array of shape (n_folds, n_columns, n_columns)
        Within-class covariances of the training rows.
    constant : array of bool of shape (n_columns,)
        Whether each column is constant.
    flat : array of bool of shape (n_folds, n_columns)
        Whether each column is constant within the classes of the training rows.
    shift, exponent : array
        The number that is subtracted from each column, and the exponent of the power of two by
        which the column is scaled.
    size : array of float
        The largest absolute value of each shifted column.
    """

    def __init__(self, table: BlockTable, rule: FoldRule):
        make = partial(ShiftedSums, labels=table.labels, n_matrices=rule.n_folds, rule=rule)
        added, self.shift, survey, self.exponent = sum_blocks(table, make, each_alone=True)
        counts = added.counts.reshape(rule.n_folds, -1)
        sums = added.sums.reshape(*counts.shape, -1)
        products = added.products
        self.counts: NDArray[np.int64] = counts
        self.sizes = counts.sum(axis=1)
        self.trained: NDArray[np.int64] = counts.sum(axis=0) - counts
        n_train = self.trained.sum(axis=1)
        total = sums.sum(axis=0) - sums
        self.means: Array = total / np.maximum(self.trained, 1)[..., None]
        everything = products.sum(axis=0)
        self.within: Array = np.empty(products.shape)
        for fold, (own, m, n) in enumerate(zip(products, self.means, n_train, strict=True)):
            shares = self.trained[fold] / n
            self.within[fold] = mirrored(everything - own) / n - (m.T * shares) @ m
        self.constant: Mask = survey.constant(table.standardize)
        self.size = np.maximum(survey.high - self.shift, self.shift - survey.low)
        spread = np.sqrt(np.maximum(np.diagonal(self.within, axis1=1, axis2=2), 0.0))
        self.flat: Mask = spread <= FLAT * self.size


class SummedLDA:
    """Accuracy of linear discriminant analysis in every fold of a table in row blocks.

    It is the same as with scikit-learn (solver "svd"), except for rows that are on a decision
    boundary up to rounding.

    Parameters
    ----------
    table : BlockTable
    estimator : LinearDiscriminantAnalysis
    rule : FoldRule
    """

    def __init__(self, table: BlockTable, estimator: Any, rule: FoldRule):
        self.table, self.rule, self.tol = table, rule, estimator.tol
        self.folds = folds = SummedFolds(table, rule)
        shares = folds.trained / folds.trained.sum(axis=1, keepdims=True)
        self.shares = shares
        priors = shares if estimator.priors is None else self._check_priors(estimator.priors)
        self.priors: Array = np.where(shares > 0, priors, 0.0)
        self._known: dict[bytes, NDArray[np.int64]] = {}

    def _check_priors(self, priors: Any) -> Array:
        given, n_classes = np.asarray(priors, dtype=float), self.shares.shape[1]
        if given.shape != (n_classes,) or given.min() <= 0 or abs(given.sum() - 1) > 1e-9:
            raise InvalidParameter(
                f"LinearDiscriminantAnalysis needs {n_classes} positive priors that sum to 1, one "
                f"for each class, but got priors={priors!r}. Leave priors out to use the class "
                "frequencies."
            )
        return np.broadcast_to(given, self.shares.shape)

    def _baseline(self) -> Array:
        """Return the accuracy in each fold if the most frequent training class is predicted."""
        best = self.folds.trained.argmax(axis=1)
        return np.asarray(self.folds.counts[np.arange(len(best)), best] / self.folds.sizes)

    @property
    def test_ratio(self) -> float:
        """Mean ratio of test rows to training rows."""
        return float(np.mean(self.folds.sizes / self.folds.trained.sum(axis=1)))

    def accuracies(self, subsets: list[Subset]) -> Array:
        """Return the accuracy of each subset in each fold, of shape (subsets, folds).

        This takes at most one pass over the data.
        """
        essential = [subset[~self.folds.constant[subset]] for subset in subsets]
        keys = [subset.tobytes() for subset in essential]
        new = {
            key: subset
            for key, subset in zip(keys, essential, strict=True)
            if len(subset) and key not in self._known
        }
        if len(self._known) + len(new) > REMEMBERED:
            self._known = {key: self._known[key] for key in keys if key in self._known}
        correct = self._pass(list(new.values()), losses=False)
        self._known.update(zip(new, correct.T, strict=True))
        baseline = self._baseline()
        found = [self._known[key] / self.folds.sizes if key else baseline for key in keys]
        return np.array(found).reshape(len(subsets), len(baseline))

    def losses(self, subsets: list[Subset]) -> Array:
        """Return the squared loss of the probabilities of each subset, averaged over the folds."""
        essential = [subset[~self.folds.constant[subset]] for subset in subsets]
        # the baseline predicts the shares of the classes
        sizes, counts = self.folds.sizes, self.folds.counts
        squares = (self.shares**2).sum(axis=1)
        baseline = np.mean(squares + 1 - 2 * (self.shares * counts).sum(axis=1) / sizes)
        found = np.full(len(subsets), baseline)
        varying = [i for i, subset in enumerate(essential) if len(subset)]
        sums = self._pass([essential[i] for i in varying], losses=True)
        found[varying] = (sums.T / sizes).mean(axis=1)
        return found

    def _pass(self, subsets: list[Subset], *, losses: bool) -> Any:
        """Return the sums over the held-out rows, of shape (folds, subsets).

        The sums are numbers of correct predictions, or losses.
        """
        if not subsets:
            return np.zeros((len(self.folds.sizes), 0))
        found, shift, labels = self._discriminants(subsets), self.folds.shift, self.table.labels
        statistic: RowStatistic = HeldOutSums(shift, labels, self.rule, found, losses)
        if self.folds.exponent.any():
            scale = partial(scale_columns, self.folds.exponent)
            statistic = OfChangedBlocks(statistic, scale)
        return self.table.reduce(statistic)

    def _discriminants(self, subsets: list[Subset]) -> Discriminants:
        """Return the discriminants of all subsets in all folds, computed from the moments."""
        n_folds, n_classes, n_columns = self.folds.means.shape
        n_scores = 1 if n_classes == 2 else n_classes
        counts = np.bincount(np.concatenate(subsets), minlength=n_columns)
        shared = np.flatnonzero(counts > 1)
        position = np.full(n_columns, -1)
        position[shared] = np.arange(len(shared))
        weights = np.zeros((n_folds, len(shared), len(subsets), n_scores))
        offsets = np.zeros((n_folds, len(subsets), n_scores))
        own: list[list[tuple[int, int, Array]]] = []
        for indices, stack in stacked(subsets):
            coefficients, offsets[:, indices] = self._solve(stack)
            for i, columns, w in zip(indices, stack, coefficients.swapaxes(0, 1), strict=True):
                among = position[columns] >= 0
                weights[:, position[columns[among]], i] = w[:, among]
                for depth, j in enumerate(np.flatnonzero(~among)):
                    if depth == len(own):
                        own.append([])
                    own[depth].append((int(columns[j]), int(i), w[:, j]))
        layers = [
            (
                np.array([column for column, _, _ in layer]),
                np.array([i for _, i, _ in layer]),
                np.stack([w for _, _, w in layer], axis=1),
            )
            for layer in own
        ]
        flat = weights.reshape(n_folds, len(shared), len(subsets) * n_scores)
        return Discriminants(shared, flat, layers, offsets)

    def _solve(self, stack: NDArray[np.intp]) -> tuple[Array, Array]:
        """Return the coefficients and the offsets of several subsets of the same size.

        The coefficients have the shape (folds, subsets, columns, scores), and the offsets have the
        shape (folds, subsets, scores).
        """
        found = [self._solve_fold(fold, stack) for fold in range(len(self.folds.sizes))]
        coefficients, offsets = (np.array(part) for part in zip(*found, strict=True))
        if offsets.shape[2] == 2:  # at most one is -inf, because each fold has a training class
            coefficients = coefficients[..., 1:] - coefficients[..., :1]
            offsets = offsets[..., 1:] - offsets[..., :1]
        return coefficients, offsets

    def _solve_fold(self, fold: int, stack: NDArray[np.intp]) -> tuple[Array, Array]:
        """Return the coefficients and offsets of scikit-learn's solver "svd" for one fold.

        They are computed from the moments of its training rows.
        """
        priors, means = self.priors[fold], self.folds.means[fold][:, stack].swapaxes(0, 1)
        scalings = self._whitening(fold, stack)
        overall = np.einsum("k,mkj->mj", priors / priors.sum(), means)
        centred = means - overall[:, None]
        white = centred @ scalings
        if len(priors) > 2:  # the means of two classes span a single direction
            white = self._project(white, np.sqrt(priors)[:, None] * white)
        coefficients = white @ scalings.swapaxes(1, 2)
        with np.errstate(divide="ignore"):  # a class without training rows is never predicted
            offsets = np.log(priors) - np.square(white).sum(axis=2) / 2
        offsets -= np.einsum("mj,mkj->mk", overall, coefficients)
        self._nearest(fold, stack, scalings, coefficients, offsets)
        return coefficients.swapaxes(1, 2), offsets

    def _whitening(self, fold: int, stack: NDArray[np.intp]) -> Array:
        """Return a matrix for each subset that whitens its within-class covariance.

        Directions whose variance is below the tolerance are left out.
        """
        covariance = blocks(self.folds.within[fold], stack)
        variance = np.diagonal(covariance, axis1=1, axis2=2)
        # a column that is constant within the classes gets a weight of 0
        spread = np.where(self.folds.flat[fold][stack], np.inf, np.sqrt(np.abs(variance)))
        roots, vectors = np.linalg.eigh(covariance / spread[:, :, None] / spread[:, None, :])
        kept = roots > self.tol**2
        inverted = np.divide(1.0, np.sqrt(np.abs(roots)), out=np.zeros_like(roots), where=kept)
        return np.asarray(vectors / spread[..., None] * inverted[:, None])

    def _project(self, white: Array, weighted: Array) -> Array:
        """Return the whitened class means without the directions in which they hardly differ."""
        _, sizes, directions = np.linalg.svd(weighted, full_matrices=False)
        kept = sizes > self.tol * sizes[:, :1]
        return np.asarray((white @ directions.swapaxes(1, 2) * kept[:, None]) @ directions)

    def _nearest(
        self,
        fold: int,
        stack: NDArray[np.intp],
        scalings: Array,
        coefficients: Array,
        offsets: Array,
    ) -> None:
        """Overwrite the discriminants of subsets whose columns are all constant within the classes.

        The new ones predict the class with the nearest mean. Ties go to the greatest prior.
        """
        priors = self.priors[fold]
        for m in np.flatnonzero(~scalings.any(axis=(1, 2))):
            means, size = self.folds.means[fold][:, stack[m]], self.folds.size[stack[m]]
            unit = np.ptp(means[priors > 0], axis=0)
            means = means / np.where(unit > 1e-12 * size, unit, np.inf) ** 2
            ahead = np.empty(len(priors))
            ahead[np.argsort(-priors, kind="stable")] = np.arange(len(priors))[::-1]
            coefficients[m] = SURE * means
            halves = np.einsum("kj,kj->k", means, self.folds.means[fold][:, stack[m]]) / 2
            offsets[m] = np.where(priors > 0, SURE * (AHEAD * ahead - halves), -np.inf)
