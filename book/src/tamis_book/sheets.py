"""A computed experiment for other programs and for papers: its cells and its tests."""

import json
from collections.abc import Sequence
from typing import Any

from tamis.cli.output import plain
from tamis.cli.sheets import Sheet, Value, csv_text, latex_text, markdown_text
from tamis_book.layout import contrasts
from tamis_book.reproduction import Reproduction

#: How experiments can be written.
ENDINGS = (".csv", ".md", ".tex", ".json")
CELLS = ("part", "method", "columns", "ours", "deviation", "realizations", "published", "mark")
#: Marks in CSV, where spreadsheets would take signs for formulas.
WORDS = {"=": "equal", "+": "better", "-": "worse", "?": "unsound", "": None}
TESTS = ("part", "reference", "method", "columns", "difference", "p", "adjusted p")


def written(ending: str, several: Sequence[Reproduction], *, safe: bool = True) -> str:
    """Experiments in the way that an ending stands for."""
    if ending == ".json":
        facts = [_facts(found) for found in several]
        return json.dumps(plain({"experiments": facts}), indent=1, allow_nan=False) + "\n"
    if ending == ".csv":
        return csv_text(_long(several), safe=safe)
    sheets = [sheet for found in several for sheet in (cells_sheet(found), tests_sheet(found))]
    sheets = [sheet for sheet in sheets if sheet.rows]
    return markdown_text(sheets) if ending == ".md" else latex_text(sheets)


def cells_sheet(found: Reproduction) -> Sheet:
    """One row per number of the table."""
    experiment = found.experiment
    rows: list[list[Value]] = [
        [
            cell.part,
            cell.method if cell.beside is None else f"{cell.method} beside {cell.beside}",
            cell.size,
            cell.ours,
            cell.deviation,
            cell.n_realizations,
            cell.published,
            cell.mark,
        ]
        for cell in found.cells
    ]
    title = f"{experiment.name}: {experiment.title}; {experiment.metric}"
    return _without_empty(Sheet(title, CELLS, rows))


def tests_sheet(found: Reproduction) -> Sheet:
    """One row per test of the reference against another method."""
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
    return _without_empty(Sheet(title, TESTS, rows))


def _without_empty(sheet: Sheet) -> Sheet:
    """The sheet without the columns that hold nothing, as published numbers of a new table."""
    keep = [
        j for j in range(len(sheet.headings)) if any(row[j] not in (None, "") for row in sheet.rows)
    ]
    rows = [[None if row[j] != row[j] else row[j] for j in keep] for row in sheet.rows]
    return Sheet(sheet.title, [sheet.headings[j] for j in keep], rows)


def _long(several: Sequence[Reproduction]) -> Sheet:
    """Every number with the p-value of its test, over all experiments."""
    rows: list[list[Value]] = []
    for found in several:
        p = {(part, one.method, one.size): one for part, one in contrasts(found)}
        for cell in found.cells:
            test = p.get((cell.part, cell.method, cell.size)) if cell.beside is None else None
            numbers = (cell.size, cell.ours, cell.deviation, cell.n_realizations, cell.published)
            named = (found.experiment.name, cell.part, cell.method)
            tested = (None, None) if test is None else (test.p_value, test.p_adjusted)
            rows.append([*named, *numbers, WORDS[cell.mark], *tested])
    rows = [[None if value != value else value for value in row] for row in rows]
    return Sheet("", ("experiment", *CELLS, "p", "adjusted_p"), rows)


def _facts(found: Reproduction) -> dict[str, Any]:
    experiment = found.experiment
    return {
        "name": experiment.name,
        "title": experiment.title,
        "source": experiment.source,
        "metric": experiment.metric,
        "cells": [cell._asdict() for cell in found.cells],
        "tests": [one._asdict() for _, one in contrasts(found)],
        "missing": list(found.missing),
        "settings": list(found.settings),
    }
