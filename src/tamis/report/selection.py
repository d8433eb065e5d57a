"""Report of a selection: facts about a fitted selection and its table.

A unit is a single column, or a group of columns that are selected together.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from tamis._arrays import Array, Subset, target_kind, times_as_days
from tamis._expression import write
from tamis._format import format_count, format_number
from tamis._frame import collected
from tamis.auto.sentences import describe_error
from tamis.contract.record import Interaction, installed_versions
from tamis.evaluation import Results
from tamis.exceptions import InvalidParameter, InvalidTable
from tamis.report.caveats import caveats_of
from tamis.report.charts.effects import EffectLine, effect_lines
from tamis.report.charts.search_path import CriterionCurve, criterion_curve
from tamis.report.charts.stability import draw_environments
from tamis.report.charts.style import PAGE
from tamis.report.columns import correlations, shape_of, values_of
from tamis.report.error_curve import ErrorCurve
from tamis.report.estimates import (
    Errors,
    RankSpan,
    agreement_of_results,
    curve_of_results,
    describe_model,
    errors_of_results,
    own_curve,
    own_errors,
    ranks_of_results,
)
from tamis.report.explorer import (
    Candidate,
    Omission,
    alternative_lists,
    find_candidates,
    price_limit,
)
from tamis.report.page import Page
from tamis.report.strips import Group, RowGroups, Strip, row_groups, strip_of
from tamis.report.template import BARS
from tamis.report.tuned_svm import TuningResult
from tamis.report.units import (
    Agreement,
    ChosenUnits,
    chosen_units,
    inner_selection,
    own_agreement,
    strongest_pairs,
)
from tamis.table.frames import as_polars, is_frame

if TYPE_CHECKING:
    from tamis.svm.search.base import PathSearch

#: Largest number of columns whose slopes in environments are shown.
SLOPES = 10
#: Number of selected columns shown in detail, because each takes 2 kB.
DETAILED = 60
#: Number of selected columns whose correlations with all others are computed.
CORRELATED = 300
#: Number of strongest pairs shown. Weaker pairs are likely to be due to chance.
PAIRS = 15
#: Two columns with at least this correlation are close, so that one may replace the other. The
#: second number is the greatest number of replacements listed for a column.
CLOSE, REPLACEMENTS = 0.7, 3
TASKS = ("auto", "classification", "regression", "survival", "none")


class Swap(NamedTuple):
    """A unit that could replace a selected unit.

    ``change`` is the increase in squared loss after the replacement. ``same`` states whether this
    increase is within one standard error. Both are None if the replacement was not tried.
    """

    unit: int
    r: float
    change: float | None = None
    same: bool | None = None

    def __str__(self) -> str:
        note = f"{self.r:.2f}"
        if self.same:
            note += " · same"
        elif self.change is not None:
            note += f" · +{format_number(self.change, 2)}".replace("+−", "−")
        return note


@dataclass(frozen=True, repr=False)
class Report(Page):
    """Facts about a selection, as shown in a report.

    :func:`tamis.report.report` creates it, and ``save`` writes the page.

    Attributes
    ----------
    source, target, title : str or None
        Names of the table and of the target, and a heading that replaces the default.
    n_rows : int
    task : {"classification", "regression", "survival", "none"}
    units : ChosenUnits
        Units of the selection, with their ranking and scores.
    descriptions : dict of str to str
        Descriptions of columns, by name.
    reason : str
        Why this number of columns was selected.
    finished : bool
        Whether the search was completed.
    values : CriterionCurve or None
        Values of the criterion against the number of columns, on the training rows.
    closest : (units, r)
        For each unit, the closest selected unit (-1 if there is none), and their absolute
        correlation.
    between : array of shape (n_kept, n_kept)
        Absolute correlations between the selected units, best first.
    swaps : dict of int to list of Swap
        For each selected unit, up to three units that could replace it.
    rows : RowGroups
        Groups of rows, such as the classes, that the strips compare.
    strips : dict of int to Strip
        Strip charts of the first selected units. A strip shows the values in each group of rows.
    tuned : TuningResult or None
    pairs : list of Interaction
        The strongest pairs of units, if the criterion scored pairs.
    effects : dict of int to EffectLine
        Effects of the first selected columns on a model's predictions. Empty if no model was given.
    model : str
        Name of the model whose effects are shown.
    errors : Errors or None
        Errors on held-out rows. None if nothing was measured on held-out rows.
    curve : ErrorCurve or None
        Errors against the number of columns.
    agreement : Agreement or None
        Stability across resamples.
    ranks : RankSpan or None
        Ranks of the units over the resamples.
    candidates : list of Candidate
        The lists whose error was measured on held-out rows.
    omissions : list of Omission
        Fits without some of the columns.
    price_limit : float or None
        The price limit of an automatic selection.
    alternatives : list of (str, list of int, str)
        Other lists of an automatic selection: name, units, and error as text.
    made : date
    cares : list of Caveat
        What to know before the columns are used.
    environments : dict or None
        Chart of the slopes in each environment, if the selection compares environments.
    environment_errors : list of (str, str)
        Each environment, and the error of a model that was trained on all others, as text.
    details : list of (str, str)
        Pairs of a term and its value that describe how the results were computed.
    command : str or None
        The command line that computes the same results.

    Examples
    --------
    >>> import tamis
    >>> from tamis.datasets import load
    >>> from tamis.report import report
    >>> wine = load("wine")
    >>> selector = tamis.select(wine.X, wine.y, "fisher-score", n_features_to_select=2)
    >>> page = report(selector, wine.X, wine.y)
    >>> page.n_rows, page.task, page.reason
    (178, 'classification', '2 columns, as asked.')
    """

    template = "selection.html.j2"

    source: str | None
    target: str | None
    title: str | None
    n_rows: int
    task: str
    units: ChosenUnits
    descriptions: Mapping[str, str]
    reason: str
    finished: bool
    values: CriterionCurve | None
    closest: tuple[Subset, Array]
    between: Array
    swaps: Mapping[int, Sequence[Swap]]
    rows: RowGroups
    strips: Mapping[int, Strip]
    tuned: TuningResult | None
    pairs: Sequence[Interaction]
    effects: Mapping[int, EffectLine]
    model: str
    errors: Errors | None = None
    curve: ErrorCurve | None = None
    agreement: Agreement | None = None
    environments: dict[str, Any] | None = None
    environment_errors: Sequence[tuple[str, str]] = ()
    ranks: RankSpan | None = None
    candidates: Sequence[Candidate] = ()
    price_limit: float | None = None
    omissions: Sequence[Omission] = ()
    alternatives: Sequence[tuple[str, list[int], str]] = ()

    @property
    def n_columns(self) -> int:
        """Number of columns of the table."""
        return self.units.units.n_columns

    @property
    def kept(self) -> list[int]:
        """Selected units, best first."""
        return [int(unit) for unit in self.units.best_kept]

    @property
    def n_kept(self) -> int:
        """Number of selected columns."""
        return self.units.n_columns_kept

    @property
    def groups(self) -> Sequence[Group]:
        """Groups of rows that the strips compare."""
        return self.rows.groups

    def __repr__(self) -> str:
        return f"<Report: {self.n_kept} of {self.n_columns} columns>"

    def _context(self) -> dict[str, Any]:
        from tamis.report.selection_page import context_of

        return context_of(self)


class GivenTable(NamedTuple):
    """The table and the target, of any kind, with their names and alerts."""

    X: Any
    y: NDArray[Any] | None
    task: str
    target: str | None
    source: str | None
    alerts: Sequence[Any]


def report(
    selection: BaseEstimator,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    results: Results | None = None,
    method: str | None = None,
    metric: str | None = None,
    tuned: "PathSearch | None" = None,
    substitutes: Iterable[Any] | None = None,
    without: Sequence[Omission] = (),
    model: BaseEstimator | None = None,
    names: Sequence[str] | None = None,
    title: str | None = None,
    source: str | None = None,
    target: str | None = None,
    task: str = "auto",
    descriptions: Mapping[str, str] | None = None,
    alerts: Sequence[Any] = (),
    command: str | None = None,
    resume: str | None = None,
    size_from_results: bool = False,
) -> Report:
    """Collect the facts about a fitted selection for a report.

    Parameters
    ----------
    selection : fitted selection
        A selection of tamis or of scikit-learn. If it has its own error estimate
        (:class:`tamis.meta.HonestSize`, or the automatic selection), that estimate is reported.
    X : array or frame of shape (n_samples, n_features), or Table
        The table that the selection was fitted to. A :class:`tamis.table.Table` contains its
        target, so ``y`` is not needed.
    y : array of shape (n_samples,), optional
        The target.
    results : Results, optional
        Errors of the method on held-out rows: the result of :func:`tamis.report.resampled` or
        :func:`tamis.evaluation.evaluate`. Without it, the report may have no error estimate.
    method, metric : str, optional
        Method and metric of ``results`` to report. The default is the first.
    tuned : SVCPathCV or SVRPathCV, optional
        The fitted search for C by which the SVM of the selection was tuned.
    substitutes : iterable of swaps, optional
        Result of ``selection.substitutes(X, y)``: columns that were tried in place of selected
        columns. Without it, correlated columns are listed.
    without : list of Omission, optional
        Result of :func:`tamis.report.fit_without`: the same selection, fitted again without some of
        the columns. It is used if there are no ``results``.
    model : fitted estimator, optional
        A model trained on the selected columns, in the order of the table. The report shows how its
        mean prediction changes with each column. For an automatic selection, use
        ``clone(selection.estimator_).fit(selection.transform(X), y)``.
    names : sequence of str, optional
        Names of the columns, if the selection has none.
    title : str, optional
        Heading in place of "Keep 12 of 30 columns to predict diagnosis".
    source, target : str, optional
        Names of the file and of the target.
    task : {"auto", "classification", "regression", "survival", "none"}, default="auto"
        How to interpret ``y``.
    descriptions : dict of str to str, optional
        Descriptions of columns, by name.
    alerts : sequence of str or Alert
        Other findings about the table.
    command : str, optional
        The command line that computes the same results.
    resume : str, optional
        The command line that continues a search that was stopped.
    size_from_results : bool, default=False
        Whether the number of columns was chosen from ``results``. If so, the report warns that the
        error is optimistic.

    Returns
    -------
    Report
        ``save("report.html")`` writes the page.

    Examples
    --------
    >>> import tamis
    >>> from tamis.datasets import load
    >>> from tamis.report import report, resampled
    >>> wine = load("wine")
    >>> chosen = tamis.select(wine.X, wine.y, "ridge-rfe", n_features_to_select=5)
    >>> page = report(chosen, wine.X, wine.y, results=resampled(chosen, wine.X, wine.y, 5))
    >>> page
    <Report: 5 of 13 columns>
    >>> page.errors.kept.value < page.errors.guess
    True
    """
    given = _given(X, y, task, target, source, alerts)
    units = chosen_units(selection, names)
    n_rows, _ = shape_of(given.X)
    rows = row_groups(given.y, given.task, n_rows)
    gathered = Report(
        source=given.source,
        target=given.target,
        title=title,
        n_rows=n_rows,
        task=given.task,
        units=units,
        descriptions=dict(descriptions or {}),
        reason=str(getattr(getattr(selection, "choice_", None), "reason", "")),
        finished=bool(getattr(getattr(selection, "record_", None), "finished", True)),
        values=criterion_curve(selection),
        **_correlated(given.X, units, substitutes),
        rows=rows,
        strips=_strips(_as_read(selection, given.X), units, rows),
        tuned=None if tuned is None else TuningResult(tuned),
        pairs=strongest_pairs(selection, PAIRS),
        effects={} if model is None else effect_lines(model, given.X, units),
        model="" if model is None else describe_model(write(model, strict=False)),
        **_measured(selection, units, given.y, results, method, metric, without),
        environments=_environments(selection),
        environment_errors=_environment_errors(selection),
        details=_details(selection, given, results),
        command=command,
    )
    cares = caveats_of(
        gathered, results, given.alerts, size_from_results=size_from_results, resume=resume
    )
    return replace(gathered, cares=cares)


def _given(
    X: Any, y: Any, task: str, target: str | None, source: str | None, alerts: Sequence[Any]
) -> GivenTable:
    """Return the table, the target, their names and alerts. A Table provides all of them."""
    if hasattr(X, "task") and hasattr(X, "X"):  # a Table or LabelledTable
        task = X.task if task == "auto" else task
        target, y = target or X.target, X.y if y is None else y
        source = source or getattr(X, "name", "") or None
        alerts = [*alerts, *(alert for alert in getattr(X, "alerts", ()) if alert.grave)]
        X = X.X
    X, y = collected(X), None if y is None else np.asarray(times_as_days(y))
    n_rows, _ = shape_of(X)
    if y is not None and len(y) != n_rows:
        raise InvalidTable(
            f"report needs one target for each of the {n_rows} rows, and y has {len(y)}. Give the "
            "table and the target of the fit."
        )
    if task not in TASKS:
        raise InvalidParameter(f"report needs task as one of {', '.join(TASKS)}, not {task!r}.")
    if task == "auto":
        task = "survival" if y is not None and y.dtype.names else target_kind(y)
    return GivenTable(X, y, task, target, source, alerts)


def _correlated(X: Any, units: ChosenUnits, substitutes: Iterable[Any] | None) -> dict[str, Any]:
    """Return the correlations of the selected units, and the units that could replace them."""
    kept, n = units.best_kept[:CORRELATED], len(units.names)
    r = correlations(X, units.units, kept) if len(kept) else np.empty((0, n))
    others = np.where(np.isnan(r), -1.0, r)
    others[np.arange(len(kept)), kept] = -1.0  # a unit does not replace itself
    near, value = np.full(n, -1, dtype=np.intp), np.full(n, np.nan)
    if len(kept):
        best = others.argmax(axis=0)
        found = others[best, np.arange(n)] >= 0
        near[found], value[found] = kept[best[found]], others.max(axis=0)[found]
    detailed = kept[:DETAILED].tolist()
    if substitutes is not None:
        swaps = _tried_swaps(units, detailed, substitutes, r)
        # substitutes were compared after encoding, so categories have a correlation too
        for unit, tried in swaps.items():
            for swap in tried:
                if not swap.r <= value[swap.unit]:
                    near[swap.unit], value[swap.unit] = unit, swap.r
    else:
        swaps = {}
        for unit, line in zip(detailed, np.where(units.kept, -1.0, others), strict=False):
            first = np.argsort(-line, kind="stable")[:REPLACEMENTS].tolist()
            swaps[unit] = [Swap(j, float(line[j])) for j in first if line[j] >= CLOSE]
    return {"between": r[:, kept], "closest": (near, value), "swaps": swaps}


def _tried_swaps(
    units: ChosenUnits, kept: Sequence[int], substitutes: Iterable[Any], r: Array
) -> dict[int, list[Swap]]:
    """Return the replacements that ``selection.substitutes`` tried, by selected unit.

    Units are given by name, or by index if they have no names. For columns that are not numeric,
    the correlation after encoding is used.
    """
    unit_of: dict[Any, int] = {name: k for k, name in reversed(list(enumerate(units.names)))}
    found: dict[int, list[Swap]] = {unit: [] for unit in kept}
    for tried in substitutes:
        one, other = (
            unit_of.get(given) if isinstance(given, str) else int(given)
            for given in (tried.column, tried.substitute)
        )
        if one in found and other is not None and len(found[one]) < REPLACEMENTS:
            change = None if np.isnan(tried.loss_change) else float(tried.loss_change)
            shown = r[kept.index(one), other]
            shown = float(shown if np.isfinite(shown) else tried.correlation)
            found[one].append(Swap(other, shown, change, tried.stands_in))
    return found


def _as_read(selection: Any, X: Any) -> Any:
    """Return a frame with the values that the selection read, such as dates instead of text."""
    if not (readings := getattr(selection, "_readings", None)) or not is_frame(X):
        return X
    from tamis.table.kinds import apply_readings  # needs polars, which is optional

    return apply_readings(as_polars(X), readings)


def _strips(X: Any, units: ChosenUnits, rows: RowGroups) -> dict[int, Strip]:
    """Return charts of the values of the first selected columns. Groups of columns have none."""
    found = {}
    for unit in units.best_kept[:DETAILED].tolist():
        columns = units.units.columns(np.array([unit]))
        strip = strip_of(values_of(X, int(columns[0])), rows) if len(columns) == 1 else None
        if strip is not None:
            found[unit] = strip
    return found


def _measured(
    selection: Any,
    units: ChosenUnits,
    y: NDArray[Any] | None,
    results: Results | None,
    method: str | None,
    metric: str | None,
    without: Sequence[Omission],
) -> dict[str, Any]:
    """Return errors, lists and stability, measured on held-out rows."""
    if results is None:
        curve = own_curve(selection, units.units.n_columns)
        return {
            "errors": own_errors(selection, y),
            "curve": curve,
            "agreement": own_agreement(selection, units),
            "candidates": find_candidates(selection, units, curve, without=without),
            "price_limit": price_limit(selection),
            "omissions": without,
            "alternatives": alternative_lists(selection, units),
        }
    if not results.tasks:
        return {}
    method = results.methods[0] if method is None else method
    metric = results.metric(metric, "report").name
    curve, n_kept = curve_of_results(results, method, metric), units.n_columns_kept
    errors = errors_of_results(results, curve, method, metric, n_kept, y)
    return {
        "errors": errors if n_kept else None,
        "curve": curve,
        "agreement": agreement_of_results(results, units, method),
        "ranks": ranks_of_results(results, units, method),
        "candidates": find_candidates(selection, units, curve, results, method),
    }


def _environments(selection: Any) -> dict[str, Any] | None:
    """Return the chart of the slopes in each environment, if the selection compares them."""
    if not np.isfinite(getattr(inner_selection(selection), "p_equal_", np.nan)).any():
        return None
    return draw_environments(selection, SLOPES, PAGE, BARS)


def _environment_errors(selection: Any) -> list[tuple[str, str]]:
    """Return the error in each environment of an automatic selection, as text."""
    errors = getattr(inner_selection(selection), "environment_errors_", {})
    return [(str(label), describe_error(error)) for label, error in errors.items()]


def _details(selection: Any, given: GivenTable, results: Results | None) -> list[tuple[str, str]]:
    """Return terms and values that describe how the selection was computed."""
    record = getattr(selection, "record_", None)
    lines = [("Selector", write(selection, strict=False))]
    for planned in getattr(inner_selection(selection), "plan_", None) or ():
        if hasattr(planned, "tried"):
            from tamis.auto.sentences import (
                STEPS,  # imports models, which other methods do not need
            )

            word, name = "Tried" if planned.tried else "Skipped", planned.name
            lines.append((word, f"{STEPS.get(name, name)}: {planned.reason}".removesuffix(": ")))
    elsewhere = getattr(inner_selection(selection), "environment_errors_", None) or {}
    for label, error in elsewhere.items():
        text = describe_error(error)
        lines.append((f"Environment {label}", f"{text}, model trained on the others"))
    if record is not None:
        counts = (
            format_count(len(record.trace), "step"),
            format_count(record.n_evaluations, "score"),
        )
        lines.append(("Steps", f"{', '.join(counts)}, {record.seconds:.1f} s"))
    if results is not None and results.tasks:
        outcome = results.tasks[0].outcome
        models = ", ".join(dict.fromkeys(row.estimator for row in results.rows() if row.estimator))
        resamples = f"{len(results.tasks)} resamples, {outcome.n_train} training rows and "
        resamples += f"{outcome.n_test} test rows; {models or 'the method itself'}"
        lines.append(("Error estimate", resamples))
    if record is not None and record.seeds:
        seeds = ", ".join(f"{name} {seed}" for name, seed in record.seeds.items())
        lines.append(("Seeds", seeds))
    n_rows, n_columns = shape_of(given.X)
    shape = f"{format_count(n_rows, 'row')}, {format_count(n_columns, 'column')}"
    shape += "" if record is None else f", fingerprint {record.data}"
    lines.append(("Data", f"{given.source}, {shape}" if given.source else shape))
    if record is not None and record.places:
        lines.append(("Computed", record.places))
    versions = installed_versions() if record is None else record.versions
    lines.append(("Versions", ", ".join(f"{name} {v}" for name, v in versions.items())))
    if record is not None:
        lines.append(("Finished", "yes" if record.finished else "no"))
    return lines
