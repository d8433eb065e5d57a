"""Writing a comparison: CSV, Markdown, LaTeX, JSON, and a page."""

import json
from collections.abc import Sequence
from typing import Any

from tamis.cli.comparison_sheets import Compared, curve_sheet, heading, summary_sheet
from tamis.cli.output import plain
from tamis.cli.sheets import Sheet, Value, csv_text, latex_text, markdown_text
from tamis.contract.record import installed_versions
from tamis.evaluation import Standing, Standings
from tamis.report import MeasuredTable, compared
from tamis.spec import write

#: Columns of the CSV.
LONG = (
    "data",
    "method",
    "rule",
    "columns",
    "mean",
    "standard_error",
    "resamples",
    "p_adjusted",
    "stability",
    "stability_low",
    "stability_high",
    "seconds",
)


def written(
    ending: str, found: Sequence[Compared], standing: Standings, *, safe: bool = True
) -> str:
    """The comparison in the way that an ending stands for."""
    if ending == ".json":
        return json.dumps(plain(_facts(found, standing)), indent=1, allow_nan=False) + "\n"
    if ending == ".csv":
        return csv_text(_long(standing), safe=safe)
    sheets = [sheet for one in found for sheet in _sheets(one, standing)]
    return markdown_text(sheets) if ending == ".md" else latex_text(sheets)


def comparison_page(found: Sequence[Compared], standing: Standings, command: str) -> str:
    """The comparison as a page."""
    tables = [
        MeasuredTable(one.data, one.target, *one.rules.shape, one.failed, one.alerts)
        for one in found
    ]
    first = found[0].rules
    details = [
        ("Estimator", write(first.estimator, strict=False)),
        ("Sizes", ", ".join(map(str, first.sizes))),
        ("Seed", str(first.plan.seed)),
        *((one.data, heading(one, standing)[1]) for one in found),
        ("Versions", ", ".join(f"{name} {v}" for name, v in installed_versions().items())),
    ]
    return compared(standing, tables, details=details, command=command).html()


def _sheets(one: Compared, standing: Standings) -> list[Sheet]:
    rows = standing.of(one.data)
    title = "; ".join(heading(one, standing)[:2])
    summary, curve = summary_sheet(rows, standing, one.failed), curve_sheet(rows, standing)
    tests = [pair for pair in standing.pairs if pair.data == one.data]
    sheets = [
        summary._replace(title=f"{title}; {summary.title}"),
        curve,
        Sheet(
            "corrected t-test of every pair, p-values adjusted by Holm's rule",
            ["first", "second", "difference", "p", "adjusted p"],
            [[p.first, p.second, p.difference, p.p_value, p.p_adjusted] for p in tests],
        ),
    ]
    return [sheet for sheet in sheets if sheet.rows]


def _long(standing: Standings) -> Sheet:
    """One row per method and size, and one at the number of columns that is chosen."""
    made: list[list[Value]] = []
    for row in standing.rows:
        for size, mean, error in row.curve:
            named = (row.data, row.method, "given")
            made.append([*named, size, mean, error, row.n_realizations, *[None] * 5])
        one = row.stability
        made.append(
            [
                row.data,
                row.method,
                "best" if row.curve else "own",
                row.size,
                row.mean,
                row.error,
                row.n_realizations,
                row.p_value,
                *((one.nogueira, one.low, one.high) if one else (None,) * 3),
                row.seconds,
            ]
        )
    return Sheet("", LONG, [[None if v != v else v for v in cells] for cells in made])


def _facts(found: Sequence[Compared], standing: Standings) -> dict[str, Any]:
    ranks = standing.ranks
    return {
        "metric": standing.metric,
        "tables": [_table_facts(one, standing) for one in found],
        "ranks": None
        if ranks is None
        else {
            "ranks": dict(zip(ranks.methods, ranks.ranks.tolist(), strict=True)),
            "p_value": ranks.p_value,
            "critical_difference": ranks.critical_difference,
            "level": ranks.level,
        },
    }


def _table_facts(one: Compared, standing: Standings) -> dict[str, Any]:
    rules = one.rules
    return {
        "data": one.data,
        "rows": rules.shape[0],
        "columns": rules.shape[1],
        "target": one.target,
        "task": rules.task,
        "estimator": write(rules.estimator, strict=False),
        "resamples": len(rules.plan),
        "train": rules.plan.train,
        "seed": rules.plan.seed,
        "sizes": list(rules.sizes),
        "alerts": [str(alert) for alert in one.alerts],
        "methods": [_row_facts(row) for row in standing.of(one.data)],
        "tests": [pair._asdict() for pair in standing.pairs if pair.data == one.data],
        "failed": [failed._asdict() for failed in one.failed],
    }


def _row_facts(row: Standing) -> dict[str, Any]:
    one = row.stability
    return {
        "method": row.method,
        "columns": row.size,
        "enough": row.enough,
        "mean": row.mean,
        "standard_error": row.error,
        "resamples": row.n_realizations,
        "failed": row.n_failed,
        "p_adjusted": row.p_value,
        "stability": one and {"value": one.nogueira, "low": one.low, "high": one.high},
        "seconds": row.seconds,
        "curve": [point._asdict() for point in row.curve],
        "scores": {str(i): score for i, score in row.scores.items()},
    }
