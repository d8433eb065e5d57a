"""Facts about a comparison: the best method, and the methods that do not differ from it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tamis._format import format_count, format_duration, format_interval, format_p_value
from tamis.evaluation import Standing, Standings
from tamis.exceptions import InvalidParameter
from tamis.report.error_curve import ErrorCurve, MetricFormat, curve_of_points, metric_format
from tamis.report.page import Caveat, Page
from tamis.report.sheets import Sheet, Value

#: Greatest number of characters shown of an error message.
LONGEST = 240
#: With fewer resamples, even a clear difference may not be significant.
FEW = 10
#: Names of the baselines of every comparison: a model with all columns, and one with no columns.
ALL, GUESS = "all columns", "baseline"
BASELINES = (ALL, GUESS)


class Failed(NamedTuple):
    """A method that failed in ``times`` resamples, or could not be used (``times`` is 0)."""

    method: str
    times: int
    sentence: str

    def __str__(self) -> str:
        where = f" in {format_count(self.times, 'resample')}" if self.times else ""
        begin = ""
        for sentence in re.split(r"(?<=[.?]) (?=[A-Z])", self.sentence):
            if begin and len(begin) + len(sentence) > LONGEST:
                break
            begin = f"{begin} {sentence}".strip()
        return f"{self.method} failed{where}: {begin}"


class MeasuredTable(NamedTuple):
    """A table on which methods were measured.

    Parameters
    ----------
    data : str
        Name of the table, as in the standings.
    target : str
        Name of the target.
    n_rows, n_columns : int, optional
        Size of the table.
    failed : sequence of Failed
        Methods that failed on the table, with counts and error messages.
    alerts : sequence of str or Alert
        Other findings about the table.

    Examples
    --------
    >>> import tamis
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from tamis.datasets import load
    >>> from tamis.evaluation import Realizations, evaluate, standings
    >>> from tamis.report import MeasuredTable, compared
    >>> methods = {name: tamis.recipe(name) for name in ("fisher-score", "correlation")}
    >>> plan, model = Realizations(3), RidgeClassifier()
    >>> results = evaluate(methods, load("wine"), plan, estimators=model, sizes=[2])
    >>> table = MeasuredTable("wine", target="cultivar", n_rows=178, n_columns=13)
    >>> "178 rows" in compared(standings(results), [table]).html()
    True
    """

    data: str
    target: str = ""
    n_rows: int | None = None
    n_columns: int | None = None
    failed: Sequence[Failed] = ()
    alerts: Sequence[object] = ()


class TableVerdict(NamedTuple):
    """The best method on a table, the methods that do not differ from it, and the worse methods.

    ``found`` is False if the best method is not significantly better than the baseline.
    """

    best: Standing
    same: list[Standing]
    worse: list[Standing]
    baselines: list[Standing]
    found: bool


class TableOutcome(NamedTuple):
    """Results on a table: the methods, best first, and their error curves."""

    table: MeasuredTable
    rows: Sequence[Standing]
    curves: Sequence[ErrorCurve]
    verdict: TableVerdict | None


@dataclass(frozen=True, repr=False)
class ComparisonReport(Page):
    """Facts about a comparison of methods, as shown in a report.

    :func:`tamis.report.compared` creates it, and ``save`` writes the page.

    Attributes
    ----------
    standing : Standings
        Scores of the methods on every table, with significance tests and ranks.
    measure : MetricFormat
        How scores are formatted.
    outcomes : list of TableOutcome
        Results for each table.
    made : date
    cares : list of Caveat
        Limitations that a reader must know before using a method.
    details : list of (str, str)
        Pairs of a term and its value that describe how the results were computed.
    command : str or None
        The command line that computes the same results.

    Examples
    --------
    >>> import tamis
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from tamis.datasets import load
    >>> from tamis.evaluation import Realizations, evaluate, standings
    >>> from tamis.report import compared
    >>> methods = {name: tamis.recipe(name) for name in ("fisher-score", "correlation")}
    >>> plan, model = Realizations(3), RidgeClassifier()
    >>> results = evaluate(methods, load("wine"), plan, estimators=model, sizes=[2])
    >>> compared(standings(results)).methods
    ['fisher-score', 'correlation']
    """

    template = "comparison.html.j2"

    standing: Standings
    measure: MetricFormat
    outcomes: Sequence[TableOutcome]

    @property
    def methods(self) -> list[str]:
        """Names of the methods without baselines, in order of first appearance."""
        found = [o.verdict for o in self.outcomes if o.verdict is not None]
        names = [row.method for v in found for row in (v.best, *v.same, *v.worse)]
        return list(dict.fromkeys(names))

    def __repr__(self) -> str:
        tables = format_count(len(self.outcomes), "table")
        return f"<ComparisonReport: {len(self.methods)} methods on {tables}>"

    def _context(self) -> dict[str, Any]:
        from tamis.report.comparison_page import context_of

        return context_of(self)

    # -- sentences --------------------------------------------------------------------------------

    def format(self, mean: float, error: float) -> str:
        """Format a score with ± its standard error."""
        scale, decimals = (100, 1) if self.measure.percent else (1, None)
        return format_interval(scale * mean, scale * error, decimals=decimals)

    def verdict_words(self, verdict: TableVerdict | None) -> list[str]:
        """Return sentences about the best method on a table, and how the others compare with it."""
        if verdict is None:
            return []
        best, unit = verdict.best, " %" * self.measure.percent
        few = ""
        if best.curve and best.enough < best.size:
            few = f"; {best.enough:.0f} {'are' if best.enough != 1 else 'is'} hardly worse"
        size = f"{format_size(best.size)} column{'s' * (best.size != 1)}"
        words = [
            f"{best.method} is best: {self.format(best.mean, best.error)}{unit} with {size}{few}."
        ]
        for name, rows in (("Not distinguishable from it", verdict.same), ("Worse", verdict.worse)):
            tests = [f"{row.method} (p {format_p_value(row.p_value)})" for row in rows]
            words += [f"{name}: {', '.join(tests)}."] if rows else []
        for row in verdict.baselines:
            differs = "not distinguishable"
            if row.p_value < self.standing.level:
                differs = "worse" if _is_worse(row, best, self.standing) else "better"
            score = f"{self.format(row.mean, row.error)}{unit}"
            name = row.method[0].upper() + row.method[1:]
            words.append(f"{name}: {score}, {differs} (p {format_p_value(row.p_value)}).")
        if not verdict.found:
            more = "; more --resamples may show it" if best.n_realizations < FEW else ""
            words.append(f"So no method is shown to beat the baseline on this table{more}.")
        return words

    def rank_words(self) -> list[str]:
        """Return sentences about the mean ranks over the tables and their differences."""
        ranks = self.standing.ranks
        if ranks is None:
            return ["Ranks need two methods or more with scores on every table."]
        order = sorted(zip(ranks.ranks.tolist(), ranks.methods, strict=True))
        means = ", ".join(f"{name} {rank:.2f}" for rank, name in order)
        words = [
            f"Mean ranks over {ranks.n_rows} tables: {means}.",
            f"Friedman's test: p {format_p_value(ranks.p_value)}; ranks differ if they are more "
            f"than {ranks.critical_difference:.2f} apart (Nemenyi, {ranks.level:.0%}).",
        ]
        best = order[0][1]
        same = next((group for group in ranks.groups if best in group), ())
        others = ", ".join(name for name in same if name != best)
        return words + ([f"Not distinguishable from {best}: {others}."] if same else [])

    # -- tables -----------------------------------------------------------------------------------

    def summary_sheet(self, outcome: TableOutcome) -> Sheet:
        """Return a table with one row per method, best first. Methods without a score come last."""
        label, rows = self.measure.short or self.measure.title, outcome.rows
        made: list[list[Value]] = [
            [
                row.method,
                "0" if row.method == GUESS else format_size(row.size),
                format_size(row.enough) if row.curve else None,
                self.format(row.mean, row.error),
                None if row.p_value != row.p_value else format_p_value(row.p_value),
                format_stability(row),
                format_duration(row.seconds),
            ]
            for row in rows
        ]
        known = {row.method for row in rows}
        failed = [one.method for one in outcome.table.failed if one.method not in known]
        return Sheet(
            f"{label} of each method with its best number of columns",
            ["method", "columns", "enough", label, "p", "stability", "per fit"],
            [*made, *([name, "failed", *[None] * 5] for name in failed)],
        )

    def curve_sheet(self, rows: Sequence[Standing]) -> Sheet:
        """Return the scores by number of columns. The best score of each method has a star."""
        shown = [row for row in rows if row.curve]
        cells = {
            (point.size, row.method): self.format(point.mean, point.error)
            + " *" * (point.size == row.size)
            for row in shown
            for point in row.curve
        }
        sizes = sorted({size for size, _ in cells})
        label = self.measure.short or self.measure.title
        return Sheet(
            f"{label} by number of columns ± one standard error; * the best",
            ["columns", *(row.method for row in shown)],
            [[size, *(cells.get((size, row.method)) for row in shown)] for size in sizes],
        )

    def pair_sheet(self, data: str, *, points: bool = False) -> Sheet:
        """Return the tests of all pairs on a table. With ``points``, in percentage points."""
        pairs = [pair for pair in self.standing.pairs if pair.data == data]
        scale = 100 if points else 1
        return Sheet(
            "corrected t-test of every pair, p-values adjusted by Holm's rule",
            ["first", "second", f"difference{', points' * points}", "p", "adjusted p"],
            [[p.first, p.second, scale * p.difference, p.p_value, p.p_adjusted] for p in pairs],
        )


def format_size(size: float) -> str:
    """Format a number of columns, or a mean number of columns."""
    return f"{round(size, 1):g}"


def format_stability(row: Standing) -> str | None:
    """Format Nogueira's stability with its interval. Return None if there is none."""
    if row.stability is None:
        return None
    one = row.stability
    # adding 0.0 turns -0.0 into 0.0
    index, low, high = (v + 0.0 for v in (one.nogueira, max(one.low, -1.0), min(one.high, 1.0)))
    return f"{index:.2f} ({low:.2f} to {high:.2f})"


