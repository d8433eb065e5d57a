"""``tamis select`` for tables that are read in row blocks."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import polars as pl

from tamis._arrays import target_kind
from tamis._memory import NUMBER, free_memory
from tamis._parallel import cluster_client
from tamis.blocks import ClusterBlocks, Parquet
from tamis.blocks.dispatch import RowDraw, draw_rows
from tamis.blocks.labels import TargetLabels
from tamis.blocks.source import BlockSource
from tamis.blocks.table import BlockTable
from tamis.cli.options import SelectOptions, written_path
from tamis.cli.table import check_target
from tamis.contract import Record
from tamis.exceptions import InvalidParameter
from tamis.table import Alert
from tamis.table.files import FileTable
from tamis.table.target import check_column, describe_task

#: Number of copies of a table that a selection in memory makes: the columns of the file, their
#: numbers, and the standardised or discretised numbers. Larger tables are read in row blocks.
COPIES = 3
#: Options that need the whole table in memory.
IN_MEMORY = (
    "report",
    "folder",
    "time",
    "event",
    "dry_run",
    "groups",
    "weights",
    "calendar",
    "environments",
    "confirm",
)


class LabelledBlocks(NamedTuple):
    """Features and target of a table in row blocks, like :class:`LabelledTable`."""

    X: BlockSource
    table: BlockTable
    target: str
    task: str
    y: None = None

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return list(self.table.names or ())

    def __str__(self) -> str:
        n, d = self.table.shape
        task = describe_task(self.table.labels.values, self.task)
        return f"{n} rows in blocks, {d} columns, target {self.target} ({task})"


def is_read_in_blocks(asked: SelectOptions) -> bool:
    """Return whether the table is read in row blocks.

    There are four cases: the table is a folder, it is remote, it does not fit into memory, or
    ``--dask`` is given.
    """
    where = written_path(asked.file)
    if asked.format not in (None, "parquet") or asked.sheet or asked.encoding:
        return False
    if asked.dask is not None or "://" in where or asked.file.is_dir():
        return True
    free = free_memory()
    if asked.file.suffix.lower() != ".parquet" or not asked.file.is_file() or free is None:
        return False
    from pyarrow import ArrowException
    from pyarrow.parquet import read_metadata

    try:
        footer = read_metadata(where)
    except (ArrowException, OSError):
        return False  # the reader for whole files reports the error
    return bool(COPIES * NUMBER * footer.num_rows * footer.num_columns > free)


def is_automatic(asked: SelectOptions) -> bool:
    """Return whether the automatic selection is requested."""
    if asked.method is not None or asked.resume is None:
        return asked.method is None
    return "Auto(" in Record.load(asked.resume).expression


def draw_table(asked: SelectOptions) -> tuple[FileTable, RowDraw | None]:
    """Sample rows for a selection in memory. Return them with a description of the sample."""
    if asked.dask is not None:
        raise InvalidParameter(
            "--dask needs a METHOD that learns from all rows, but the automatic selection uses a "
            "sample of a few thousand rows. Leave --dask out, or name a METHOD, such as mrmr."
        )
    rows = draw_rows(written_path(asked.file), seed=asked.seed)
    return FileTable(pl.DataFrame(rows.X)), rows.drawn


def draw_alerts(drawn: RowDraw | None) -> tuple[Alert, ...]:
    """Return an alert if only a sample of the rows is used."""
    if drawn is None:
        return ()
    sentence = (
        f"The table is large; {drawn}, are used, and all numbers refer to these rows. To learn "
        "from all rows, name a METHOD, such as mrmr."
    )
    return (Alert("sample", (), sentence),)


@contextmanager
def open_blocks(asked: SelectOptions) -> Iterator[LabelledBlocks]:
    """Open the table in row blocks. With ``--dask``, the workers of a cluster read the blocks."""
    for name in IN_MEMORY:
        if getattr(asked, name):
            raise InvalidParameter(
                f"--{name.replace('_', '-')} needs the whole table in memory, but {asked.file} is "
                "read in row blocks. Leave it out."
            )
    here: Any = nullcontext()
    with here if asked.dask is None else cluster_client(asked.dask, asked.jobs) as client:
        where = written_path(asked.file)
        known = Parquet(where).names
        check_target(asked.target, known)
        for name in asked.drop:
            check_column(name, known)
        left = [name for name in known if name not in asked.drop]
        files = Parquet(where, target=asked.target, columns=left)
        source: BlockSource = files if client is None else ClusterBlocks(files, client)
        labels = source.reduce(TargetLabels("tamis select"), target_only=True)
        task = target_kind(labels.values) if asked.task == "auto" else asked.task.value
        table = BlockTable(source, labels, "tamis select")
        yield LabelledBlocks(source, table, str(asked.target), task)
