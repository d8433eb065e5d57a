"""How much a fitted model depends on each column, and its mean response along it.

Frames become arrays of numbers: columns of numbers are themselves; a value of any other column is
represented by the first row that has it. Perturbations move values between rows, so that numbers of
rows are as good as the values.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils import Bunch, Tags, check_consistent_length, get_tags

from tamis._arrays import Array
from tamis._checks import NONE, check_values, integer
from tamis._frame import collected
from tamis._seeds import draw_seed
from tamis.exceptions import InvalidParameter, InvalidTable
from tamis.response.comparison import (
    AnyComparison,
    EngineComparison,
    replacement_losses,
    split_rows,
)
from tamis.response.distances import Statistic, mean_change, total_variation
from tamis.response.engines.base import FoldModel, Model
from tamis.response.engines.registry import check_usable, is_followed, open_engine
from tamis.response.fold_models import FoldTraining
from tamis.response.outputs import ScoreOutput
from tamis.response.perturbations import Marginal, Points, Replacement, Units, Zero, resolve
from tamis.response.predictions import (
    as_it_is,
    decision_values,
    decisions_of,
    has_votes,
    predictions_of,
    probabilities_of,
)

#: What a model may be asked; all of them take a table first.
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "score")


class FrameCodes:
    """A table, its numbers, and the way back."""

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
        """Whether the numbers are those of the table."""
        return not self.is_frame or not any(self.coded)

    def decode(self, codes: Array) -> Any:
        """A table of the kind that was given."""
        if not self.is_frame:
            return codes
        columns = {
            name: self._take(name, codes[:, j]) if self.coded[j] else codes[:, j]
            for j, name in enumerate(self.names)
        }
        return type(self.frame)(columns)

    def _take(self, name: Any, rows: Array) -> Any:
        """Values of a column of the frame, of the type that they have there."""
        column = self.frame[name]
        if hasattr(column, "gather"):  # polars
            return column.gather(rows.astype(np.intp))
        return column.take(rows.astype(np.intp)).reset_index(drop=True)

    def values(self, column: int, codes: Array) -> NDArray[Any]:
        """What some numbers of a column stand for."""
        if self.is_frame and self.coded[column]:
            return np.asarray(self.frame[self.names[column]])[codes.astype(np.intp)]
        return codes


class OnFrames(BaseEstimator):
    """A fitted model as a function of the numbers of its frames."""

    def __init__(self, model: Any, table: FrameCodes):
        self.model = model
        self.table = table

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("model", "table"):
            raise AttributeError(name)
        found = getattr(self.model, name)
        if name not in METHODS:
            return found
        return lambda codes, *others, **params: found(self.table.decode(codes), *others, **params)

    def __sklearn_tags__(self) -> Tags:
        return get_tags(self.model)


def _numbers(X: Any) -> Array:
    try:
        found = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidTable(
            f"An array of numbers is needed, and this one holds something else ({error}). Give a "
            "frame with named columns, as the model was trained on."
        ) from error
    if found.ndim != 2:
        raise InvalidTable(f"A table of rows and columns is needed, not {found.ndim} dimension(s).")
    return found


def _is_numeric(column: Any) -> bool:
    # truth values and categories keep their type, by which an encoder may know them
    return np.asarray(column).dtype.kind in "fiu" and str(column.dtype) != "category"


def _first_rows(values: NDArray[Any]) -> Array:
    """For each row the first one that has its value; what is missing is one value."""
    known: dict[Any, int] = {}
    missing = [value is None or value != value for value in values.tolist()]
    found = [
        known.setdefault(None if gone else value, row)
        for row, (value, gone) in enumerate(zip(values.tolist(), missing, strict=True))
    ]
    return np.array(found, dtype=np.float64)


def importance(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    scoring: Any = None,
    by: Any = "marginal",
    n_repeats: int = 5,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Bunch:
    """How much a fitted model depends on each column of a table.

    With ``y`` it is how far a score falls when a column is perturbed: by shuffles it is
    scikit-learn's ``permutation_importance``, and ``by="marginal"`` its expectation over all
    shuffles, for scores that are means over rows (accuracy, R², log-loss). Without ``y`` it is how
    far the model's answers move: the total variation of its probabilities (of its predicted classes
    where it has none), or the mean absolute change of what a regression predicts.

    Kernel machines, networks with one hidden layer, linear models, forests and boosting, also
    behind scalers, are followed for all columns together, and so are accuracy, R² and the mean
    squared error; of any other model or score altered copies of the rows are made.

    Parameters
    ----------
    model : fitted estimator
    X : array or frame of shape (n_samples, n_features)
        Rows to ask about: those of the training, or others. Columns of a frame may hold anything
        that the model takes.
    y : array of shape (n_samples,), optional
        The truth.
    scoring : str, callable or None, default=None
        None is the model's own score: accuracy or R².
    by : {"marginal", "permutation", "zero"}, default="marginal"
        Every row meets every value of the column (deterministic), the column is shuffled, or set
        to 0. Also an object such as ``Marginal(16)``, which takes sixteen quantiles of the column:
        advisable where copies are made, which every value would have many of.
    n_repeats : int, default=5
        Shuffles of ``by="permutation"``.
    random_state : int, Generator or None, default=None
    n_jobs : int or None, default=None
        Processes that make altered copies, or threads over which a forest or boosting deals out
        rows.

    Returns
    -------
    Bunch
        ``importances_mean``, ``importances_std`` of shape (n_features,), and ``importances`` of
        shape (n_features, n_repeats), where a deterministic perturbation has one repeat.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> importance(SVC().fit(X, y), X, y).importances_mean.round(2)
    array([0.  , 0.01, 0.58, 0.13])
    """
    way = resolve("importance", by, n_repeats)
    if not isinstance(way, Replacement):
        raise InvalidParameter(
            "importance asks a model that is fitted, and needs by='marginal', 'permutation' or "
            f"'zero', not {by!r}."
        )
    table, fitted = FrameCodes(X), plain_model(model)
    if isinstance(way, Zero) and not table.all_numbers:
        raise InvalidParameter(
            "importance cannot set a column of texts or categories to 0. Use by='marginal' or "
            "'permutation'."
        )
    comparison = _compare(fitted, table, _truth(y, scoring, table), scoring, n_jobs)
    units, seed = Units.single(np.arange(table.codes.shape[1])), draw_seed(random_state)
    found = replacement_losses(comparison, way, units, table.codes, seed, n_jobs).T
    return Bunch(
        importances_mean=np.nanmean(found, axis=1),
        importances_std=np.nanstd(found, axis=1),
        importances=found,
    )


def plain_model(model: Any) -> Any:
    """The best estimator of a fitted search that scores as it does; any other model itself."""
    own_score = getattr(model, "scoring", None) is None
    return model.best_estimator_ if hasattr(model, "best_estimator_") and own_score else model


def _truth(y: Any, scoring: Any, table: FrameCodes) -> Any:
    if y is None:
        if isinstance(scoring, str):
            raise InvalidParameter(
                f"importance needs y for scoring={scoring!r}. Leave scoring out to see how far the "
                "answers of the model move."
            )
        return None
    check_consistent_length(table.codes, y)
    return np.asarray(y)


def _compare(
    fitted: Any, table: FrameCodes, y: Any, scoring: Any, n_jobs: int | None
) -> AnyComparison:
    """Compare outputs before and after a perturbation, by an engine if one knows the model."""
    check_usable("importance", fitted)
    rows, predicts = np.arange(len(table.codes)), is_classifier(fitted) or is_regressor(fitted)
    view: Callable[[Any], Model] = response_of
    statistic: Callable[[Array], Statistic] = mean_change
    if y is None and scoring is None and predicts:
        statistic = total_variation if is_classifier(fitted) else mean_change
    else:
        labels = getattr(fitted, "classes_", None) if is_classifier(fitted) else None
        training = FoldTraining("importance", table.codes, y, rows, labels=labels)
        output = ScoreOutput(training, fitted, scoring)
        if not output.plain:
            asked = OnFrames(fitted, table) if table.is_frame else fitted
            output = ScoreOutput(training, asked, scoring)
            return output.comparison([FoldModel(output.view(asked), rows)], table.codes)
        view, statistic = output.view, output.statistic
    models = [FoldModel(known_model(fitted, table, view), rows)]
    return EngineComparison(models, table.codes, statistic, n_jobs)


def known_model(fitted: Any, table: FrameCodes, view: Callable[[Any], Model]) -> Model:
    """View a model as an engine knows it, or else as one that takes numbers for frames.

    The model predicts once, so that a table which it cannot take is refused in its own words.
    """
    fitted.predict(table.frame)
    model = view(fitted)
    if not table.is_frame or (table.all_numbers and is_followed(model)):
        return model
    return view(OnFrames(fitted, table))


def response_of(fitted: Any) -> Model:
    """View a model by its probabilities, its classes if there are none, or its predictions."""
    if not is_classifier(fitted):
        return predictions_of(fitted)
    if hasattr(fitted, "predict_proba"):
        return probabilities_of(fitted, fitted.classes_)
    return decisions_of(fitted, fitted.classes_)


class Effect(NamedTuple):
    """Mean responses (points, outputs) at values of a column, and the share of rows near each.

    Attributes
    ----------
    values : array of shape (n_points,)
        Of the column.
    shares : array of shape (n_points,)
        Share of rows near each value.
    means : array of shape (n_points, n_outputs)
        What the model answers on average where the column has that value.
    """

    values: NDArray[Any]
    shares: Array
    means: Array


def effects(
    model: Any, X: Any, *, n_values: int | None = 32, n_jobs: int | None = None
) -> list[Effect]:
    """What a fitted model answers on average as a column is held at each of its values.

    Of a classifier it is the mean probability of the second of two classes, or of each of several;
    where it has no probabilities, its mean decision value, or the share of rows that an SVM of
    several classes puts into each. Of a regression it is the mean prediction. The numbers are those
    of scikit-learn's ``partial_dependence`` by brute force; kernel machines, networks with one
    hidden layer, linear models, forests and boosting, also behind scalers, are followed for all
    columns together.

    Parameters
    ----------
    model : fitted classifier or regressor
    X : array or frame of shape (n_samples, n_features)
        Rows over which responses are averaged.
    n_values : int or None, default=32
        Quantiles of a column that are looked at, values that do occur; None is every value.
    n_jobs : int or None, default=None
        Threads over which a forest or boosting deals out rows.

    Returns
    -------
    list of Effect
        One for each column: ``values``, from the least to the greatest, the ``shares`` of rows that
        each stands for, and ``means`` of shape (n_values, n_outputs).

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
        some = weights > 0  # of quantiles several may be one value
        codes, first, which = np.unique(points_of[some, 0], return_index=True, return_inverse=True)
        shares = np.bincount(which, weights[some]).astype(np.float64)
        found.append(Effect(table.values(column, codes), shares, means[column, some][first]))
    return found


def _response(fitted: Any) -> Model:
    """View a model by what is averaged."""
    votes = has_votes(fitted) and len(fitted.classes_) > 2
    shares = hasattr(fitted, "predict_proba") or not hasattr(fitted, "decision_function")
    if not is_classifier(fitted) or shares or votes:
        return response_of(fitted)
    return decision_values(fitted, as_it_is)


def _means(model: Model, X: Array, points: Points, n_jobs: int | None) -> Array:
    """Means over the rows, of shape (columns, points, outputs)."""
    units, bounds = np.arange(X.shape[1])[:, None], (X.min(axis=0), X.max(axis=0))
    found = (
        open_engine(model, X[part.rows], *bounds, n_jobs).mean_outputs(units, points, part)
        * len(part.rows)
        for part in split_rows([FoldModel(model, np.arange(len(X)))])
    )
    return np.asarray(sum(found) / len(X))
