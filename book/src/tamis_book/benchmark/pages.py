"""Pages of the benchmark, written from the result files."""

import re
from collections import Counter
from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import Any

from tamis._files import replace_text
from tamis._format import format_count
from tamis.evaluation import Interval
from tamis.report.charts.methods import draw_comparison
from tamis.report.charts.style import LIGHT, Layer, axis, field, layered
from tamis.report.svg import to_svg
from tamis_book.benchmark.judges import JUDGES, SVM_ROWS
from tamis_book.benchmark.methods import METHODS
from tamis_book.benchmark.ranking import (
    KINDS,
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

    Parameters
    ----------
    folder : Path
        Folder of the pages.
    results : Path
        Folder of the result files. The default is the results in ``tamis_book``.
    """
    stored = list(stored_results(results))
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    _replace(folder / "results.rst", "\n".join(_results_page(stored, folder / "pictures")))
    _replace(folder / "tables.rst", "\n".join(_tables_page(stored)))


def _replace(path: Path, text: str) -> None:
    """Write a page if it has changed, so that unchanged pages are not built again."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        replace_text(path, text)


def _results_page(stored: Sequence[TableResults], pictures: Path) -> list[str]:
    lines = _heading("Results of the benchmark", "=")
    if not stored:
        return [*lines, "Not computed yet.", ""]
    lines += ["The protocol is on :doc:`its own page <../field>`.", "", *_coverage(stored)]
    rankings = [rank_kind(stored, kind) for kind in KINDS]
    lines += _heading("Rankings by kind of table", "-")
    lines += [
        "Losses are relative to random selection of the same number of columns (1 = as good as "
        "random), averaged over the judges, the five sizes and the tables. *Behind* is the mean "
        "difference to the first method with a 95 % bootstrap interval over the tables. An "
        "asterisk marks the methods whose interval contains 0: they are not distinguishable from "
        "the first. If there are such methods, no winner is named.",
        "",
    ]
    for kind, ranking in zip(KINDS, rankings, strict=True):
        lines += _ranking(kind, ranking, pictures)
    lines += _habits(stored, rankings, pictures)
    lines += _own_sizes(stored) + _failures(stored)
    return lines


def _coverage(stored: Sequence[TableResults]) -> list[str]:
    """Return what was computed, and what was not."""
    cells = Counter(key.split("/")[0] for one in stored for key in one.cells)
    splits = Counter(
        len({key.split("/")[1] for key in one.cells if key.startswith("error")}) for one in stored
    )
    measured = {key.split("/", 2)[2] for one in stored for key in one.cells}
    absent = [name for name in METHODS if name not in measured]
    missing = sorted(set(table_names()) - {one.name for one in stored if one.cells})
    known = [f"{format_count(n, 'table')} on {k} of {N_SPLITS} splits" for k, n in splits.items()]
    seconds = sum(cell.seconds for one in stored for cell in one.cells.values())
    lines = [
        *_heading("Coverage", "-"),
        "These results are **partial** if a line below names missing tables, methods or splits.",
        "",
        f"* Computed: {cells['error']} error estimates, {cells['noise']} selections with noise "
        f"columns, {cells['bootstrap']} selections from bootstrap samples. Selections took "
        f"{seconds / 60:.0f} minutes of processor time, without training the judges.",
        f"* Splits: {', '.join(known)}. Not all methods are measured on all of them: each ranking "
        "states its tables and splits.",
        f"* Judges: {', '.join(JUDGES)}; the SVM only on tables of at most {SVM_ROWS} rows.",
        f"* Tables without results ({len(missing)} of {len(table_names())}): "
        f"{', '.join(map(_plain, missing)) or 'none'}.",
        f"* Methods without results ({len(absent)} of {len(METHODS)}): "
        f"{', '.join(map(_plain, absent)) or 'none'}.",
    ]
    versions = next((one.versions for one in stored if one.versions), {})
    lines += [f"* Versions: {', '.join(f'{name} {v}' for name, v in versions.items())}.", ""]
    return lines


def _ranking(kind: str, ranking: KindRanking | None, pictures: Path) -> list[str]:
    lines = _heading(TITLES[kind], "^")
    if ranking is None:
        return [*lines, "Fewer than two tables of this kind are complete.", ""]
    level = sum(row.is_level for row in ranking.rows)
    facts = [
        f"{format_count(len(ranking.tables), 'table')}, "
        f"{format_count(ranking.n_splits, 'split')}, by {WORDS[ranking.metric]}.",
        f"Friedman's test: p = {ranking.ranks.p_value:.2g}. Critical difference of ranks "
        f"(Nemenyi): {ranking.ranks.critical_difference:.2f}.",
    ]
    if level > 1:
        facts.append(f"{level} of {len(ranking.rows)} methods are not distinguishable at the top.")
    if len(ranking.tables) < ENOUGH:
        facts.append(
            f"These are fewer than {ENOUGH} tables: nothing follows from this order. There are no "
            "intervals for fewer than five tables."
        )
    lines += [
        " ".join(facts),
        "",
        f"Tables: {', '.join(map(_plain, ranking.tables))}.",
        "",
    ]
    rows = [
        [
            _plain(row.method) + (" \\*" if row.is_level else ""),
            f"{row.rank:.1f}",
            f"{row.loss:.3f}",
            f"{row.best:.3f}",
            _behind(row.behind),
        ]
        for row in ranking.rows
    ]  # fmt: skip
    lines += _table(("method", "mean rank", "loss", "loss of the best judge", "behind"), rows)
    if ranking.missing:
        lines += [f"Measured on too few of these tables: {', '.join(ranking.missing)}.", ""]
    if len(ranking.rows) <= DRAWN:
        name = f"ranks-{kind.replace(' ', '-')}.svg"
        _replace(pictures / name, to_svg(draw_comparison(ranking.ranks, LIGHT, 520)))
        lines += [f".. image:: pictures/{name}", f"   :alt: Mean ranks, {kind}", ""]
    return lines


def _behind(found: Interval | None) -> str:
    if found is None:
        return ""
    ends = "" if isnan(found.low) else f" [{found.low:.3f}, {found.high:.3f}]"
    return f"{found.estimate:.3f}{ends}"


def _habits(
    stored: Sequence[TableResults], rankings: Sequence[KindRanking | None], pictures: Path
) -> list[str]:
    rows, n_tables = habits(stored)
    lines = _heading("Validity, stability and time", "-")
    if not rows:
        return [*lines, "Not computed yet.", ""]
    lines += [
        f"Means over {format_count(n_tables, 'table')}. *Validity* is the share of appended noise "
        "columns (permuted copies of a fifth of the columns) that are not selected, averaged over "
        "the sizes. Compare it with the row of random selection. *Stability* is Nogueira's index "
        "over five bootstrap samples (1 = identical, 0 = chance). *Time* is the median processor "
        "time of a selection, without the preparation of the table and the models trained on it.",
        "",
    ]
    shown = [
        [_plain(row.method), f"{row.validity:.3f}", f"{row.stability:.2f}", f"{row.seconds:.3g} s"]
        for row in sorted(rows, key=lambda row: -row.validity)
    ]
    lines += _table(("method", "validity", "stability", "time"), shown)
    whole = rankings[0]
    if whole is not None:
        _replace(pictures / "time.svg", to_svg(draw_times(whole, rows)))
        lines += [".. figure:: pictures/time.svg", "   :alt: Loss against time", ""]
        lines += ["   Loss relative to random selection against time, tables with classes.", ""]
    return lines


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


def _own_sizes(stored: Sequence[TableResults]) -> list[str]:
    lines = _heading("Methods that choose the number of columns", "-")
    rows = [
        [_plain(row.method), str(row.n_tables), f"{100 * row.share:.0f} %", f"{row.loss:.3f}",
         f"{row.loss_of_all:.3f}"]
        for row in own_sizes(stored)
    ]  # fmt: skip
    if not rows:
        return [*lines, "Not computed yet.", ""]
    heads = ("method", "splits", "columns kept", "loss", "loss with all columns")
    note = "Losses are relative to random selection at the five sizes of the rankings."
    return [*lines, note, "", *_table(heads, rows)]


def _failures(stored: Sequence[TableResults]) -> list[str]:
    lines = [*_heading("Failures", "-"), "A failure counts as random selection.", ""]
    rows = [
        [_plain(method), _plain(reason), ", ".join(map(_plain, tables))]
        for (method, reason), tables in sorted(failures(stored).items())
    ]
    if not rows:
        return [*lines, "There are no failures.", ""]
    return [*lines, *_table(("method", "reason", "tables"), rows)]


def _tables_page(stored: Sequence[TableResults]) -> list[str]:
    lines = _heading("Tables of the benchmark", "=")
    lines += [
        "Losses are error rates, or 1 - R² for a numeric target: means over the judges, the five "
        "sizes and the computed splits. The best methods are listed without a test.",
        "",
    ]
    rows = []
    for one in stored:
        facts = one.facts
        metric = "error" if facts["classes"] else "r2"
        found = split_losses([one], metric)
        methods = {m for losses in found.values() for m in losses}
        whole = [m for m in methods if all(m in losses for losses in found.values())]
        means = {m: sum(losses[m].mean for losses in found.values()) / len(found) for m in whole}
        best = sorted(means, key=lambda m: (means[m], m))[:3]
        rows.append(
            [
                _plain(one.name),
                str(facts["rows"]),
                f"{facts['columns']} ({facts['categories']})",
                str(facts["classes"] or "numeric"),
                str(len(found)),
                *(f"{means[m]:.3f}" if m in means else "" for m in ("random", "all columns")),
                ", ".join(f"{_plain(m)} {means[m]:.3f}" for m in best),
            ]
        )
    heads = ("table", "rows", "columns (categories)", "classes", "splits", "random", "all columns",
             "best methods")  # fmt: skip
    lines += _table(heads, rows)
    lines += _heading("Left out", "-")
    lines += ["These tables of the two folders are not in the benchmark:", ""]
    return [*lines, *(f"* {_plain(name)}: {why}." for name, why in omitted().items()), ""]


def _heading(text: str, line: str) -> list[str]:
    return [text, line * len(text), ""]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return ["Not computed yet.", ""]
    lines = [".. list-table::", "   :header-rows: 1", "   :class: book", ""]
    for row in (heads, *rows):
        first, *rest = (cell or "\\ " for cell in row)
        lines += [f"   * - {first}", *(f"     - {cell}" for cell in rest)]
    return [*lines, ""]


def _plain(text: str) -> str:
    """Return a text with escaped markup."""
    return re.sub(r"([\\*`|_])", r"\\\1", " ".join(str(text).split()))
