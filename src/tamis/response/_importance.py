"""How much a fitted model depends on each column: permutation importance and its expectation."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import Bunch, check_consistent_length

from tamis._arrays import Array
from tamis._seeds import draw_seed
from tamis.exceptions import InvalidParameter
from tamis.response.comparison import AnyComparison, EngineComparison
from tamis.response.distances import Statistic, mean_change, total_variation
from tamis.response.engines.base import FoldModel, Model
from tamis.response.engines.registry import check_usable, is_followed
from tamis.response.fold_models import FoldTraining
from tamis.response.frames import FrameCodes, OnFrames
from tamis.response.outputs import replacement_losses
from tamis.response.perturbations import Replacement, Zero, resolve
from tamis.response.predictions import decisions_of, predictions_of, probabilities_of
from tamis.response.scores import ScoreOutput
from tamis.response.units import Units


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
