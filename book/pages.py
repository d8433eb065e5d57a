"""Pages of the book: the results of every experiment, read from files.

``book/results`` has a file for each experiment that ``make book`` has run, and
``book/waiting.toml`` a sentence for each of the others. The pages are written whenever the
documentation is built.
"""

import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

from tamis._format import format_count, format_p_value
from tamis.report.charts.style import LIGHT
from tamis.report.svg import to_svg
from tamis_book.cells import Cell, interval
from tamis_book.chart import cells_of, draw_published
from tamis_book.experiment import Experiment
from tamis_book.files import experiments
from tamis_book.layout import SIGNS, digits_of
from tamis_book.report import ReproductionReport, reproduced
from tamis_book.reproduction import Reproduction
from tamis_book.result_files import ENDING, StoredReproduction, load_results

BOOK = Path(__file__).parent
RESULTS = BOOK / "results"
#: Greatest number of charts on a page, and their width and height in pixels.
DRAWN, WIDTH, HEIGHT = 6, 480, 230
#: Greatest number of tests on a page. Files of ``tamis reproduce`` have all of them.
TESTED = 40
#: Publications by the prefix of the experiments' names, in the order of the book.
DOCUMENTS = {
    "fspp": "Sensitivity of posterior probabilities (Shen and others 2008)",
    "thesis": "Feature selection and model selection (Yang 2011)",
    "svr": "Support vector regression (Yang and Ong 2010)",
    "gates": "Gated networks (Varshney 2019)",
    "": "Other experiments",
}
MARKS = {"=": "agree", "+": "better", "-": "worse", "?": "unsound"}


def results_path(name: str) -> Path:
    """Return the file of the results of an experiment."""
    return RESULTS / f"{name}{ENDING}"


def waiting() -> dict[str, str]:
    """Return why experiments have no results, by name."""
    return tomllib.loads((BOOK / "waiting.toml").read_text(encoding="utf-8"))


def write_book(folder: Path) -> None:
    """Write a page for each experiment, and an index."""
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    stored = {one.name: _stored(one) for one in experiments()}
    for experiment in experiments():
        page = _page(experiment, stored[experiment.name], folder / "pictures")
        _replace(folder / f"{experiment.name}.rst", page)
    _replace(folder / "index.rst", _index(stored))


def _stored(experiment: Experiment) -> StoredReproduction | None:
    path = results_path(experiment.name)
    return load_results(path, experiment) if path.is_file() else None


