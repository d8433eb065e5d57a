"""Errors, curves and agreement, read off results, or off a selection that measured them itself."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.linear_model import Ridge
from sklearn.svm import SVC

from tamis._arrays import Array, class_codes, target_kind, times_as_days
from tamis._expression import write
from tamis._frame import collected
from tamis.auto.sentences import SCORES
from tamis.contract import Grouping
from tamis.evaluation import Realizations, Results, evaluate, stability
from tamis.evaluation.sources import Fixed, as_rows
from tamis.plot.correlating import numbers_of
from tamis.plot.kept import shares_of
from tamis.plot.reading import (
    MEASURES,
    ChosenUnits,
    ErrorCurve,
    MetricFormat,
    error_curves,
    inside,
    measure_of,
)
from tamis.report.facts import Agreement, Errors, Estimate, NamedScore, RankSpan
from tamis.table.frames import as_polars, is_frame

#: Numbers of columns that resamples measure, beside the one that is kept and all of them.
SIZES = (1, 2, 3, 4, 5, 7, 10, 14, 20, 28, 40, 60, 100, 200, 500, 1000)
CONCORDANCE = MetricFormat("concordance", "", greater_is_better=True)
#: What machines are called in a sentence.
MACHINES = {
    r"(Linear)?SVC\(.*kernel='linear'|LinearSVC|SVR\(.*kernel='linear'": (
        "A linear support vector machine"
    ),
    r"SVC|SVR|machine": "A support vector machine",
    r"Ridge|ridge": "A ridge regression",
    r"Lasso": "A lasso regression",
    r"LinearRegression": "A linear regression",
    r"LogisticRegression": "A logistic regression",
    r"Forest|ExtraTrees|trees": "A forest",
    r"Boosting|XGB|LGBM|CatBoost": "A boosting machine",
    r"cox|Cox": "A Cox regression",
    r"KNeighbors": "A nearest-neighbour rule",
    r"NB$|NB\(": "A naive Bayes rule",
    r"Discriminant": "A discriminant analysis",
}


def spoken_machine(name: str) -> str:
    """An estimator in words.

    >>> spoken_machine("SVC(kernel='linear')"), spoken_machine("Mine()")
    ('A linear support vector machine', 'Mine')
    """
    for pattern, words in MACHINES.items():
        if re.search(pattern, name):
            return words
    return name.partition("(")[0] or "A machine"


def resampled(
    selection: Any,
    X: Any,
    y: Any,
    n_resamples: int = 20,
    *,
    estimator: Any = None,
    n_jobs: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Results:
    """Choose again on 80 % of the rows, many times, and measure on the rest.

    Parameters
    ----------
    selection : fitted selection
        Its clone is fitted in every resample.
    X, y : array or frame, and array
        The table and the target it was fitted to. A frame with text, categories or gaps is encoded
        inside every resample, by what is left to train on.
    n_resamples : int, default=20
        How many times: these fits are the whole cost.
    estimator : estimator, optional
        Trained on the columns; by default a linear support vector machine for classes and a ridge
        regression for a real target.
    n_jobs : int, optional
        Number of processes.
    seed : int, default=0
        Source of the draws.
    progress : callable, optional
        Called as ``progress(n_done, n_resamples)`` when one is done.

    Returns
    -------
    Results
        For :func:`tamis.report.report`.

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
    classes = is_classifier(estimator) if estimator is not None else _has_classes(y)
    if estimator is None:
        estimator = SVC(kernel="linear") if classes else Ridge()
    n_columns = int(selection.n_features_in_)
    own = int(np.count_nonzero(selection.get_support()))
    sizes = sorted({k for k in SIZES if k < n_columns} | {n_columns} | ({own} if own else set()))
    rows = _encoded_rows(X, y, classes) or _plain_rows(X, y)
    return evaluate(
        {type(selection).__name__: rows.method(clone(selection))},
        {rows.source.name: rows.source},
        Realizations(n_resamples, train=0.8, seed=seed),
        "error" if classes else "mse",
        estimators={write(estimator, strict=False): rows.estimator(estimator)},
        sizes=sizes,
        normalise=rows.plain,
        n_jobs=n_jobs,
        progress=progress,
    )


class ReadRows(NamedTuple):
    """Rows as ``evaluate`` takes them, and how methods and estimators are made to read them."""

    source: Fixed
    plain: bool
    method: Callable[[Any], Any]
    estimator: Callable[[Any], Any]


def _plain_rows(X: Any, y: NDArray[Any]) -> ReadRows:
    """Numbers, which ``evaluate`` scales itself."""
    numbers = np.asarray(X, dtype=float)
    return ReadRows(Fixed("data", as_rows((numbers, y), "data")), True, _as_it_is, _as_it_is)


def _as_it_is(part: Any) -> Any:
    return part


