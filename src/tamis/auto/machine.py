"""The RBF SVM of Auto. Inner cross-validation tunes its kernel width and its probabilities."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import TransformedTargetRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from tamis._arrays import EMPTY, Array, Subset, class_codes
from tamis.auto.splits import balanced_folds
from tamis.auto.target import Truth
from tamis.svm.relative import RelativeSVR
from tamis.validation.resamples import parts_of

#: C of the SVM, and epsilon of its regression variant.
COST, TUBE = 4.0, 0.1
#: Kernel width (gamma times the number of columns): the default, the values to try, and the
#: relative gain that is needed to replace the default. With few rows, smaller gains are due to
#: chance.
WIDTH, WIDTHS, MARGIN = 0.5, (0.25, 0.5, 1.0, 2.0), 0.05
#: Slope of the sigmoid that turns a decision value into a probability: the default, and the values
#: to try. Well-separated classes need a steep slope. A flat slope favours few columns.
SLOPE, SLOPES = 1.5, (1.0, 1.5, 2.0, 3.0, 4.5, 7.0)
#: Number of inner folds, and the maximum number of rows used for all of them together.
INNER_FOLDS, INNER_ROWS = 3, 500


class KernelTuning(NamedTuple):
    """Kernel width (gamma times the number of columns), and the slope of the probabilities."""

    width: float = WIDTH
    slope: float = SLOPE


def predict_svm(known: Array, truth: Truth, asked: Array, seed: int) -> Array:
    """Return the predictions of a tuned SVM for the rows ``asked``. Columns must be scaled."""
    tuning = tune_svm(known, truth, seed)
    if truth.codes is None:
        return _numbers(known, truth, asked, tuning.width)[:, None]
    decisions, classes = _decisions(known, truth, asked, tuning.width)
    return _shares(decisions, tuning.slope, classes, truth.values.shape[1])


def make_svm(n_columns: int, task: str, width: float) -> Any:
    """Return the SVM as an untrained estimator. It expects scaled columns."""
    gamma = width / n_columns
    if task == "classification":
        return SVC(C=COST, gamma=gamma)
    svr = SVR(C=COST, gamma=gamma, epsilon=TUBE)
    return TransformedTargetRegressor(svr, transformer=StandardScaler())


def tune_svm(known: Array, truth: Truth, seed: int) -> KernelTuning:
    """Return the width and slope with the lowest squared loss in inner cross-validation.

    The default width is kept unless another width is clearly better. Both defaults are kept if
    there are too few rows for inner folds.
    """
    rows = _inner_rows(truth, seed)
    if not len(rows):
        return KernelTuning()
    known, truth = known[rows], truth.take(rows)
    slopes = (SLOPE,) if truth.codes is None else SLOPES
    losses = np.zeros((len(WIDTHS), len(slopes)))
    for train, test in _inner_folds(truth, seed):
        for row, width in zip(losses, WIDTHS, strict=True):
            row += _losses(known, truth, train, test, width)
    if not losses.any():  # no fold could be made
        return KernelTuning()
    least, default = losses.min(axis=1), WIDTHS.index(WIDTH)
    best = int(least.argmin())
    best = best if least[best] < (1 - MARGIN) * least[default] else default
    return KernelTuning(WIDTHS[best], slopes[int(losses[best].argmin())])


def _inner_rows(truth: Truth, seed: int) -> Subset:
    """Return the rows for inner folds. There are none if a class or the table has too few rows."""
    rng, n = np.random.default_rng(seed), len(truth.values)
    if truth.codes is None:
        if n < 2 * INNER_FOLDS:
            return EMPTY
        return np.sort(rng.permutation(n)[:INNER_ROWS])
    counts = np.bincount(truth.codes)
    if counts[counts > 0].min() < INNER_FOLDS:
        return EMPTY
    if n <= INNER_ROWS:
        return np.arange(n)
    rows = parts_of(truth.codes, (INNER_ROWS,), rng)[0]
    codes = truth.codes[rows]
    rows = rows[np.bincount(codes)[codes] >= INNER_FOLDS]
    return EMPTY if truth.take(rows).is_one else rows


def _inner_folds(truth: Truth, seed: int) -> Iterator[tuple[Subset, Subset]]:
    """Yield the training and test rows of each inner fold.

    Folds whose training rows have a constant target are skipped. Rows of a group stay together.
    Otherwise a narrow kernel would look too good, because it recognises rows of a known group.
    """
    groups = None if truth.groups is None else class_codes(truth.groups)[1]
    if groups is not None and groups.max() + 1 < INNER_FOLDS:
        return
    for train, test in balanced_folds(truth.codes, len(truth.values), groups, INNER_FOLDS, seed):
        if not truth.take(train).is_one:
            yield train, test


def _losses(known: Array, truth: Truth, train: Subset, test: Subset, width: float) -> Array:
    """Return the squared loss of an SVM on the test rows, for each slope of its probabilities."""
    target = truth.values[test]
    weights = 1.0 if truth.weights is None else truth.weights[test]
    if truth.codes is None:
        numbers = _numbers(known[train], truth.take(train), known[test], width)
        return np.array([(weights * (numbers - target[:, 0]) ** 2).sum()])
    decisions, classes = _decisions(known[train], truth.take(train), known[test], width)
    found = [_shares(decisions, slope, classes, target.shape[1]) for slope in SLOPES]
    return np.array([(weights * ((shares - target) ** 2).sum(axis=1)).sum() for shares in found])


def _numbers(known: Array, truth: Truth, asked: Array, width: float) -> Array:
    svr = RelativeSVR(COST, tube=TUBE, scale=width)
    svr.fit(known, truth.values[:, 0], truth.weights)
    return np.asarray(svr.predict(asked))


def _decisions(
    known: Array, truth: Truth, asked: Array, width: float
) -> tuple[Array, NDArray[np.intp]]:
    """Return decision values for each pair of classes, and the classes in the training rows."""
    svc = SVC(C=COST, gamma=width / known.shape[1], decision_function_shape="ovo")
    svc.fit(known, truth.codes, truth.weights)
    return svc.decision_function(asked), svc.classes_


def _shares(decisions: Array, slope: float, known: NDArray[np.intp], n_classes: int) -> Array:
    """Return the probabilities of all classes. Classes that are not in ``known`` get 0."""
    pairs = 1 / (1 + np.exp(-np.clip(slope * decisions, -50, 50)))
    found = np.zeros((len(decisions), n_classes))
    found[:, known] = couple(pairs, len(known))
    return found


def couple(pairs: Array, n_classes: int) -> Array:
    """Return class probabilities from pairwise probabilities, by the rule of Price et al. (1995).

    >>> couple(np.array([0.9]), 2)
    array([[0.1, 0.9]])
    """
    if n_classes == 2:  # a positive decision value means the second class
        return np.column_stack([1 - pairs.ravel(), pairs.ravel()])
    first, second = (np.eye(n_classes)[of] for of in np.triu_indices(n_classes, 1))
    wins = np.clip(pairs, 1e-9, 1 - 1e-9)
    inverse = 2.0 - n_classes + (1 / wins) @ first + (1 / (1 - wins)) @ second
    shares = 1 / inverse
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))
