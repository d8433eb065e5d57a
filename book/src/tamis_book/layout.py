"""Layout of cells as tables, with a legend, notes and tests."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tamis.evaluation import Contrast, compare
from tamis.exceptions import InvalidParameter
from tamis_book.cells import Cell
from tamis_book.experiment import Experiment
from tamis_book.reproduction import Reproduction

LEGENDS = {
    "chance": "ours (published)  = no significant difference",
    "range": "range of ours (published)  = published number within ours",
    "stability": "ours [interval] (published)  = published number within the interval",
}
NEAR = "ours (published)  = difference of at most {:g}"
LEGEND = "  + ours better  - ours worse  ? published number wrong"
SIGNS = "./+: paired t-test, ours / published; + if {} wins"


class CellTable(NamedTuple):
    """Cells arranged in rows and columns. Every row starts with its labels."""

    title: str
    labels: tuple[str, ...]
    heads: tuple[str, ...]
    rows: Sequence[tuple[tuple[str, ...], tuple[Cell | None, ...]]]


def lay_out(found: Reproduction) -> list[CellTable]:
    """Return the cells as tables like the published ones: by size, by part, or with baselines."""
    if not found.cells:
        return []
    if found.experiment.baselines:
        return [_with_baselines(found, part) for part in found.parts]
    if found.cells[0].size is None:
        return [_lay_out_parts(found)]
    return [
        _grid(part, "columns", {(str(c.size), c.method): c for c in _cells(found, part)})
        for part in found.parts
    ]


def _with_baselines(found: Reproduction, name: str) -> CellTable:
    """Return a table with one row per method and size, followed by the baselines."""
    experiment = found.experiment
    (part,) = (part for part in experiment.parts if part.name == name)
    cells = {(c.beside or c.method, c.size, c.beside and c.method): c for c in _cells(found, name)}
    rows = []
    for (method, size, baseline), cell in cells.items():
        if baseline is None:
            others = (cells.get((method, size, other)) for other in experiment.baselines)
            published = cell.published_n_features
            columns = f"{cell.n_features:.1f}"
            columns += "" if published is None else f" ({published:.1f})"
            step = (str(size),) if part.steps else ()
            rows.append(((method, *step, columns), (cell, *others)))
    labels = ("", *(["step"] if part.steps else []), "columns")
    return CellTable(name, labels, (experiment.metric, *experiment.baselines), rows)


def _lay_out_parts(found: Reproduction) -> CellTable:
    """Return a table of methods and parts. The smaller of the two numbers becomes the columns."""
    hits = found.experiment.metric == "hit"
    if not hits and len(found.parts) > len({cell.method for cell in found.cells}):
        return _grid("", "", {(cell.part, cell.method): cell for cell in found.cells})
    label = f"hits of {found.cells[0].n_realizations}" if hits else ""
    return _grid("", label, {(cell.method, cell.part): cell for cell in found.cells})


def _grid(title: str, label: str, cells: dict[tuple[str, str], Cell]) -> CellTable:
    down, across = (tuple(dict.fromkeys(names)) for names in zip(*cells, strict=True))
    rows = [((name,), tuple(cells.get((name, other)) for other in across)) for name in down]
    return CellTable(title, (label,), across, rows)


def _cells(found: Reproduction, part: str) -> Iterable[Cell]:
    return (cell for cell in found.cells if cell.part == part)


def digits_of(experiment: Experiment) -> int:
    """Return the number of decimals to show for our numbers."""
    return 0 if experiment.metric == "hit" else max(2, experiment.decimals)


def format_cell(cell: Cell, experiment: Experiment) -> str:
    """Format a cell as ``ours (published) mark``."""
    digits = digits_of(experiment)
    published = "" if cell.published is None else f" ({cell.published:.{digits}f})"
    signs = "" if cell.sign is None else f" {cell.sign or '.'}/{cell.published_sign or '.'}"
    ours, low, high = (f"{number:.{digits}f}" for number in (cell.ours, cell.low, cell.high))
    if experiment.agreement == "range":
        ours = f"{low}-{high}"
    if experiment.metric == "stability":
        ours += f" [{low}, {high}]"
    return f"{ours}{published} {cell.mark}{signs}"


def legend(experiment: Experiment) -> str:
    """Return a text that explains the marks of the cells."""
    rule = "stability" if experiment.metric == "stability" else experiment.agreement
    return (LEGENDS[rule] if isinstance(rule, str) else NEAR.format(rule)) + LEGEND


def footnotes(found: Reproduction) -> Sequence[str]:
    """Return why published numbers are wrong, and the notes of the experiment file."""
    experiment = found.experiment
    shown = {cell.method for cell in found.cells if cell.mark == "?"}
    unsound = [f"? {name}: {why}" for name, why in experiment.unsound.items() if name in shown]
    run = found.parts
    unsound += [f"? {p.name}: {p.unsound}" for p in experiment.parts if p.unsound and p.name in run]
    parts = [f"{part.name}: {part.note}" for part in experiment.parts if part.note]
    return [*unsound, *experiment.notes, *parts]


def contrasts(found: Reproduction) -> list[tuple[str, Contrast]]:
    """Test the reference against every other method in each part with the corrected t-test.

    The default reference is the first method.
    """
    experiment, tested = found.experiment, []
    for part, results in found.results.items():
        reference = experiment.reference or results.methods[0]
        try:
            compared = compare(results, reference, metric=experiment.metric)
        except InvalidParameter:  # a single method or realization, or no predictions to compare
            continue
        tested += [(part, contrast) for contrast in compared.contrasts]
    return tested
