"""The page of a comparison of methods."""

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from tamis._format import format_count, format_duration, format_number, format_p_value
from tamis.report.charts.curves import draw_curve
from tamis.report.charts.intervals import SpannedNumber, draw_intervals
from tamis.report.charts.methods import draw_comparison
from tamis.report.charts.style import PAGE
from tamis.report.comparison import (
    ALL,
    BASELINES,
    GUESS,
    ComparisonReport,
    TableOutcome,
    format_stability,
)
from tamis.report.template import (
    BARS,
    WIDE,
    Block,
    Content,
    Section,
    details,
    draw,
    draw_with_names,
    figure,
    name_cell,
    sheet_table,
    table,
)

#: Tables whose curves are drawn: each takes 40 kB; the numbers of the others are in their tables.
DRAWN = 6
#: Methods of one chart: of more, lines and names could not be told apart.
LINES = 10


def content_of(report: ComparisonReport) -> Content:
    """Return what the page of a comparison shows."""
    several = len(report.outcomes) > 1
    kicker = [f"{len(report.outcomes)} tables"]
    lead = report.rank_words()
    if not several:
        outcome = report.outcomes[0]
        kicker = [name_cell(outcome.table.data), *_shape(outcome)]
        words = report.verdict_words(outcome.verdict)
        lead = [line for line in words if "--resamples" not in line]
    return Content(
        _heading(report),
        " ".join(lead),
        kicker,
        _figures(report),
        [
            _methods(report, several),
            _sizes(report, several),
            _ranks(report, several),
            _stability(report, several),
            _times(report, several),
        ],
    )


def _shape(outcome: TableOutcome) -> list[Markup]:
    data, shape = outcome.table, []
    if data.n_rows:
        shape.append(Markup(f"{data.n_rows} rows × {data.n_columns} columns"))
    return [*shape, Markup("target ") + name_cell(data.target)] if data.target else shape


def _heading(report: ComparisonReport) -> str:
    """Return who is best, in one line."""
    n, ranks = len(report.methods), report.standing.ranks
    if ranks is not None:
        best = ranks.methods[int(np.argmin(ranks.ranks))]
        return f"{best} ranks best of {n} methods on {ranks.n_rows} tables"
    verdicts = [outcome.verdict for outcome in report.outcomes if outcome.verdict is not None]
    if len(report.outcomes) > 1 or not verdicts:
        return f"{format_count(n, 'method')} on {format_count(len(report.outcomes), 'table')}"
    (verdict,) = verdicts
    best = verdict.best.method
    if not verdict.found:
        who = f"None of {n} methods is" if n > 1 else f"{best} is not"
        return f"{who} shown to beat guessing"
    if n == 1:
        return f"{best} compared with all columns and guessing"
    if not verdict.same:
        return f"{best} is the best of {n} methods"
    return f"{best} does best of {n} methods; {len(verdict.same)} cannot be told from it"


def _figures(report: ComparisonReport) -> list[tuple[str, str, str]]:
    """Return the few numbers under the heading; those of one table."""
    if len(report.outcomes) > 1:
        n, ranks = len(report.outcomes), report.standing.ranks
        shown = [("Methods", str(len(report.methods)), ""), ("Tables", str(n), "")]
        if ranks is not None:
            gap = format_number(ranks.critical_difference)
            shown.append(("Critical difference of ranks", gap, "Nemenyi"))
            shown.append(("Friedman’s test", f"p {format_p_value(ranks.p_value)}", ""))
        return shown
    verdict, measure = report.outcomes[0].verdict, report.measure
    if verdict is None:
        return []
    shown = [("Best", verdict.best.method, f"of {len(report.methods)}")]
    names = {ALL: f"With {ALL}", GUESS: "By guessing"}
    for row in (verdict.best, *verdict.beside):
        value, error = measure.estimate(row.mean, row.error)
        name = names.get(row.method, measure.heading)
        shown.append((name, measure.format(value), measure.format_error(error)))
    return shown


