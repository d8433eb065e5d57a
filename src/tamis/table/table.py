"""A table as people have it: read from a file or a frame, with what there is to know of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tamis._format import format_count, format_names
from tamis._frame import collected
from tamis.blocks.inputs import SparseColumns
from tamis.datasets.memory import NUMBER, check_fits
from tamis.exceptions import InvalidTable
from tamis.table.alerts import Alert, check_finite, profiled, way_out
from tamis.table.dates import add_calendar
from tamis.table.files import FileTable, read_file
from tamis.table.frames import as_polars, drop_columns, is_frame
from tamis.table.kinds import TableProfile, columns_of
from tamis.table.sparse import column_of, profiled_sparse
from tamis.table.target import LabelledTable, check_column, plain_numbers, spoken_task, target_of

#: Columns up to which each has its line; of wider tables those that are special have.
ALL_SHOWN, SPECIAL_SHOWN = 40, 25
#: Characters of a name and of the values beside it.
NAME, VALUES = 24, 26
#: Characters of the whole, where the terminal is not narrower.
WIDTH = 100

#: What stands in one of the columns.
ALONE = (
    "alone: share of the errors of a constant guess that the column does away with by itself, "
    "cross-validated."
)
#: Bytes of an entry of a sparse table: the number and its row.
ENTRY = 12


@dataclass(repr=False)
class Table:
    """Columns with their kinds, a target, and what to know before anything is selected.

    Attributes
    ----------
    frame : polars.DataFrame
        All columns, the target among them; of a sparse file the target alone.
    target : str or None
        The name of the target.
    task : {"classification", "regression", "none"}
        How the target is read.
    y : ndarray or None
        The target: classes or real numbers.
    profile : TableProfile
        Kinds and alerts of the features.
    name : str
        The file it was read from.
    sparse : SparseColumns or None
        The features of a sparse file: ``sparse.X``, a CSC array, and ``sparse.names``. A search
        whose criterion takes it is fitted to ``sparse`` itself, and nothing is made dense.

    Examples
    --------
    >>> import polars as pl
    >>> from tamis.table import inspect
    >>> frame = pl.DataFrame({"sample": ["s1", "s2", "s3", "s4"], "dose": [1.5, 2.5, None, 4.0],
    ...                       "y": ["a", "b", "a", "b"]})
    >>> table = inspect(frame, target="y")
    >>> table.kinds
    {'sample': 'identifier', 'dose': 'number'}
    >>> table.X.columns
    ['dose']
    """

    frame: pl.DataFrame
    target: str | None
    task: str
    y: NDArray[Any] | None
    profile: TableProfile
    name: str = ""
    sparse: SparseColumns | None = None

    @property
    def kinds(self) -> dict[str, str]:
        """Kind of each feature."""
        return self.profile.kinds

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """What to know."""
        return self.profile.alerts

    @property
    def aside(self) -> dict[str, str]:
        """Features that are left out, and why."""
        return self.profile.aside

    @property
    def X(self) -> pl.DataFrame:
        """The features that are not left out; of a sparse file with all their zeros."""
        names = self.profile.names
        if self.sparse is None:
            return self.frame[:, [names[j] for j in self.profile.used]]
        n_rows, used = self.frame.height, np.array(self.profile.used, dtype=np.intp)
        check_fits(f"{self.name or 'The table'}, its zeros included,", NUMBER * n_rows * len(used))
        part = self.sparse.take(used)
        return pl.DataFrame(part.X.toarray(order="F"), schema=part.names)

    def column(self, name: str) -> pl.Series:
        """One feature."""
        if self.sparse is None:
            return self.frame.get_column(name)
        return column_of(self.sparse, self.sparse.names.index(name))

    @property
    def spares_memory(self) -> bool:
        """Whether the features are sparse, without gaps, and smaller so than with their zeros."""
        if self.sparse is None or not self.is_plain:
            return False
        X = self.sparse.X
        return bool(ENTRY * X.nnz < NUMBER * X.shape[0] * X.shape[1])

    @property
    def is_plain(self) -> bool:
        """Whether all features that are not left out are numbers without gaps."""
        seen, used = self.profile, self.profile.used
        numeric = np.isin(seen.kind[used], ("number", "boolean")).all()
        return bool(numeric and not seen.n_missing[used].any())

    def labelled(self, *, sparse: bool = False) -> LabelledTable:
        """Features and target, ready for a selection; the frame is used up.

        Parameters
        ----------
        sparse : bool, default=False
            Whether the selection takes a sparse table; then it gets one, where that is smaller.
        """
        assert self.y is not None
        assert self.target is not None
        used = [self.profile.names[j] for j in self.profile.used]
        if not used:
            raise InvalidTable(
                f"No column is left beside the target {self.target!r}: {self._nothing_left()}"
            )
        check_finite(self.profile)
        if sparse and self.spares_memory:
            assert self.sparse is not None
            part = self.sparse.take(np.array(self.profile.used, dtype=np.intp))
            return LabelledTable(part, self.y, self.target, self.task)
        plain, frame = self.is_plain, self.X
        self.frame = self.frame.get_column(self.target).to_frame()
        if self.sparse is not None:  # NaN is what a gap is called there
            frame = frame if plain else frame.fill_nan(None)
        elif plain:
            columns = frame.get_columns()
            del frame
            frame = plain_numbers(columns)
        return LabelledTable(frame, self.y, self.target, self.task)

    def _nothing_left(self) -> str:
        """What became of all features, and what to do."""
        constant = [name for name, why in self.aside.items() if why == "constant"]
        others = [name for name in self.aside if name not in set(constant)]
        found = [f"{format_names(others)} left out"] if others else []
        if constant:
            found.append(f"{format_names(constant)} with one value, or none, in all rows")
        instead = "Give a table with columns that vary."
        if others:
            instead = f"Write {way_out('keep', others)} to use them, or give a table with features."
        return f"{', and '.join(found)}. {instead}"

    def __repr__(self) -> str:
        return shown(self)


def read(
    path: str | Path,
    target: str | None = None,
    *,
    task: str = "auto",
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    format: str | None = None,
    header: bool = True,
) -> Table:
    """Read a table from a file, with the kinds of its columns and what to know of them.

    Parameters
    ----------
    path : str or Path
        CSV, TSV, Parquet, Feather or Arrow, Excel, ARFF or LIBSVM, also compressed (.gz, .zst,
        .bz2); "-" stands for standard input.
    target : str, optional
        Name of the column to foretell. A LIBSVM file has its own.
    task : {"auto", "classification", "regression"}, default="auto"
        How to read the target.
    drop : list of str
        Columns to leave out.
    keep : list of str
        Columns to use although they look like an identifier or a code of the target.
    format : str, optional
        The format, where the extension does not tell: "csv", "tsv", "parquet", "arrow", "excel",
        "arff" or "libsvm".
    header : bool, default=True
        Whether the first line of a CSV or TSV file has the names; if not they are x1, x2, ...

    Returns
    -------
    Table
        ``repr`` shows kinds and alerts; ``X`` and ``y`` are what a selection would see.
    """
    content = read_file(path, format, header=header)
    return table_of(content, target, drop, keep, task, name=Path(path).name)


def inspect(
    data: Any,
    target: str | None = None,
    *,
    task: str = "auto",
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
) -> Table:
    """Kinds and alerts of a file or a frame, without selecting anything.

    Parameters
    ----------
    data : str, Path, or a frame of pandas, polars or pyarrow
    target, task, drop, keep
        As in :func:`read`.

    Returns
    -------
    Table
        Its ``repr`` is one table to look at.
    """
    data = collected(data)
    if not is_frame(data):
        return read(data, target, task=task, drop=drop, keep=keep)
    if not data.shape[0]:
        raise InvalidTable("The frame has no rows. Give a frame with data.")
    return table_of(FileTable(as_polars(data)), target, drop, keep, task)


def table_of(
    content: FileTable,
    target: str | None,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    task: str = "auto",
    *,
    name: str = "",
    takes_text: bool = False,
    calendar: bool = False,
) -> Table:
    """Kinds and alerts of what a file holds, with the calendar parts of its dates if asked for."""
    if content.target is not None and target not in (None, content.target):
        raise InvalidTable(
            f"A LIBSVM file has its target at the start of each line, not in a column {target!r}. "
            "Leave --target out."
        )
    target = content.target or target
    frame, sparse = content.take(), content.sparse
    if calendar and sparse is None:
        others = drop_columns(frame, () if target is None else (target,))
        frame = frame.hstack(add_calendar(others)[:, others.width :])
    columns = frame.columns if sparse is None else [*sparse.names, *frame.columns]
    for column in (*(() if target is None else (target,)), *drop, *keep):
        check_column(column, columns)
    if target in drop:
        raise InvalidTable(f"The target {target!r} cannot be dropped. Leave it out of --drop.")
    if len({target, *drop} - {None}) == len(columns):
        raise InvalidTable(
            f"No column is left beside the target {target!r}. Give a table with features."
        )
    if sparse is not None:
        labels, kind = target_of(frame.to_series(), task)
        left = np.flatnonzero(~np.isin(sparse.names, list(drop)))
        sparse = sparse.take(left)
        profile = profiled_sparse(sparse, labels, kind, keep)
        return Table(frame, target, kind, labels, profile, name, sparse)
    frame = drop_columns(frame, drop)
    y, kind = (None, "none") if target is None else target_of(frame.get_column(target), task)
    features = drop_columns(frame, () if target is None else (target,))
    seen = columns_of(features, set(content.unnamed))
    profile = profiled(
        features, seen, y, kind, keep=keep, takes_text=takes_text, unnamed=content.unnamed
    )
    return Table(frame, target, kind, y, profile, name)


# -- a table in words: one line per column that deserves one, then what to know --------------------


def shown(table: Table, width: int | None = None) -> str:
    """Kinds and alerts of a table as text."""
    width = width or min(WIDTH, get_terminal_size().columns)
    lines = [_heading(table), "", *_lines(table)]
    if table.y is not None:
        lines += ["", *wrap(ALONE, width)]
    for alert in table.alerts:
        mark = "! " if alert.grave else "- "
        lines += ["", *wrap(alert.sentence, width, initial_indent=mark, subsequent_indent="  ")]
    if not table.alerts:
        lines += ["", "Nothing in it calls for a word."]
    return "\n".join(lines)


def _heading(table: Table) -> str:
    seen = table.profile
    what = f"{table.name}: " if table.name else ""
    size = f"{format_count(table.frame.height, 'row')}, {format_count(len(seen.names), 'column')}"
    if table.y is None:
        return f"{what}{size}, no target"
    return f"{what}{size}, target {table.target} ({spoken_task(table.y, table.task)})"


def _lines(table: Table) -> Iterator[str]:
    seen = table.profile
    picked = _picked(table)
    rows = [("column", "kind", "gaps", "alone", "values", "")]
    for j in picked:
        gaps = seen.n_missing[j] / table.frame.height
        power = table.profile.power[j]
        rows.append(
            (
                _cut(seen.names[j], NAME),
                seen.kind[j],
                f"{100 * gaps:.0f} %" if gaps else "",
                "" if np.isnan(power) else f"{max(power, 0.0):.2f}",
                _cut(_values(table.column(seen.names[j]), seen.kind[j]), VALUES),
                "left out" if seen.names[j] in table.aside else "",
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(6)]
    for i, row in enumerate(rows):
        yield "  ".join(
            cell.rjust(w) if k in (2, 3) else cell.ljust(w)
            for k, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        if i == 0:
            yield "  ".join("-" * w for w in widths if w)
    yield from _others(table, set(picked))


def _picked(table: Table) -> list[int]:
    """Columns with a line of their own: all of a narrow table, else what is special."""
    seen = table.profile
    if len(seen.names) <= ALL_SHOWN:
        return list(range(len(seen.names)))
    named = {name for alert in table.alerts if alert.sort != "gaps" for name in alert.columns}
    ordinary = np.isin(seen.kind, ("number", "constant")) & ~np.isin(seen.names, list(named))
    return np.flatnonzero(~ordinary)[:SPECIAL_SHOWN].tolist()


def _others(table: Table, picked: set[int]) -> Iterator[str]:
    """The columns that have no line, counted by kind."""
    seen = table.profile
    for kind in dict.fromkeys(seen.kind):
        left = [j for j in seen.of_kind(kind) if j not in picked]
        if left:
            names = ", ".join(_cut(seen.names[j], NAME) for j in left[:3])
            gaps = int((seen.n_missing[left] > 0).sum())
            with_gaps = f", {gaps} of them with gaps" if gaps else ""
            more = ", ..." if len(left) > 3 else ""
            yield f"and {len(left)} more of kind {kind} ({names}{more}){with_gaps}"


def _values(column: pl.Series, kind: str) -> str:
    held = column.drop_nulls()
    if not len(held) or column.dtype.is_nested():
        return ""
    if kind in ("number", "identifier") and column.dtype.is_numeric():
        ends: tuple[Any, Any] = held.min(), held.max()
        return "{:.4g} to {:.4g}".format(*ends)
    if kind == "date":
        return f"{held.min()!s} to {held.max()!s}"
    if kind in ("category", "boolean"):
        levels = held.cast(pl.String).value_counts(sort=True).to_series(0)
        return f"{len(levels)}: {', '.join(levels.head(4))}"
    return str(held[0])


def _cut(words: Any, most: int) -> str:
    words = str(words)
    return words if len(words) <= most else words[: most - 1] + "…"
