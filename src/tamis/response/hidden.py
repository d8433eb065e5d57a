"""A search for the number of hidden units of a network."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.utils.validation import check_is_fitted, validate_data

from tamis._arrays import Array, is_int
from tamis._random import draw_seed
from tamis.exceptions import InvalidParameter
from tamis.folds.rows import folds_of

#: Hidden units for each column, at the most.
A_COLUMN = 3
#: Numbers of units that are tried: neighbours among the large ones hardly differ.
AT_MOST = 8


class TunedMLP(ClassifierMixin, BaseEstimator):
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

    #: Row groups are of use to every search over hyper-parameters, so they need not be asked for.
    __metadata_request__fit = {"groups": True}  # noqa: RUF012

    best_estimator_: Any
    best_params_: dict[str, Any]

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
        if not (self.most is None or (is_int(self.most) and self.most >= 1)):
            raise InvalidParameter(f"TunedMLP needs an int most >= 1 or None, not {self.most!r}.")
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

    def predict(self, X: Any) -> NDArray[Any]:
        """Classes by the best network."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict(X))

    def predict_proba(self, X: Any) -> Array:
        """Probabilities by the best network."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict_proba(X))


def units_tried(n_columns: int, most: int | None = None, *, every: bool = False) -> list[int]:
    """Numbers of hidden units from 1 to 3 a column: all of them, or eight in growing steps."""
    most = A_COLUMN * n_columns if most is None else most
    if every or most <= AT_MOST:
        return list(range(1, most + 1))
    found = np.unique(np.rint(np.geomspace(1, most, AT_MOST)).astype(int))
    return [int(units) for units in found]


def plain_network(n_hidden: int, decay: float) -> MLPClassifier:
    """A network of one hidden layer, as recipes train it."""
    return MLPClassifier((n_hidden,), activation="tanh", solver="lbfgs", alpha=decay, max_iter=1000)