def _table_heading(outcome: TableOutcome, several: bool) -> Block | None:
    if not several:
        return None
    small = Markup("<small>{}</small>").format(Markup(", ").join(_shape(outcome)))
    return "h3", name_cell(outcome.table.data) + small


def _methods(report: ComparisonReport, several: bool) -> Section:
    note = (
        "Best first. Each resample is scored with the number of columns that is best on the others."
        " Enough: the smallest number of columns within one standard error of the best. p: of the "
        "difference to the first, adjusted for all pairs."
    )
    blocks: list[Block | None] = [("note", note)]
    for k, outcome in enumerate(report.outcomes):
        blocks.append(_table_heading(outcome, several))
        if several:
            blocks.append(("p", " ".join(report.verdict_words(outcome.verdict))))
        if k < DRAWN:
            caption = (
                f"{report.measure.heading} on held-out rows, with one standard error to both "
                "sides, corrected for the overlap of the resamples. Grey: baseline."
            )
            blocks.append(figure("stability", _scores(outcome, report), caption))
        sheet = report.summary_sheet(outcome)
        rows = []
        for rank, cells in enumerate(sheet.texts(), 1):
            quiet = cells[0] in BASELINES or cells[1] == "failed"
            shown = [cell or "–" for cell in cells[1:]]
            row = ["" if quiet else rank, name_cell(cells[0]), *shown]
            rows.append(("beside" if quiet else "", row))
        heads = [(Markup('<span class="vh">Rank</span>'), "num rank"), ("Method", "name")]
        titles = [
            head if head == "p" else head[0].upper() + head[1:] for head in sheet.headings[1:]
        ]
        heads += [(title, "num") for title in titles]
        label = f"The methods on {outcome.table.data}"
        blocks.append(table(heads, rows, "answer three", label))
    return Section("methods", "Methods", "The methods", blocks)


def _scores(outcome: TableOutcome, report: ComparisonReport) -> Markup:
    """Draw the score of each method with one standard error to both sides.

    Guessing is most often far off, and would press the others together.
    """
    rows = []
    for row in (row for row in outcome.rows if row.method != GUESS):
        value, error = report.measure.estimate(row.mean, row.error)
        reach = error if np.isfinite(error) else 0.0
        span = (value - reach, value + reach)
        hint = report.format(row.mean, row.error)
        rows.append(SpannedNumber(row.method, value, *span, hint=hint, baseline=row.method == ALL))
    title = f"{report.measure.title} on held-out rows"
    return draw_with_names(draw_intervals(rows, title, PAGE, BARS))


def _sizes(report: ComparisonReport, several: bool) -> Section | None:
    blocks: list[Block | None] = []
    for outcome in report.outcomes[:DRAWN]:
        if not outcome.curves:
            continue
        chart = draw_curve(outcome.curves[:LINES], None, PAGE, WIDE - 120, 260)
        caption = f"{report.measure.heading} on held-out rows against the number of columns. Band: "
        caption += "one standard error."
        if len(outcome.curves) > LINES:
            caption += " The first ten methods."
        sheet = report.curve_sheet(outcome.rows)
        numbers = sheet_table(sheet, label=f"Numbers at every size on {outcome.table.data}")
        blocks += [
            _table_heading(outcome, several),
            # the names at the ends of the lines need their room
            figure("curve", draw(chart, 190), caption),
            details("The numbers", numbers, ("note", "Star: the best number of columns.")),
        ]
    return Section("size", "Error against size", "Error against size", blocks) if blocks else None


