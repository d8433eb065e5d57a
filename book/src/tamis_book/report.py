"""Report of a reproduced experiment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tamis._format import format_count, format_name
from tamis.contract.record import installed_versions
from tamis.evaluation import Contrast
from tamis.exceptions import InvalidParameter
from tamis.report.page import Caveat, Page
from tamis.report.sheets import Sheet, Value
from tamis_book.cells import COMPARED, Cell, mark_words
from tamis_book.experiment import UNSOUND
from tamis_book.layout import (
    SIGNS,
    CellTable,
    contrasts,
    footnotes,
    format_cell,
    lay_out,
    legend,
)
from tamis_book.reproduction import Reproduction

#: Tests need at least this number of realizations. With fewer, differences that happen to be equal,
#: such as differences in hits, seem significant.
TESTED = 5
#: Greatest number of parts with a chart, because each takes 10 to 40 kB. Tables contain all parts.
DRAWN = 14


@dataclass(frozen=True, repr=False)
class ReproductionReport(Page):
    """Report of a reproduced experiment, made by :func:`tamis_book.reproduced`.

    ``save`` writes it as an HTML page.

    Attributes
    ----------
    found : Reproduction
        Our numbers and the published ones.
    tables : list of CellTable
        The numbers as tables.
    tests : list of (str, Contrast)
        Name of the part, and test of the reference against another method.
    notes : list of str
        Notes below the tables.
    made : date
        The date of the report.
    cares : list of Caveat
        Warnings about the results.
    details : list of (str, str)
        Pairs of a term and its value that describe how the results were computed.
    command : str or None
        The command line that reproduces the report.

    Examples
    --------
    >>> from tamis_book import Cell, Reproduction, read, reproduced
    >>> hits = Cell("100", "FisherS", None, 4, 0.5, 0, 1, 30, published=2, mark="=")
    >>> reproduced(Reproduction(read("thesis-3.2"), (hits,), ())).lead
    '1 of 1 number agree with the published ones.'
    """

    template = "tamis_book:reproduction.html.j2"

    found: Reproduction
    tables: Sequence[CellTable]
    tests: Sequence[tuple[str, Contrast]]
    notes: Sequence[str]

    @property
    def lead(self) -> str:
        """The first sentences, which report how many numbers agree."""
        counts, cells = self.found.counts(), self.found.cells
        if not counts:
            n = max((cell.n_realizations for cell in cells), default=0)
            published = sum(cell.published is not None for cell in cells)
            rest = f"{published} are published, but a comparison needs more realizations"
            numbers = f"{format_count(len(cells), 'number')} over {format_count(n, 'realization')}"
            return f"{numbers}; {rest if published else 'none is published'}."
        words = mark_words(self.found.experiment)
        sound = format_count(sum(counts.get(mark, 0) for mark in COMPARED), "number")
        sentences = [f"{counts.get('=', 0)} of {sound} agree with the published ones."]
        for mark in ("+", "-"):
            if n := counts.get(mark, 0):
                sentences.append(f"Ours {'is' if n == 1 else 'are'} {words[mark]} in {n}.")
        unsound = [f"{counts[mark]} {kind}" for kind, mark in UNSOUND.items() if mark in counts]
        if unsound:
            sentences.append(f"Not compared (see the notes): {', '.join(unsound)}.")
        return " ".join(sentences)

    def __repr__(self) -> str:
        return f"<ReproductionReport of {self.found.experiment.name}>"

    def _context(self) -> dict[str, Any]:
        words, counts = mark_words(self.found.experiment), self.found.counts()
        return {
            "legend": self._legend(),
            "compared": {
                "Agree" if mark == "=" else f"Ours {words[mark]}": counts.get(mark, 0)
                for mark in COMPARED
            },
            "tables": [(one, [self._row(row) for row in one.rows]) for one in self.tables],
            "parts": [self._draw(part) for part in self.found.parts[:DRAWN]],
            "tests": tests_sheet(self.found) if self.tests else None,
            "differ": [one.p_adjusted < 0.05 for _, one in self.tests],
        }

    def _legend(self) -> str:
        experiment = self.found.experiment
        line = legend(experiment).replace("  ", " · ")
        if any(cell.sign is not None for cell in self.found.cells):
            line += " · " + SIGNS.format(experiment.reference)
        return line

    def _row(self, row: tuple[Sequence[str], Sequence[Cell | None]]) -> list[Any]:
        """Return the cells of a row. Cells that differ from the published numbers are coloured."""
        labels, cells = row
        shown: list[Any] = list(labels)
        for cell in cells:
            if cell is None:
                shown.append("")
                continue
            text = format_cell(cell, self.found.experiment).strip().replace("-", "−")
            words = mark_words(self.found.experiment)
            tip = f"{format_name(cell.method)}: {words[cell.mark]}" if cell.mark else ""
            css = {"+": "better", "-": "worse"}.get(cell.mark, "")
            shown.append({"text": text, "tip": tip, "css": css})
        return shown

    def _draw(self, part: str) -> dict[str, Any]:
        """Draw the published numbers of a part next to ours."""
        from tamis.report.charts.style import PAGE
        from tamis.report.template import BARS, WIDE, draw, draw_with_names
        from tamis_book.chart import cells_of, draw_published

        cells = cells_of(self.found, part)
        lines = len({cell.size for cell in cells}) > 1
        width = WIDE - 120 if lines else BARS
        chart = draw_published(cells, self.found.experiment, PAGE, width, 260)
        svg = draw(chart, 190) if lines else draw_with_names(chart)
        marks = [cell.mark for cell in cells if cell.mark in COMPARED]
        caption = f"{format_count(len(cells), 'number')} of ours."
        if marks:
            caption = f"{marks.count('=')} of {format_count(len(marks), 'number')} agree."
        return {"name": part, "lines": lines, "svg": svg, "caption": caption}


def tests_sheet(found: Reproduction) -> Sheet:
    """Return a table with one row per test of the reference against another method."""
    scale = found.experiment.scale
    rows: list[list[Value]] = [
        [
            part,
            one.reference,
            one.method,
            one.size,
            scale * (one.reference_mean - one.method_mean),
            one.p_value,
            one.p_adjusted,
        ]
        for part, one in contrasts(found)
    ]
    title = "corrected t-test of the reference against the others, p-values adjusted by Holm's rule"
    heads = ("part", "reference", "method", "columns", "difference", "p", "adjusted p")
    return without_empty(Sheet(title, heads, rows))


def without_empty(sheet: Sheet) -> Sheet:
    """Return the sheet without empty columns, such as missing published numbers."""
    keep = [
        j for j in range(len(sheet.headings)) if any(row[j] not in (None, "") for row in sheet.rows)
    ]
    rows = [[None if row[j] != row[j] else row[j] for j in keep] for row in sheet.rows]
    return Sheet(sheet.title, [sheet.headings[j] for j in keep], rows)


def reproduced(found: Reproduction, *, command: str | None = None) -> ReproductionReport:
    """Return the report of a reproduced experiment.

    Parameters
    ----------
    found : Reproduction
        Result of :func:`tamis_book.reproduce`.
    command : str, optional
        The command line that reproduces the report.

    Returns
    -------
    ReproductionReport
        ``save("table.html")`` writes it as a page.

    Examples
    --------
    >>> from tamis_book import Cell, Reproduction, read, reproduced
    >>> hits = Cell("100", "FisherS", None, 4, 0.5, 0, 1, 30, 2, "=", None, None)
    >>> reproduced(Reproduction(read("thesis-3.2"), (hits,), ()))  # or reproduce("thesis-3.2")
    <ReproductionReport of thesis-3.2>
    """
    if not isinstance(found, Reproduction):
        raise InvalidParameter(
            "reproduced needs the Reproduction of tamis_book.reproduce(name), not "
            f"{type(found).__name__}."
        )
    experiment = found.experiment
    n = min((cell.n_realizations for cell in found.cells), default=0)
    cares = [Caveat(sentence) for sentence in found.missing]
    if 0 < n < experiment.realizations and found.is_published:
        fact = f"{format_count(n, 'realization')} of {experiment.realizations}."
        consequence = "With fewer realizations than published, only large differences are found."
        cares.insert(0, Caveat(fact, consequence))
    lines = [(f"Method {name}", text) for name, text in experiment.all_methods.items()]
    lines += [(f"Baseline {name}", text) for name, text in experiment.baselines.items()]
    lines += [(f"Estimator {name}", text) for name, text in experiment.estimators.items()]
    versions = ", ".join(f"{name} {v}" for name, v in installed_versions().items())
    return ReproductionReport(
        found=found,
        tables=lay_out(found),
        tests=contrasts(found) if n >= TESTED else [],
        notes=[*found.settings, *found.remarks, *footnotes(found)],
        cares=cares,
        details=[*lines, ("Seed", str(experiment.seed)), ("Versions", versions)],
        command=command,
    )
