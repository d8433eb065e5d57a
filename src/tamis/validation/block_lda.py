"""Cross-validated linear discriminant analysis of a table in blocks of rows.

One pass adds up the moments of the folds, from which the discriminants of any subset in every fold
follow; one more pass counts how many rows left out they answer, of all subsets that are asked for
together. A step of a search is so one pass, whatever the number of candidates.
"""

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

#: Scores of rows times subsets that are held at a time: 16 megabytes.
BLOCK = 2**21
#: Subsets whose hits are remembered: a walk comes back to the last few steps.
REMEMBERED = 100_000
#: What makes the answer of the nearest mean certain, and by how much a class of a greater prior is
#: ahead of an equally near one: far above rounding, far below a distance.
SURE, AHEAD = 1e20, 1e-10
#: A spread inside classes below this share of the largest value is rounding, as in
#: :class:`tamis.validation.lda.LDAFolds`.
FLAT = 1e-7


class Discriminants(NamedTuple):
    """Scores of subsets: a row has those of its columns times weights.

    Of two classes it is one score, by which the second is ahead; else one for each class.
    """

    shared: Subset  # columns of several subsets
    weights: Array  # (folds, shared columns, subsets * scores)
    own: "list[tuple[Subset, Subset, Array]]"  # columns, their subsets, (folds, columns, scores)
    offsets: Array  # (folds, subsets, scores)