def _replace(path: Path, text: str) -> None:
    """Write a page if it has changed, so that unchanged pages are not built again."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _index(stored: dict[str, StoredReproduction | None]) -> str:
    """Return the index: how our numbers compare, for each publication."""
    done = [one for one in stored.values() if one is not None]
    total = _counts(one.found for one in done)
    sound = sum(total[mark] for mark in "=+-")
    lines = [
        *_heading("The book of results", "="),
        "These pages show the results of all experiment files, with the published number of "
        "realizations if the computation did not take too long. They are made from the scores "
        f"that ``make book`` saved. {len(done)} of {len(stored)} experiments are computed so far. "
        f"They have {sound} published numbers that can be right: {total['=']} do not differ "
        f"significantly from ours, ours are better in {total['+']} and worse in {total['-']}. "
        f"{total['?']} published numbers cannot be right, and their pages explain why.",
        "",
        "Each page has our numbers with a 95 % interval, the published ones in brackets, charts of "
        "both, and the settings. Published numbers and formulas that are wrong have "
        ":doc:`a page of their own <../unsound>`.",
        "",
        "The numbers of a table share their splits. With few test rows, all of them may be above "
        "or below the published ones together: a column of ``-`` is one finding, not several.",
        "",
    ]
    for begin, title in DOCUMENTS.items():
        mine = {name: one for name, one in stored.items() if _document(name) == begin}
        rows = [_index_row(name, one) for name, one in mine.items()]
        heads = ("page", "realizations", *MARKS.values())
        lines += [*_heading(title, "-"), *_table(heads, rows, "64 12 6 6 6 6")]
        lines += [".. toctree::", "   :hidden:", "", *(f"   {name} <{name}>" for name in mine), ""]
    return "\n".join(lines)


def _document(name: str) -> str:
    return next(begin for begin in DOCUMENTS if name.startswith(begin))


def _counts(several: Iterable[Reproduction]) -> dict[str, int]:
    marks = [cell.mark for found in several for cell in found.cells]
    return {mark: marks.count(mark) for mark in MARKS}


def _index_row(name: str, one: StoredReproduction | None) -> list[str]:
    if one is None or not one.found.cells:
        return [f":doc:`{name}`", "none yet" if one is None else "no data", *[""] * len(MARKS)]
    counts = _counts([one.found])
    published = any(counts.values())
    numbers = [str(count) if published else "" for count in counts.values()]
    of = one.found.experiment.realizations
    n = str(one.realizations) if one.realizations == of else f"{one.realizations} of {of}"
    return [f":doc:`{name}`", n, *numbers]


def _page(experiment: Experiment, one: StoredReproduction | None, pictures: Path) -> str:
    lines = _heading(_plain(f"{experiment.name}: {experiment.title}"), "=")
    if experiment.source:
        lines += [f"*{_plain(experiment.source)}.*", ""]
    if one is None:
        lines += [_plain(waiting().get(experiment.name, "Not computed yet.")), ""]
        lines += [*_notes([*experiment.unsound.items()], experiment.notes), *_computed(experiment)]
        return "\n".join(lines)
    report = reproduced(one.found)
    if one.found.cells:
        lines += [_plain(report.lead), ""]
    if not one.is_current:
        lines += ["The experiment file has changed since this was computed.", ""]
    for care in report.cares:
        fact = care.fact.partition(". ")[0].rstrip(".")  # the first sentence
        lines += [_plain(f"{fact}. {care.consequence}"), ""]
    lines += _numbers(report) + _pictures(report, pictures) + _tests(report)
    lines += _notes([], report.notes) + _computed(experiment, one)
    return "\n".join(lines)


def _numbers(report: ReproductionReport) -> list[str]:
    experiment = report.found.experiment
    if not report.tables:
        return []
    lines = [*_heading("Numbers", "-"), _plain(_legend(report)), ""]
    for table in report.tables:
        lines += [f"**{_plain(table.title)}**", ""] if table.title else []
        heads = [_plain(name) for name in (*table.labels, *table.heads)]
        rows = [
            [*map(_plain, labels), *(_lines(cell_lines(cell, experiment)) for cell in cells)]
            for labels, cells in table.rows
        ]
        lines += _table(heads, rows)
    return lines


def _legend(report: ReproductionReport) -> str:
    """Return the sentences that explain the cells."""
    experiment, cells = report.found.experiment, report.found.cells
    ours = "Our range"
    if experiment.agreement != "range":
        ours = "Our number with a 95 % interval"
    if not report.found.is_published:
        return f"{ours}. No numbers are published."
    rule = "the difference is not significant"
    if experiment.is_range:
        rule = "the published number lies within our range"
    if not isinstance(experiment.agreement, str):
        rule = f"the difference is at most {experiment.agreement:g}"
    legend = (
        f"{ours}, and below it the published number. =: {rule}; +: ours is better; -: ours is "
        "worse; ?: the published number cannot be right."
    )
    if any(cell.published_sign is not None for cell in cells):
        legend += f" {SIGNS.format(experiment.reference)}."
    return legend


def cell_lines(cell: Cell | None, experiment: Experiment) -> list[str]:
    """Return two lines: ours with its interval; the published number with mark and signs."""
    if cell is None:
        return []
    digits, ends = digits_of(experiment), interval(experiment, cell)
    low, high = (f"{end:.{digits}f}" for end in ends)
    lines = [f"{cell.ours:.{digits}f}"]
    if experiment.agreement == "range":
        lines = [f"{low} to {high}"]
    elif experiment.metric in ("hit", "stability"):
        lines[0] += f" [{low}, {high}]"
    elif cell.n_realizations > 1:
        lines[0] += f" ± {ends[1] - cell.ours:.{digits}f}"
    if cell.published is not None:
        lines.append(f"({cell.published:.{digits}f}) {cell.mark}")
    if cell.published_sign is not None:  # other tests are in their own table
        lines[-1] += f" {cell.sign or '.'}/{cell.published_sign or '.'}"
    return lines


def _pictures(report: ReproductionReport, folder: Path) -> list[str]:
    if not report.found.parts:
        return []
    name = report.found.experiment.name
    lines = _heading("Charts", "-")
    lines += ["Our numbers are filled dots or lines, published ones hollow dots or dashed.", ""]
    for number, part in enumerate(report.found.parts[:DRAWN], 1):
        cells = cells_of(report.found, part)
        chart = draw_published(cells, report.found.experiment, LIGHT, WIDTH, HEIGHT)
        _replace(folder / f"{name}-{number}.svg", to_svg(chart))
        lines += [f".. figure:: pictures/{name}-{number}.svg", f"   :alt: {_plain(part)}", ""]
        lines += [f"   {_plain(part)}", ""]
    if (left := len(report.found.parts) - DRAWN) > 0:
        lines += [f"The tables above have {format_count(left, 'more part')}.", ""]
    return lines


def _tests(report: ReproductionReport) -> list[str]:
    if not report.tests:
        return []
    scale = report.found.experiment.scale
    ordered = sorted(report.tests, key=lambda test: test[1].p_adjusted)[:TESTED]
    rows = [
        [
            _plain(part),
            _plain(f"{one.reference} - {one.method}"),
            "" if one.size is None else str(one.size),
            f"{scale * (one.reference_mean - one.method_mean):.3g}",
            format_p_value(one.p_value),
            format_p_value(one.p_adjusted),
        ]
        for part, one in ordered
    ]
    first = f" The {TESTED} smallest of {len(report.tests)}." if len(report.tests) > TESTED else ""
    title = "Corrected t-tests over the realizations; p-values adjusted by Holm's rule." + first
    heads = ("part", "methods", "columns", "difference", "p", "adjusted p")
    return [*_heading("Tests", "-"), title, "", *_table(heads, rows)]


def _notes(unsound: Sequence[tuple[str, str]], notes: Iterable[str]) -> list[str]:
    """Return the notes of the file, and why published numbers are wrong."""
    notes = [*(f"? {name}: {why}" for name, why in unsound), *notes]
    return [*_heading("Notes", "-"), *(f"* {_plain(note)}" for note in notes), ""] if notes else []


def _computed(experiment: Experiment, one: StoredReproduction | None = None) -> list[str]:
    lines = [*_heading("Settings", "-"), ".. code-block:: console", ""]
    lines += [f"   $ tamis reproduce {experiment.name}", ""]
    if one is not None:
        versions = ", ".join(f"{name} {v}" for name, v in one.versions.items())
        lines += [
            f"{format_count(one.realizations, 'realization')} with seed {one.seed}, computed on "
            f"{one.made.day} {one.made:%B %Y} with {versions}. Fitting took "
            f"{_format_time(one.seconds)} on a busy computer.",
            "",
        ]
    texts = {**experiment.all_methods, **experiment.baselines, **experiment.estimators}
    lines += [".. code-block:: text", "", *(f"   {name} = {text}" for name, text in texts.items())]
    return [*lines, ""]


def _format_time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def _heading(text: str, line: str) -> list[str]:
    return [text, line * len(text), ""]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], widths: str = "auto") -> list[str]:
    lines = [
        ".. list-table::",
        "   :header-rows: 1",
        f"   :widths: {widths}",
        "   :class: book",
        "",
    ]
    for row in (heads, *rows):
        first, *rest = (cell or "\\ " for cell in row)
        lines += [f"   * - {first}", *(f"     - {cell}" for cell in rest)]
    return [*lines, ""]


def _lines(lines: Sequence[str]) -> str:
    """Return the lines of a cell as a line block."""
    return "\n       ".join(f"| {_plain(line)}" for line in lines)


def _plain(text: str) -> str:
    """Return a text with escaped markup."""
    return re.sub(r"([\\*`|_])", r"\\\1", " ".join(str(text).split()))


__all__ = ["cell_lines", "results_path", "waiting", "write_book"]
