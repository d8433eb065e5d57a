"""An experiment that was computed again, as people read it: tables, marks, tests, notes."""

from collections.abc import Sequence
from typing import NamedTuple

from scipy.stats import t

from tamis.evaluation import Contrast, compare, hit_interval
from tamis.exceptions import InvalidParameter
from tamis.reproduction.cells import Cell, Reproduction
from tamis.reproduction.experiment import Experiment

LEGENDS = {
    "chance": "ours (published)  = equal within chance",
    "range": "range of ours (published)  = published within ours",
}
INTERVAL = "ours [interval] (published)  = published within the interval"
NEAR = "ours (published)  = no more than {:g} apart"
LEGEND = "  + ours better  - ours worse  ? unsound in print"
SIGNS = "./+: paired t-test, ours / published; + where {} wins"


class CellTable(NamedTuple):
    """Cells as rows and columns; every row begins with its labels."""

    title: str
    labels: tuple[str, ...]
    heads: tuple[str, ...]
    rows: Sequence[tuple[tuple[str, ...], tuple[Cell | None, ...]]]


def tables_of(found: Reproduction) -> list[CellTable]:
    """The cells laid out as in print: by size, by part, or beside baselines."""
    if not found.cells:
        return []
    if found.experiment.baselines:
        return _by_baseline(found)
    return [_by_part(found)] if found.cells[0].size is None else _by_size(found)


def _by_baseline(found: Reproduction) -> list[CellTable]:
    """For each part one row per method and size, with the baselines beside."""
    experiment, made = found.experiment, []
    for part in experiment.parts:
        cells = [cell for cell in found.cells if cell.part == part.name]
        beside = {(c.beside, c.size, c.method): c for c in cells if c.beside is not None}
        rows = []
        for cell in (cell for cell in cells if cell.beside is None):
            others = [beside.get((cell.method, cell.size, name)) for name in experiment.baselines]
            step = (str(cell.size),) if part.steps else ()
            rows.append(((cell.method, *step, _columns(cell)), (cell, *others)))
        labels = ("", *(["step"] if part.steps else []), "columns")
        if rows:
            heads = (experiment.metric, *experiment.baselines)
            made.append(CellTable(part.name, labels, heads, rows))
    return made


def _columns(cell: Cell) -> str:
    published = cell.published_n_features
    return f"{cell.n_features:.1f}" + ("" if published is None else f" ({published:.1f})")


def _by_part(found: Reproduction) -> CellTable:
    """Methods by parts, one number each: the fewer of them are the columns."""
    parts = list(dict.fromkeys(cell.part for cell in found.cells))
    methods = list(dict.fromkeys(cell.method for cell in found.cells))
    hits = found.experiment.metric == "hit"
    turned = len(parts) > len(methods) and not hits
    across, down = (methods, parts) if turned else (parts, methods)
    cells = {(c.part, c.method) if turned else (c.method, c.part): c for c in found.cells}
    label = f"hits of {found.cells[0].n_realizations}" if hits else ""
    rows = [((name,), tuple(cells.get((name, other)) for other in across)) for name in down]
    return CellTable("", (label,), tuple(across), rows)


def _by_size(found: Reproduction) -> list[CellTable]:
    """For each part one row per number of columns, one column per method."""
    made = []
    for part in dict.fromkeys(cell.part for cell in found.cells):
        cells = [cell for cell in found.cells if cell.part == part]
        methods = tuple(dict.fromkeys(cell.method for cell in cells))
        at = {(cell.size, cell.method): cell for cell in cells}
        rows = [
            ((str(size),), tuple(at.get((size, method)) for method in methods))
            for size in dict.fromkeys(cell.size for cell in cells)
        ]
        made.append(CellTable(part, ("columns",), methods, rows))
    return made


def spoken_cell(cell: Cell, experiment: Experiment) -> str:
    """``ours (published) mark``."""
    digits = 0 if experiment.metric == "hit" else max(2, experiment.decimals)
    published = "" if cell.published is None else f" ({cell.published:.{digits}f})"
    signs = "" if cell.sign is None else f" {cell.sign or '.'}/{cell.published_sign or '.'}"
    ours = f"{cell.ours:.{digits}f}"
    if experiment.agreement == "range":
        ours = f"{cell.low:.{digits}f}-{cell.high:.{digits}f}"
    if experiment.metric == "stability":
        ours += f" [{cell.low:.{digits}f}, {cell.high:.{digits}f}]"
    return f"{ours}{published} {cell.mark}{signs}"


def interval_of(cell: Cell, experiment: Experiment) -> tuple[float, float]:
    """Where our number lies with 95 %: a count by Wilson's rule, a mean by Student's.

    Of an experiment that agrees by range it is the range of ours, of a stability its interval; NaN
    where there is one realization.
    """
    n = cell.n_realizations
    if experiment.metric == "hit":
        share = hit_interval(int(cell.ours), n)
        return n * share.low, n * share.high
    if experiment.agreement == "range" or experiment.metric == "stability":
        return cell.low, cell.high
    reach = float(t.ppf(0.975, n - 1)) * cell.deviation / n**0.5 if n > 1 else float("nan")
    return cell.ours - reach, cell.ours + reach


def legend(experiment: Experiment) -> str:
    """What the marks of the cells stand for."""
    if experiment.metric == "stability":
        return INTERVAL + LEGEND
    if isinstance(experiment.agreement, float):
        return NEAR.format(experiment.agreement) + LEGEND
    return LEGENDS[experiment.agreement] + LEGEND


def footnotes(found: Reproduction) -> Sequence[str]:
    """Why published numbers are no target, and what the file notes."""
    experiment = found.experiment
    shown = {cell.method for cell in found.cells if cell.mark == "?"}
    unsound = [f"? {name}: {why}" for name, why in experiment.unsound.items() if name in shown]
    run = {cell.part for cell in found.cells}
    unsound += [f"? {p.name}: {p.unsound}" for p in experiment.parts if p.unsound and p.name in run]
    parts = [f"{part.name}: {part.note}" for part in experiment.parts if part.note]
    return [*unsound, *experiment.notes, *parts]


def contrasts(found: Reproduction) -> list[tuple[str, Contrast]]:
    """The reference against every other method, by the corrected t-test, part by part.

    Without a reference in the file it is the first method.
    """
    experiment, tested = found.experiment, []
    for part, results in found.results.items():
        reference = experiment.reference or results.methods[0]
        try:
            compared = compare(results, reference, metric=experiment.metric)
        except InvalidParameter:  # one method, one realization, or no predictions to compare
            continue
        tested += [(part, contrast) for contrast in compared.contrasts]
    return tested
