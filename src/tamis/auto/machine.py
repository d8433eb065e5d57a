"""The RBF SVM of Auto. Inner cross-validation tunes its kernel width and its probabilities."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import TransformedTargetRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from tamis._arrays import EMPTY, Array, Subset, class_codes
from tamis.auto.splits import balanced_folds
from tamis.auto.target import Truth
from tamis.svm.kernels import Kernel
from tamis.validation.resamples import parts_of

#: C of the SVM, and epsilon of its regression variant.
COST, TUBE = 4.0, 0.1
#: Values of C that are tried at the best width, with the default first.
COSTS = (COST, 1.0, 16.0, 64.0)
#: Kernel width (gamma times the number of columns): the default, the values to try, and the
#: relative gain that is needed to replace the default. With few rows, smaller gains are due to
#: chance. Each value is twice the one before it.
WIDTH, WIDTHS, MARGIN = 0.5, (0.25, 0.5, 1.0, 2.0), 0.05
#: Slope of the sigmoid that turns a decision value into a probability: the default, and the values
#: to try. Well-separated classes need a steep slope. A flat slope favours few columns.
SLOPE, SLOPES = 1.5, (1.0, 1.5, 2.0, 3.0, 4.5, 7.0)
#: Number of inner folds, and the maximum number of rows used for all of them together.
INNER_FOLDS, INNER_ROWS = 3, 500
#: Tolerance of the solver (the default of LIBSVM), and maximum number of its steps.
TOLERANCE, MOST_STEPS = 1e-3, 100_000


class KernelTuning(NamedTuple):
    """Kernel width (gamma times the number of columns), slope of the probabilities, and C."""

    width: float = WIDTH
    slope: float = SLOPE
    cost: float = COST


def predict_svm(known: Array, truth: Truth, asked: Array, tuning: KernelTuning) -> Array:
    """Return the predictions of an SVM for the rows ``asked``. Columns must be scaled."""
    kernel = Kernel("rbf", tuning.width / known.shape[1])
    outputs = _outputs(kernel(known, known), kernel(asked, known), truth, tuning.cost)
    if truth.codes is None:
        return outputs
    return _shares(outputs, tuning.slope, np.unique(truth.codes), truth.values.shape[1])


def make_svm(n_columns: int, task: str, tuning: KernelTuning) -> Any:
    """Return the SVM as an untrained estimator. It expects scaled columns."""
    gamma = tuning.width / n_columns
    if task == "classification":
        return SVC(C=tuning.cost, gamma=gamma)
    svr = SVR(C=tuning.cost, gamma=gamma, epsilon=TUBE)
    return TransformedTargetRegressor(svr, transformer=StandardScaler())


def tune_svm(known: Array, truth: Truth, seed: int) -> KernelTuning:
    """Return the width, C and slope with the lowest squared loss in inner cross-validation.

    The width is chosen first, with the default C. A default is replaced only if another value is
    clearly better. If there are too few rows for inner folds, all defaults are kept.
    """
    rows = _inner_rows(truth, seed)
    if not len(rows):
        return KernelTuning()
    known, truth = known[rows], truth.take(rows)
    slopes = (SLOPE,) if truth.codes is None else SLOPES
    folds = list(_inner_folds(truth, seed))
    if not folds:
        return KernelTuning()
    kernels = [Kernel("rbf", WIDTHS[0] / known.shape[1])(known, known)]
    kernels += [kernels[0] ** 2**i for i in range(1, len(WIDTHS))]  # the width is doubled

    def losses(K: Array, cost: float) -> Array:
        return np.sum([_losses(K, truth, *fold, cost) for fold in folds], axis=0)

    by_width = np.array([losses(K, COST) for K in kernels])
    width = _clearly_best(by_width, WIDTHS.index(WIDTH))
    by_cost = np.array([by_width[width], *(losses(kernels[width], cost) for cost in COSTS[1:])])
    cost = _clearly_best(by_cost, 0)
    return KernelTuning(WIDTHS[width], slopes[int(by_cost[cost].argmin())], COSTS[cost])


def _clearly_best(losses: Array, default: int) -> int:
    """Return the row with the lowest loss, or the default if the gain is small."""
    least = losses.min(axis=1)
    best = int(least.argmin())
    return best if least[best] < (1 - MARGIN) * least[default] else default


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


def _losses(K: Array, truth: Truth, train: Subset, test: Subset, cost: float) -> Array:
    """Return the squared loss of an SVM on the test rows, for each slope of its probabilities."""
    target = truth.values[test]
    weights = 1.0 if truth.weights is None else truth.weights[test]
    outputs = _outputs(K[np.ix_(train, train)], K[np.ix_(test, train)], truth.take(train), cost)
    if truth.codes is None:
        return np.array([(weights * (outputs - target)[:, 0] ** 2).sum()])
    classes = np.unique(truth.codes[train])
    found = [_shares(outputs, slope, classes, target.shape[1]) for slope in SLOPES]
    return np.array([(weights * ((shares - target) ** 2).sum(axis=1)).sum() for shares in found])


def _outputs(K: Array, asked: Array, truth: Truth, cost: float) -> Array:
    """Train an SVM, and return its outputs for the rows of ``asked``.

    For classes, there is a column for each pair of classes, with positive values for the first
    class. For a numeric target, there is a single column. ``K`` is the kernel matrix of the
    training rows, and ``asked`` holds the kernel values between the rows to predict and the
    training rows.
    """
    n = len(K)
    upper = np.full(n, cost) if truth.weights is None else cost * truth.weights
    if truth.codes is None:
        y = truth.values[:, 0]
        centre, spread = y.mean(), y.std() or 1.0
        z = (y - centre) / spread
        # each row has two variables, one for each side of the tube
        beta, intercept = _solve(
            K, np.tile(np.arange(n), 2), np.repeat([1.0, -1.0], n), np.tile(upper, 2),
            np.concatenate([z - TUBE, -z - TUBE]),
        )  # fmt: skip
        return (centre + spread * (asked @ beta + intercept))[:, None]
    found = []
    for first, second in combinations(np.unique(truth.codes), 2):
        rows = np.flatnonzero((truth.codes == first) | (truth.codes == second))
        sign = np.where(truth.codes[rows] == first, 1.0, -1.0)
        block = K if len(rows) == n else K[np.ix_(rows, rows)]
        beta, intercept = _solve(block, np.arange(len(rows)), sign, upper[rows], np.ones(len(rows)))
        found.append(asked[:, rows] @ beta + intercept)
    return np.column_stack(found)


def _solve(K: Array, rows: Subset, sign: Array, upper: Array, linear: Array) -> tuple[Array, float]:
    """Return the coefficients of the rows and the intercept.

    Variable i belongs to row ``rows[i]`` and has the sign ``sign[i]``, the upper bound
    ``upper[i]`` and the linear term ``linear[i]``.
    """
    from tamis.compiled.smo import smo

    x, products = np.zeros(len(rows)), np.zeros(len(K))
    intercept, _ = smo(K, rows, sign, upper, linear, x, products, TOLERANCE, MOST_STEPS)
    return np.bincount(rows, sign * x, len(K)).astype(float), intercept


def _shares(decisions: Array, slope: float, known: NDArray[np.intp], n_classes: int) -> Array:
    """Return the probabilities of all classes. Classes that are not in ``known`` get 0."""
    pairs = 1 / (1 + np.exp(-np.clip(slope * decisions, -50, 50)))
    found = np.zeros((len(decisions), n_classes))
    found[:, known] = couple(pairs, len(known))
    return found


def couple(pairs: Array, n_classes: int) -> Array:
    """Return class probabilities from pairwise probabilities, by the rule of Price et al. (1995).

    Each column of ``pairs`` has the probability of the first class of a pair.

    >>> couple(np.array([[0.9]]), 2)
    array([[0.9, 0.1]])
    """
    first, second = (np.eye(n_classes)[of] for of in np.triu_indices(n_classes, 1))
    wins = np.clip(pairs, 1e-9, 1 - 1e-9)
    inverse = 2.0 - n_classes + (1 / wins) @ first + (1 / (1 - wins)) @ second
    shares = 1 / inverse
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))
