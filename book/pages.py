"""Pages of the book: the results of every experiment, read from files.

``tamis_book/results`` has a file for each experiment that ``make book`` has run. The pages are
written whenever the documentation is built.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tamis._format import format_count, format_p_value
from tamis.report.charts.style import LIGHT, PADDING
from tamis.report.svg import to_svg
from tamis_book.cells import COMPARED, Cell, interval, mark_words, win_of
from tamis_book.chart import cells_of, draw_published
from tamis_book.experiment import UNSOUND, Experiment, unsound_mark
from tamis_book.files import experiments
from tamis_book.layout import SIGNS, SUMMARY_LEGEND, digits_of, summarize
from tamis_book.report import ReproductionReport, reproduced
from tamis_book.result_files import StoredReproduction, stored_results

BOOK = Path(__file__).parent
#: Greatest number of charts on a page, and their width and height in pixels.
DRAWN, WIDTH, HEIGHT = 6, 480, 230
#: Greatest number of tests on a page. Files of ``tamis reproduce`` have all of them.
TESTED = 40
#: Figures of a publication without numbers, drawn from our runs by ``docs.thesis_pictures``.
FIGURES = {
    "thesis-4.1": {
        "4.1": "Density of the target at a row, and with the only column permuted (figure 4.1)."
    },
    "thesis-6.3": {
        "1.4": "Validation error on sonar for every lambda (figure 1.4).",
        "6.1": "Multipliers and outputs between breakpoints, on sonar (figure 6.1).",
        "6.2": "Cross-validated error on svmguide3 for every lambda (figure 6.2).",
    },
}
#: Shares that the index quotes, and what they are shares of.
SHARES = {"placebos =": "placebos", "far =": "far", "far placebos =": "far"}
WINS = ("kept", "lost", "reversed")
#: Publications by the prefix of the experiments' names, in the order of the book.
DOCUMENTS = {
    "fspp": "Sensitivity of posterior probabilities (Shen and others 2008)",
    "thesis": "Feature selection and model selection (Yang 2011)",
    "svr": "Support vector regression (Yang and Ong 2010)",
    "gates": "Gated networks (Varshney 2019)",
    "": "Other experiments",
}


def write_book(folder: Path) -> None:
    """Write a page for each experiment, and an index."""
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    stored = [(one, stored_results(one)) for one in experiments()]
    for experiment, one in stored:
        page = _page(experiment, one, folder / "pictures")
        _replace(folder / f"{experiment.name}.rst", page)
    _replace(folder / "index.rst", _index(stored))


def _replace(path: Path, text: str) -> None:
    """Write a page if it has changed, so that unchanged pages are not built again."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _index(stored: Sequence[tuple[Experiment, StoredReproduction | None]]) -> str:
    """Return the index: a table of all experiments, and the totals as text."""
    total = total_tally(one for _, one in stored)
    computed = [one for _, one in stored if one is not None]
    no_data = [one.found.experiment.name for one in computed if not one.found.cells]
    lines = [
        *_heading("The book of results", "="),
        f"These pages show the results of {len(stored)} experiment files. "
        f"{len(computed) - len(no_data)} are computed, and {len(no_data)} lack their data "
        f"({', '.join(no_data)}).",
        "",
        *(f"* {sentence}" for sentence in describe_totals(total)),
        "",
        "Each page has our numbers with a 95 % interval, the published ones in brackets, charts of "
        "both, and the settings. Published numbers and formulas that are wrong have "
        ":doc:`a page of their own <../unsound>`. :doc:`../sources` lists the pages by chapter and "
        "formula.",
        "",
        "The numbers of a table share their splits. With few test rows, all of them may be above "
        "or below the published ones together: a column of ``-`` is one finding, not several.",
        "",
        ".. code-block:: console",
        "",
        "   $ tamis reproduce --summary",
        "",
        *_legend_items(SUMMARY_LEGEND),
        "",
    ]
    for begin, title in (*DOCUMENTS.items(), (None, "All experiments")):
        mine = [pair for pair in stored if begin in (None, _document(pair[0].name))]
        sheet = summarize(mine)
        *rows, last = sheet.texts()
        if begin is None:  # the rows of all publications are above
            rows = []
        shown = [[f":doc:`{name}`", *rest] for name, *rest in rows] + [last]
        lines += [*_heading(title, "-"), *_table(sheet.headings, shown)]
        if begin is not None:
            names = [experiment.name for experiment, _ in mine]
            lines += [".. toctree::", "   :hidden:", ""]
            lines += [*(f"   {name} <{name}>" for name in names), ""]
    return "\n".join(lines)


