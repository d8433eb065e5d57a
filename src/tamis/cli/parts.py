"""``tamis select`` of a table that is read in blocks of rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from re import sub
from typing import Any, NamedTuple, Protocol

import polars as pl

from tamis._arrays import target_kind
from tamis._format import format_names
from tamis._parallel import cluster_client
from tamis.contract import Parts, Record, TableInParts
from tamis.contract.cost import free_memory
from tamis.contract.drawn import RowDraw
from tamis.contract.target_labels import TargetLabels
from tamis.datasets.memory import NUMBER
from tamis.exceptions import InvalidParameter, InvalidTable
from tamis.table import Alert
from tamis.table.files import FileTable
from tamis.table.parts import ClusterParts, Parquet
from tamis.table.parts.sources import draw_rows
from tamis.table.target import check_column, spoken_task

#: Copies of a table that a selection makes which holds it at once: what was read, the numbers, and
#: the standardised ones or their levels.
COPIES = 3


class PartsRequest(Protocol):
    """What is asked of the command, as far as it matters here."""

    @property
    def file(self) -> Path: ...
    @property
    def method(self) -> str | None: ...
    @property
    def target(self) -> str | None: ...
    @property
    def drop(self) -> tuple[str, ...]: ...
    @property
    def task(self) -> str: ...
    @property
    def dask(self) -> str | None: ...
    @property
    def format(self) -> str | None: ...
    @property
    def n_jobs(self) -> int | None: ...
    @property
    def resume(self) -> Path | None: ...
    @property
    def seed(self) -> int: ...


class LabelledParts(NamedTuple):
    """Features and target of a table in blocks of rows, as :class:`LabelledTable` has them."""

    X: Parts
    table: TableInParts
    target: str
    task: str
    y: None = None

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return list(self.table.names or ())

    def __str__(self) -> str:
        n, d = self.table.shape
        told = spoken_task(self.table.labels.values, self.task)
        return f"{n} rows in blocks, {d} columns, target {self.target} ({told})"


def is_read_in_parts(asked: PartsRequest) -> bool:
    """Whether a table is a folder, lies elsewhere, or cannot be held with what is made of it."""
    where = place(asked.file)
    if asked.format not in (None, "parquet"):
        return False
    if asked.dask is not None or "://" in where or asked.file.is_dir():
        return True
    if asked.file.suffix.lower() != ".parquet" or not asked.file.is_file():
        return False
    free = free_memory()
    if free is None:
        return False
    from pyarrow import ArrowException
    from pyarrow.parquet import read_metadata

    try:
        footer = read_metadata(where)
    except (ArrowException, OSError):
        return False  # what reads it at once has the sentence
    return bool(COPIES * NUMBER * footer.num_rows * footer.num_columns > free)


def place(file: Path) -> str:
    """A path as it was written: an address has lost a slash, one of this machine two.

    >>> place(Path("s3://bucket/visits")), place(Path("file:///data/visits"))
    ('s3://bucket/visits', 'file:///data/visits')
    """
    here = sub(r"^(file|local):/(?!/)", r"\1:///", str(file))
    return sub(r"^(\w{2,}):/(?!/)", r"\1://", here)


def is_automatic(asked: PartsRequest) -> bool:
    """Whether what is asked for chooses its method itself."""
    if asked.method is not None or asked.resume is None:
        return asked.method is None
    return "Auto(" in Record.load(asked.resume).expression


def drawn_table(asked: PartsRequest) -> tuple[FileTable, RowDraw | None]:
    """Rows for a selection that holds its table at once, and what they were drawn from."""
    if asked.dask is not None:
        raise InvalidParameter(
            "--dask has workers learn from all rows, but the automatic selection looks at some "
            "thousand of them, here. Leave it out, or name a METHOD, such as mrmr."
        )
    rows = draw_rows(place(asked.file), seed=asked.seed)
    return FileTable(pl.DataFrame(rows.X)), rows.drawn


def drawn_alerts(drawn: RowDraw | None) -> tuple[Alert, ...]:
    """What to know of a table of which some rows are looked at."""
    if drawn is None:
        return ()
    sentence = (
        f"The table is large; {drawn}, are looked at, and all numbers are of these. To learn from "
        "all rows name a METHOD, such as mrmr."
    )
    return (Alert("sample", (), sentence),)


@contextmanager
def opened_parts(asked: PartsRequest, **options: Any) -> Iterator[LabelledParts]:
    """The table, read here or by the workers of a cluster, as long as that is there."""
    if asked.dask is None:
        yield labelled_parts(asked, None, **options)
        return
    with cluster_client(asked.dask, asked.n_jobs) as client:
        yield labelled_parts(asked, client, **options)


def labelled_parts(asked: PartsRequest, client: Any, **options: Any) -> LabelledParts:
    """The source that was asked for, and what its target holds."""
    for name, value in options.items():
        if value:
            raise InvalidParameter(
                f"--{name} needs the whole table at once, and {asked.file} is read in blocks of "
                "rows. Leave it out."
            )
    where = place(asked.file)
    known = Parquet(where).names
    if asked.target is None:
        raise InvalidTable(
            f"Which column is the target? Write --target with one of {format_names(known[::-1])}."
        )
    for name in asked.drop:
        check_column(name, known)
    left = [name for name in known if name not in asked.drop]
    files = Parquet(where, target=asked.target, columns=left)
    source: Parts = files if client is None else ClusterParts(files, client)
    labels = source.reduce(TargetLabels("tamis select"), target_only=True)
    task = target_kind(labels.values) if asked.task == "auto" else asked.task
    table = TableInParts(source, labels, "tamis select")
    return LabelledParts(source, table, str(asked.target), task)
