"""The command ``tamis reproduce``, which tamis finds by an entry point.

What it does is imported when it runs: ``tamis --help`` has no use for it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import typer

from tamis.cli.options import Options, add_command, argument, check_processes, flag, option


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(Options):
    """Compute published tables again, and print ours next to the published numbers.

    tamis reproduce --list

    tamis reproduce thesis-3.1 --realizations 10 --jobs 2

    tamis reproduce thesis-5.10 --store wine.sqlite

    tamis reproduce mine.toml --output mine.csv --output mine.tex --report mine.html
    """

    command: ClassVar[str] = "reproduce"

    experiments: list[str] = argument("Experiments, see --list; or *.toml.", "NAME...", ())
    list_names: bool = flag("List the names.", "--list")
    everything: bool = flag("Run all of them.", "--all")
    realizations: int | None = option("Number of realizations (as published).", "N", min=1)
    jobs: int | None = option("Number of processes.", "N", callback=check_processes)
    dask: str | None = option("Dask scheduler to run on; local: this machine.", "ADDRESS")
    store: Path | None = option("Keep finished tasks here, and go on from them.", "FILE")
    tune: bool = flag("Choose hyper-parameters as published.", "--tune")
    output: list[Path] = option(
        "*.csv, *.md, *.tex or *.json; may be repeated.", "FILE", "--output", "-o", default=()
    )
    report: Path | None = option("Write an HTML report of the experiment: *.html.", "FILE")
    folder: Path | None = option("Write reports, tables and charts of all there.", "FOLDER")
    quiet: bool = flag("Print no progress.", "--quiet", "-q")


def _reproduce(asked: ReproduceOptions) -> None:
    from tamis_book.terminal import run_reproduce

    run_reproduce(asked)


app = typer.Typer(add_completion=False)
add_command(app, ReproduceOptions, _reproduce)
