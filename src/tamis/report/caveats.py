"""Caveats: limitations of a selection, and their consequences for the reader."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis._format import format_count, format_name, format_number
from tamis.evaluation import Results
from tamis.report.error_curve import NBSP
from tamis.report.page import Caveat

if TYPE_CHECKING:
    from tamis.report.selection import Report

#: If a class has fewer rows, findings about it may be due to chance.
FEW_ROWS = 20
#: If there are more columns per row, some columns look good by chance.
MANY_COLUMNS = 10
#: Two columns with a higher correlation are almost the same.
SAME = 0.95
#: Greatest number of names listed in a sentence.
NAMED = 4


def caveats_of(
    report: "Report",
    results: Results | None,
    alerts: Sequence[Any],
    *,
    size_from_results: bool,
    resume: str | None,
) -> list[Caveat]:
    """Return all caveats of a report. If the search was stopped, that caveat comes first."""
    found = chain(
        _stopped(report, resume),
        _few_rows(report),
        _wide(report),
        _unstable(report),
        _redundant(report),
        _no_error(report),
        _optimistic(report, size_from_results),
        _failed(report, results),
    )
    return [*found, *(Caveat(str(alert)) for alert in alerts)]


def _more(names: Sequence[str], what: str = "") -> str:
    """Return the first names, and the number of remaining names, as text."""
    rest = f" and {len(names) - NAMED} more{what}" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + rest


def _stopped(report: "Report", resume: str | None) -> Iterator[Caveat]:
    if not report.finished:
        how = f"Write {resume}" if resume else "Call resume with its record (selection.record_)"
        so_far = f"These are the columns at that point. {how} to continue."
        yield Caveat("The search was stopped before its end.", so_far)


def _few_rows(report: "Report") -> Iterator[Caveat]:
    classes = report.rows.groups if report.rows.sort == "classes" else ()
    if rare := [f"{n} of “{name}”" for name, n in classes if n < FEW_ROWS]:
        yield Caveat(
            f"Few rows: {_more(rare, ' classes')}.",
            "Findings about such a small class may be chance. More rows would help more than "
            "another method.",
        )


def _wide(report: "Report") -> Iterator[Caveat]:
    if report.n_columns > MANY_COLUMNS * report.n_rows:
        check = (
            "The errors are measured on held-out rows. Only the stability of the columns can show "
            "whether they are the right ones."
            if report.errors
            else "Measure the error on held-out rows to check the selection."
        )
        yield Caveat(
            f"{report.n_columns} columns for {report.n_rows} rows.",
            f"With this many columns, some look good by chance. {check}",
        )


def _unstable(report: "Report") -> Iterator[Caveat]:
    agreement, n_kept = report.agreement, len(report.kept)
    weak = [unit for unit in report.kept if agreement and agreement.share[unit] < 0.5]
    if weak:
        names = _more([format_name(report.units.names[unit]) for unit in weak])
        which = "The one column" if n_kept == 1 else f"{len(weak)} of the {n_kept}"
        one = len(weak) == 1
        them = "it as an example, not as a finding" if one else "them as examples, not as findings"
        yield Caveat(
            f"{which} {'was' if one else 'were'} kept in less than half of the resamples.",
            f"Other columns would do as well. Treat {them}: {names}.",
        )


def _redundant(report: "Report") -> Iterator[Caveat]:
    r = np.nan_to_num(np.tril(report.between, -1))
    if n_pairs := int((r > SAME).sum()):
        second, first = np.unravel_index(int(r.argmax()), r.shape)
        names = [format_name(report.units.names[report.kept[int(k)]]) for k in (first, second)]
        which = f"{format_count(n_pairs, 'pair')} of kept columns {'is' if n_pairs == 1 else 'are'}"
        yield Caveat(
            f"{which} almost the same (|r| > {SAME}).",
            f"The closest are {names[0]} and {names[1]} ({r.max():.2f}). Such columns share their "
            "importance. Do not compare their importance with other columns.",
        )


def _no_error(report: "Report") -> Iterator[Caveat]:
    errors = report.errors
    if errors is None or not errors.measure.percent or errors.measure.greater_is_better:
        return
    if errors.kept.value == 0 or (errors.whole is not None and errors.whole.value == 0):
        possible = format_number(100 * (1 - 0.05 ** (1 / report.n_rows)), 2)
        yield Caveat(
            "An observed error of 0 does not mean that the true error is 0.",
            f"With {report.n_rows} rows, a true error rate of {possible}{NBSP}% leads to no "
            "observed error in one case of twenty.",
        )


def _optimistic(report: "Report", size_from_results: bool) -> Iterator[Caveat]:
    if report.tuned is not None and report.errors is not None:
        yield Caveat(
            f"C was tuned once, on all {report.n_rows} rows,",
            "before resampling, so the errors are slightly optimistic.",
        )
    if size_from_results and report.errors is not None:
        yield Caveat(
            "The number of columns was chosen by the same errors that are reported,",
            "so they are slightly optimistic. To be sure, measure the error of "
            f"{report.n_kept} columns on new rows.",
        )


def _failed(report: "Report", results: Results | None) -> Iterator[Caveat]:
    if results is not None and results.failures:
        failed = format_count(len(results.failures), "resample")
        first = f"The other resamples are used. The first error: {results.failures[0].reason}"
        yield Caveat(f"{failed} failed.", first)
    if report.tuned is not None and not report.tuned.certified:
        yield Caveat(
            "The best C is not certified:",
            "because of rounding, another interval could be better. The curve itself is exact.",
        )
