"""The page of an experiment: the facts put into the template, with pictures drawn beforehand."""

from collections.abc import Sequence
from typing import Any

from tamis._format import format_count
from tamis.evaluation import Contrast
from tamis.plot.style import PAGE, figure, harmless
from tamis.report.rendering import WIDE, beside_names, both, rendered
from tamis.report.standing_words import spoken_p
from tamis_book.cells import Cell
from tamis_book.chart import cells_of, draw_published
from tamis_book.layout import SIGNS, CellTable, format_cell, legend
from tamis_book.report import ReproductionReport

#: Pixels of a picture with names at its left; of one with names at the ends of lines.
BARS, LINES = 420, WIDE - 120
#: Parts with a picture: each takes 10 to 40 kB; the numbers of the others are in the table.
DRAWN = 14
#: What the marks are called where there is room for words.
WORDS = {"=": "agrees", "+": "ours is better", "-": "ours is worse", "?": "no target"}


def page_of(report: ReproductionReport) -> str:
    """The page as text."""
    experiment = report.found.experiment
    tables = [_table(table, report) for table in report.tables]
    pictures = _pictures(report)
    tests = [_test(part, one, report) for part, one in report.tests]
    return rendered(
        "reproduction.html.j2",
        report.made,
        heading=harmless(experiment.title),
        lead=lead_of(report),
        figures=_figures(report),
        cares=report.cares,
        command=report.command,
        details=report.details,
        sections=_sections(report, bool(tables), bool(pictures), bool(tests)),
        name=harmless(experiment.name),
        source=harmless(experiment.source) if experiment.source else "",
        tables=tables,
        pictures=pictures,
        several=len({test["part"] for test in tests}) > 1,
        tests=tests,
        notes=[harmless(note) for note in report.notes],
        legend=_legend(report),
        reference=harmless(report.tests[0][1].reference) if tests else "",
    )


def _sections(
    report: ReproductionReport, tables: bool, pictures: bool, tests: bool
) -> list[tuple[str, str]]:
    there = [
        ("numbers", "Numbers", tables),
        ("pictures", "Pictures", pictures),
        ("tests", "Tests", tests),
        ("notes", "Notes", bool(report.notes)),
        ("method", "How it was computed", True),
    ]
    return [(anchor, name) for anchor, name, here in there if here]


def _counts(report: ReproductionReport) -> dict[str, int]:
    return report.found.counts()


def _legend(report: ReproductionReport) -> str:
    """What the cells say; nothing where no number is published."""
    if not _counts(report):
        return ""
    experiment = report.found.experiment
    said = legend(experiment).replace("  ", " · ")
    if any(cell.sign is not None for cell in report.found.cells):
        said += " · " + SIGNS.format(harmless(experiment.reference))
    return said


def lead_of(report: ReproductionReport) -> str:
    """How many numbers agree."""
    counts, cells = _counts(report), report.found.cells
    sound = sum(n for mark, n in counts.items() if mark != "?")
    if not counts:
        n = max((cell.n_realizations for cell in cells), default=0)
        beside = sum(cell.published is not None for cell in cells)
        # chance is measured by the spread of several
        rest = f"{beside} published beside them, which more could be compared with"
        return (
            f"{format_count(len(cells), 'number')} over {format_count(n, 'realization')}; "
            f"{rest if beside else 'none is published'}."
        )
    said = [f"{counts.get('=', 0)} of {format_count(sound, 'number')} agree with those published."]
    if better := counts.get("+", 0):
        said.append(f"Ours {'is' if better == 1 else 'are'} better in {better}.")
    if worse := counts.get("-", 0):
        said.append(f"Ours {'is' if worse == 1 else 'are'} worse in {worse}.")
    if unsound := counts.get("?", 0):
        said.append(
            f"{format_count(unsound, 'published number')} cannot be a target, see the notes."
        )
    return " ".join(said)


def _figures(report: ReproductionReport) -> list[tuple[str, str, str]]:
    counts = _counts(report)
    if not counts:
        return []
    sound = sum(n for mark, n in counts.items() if mark != "?")
    shown = [("Numbers compared", str(sound), "")]
    names = {"=": "Agree", "+": "Ours better", "-": "Ours worse"}
    return shown + [(name, str(counts.get(mark, 0)), "") for mark, name in names.items()]


def _table(table: CellTable, report: ReproductionReport) -> dict[str, Any]:
    """A block of the table as texts."""
    rows = [
        ([harmless(label) for label in labels], [_cell(cell, report) for cell in cells])
        for labels, cells in table.rows
    ]
    return {
        "title": harmless(table.title) if table.title else "",
        "labels": list(table.labels),
        "heads": [harmless(name) for name in table.heads],
        "rows": rows,
    }


def _cell(cell: Cell | None, report: ReproductionReport) -> dict[str, str]:
    if cell is None:
        return {"said": "", "hint": "", "mark": ""}
    said = format_cell(cell, report.found.experiment).strip().replace("-", "−")
    hint = f"{harmless(cell.method)}: {WORDS[cell.mark]}" if cell.mark else ""
    return {"said": said, "hint": hint, "mark": {"+": "better", "-": "worse"}.get(cell.mark, "")}


def _test(part: str, one: Contrast, report: ReproductionReport) -> dict[str, Any]:
    difference = report.found.experiment.scale * (one.reference_mean - one.method_mean)
    return {
        "part": harmless(part),
        "method": harmless(one.method),
        "size": "" if one.size is None else str(one.size),
        "difference": figure(float(difference)),
        "p": spoken_p(one.p_value),
        "adjusted": spoken_p(one.p_adjusted),
        "differs": one.p_adjusted < 0.05,
    }


def _pictures(report: ReproductionReport) -> list[dict[str, Any]]:
    """Part by part the published numbers beside ours."""
    made = []
    for part in report.found.parts[:DRAWN]:
        cells = cells_of(report.found, part)
        lines = len({cell.size for cell in cells}) > 1
        width = LINES if lines else BARS
        chart = draw_published(cells, report.found.experiment, PAGE, width, 260)
        svg = both(chart, 190) if lines else beside_names(chart)
        made.append({"part": harmless(part), "svg": svg, "lines": lines, "said": _caption(cells)})
    return made


def _caption(cells: Sequence[Cell]) -> str:
    """What a picture shows, for those who do not see it."""
    marks = [cell.mark for cell in cells if cell.mark and cell.mark != "?"]
    if not marks:
        return f"{format_count(len(cells), 'number')} of ours."
    return f"{marks.count('=')} of {format_count(len(marks), 'number')} agree."
