"""The page of a comparison: the facts put into the template, with pictures drawn beforehand."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from tamis._format import format_count
from tamis.evaluation import Standing
from tamis.evaluation.standings import PairTest
from tamis.plot.curves import draw_curve
from tamis.plot.intervals import SpannedNumber, draw_intervals
from tamis.plot.methods import draw_comparison
from tamis.plot.style import PAGE, figure, harmless
from tamis.report.compared import ComparisonReport, TableOutcome, shown_error
from tamis.report.facts import Estimate
from tamis.report.rendering import WIDE, beside_names, both, rendered
from tamis.report.standing_words import (
    ALL,
    BASELINES,
    GUESS,
    rank_words,
    spoken_p,
    spoken_seconds,
    spoken_size,
    spoken_stability,
    verdict_words,
)
from tamis.report.wording import spread

#: Pixels of a picture with names at its left.
BARS = 420
#: Tables whose curves are drawn: each takes 40 kB; the numbers of the others are in their tables.
DRAWN = 6
#: Methods of one picture: of more, lines and names could not be told apart.
LINES = 10


def page_of(report: ComparisonReport) -> str:
    """The page as text."""
    several = len(report.outcomes) > 1
    pictures = _pictures(report)
    pairs = [_pair(pair, report) for pair in report.standing.pairs]
    return rendered(
        "comparison.html.j2",
        report.made,
        report=report,
        heading=_heading(report),
        lead=_lead(report),
        figures=_figures(report),
        cares=report.cares,
        command=report.command,
        details=report.details,
        several=several,
        measure=report.measure,
        tables=[_table(outcome, report) for outcome in report.outcomes],
        pictures=pictures,
        pairs=pairs,
        between=[pair["differs"] for pair in pairs if not pair["beside"]],
        level=f"{report.standing.level:.0%}".replace("%", "\u00a0%"),
        sections=_sections(pictures, several),
    )


def _sections(pictures: dict[str, Any], several: bool) -> list[tuple[str, str]]:
    there = [
        ("methods", "Methods", True),
        ("size", "Error against size", bool(pictures["curves"])),
        ("ranks", "Ranks" if several else "Which differ", True),
        ("stability", "Stability", "stability" in pictures),
        ("time", "Time", "time" in pictures),
        ("method", "How it was computed", True),
    ]
    return [(anchor, name) for anchor, name, here in there if here]


def _heading(report: ComparisonReport) -> str:
    """Who is best, in one line."""
    n = len(report.methods)
    ranks = report.standing.ranks
    if ranks is not None:
        best = ranks.methods[int(np.argmin(ranks.ranks))]
        return f"{harmless(best)} ranks best of {n} methods on {ranks.n_rows} tables"
    verdicts = [outcome.verdict for outcome in report.outcomes if outcome.verdict is not None]
    if len(report.outcomes) > 1 or not verdicts:
        return f"{format_count(n, 'method')} on {format_count(len(report.outcomes), 'table')}"
    (verdict,) = verdicts
    if not verdict.found:
        who = f"None of {n} methods is" if n > 1 else f"{harmless(verdict.best.method)} is not"
        return f"{who} shown to beat guessing"
    best = harmless(verdict.best.method)
    if n == 1:
        return f"{best} beside all columns and guessing"
    if not verdict.same:
        return f"{best} is the best of {n} methods"
    return f"{best} does best of {n} methods; {len(verdict.same)} cannot be told from it"


def _lead(report: ComparisonReport) -> str:
    if len(report.outcomes) > 1:
        return harmless(" ".join(rank_words(report.standing)))
    verdict = report.outcomes[0].verdict
    said = [line for line in verdict_words(verdict, report.standing) if "--resamples" not in line]
    return harmless(" ".join(said))


def _figures(report: ComparisonReport) -> list[tuple[str, str, str]]:
    """The few numbers under the heading; those of one table."""
    if len(report.outcomes) > 1:
        ranks = report.standing.ranks
        shown = [
            ("Methods", str(len(report.methods)), ""),
            ("Tables", str(len(report.outcomes)), ""),
        ]
        if ranks is not None:
            gap = figure(ranks.critical_difference)
            shown.append(("Critical difference of ranks", gap, "Nemenyi"))
            shown.append(("Friedman’s test", f"p {spoken_p(ranks.p_value)}", ""))
        return shown
    (outcome,) = report.outcomes
    if outcome.verdict is None:
        return []
    best, measure = outcome.verdict.best, report.measure
    word = measure.words[0].upper() + measure.words[1:]
    shown = [("Best", harmless(best.method), f"of {len(report.methods)}")]
    for row in (best, *outcome.verdict.beside):
        name = word if row is best else f"With {ALL}" if row.method == ALL else "By guessing"
        one = _estimate(row, report)
        shown.append((name, measure.written(one.value), spread(one, measure)))
    return shown


def _estimate(row: Standing, report: ComparisonReport) -> Estimate:
    """The score of a method in the units in which it is shown."""
    mean, error = np.array([row.mean]), np.array([row.error])
    value = float(report.measure.shown(mean)[0])
    return Estimate(value, float(shown_error(mean, error, report.measure)[0]))


def _written(row: Standing, report: ComparisonReport) -> str:
    one = _estimate(row, report)
    return " ".join(filter(None, (report.measure.written(one.value), spread(one, report.measure))))


def _table(outcome: TableOutcome, report: ComparisonReport) -> dict[str, Any]:
    """One row per method, the best first; methods without any score last."""
    rows = [
        {
            "name": harmless(row.method),
            "beside": row.method in BASELINES,
            "columns": "0" if row.method == GUESS else spoken_size(row.size),
            "enough": spoken_size(row.enough) if row.curve else "–",
            "score": _written(row, report),
            "p": "–" if row.p_value != row.p_value else spoken_p(row.p_value),
            "stability": spoken_stability(row) or "–",
            "seconds": spoken_seconds(row.seconds),
        }
        for row in outcome.rows
    ]
    known = {row.method for row in outcome.rows}
    lost = [harmless(one.method) for one in outcome.table.failed if one.method not in known]
    table = outcome.table
    return {
        "name": harmless(table.data),
        "target": harmless(table.target) if table.target else "",
        "shape": (table.n_rows, table.n_columns),
        "rows": rows,
        "failed": lost,
        "words": [harmless(line) for line in verdict_words(outcome.verdict, report.standing)],
        "numbers": _numbers(outcome, report),
    }


def _numbers(outcome: TableOutcome, report: ComparisonReport) -> dict[str, Any]:
    """Scores at every number of columns; the best of each method is marked."""
    shown = [row for row in outcome.rows if row.curve]
    sizes = sorted({point.size for row in shown for point in row.curve})
    lines = []
    for size in sizes:
        cells = []
        for row in shown:
            found = next((point for point in row.curve if point.size == size), None)
            value = None if found is None else float(report.measure.shown(np.array(found.mean)))
            text = "–" if value is None else report.measure.written(value)
            cells.append((text, size == row.size))
        lines.append((size, cells))
    return {"methods": [harmless(row.method) for row in shown], "lines": lines}


def _pair(pair: PairTest, report: ComparisonReport) -> dict[str, Any]:
    """A test of two methods."""
    measure = report.measure
    difference = 100 * pair.difference if measure.percent else pair.difference
    return {
        "data": harmless(pair.data),
        "first": harmless(pair.first),
        "second": harmless(pair.second),
        "difference": figure(float(difference)),
        "p": spoken_p(pair.p_value),
        "adjusted": spoken_p(pair.p_adjusted),
        "beside": bool({pair.first, pair.second} & set(BASELINES)),
        "differs": pair.p_adjusted < report.standing.level,
    }


# -- pictures -------------------------------------------------------------------------------------


def _pictures(report: ComparisonReport) -> dict[str, Any]:
    """All pictures as SVG."""
    made: dict[str, Any] = {
        "scores": [_scores(outcome, report) for outcome in report.outcomes[:DRAWN]],
        "curves": [_curves(outcome) for outcome in report.outcomes[:DRAWN]],
    }
    made["curves"] = made["curves"] if any(made["curves"]) else []
    ranks = report.standing.ranks
    if ranks is not None:
        made["ranks"] = both(draw_comparison(ranks, PAGE, BARS))
    if steady := _steadiness(report):
        title = "stability (0 chance, 1 always the same)"
        chart = draw_intervals(steady, title, PAGE, BARS, domain=(0.0, 1.0))
        made["stability"] = beside_names(chart)
    if times := _times(report):
        chart = draw_intervals(times, "seconds of a fit (log scale)", PAGE, BARS, powers=True)
        made["time"] = beside_names(chart)
    return made


def _scores(outcome: TableOutcome, report: ComparisonReport) -> Markup:
    """The score of each method with one standard error to both sides.

    Guessing is far off most often, and would press the others together.
    """
    rows = []
    for row in (row for row in outcome.rows if row.method != GUESS):
        value, error = _estimate(row, report)
        reach = error if np.isfinite(error) else 0.0
        said = _written(row, report)
        beside = row.method in BASELINES
        rows.append(
            SpannedNumber(row.method, value, value - reach, value + reach, None, said, beside)
        )
    measure = report.measure
    title = f"{measure.words} on unseen rows" + (f", {measure.unit}" if measure.unit else "")
    return beside_names(draw_intervals(rows, title, PAGE, BARS))


def _curves(outcome: TableOutcome) -> Markup | None:
    if not outcome.curves:
        return None
    chart = draw_curve(outcome.curves[:LINES], None, PAGE, WIDE - 120, 260)
    return both(chart, 190)  # the names at the ends of the lines need their room


def _steadiness(report: ComparisonReport) -> list[SpannedNumber]:
    """The stability of each method: of one table with its interval, of several their range."""
    found = []
    for method, rows in _by_method(report):
        known = [row for row in rows if row.stability is not None]
        each = [row.stability for row in known if row.stability is not None]
        if len(each) == 1:
            low, high = max(each[0].low, -1.0), min(each[0].high, 1.0)
            said = spoken_stability(known[0]) or ""
            found.append(SpannedNumber(method, each[0].nogueira, low, high, None, said))
        elif each:
            found.append(_ranging(method, [one.nogueira for one in each]))
    return found


def _times(report: ComparisonReport) -> list[SpannedNumber]:
    """The median time of a fit: of one table, or of several with their range."""
    found = []
    for method, rows in _by_method(report):
        seconds = [row.seconds for row in rows if row.seconds > 0]
        if len(seconds) == 1:
            found.append(SpannedNumber(method, seconds[0], said=spoken_seconds(seconds[0])))
        elif seconds:
            found.append(_ranging(method, seconds))
    return found


def _by_method(report: ComparisonReport) -> list[tuple[str, list[Standing]]]:
    rows = report.standing.rows
    return [(name, [row for row in rows if row.method == name]) for name in report.methods]


def _ranging(method: str, values: Sequence[float]) -> SpannedNumber:
    """Several numbers as their median and their range."""
    middle = float(np.median(values))
    said = f"median {figure(middle)} of {len(values)} tables, {figure(min(values))} to "
    return SpannedNumber(method, middle, min(values), max(values), None, said + figure(max(values)))
