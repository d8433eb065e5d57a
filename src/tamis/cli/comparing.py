"""What ``tamis compare`` does: read tables, measure methods on resamples, print and write."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import typer

from tamis._format import format_names
from tamis.cli.answer import command_of
from tamis.cli.compared import print_compared, print_ranks
from tamis.cli.comparison_files import comparison_page, written
from tamis.cli.comparison_sheets import Compared
from tamis.cli.contest import (
    METHODS,
    MOST,
    Rules,
    contest,
    contestants,
    estimator_for,
    grid,
    is_file_word,
    joined_tables,
    metric_for,
)
from tamis.cli.counting import counted_bar
from tamis.cli.failing import INTERRUPTED
from tamis.cli.output import check_output, check_place, replace_file
from tamis.cli.printing import is_watched, say, say_alerts
from tamis.cli.running import feature_groups, names_in, stopping
from tamis.contract.units import resolve_units
from tamis.evaluation import Realizations, Results, Standings, standings
from tamis.exceptions import InvalidParameter, InvalidTable
from tamis.recipes import method as meaning
from tamis.report.standing_words import BASELINES, Failed
from tamis.table.files import read_file
from tamis.table.formats import EXTENSIONS
from tamis.table.rows import ResampledTable, resampled
from tamis.table.sources import STDIN
from tamis.table.table import Table, table_of

#: How a comparison can be written.
ENDINGS = (".csv", ".md", ".tex", ".json")
#: What ``--folder`` holds: every way of writing, a page, and the finished fits.
WRITTEN, KEPT = "comparison", "fits.sqlite"
#: What the command does where nobody says how many, which its line need not say again.
RESAMPLES, TEST_SHARE = 20, 0.25


class CompareRequest(NamedTuple):
    """The arguments of the command."""

    words: tuple[str, ...]
    target: str | None
    features: int | None
    estimator: str | None
    metric: str | None
    resamples: int
    test_share: float
    seed: int
    n_jobs: int | None
    cluster: str | None
    store: Path | None
    output: tuple[Path, ...]
    report: Path | None
    folder: Path | None
    force: bool
    drop: tuple[str, ...]
    keep: tuple[str, ...]
    task: str
    format: str | None
    header: bool
    safe_csv: bool
    quiet: bool
    calendar: bool = False
    groups: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()

    @property
    def files(self) -> list[Path]:
        """The words that are tables."""
        found = [word for word in self.words if is_file_word(word, tuple(EXTENSIONS))]
        if not found:
            first = f"{self.words[0]!r} is none" if self.words else "none was given"
            raise InvalidTable(
                f"tamis compare needs a table, and {first}. Write tamis compare data.csv --target "
                "y mrmr svm-rfe."
            )
        return [Path(word) for word in dict.fromkeys(found)]

    @property
    def methods(self) -> list[str]:
        """The words that are methods."""
        return [word for word in self.words if not is_file_word(word, tuple(EXTENSIONS))]

    @property
    def outputs(self) -> list[Path]:
        """Every file that is written at the end."""
        inside = [] if self.folder is None else [self.folder / f"{WRITTEN}{e}" for e in ENDINGS]
        return [*self.output, *inside]

    @property
    def pages(self) -> list[Path]:
        """Every page that is written at the end."""
        inside = [] if self.folder is None else [self.folder / f"{WRITTEN}.html"]
        return [*([] if self.report is None else [self.report]), *inside]

    def command(self) -> str:
        """What to write for the same."""
        return command_of(
            {
                "": self.words,
                "--target": self.target,
                "--features": self.features,
                "--estimator": self.estimator,
                "--metric": self.metric,
                "--resamples": None if self.resamples == RESAMPLES else self.resamples,
                "--test-share": None if self.test_share == TEST_SHARE else self.test_share,
                "--seed": self.seed or None,
                "--drop": self.drop,
                "--keep": self.keep,
                "--calendar": self.calendar,
                "--task": None if self.task == "auto" else self.task,
                "--format": self.format,
                "--no-header": not self.header,
            },
            "compare",
        )

    @property
    def kept(self) -> Path | None:
        """Where finished fits are kept."""
        if self.store is not None or self.folder is None:
            return self.store
        return self.folder / KEPT


def run_compare(asked: CompareRequest) -> None:
    """Compare methods as asked; what cannot be read or written is refused before any work."""
    files = asked.files
    for path in asked.output:
        check_output(path, files[0], endings=ENDINGS)
    check_output(asked.report, files[0], endings=(".html",))
    _check_folder(asked)
    for text in asked.methods:
        if text != "auto":
            meaning(text)
    tables = {file: _table(asked, file) for file in files}
    if asked.folder is not None:
        asked.folder.mkdir(parents=True, exist_ok=True)
    found: list[Compared] = []
    measured: list[Results] = []
    for file, table in tables.items():
        watched = is_watched(quiet=asked.quiet)
        if watched:
            say_alerts(table.alerts)
        rules, results, failed = _compared(asked, _name(file, files), table)
        if not (asked.quiet or watched):
            say_alerts(table.alerts)
        measured.append(results)
        found.append(Compared(_name(file, files), table.target or "", rules, failed, table.alerts))
    standing = standings(joined_tables(measured), baselines=BASELINES)
    _check_some(found, standing)
    for one in found:
        print_compared(one, standing, several=len(found) > 1)
    if len(found) > 1:
        print_ranks(standing)
    for path in asked.outputs:
        replace_file(path, written(path.suffix.lower(), found, standing, safe=asked.safe_csv))
    if asked.pages:
        page = comparison_page(found, standing, asked.command())
        for path in asked.pages:
            replace_file(path, page)
    if not asked.quiet:
        _say_where(asked)


def _check_some(found: Sequence[Compared], standing: Standings) -> None:
    """Refuse to compare methods of which none could be measured."""
    if all(row.method in BASELINES for row in standing.rows):
        first = next(failed for one in found for failed in one.failed)
        raise InvalidParameter(f"No method could be measured. {first.method}: {first.sentence}")


def _check_folder(asked: CompareRequest) -> None:
    """Refuse a folder that holds another comparison, or cannot be made."""
    folder = asked.folder
    if folder is None:
        return
    check_place(folder)
    if (folder / f"{WRITTEN}.json").exists() and not asked.force:
        raise InvalidParameter(
            f"{folder} holds a comparison. Write --force to put another in its place, or give "
            "--folder another name."
        )


def _table(asked: CompareRequest, file: Path) -> Table:
    content = read_file(file, asked.format, header=asked.header)
    if asked.target is None and content.target is None:
        raise InvalidTable(
            "Which column is the target? Write --target with one of "
            f"{format_names(content.frame.columns[::-1])}."
        )
    name = "standard input" if str(file) == STDIN else file.name
    given = asked.target, asked.drop, asked.keep, asked.task
    return table_of(content, *given, name=name, calendar=asked.calendar)


def _name(file: Path, files: Sequence[Path]) -> str:
    """The name of a file, or its path where two have the same."""
    if str(file) == STDIN:
        return "standard input"
    return file.name if [f.name for f in files].count(file.name) == 1 else str(file)


def _compared(
    asked: CompareRequest, name: str, table: Table
) -> tuple[Rules, Results, tuple[Failed, ...]]:
    """The results on one table, and what failed there."""
    plain, task = table.is_plain, table.task
    data = table.labelled()
    source = resampled(name, data, plain=plain, keep=asked.keep)
    groups, fixed = feature_groups(asked.groups), names_in(asked.fixed) or None
    units = resolve_units("tamis compare", groups, fixed, len(data.names), data.names)
    most = min(MOST if asked.features is None else asked.features, units.n_units)
    rules = Rules(
        task=task,
        sizes=tuple(size for size in grid(most) if size >= len(units.fixed)) or (most,),
        estimator=estimator_for(asked.estimator, task),
        metric=metric_for(asked.metric, task),
        plan=Realizations(
            asked.resamples,
            train=1.0 - asked.test_share,
            stratify=task == "classification",
            seed=asked.seed,
        ),
        shape=(len(data.y), len(data.names)),
        spoken=str(data),
    )
    rules.plan.split(data.y, name, 0)  # which says what is wrong with the parts
    words = asked.methods or list(METHODS[task])
    methods, refused = contestants(words, data.y, task, units, most)
    if not methods:
        raise InvalidParameter(next(iter(refused.values())))
    results = _measured(asked, source, methods, rules)
    return rules, results, _failed(results, refused, words)


def _measured(asked: CompareRequest, table: ResampledTable, methods: Any, rules: Rules) -> Results:
    """The fits, with a bar; after Ctrl-C what is done is kept where there is a store."""
    name, how = table.source.name, {"n_jobs": asked.n_jobs, "cluster": asked.cluster}
    with counted_bar(f"comparing on {name}", "fits", quiet=asked.quiet) as bar:
        try:
            with stopping(bar):
                return contest(table, methods, rules, bar, store=asked.kept, **how)
        except KeyboardInterrupt:
            bar.stop = True
    _leave(asked, bar.done, bar.total)
    raise typer.Exit(INTERRUPTED)


def _leave(asked: CompareRequest, done: int, total: int) -> None:
    """Say what is kept, and how to go on."""
    if asked.kept is None:
        say(
            f"stopped after {done} of {total} fits; nothing is kept. With --store FILE, or "
            "--folder, the same command goes on where it was stopped."
        )
        return
    again = shlex.join(["tamis", *sys.argv[1:]])
    say(f"stopped after {done} of {total} fits; they are in {asked.kept}. To go on:", again)


def _failed(results: Results, refused: dict[str, str], words: Sequence[str]) -> tuple[Failed, ...]:
    """One line for each method that failed somewhere, with its first sentence."""
    found = [Failed(text, 0, sentence) for text, sentence in refused.items()]
    failures = [failure.method for failure in results.failures]
    for name in dict.fromkeys(failures):
        first = next(f.reason for f in results.failures if f.method == name)
        found.append(Failed(name, failures.count(name), first.partition(": ")[2] or first))
    return tuple(sorted(found, key=lambda one: [*words, *BASELINES].index(one.method)))


def _say_where(asked: CompareRequest) -> None:
    for path in asked.output:
        say(f"the comparison is in {path}.")
    if asked.report is not None:
        say(f"the page is {asked.report}.")
    if asked.folder is not None:
        say(
            f"the page is {asked.folder / WRITTEN}.html; CSV, Markdown, LaTeX and JSON are beside "
            "it."
        )