def _ranks(report: ComparisonReport, several: bool) -> Section:
    ranks, level = report.standing.ranks, report.standing.level
    blocks: list[Block | None] = []
    title = "Ranks" if several else "Which differ"
    if ranks is not None:
        caption = (
            "Average ranks over the tables, 1 the best. A bar joins methods that are closer than "
            "the critical difference: these cannot be told apart."
        )
        chart = draw(draw_comparison(ranks, PAGE, BARS))
        blocks.append(figure("stability", chart, caption))
    elif several:
        blocks.append(("p", " ".join(report.rank_words())))
    else:
        tested = [p for p in report.standing.pairs if not {p.first, p.second} & set(BASELINES)]
        n_differ = sum(pair.p_adjusted < level for pair in tested)
        words = "Pairs are tested by a t-test that is corrected for the overlap of the resamples."
        if tested:
            counted = format_count(len(tested), "pair")
            words += f" Of {counted} of methods {n_differ} differ at the level of {level:.0%}."
        blocks.append(("p", f"{words} Ranks need several tables."))
    for outcome in report.outcomes:
        data = outcome.table.data
        sheet = report.pair_sheet(data, points=report.measure.percent)
        if sheet.rows:
            pairs = [pair for pair in report.standing.pairs if pair.data == data]
            differ = ["on" * (pair.p_adjusted < level) for pair in pairs]
            tests = sheet_table(sheet, differ, "plain pairs", f"Tests on {data}")
            note = "Marked at the left: pairs that differ, after Holm’s correction."
            of = f" on {data}" if several else ""
            shown = details(f"All pairs{of}", tests, ("note", note), open=len(sheet.rows) <= 10)
            blocks.append(shown)
    return Section("ranks", title, title, blocks)


def _stability(report: ComparisonReport, several: bool) -> Section | None:
    """Return the stability of each method, with its interval or the range over the tables."""
    rows = []
    for method in report.methods:
        known = [r for r in report.standing.rows if r.method == method and r.stability is not None]
        each = [row.stability for row in known if row.stability is not None]
        if len(each) == 1:
            span = max(each[0].low, -1.0), min(each[0].high, 1.0)
            hint = format_stability(known[0]) or ""
            rows.append(SpannedNumber(method, each[0].nogueira, *span, hint=hint))
        elif each:
            rows.append(_range(method, [one.nogueira for one in each]))
    if not rows:
        return None
    title = "stability (1 = identical, 0 = chance)"
    chart = draw_with_names(draw_intervals(rows, title, PAGE, BARS, domain=(0.0, 1.0)))
    words = (
        "Stability of the selected columns across the resamples, at the best number of each method."
        " A method that selects other columns from other rows of the same table gives examples, "
        "not findings."
    )
    interval = "the range over the tables" if several else "its 95\u00a0% interval"
    caption = f"Nogueira’s measure with {interval}; above 0.75 is high, below 0.4 low."
    drawn = figure("stability", chart, caption)
    return Section("stability", "Stability", "Stability", [("p", words), drawn])


def _times(report: ComparisonReport, several: bool) -> Section | None:
    """Return the median time of a fit: of one table, or of several with their range."""
    rows = []
    for method in report.methods:
        seconds = [r.seconds for r in report.standing.rows if r.method == method and r.seconds > 0]
        if len(seconds) == 1:
            rows.append(SpannedNumber(method, seconds[0], hint=format_duration(seconds[0])))
        elif seconds:
            rows.append(_range(method, seconds))
    if not rows:
        return None
    chart = draw_intervals(rows, "seconds of a fit (log scale)", PAGE, BARS, powers=True)
    caption = "Median time of a selection on the training rows of one resample"
    caption += ", with the range over the tables." if several else "."
    drawn = figure("stability", draw_with_names(chart), caption)
    return Section("time", "Time", "Time", [drawn])


def _range(method: str, values: Sequence[float]) -> SpannedNumber:
    """Return several numbers as their median and their range."""
    middle, low, high = float(np.median(values)), min(values), max(values)
    shown = [format_number(value) for value in (middle, low, high)]
    hint = f"median {shown[0]} of {len(values)} tables, {shown[1]} to {shown[2]}"
    return SpannedNumber(method, middle, low, high, hint=hint)