def _encoded_rows(X: Any, y: NDArray[Any], classes: bool) -> ReadRows | None:
    """A frame that is encoded inside every training part; None where it holds numbers alone."""
    if not is_frame(X) or np.isfinite(numbers_of(X, np.arange(len(X.columns)))).all():
        return None
    from tamis.table.rows import FrameSource, ResampledTable, frame_rows  # which need polars

    source = FrameSource("data", frame_rows(as_polars(X), y, "data"))
    table = ResampledTable(source, "classification" if classes else "regression", False)
    return ReadRows(source, False, table.method, table.estimator)


def _has_classes(y: NDArray[Any]) -> bool:
    return target_kind(y) == "classification"


# -- from results ---------------------------------------------------------------------------------


def curve_of_results(results: Results, method: str, metric: str) -> ErrorCurve | None:
    """The curve of a method, None where it was measured at its own size only."""
    estimators = {row.estimator for row in results.rows() if row.metric == metric}
    if not any(row.rule == "given" and row.metric == metric for row in results.rows()):
        return None
    first = next(row.estimator for row in results.rows() if row.estimator in estimators)
    return error_curves(results, metric=metric, method=method, estimator=first)[0]


def errors_of_results(
    results: Results, curve: ErrorCurve | None, method: str, metric: str, n_kept: int, y: Any
) -> Errors | None:
    """What keeping so many columns loses."""
    measure = measure_of(results, metric)
    kept, whole, lost = Estimate(float("nan")), None, None
    if curve is not None:
        kept = Estimate(*curve.at(n_kept))
        if np.isfinite(curve.whole):
            whole = Estimate(*curve.at(curve.n_features))
            lost = Estimate(*curve.lost(n_kept, curve.n_features))
    if not np.isfinite(kept.value):
        kept = _own(results, method, metric, measure)
    if not np.isfinite(kept.value):
        return None
    guess, word = guessed(metric, y)
    r2 = None
    if metric == "mse" and guess:
        r2 = Estimate(1 - (kept.value / guess) ** 2)
    outcome = results.tasks[0].outcome
    rows = outcome.n_train + outcome.n_test
    share = 100 * outcome.n_train / rows
    how = (
        f"In each of {len(results.tasks)} resamples the columns were chosen on {share:.0f}\u00a0% "
        f"of the rows and judged on the other {100 - share:.0f}\u00a0%, so "
        "that no column was chosen by the rows it is judged on."
    )
    estimators = [row.estimator for row in results.rows() if row.metric == metric]
    machine = spoken_machine(estimators[0]) if estimators else "A machine"
    return Errors(measure, kept, whole, guess, word, lost, r2, machine, how)


def _own(results: Results, method: str, metric: str, measure: MetricFormat) -> Estimate:
    """What was measured at the number of columns that each resample kept."""
    values = [
        row.value
        for row in results.rows()
        if row.method == method and row.metric == metric and row.rule != "given"
    ]
    if not values:
        return Estimate(float("nan"))
    shown = measure.shown(np.array(values))
    spread = float(shown.std(ddof=1)) if len(shown) > 1 else float("nan")
    return Estimate(float(shown.mean()), spread * (1 / len(shown) + results.test_ratio()) ** 0.5)


def guessed(metric: str, y: Any) -> tuple[float | None, str]:
    """What a guess without columns scores, as it is shown, and the class that is guessed."""
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
    """Stability of the resamples at the number of columns that is kept."""
    size = int(units.units.mask(units.kept).sum())
    masks = results.supports(method, None, size or None)
    if len(masks) < 2 or not 0 < masks.mean() < 1:
        return None
    found = stability(masks)
    share = shares_of(results, units, method)
    return Agreement(found.nogueira, found.low, found.high, len(masks), share)


def ranks_of_results(results: Results, units: ChosenUnits, method: str) -> RankSpan | None:
    """Where each unit stands over the resamples."""
    orders = results.orders(method)
    if len(orders) < 2 or len(orders[0]) != units.units.n_columns:
        return None
    places = np.empty((len(orders), units.units.n_columns))
    for line, order in zip(places, orders, strict=True):
        line[list(order)] = np.arange(1, len(order) + 1)
    if not units.units.plain:
        by_unit = np.full((len(orders), len(units.names)), np.inf)
        np.minimum.at(by_unit.T, units.units.unit_of, places.T)
        places = by_unit
    low, median, high = np.quantile(places, [0.1, 0.5, 0.9], axis=0, method="nearest")
    return RankSpan(*(part.astype(np.intp) for part in (median, low, high)))


# -- from a selection that measures itself --------------------------------------------------------


