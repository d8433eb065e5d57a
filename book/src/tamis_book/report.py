"""Facts of an experiment that was computed again, and its page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tamis._format import format_count, format_name
from tamis.contract.record import installed_versions
from tamis.evaluation import Contrast
from tamis.exceptions import InvalidParameter
from tamis.report.page import Caveat, Page
from tamis.report.sheets import Sheet, Value
from tamis_book.cells import Cell
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

#: Realizations from which tests are shown: of fewer, differences that are equal by chance, as of
#: hits, look like certainty.
TESTED = 5
#: BlockSource with a chart: each takes 10 to 40 kB; the numbers of the others are in the table.
DRAWN = 14
#: Marks in words.
MARKS = {"=": "agrees", "+": "ours is better", "-": "ours is worse", "?": "no target"}


@dataclass(frozen=True, repr=False)
class ReproductionReport(Page):
    """All that a page shows of an experiment, as plain data.

    :func:`tamis_book.reproduced` gathers it; ``save`` writes the page.

    Attributes
    ----------
    found : Reproduction
        The numbers, ours and the published ones.
    tables : list of CellTable
        The same as they stand in print.
    tests : list of (str, Contrast)
        For each part the reference against the other methods.
    notes : list of str
    made : date
    cares : list of Caveat
    details : list of (str, str)
        How it was computed.
    command : str or None
        The command line that gives the same.
    """

    template = "tamis_book:reproduction.html.j2"

    found: Reproduction
    tables: Sequence[CellTable]
    tests: Sequence[tuple[str, Contrast]]
    notes: Sequence[str]

    @property
    def lead(self) -> str:
        """How many numbers agree."""
        counts, cells = self.found.counts(), self.found.cells
        if not counts:
            n = max((cell.n_realizations for cell in cells), default=0)
            published = sum(cell.published is not None for cell in cells)
            # chance is measured by the spread of several
            rest = f"{published} are published, which more realizations could be compared with"
            numbers = f"{format_count(len(cells), 'number')} over {format_count(n, 'realization')}"
            return f"{numbers}; {rest if published else 'none is published'}."
        sound = format_count(sum(n for mark, n in counts.items() if mark != "?"), "number")
        words = [f"{counts.get('=', 0)} of {sound} agree with those published."]
        for mark, word in (("+", "better"), ("-", "worse")):
            if n := counts.get(mark, 0):
                words.append(f"Ours {'is' if n == 1 else 'are'} {word} in {n}.")
        if n := counts.get("?", 0):
            words.append(
                f"{format_count(n, 'published number')} cannot be a target, see the notes."
            )
        return " ".join(words)

    def __repr__(self) -> str:
        return f"<ReproductionReport of {self.found.experiment.name}>"

    def _context(self) -> dict[str, Any]:
        return {
            "legend": self._legend(),
            "tables": [(one, [self._row(row) for row in one.rows]) for one in self.tables],
            "parts": [self._draw(part) for part in self.found.parts[:DRAWN]],
            "tests": tests_sheet(self.found) if self.tests else None,
            "differ": [one.p_adjusted < 0.05 for _, one in self.tests],
        }

    def _legend(self) -> str:
        experiment = self.found.experiment
        words = legend(experiment).replace("  ", " · ")
        if any(cell.sign is not None for cell in self.found.cells):
            words += " · " + SIGNS.format(experiment.reference)
        return words

    def _row(self, row: tuple[Sequence[str], Sequence[Cell | None]]) -> list[Any]:
        """Return the cells of a row; a number is coloured if it differs from the published one."""
        labels, cells = row
        shown: list[Any] = list(labels)
        for cell in cells:
            if cell is None:
                shown.append("")
                continue
            text = format_cell(cell, self.found.experiment).strip().replace("-", "−")
            tip = f"{format_name(cell.method)}: {MARKS[cell.mark]}" if cell.mark else ""
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
        marks = [cell.mark for cell in cells if cell.mark and cell.mark != "?"]
        caption = f"{format_count(len(cells), 'number')} of ours."
        if marks:
            caption = f"{marks.count('=')} of {format_count(len(marks), 'number')} agree."
        return {"name": part, "lines": lines, "svg": svg, "caption": caption}


def tests_sheet(found: Reproduction) -> Sheet:
    """Return one row per test of the reference against another method."""
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
    title = "corrected t-test of the reference against the others, adjusted by Holm's rule"
    heads = ("part", "reference", "method", "columns", "difference", "p", "adjusted p")
    return without_empty(Sheet(title, heads, rows))


def without_empty(sheet: Sheet) -> Sheet:
    """Return the sheet without empty columns, such as published numbers of a new table."""
    keep = [
        j for j in range(len(sheet.headings)) if any(row[j] not in (None, "") for row in sheet.rows)
    ]
    rows = [[None if row[j] != row[j] else row[j] for j in keep] for row in sheet.rows]
    return Sheet(sheet.title, [sheet.headings[j] for j in keep], rows)


def reproduced(found: Reproduction, *, command: str | None = None) -> ReproductionReport:
    """Gather the facts of an experiment that was computed again, for a page.

    Parameters
    ----------
    found : Reproduction
        Of :func:`tamis_book.reproduce`.
    command : str, optional
        The command line that gives the same.

    Returns
    -------
    ReproductionReport
        ``save("table.html")`` writes the page.

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
        cares.insert(0, Caveat(fact, "Fewer than were published: only large differences show."))
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
