"""Layout of cells as tables, with a legend, notes and tests."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tamis._format import format_duration
from tamis.evaluation import Contrast, compare
from tamis.exceptions import InvalidParameter
from tamis.report.sheets import Sheet, Value
from tamis_book.cells import COMPARED, MARKS, Cell, mark_words
from tamis_book.experiment import UNSOUND, Experiment, unsound_mark
from tamis_book.reproduction import Reproduction
from tamis_book.result_files import StoredReproduction

LEGENDS = {
    "chance": "ours (published)  = no significant difference",
    "range": "range of ours (published)  = published number within ours",
    "stability": "ours [interval] (published)  = published number within the interval",
}
NEAR = "ours (published)  = difference of at most {:g}"
LEGEND = "  + ours {}  - ours {}  ! impossible  ? not specified  ~ contradicted"
SIGNS = "./+: signs of the paired t-tests, ours / published; + if {} is better"


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
    words = mark_words(experiment)
    start = LEGENDS[rule] if isinstance(rule, str) else NEAR.format(rule)
    return start + LEGEND.format(words["+"], words["-"])


def footnotes(found: Reproduction) -> Sequence[str]:
    """Return why published numbers are not compared, and the notes of the experiment file."""
    experiment, run = found.experiment, found.parts
    shown = {cell.method for cell in found.cells if cell.mark and cell.mark not in COMPARED}
    reasons = [(name, why) for name, why in experiment.unsound.items() if name in shown]
    reasons += [(p.name, p.unsound) for p in experiment.parts if p.unsound and p.name in run]
    unsound = [f"{unsound_mark(why)} {name}: {why}" for name, why in reasons]
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


# -- summary --------------------------------------------------------------------------------------

SUMMARY = ("experiment", "metric", "realizations", *(MARKS[mark] for mark in COMPARED), "agree %")
SUMMARY += ("placebo %", *UNSOUND, "all columns", "wins kept", "lost", "reversed")
#: Explanation of the columns of a summary.
SUMMARY_LEGEND = (
    "lower and higher: our error is significantly lower or higher than the published one; for "
    "hits, accuracies and correlations, lower means that our number is higher. placebo %: share of "
    "pairs that agree if our number is compared with the published number of another method. "
    "impossible, not specified, contradicted: numbers that are not compared. all columns: agree / "
    "lower / higher with all columns, where nothing is selected. wins: number of published "
    "significant differences that are significant in our results too (kept), that are not (lost), "
    "and that have the opposite sign (reversed)."
)


def summarize(stored: Iterable[tuple[Experiment, StoredReproduction | None]]) -> Sheet:
    """Return a table of experiments: how the stored results compare with published numbers."""
    rows: list[list[Value]] = []
    total: Counter[str] = Counter()
    computed = 0
    for experiment, one in stored:
        tally = Counter() if one is None else one.found.tally()
        named = experiment.name, experiment.metric, _state(experiment, one)
        rows.append([*named, *_tally_cells(tally)])
        total.update(tally)
        computed += one is not None and bool(one.found.cells)
    rows.append(["all", None, f"{computed} of {len(rows)}", *_tally_cells(total)])
    return Sheet("stored results next to published numbers", SUMMARY, rows)


def _state(experiment: Experiment, one: StoredReproduction | None) -> str:
    """Return the number of realizations, or why there are none."""
    n = experiment.realizations
    if one is None:
        cost = experiment.cost
        return "none" if cost is None else f"none, takes {format_duration(cost * n)}"
    if not one.found.cells:
        return "no data"
    return str(n) if one.realizations == n else f"{one.realizations} of {n}"


def _tally_cells(tally: Counter[str]) -> list[Value]:
    """Return the cells of a row. They are empty if nothing is compared."""
    marks: list[Value] = [tally[mark] for mark in COMPARED]
    n = sum(tally[mark] for mark in COMPARED)
    full = [tally[f"all {mark}"] for mark in COMPARED]
    wins: list[Value] = [tally[word] for word in ("kept", "lost", "reversed")]
    return [
        *(marks if n else [None] * 3),
        _percent(tally["="], n),
        _percent(tally["placebos ="], tally["placebos"]),
        *(tally[mark] or None for mark in UNSOUND.values()),
        " / ".join(map(str, full)) if any(full) else None,
        *(wins if any(wins) else [None] * 3),
    ]


def _percent(count: int, of: int) -> str | None:
    return f"{100 * count / of:.0f}" if of else None
