"""Charts for the report of a comparison. Its text is in ``assets/comparison.html.j2``."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from markupsafe import Markup

from tamis._format import format_duration, format_number
from tamis.evaluation import Standing
from tamis.report.charts.curves import draw_curve
from tamis.report.charts.methods import SpannedNumber, draw_comparison, draw_intervals
from tamis.report.charts.style import PAGE
from tamis.report.comparison import (
    ALL,
    BASELINES,
    GUESS,
    ComparisonReport,
    TableOutcome,
    format_stability,
)
from tamis.report.template import BARS, WIDE, draw, draw_with_names

#: Greatest number of tables whose curves are drawn, because each takes 40 kB. The page's tables
#: contain all numbers.
DRAWN = 6
#: Largest number of methods in a single chart.
LINES = 10


def context_of(report: ComparisonReport) -> dict[str, Any]:
    """Return the template variables that are not attributes of the report."""
    ranks, pairs = report.standing.ranks, report.standing.pairs
    words = report.verdict_words(report.outcomes[0].verdict)
    return {
        "lead": " ".join(line for line in words if "--resamples" not in line),
        "best_rank": None if ranks is None else ranks.methods[int(np.argmin(ranks.ranks))],
        "differing": {
            data: [p.p_adjusted < report.standing.level for p in pairs if p.data == data]
            for data in dict.fromkeys(pair.data for pair in pairs)
        },
        "baselines": BASELINES,
        "drawn": DRAWN,
        "draw_scores": partial(_draw_scores, report),
        "curves": [outcome for outcome in report.outcomes[:DRAWN] if outcome.curves],
        "lines": LINES,
        "draw_sizes": _draw_sizes,
        "ranks_chart": None if ranks is None else draw(draw_comparison(ranks, PAGE, BARS)),
        "tested": [p for p in pairs if not {p.first, p.second} & set(BASELINES)],
        "stability": _draw_methods(
            report, _stability, "stability (1 = identical, 0 = chance)", domain=(0.0, 1.0)
        ),
        "times": _draw_methods(report, _time, "seconds of a fit (log scale)", powers=True),
    }


def _draw_scores(report: ComparisonReport, outcome: TableOutcome) -> Markup:
    """Draw the score of each method ± one standard error.

    The baseline is left out, because it is usually far from the others and would compress the
    scale.
    """
    rows = []
    for row in (row for row in outcome.rows if row.method != GUESS):
        value, error = report.measure.estimate(row.mean, row.error)
        reach = error if np.isfinite(error) else 0.0
        span = (value - reach, value + reach)
        hint = report.format(row.mean, row.error)
        rows.append(SpannedNumber(row.method, value, *span, hint=hint, quiet=row.method == ALL))
    title = f"{report.measure.title} on held-out rows"
    return draw_with_names(draw_intervals(rows, title, PAGE, BARS))


def _draw_sizes(outcome: TableOutcome) -> Markup:
    """Draw scores against the number of columns, with room for names at the ends of the lines."""
    return draw(draw_curve(outcome.curves[:LINES], None, PAGE, WIDE - 120, 260), 190)


def _draw_methods(
    report: ComparisonReport,
    read: Callable[[Standing], SpannedNumber | None],
    title: str,
    **scale: Any,
) -> Markup | None:
    """Draw a number for each method with its interval, or with its range over several tables."""
    rows = []
    for method in report.methods:
        found = [read(row) for row in report.standing.rows if row.method == method]
        known = [number for number in found if number is not None]
        if known:
            rows.append(known[0] if len(known) == 1 else _range(known))
    return draw_with_names(draw_intervals(rows, title, PAGE, BARS, **scale)) if rows else None


def _stability(row: Standing) -> SpannedNumber | None:
    one = row.stability
    if one is None:
        return None
    span = max(one.low, -1.0), min(one.high, 1.0)
    return SpannedNumber(row.method, one.nogueira, *span, hint=format_stability(row) or "")


def _time(row: Standing) -> SpannedNumber | None:
    if not row.seconds > 0:
        return None
    return SpannedNumber(row.method, row.seconds, hint=format_duration(row.seconds))


def _range(numbers: Sequence[SpannedNumber]) -> SpannedNumber:
    """Summarise the numbers of a method by their median and range."""
    values = [number.value for number in numbers]
    middle, low, high = float(np.median(values)), min(values), max(values)
    shown = [format_number(value) for value in (middle, low, high)]
    hint = f"median {shown[0]} of {len(values)} tables, {shown[1]} to {shown[2]}"
    return SpannedNumber(numbers[0].name, middle, low, high, hint=hint)
