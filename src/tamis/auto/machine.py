"""The kernel machine of AUTO: its width, and how sure its decisions are, by inner folds."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.compose import TransformedTargetRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from tamis._arrays import EMPTY, Array, Subset, class_codes
from tamis.auto.splits import balanced_folds
from tamis.auto.target import Truth
from tamis.svm.relative import RelativeSVR
from tamis.validation.resamples import parts_of

#: C of the machine, and epsilon of a regression.
COST, TUBE = 4.0, 0.1
#: Gamma times the number of columns: the usual one, and those of which inner folds choose where one
#: loses less by this share (of few rows smaller differences are chance). By ten columns of
#: madelon 15 % are wrong in place of 22 %; over 72 splits of twelve tables AUTO errs 0.98 ± 0.02
#: times as much as with one width for all, over 23 of sixteen others 1.00 ± 0.02 times.
WIDTH, WIDTHS, MARGIN = 0.5, (0.25, 0.5, 1.0, 2.0), 0.05
#: Slope of the sigmoid that makes a probability of a decision value, likewise. Classes that lie far
#: apart need a steep one (Brier score of srbct: .17 at 2, .05 at 4; of ten digits by 40 columns .33
#: at 1.5, .01 at 7; of odd and even ones .05 and .02); with a flat one long lists look worse than
#: short ones.
SLOPE, SLOPES = 1.5, (1.0, 1.5, 2.0, 3.0, 4.5, 7.0)
#: Inner folds, and rows that are dealt to them at most.
INNER_FOLDS, INNER_ROWS = 3, 500


class KernelTuning(NamedTuple):
    """Gamma times the number of columns, and the slope of the probabilities."""

    width: float = WIDTH
    slope: float = SLOPE


def machine_answers(known: Array, truth: Truth, asked: Array, seed: int) -> Array:
    """What a tuned machine says of rows; columns are scaled."""
    tuning = tuned(known, truth, seed)
    if truth.codes is None:
        return _numbers(known, truth, asked, tuning.width)[:, None]
    decisions, classes = _decisions(known, truth, asked, tuning.width)
    return _shares(decisions, tuning.slope, classes, truth.values.shape[1])


def machine_of(n_columns: int, task: str, width: float) -> Any:
    """The machine as an estimator for scaled columns."""
    gamma = width / n_columns
    if task == "classification":
        return SVC(C=COST, gamma=gamma)
    machine = SVR(C=COST, gamma=gamma, epsilon=TUBE)
    return TransformedTargetRegressor(machine, transformer=StandardScaler())


def tuned(known: Array, truth: Truth, seed: int) -> KernelTuning:
    """Width and slope that lose least on rows which inner folds leave out.

    The usual width stays where no other one is clearly better, and both where no folds can be made.
    """
    rows = _inner_rows(truth, seed)
    if not len(rows):
        return KernelTuning()
    known, truth = known[rows], truth.take(rows)
    slopes = (SLOPE,) if truth.codes is None else SLOPES
    lost = np.zeros((len(WIDTHS), len(slopes)))
    # what it is given here was checked: half of the time of a small machine goes into that
    with config_context(assume_finite=True, skip_parameter_validation=True):
        for train, test in _inner_folds(truth, seed):
            for of, width in zip(lost, WIDTHS, strict=True):
                of += _lost(known, truth, train, test, width)
    if not lost.any():  # no fold could be made
        return KernelTuning()
    least, usual = lost.min(axis=1), WIDTHS.index(WIDTH)
    best = int(least.argmin())
    best = best if least[best] < (1 - MARGIN) * least[usual] else usual
    return KernelTuning(WIDTHS[best], slopes[int(lost[best].argmin())])


def _inner_rows(truth: Truth, seed: int) -> Subset:
    """Rows that are dealt to inner folds; none where these would be of one class or value."""
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
    """Pairs (the others, one fold), of which the others do not all have one value.

    Rows of a group stay together: a narrow machine, and one that is sure, would only know again
    what it has seen (of 30 groups of 6 rows it lost 1.4 times as much on new ones).
    """
    groups = None if truth.groups is None else class_codes(truth.groups)[1]
    if groups is not None and groups.max() + 1 < INNER_FOLDS:
        return
    for train, test in balanced_folds(truth.codes, len(truth.values), groups, INNER_FOLDS, seed):
        if not truth.take(train).is_one:
            yield train, test


def _lost(known: Array, truth: Truth, train: Subset, test: Subset, width: float) -> Array:
    """Squared losses of a machine of some width: one for each slope of its probabilities."""
    there, weights = truth.values[test], 1.0
    if truth.weights is not None:
        weights = truth.weights[test]  # type: ignore[assignment]
    if truth.codes is None:
        numbers = _numbers(known[train], truth.take(train), known[test], width)
        return np.array([(weights * (numbers - there[:, 0]) ** 2).sum()])
    decisions, classes = _decisions(known[train], truth.take(train), known[test], width)
    found = [_shares(decisions, slope, classes, there.shape[1]) for slope in SLOPES]
    return np.array([(weights * ((shares - there) ** 2).sum(axis=1)).sum() for shares in found])


def _numbers(known: Array, truth: Truth, asked: Array, width: float) -> Array:
    machine = RelativeSVR(COST, tube=TUBE, scale=width)
    machine.fit(known, truth.values[:, 0], truth.weights)
    return np.asarray(machine.predict(asked))


def _decisions(
    known: Array, truth: Truth, asked: Array, width: float
) -> tuple[Array, NDArray[np.intp]]:
    """Decision values of each pair of classes, and the classes that the machine knows."""
    machine = SVC(C=COST, gamma=width / known.shape[1], decision_function_shape="ovo")
    machine.fit(known, truth.codes, truth.weights)
    return machine.decision_function(asked), machine.classes_


def _shares(decisions: Array, slope: float, known: NDArray[np.intp], n_classes: int) -> Array:
    """Probabilities of all classes, of which the model knows some."""
    pairs = 1 / (1 + np.exp(-np.clip(slope * decisions, -50, 50)))
    found = np.zeros((len(decisions), n_classes))
    found[:, known] = coupled(pairs, len(known))
    return found


def coupled(pairs: Array, n_classes: int) -> Array:
    """Probabilities of the classes from those of each pair, by the rule of Price et al. (1995).

    >>> coupled(np.array([0.9]), 2)
    array([[0.1, 0.9]])
    """
    if n_classes == 2:  # of two classes a decision value speaks for the second
        return np.column_stack([1 - pairs.ravel(), pairs.ravel()])
    first, second = (np.eye(n_classes)[of] for of in np.triu_indices(n_classes, 1))
    wins = np.clip(pairs, 1e-9, 1 - 1e-9)
    inverse = 2.0 - n_classes + (1 / wins) @ first + (1 / (1 - wins)) @ second
    shares = 1 / inverse
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))
