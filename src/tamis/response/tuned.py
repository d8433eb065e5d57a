"""A search for the width of a classifier that looks at what an elimination with it is worth.

With many columns, most of them noise, cross-validation cannot tell which width finds the relevant
ones; an elimination on some of the rows, tried on those that took no part in it, can.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.model_selection import GridSearchCV
from sklearn.utils.validation import check_is_fitted, validate_data

from tamis._arrays import Array
from tamis._random import draw_seed
from tamis.folds.rows import Rows, folds_of, held_out
from tamis.response.losses import losses
from tamis.response.outputs import ProbabilityOutput
from tamis.response.perturbations import Marginal
from tamis.response.training import MANY_COLUMNS, SensitivityTraining, holds_out
from tamis.response.units import Units
from tamis.svm.relative import RelativeSVC, TunedMachine, of_rows, some_rows

#: Sizes of subsets that are tried on the held-out third: smaller ones depend on luck, larger ones
#: hardly differ between widths.
FEWEST, MOST = 5, 60
#: Quantiles that stand for a column in the elimination: the order of all values, nearly.
N_VALUES = 16


class TunedSVC(ClassifierMixin, TunedMachine):
    """Search for C and scale of a :class:`RelativeSVC` that an elimination can start from.

    Up to 30 columns C in {1, 8, 64} and scale in {1/4, 1/2, 1, 2} by cross-validation in five
    folds. With more, where cross-validation cannot tell (most columns being noise), scale in
    {1/4, 1, 2, 4}: an elimination on two thirds of the rows for each, compared by the least error
    that its subsets of 5 to 60 columns have on the last third; another scale than 1 must be better
    by more than a standard error. C is 2 then.

    Parameters
    ----------
    C : float or None, default=None
        None is chosen.
    random_state : int, Generator or None, default=None
        For the thirds, and for the rows that are looked at where there are more than a thousand.

    Attributes
    ----------
    best_estimator_ : RelativeSVC
    best_params_ : dict

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> TunedSVC().fit(*load_iris(return_X_y=True)).best_params_
    {'C': 8, 'scale': 0.25}
    """

    def __init__(self, C: float | None = None, *, random_state: Any = None):
        self.C = C
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Search, and train the best machine on all rows; rows of a group stay together."""
        X, y = validate_data(self, X, y, dtype=np.float64, order="F")
        groups = None if groups is None else np.asarray(groups)
        self.classes_ = np.unique(y)
        seed = draw_seed(self.random_state)
        least = int(np.unique(y, return_counts=True)[1].min())
        if X.shape[1] > MANY_COLUMNS and least >= 6:
            scale = scale_by_thirds(X, y, self.C or 2.0, seed, groups)
            best = RelativeSVC(self.C or 2.0, scale=scale)
        elif least < 2:
            best = RelativeSVC(self.C or 2.0)
        else:
            grid = {"C": [self.C] if self.C else [1, 8, 64], "scale": [0.25, 0.5, 1, 2]}
            rows = some_rows(y, "classification", seed)
            folds = folds_of("TunedSVC", 5, y[rows], of_rows(groups, rows), classes=True)
            search = GridSearchCV(RelativeSVC(), grid, cv=folds)
            best = search.fit(X[rows], y[rows]).best_estimator_
        self._kept(best, X, y)
        return self

    def decision_function(self, X: Any) -> Array:
        """Decision values of the best machine."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.decision_function(X))


def scale_by_thirds(X: Array, y: NDArray[Any], C: float, seed: int, groups: Any = None) -> float:
    """Scale whose elimination on two thirds of the rows serves the last third best."""
    rows, rest = held_out("TunedSVC", 1 / 3, y, groups, seed)
    least = {
        scale: least_error(X, y, rows, rest, C, scale, of_rows(groups, rows))
        for scale in (0.25, 1.0, 2.0, 4.0)
    }
    best = min(least, key=lambda scale: least[scale])
    error = np.sqrt(least[best] * (1 - least[best]) / len(rest))
    return best if least[best] < least[1.0] - error else 1.0


def least_error(
    X: Array, y: NDArray[Any], rows: Rows, rest: Rows, C: float, scale: float, groups: Any = None
) -> float:
    """Least error on the rest of the subsets that an elimination on the rows leaves.

    ``groups`` are those of the rows.
    """
    output = _posterior(RelativeSVC(C, scale=scale), X[rows], y[rows], groups)
    subset, least = np.arange(X.shape[1]), 1.0
    while len(subset) >= FEWEST:
        if len(subset) <= MOST:
            for width in (1.0, 4.0):
                fitted = RelativeSVC(C, scale=width).fit(X[np.ix_(rows, subset)], y[rows])
                wrong = fitted.predict(X[np.ix_(rest, subset)]) != y[rest]
                least = min(least, float(wrong.mean()))
        drop = max(1, len(subset) // 5)
        lost = losses(output, Marginal(N_VALUES), Units.single(subset))[0]
        subset = np.sort(subset[np.argsort(lost, kind="stable")[drop:]])
    return least


def _posterior(machine: Any, X: Array, y: NDArray[Any], groups: Any) -> ProbabilityOutput:
    """Calibrated probabilities of a machine, held out where columns are many."""
    training = SensitivityTraining(
        "TunedSVC", np.asfortranarray(X), y, np.arange(len(X)), task="classification",
        held_out=holds_out("TunedSVC", "auto", X.shape[1], len(X)), stratified=True, groups=groups,
    )  # fmt: skip
    return ProbabilityOutput(training, machine, "probability", 5)
