"""Pages of the benchmark, written from the result files."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from tamis._files import replace_text
from tamis._format import format_count
from tamis.report.charts.methods import draw_comparison
from tamis.report.charts.style import LIGHT, PADDING, Layer, axis, field, layered
from tamis.report.svg import to_svg
from tamis_book.benchmark.judges import JUDGES, SVM_ROWS
from tamis_book.benchmark.methods import METHODS
from tamis_book.benchmark.ranking import (
    KINDS,
    LEAST_TABLES,
    Habits,
    KindRanking,
    failures,
    habits,
    own_sizes,
    rank_kind,
    split_losses,
)
from tamis_book.benchmark.result_files import RESULTS, TableResults, stored_results
from tamis_book.benchmark.runner import N_SPLITS
from tamis_book.benchmark.tables import omitted, table_names

#: Greatest number of methods in a diagram of critical differences.
DRAWN = 24
#: Number of tables below which a ranking comes with a warning.
ENOUGH = 10
TITLES = {
    "classes": "All tables with classes",
    "few rows": "Few rows: at most 500",
    "many rows": "Many rows: at least 2000",
    "wide": "Wide: more columns than rows",
    "categories": "At least half of the columns are categories",
    "rare classes": "A class with less than 5 % of the rows",
    "numeric target": "Numeric target",
}
WORDS = {"error": "error rate", "ber": "balanced error rate", "r2": "1 - R²"}


def write_pages(folder: Path, results: Path = RESULTS) -> None:
    """Write a page of the results and a page of the tables, in reStructuredText.

    The file ``best.inc`` is a summary of the rankings, which other pages include.

    Parameters
    ----------
    folder : Path
        Folder of the pages.
    results : Path
        Folder of the result files. The default is the results in ``tamis_book``.
    """
    stored, pictures = list(stored_results(results)), folder / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    found = _results(stored, pictures)
    _replace(folder / "results.rst", _render("results", stored=stored, **found))
    _replace(folder / "tables.rst", _render("tables", rows=_table_rows(stored), omitted=omitted()))
    best = _best_methods(found.get("rankings", {}))
    _replace(folder / "best.inc", _render("best", **best))


def _replace(path: Path, text: str) -> None:
    """Write a page if it has changed, so that unchanged pages are not built again."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        replace_text(path, text)