class FoldAnswers(RowStatistic):
    """How many rows left out are answered rightly in each fold, or what the answers lose.

    Parameters
    ----------
    shift : array of shape (n_columns,)
    labels : Labels
    rule : FoldRule
    found : Discriminants
    losses : bool
        Whether squared losses of the probabilities are added up in place of hits.
    """

    is_small = True

    def __init__(
        self, shift: Array, labels: Labels, rule: FoldRule, found: Discriminants, losses: bool
    ):
        self.shift, self.labels, self.rule = shift, labels, rule
        self.found, self.losses = found, losses

    def empty(self) -> Any:
        shape = self.found.offsets.shape[:2]
        return np.zeros(shape) if self.losses else np.zeros(shape, dtype=np.int64)

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        assert block.y is not None
        codes = self.labels.codes(block.y)
        at_once = max(1, BLOCK // self.found.offsets[0].size)
        folds = self.rule.of(block.start, codes)
        for fold in np.unique(folds):
            rows = np.flatnonzero(folds == fold)
            for start in range(0, len(rows), at_once):
                some = rows[start : start + at_once]
                measure = self._lost if self.losses else self._hit
                state[fold] += measure(self._scores(fold, block.X, some), codes[some])
        return state

    def _scores(self, fold: int, X: NDArray[Any], rows: NDArray[np.intp]) -> Array:
        """Scores of some rows, (rows, subsets, scores)."""
        found = self.found
        scores: Array = self._taken(X, rows, found.shared) @ found.weights[fold]
        scores = scores.reshape(len(rows), *found.offsets.shape[1:])
        for columns, subsets, weights in found.own:
            scores[:, subsets] += self._taken(X, rows, columns)[..., None] * weights[fold]
        scores += found.offsets[fold]
        return scores

    def _taken(self, X: NDArray[Any], rows: NDArray[np.intp], columns: Subset) -> Array:
        return np.asarray(X[np.ix_(rows, columns)].astype(float) - self.shift[columns])

    def _hit(self, scores: Array, codes: NDArray[np.intp]) -> NDArray[np.int64]:
        if scores.shape[2] == 1:
            right = (scores[..., 0] > 0) == (codes == 1)[:, None]
        else:
            right = scores.argmax(axis=2) == codes[:, None]
        return right.sum(axis=0, dtype=np.int64)

    def _lost(self, scores: Array, codes: NDArray[np.intp]) -> Array:
        if scores.shape[2] == 1:
            scores = np.concatenate([np.zeros_like(scores), scores], axis=2)
        shares = softmax(scores, axis=2)
        shares -= (codes[:, None] == np.arange(scores.shape[2]))[:, None]
        return np.asarray(np.einsum("rmc,rmc->m", shares, shares))


class SummedFolds:
    """Means, and covariances within classes, of every training fold of a table in blocks.

    Attributes
    ----------
    sizes : array of int
        Rows that each fold leaves out.
    counts : array of shape (n_folds, n_classes)
        Rows of each class that each fold leaves out.
    trained : array of shape (n_folds, n_classes)
        Rows of each class that it trains on.
    means : array of shape (n_folds, n_classes, n_columns)
        Of the training rows, shifted; 0 where a class is missing.
    within : array of shape (n_folds, n_columns, n_columns)
    constant, flat : array of bool
        Columns that never vary, (n_columns,), and that do not inside the classes of a fold,
        (n_folds, n_columns).
    shift, exponent : array
        How the columns were taken.
    size : array of float
        The largest absolute value of each column as it was taken.
    """

    def __init__(self, table: BlockTable, rule: FoldRule):
        make = partial(ShiftedSums, labels=table.labels, n_matrices=rule.n_folds, rule=rule)
        added, self.shift, told, self.exponent = sum_blocks(table, make, each_alone=True)
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
        self.constant: Mask = told.constant(table.standardize)
        self.size = np.maximum(told.high - self.shift, self.shift - told.low)
        spread = np.sqrt(np.maximum(np.diagonal(self.within, axis1=1, axis2=2), 0.0))
        self.flat: Mask = spread <= FLAT * self.size


class SummedLDA:
    """Accuracy of linear discriminant analysis in every fold of a table in blocks of rows.

    It is scikit-learn's (solver "svd"), but for rows within rounding of a border.

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
        priors = shares if estimator.priors is None else self._checked(estimator.priors)
        self.priors: Array = np.where(shares > 0, priors, 0.0)
        self._known: dict[bytes, NDArray[np.int64]] = {}

    def _checked(self, priors: Any) -> Array:
        given, n_classes = np.asarray(priors, dtype=float), self.shares.shape[1]
        if given.shape != (n_classes,) or given.min() <= 0 or abs(given.sum() - 1) > 1e-9:
            raise InvalidParameter(
                f"LinearDiscriminantAnalysis needs priors= a positive number for each of "
                f"{n_classes} classes that sum to 1, not {priors!r}. Leave it out, or give such."
            )
        return np.broadcast_to(given, self.shares.shape)

    def worth_of_nothing(self) -> Array:
        """Accuracy in each fold of always answering the most frequent class."""
        best = self.folds.trained.argmax(axis=1)
        return np.asarray(self.folds.counts[np.arange(len(best)), best] / self.folds.sizes)

    @property
    def test_ratio(self) -> float:
        """Test rows for each training row, on average."""
        return float(np.mean(self.folds.sizes / self.folds.trained.sum(axis=1)))

    def accuracies(self, subsets: list[Subset]) -> Array:
        """Accuracy of each subset in each fold, (subsets, folds), from one pass at most."""
        essential = [subset[~self.folds.constant[subset]] for subset in subsets]
        keys = [subset.tobytes() for subset in essential]
        asked = {
            key: subset
            for key, subset in zip(keys, essential, strict=True)
            if len(subset) and key not in self._known
        }
        if len(self._known) + len(asked) > REMEMBERED:
            self._known = {key: self._known[key] for key in keys if key in self._known}
        hits = self._pass(list(asked.values()), losses=False)
        self._known.update(zip(asked, hits.T, strict=True))
        nothing = self.worth_of_nothing()
        found = [self._known[key] / self.folds.sizes if key else nothing for key in keys]
        return np.array(found).reshape(len(subsets), len(nothing))

    def losses(self, subsets: list[Subset]) -> Array:
        """Mean over the folds of the squared loss of the probabilities of each subset."""
        essential = [subset[~self.folds.constant[subset]] for subset in subsets]
        # what the shares of the classes lose, at the rows that are left out
        sizes, counts = self.folds.sizes, self.folds.counts
        squares = (self.shares**2).sum(axis=1)
        nothing = np.mean(squares + 1 - 2 * (self.shares * counts).sum(axis=1) / sizes)
        found = np.full(len(subsets), nothing)
        asked = [i for i, subset in enumerate(essential) if len(subset)]
        lost = self._pass([essential[i] for i in asked], losses=True)
        found[asked] = (lost.T / sizes).mean(axis=1)
        return found

    def _pass(self, subsets: list[Subset], *, losses: bool) -> Any:
        """What is counted of the rows left out, (folds, subsets)."""
        if not subsets:
            return np.zeros((len(self.folds.sizes), 0))
        found, shift, labels = self._discriminants(subsets), self.folds.shift, self.table.labels
        statistic: RowStatistic = FoldAnswers(shift, labels, self.rule, found, losses)
        if self.folds.exponent.any():
            scale = partial(scale_columns, self.folds.exponent)
            statistic = OfChangedBlocks(statistic, scale)
        return self.table.reduce(statistic)

    def _discriminants(self, subsets: list[Subset]) -> Discriminants:
        """Discriminants of all subsets in all folds, from the moments."""
        n_folds, n_classes, n_columns = self.folds.means.shape
        n_scores = 1 if n_classes == 2 else n_classes
        counts = np.bincount(np.concatenate(subsets), minlength=n_columns)
        shared = np.flatnonzero(counts > 1)
        place = np.full(n_columns, -1)
        place[shared] = np.arange(len(shared))
        weights = np.zeros((n_folds, len(shared), len(subsets), n_scores))
        offsets = np.zeros((n_folds, len(subsets), n_scores))
        own: list[list[tuple[int, int, Array]]] = []
        for indices, stack in stacked(subsets):
            coefficients, offsets[:, indices] = self._solved(stack)
            for i, columns, w in zip(indices, stack, coefficients.swapaxes(0, 1), strict=True):
                among = place[columns] >= 0
                weights[:, place[columns[among]], i] = w[:, among]
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

    def _solved(self, stack: NDArray[np.intp]) -> tuple[Array, Array]:
        """Coefficients (folds, subsets, columns, scores) and offsets of subsets of one size."""
        found = [self._solved_in(fold, stack) for fold in range(len(self.folds.sizes))]
        coefficients = np.array([c for c, _ in found])
        offsets = np.array([o for _, o in found])
        if offsets.shape[2] == 2:  # not both are -inf: a fold trains on one class at least
            coefficients = coefficients[..., 1:] - coefficients[..., :1]
            offsets = offsets[..., 1:] - offsets[..., :1]
        return coefficients, offsets

    def _solved_in(self, fold: int, stack: NDArray[np.intp]) -> tuple[Array, Array]:
        """What scikit-learn's solver "svd" finds, from the moments of a training fold."""
        priors, means = self.priors[fold], self.folds.means[fold][:, stack].swapaxes(0, 1)
        scalings = self._whitened(fold, stack)
        overall = np.einsum("k,mkj->mj", priors / priors.sum(), means)
        centred = means - overall[:, None]
        white = centred @ scalings
        if len(priors) > 2:  # two classes span one direction
            white = self._spanned(white, np.sqrt(priors)[:, None] * white)
        coefficients = white @ scalings.swapaxes(1, 2)
        with np.errstate(divide="ignore"):  # a class that does not train is never answered
            offsets = np.log(priors) - np.square(white).sum(axis=2) / 2
        offsets -= np.einsum("mj,mkj->mk", overall, coefficients)
        self._nearest(fold, stack, scalings, coefficients, offsets)
        return coefficients.swapaxes(1, 2), offsets

    def _whitened(self, fold: int, stack: NDArray[np.intp]) -> Array:
        """Roots of the inverse covariances, without directions below the tolerance."""
        covariance = blocks(self.folds.within[fold], stack)
        variance = np.diagonal(covariance, axis1=1, axis2=2)
        # a column that does not vary inside the classes has no say
        spread = np.where(self.folds.flat[fold][stack], np.inf, np.sqrt(np.abs(variance)))
        roots, vectors = np.linalg.eigh(covariance / spread[:, :, None] / spread[:, None, :])
        kept = roots > self.tol**2
        inverted = np.divide(1.0, np.sqrt(np.abs(roots)), out=np.zeros_like(roots), where=kept)
        return np.asarray(vectors / spread[..., None] * inverted[:, None])

    def _spanned(self, white: Array, weighted: Array) -> Array:
        """Whitened class means, without directions in which they hardly differ."""
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
        """The class of the nearest mean, where no column of a subset varies inside the classes.

        Of equally near ones it is the one of the greatest prior; it is written in place.
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
