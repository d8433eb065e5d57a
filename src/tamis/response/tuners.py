"""Searches for the width of an SVM and for the hidden units of a network."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.utils.validation import check_is_fitted, validate_data

from tamis._arrays import Array
from tamis._checks import NONE, Constraints, check_parameters, integer
from tamis._seeds import draw_seed
from tamis.response.fold_models import MANY_COLUMNS, FoldTraining, holds_out
from tamis.response.outputs import ProbabilityOutput, losses
from tamis.response.perturbations import Marginal
from tamis.response.units import Units
from tamis.svm.relative import RelativeSVC, TunedMachine, of_rows, some_rows
from tamis.validation.splits import Rows, folds_of, held_out

#: Sizes of subsets that are tried on the held-out third: smaller ones depend on luck, larger ones
#: hardly differ between widths.
FEWEST, MOST = 5, 60
#: Quantiles that stand for a column in the elimination: the order of all values, nearly.
N_VALUES = 16
#: Hidden units for each column, at the most.
UNITS_PER_COLUMN = 3
#: Numbers of hidden units that are tried: neighbours among the large ones hardly differ.
MOST_SIZES = 8


class TunedSVC(ClassifierMixin, TunedMachine):
    """Search for C and scale of a :class:`RelativeSVC` that an elimination can start from.

    Up to 30 columns C in {1, 8, 64} and scale in {1/4, 1/2, 1, 2} by cross-validation in five
    folds. With more columns, most of them noise, cross-validation cannot tell which width finds the
    relevant ones. Scale is then one of {1/4, 1, 2, 4}: an elimination on two thirds of the rows for
    each, compared by the least error that its subsets of 5 to 60 columns have on the last third;
    another scale than 1 must be better by more than a standard error. C is 2 then.

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

    Columns are scored by calibrated probabilities, held out if columns are many. ``groups`` are
    those of the rows.
    """
    own = np.asfortranarray(X[rows])
    training = FoldTraining(
        "TunedSVC", own, y[rows], np.arange(len(rows)), task="classification",
        held_out=holds_out("auto", X.shape[1], len(rows)), stratified=True, groups=groups,
    )  # fmt: skip
    output = ProbabilityOutput(training, RelativeSVC(C, scale=scale), "probability", 5)
    subset, least = np.arange(X.shape[1]), 1.0
    while len(subset) >= FEWEST:
        if len(subset) <= MOST:
            for width in (1.0, 4.0):
                fitted = RelativeSVC(C, scale=width).fit(X[np.ix_(rows, subset)], y[rows])
                wrong = fitted.predict(X[np.ix_(rest, subset)]) != y[rest]
                least = min(least, float(wrong.mean()))
        n_dropped = max(1, len(subset) // 5)
        lost = losses(output, Marginal(N_VALUES), Units.single(subset))[0]
        subset = np.sort(subset[np.argsort(lost, kind="stable")[n_dropped:]])
    return least


class TunedMLP(ClassifierMixin, TunedMachine):
    """Search for the number of hidden units of an ``MLPClassifier``, by five-fold accuracy.

    Of 1 to 3 d units, d columns: all of them, or eight in growing steps. Of equal accuracies the
    least number is kept.

    Parameters
    ----------
    decay : float, default=1.0
        ``alpha`` of the network.
    most : int or None, default=None
        The largest number; None is 3 d.
    every : bool, default=False
        Whether every number is tried, as published, which takes long with many columns.
    random_state : int, Generator or None, default=None

    Attributes
    ----------
    best_estimator_ : MLPClassifier
    best_params_ : dict

    References
    ----------
    Yang (2011), Feature selection and model selection for supervised learning algorithms, sec. 3.4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> TunedMLP(most=4, random_state=0).fit(X, y).best_params_
    {'hidden_layer_sizes': (2,)}
    """

    _constraints: ClassVar[Constraints] = {"most": integer(1) | NONE}

    def __init__(
        self,
        decay: float = 1.0,
        *,
        most: int | None = None,
        every: bool = False,
        random_state: Any = None,
    ):
        self.decay = decay
        self.most = most
        self.every = every
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Search, and train the best network on all rows; rows of a group stay together."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_parameters(self)
        self.classes_, counts = np.unique(y, return_counts=True)
        network = plain_network(1, self.decay).set_params(random_state=draw_seed(self.random_state))
        sizes = [(units,) for units in self.units(X.shape[1])]
        if counts.min() < 2:  # no folds: the middle of what would be tried
            self.best_params_ = {"hidden_layer_sizes": sizes[len(sizes) // 2]}
            self.best_estimator_ = network.set_params(**self.best_params_).fit(X, y)
            return self
        groups = None if groups is None else np.asarray(groups)
        folds = folds_of("TunedMLP", min(5, int(counts.min())), y, groups, classes=True)
        search = GridSearchCV(network, {"hidden_layer_sizes": sizes}, cv=folds).fit(X, y)
        self.best_params_, self.best_estimator_ = search.best_params_, search.best_estimator_
        return self

    def units(self, n_columns: int) -> list[int]:
        """Numbers of units that are tried, for so many columns.

        >>> TunedMLP().units(10)
        [1, 2, 3, 4, 7, 11, 18, 30]
        """
        return units_tried(n_columns, self.most, every=self.every)

    def predict_proba(self, X: Any) -> Array:
        """Probabilities by the best network."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict_proba(X))


def units_tried(n_columns: int, most: int | None = None, *, every: bool = False) -> list[int]:
    """Numbers of hidden units from 1 to 3 a column: all of them, or eight in growing steps."""
    most = UNITS_PER_COLUMN * n_columns if most is None else most
    if every or most <= MOST_SIZES:
        return list(range(1, most + 1))
    found = np.unique(np.rint(np.geomspace(1, most, MOST_SIZES)).astype(int))
    return [int(units) for units in found]


def plain_network(n_hidden: int, decay: float) -> MLPClassifier:
    """A network of one hidden layer, as recipes train it."""
    return MLPClassifier((n_hidden,), activation="tanh", solver="lbfgs", alpha=decay, max_iter=1000)
