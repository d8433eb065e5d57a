"""Importance of each column for a fitted model, and partial dependence of the model on it.

Data frames are converted to numeric arrays. Numeric columns stay unchanged. In other columns, a
value is coded by the index of the first row that contains it. This suffices because perturbations
only move values between rows.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import Bunch, check_consistent_length

from tamis._arrays import Array, Subset
from tamis._checks import NONE, check_values, integer
from tamis._frame import collected
from tamis._seeds import Seed, draw_seed
from tamis.exceptions import InvalidParameter, InvalidTable
from tamis.response.comparison import (
    AnyComparison,
    CopyComparison,
    EngineComparison,
    replacement_losses,
    split_rows,
)
from tamis.response.distances import mean_change, total_variation
from tamis.response.engines.base import FoldModel, Model
from tamis.response.engines.registry import check_usable, is_followed, open_engine
from tamis.response.fold_models import FoldTraining
from tamis.response.outputs import ScoreOutput
from tamis.response.perturbations import (
    Marginal,
    Permutation,
    Points,
    Replacement,
    Units,
    Zero,
    resolve,
)
from tamis.response.predictions import (
    StandIn,
    as_it_is,
    decision_values,
    decisions_of,
    has_votes,
    predictions_of,
    probabilities_of,
)


class FrameCodes:
    """Table whose values are encoded as numbers that can be decoded again."""

    def __init__(self, X: Any):
        X = collected(X)
        self.is_frame = hasattr(X, "columns")
        self.frame = X
        if not self.is_frame:
            self.codes = _numbers(X)
            return
        self.names = list(X.columns)
        self.coded = [not _is_numeric(X[name]) for name in self.names]
        columns = [
            _first_rows(np.asarray(X[name])) if coded else np.asarray(X[name], dtype=np.float64)
            for name, coded in zip(self.names, self.coded, strict=True)
        ]
        self.codes = np.column_stack(columns)

    @property
    def all_numbers(self) -> bool:
        """Whether all columns are numeric. Numeric columns are not encoded."""
        return not self.is_frame or not any(self.coded)

    def decode(self, codes: Array) -> Any:
        """Decode an array of codes into a table of the original type."""
        if not self.is_frame:
            return codes
        columns = {
            name: self._take(name, codes[:, j]) if self.coded[j] else codes[:, j]
            for j, name in enumerate(self.names)
        }
        return type(self.frame)(columns)

    def _take(self, name: Any, rows: Array) -> Any:
        """Return the values of a column in the given rows, with their original type."""
        column, rows = self.frame[name], rows.astype(np.intp, copy=False)
        return column.gather(rows) if hasattr(column, "gather") else column.array.take(rows)

    def shuffle(self, columns: Subset, donors: Array) -> Any:
        """Return the frame with the values of other rows in the given columns."""
        new = {self.names[j]: self._take(self.names[j], donors) for j in columns}
        if hasattr(self.frame, "with_columns"):  # polars
            return self.frame.with_columns(**new)
        found = self.frame.copy(deep=False)
        for name, values in new.items():
            found[name] = values
        return found

    def call(self, fitted: Any, name: str, codes: Array, *others: Any, **params: Any) -> Any:
        """Decode an array of codes into a frame, and call a method of a model on the frame."""
        return getattr(fitted, name)(self.decode(codes), *others, **params)

    def values(self, column: int, codes: Array) -> NDArray[Any]:
        """Return the original values for codes of a column."""
        if self.is_frame and self.coded[column]:
            return np.asarray(self.frame[self.names[column]])[codes.astype(np.intp)]
        return codes


def _numbers(X: Any) -> Array:
    try:
        found = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidTable(
            f"X needs to be an array of numbers, but it holds other values ({error}). Pass a "
            "data frame with the columns that the model was trained on."
        ) from error
    if found.ndim != 2:
        raise InvalidTable(f"X needs two dimensions, got {found.ndim}. Pass rows and columns.")
    return found


def _is_numeric(column: Any) -> bool:
    # booleans and categories keep their type, which an encoder may need
    return np.asarray(column).dtype.kind in "fiu" and str(column.dtype) != "category"


def _first_rows(values: NDArray[Any]) -> Array:
    """Return, for each row, the index of the first row with the same value.

    Missing values are treated as equal.
    """
    known: dict[Any, int] = {}
    found = [
        known.setdefault(None if value is None or value != value else value, row)
        for row, value in enumerate(values.tolist())
    ]
    return np.array(found, dtype=np.float64)


def importance(
    model: Any,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    scoring: str | Callable[..., Any] | None = None,
    by: Any = "auto",
    n_repeats: int = 5,
    sample_weight: ArrayLike | None = None,
    random_state: Seed = None,
    n_jobs: int | None = None,
) -> Bunch:
    """Measure how much a fitted model depends on each column of a table.

    With ``y``, the importance of a column is the expected decrease of a score when the column is
    shuffled, as in scikit-learn's ``permutation_importance``. Without ``y``, it is the expected
    change of the outputs. For a classifier, this is the total variation of the class probabilities,
    or of the predicted classes if the model has no probabilities. For a regressor, it is the mean
    absolute change of the predictions.

    SVMs, networks with one hidden layer, linear models, forests and boosting have fast engines that
    compute all columns together, even in a pipeline after scalers.

    =============================== ============================= ===========================
    score                           model with a fast engine      any other model
    =============================== ============================= ===========================
    accuracy, R², log loss, mean    exact expectation over all    mean over ``n_repeats``
    squared or absolute error, and  shuffles if it is fast, else  shuffles, which the model
    the change of the outputs       mean over ``n_repeats``       predicts
                                    shuffles
    other scorers of scikit-learn,  mean over ``n_repeats``       the same
    such as the AUC                 shuffles
    functions of (estimator, X, y)  mean over ``n_repeats``       the same
                                    shuffles, which the model
                                    predicts
    =============================== ============================= ===========================

    The exact expectation is fast for forests, boosting, most SVMs, and for up to 300 different
    values per column of linear models. A score that is not a mean over rows has no exact
    expectation at a similar cost.

    Parameters
    ----------
    model : fitted estimator
        Model to explain.
    X : array or frame of shape (n_samples, n_features)
        Training rows or other rows. Columns of a data frame may have any type that the model
        accepts.
    y : array of shape (n_samples,), optional
        True target values.
    scoring : str, callable or None, default=None
        Score to measure. None means the model's own score (accuracy or R²).
    by : {"auto", "marginal", "permutation", "zero"} or Replacement, default="auto"
        "auto" follows the table above. "permutation" always shuffles the column. "marginal" sets
        the column to each of its values in turn, in all rows, and averages the scores. For a mean
        over rows this is the exact expectation over all shuffles. A model without a fast engine
        then predicts each row once for each value. ``Marginal(16)`` uses sixteen quantiles of the
        column instead. "zero" sets the column to 0.
    n_repeats : int, default=5
        Number of shuffles.
    sample_weight : array of shape (n_samples,), optional
        Weights of the rows, which are passed to the scorer. The expectation is then a mean over
        shuffles.
    random_state : int, Generator or None, default=None
        Seed of the shuffles.
    n_jobs : int or None, default=None
        Number of processes that evaluate altered copies of the rows, or number of threads for a
        forest or boosting model.

    Returns
    -------
    Bunch
        ``importances_mean`` and ``importances_std`` of shape (n_features,), and ``importances`` of
        shape (n_features, n_repeats). An exact expectation has one repeat.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> importance(SVC().fit(X, y), X, y).importances_mean.round(2)
    array([0.  , 0.01, 0.58, 0.13])
    """
    way = None if by == "auto" else resolve("importance", by, n_repeats)
    if not isinstance(way, Replacement | None):
        raise InvalidParameter(
            f"importance needs by='marginal', 'permutation' or 'zero', got {by!r}, which trains "
            "other models."
        )
    table, fitted = FrameCodes(X), plain_model(model)
    if isinstance(way, Zero) and not table.all_numbers:
        raise InvalidParameter(
            "importance with by='zero' needs numeric columns, but some hold text or categories. "
            "Use by='marginal' or 'permutation'."
        )
    shuffles = resolve("importance", "permutation", n_repeats)
    y, weights = _truth(y, scoring, sample_weight, table)
    comparison = _compare(fitted, table, y, scoring, weights, way or shuffles, n_jobs)
    if way is None:
        exact = isinstance(comparison, EngineComparison) and comparison.replaces_quickly()
        way = Marginal() if exact else shuffles
    units, seed = Units.single(np.arange(table.codes.shape[1])), draw_seed(random_state)
    found = replacement_losses(comparison, way, units, table.codes, seed, n_jobs).T
    return Bunch(
        importances_mean=np.nanmean(found, axis=1),
        importances_std=np.nanstd(found, axis=1),
        importances=found,
    )


def plain_model(model: Any) -> Any:
    """Return the best estimator of a hyper-parameter search, or the model itself.

    A search with its own ``scoring`` is returned unchanged.
    """
    own_score = getattr(model, "scoring", None) is None
    return model.best_estimator_ if hasattr(model, "best_estimator_") and own_score else model


def _truth(y: Any, scoring: Any, sample_weight: Any, table: FrameCodes) -> tuple[Any, Any]:
    if y is None:
        given = "sample_weight" if sample_weight is not None else f"scoring={scoring!r}"
        if isinstance(scoring, str) or sample_weight is not None:
            raise InvalidParameter(
                f"importance needs y for {given}. Leave scoring and sample_weight out to measure "
                "the change of the outputs."
            )
        return None, {}
    check_consistent_length(table.codes, y, sample_weight)
    weights = {} if sample_weight is None else {"sample_weight": np.asarray(sample_weight)}
    return np.asarray(y), weights


def _compare(
    fitted: Any, table: FrameCodes, y: Any, scoring: Any, weights: dict[str, Any], way: Replacement,
    n_jobs: int | None,
) -> AnyComparison:  # fmt: skip
    """Return a comparison that uses an engine if possible, or else altered copies of the rows.

    Shuffled copies are predicted one after another, as in scikit-learn. Other copies of the rows
    are joined into large tables, which models predict faster.
    """
    check_usable("importance", fitted)
    codes, rows = table.codes, np.arange(len(table.codes))
    if y is None and scoring is None and (is_classifier(fitted) or is_regressor(fitted)):
        statistic = total_variation if is_classifier(fitted) else mean_change
        models = [FoldModel(known_model(fitted, table, response_of), rows)]
        return EngineComparison(models, codes, statistic, n_jobs)
    labels = getattr(fitted, "classes_", None) if is_classifier(fitted) else None
    training = FoldTraining("importance", codes, y, rows, labels=labels, score_params=weights)
    output = ScoreOutput(training, fitted, scoring)
    models = [FoldModel(known_model(fitted, table, output.view), rows)]
    found: AnyComparison | None = None
    shuffles, has_engine = isinstance(way, Permutation), is_followed(models[0].model)
    if output.plain is None and has_engine:
        found = output.stored(models, codes, n_jobs)
    elif output.plain and (has_engine or not shuffles):
        found = EngineComparison(models, codes, output.statistic, n_jobs)
    if found is None or (found.makes_copies and shuffles):
        score = partial(_score, output.scorer, fitted, () if y is None else (y,), weights)
        found = CopyComparison(score, codes, table if table.is_frame else None)
    return found


def _score(scorer: Any, fitted: Any, truth: tuple[Any, ...], weights: Any, table: Any) -> float:
    return float(scorer(fitted, table, *truth, **weights))


def known_model(fitted: Any, table: FrameCodes, view: Callable[[Any], Model]) -> Model:
    """Return a model that a fast engine supports, or else one that decodes data frames.

    The model first predicts the table, so that it raises its own error if the table is unsuitable.
    """
    fitted.predict(table.frame)
    model = view(fitted)
    if not table.is_frame or (table.all_numbers and is_followed(model)):
        return model
    return view(StandIn(fitted, partial(table.call, fitted)))


def response_of(fitted: Any) -> Model:
    """Return a model whose outputs are probabilities, predicted classes or numeric predictions."""
    if not is_classifier(fitted):
        return predictions_of(fitted)
    if hasattr(fitted, "predict_proba"):
        return probabilities_of(fitted, fitted.classes_)
    return decisions_of(fitted, fitted.classes_)


class Effect(NamedTuple):
    """Mean response of a model at several values of a column.

    Attributes
    ----------
    values : array of shape (n_points,)
        Values of the column.
    shares : array of shape (n_points,)
        Share of rows that each value represents.
    means : array of shape (n_points, n_outputs)
        Mean output over all rows with the column set to the value.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from tamis.response import effects
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [2.0, 0.0]])
    >>> effect = effects(LinearRegression().fit(X, X @ [2.0, 1.0]), X)[0]
    >>> effect.values, effect.shares, effect.means.ravel().round(2)
    (array([0., 1., 2.]), array([0.25, 0.25, 0.5 ]), array([0.5, 2.5, 4.5]))
    """

    values: NDArray[Any]
    shares: Array
    means: Array


def effects(
    model: Any, X: ArrayLike, *, n_values: int | None = 32, n_jobs: int | None = None
) -> list[Effect]:
    """Compute the partial dependence of a fitted model on each column.

    The response of a classifier is the probability of the second of two classes, or of each of
    several classes. If the classifier has no probabilities, it is the decision value. For an SVM
    with several classes and no probabilities, it is the predicted class. The response of a
    regressor is its prediction. The results equal those of scikit-learn's
    ``partial_dependence(method="brute")``. SVMs, networks with one hidden layer, linear models,
    forests and boosting have fast engines that compute all columns together, even in a pipeline
    after scalers.

    Parameters
    ----------
    model : fitted classifier or regressor
        Model to explain.
    X : array or frame of shape (n_samples, n_features)
        Rows over which responses are averaged.
    n_values : int or None, default=32
        Number of quantiles of a column. Quantiles are values that occur in the column. None uses
        all values.
    n_jobs : int or None, default=None
        Number of threads for a forest or boosting model.

    Returns
    -------
    list of Effect
        One effect for each column: its ``values`` in increasing order, the ``shares`` of rows that
        they represent, and ``means`` of shape (n_values, n_outputs).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]])
    >>> first, second = effects(LinearRegression().fit(X, X @ [2.0, 1.0]), X)
    >>> first.values, first.means[:, 0].round(2)
    (array([0., 1., 2.]), array([0.67, 2.67, 4.67]))
    """
    table, fitted = FrameCodes(X), plain_model(model)
    check_usable("effects", fitted)
    check_values("effects", {"n_values": integer(1) | NONE}, n_values=n_values)
    response, units = known_model(fitted, table, _response), np.arange(table.codes.shape[1])
    (points,) = Marginal(n_values).draws(table.codes, units[:, None], 0)
    means = _means(response, table.codes, points, n_jobs)
    found = []
    for column, (points_of, weights) in enumerate(zip(points.values, points.weights, strict=True)):
        some = weights > 0  # without padding; several quantiles may also be the same value
        codes, first, which = np.unique(points_of[some, 0], return_index=True, return_inverse=True)
        shares = np.bincount(which, weights[some]).astype(np.float64)
        found.append(Effect(table.values(column, codes), shares, means[column, some][first]))
    return found


def _response(fitted: Any) -> Model:
    """Return a model whose outputs are suited for averages over rows."""
    votes = has_votes(fitted) and len(fitted.classes_) > 2
    decides = hasattr(fitted, "decision_function") and not hasattr(fitted, "predict_proba")
    if is_classifier(fitted) and decides and not votes:
        return decision_values(fitted, as_it_is)
    return response_of(fitted)


def _means(model: Model, X: Array, points: Points, n_jobs: int | None) -> Array:
    """Return the mean outputs over all rows at each point, of shape (columns, points, outputs)."""
    units, bounds = np.arange(X.shape[1])[:, None], (X.min(axis=0), X.max(axis=0))
    n_altered = len(X) * points.weights.size
    found = (
        open_engine(model, X[part.rows], *bounds, n_jobs, n_altered=n_altered)
        .mean_outputs(units, points, part) * len(part.rows)
        for part in split_rows([FoldModel(model, np.arange(len(X)))])
    )  # fmt: skip
    return np.asarray(sum(found) / len(X))