def _render(name: str, **context: Any) -> str:
    """Return a page as text, from its template in the folder ``assets``."""
    environment = Environment(
        loader=PackageLoader("tamis_book", "assets"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    environment.filters["plain"] = _plain
    environment.globals["count"] = format_count
    return environment.get_template(f"benchmark_{name}.rst.j2").render(**context)


def _results(stored: Sequence[TableResults], pictures: Path) -> dict[str, Any]:
    """Return the variables of the page of results, and draw its pictures."""
    if not stored:
        return {}
    rankings = {kind: rank_kind(stored, kind) for kind in KINDS}
    found, n_tables = habits(stored)
    measured = {key.split("/", 2)[2] for one in stored for key in one.cells}
    return {
        "cells": Counter(key.split("/")[0] for one in stored for key in one.cells),
        "minutes": sum(cell.seconds for one in stored for cell in one.cells.values()) / 60,
        "splits": Counter(
            len({key.split("/")[1] for key in one.cells if key.startswith("error")})
            for one in stored
        ),
        "n_splits": N_SPLITS,
        "judges": JUDGES,
        "svm_rows": SVM_ROWS,
        "tables": table_names(),
        "missing": sorted(set(table_names()) - {one.name for one in stored if one.cells}),
        "methods": METHODS,
        "absent": [name for name in METHODS if name not in measured],
        "versions": next((one.versions for one in stored if one.versions), {}),
        "rankings": rankings,
        "titles": TITLES,
        "metrics": WORDS,
        "enough": ENOUGH,
        "ranking_rows": _ranking_rows,
        "pictures": _draw(rankings, found, pictures),
        "n_habit_tables": n_tables,
        "habits": [
            [_plain(o.method), f"{o.validity:.3f}", f"{o.stability:.2f}", f"{o.seconds:.3g} s"]
            for o in sorted(found, key=lambda one: -one.validity)
        ],
        "own_sizes": [
            [_plain(one.method), one.n_tables, f"{100 * one.share:.0f} %", f"{one.loss:.3f}",
             f"{one.loss_of_all:.3f}"]
            for one in own_sizes(stored)
        ],
        "failures": [
            [_plain(method), _plain(reason), ", ".join(map(_plain, tables))]
            for (method, reason), tables in sorted(failures(stored).items())
        ],
    }  # fmt: skip


def _best_methods(rankings: Mapping[str, KindRanking | None]) -> dict[str, Any]:
    """Return the first methods and recipes of each ranking, and the recipes that are never ahead.

    Rankings of fewer than five tables are left out.
    """
    rows, ahead, measured = [], set[str](), set[str]()
    for kind, ranking in rankings.items():
        if ranking is None or len(ranking.tables) < LEAST_TABLES:
            continue
        names = [row.method for row in ranking.rows]
        names = [name for name in names if name in METHODS and METHODS[name].group != "baseline"]
        recipes = [name for name in names if METHODS[name].package == "tamis"]
        measured |= set(recipes)
        ahead |= set(recipes) & set(names[: len(names) // 2])
        shown = ("; ".join(map(_plain, some[:3])) for some in (names, recipes))
        rows.append([TITLES[kind], len(ranking.tables), *shown])
    return {"rows": rows, "never_ahead": [_plain(one) for one in sorted(measured - ahead)]}


def _ranking_rows(ranking: KindRanking) -> list[list[str]]:
    """Return the cells of a ranking. An asterisk marks methods that may be as good as the first."""
    rows = []
    for row in ranking.rows:
        behind = ""
        if row.behind is not None:
            low, high = row.behind.low, row.behind.high
            ends = "" if isnan(low) else f" [{low:.3f}, {high:.3f}]"
            behind = f"{row.behind.estimate:.3f}{ends}"
        name = _plain(row.method) + (" \\*" if row.is_level else "")
        rows.append([name, f"{row.rank:.1f}", f"{row.loss:.3f}", f"{row.best:.3f}", behind])
    return rows


def _draw(
    rankings: Mapping[str, KindRanking | None], found: Sequence[Habits], pictures: Path
) -> dict[str, str]:
    """Draw the ranks of each kind with few methods, and the times. Return the files by kind."""
    files = {}
    for kind, ranking in rankings.items():
        if ranking is not None and len(ranking.rows) <= DRAWN:
            files[kind] = f"ranks-{kind.replace(' ', '-')}.svg"
            chart = draw_comparison(ranking.ranks, LIGHT, 520)
            _replace(pictures / files[kind], to_svg({"padding": PADDING, **chart}))
    if found and (whole := rankings["classes"]) is not None:
        _replace(pictures / "time.svg", to_svg({"padding": PADDING, **draw_times(whole, found)}))
    return files


def draw_times(ranking: KindRanking, rows: Sequence[Habits], width: int = 560) -> dict[str, Any]:
    """Draw the loss of each method against its time, on a logarithmic scale."""
    seconds = {row.method: row.seconds for row in rows}
    dots = [
        {"name": row.method, "loss": row.loss, "seconds": max(seconds[row.method], 1e-4)}
        for row in ranking.rows
        if row.method in seconds
    ]
    marks = axis(LIGHT, lines=True, tickCount=5)
    chart = Layer(dots, "methods").encode(
        x=field("seconds", scale={"type": "log"}, axis={**marks, "title": "seconds"}),
        y=field("loss", scale={"zero": False}, axis={**marks, "title": "relative loss"}),
    )
    point = chart.mark("point", filled=True, size=45, opacity=1, color=LIGHT.accent)
    return layered([point, chart.text("name", LIGHT, align="left", dx=6, fontSize=9)], width, 420)


def _table_rows(stored: Sequence[TableResults]) -> list[list[Any]]:
    """Return the cells of the page of tables."""
    rows = []
    for one in stored:
        facts = one.facts
        found = split_losses([one], "error" if facts["classes"] else "r2")
        methods = {m for losses in found.values() for m in losses}
        whole = [m for m in methods if all(m in losses for losses in found.values())]
        means = {m: sum(losses[m].mean for losses in found.values()) / len(found) for m in whole}
        best = sorted(means, key=lambda m: (means[m], m))[:3]
        rows.append(
            [
                _plain(one.name),
                facts["rows"],
                f"{facts['columns']} ({facts['categories']})",
                facts["classes"] or "numeric",
                str(len(found)),
                *(f"{means[m]:.3f}" if m in means else "" for m in ("random", "all columns")),
                ", ".join(f"{_plain(m)} {means[m]:.3f}" for m in best),
            ]
        )
    return rows


def _plain(text: str) -> str:
    """Return a text with escaped markup."""
    return re.sub(r"([\\*`|_])", r"\\\1", " ".join(str(text).split()))
