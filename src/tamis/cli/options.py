"""The options that several commands have, written once: what they are called and what they say."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tamis.table.formats import FORMATS


class TaskOption(StrEnum):
    """How to read the target."""

    auto = "auto"
    classification = "classification"
    regression = "regression"


#: Rows of a ranking that a terminal shows at once.
ROWS = 30


def _processes(asked: int | None) -> int | None:
    if asked == 0:
        raise typer.BadParameter("needs a number of processes, or -1 for all cores, not 0.")
    return asked


Jobs = Annotated[
    int | None,
    typer.Option(
        metavar="N", callback=_processes, help="Number of processes, where several can be used."
    ),
]

# what a table is

Target = Annotated[str | None, typer.Option("--target", "-t", metavar="COLUMN", help="The target.")]
Task = Annotated[
    TaskOption, typer.Option(metavar="TASK", help="classification, regression or auto.")
]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Leave this column out; may be given again."),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN", help="Use it though it looks like an id or a code of the target."
    ),
]
Fixed = Annotated[
    list[str] | None,
    typer.Option(metavar="A,B", help="Columns or groups that are always kept."),
]
Calendar = Annotated[
    bool,
    typer.Option("--calendar", help="Add month, day, weekday and hour of dates as columns."),
]
Format = Annotated[
    str | None, typer.Option(metavar="NAME", help=f"The format: {', '.join(FORMATS)}.")
]
Header = Annotated[bool, typer.Option(help="Whether a CSV file has names on top.")]

# how work is done

Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Where random draws start.")]
Cluster = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Dask scheduler to run on; local: this machine."),
]

# what is written and said

Outputs = Annotated[
    list[Path] | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="*.csv, *.md, *.tex or *.json; again for more."
    ),
]
SafeCsv = Annotated[
    bool,
    typer.Option(help="Write ' before names in *.csv that spreadsheets would run as formulas."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Neither progress nor notes.")]
