"""From a fitted selection and its table to all that a page says."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Subset, target_kind, times_as_days
from tamis._expression import write
from tamis._format import format_count
from tamis._frame import collected
from tamis.contract.record import installed_versions
from tamis.evaluation import Results
from tamis.exceptions import InvalidParameter, InvalidTable
from tamis.plot.correlating import correlations, shape_of
from tamis.plot.pairs import strongest
from tamis.plot.reading import ChosenUnits, chosen_units, criterion_curve, inside, walk_of
from tamis.plot.tuned import tuned_curve
from tamis.report.cares import cares_of
from tamis.report.effecting import effect_lines
from tamis.report.facts import Report, Strip
from tamis.report.measuring import (
    agreement_of_results,
    curve_of_results,
    errors_of_results,
    own_agreement,
    own_curve,
    own_errors,
    ranks_of_results,
    spoken_machine,
)
from tamis.report.strips import RowGroups, column_of, row_groups, strip_of
from tamis.report.swapping import close_columns, tried_swaps

#: Kept columns that a page tells more of than their rank: each takes 2 kB.
DETAILED = 60
#: Kept columns whose correlations with all others are looked at.
CORRELATED = 300
#: Strongest pairs that a page tells of: more could be chance, and would not be looked at.
PAIRS = 15


class GivenTable(NamedTuple):
    """The table and the target, whatever they came as."""

    X: Any
    y: NDArray[Any] | None
    task: str
    target: str | None
    source: str | None
    alerts: Sequence[Any]


def report(
    selection: Any,
    X: Any,
    y: Any = None,
    *,
    results: Results | None = None,
    method: str | None = None,
    metric: str | None = None,
    tuned: Any = None,
    substitutes: Iterable[Any] | None = None,
    model: Any = None,
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
    """Gather all that there is to say of a fitted selection.

    Parameters
    ----------
    selection : fitted selection
        Of tamis, or any of scikit-learn's. Where it measured errors itself
        (:class:`tamis.choice.HonestSize`, or the automatic selection) these are told.
    X : array or frame of shape (n_samples, n_features), or Table
        The table it was fitted to. A :class:`tamis.table.Table` brings its target along.
    y : array of shape (n_samples,), optional
        The target.
    results : Results, optional
        Of :func:`tamis.report.resampled`, or of :func:`tamis.evaluation.evaluate`: what the method
        does on rows it has not seen. Without them a page has no estimate of errors.
    method, metric : str, optional
        Which of the results; by default the first.
    tuned : SVCPathCV or SVRPathCV, optional
        The fitted search for C that the selection's machine was tuned by.
    substitutes : iterable of swaps, optional
        What ``selection.substitutes(X, y)`` found: columns that were tried in the place of kept
        ones. Without it those that are close are named.
    model : fitted estimator, optional
        Trained on the kept columns, in the order of the table: what it answers as each of them
        rises is shown. Of an automatic selection it is
        ``clone(selection.estimator_).fit(selection.transform(X), y)``.
    names : sequence of str, optional
        Names of the columns, where the selection knows none.
    title : str, optional
        In place of "Keep 12 of 30 columns to predict diagnosis".
    source, target : str, optional
        Name of the file, and of the target.
    task : {"auto", "classification", "regression", "survival", "none"}, default="auto"
        How to read ``y``.
    descriptions : dict of str to str, optional
        What columns are, by their names.
    alerts : sequence of str or Alert
        What else to know of the table.
    command : str, optional
        What to write on a command line to get the same.
    resume : str, optional
        What to write to go on with a search that was stopped.
    size_from_results : bool, default=False
        Whether the number of columns was chosen by these results, so that their error flatters.

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
    near = _nearness(given.X, units)
    detailed = units.best_kept[:DETAILED].tolist()
    swaps = close_columns(units, detailed, near.r[:DETAILED])
    if substitutes is not None:
        swaps = tried_swaps(units, detailed, substitutes)
    curve = None if tuned is None else tuned_curve(tuned)
    drafted = Report(
        source=given.source,
        target=given.target,
        title=title,
        n_rows=n_rows,
        task=given.task,
        made=date.today(),
        units=units,
        descriptions=dict(descriptions or {}),
        reason=str(getattr(getattr(selection, "choice_", None), "reason", "")),
        finished=bool(getattr(getattr(selection, "record_", None), "finished", True)),
        errors=None,
        curve=None,
        values=criterion_curve(selection),
        agreement=None,
        ranks=None,
        closest=near.closest,
        between=near.between,
        swaps=swaps,
        groups=list(rows.groups),
        strips=_strips(given.X, units, rows),
        walk=walk_of(selection),
        tuned=curve,
        pairs=strongest(getattr(selection, "interactions_", ()), PAIRS),
        effects={} if model is None else effect_lines(model, given.X, units),
        model="" if model is None else spoken_machine(write(model, strict=False)),
        details=_details(selection, given, n_rows, results),
        command=command,
    )
    measured = _measured(drafted, selection, given, results, method, metric)
    counts = {group.name: group.n_rows for group in rows.groups} if rows.sort == "classes" else {}
    cares = cares_of(
        measured,
        class_counts=counts,
        results=results,
        tuned_outside=tuned is not None,
        size_from_results=size_from_results,
        alerts=given.alerts,
        certified=curve is None or curve.certified,
        resume=resume,
    )
    return replace(measured, cares=cares)


