"""From where methods stand to all that the page of a comparison says."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import ClassVar, NamedTuple

import numpy as np

from tamis.evaluation import Standing, Standings
from tamis.exceptions import InvalidParameter
from tamis.plot.reading import MEASURES, ErrorCurve, MetricFormat
from tamis.plot.style import harmless
from tamis.report.facts import Care
from tamis.report.saving import Page
from tamis.report.standing_words import FEW, Failed, TableVerdict, failed_words, verdict_of


class MeasuredTable(NamedTuple):
    """A table that methods were measured on, and what is to be known of it.

    Parameters
    ----------
    data : str
        Its name, as in the standings.
    target : str
        Name of the target.
    n_rows, n_columns : int, optional
        Its size.
    failed : sequence of Failed
        Methods that failed there, how often, and what they said.
    alerts : sequence of str or Alert
        What else to know of the table.
    """

    data: str
    target: str = ""
    n_rows: int | None = None
    n_columns: int | None = None
    failed: Sequence[Failed] = ()
    alerts: Sequence[object] = ()


class TableOutcome(NamedTuple):
    """What came out on one table: the methods with the best first, and their curves."""

    table: MeasuredTable
    rows: Sequence[Standing]
    curves: Sequence[ErrorCurve]
    verdict: TableVerdict | None


@dataclass(frozen=True, repr=False)
class ComparisonReport(Page):
    """All that a page says of a comparison of methods, as plain data.

    :func:`tamis.report.compared` gathers it; ``save`` writes the page.

    Attributes
    ----------
    standing : Standings
        Where the methods stand on every table, with tests and ranks.
    measure : MetricFormat
        In which scores are shown.
    outcomes : list of TableOutcome
        Table by table.
    made : date
    cares : list of Care
        What to know before a method is taken.
    details : list of (str, str)
        How it was computed.
    command : str or None
        What to write on a command line to get the same.
    """

    drawn_by: ClassVar[str] = "tamis.report.compared_writing"

    standing: Standings
    measure: MetricFormat
    outcomes: Sequence[TableOutcome]
    made: date
    cares: Sequence[Care] = field(default_factory=list)
    details: Sequence[tuple[str, str]] = field(default_factory=list)
    command: str | None = None

    @property
    def methods(self) -> list[str]:
        """Names of the methods, baselines not counted, as they come first on the tables."""
        found = [o.verdict for o in self.outcomes if o.verdict is not None]
        names = [row.method for v in found for row in (v.best, *v.same, *v.worse)]
        return list(dict.fromkeys(names))

    def __repr__(self) -> str:
        n = len(self.outcomes)
        tables = "1 table" if n == 1 else f"{n} tables"
        return f"<ComparisonReport: {len(self.methods)} methods on {tables}>"


def compared(
    standing: Standings,
    tables: Sequence[MeasuredTable] | None = None,
    *,
    details: Sequence[tuple[str, str]] = (),
    command: str | None = None,
) -> ComparisonReport:
    """Gather all that there is to say of methods that were measured beside each other.

    Parameters
    ----------
    standing : Standings
        Of :func:`tamis.evaluation.standings`. Methods of the names "all columns" and "guessing"
        stand beside the others.
    tables : sequence of MeasuredTable, optional
        What else is known of the tables, in their order.
    details : sequence of (str, str)
        How it was computed: a word, and what it stands for.
    command : str, optional
        What to write on a command line to get the same.

    Returns
    -------
    ComparisonReport
        ``save("comparison.html")`` writes the page.

    Examples
    --------
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from tamis.criteria import FisherScore, KolmogorovSmirnov
    >>> from tamis.datasets import load
    >>> from tamis.evaluation import Realizations, evaluate, standings
    >>> from tamis.report import compared
    >>> from tamis.search import Ranking
    >>> methods = {"F": Ranking(FisherScore()), "KS": Ranking(KolmogorovSmirnov())}
    >>> results = evaluate(
    ...     methods, load("wine"), Realizations(5), estimators=RidgeClassifier(), sizes=[2, 4]
    ... )
    >>> compared(standings(results))
    <ComparisonReport: 2 methods on 1 table>
    """
    if not isinstance(standing, Standings):
        raise InvalidParameter(
            "compared needs the Standings of tamis.evaluation.standings(results), not "
            f"{type(standing).__name__}."
        )
    names = list(dict.fromkeys(row.data for row in standing.rows))
    tables = [MeasuredTable(name) for name in names] if tables is None else tables
    measure = _measure(standing)
    outcomes = [_outcome(table, standing, measure) for table in tables]
    return ComparisonReport(
        standing=standing,
        measure=measure,
        outcomes=outcomes,
        made=date.today(),
        cares=[care for outcome in outcomes for care in _cares(outcome, len(outcomes) > 1)],
        details=list(details),
        command=command,
    )


def _measure(standing: Standings) -> MetricFormat:
    known = MEASURES.get(standing.metric)
    return known or MetricFormat(standing.metric, "", standing.greater_is_better)


def _outcome(table: MeasuredTable, standing: Standings, measure: MetricFormat) -> TableOutcome:
    rows = standing.of(table.data)
    # in the order of all rows, so that a method has one colour on all tables
    names = list(dict.fromkeys(row.method for row in standing.rows))
    curves = [_curve(row, measure) for row in rows if len(row.curve) > 1]
    curves = [curve for curve in curves if np.isfinite(curve.mean).any()]
    curves.sort(key=lambda curve: names.index(curve.method))
    return TableOutcome(table, rows, curves, verdict_of(rows, standing))


def _curve(row: Standing, measure: MetricFormat) -> ErrorCurve:
    """The points of a method as a curve that can be drawn; errors that are infinite cannot."""
    size, mean, error = (np.array(part) for part in zip(*row.curve, strict=True))
    mean = np.where(np.isfinite(mean), mean, np.nan)
    shown = measure.shown(mean)
    spread = shown_error(mean, error, measure)
    nothing = np.empty((0, len(size)))
    nan = float("nan")
    return ErrorCurve(
        row.method, size.astype(np.intp), shown, spread, nothing, int(size.max()), measure, nan, nan
    )


def shown_error(mean: np.ndarray, error: np.ndarray, measure: MetricFormat) -> np.ndarray:
    """Standard errors in the units in which means are shown."""
    if measure.rooted:  # the error of a root, by its slope
        root = np.sqrt(mean)
        return np.divide(error, 2 * root, out=np.zeros(np.shape(root)), where=root > 0)
    return 100 * error if measure.percent else error


def _cares(outcome: TableOutcome, several: bool) -> list[Care]:
    """What to know before a method is taken."""
    table, found = outcome.table, []
    where = f" on {harmless(table.data)}" if several else ""
    if outcome.verdict is not None and not outcome.verdict.found:
        found.append(
            Care(
                f"No method is shown to find anything{where}.",
                "The best of them cannot be told from guessing.",
            )
        )
    few = min((row.n_realizations for row in outcome.rows), default=FEW)
    if few < FEW:
        found.append(
            Care(f"Only {few} resamples{where}.", "Even a clear difference may stay unseen.")
        )
    found += [Care(harmless(failed_words(one)), "") for one in table.failed]
    ahead = f"{harmless(table.data)}: " if several else ""
    return found + [Care(f"{ahead}{harmless(alert)}", "") for alert in table.alerts]
