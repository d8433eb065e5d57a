"""What ``tamis select`` is asked for, and the line that asks for it again."""

from pathlib import Path
from typing import Any, NamedTuple

from tamis.cli.answer import command_of, folder_name
from tamis.cli.options import ROWS
from tamis.cli.parts import place
from tamis.exceptions import InvalidParameter
from tamis.table.sources import STDIN


class Request(NamedTuple):
    """The arguments of the command."""

    file: Path
    method: str | None
    target: str | None
    n_features_to_select: str | None
    drop: tuple[str, ...]
    keep: tuple[str, ...]
    dry_run: bool
    task: str
    output: Path | None
    rows: int
    seed: int
    n_jobs: int | None
    save_record: Path | None
    resume: Path | None
    format: str | None
    header: bool
    safe_csv: bool
    calendar: bool = False
    groups: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    time: str | None = None
    event: str | None = None
    folder: Path | None = None
    force: bool = False
    report: bool = False
    resamples: int | None = None
    budget: str | None = None
    scoring: str | None = None
    cv: str | None = None
    row_groups: str | None = None
    weights: str | None = None
    class_weight: str | None = None
    quiet: bool = False
    json: bool = False
    dask: str | None = None
    device: str | None = None

    @property
    def answer_folder(self) -> Path | None:
        """Where a whole answer is written, None where only files that are named are."""
        if self.folder is not None:
            return self.folder
        own = folder_name(self.file)
        if self.method is None and self.resume is not None:
            begun = self.resume.parent.name.startswith(own.name)  # an answer that Ctrl-C stopped
            return self.resume.parent if begun else None
        return own if self.report or self.method is None else None

    def command(self, **others: Any) -> str:
        """What to write for the same, with other options where these are given."""
        asked = {
            "": (place(self.file), self.method),
            "--target": self.target,
            "--time": self.time,
            "--event": self.event,
            "--features": self.n_features_to_select,
            "--drop": self.drop,
            "--keep": self.keep,
            "--calendar": self.calendar,
            "--group": self.groups,
            "--fixed": self.fixed,
            "--task": None if self.task == "auto" else self.task,
            "--seed": self.seed or None,
            "--jobs": self.n_jobs,
            "--budget": self.budget,
            "--scoring": self.scoring,
            "--cv": self.cv,
            "--groups": self.row_groups,
            "--weights": self.weights,
            "--class-weight": self.class_weight,
            "--dask": self.dask,
            "--device": self.device,
            "--report": self.report,
            "--resamples": self.resamples,
            "--output": self.output,
            "--save-record": self.save_record,
            "--resume": self.resume,
            "--folder": self.folder,
            "--format": self.format,
            "--no-header": not self.header,
            "--no-safe-csv": not self.safe_csv,
            "--rows": None if self.rows == ROWS else self.rows,
            "--force": self.force,
            "--quiet": self.quiet,
            "--json": self.json,
        }
        return command_of(asked | {f"--{name}": value for name, value in others.items()})

    @property
    def spoken(self) -> str:
        """What the file is called."""
        return "standard input" if str(self.file) == STDIN else self.file.name


def seconds_of(text: str) -> float:
    """``60``, ``60s``, ``5m`` or ``1h`` in seconds.

    >>> seconds_of("5m")
    300.0
    """
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1.0)
    try:
        seconds = float(number) * unit
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise InvalidParameter(f"--budget needs a time such as 60s, 5m or 1h, not {text!r}.")
    return seconds