def _given(
    X: Any, y: Any, task: str, target: str | None, source: str | None, alerts: Sequence[Any]
) -> GivenTable:
    """What was given, with what a table knows of itself."""
    if hasattr(X, "task") and hasattr(X, "X"):  # a Table, or the checked table of a command
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
    known = ("auto", "classification", "regression", "survival", "none")
    if task not in known:
        raise InvalidParameter(f"report needs task as one of {', '.join(known)}, not {task!r}.")
    if task == "auto":
        task = "survival" if y is not None and y.dtype.names else target_kind(y)
    return GivenTable(X, y, task, target, source, alerts)


class Nearness(NamedTuple):
    """What says the same as what: ``r`` of the first kept units with all units."""

    r: Array
    between: Array
    closest: tuple[Subset, Array]


def _nearness(X: Any, units: ChosenUnits) -> Nearness:
    kept = units.best_kept[:CORRELATED]
    n = len(units.names)
    if not len(kept):
        none = np.full(n, -1, dtype=np.intp), np.full(n, np.nan)
        return Nearness(np.empty((0, n)), np.empty((0, 0)), none)
    r = correlations(X, units.units, kept)
    others = np.where(np.isnan(r), -1.0, r)
    others[np.arange(len(kept)), kept] = -1.0  # a column is close to itself, which says nothing
    best = others.argmax(axis=0)
    value = others[best, np.arange(n)]
    closest = np.where(value >= 0, kept[best], -1), np.where(value >= 0, value, np.nan)
    return Nearness(r, r[:, kept], closest)


def _strips(X: Any, units: ChosenUnits, rows: RowGroups) -> dict[int, Strip]:
    """Values of the first kept columns; a group of columns has none."""
    found = {}
    for unit in units.best_kept[:DETAILED].tolist():
        columns = units.units.columns(np.array([unit]))
        strip = strip_of(column_of(X, int(columns[0])), rows) if len(columns) == 1 else None
        if strip is not None:
            found[unit] = strip
    return found


def _measured(
    drafted: Report,
    selection: Any,
    given: GivenTable,
    results: Results | None,
    method: str | None,
    metric: str | None,
) -> Report:
    """The report with what is known of unseen rows."""
    units = drafted.units
    if results is None:
        return replace(
            drafted,
            errors=own_errors(selection, given.y),
            curve=own_curve(selection, drafted.n_columns),
            agreement=own_agreement(selection, units),
        )
    if not results.tasks:
        return drafted
    method = results.methods[0] if method is None else method
    metric = next(iter(results.metrics)) if metric is None else metric
    curve = curve_of_results(results, method, metric)
    errors = errors_of_results(results, curve, method, metric, drafted.n_kept, given.y)
    return replace(
        drafted,
        errors=errors if drafted.n_kept else None,
        curve=curve,
        agreement=agreement_of_results(results, units, method),
        ranks=ranks_of_results(results, units, method),
    )


def _details(
    selection: Any, given: GivenTable, n_rows: int, results: Results | None
) -> list[tuple[str, str]]:
    """How it was computed, line by line."""
    record = getattr(selection, "record_", None)
    lines = [("Selector", write(selection, strict=False))]
    for planned in getattr(inside(selection), "plan_", None) or ():
        if hasattr(planned, "tried"):
            word = "Tried" if planned.tried else "Skipped"
            lines.append((word, f"{planned.name}: {planned.reason}".removesuffix(": ")))
    if record is not None:
        asked = f"{format_count(len(record.trace), 'step')}, "
        asked += f"{format_count(record.n_evaluations, 'score')}, {record.seconds:.1f} s"
        lines.append(("Steps", asked))
    if results is not None and results.tasks:
        outcome = results.tasks[0].outcome
        judged = f"{len(results.tasks)} resamples, {outcome.n_train} rows to train on and "
        lines.append(("Judged by", f"{judged}{outcome.n_test} to test on; {_machines(results)}"))
    if record is not None and record.seeds:
        seeds = ", ".join(f"{name} {seed}" for name, seed in record.seeds.items())
        lines.append(("Seeds", seeds))
    shape = f"{format_count(n_rows, 'row')}, {format_count(shape_of(given.X)[1], 'column')}"
    shape += "" if record is None else f", fingerprint {record.data}"
    lines.append(("Data", f"{given.source}, {shape}" if given.source else shape))
    if record is not None and record.places:
        lines.append(("Computed", record.places))
    versions = installed_versions() if record is None else record.versions
    lines.append(("Versions", ", ".join(f"{name} {v}" for name, v in versions.items())))
    if record is not None:
        lines.append(("Finished", "yes" if record.finished else "no"))
    return lines


def _machines(results: Results) -> str:
    names = list(dict.fromkeys(row.estimator for row in results.rows() if row.estimator))
    return ", ".join(names) or "the method itself"
