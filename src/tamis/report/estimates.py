"""Errors and stability of a selection, from resamples or from its own estimates.

A unit is a single column, or a group of columns that are selected together.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.linear_model import Ridge
from sklearn.svm import SVC

from tamis._arrays import Subset, class_codes, target_kind, times_as_days
from tamis._expression import write
from tamis._format import format_score_name
from tamis._frame import collected
from tamis.evaluation import Realizations, Results, evaluate
from tamis.evaluation import stability as measure_stability
from tamis.evaluation.sources import Fixed, as_rows
from tamis.report.charts.stability import shares_of
from tamis.report.columns import numbers_of
from tamis.report.error_curve import (
    METRICS,
    NAN,
    NBSP,
    ErrorCurve,
    Estimate,
    MetricFormat,
    curve_of_points,
    error_curves,
    mean_and_error,
    metric_format,
)
from tamis.report.units import Agreement, ChosenUnits, inner_selection
from tamis.table.frames import as_polars, is_frame

#: Numbers of columns at which errors are measured, in addition to the selected number and all.
SIZES = (1, 2, 3, 4, 5, 7, 10, 14, 20, 28, 40, 60, 100, 200, 500, 1000)
#: Readable names of models, by a pattern that their expression matches.
MODELS = {
    r"(Linear)?SVC\(.*kernel='linear'|LinearSVC|SVR\(.*kernel='linear'": "A linear SVM",
    r"SVC|SVR|machine|SVM": "An SVM",
    r"Ridge|ridge": "A ridge regression",
    r"Lasso": "A lasso regression",
    r"LinearRegression": "A linear regression",
    r"LogisticRegression": "A logistic regression",
    r"Forest|ExtraTrees|trees": "A random forest",
    r"Boosting|XGB|LGBM|CatBoost": "A gradient boosting model",
    r"cox|Cox": "A Cox regression",
    r"KNeighbors": "A nearest-neighbour classifier",
    r"NB$|NB\(": "A naive Bayes classifier",
    r"Discriminant": "A discriminant analysis",
}


class NamedScore(NamedTuple):
    """A score of the selection and of the baseline.

    ``lost`` is how much better the score with all columns is.
    """

    name: str
    kept: Estimate
    guess: float
    lost: Estimate | None = None


@dataclass(frozen=True)
class Errors:
    """Errors on held-out rows, with the selected columns and with all columns.

    Attributes
    ----------
    measure : MetricFormat
        How all values are formatted.
    kept, whole : Estimate
        Error with the selected columns, and with all columns (None if it was not measured).
    guess : float or None
        Error of the baseline.
    guess_word : str
        The majority class, or empty if the baseline is a mean.
    lost : Estimate or None
        How much worse the selected columns are than all columns, paired by resample.
    r2 : Estimate or None
        Share of explained variance, for a numeric target.
    machine : str
        Name of the model.
    how : str
        Sentence that describes which rows were used.
    scores : tuple of NamedScore
        Other scores, such as AUC if a class is rare.
    """

    measure: MetricFormat
    kept: Estimate
    whole: Estimate | None
    guess: float | None
    guess_word: str
    lost: Estimate | None
    r2: Estimate | None
    machine: str
    how: str
    scores: tuple[NamedScore, ...] = ()


class RankSpan(NamedTuple):
    """Ranks of each unit over the resamples: median, 10th percentile and 90th percentile."""

    median: Subset
    low: Subset
    high: Subset


def describe_model(name: str) -> str:
    """Return the name of a model for use in a sentence.

    >>> describe_model("SVC(kernel='linear')"), describe_model("Mine()")
    ('A linear SVM', 'Mine')
    """
    found = (model for pattern, model in MODELS.items() if re.search(pattern, name))
    return next(found, name.partition("(")[0] or "A model")


def resampled(
    selection: BaseEstimator,
    X: Any,
    y: ArrayLike,
    n_resamples: int = 20,
    *,
    estimator: BaseEstimator | None = None,
    n_jobs: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Results:
    """Repeat a selection on random samples of 80 % of the rows, and measure the error on the rest.

    Parameters
    ----------
    selection : fitted selection
        The selection to repeat. A clone is fitted in every resample.
    X, y : array or frame, and array
        The table and the target that it was fitted to. A frame with text, categories or missing
        values is encoded in every resample, using only its training rows.
    n_resamples : int, default=20
        Number of resamples. Each takes as long as a fit.
    estimator : estimator, optional
        Model trained on the selected columns. The default is a linear SVM for classes, and a ridge
        regression for a numeric target.
    n_jobs : int, optional
        Number of processes.
    seed : int, default=0
        Random seed of the resamples.
    progress : callable, optional
        Called as ``progress(n_done, n_resamples)`` after each resample.

    Returns
    -------
    Results
        Can be passed as ``results`` to :func:`tamis.report.report`.

    Examples
    --------
    >>> import tamis
    >>> from tamis.datasets import load
    >>> from tamis.report import resampled
    >>> wine = load("wine")
    >>> chosen = tamis.select(wine.X, wine.y, "fisher-score", n_features_to_select=4)
    >>> resampled(chosen, wine.X, wine.y, 3)
    <Results: 1 methods, 1 data sets, 3 tasks>
    """
    X, y = collected(X), np.asarray(times_as_days(y))
    classes = target_kind(y) == "classification" if estimator is None else is_classifier(estimator)
    if estimator is None:
        estimator = SVC(kernel="linear") if classes else Ridge()
    n_columns = int(selection.n_features_in_)
    own = {int(np.count_nonzero(selection.get_support()))} - {0}
    sizes = sorted({k for k in SIZES if k < n_columns} | {n_columns} | own)
    name, method = write(estimator, strict=False), clone(selection)
    plain = not is_frame(X) or bool(np.isfinite(numbers_of(X, np.arange(len(X.columns)))).all())
    if plain:
        source = Fixed("data", as_rows((np.asarray(X, dtype=float), y), "data"))
    else:
        from tamis.table.rows import FrameSource, ResampledTable, frame_rows  # needs polars

        source = FrameSource("data", frame_rows(as_polars(X), y, "data"))
        task = "classification" if classes else "regression"
        table = ResampledTable(source, task, plain=False)
        method, estimator = table.method(method), table.estimator(estimator)
    return evaluate(
        {type(selection).__name__: method},
        {source.name: source},
        Realizations(n_resamples, train=0.8, seed=seed),
        "error" if classes else "mse",
        estimators={name: estimator},
        sizes=sizes,
        normalise=plain,
        n_jobs=n_jobs,
        progress=progress,
    )


# -- from results ---------------------------------------------------------------------------------


def curve_of_results(results: Results, method: str, metric: str) -> ErrorCurve | None:
    """Return the error curve of a method. None if only its own number of columns was measured."""
    rows = [row for row in results.rows() if row.metric == metric]
    if not any(row.rule == "given" for row in rows):
        return None
    return error_curves(results, metric=metric, method=method, estimator=rows[0].estimator)[0]


def errors_of_results(
    results: Results, curve: ErrorCurve | None, method: str, metric: str, n_kept: int, y: Any
) -> Errors | None:
    """Return the errors of the selected columns, of all columns, and of the baseline."""
    measure = metric_format(metric, results.metrics[metric].greater_is_better)
    kept, whole, lost = Estimate(NAN), None, None
    if curve is not None:
        kept = curve.at(n_kept)
        if np.isfinite(curve.whole):
            whole = curve.at(curve.n_features)
            lost = curve.lost(n_kept, curve.n_features)
    rows = [row for row in results.rows() if row.metric == metric]
    if not np.isfinite(kept.value):  # each resample has its own number of columns
        own = [row.value for row in rows if row.method == method and row.rule != "given"]
        if not own:
            return None
        kept = mean_and_error(measure.shown(own), 1 / len(own) + results.test_ratio())
    guess, word = baseline(metric, y)
    r2 = Estimate(1 - (kept.value / guess) ** 2) if metric == "mse" and guess else None
    outcome = results.tasks[0].outcome
    share = 100 * outcome.n_train / (outcome.n_train + outcome.n_test)
    how = (
        f"In each of {len(results.tasks)} resamples the columns were selected on {share:.0f}{NBSP}%"
        f" of the rows, and the error was measured on the other {100 - share:.0f}{NBSP}%."
    )
    model = describe_model(rows[0].estimator if rows else "")
    return Errors(measure, kept, whole, guess, word, lost, r2, model, how)


def baseline(metric: str, y: Any) -> tuple[float | None, str]:
    """Return the score of a constant prediction in the units shown, and the majority class."""
    if y is None:
        return None, ""
    if metric == "mse":
        return float(np.std(np.asarray(y, dtype=float))), ""
    if metric not in ("error", "ber", "accuracy"):
        return None, ""
    labels, codes = class_codes(np.asarray(y))
    counts = np.bincount(codes)
    most = int(counts.argmax())
    share = counts[most] / counts.sum()
    value = {"error": 1 - share, "ber": 1 - 1 / len(labels), "accuracy": share}[metric]
    return 100 * float(value), str(labels[most])


def agreement_of_results(results: Results, units: ChosenUnits, method: str) -> Agreement | None:
    """Return the stability across resamples, at the selected number of columns."""
    masks = results.supports(method, None, units.n_columns_kept or None)
    if len(masks) < 2 or not 0 < masks.mean() < 1:
        return None
    found = measure_stability(masks)
    share = shares_of(results, units, method)
    return Agreement(found.nogueira, found.low, found.high, len(masks), share)


def ranks_of_results(results: Results, units: ChosenUnits, method: str) -> RankSpan | None:
    """Return the ranks of each unit over the resamples. A group has the rank of its best column."""
    orders = results.orders(method)
    if len(orders) < 2 or len(orders[0]) != units.units.n_columns:
        return None
    ranks = np.full((len(orders), len(units.names)), np.inf)
    for line, order in zip(ranks, orders, strict=True):
        np.minimum.at(line, units.units.unit_of[list(order)], np.arange(1, len(order) + 1))
    low, median, high = np.quantile(ranks, [0.1, 0.5, 0.9], axis=0, method="nearest")
    return RankSpan(*(part.astype(np.intp) for part in (median, low, high)))


# -- from a selection with its own estimates ------------------------------------------------------


def own_errors(selection: Any, y: NDArray[Any] | None) -> Errors | None:
    """Return the errors that a selection itself measured on held-out rows (``error_``)."""
    selection = inner_selection(selection)
    kept, guess = getattr(selection, "error_", None), getattr(selection, "error_guess_", None)
    if kept is None or guess is None or not hasattr(kept, "loss"):
        return None
    metric = "concordance" if kept.rmse is None else "mse"
    metric = metric if kept.wrong is None else "error"

    def estimate(held: Any) -> Estimate:
        if metric == "concordance":
            return Estimate(*held.scores[metric])
        if metric == "error":
            return METRICS[metric].estimate(held.wrong, held.wrong_error or NAN)
        return METRICS[metric].estimate(held.loss, held.standard_error)

    whole = getattr(selection, "error_all_", None)
    whole = None if whole is None or whole == kept else estimate(whole)  # equal if all are selected
    mine, lost = estimate(kept), None
    gained: Any = getattr(selection, "error_lost_", None)
    if kept != guess and getattr(selection, "significant_", True):
        lost = _own_lost(gained, mine, whole)
    scores = tuple(
        NamedScore(
            format_score_name(name),
            Estimate(*found),
            guess.scores[name][0],
            Estimate(*gained.scores[name]) if name in getattr(gained, "scores", {}) else None,
        )
        for name, found in getattr(kept, "scores", {}).items()
        if metric != "concordance"
    )
    name = getattr(selection, "model_", None) or str(getattr(selection, "estimator_", ""))
    return Errors(
        METRICS[metric],
        mine,
        whole,
        estimate(guess).value,
        baseline("error", y)[1] if metric == "error" else "",
        lost,
        None if kept.r2 is None else Estimate(float(kept.r2)),
        describe_model(str(name)),
        "The error was measured on held-out rows, and corrected for the choice of the best model.",
        scores,
    )


def _own_lost(lost: Any, mine: Estimate, whole: Estimate | None) -> Estimate | None:
    """Return how much worse the selected columns are than all columns.

    The standard error is paired by row if the selection provides it.
    """
    if lost is None:
        if whole is None:
            return None
        # not paired, so the larger of the two standard errors is used
        return Estimate(mine.value - whole.value, max(mine.error, whole.error))
    if lost.wrong is not None:
        return Estimate(100 * lost.wrong, 100 * lost.wrong_error)
    if lost.rmse is None:
        return Estimate(*lost.scores["concordance"])
    return Estimate(lost.rmse, lost.rmse_error)


def own_curve(selection: Any, n_features: int) -> ErrorCurve | None:
    """Return the curve of the held-out losses of a selection, along its order of columns.

    At each size, the loss of the best model is used. For classes, the curve shows the error rates
    of these models if they are known.
    """
    selection = inner_selection(selection)
    points = getattr(selection, "curve_", None)
    measure, whole = MetricFormat("squared loss"), NAN
    if isinstance(points, list) and points and hasattr(points[0], "loss"):
        path = getattr(selection, "path_", None)
        mine = [p for p in points if path is None or p.path == path]
        best = {p.size: p for p in sorted(mine[::-1], key=lambda p: p.loss, reverse=True)}
        of_all = getattr(selection, "curve_all_", None) or getattr(selection, "error_all_", None)
        fields = ("loss", "standard_error")
        if getattr(points[0], "wrong", None) is not None:
            fields, measure = ("wrong", "wrong_error"), METRICS["error"]
        elif getattr(selection.error_, "wrong", None) is None:
            measure = METRICS["mse"]
            if getattr(selection.error_, "rmse", None) is None:  # a censored target
                measure = MetricFormat("negative log partial likelihood")
        rows = [(n, *(getattr(best[n], field) for field in fields)) for n in sorted(best)]
        whole = getattr(of_all, fields[0], NAN)
        nothing = getattr(getattr(selection, "error_guess_", None), fields[0], NAN)
    elif hasattr(selection, "losses_") and hasattr(selection, "sizes_"):
        # losses are shown without a root, because the kind of the target is unknown
        rows = list(zip(selection.sizes_, selection.losses_, selection.errors_, strict=True))
        nothing = next((loss for size, loss, _ in rows if size == 0), NAN)
    else:
        return None
    rows = [row for row in rows if row[0] > 0]
    if len(rows) < 2:
        return None
    return curve_of_points("loss", rows, measure, n_features, whole, nothing)
