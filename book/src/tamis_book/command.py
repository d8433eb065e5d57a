"""The command ``tamis reproduce``, which tamis finds through an entry point.

The implementation is imported lazily, so that ``tamis --help`` stays fast.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import typer

from tamis.cli.options import Options, add_command, argument, check_processes, flag, option


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(Options):
    """Reproduce published tables, and print our numbers next to the published ones.

    tamis reproduce --list

    tamis reproduce --summary

    tamis reproduce thesis-3.1 --realizations 10 --jobs 2

    tamis reproduce thesis-5.10 --store wine.sqlite

    tamis reproduce mine.toml --output mine.csv --output mine.tex --report mine.html
    """

    command: ClassVar[str] = "reproduce"

    experiments: list[str] = argument("Experiments (see --list) or *.toml files.", "NAME", ())
    list_names: bool = flag("List all experiments.", "--list")
    summary: bool = flag("Summarise the stored results (of all, or of NAME).", "--summary")
    everything: bool = flag("Run all experiments.", "--all")
    realizations: int | None = option(
        "Number of realizations (published number by default).", "N", min=1
    )
    jobs: int | None = option("Number of processes.", "N", callback=check_processes)
    dask: str | None = option("Dask scheduler to run on; local: this machine.", "ADDRESS")
    store: Path | None = option("Store of finished tasks, to resume from.", "FILE")
    tune: bool = flag("Tune hyper-parameters as published.", "--tune")
    output: list[Path] = option(
        "Write tables: *.csv, *.md, *.tex or *.json; repeatable.", "FILE", "--output", "-o",
        default=(),
    )  # fmt: skip
    report: Path | None = option("Write an HTML report of the experiment: *.html.", "FILE")
    folder: Path | None = option("Write reports, tables and charts to this folder.", "FOLDER")
    quiet: bool = flag("Print no progress.", "--quiet", "-q")


def _reproduce(asked: ReproduceOptions) -> None:
    from tamis_book.terminal import run_reproduce

    run_reproduce(asked)


app = typer.Typer(add_completion=False)
add_command(app, ReproduceOptions, _reproduce)