def own_errors(selection: Any, y: Any) -> Errors | None:
    """Errors of a selection that held rows out by itself (``error_``, ``error_guess_``)."""
    selection = inside(selection)
    kept, guess = getattr(selection, "error_", None), getattr(selection, "error_guess_", None)
    if kept is None or guess is None or not hasattr(kept, "loss"):
        return None
    classes = kept.wrong is not None
    risks = not classes and kept.rmse is None
    measure = CONCORDANCE if risks else MEASURES["error" if classes else "mse"]

    def estimate(held: Any) -> Estimate:
        if risks:
            return Estimate(*held.scores["concordance"])
        if classes:
            return Estimate(100 * held.wrong, 100 * (held.wrong_error or float("nan")))
        root = float(np.sqrt(held.loss))
        return Estimate(root, held.standard_error / (2 * root) if root else float("nan"))

    whole = getattr(selection, "error_all_", None)
    whole = None if whole is None or whole == kept else estimate(whole)  # all may be kept
    mine = estimate(kept)
    lost = None
    if kept != guess and getattr(selection, "significant_", True):  # else nothing can be lost
        lost = _own_lost(getattr(selection, "error_lost_", None), mine, whole)
    r2 = None if kept.r2 is None else Estimate(float(kept.r2))
    name = getattr(selection, "model_", None) or str(getattr(selection, "estimator_", ""))
    word = guessed("error", y)[1] if classes else ""
    how = (
        "The error is measured on rows that took no part in choosing the columns, and corrected "
        "for having taken the best of many."
    )
    machine = spoken_machine(str(name))
    scores = () if risks else _named_scores(kept, guess, getattr(selection, "error_lost_", None))
    return Errors(measure, mine, whole, estimate(guess).value, word, lost, r2, machine, how, scores)


def _named_scores(kept: Any, guess: Any, lost: Any) -> tuple[NamedScore, ...]:
    """Scores that are reported besides the error."""
    of_all = getattr(lost, "scores", {})
    return tuple(
        NamedScore(
            SCORES.get(name, name.replace("_", " ")),
            Estimate(*found),
            guess.scores[name][0],
            Estimate(*of_all[name]) if name in of_all else None,
        )
        for name, found in getattr(kept, "scores", {}).items()
    )


def _own_lost(lost: Any, mine: Estimate, whole: Estimate | None) -> Estimate | None:
    """What few columns lose, compared row by row where the selection did so."""
    if lost is not None and lost.wrong is not None:
        return Estimate(100 * lost.wrong, 100 * lost.wrong_error)
    if lost is not None and lost.rmse is None:
        return Estimate(*lost.scores["concordance"])
    if lost is not None:
        return Estimate(lost.rmse, lost.rmse_error)
    if whole is None:
        return None
    # not compared row by row: the larger of the two errors stands for both
    return Estimate(mine.value - whole.value, max(mine.error, whole.error))


def own_curve(selection: Any, n_features: int) -> ErrorCurve | None:
    """Squared losses of a selection that held rows out, of the path and model that it kept."""
    selection = inside(selection)
    points = getattr(selection, "curve_", None)
    if isinstance(points, list) and points and hasattr(points[0], "loss"):
        mine = (getattr(selection, "path_", None), getattr(selection, "model_", None))
        points = [p for p in points if mine[0] is None or (p.path, p.model) == mine]
        best: dict[int, Any] = {}
        for point in points:
            if point.size not in best or point.loss < best[point.size].loss:
                best[point.size] = point
        rows = [(size, best[size].loss, best[size].standard_error) for size in sorted(best)]
        of_all = getattr(selection, "curve_all_", None) or getattr(selection, "error_all_", None)
        whole = getattr(of_all, "loss", float("nan"))
        classes = getattr(selection.error_, "wrong", None) is not None
    elif hasattr(selection, "losses_") and hasattr(selection, "sizes_"):
        rows = list(zip(selection.sizes_, selection.losses_, selection.errors_, strict=True))
        whole, classes = float("nan"), True  # squares as they are: the target's kind is not known
    else:
        return None
    rows = [row for row in rows if row[0] > 0]
    if len(rows) < 2:
        return None
    return _loss_curve(rows, whole, classes, n_features)


def _loss_curve(rows: Any, whole: float, classes: bool, n_features: int) -> ErrorCurve:
    size, loss, error = (np.array(part) for part in zip(*rows, strict=True))
    measure = MetricFormat("squared loss", "") if classes else MEASURES["mse"]
    mean: Array = measure.shown(loss)
    if measure.rooted:
        error = np.divide(error, 2 * mean, out=np.zeros(len(mean)), where=mean > 0)
    return ErrorCurve(
        "loss", size.astype(np.intp), mean, error, np.empty((0, len(size))), n_features, measure,
        float(measure.shown(np.array(whole))), float("nan"),
    )  # fmt: skip


def own_agreement(selection: Any, units: ChosenUnits) -> Agreement | None:
    """Stability that a selection found over its own folds or halves."""
    inner = inside(selection)
    found = getattr(inner, "stability_", None)
    if found is None or not hasattr(found, "frequency"):
        return None
    share = _by_unit(np.asarray(found.frequency, dtype=float), inner.units_)
    if inner is not selection:  # columns that the search was not offered come last in the order
        offered = np.zeros(len(units.names))
        offered[selection.order_[: len(share)]] = share[inner.order_]
        share = offered
    if len(share) != len(units.names):
        return None
    return Agreement(found.nogueira, found.low, found.high, found.n_selections, share)


def _by_unit(share: Array, units: Grouping) -> Array:
    """Shares of columns as those of their units."""
    if len(share) != units.n_columns or units.plain:
        return share
    by_unit = np.zeros(units.n_units)
    np.maximum.at(by_unit, units.unit_of, share)
    return by_unit
