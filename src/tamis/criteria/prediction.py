"""Sensitivity of a regressor's predictive density, or of any score: SD-L, SD-G and the fall of a
scorer."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import check_scoring

from tamis._arrays import Array, Subset, class_codes
from tamis.criteria._answers import coded, decisions_of, predictions_of
from tamis.criteria._engines import Model
from tamis.criteria._folds import Rows
from tamis.criteria._opening import last_step
from tamis.criteria._statistics import (
    GaussDivergence,
    LaplaceDivergence,
    Statistic,
    WeightedLoss,
)
from tamis.criteria.destruction import (
    Derivative,
    Draw,
    Points,
    Replacement,
    Shuffle,
)
from tamis.criteria.model import rows_of, trained
from tamis.criteria.sensitivity import Piece, Sensitivity
from tamis.exceptions import IncompatibleCriterion, InvalidParameter

NOISES: dict[str, Any] = {"laplace": LaplaceDivergence, "gaussian": GaussDivergence}


class DensitySensitivity(Sensitivity):
    r"""How far a regressor's predictive density moves when a column is destroyed (SD-L, SD-G).

    The target is taken as f(x) and noise; the loss of column j is the mean Kullback-Leibler
    divergence between the densities around :math:`f = f(x)` and :math:`f_j = f(x_{(j)})`, for
    Laplace noise with :math:`s = \mathrm{mean}|y - f|` and :math:`s_j = \mathrm{mean}|y - f_j|`

    .. math:: \ln\frac{s_j}{s} - 1 + \frac{s}{s_j}e^{-|f - f_j|/s} + \frac{|f - f_j|}{s_j}

    and for Gaussian noise, with mean squares in place of mean absolute values,

    .. math:: \ln\frac{s_j}{s} + \frac{(f - f_j)^2 + s^2}{2 s_j^2} - \frac{1}{2}.

    Of two copies of a column both look important until one is eliminated.

    Parameters
    ----------
    estimator : regressor
        Or a search over its hyper-parameters. Support vector regression (RBF, polynomial, linear),
        networks with one hidden layer and linear models are evaluated for all columns together.
    noise : {"laplace", "gaussian"}, default="laplace"
    symmetric : bool, default=False
        Whether the mean of both directions of the divergence is taken.
    by : {"marginal", "permutation", "zero", "removal"}, default="marginal"
        How a column is destroyed, see :class:`PosteriorSensitivity`.
    on : {"training", "held-out", "auto"}, default="training"
    n_repeats : int, default=1
        Shuffles of ``by="permutation"``; each has its own s_j, and scores are averaged.
    n_values : int or None, default=None
        Quantiles that stand for a column in ``by="marginal"``; None is every value.
    random_state : int, Generator or None, default=None

    References
    ----------
    J.-B. Yang, C.-J. Ong, "Feature selection using probabilistic prediction of support vector
    regression", IEEE Trans. Neural Networks 22, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.svm import SVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> judge = DensitySensitivity(SVR(C=100, gamma=5)).fit(X, y)
    >>> judge.loss(np.array([1, 2, 8])).round(2)
    array([0.02, 0.28, 0.31])
    """

    def __init__(
        self,
        estimator: Any,
        *,
        noise: str = "laplace",
        symmetric: bool = False,
        by: Any = "marginal",
        on: str = "training",
        n_repeats: int = 1,
        n_values: int | None = None,
        random_state: Any = None,
    ):
        self.estimator = estimator
        self.noise = noise
        self.symmetric = symmetric
        self.by = by
        self.on = on
        self.n_repeats = n_repeats
        self.n_values = n_values
        self.random_state = random_state

    @property
    def targets(self) -> frozenset[str]:  # type: ignore[override]
        """A real target."""
        if "regression" not in super().targets:
            raise IncompatibleCriterion(
                f"DensitySensitivity needs a regressor, not {type(self.estimator).__name__}. Use "
                "PosteriorSensitivity for a classifier."
            )
        return frozenset({"regression"})

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        if self.noise not in NOISES:
            raise InvalidParameter(
                f"DensitySensitivity needs noise='laplace' or 'gaussian', not {self.noise!r}."
            )
        super()._learn(X, y, **params)

    def _check_way(self) -> None:
        if isinstance(self._way, Derivative):
            self._by_derivative(np.arange(1))

    def _pieces(self, subset: Subset) -> list[Piece]:
        X = self._X[:, self.columns(subset)]
        return [
            Piece(predictions_of(self._train(X, train)), judged) for train, judged in self._parts()
        ]

    def _constants(self) -> list[Piece]:
        nothing = np.zeros((len(self._X), 1))
        dummy = DummyRegressor(strategy="median" if self.noise == "laplace" else "mean")
        fitted = dummy.fit(nothing, self._y)
        return [Piece(predictions_of(fitted), np.arange(len(self._X)))]

    def _statistic(self, before: Array) -> Statistic:
        assert self._y is not None
        y = np.asarray(self._y, dtype=np.float64)
        statistic: Statistic = NOISES[self.noise](before, y, bool(self.symmetric))
        return statistic


class ScoreSensitivity(Sensitivity):
    """How far a score falls when a column is destroyed: permutation importance and its relatives.

    With ``by="permutation"`` and the same shuffles it is scikit-learn's
    ``permutation_importance``; ``by="marginal"`` is the mean score with the column held at each of
    its values, which for scores that are means over rows (accuracy, R², log-loss) is the
    expectation over shuffles. Accuracy, R² and the mean squared error come from the engines of
    :class:`PosteriorSensitivity`; for any other score altered copies of the rows are made.

    Parameters
    ----------
    estimator : classifier or regressor
        Or a search over its hyper-parameters. A row without a label cannot be scored: leave it out.
    scoring : str, callable or None, default=None
        None is the estimator's own score: accuracy or R².
    by : {"marginal", "permutation", "zero", "removal"}, default="marginal"
        How a column is destroyed, see :class:`PosteriorSensitivity`.
    on : {"training", "held-out", "auto"}, default="training"
        Held out, the falls of the folds are averaged.
    n_repeats : int, default=1
    n_values : int or None, default=None
    random_state : int, Generator or None, default=None

    References
    ----------
    L. Breiman, "Random forests", Machine Learning 45, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> judge = ScoreSensitivity(LogisticRegression(max_iter=1000)).fit(X, y)
    >>> judge.loss(np.arange(4)).round(2)
    array([0.01, 0.01, 0.58, 0.16])
    """

    def __init__(
        self,
        estimator: Any,
        *,
        scoring: Any = None,
        by: Any = "marginal",
        on: str = "training",
        n_repeats: int = 1,
        n_values: int | None = None,
        random_state: Any = None,
    ):
        self.estimator = estimator
        self.scoring = scoring
        self.by = by
        self.on = on
        self.n_repeats = n_repeats
        self.n_values = n_values
        self.random_state = random_state

    def _check_way(self) -> None:
        if isinstance(self._way, Derivative):
            self._by_derivative(np.arange(1))
        if getattr(self._way, "centres", False):
            raise IncompatibleCriterion(
                "ScoreSensitivity alters rows, never a kernel's centres. Use by='zero'."
            )

    def _adopt(self, estimator: Any) -> None:
        super()._adopt(estimator)
        self._scorer = check_scoring(estimator, scoring=self.scoring)
        if not callable(self._scorer) or isinstance(self.scoring, list | tuple | set | dict):
            raise InvalidParameter(
                f"ScoreSensitivity needs one score, not {self.scoring!r}. Write scoring='accuracy' "
                "or a function of (estimator, X, y)."
            )
        self._plain = self._plain_score(estimator)

    def _plain_score(self, estimator: Any) -> str | None:
        """The score where engines can follow it: no weights, and R² with something to explain."""
        plain = plain_score(estimator, self.scoring)
        if plain is None or self._y is None or self._metadata.score:
            return None
        if plain == "r2" and any(not self._spread(rows) > 0 for _, rows in self._parts()):
            return None
        if plain == "accuracy":
            self._classes, self._codes = class_codes(self._y)
        return plain

    def _pieces(self, subset: Subset) -> list[Piece]:
        X = self._X[:, self.columns(subset)]
        return [
            Piece(self._answers(self._train(X, train)), judged) for train, judged in self._parts()
        ]

    def _answers(self, fitted: Any) -> Model:
        """What a plain score looks at; any other asks the model itself."""
        if self._plain == "accuracy":
            return decisions_of(fitted, self._classes)
        return predictions_of(fitted)

    def _constants(self) -> list[Piece]:
        dummy = DummyClassifier() if self.task_ == "classification" else DummyRegressor()
        weights = {n: v for n, v in self._metadata.fit.items() if n == "sample_weight"}
        nothing = np.zeros((len(self._X), 0))
        assert self._y is not None
        return [
            Piece(
                predictions_of(
                    trained(dummy, nothing[train], self._y[train], rows_of(weights, train))
                ),
                judged,
            )
            for train, judged in self._parts()
        ]

    def _statistic(self, before: Array) -> Statistic:
        """The fall of a plain score, which is a weighted mean of the losses of rows."""
        assert self._y is not None
        if self._plain == "accuracy":
            truth = coded(self._codes, len(self._classes))
        else:
            truth = np.asarray(self._y, dtype=np.float64)[:, None]
        return WeightedLoss(before, truth, self._row_weights(), self._plain != "accuracy")

    def _row_weights(self) -> Array:
        """Weights of the rows in the mean over the folds of a score."""
        found = np.empty(len(self._X))
        parts = self._parts()
        for _, rows in parts:
            spread = self._spread(rows) if self._plain == "r2" else len(rows)
            found[rows] = 1 / (len(parts) * spread)
        return found

    def _spread(self, rows: Rows) -> float:
        """Sum of squares that R² divides by."""
        y = np.asarray(self._y, dtype=np.float64)[rows]
        return float(((y - y.mean()) ** 2).sum())

    def _score(self, piece: Piece, X: Array) -> float:
        truth = () if self._y is None else (self._y[piece.rows],)
        weights = rows_of(self._metadata.score, piece.rows)
        return float(self._scorer(piece.model.fitted, X, *truth, **weights))

    def _mean_score(self, pieces: list[Piece], X: Array) -> float:
        """Mean over the folds, as cross-validation has it."""
        return float(np.mean([self._score(piece, X[piece.rows]) for piece in pieces]))

    def _by_removal(self, subset: Subset) -> Array:
        base = self._mean_score(self._pieces(subset), self._X[:, self.columns(subset)])
        found = []
        for unit in subset:
            rest = subset[subset != unit]
            pieces = self._pieces(rest) if len(rest) else self._constants()
            found.append(base - self._mean_score(pieces, self._X[:, self.columns(rest)]))
        return np.array(found)

    def _by_replacing(self, way: Replacement, X: Array, pieces: list[Piece]) -> Array:
        if self._plain is not None:
            return super()._by_replacing(way, X, pieces)
        base = self._mean_score(pieces, X)
        found = [
            [base - self._altered(draw, X, pieces, column) for column in range(X.shape[1])]
            for draw in way.draws(X, self._seed)
        ]
        return np.array(found)

    def _altered(self, draw: Draw, X: Array, pieces: list[Piece], column: int) -> float:
        """Score with one column replaced."""
        altered = X.copy()
        if isinstance(draw, Shuffle):
            altered[:, column] = X[draw.donors, column]
            return self._mean_score(pieces, altered)
        assert isinstance(draw, Points)
        total = 0.0
        for value, weight in zip(draw.values[column], draw.weights[column], strict=True):
            if weight > 0:
                altered[:, column] = value
                total += weight * self._mean_score(pieces, altered)
        return total


def plain_score(estimator: Any, scoring: Any) -> str | None:
    """Accuracy, r2 or neg_mean_squared_error where a score is one of them, else None."""
    own = getattr(type(last_step(estimator)), "score", None)
    if scoring is None and own is ClassifierMixin.score:
        return "accuracy"
    if scoring is None and own is RegressorMixin.score:
        return "r2"
    regression = is_regressor(estimator) and scoring in ("r2", "neg_mean_squared_error")
    accuracy = is_classifier(estimator) and scoring == "accuracy"
    return str(scoring) if regression or accuracy else None
