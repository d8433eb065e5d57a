"""A comparison as sheets: one row per method, and the scores at every number of columns."""

from collections.abc import Sequence
from typing import NamedTuple

from tamis._format import format_count
from tamis.cli.contest import Rules
from tamis.cli.sheets import Sheet, Value
from tamis.evaluation import Standing, Standings
from tamis.report.standing_words import (
    GUESS,
    Failed,
    spoken_metric,
    spoken_p,
    spoken_seconds,
    spoken_size,
    spoken_stability,
    with_error,
)
from tamis.spec import write
from tamis.table import Alert


class Compared(NamedTuple):
    """What was compared on one table."""

    data: str
    target: str
    rules: Rules
    failed: tuple[Failed, ...]
    alerts: Sequence[Alert]


def heading(one: Compared, standing: Standings) -> list[str]:
    rules, n_rows = one.rules, one.rules.shape[0]
    n_train = round(rules.plan.train * n_rows)
    n = len(rules.plan)
    return [
        f"{one.data}: {rules.spoken}",
        f"{format_count(n, 'resample')}: chosen and trained on {n_train} rows, measured on "
        f"the other {n_rows - n_train}",
        f"{spoken_metric(standing)} of {write(rules.estimator, strict=False)}",
    ]


def with_curves(rows: Sequence[Standing]) -> list[Standing]:
    """Methods with a curve."""
    return [row for row in rows if row.curve]


def curve_sheet(rows: Sequence[Standing], standing: Standings) -> Sheet:
    """Sizes by methods; the best of each method has a star."""
    shown = with_curves(rows)
    sizes = sorted({point.size for row in shown for point in row.curve})
    cells = {
        (point.size, row.method): with_error(point.mean, point.error, standing)
        + (" *" if point.size == row.size else "")
        for row in shown
        for point in row.curve
    }
    return Sheet(
        f"{spoken_metric(standing)} by number of columns ± one standard error; * the best",
        ["columns", *(row.method for row in shown)],
        [[size, *(cells.get((size, row.method)) for row in shown)] for size in sizes],
    )


def summary_sheet(rows: Sequence[Standing], standing: Standings, failed: Sequence[Failed]) -> Sheet:
    """One row per method, the best first; methods without any score last."""
    best = rows[0].method if rows else None
    made: list[list[Value]] = [
        [
            row.method,
            "0" if row.method == GUESS else spoken_size(row.size),
            spoken_size(row.enough) if row.curve else None,
            with_error(row.mean, row.error, standing),
            None if row.method == best else spoken_p(row.p_value),
            spoken_stability(row),
            spoken_seconds(row.seconds),
        ]
        for row in rows
    ]
    made += [
        [one.method, "failed", *[None] * 5]
        for one in failed
        if one.method not in {row.method for row in rows}
    ]
    return Sheet(
        f"{spoken_metric(standing)} of each method at its best number of columns",
        [
            "method",
            "columns",
            "enough",
            spoken_metric(standing),
            "p",
            "stability",
            "per fit",
        ],
        made,
    )