def _legend_items(legend: str) -> list[str]:
    """Return the sentences of a legend as a list, with the explained words in italics."""
    sentences = re.split(r"(?<=\.) (?=[a-z])", _plain(legend))
    return [f"* *{words}*:{rest}" for words, _, rest in (one.partition(":") for one in sentences)]


def total_tally(several: Iterable[StoredReproduction | None]) -> Counter[str]:
    """Return the counts of all stored results."""
    total: Counter[str] = Counter()
    for one in several:
        if one is not None:
            total.update(one.found.tally())
    return total


def describe_totals(total: Counter[str]) -> list[str]:
    """Return sentences about the counts of all experiments."""
    compared = sum(total[mark] for mark in COMPARED)
    full = {mark: total[f"all {mark}"] for mark in COMPARED}
    share = {k: f"{100 * total[k] / max(total[of], 1):.0f} %" for k, of in SHARES.items()}
    return [
        f"{compared} published numbers are compared: {total['=']} do not differ "
        f"significantly from ours, our error is lower in {total['+']} and higher in {total['-']}.",
        f"{sum(full.values())} more are of models on all columns, without a selection: "
        f"{full['=']} agree, our error is lower in {full['+']} and higher in {full['-']}.",
        f"{sum(total[mark] for mark in UNSOUND.values())} are not compared: {total['!']} are "
        f"impossible, {total['?']} depend on settings that are not specified, and {total['~']} are "
        "contradicted by the same publication.",
        "Agreement alone proves little. Our numbers also agree with "
        f"{share['placebos =']} of the published numbers of *other* methods in the same row, a "
        "placebo. If the two published numbers differ by more than the reach of the comparison, "
        f"our number agrees with its own in {share['far =']} and with the placebo in "
        f"{share['far placebos =']}.",
        f"Of {sum(total[word] for word in WINS)} published significant differences between "
        f"methods, {total['kept']} come out in our results, {total['lost']} do not, and "
        f"{total['reversed']} are reversed.",
    ]


def _document(name: str) -> str:
    return next(begin for begin in DOCUMENTS if name.startswith(begin))


def _page(experiment: Experiment, one: StoredReproduction | None, pictures: Path) -> str:
    lines = _heading(_plain(f"{experiment.name}: {experiment.title}"), "=")
    if experiment.source:
        lines += [f"*{_plain(experiment.source)}.*", ""]
    if one is None:
        lines += ["Not computed yet.", ""]
        reasons = [f"{unsound_mark(why)} {name}: {why}" for name, why in experiment.unsound.items()]
        lines += _figures(experiment) + _notes([*reasons, *experiment.notes])
        lines += _computed(experiment)
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
    lines += _wins(one) + _figures(experiment) + _notes(report.notes)
    lines += _computed(experiment, one)
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
        return f"{ours}. No published numbers are included."
    rule = "the difference is not significant"
    if experiment.is_range:
        rule = "the published number lies within our range"
    if not isinstance(experiment.agreement, str):
        rule = f"the difference is at most {experiment.agreement:g}"
    words = mark_words(experiment)
    legend = (
        f"{ours}, and below it the published number. =: {rule}; +: ours is {words['+']}; -: ours "
        f"is {words['-']}. Not compared: ! impossible, ? not specified, ~ contradicted."
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
        _replace(folder / f"{name}-{number}.svg", to_svg({"padding": PADDING, **chart}))
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


def _figures(experiment: Experiment) -> list[str]:
    lines = []
    for number, caption in FIGURES.get(experiment.name, {}).items():
        lines += [f".. figure:: ../_static/book/figure-{number}.svg", "", f"   {caption}", ""]
    return [*_heading("Figures", "-"), *lines] if lines else []


def _wins(one: StoredReproduction) -> list[str]:
    """Return how many published differences between methods come out, and which are reversed."""
    tally = one.found.tally()
    if not (n := sum(tally[word] for word in WINS)):
        return []
    sentence = (
        f"{format_count(n, 'published significant difference')} between "
        f"{one.found.experiment.reference} and another method: {tally['kept']} come out in our "
        f"results, {tally['lost']} do not, {tally['reversed']} are reversed."
    )
    reversed_at: dict[str, list[str]] = {}
    for cell in one.found.cells:
        if cell.mark in COMPARED and win_of(cell) == "reversed":
            reversed_at.setdefault(f"{cell.method} ({cell.part})", []).append(str(cell.size))
    if reversed_at:
        several = (f"{name} with {', '.join(sizes)} columns" for name, sizes in reversed_at.items())
        sentence += f" Reversed: {'; '.join(several)}."
    return [*_heading("Who wins", "-"), _plain(sentence), ""]


def _notes(notes: Sequence[str]) -> list[str]:
    """Return the notes of the file, and why published numbers are not compared."""
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


__all__ = ["cell_lines", "describe_totals", "total_tally", "write_book"]