def compared(
    standing: Standings,
    tables: Sequence[MeasuredTable] | None = None,
    *,
    details: Sequence[tuple[str, str]] = (),
    command: str | None = None,
) -> ComparisonReport:
    """Collect the facts about a comparison of methods for a report.

    Parameters
    ----------
    standing : Standings
        Result of :func:`tamis.evaluation.standings`. Methods named "all columns" and "baseline"
        are treated as baselines.
    tables : sequence of MeasuredTable, optional
        Size, target and alerts of each table, in the order of the standings.
    details : sequence of (str, str)
        Pairs of a term and its value that describe how the results were computed.
    command : str, optional
        The command line that computes the same results.

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
    measure = metric_format(standing.metric, standing.greater_is_better)
    if measure.rooted:  # the metric is the mean squared error, so no root is taken
        measure = MetricFormat("mean squared error")
    outcomes = [_outcome(table, standing, measure) for table in tables]
    return ComparisonReport(
        standing=standing,
        measure=measure,
        outcomes=outcomes,
        cares=[care for outcome in outcomes for care in _caveats(outcome, len(outcomes) > 1)],
        details=list(details),
        command=command,
    )


def _outcome(table: MeasuredTable, standing: Standings, measure: MetricFormat) -> TableOutcome:
    rows = standing.of(table.data)
    # in the order of all rows, so that a method has the same colour on every table
    names = list(dict.fromkeys(row.method for row in standing.rows))
    curves = [curve_of_points(r.method, r.curve, measure) for r in rows if len(r.curve) > 1]
    curves = [curve for curve in curves if np.isfinite(curve.mean).any()]
    curves.sort(key=lambda curve: names.index(curve.method))
    return TableOutcome(table, rows, curves, _verdict(rows, standing))


def _verdict(rows: Sequence[Standing], standing: Standings) -> TableVerdict | None:
    """Return the results of the tests on a table, or None if no method has a score."""
    methods = [row for row in rows if row.method not in BASELINES]
    if not methods:
        return None
    best, *others = methods
    baselines = [row for row in rows if row.method in BASELINES]
    guess = [row for row in baselines if row.method == GUESS]
    worse = [row for row in others if row.p_value < standing.level]
    found = all(r.p_value < standing.level and _is_worse(r, best, standing) for r in guess)
    same = [row for row in others if row not in worse]
    return TableVerdict(best, same, worse, baselines, found)


def _is_worse(row: Standing, best: Standing, standing: Standings) -> bool:
    return (row.mean < best.mean) == standing.greater_is_better


def _caveats(outcome: TableOutcome, several: bool) -> list[Caveat]:
    """Return caveats about the results on a table."""
    table, found = outcome.table, []
    where = f" on {table.data}" if several else ""
    if outcome.verdict is not None and not outcome.verdict.found:
        fact = f"No method is shown to beat the baseline{where}."
        found.append(Caveat(fact, "The best method is not distinguishable from it."))
    few = min((row.n_realizations for row in outcome.rows), default=FEW)
    if few < FEW:
        fact = f"Only {few} resamples{where}."
        found.append(Caveat(fact, "Even a clear difference may go undetected."))
    ahead = f"{table.data}: " if several else ""
    alerts = [Caveat(f"{ahead}{alert}") for alert in table.alerts]
    return [*found, *(Caveat(str(one)) for one in table.failed), *alerts]
