"""What to know before the columns are used: a fact in bold, and what follows from it."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tamis._format import format_count
from tamis.evaluation import Results
from tamis.plot.style import figure, harmless
from tamis.report.facts import Care, Report

#: Rows below which what is said of a class may be chance.
FEW_ROWS = 20
#: Columns for each row beyond which some look good by luck.
MANY_COLUMNS = 10
#: Correlation above which two columns say almost the same.
SAME = 0.95
#: Names that a sentence lists.
NAMED = 4


def cares_of(
    report: Report,
    *,
    class_counts: dict[str, int],
    results: Results | None,
    tuned_outside: bool,
    size_from_results: bool,
    alerts: Sequence[Any],
    certified: bool,
    resume: str | None,
) -> list[Care]:
    """All cares of a report, what stopped the search first."""
    return [
        *_stopped(report, resume),
        *_few_rows(class_counts),
        *_wide(report),
        *_shaky(report),
        *_twins(report),
        *_no_error(report),
        *_too_good(report, tuned_outside, size_from_results),
        *_failed(results, certified),
        *(Care(harmless(str(alert)), "") for alert in alerts),
    ]


def _stopped(report: Report, resume: str | None) -> Iterator[Care]:
    if report.finished:
        return
    how = (
        f"Write {resume} to go on."
        if resume
        else ("Call resume with its record (selection.record_) to go on.")
    )
    yield Care(
        "The search was stopped before its end.", f"These are the columns it held then. {how}"
    )


def _few_rows(counts: dict[str, int]) -> Iterator[Care]:
    rare = {name: n for name, n in counts.items() if n < FEW_ROWS}
    if not rare:
        return
    named = ", ".join(f"{n} of “{name}”" for name, n in list(rare.items())[:NAMED])
    more = f" and {len(rare) - NAMED} more classes" if len(rare) > NAMED else ""
    yield Care(
        f"Few rows: {named}{more}.",
        "What is said of so small a class may be chance. More rows would help more than another "
        "method.",
    )


def _wide(report: Report) -> Iterator[Care]:
    if report.n_columns <= MANY_COLUMNS * report.n_rows:
        return
    check = (
        "the list itself has no such check but its stability."
        if report.errors
        else ("Only rows that took no part in choosing could tell.")
    )
    seen = (
        "The errors are measured on rows that took no part in the choice; " if report.errors else ""
    )
    yield Care(
        f"{report.n_columns} columns for {report.n_rows} rows.",
        f"With so many, some columns look good by luck. {seen}{check}",
    )


def _shaky(report: Report) -> Iterator[Care]:
    if report.agreement is None or not report.kept:
        return
    weak = [unit for unit in report.kept if report.agreement.share[unit] < 0.5]
    if not weak:
        return
    names = ", ".join(harmless(report.units.names[unit]) for unit in weak[:NAMED])
    more = f" and {len(weak) - NAMED} more" if len(weak) > NAMED else ""
    n_weak, n_kept = len(weak), len(report.kept)
    were = "was" if n_weak == 1 else "were"
    which = "The one column" if n_kept == 1 else f"{n_weak} of the {n_kept}"
    those = "that" if n_weak == 1 else "those"
    example = "an example, not as a finding" if n_weak == 1 else "examples, not as findings"
    yield Care(
        f"{which} {were} kept in less than half of the resamples.",
        f"Others do their work as well. Take {those} as {example}: {names}{more}.",
    )


def _twins(report: Report) -> Iterator[Care]:
    r = np.nan_to_num(np.tril(report.between, -1))
    pairs = np.argwhere(r > SAME)
    if not len(pairs):
        return
    first, second = np.unravel_index(int(r.argmax()), r.shape)
    names = [harmless(report.units.names[report.kept[int(k)]]) for k in (second, first)]
    what = "pair of kept columns says" if len(pairs) == 1 else "pairs of kept columns say"
    yield Care(
        f"{len(pairs)} {what} almost the same (|r| > {SAME}).",
        f"The closest are {names[0]} and {names[1]} ({r.max():.2f}). Their importances are shared "
        "between them and should not be compared with the others.",
    )


def _no_error(report: Report) -> Iterator[Care]:
    errors = report.errors
    if errors is None or not errors.measure.percent or errors.measure.greater_is_better:
        return
    shown = [errors.kept, *([errors.whole] if errors.whole else [])]
    if all(each.value > 0 for each in shown):
        return
    possible = 100 * (1 - 0.05 ** (1 / report.n_rows))
    yield Care(
        "No error seen is not no error.",
        f"With {report.n_rows} rows, a true error of up to {figure(possible, 2)}\u00a0% would show "
        "none in one case of twenty.",
    )


def _too_good(report: Report, tuned_outside: bool, size_from_results: bool) -> Iterator[Care]:
    if tuned_outside and report.errors is not None:
        yield Care(
            f"C was tuned once, on all {report.n_rows} rows,",
            "before the resamples: their errors are measured with it and so a little too good.",
        )
    if size_from_results and report.errors is not None:
        yield Care(
            "The number of columns was read off the same curve as its error,",
            f"which makes that error a little too good. Ask for {report.n_kept} columns on new "
            "rows to be sure.",
        )


def _failed(results: Results | None, certified: bool) -> Iterator[Care]:
    if results is not None and results.failures:
        n, first = len(results.failures), results.failures[0]
        yield Care(
            f"{format_count(n, 'resample')} failed;",
            f"the others stand. The first: {harmless(first.reason)}",
        )
    if not certified:
        yield Care(
            "The best C is not certified:",
            "rounding leaves another interval possible. The curve stands as computed.",
        )
