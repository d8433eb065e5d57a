"""How much a fitted model depends on each column: permutation importance and its expectation."""

from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import Bunch, check_consistent_length

from tamis._arrays import Array, Subset
from tamis._parallel import parallel_map
from tamis._random import draw_seed
from tamis.exceptions import InvalidParameter
from tamis.response.answers import decisions_of, predictions_of, probabilities_of
from tamis.response.comparison import DrawComparison, EngineComparison
from tamis.response.distances import MeanChange, Statistic, TotalVariation
from tamis.response.engine import Model
from tamis.response.frames import FrameCodes, OnFrames
from tamis.response.opening import check_usable, is_followed
from tamis.response.perturbations import Draw, Points, Replacement, Zero, resolve
from tamis.response.scores import ScoreOutput
from tamis.response.training import FoldModel, SensitivityTraining

#: Parts that the columns are dealt out in, for each process: enough to even out unequal ones.
PARTS_PER_JOB = 4


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

    Kernel machines, networks with one hidden layer and linear models, also behind scalers, are
    followed for all columns together, and so are accuracy, R² and the mean squared error; of any
    other model or score altered copies of the rows are made.

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
        Processes that make altered copies.

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
    comparison, followed = _compared(fitted, table, _truth(y, scoring, table), scoring)
    units = np.arange(table.codes.shape[1])[:, None]
    n_parts = 1 if followed else PARTS_PER_JOB * effective_n_jobs(n_jobs)
    repeats = [
        _scores(comparison, units, draw, n_parts, n_jobs)
        for draw in way.draws(table.codes, units, draw_seed(random_state))
    ]
    found = np.stack(repeats, axis=1)
    return Bunch(
        importances_mean=found.mean(axis=1), importances_std=found.std(axis=1), importances=found
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


def _compared(fitted: Any, table: FrameCodes, y: Any, scoring: Any) -> tuple[DrawComparison, bool]:
    """Who compares, and whether an engine knows the model."""
    check_usable("importance", fitted)
    predictor = is_classifier(fitted) or is_regressor(fitted)
    if y is None and scoring is None and predictor:
        statistic: Callable[[Array], Statistic] = TotalVariation
        if not is_classifier(fitted):
            statistic = MeanChange
        return _by_engine(fitted, table, answers_of, statistic)
    labels = getattr(fitted, "classes_", None) if is_classifier(fitted) else None
    training = SensitivityTraining(
        "importance", table.codes, y, np.arange(len(table.codes)), labels=labels
    )
    output = ScoreOutput(training, fitted, scoring)
    if output.plain:
        return _by_engine(fitted, table, output.answers, output.statistic)
    asked = OnFrames(fitted, table) if table.is_frame else fitted
    output = ScoreOutput(training, asked, scoring)
    models = [FoldModel(output.answers(asked), training.rows)]
    return output.comparison(models, table.codes), False


def _by_engine(
    fitted: Any,
    table: FrameCodes,
    answers: Callable[[Any], Model],
    statistic: Callable[[Array], Statistic],
) -> tuple[DrawComparison, bool]:
    model, followed = known_model(fitted, table, answers)
    rows = np.arange(len(table.codes))
    return EngineComparison([FoldModel(model, rows)], table.codes, statistic), followed


def known_model(
    fitted: Any, table: FrameCodes, answers: Callable[[Any], Model]
) -> tuple[Model, bool]:
    """A model as engines see it, and whether one knows it; else one that takes numbers for frames.

    The model is asked once, so that a table which it cannot take is refused in its own words.
    """
    fitted.predict(table.frame)
    model = answers(fitted)
    if table.all_numbers and is_followed(model):
        return model, True
    return (answers(OnFrames(fitted, table)) if table.is_frame else model), False


def answers_of(fitted: Any) -> Model:
    """Probabilities, predicted classes where there are none, or predictions."""
    if not is_classifier(fitted):
        return predictions_of(fitted)
    if hasattr(fitted, "predict_proba"):
        return probabilities_of(fitted, fitted.classes_)
    return decisions_of(fitted, fitted.classes_)


def _scores(
    comparison: DrawComparison, units: Subset, draw: Draw, n_parts: int, n_jobs: int | None
) -> Array:
    """Scores of all units, some of them at a time."""
    parts = np.array_split(np.arange(len(units)), min(n_parts, len(units)))
    items = [(units[part], _part(draw, part), np.ones(len(part), dtype=bool)) for part in parts]
    return np.concatenate(parallel_map(comparison.scores, items, n_jobs))


def _part(draw: Draw, part: Subset) -> Draw:
    return Points(draw.values[part], draw.weights[part]) if isinstance(draw, Points) else draw
