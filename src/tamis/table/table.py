"""Tables: columns of a file or a frame, with their kinds, a target and alerts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tamis._format import format_count, format_names
from tamis._frame import collected
from tamis._memory import NUMBER
from tamis.blocks.inputs import SparseColumns
from tamis.blocks.survival import SURVIVAL
from tamis.exceptions import InvalidParameter, InvalidTable
from tamis.table.alerts import Alert, check_finite, profiled, way_out
from tamis.table.dates import add_calendar
from tamis.table.files import FileTable, read_file
from tamis.table.frames import as_polars, drop_columns, is_frame
from tamis.table.kinds import TableProfile, columns_of, days_of, nameless, read_columns
from tamis.table.sparse import column_of, dense_frame, profiled_sparse
from tamis.table.target import LabelledTable, check_column, describe_task, plain_numbers, target_of

#: Tables with at most 40 columns are listed completely. For wider tables, at most 25 columns with
#: alerts are listed.
ALL_SHOWN, SPECIAL_SHOWN = 40, 25
#: Maximum number of characters shown for a column name, and for its values.
NAME, VALUES = 24, 26
#: Whole numbers below this are shown with all digits.
SHOWN_WHOLE = 1e9
#: Maximum number of characters per line. In a narrower terminal, lines are shorter.
WIDTH = 100

#: Explanation of the heading "alone".
ALONE = {
    "classification": "alone: how well the column alone separates the classes, cross-validated: 2 "
    "AUC - 1 (0: chance, 1: perfect).",
    "regression": "alone: correlation of the target's ranks with the prediction by the column "
    "alone, cross-validated (0: chance, 1: perfect).",
    SURVIVAL: "alone: correlation of the time's ranks with the prediction by the column alone, "
    "cross-validated and without regard to censoring (0: chance, 1: perfect).",
}
#: Memory in bytes of an entry in a sparse table: the number and its row index.
ENTRY = 12


@dataclass(repr=False)
class Table:
    """A table: columns with their kinds, a target, and alerts about them.

    Attributes
    ----------
    frame : polars.DataFrame
        All columns, including the target. For a sparse file, only the target.
    target : str or None
        Name of the target column.
    task : {"classification", "regression", "none"}
        How the target is interpreted.
    y : ndarray or None
        The target: classes or numbers.
    profile : TableProfile
        Kinds and alerts of the features.
    name : str
        Name of the file that the table was read from.
    sparse : SparseColumns or None
        Features of a sparse file: ``sparse.X``, a CSC array, and ``sparse.names``. If the criterion
        of a search supports sparse tables, fit the search to ``sparse``.

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
        """Kind of each feature, by name."""
        return self.profile.kinds

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """Findings about the table."""
        return self.profile.alerts

    @property
    def aside(self) -> dict[str, str]:
        """Features that are excluded, and why."""
        return self.profile.aside

    @property
    def X(self) -> pl.DataFrame:
        """The features that are not excluded. Features of a sparse file are made dense."""
        if self.sparse is None:
            return self.frame[:, [self.profile.names[j] for j in self.profile.used]]
        return dense_frame(self.sparse.take(np.array(self.profile.used, dtype=np.intp)))

    def column(self, name: str) -> pl.Series:
        """Return a feature as a polars series."""
        if self.sparse is None:
            return self.frame.get_column(name)
        return column_of(self.sparse, self.sparse.names.index(name))

    @property
    def is_plain(self) -> bool:
        """Whether all features that are not excluded are numbers without missing values."""
        seen, used = self.profile, self.profile.used
        numeric = np.isin(seen.kind[used], ("number", "boolean")).all()
        return bool(numeric and not seen.n_missing[used].any())

    def labelled(self, *, sparse: bool = False) -> LabelledTable:
        """Return features and target for a selection. Afterwards, ``frame`` holds only the target.

        Parameters
        ----------
        sparse : bool, default=False
            Whether the selection supports sparse tables. It receives one if the file is sparse, has
            no missing values, and takes less memory than the dense table.
        """
        assert self.y is not None
        assert self.target is not None
        if not self.profile.used:
            raise InvalidTable(
                f"No column is left besides the target {self.target!r}: {self._nothing_left()}"
            )
        check_finite(self.profile)
        plain = self.is_plain
        if sparse and plain and self.sparse is not None:
            n_rows, n_columns = self.sparse.X.shape
            if ENTRY * self.sparse.X.nnz < NUMBER * n_rows * n_columns:
                part = self.sparse.take(np.array(self.profile.used, dtype=np.intp))
                return LabelledTable(part, self.y, self.target, self.task)
        frame = self.X
        self.frame = self.frame.get_column(self.target).to_frame()
        if self.sparse is not None:  # in sparse files, NaN means a missing value
            frame = frame if plain else frame.fill_nan(None)
        elif plain:
            columns = frame.get_columns()
            del frame
            frame = plain_numbers(columns)
        return LabelledTable(frame, self.y, self.target, self.task)

    def _nothing_left(self) -> str:
        """Return the reason why all features are excluded, and what to do about it."""
        constant = [name for name, why in self.aside.items() if why == "constant"]
        others = [name for name in self.aside if name not in set(constant)]
        found = [f"{format_names(others)} left out"] if others else []
        if constant:
            found.append(f"{format_names(constant)} with one value, or none, in all rows")
        instead = "Give a table with columns that vary."
        if others:
            instead = f"Write {way_out('keep', others)} to use them, or give a table with features."
        if mixed := [alert.sentence for alert in self.alerts if alert.sort == "mixed"]:
            instead = mixed[0]  # such as a second line with the units of the columns
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
    sheet: str | int | None = None,
    encoding: str | None = None,
) -> Table:
    """Read a table from a file, with the kinds of its columns and alerts about them.

    Parameters
    ----------
    path : str or Path
        CSV, TSV, Parquet, Feather or Arrow, Excel, ARFF or LIBSVM file, optionally compressed (.gz,
        .zst, .bz2). "-" means standard input.
    target : str, optional
        Name of the column to predict. A LIBSVM file has its own target.
    task : {"auto", "classification", "regression"}, default="auto"
        How to interpret the target.
    drop : list of str
        Columns to exclude.
    keep : list of str
        Columns to use although they look like an identifier or a code of the target.
    format : str, optional
        The format: "csv", "tsv", "parquet", "arrow", "excel", "arff" or "libsvm". By default, it
        follows from the extension.
    header : bool, default=True
        Whether the first line of a CSV or TSV file holds the names. If not, they are x1, x2, ...
    sheet : str or int, optional
        Name of the sheet of an Excel file, or its number from 1. The default is the first sheet.
    encoding : str, optional
        Encoding of a text file, such as "cp1252". The default is UTF-8. Windows-1252 (Latin-1) is
        detected if the file contains only letters of Western European languages.

    Returns
    -------
    Table
        Its ``repr`` shows kinds and alerts. Pass its ``X`` and ``y`` to a selection.
    """
    content = read_file(path, format, header=header, sheet=sheet, encoding=encoding)
    return table_of(content, target, drop, keep, task, name=Path(path).name)


def inspect(
    data: Any,
    target: str | None = None,
    *,
    task: str = "auto",
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    **how: Any,
) -> Table:
    """Describe a file or a frame: kinds of columns and alerts. Nothing is selected.

    Parameters
    ----------
    data : str, Path, or a frame of pandas, polars or pyarrow
        The file or frame to describe.
    target, task, drop, keep
        As in :func:`read`.
    **how
        For a file, options of :func:`read`: ``format``, ``header``, ``sheet`` and ``encoding``.

    Returns
    -------
    Table
        Its ``repr`` shows kinds and alerts.
    """
    data = collected(data)
    if not is_frame(data):
        return read(data, target, task=task, drop=drop, keep=keep, **how)
    if how:
        raise InvalidParameter(
            f"inspect needs a file for {', '.join(how)}, and got a frame. Leave it out."
        )
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
    calendar: bool = False,
) -> Table:
    """Return the table for a file's content. ``calendar`` adds month, weekday and hour of dates."""
    if content.target is not None and target not in (None, content.target):
        raise InvalidTable(
            f"A LIBSVM file has its target at the start of each line, not in a column {target!r}. "
            "Leave --target out."
        )
    target = content.target or target
    frame, sparse = content.take(), content.sparse
    unread = [n for n, dtype in frame.schema.items() if n == target and dtype.is_numeric()]
    frame, readings = read_columns(frame, content.decimal, keep=[*keep, *unread])
    if calendar and sparse is None:
        others = drop_columns(frame, () if target is None else (target,))
        frame = frame.hstack(add_calendar(others)[:, others.width :])
    columns = frame.columns if sparse is None else [*sparse.names, *frame.columns]
    for column in (*(() if target is None else (target,)), *drop, *keep):
        check_column(column, columns, content.hint)
    if target in drop:
        raise InvalidTable(f"The target {target!r} cannot be dropped. Leave it out of --drop.")
    if len({target, *drop} - {None}) == len(columns):
        raise InvalidTable(
            f"No column is left besides the target {target!r}. Give a table with features."
        )
    if sparse is not None:
        labels, kind = target_of(frame.to_series(), task)
        sparse = sparse.take(np.flatnonzero(~np.isin(sparse.names, list(drop))))
        profile = profiled_sparse(sparse, labels, kind, keep)
        return Table(frame, target, kind, labels, profile, name, sparse)
    frame = drop_columns(frame, drop)
    y, kind = (None, "none") if target is None else target_of(frame.get_column(target), task)
    features = drop_columns(frame, () if target is None else (target,))
    readings = {name: how for name, how in readings.items() if name in frame.columns}
    seen = replace(columns_of(features, set(content.unnamed)), readings=readings)
    profile = profiled(features, seen, y, kind, keep=keep, unnamed=content.unnamed)
    profile = replace(profile, alerts=(*content.alerts, *profile.alerts))
    return Table(frame, target, kind, y, profile, name)


# -- a table as text: one line per column, followed by the alerts ---------------------------------


def shown(table: Table, width: int | None = None) -> str:
    """Return the kinds of columns and the alerts of a table as text."""
    width = width or min(WIDTH, get_terminal_size().columns)
    name = f"{table.name}: " if table.name else ""
    n_rows, n_columns = table.frame.height, len(table.profile.names)
    size = f"{format_count(n_rows, 'row')}, {format_count(n_columns, 'column')}"
    target = "no target"
    if table.y is not None:
        target = f"target {table.target} ({describe_task(table.y, table.task)})"
    lines = [f"{name}{size}, {target}", "", *_lines(table)]
    if table.y is not None:
        lines += ["", *wrap(ALONE[table.task], width)]
    for alert in table.alerts:
        mark = "! " if alert.grave else "- "
        lines += ["", *wrap(alert.sentence, width, initial_indent=mark, subsequent_indent="  ")]
    if not table.alerts:
        lines += ["", "No alerts."]
    return "\n".join(lines)


def _lines(table: Table) -> Iterator[str]:
    seen = table.profile
    picked = _picked(table)
    rows = [("column", "kind", "missing", "alone", "values", "")]
    for j in picked:
        name, kind, alone = seen.names[j], seen.kind[j], seen.alone[j]
        missing = seen.n_missing[j] / table.frame.height
        rows.append(
            (
                _cut(name, NAME),
                kind,
                "" if not missing else f"{100 * missing:.0f} %" if missing >= 0.005 else "< 1 %",
                "" if np.isnan(alone) else f"{max(alone, 0.0):.2f}",
                _cut(_values(table.column(name), kind), VALUES),
                "left out" if name in table.aside else "",
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
    """Return the indices of the columns to list: all, or in a wide table those with alerts."""
    seen = table.profile
    if len(seen.names) <= ALL_SHOWN:
        return list(range(len(seen.names)))
    named = {name for alert in table.alerts if alert.sort != "gaps" for name in alert.columns}
    ordinary = np.isin(seen.kind, ("number", "constant")) & ~np.isin(seen.names, list(named))
    return np.flatnonzero(~ordinary)[:SPECIAL_SHOWN].tolist()


def _others(table: Table, picked: set[int]) -> Iterator[str]:
    """Yield a line with the number of unlisted columns of each kind."""
    seen = table.profile
    for kind in dict.fromkeys(seen.kind):
        left = [j for j in seen.of_kind(kind) if j not in picked]
        if left:
            names = ", ".join(_cut(seen.names[j], NAME) for j in left[:3])
            n_missing = int((seen.n_missing[left] > 0).sum())
            missing = f", {n_missing} of them with missing values" if n_missing else ""
            more = ", ..." if len(left) > 3 else ""
            yield f"and {len(left)} more of kind {kind} ({names}{more}){missing}"


def _values(column: pl.Series, kind: str) -> str:
    values = nameless(column).drop_nulls()
    if not len(values) or column.dtype.is_nested():
        return ""
    if kind in ("number", "identifier") and column.dtype.is_numeric():
        limits: tuple[Any, Any] = values.min(), values.max()
        ends = [float(end) for end in limits]
        whole = all(end % 1 == 0 and abs(end) < SHOWN_WHOLE for end in ends)
        return " to ".join(f"{end:.{0 if whole else 4}{'f' if whole else 'g'}}" for end in ends)
    if kind == "date":
        return _dates(values)
    if kind in ("category", "boolean"):
        levels = values.cast(pl.String).value_counts(sort=True).to_series(0)
        return f"{len(levels)}: {', '.join(levels.head(4))}"
    return str(values[0])


def _dates(values: pl.Series) -> str:
    """Return the first and the last date, without the time of day if they differ in the date."""
    if values.dtype == pl.Duration:
        days = days_of(values)
        return f"{days.min():.4g} to {days.max():.4g} days"
    if isinstance(values.dtype, pl.Datetime):
        several = values.dt.date().n_unique() > 1
        values = values.dt.date() if several else values.dt.strftime("%Y-%m-%d %H:%M")
    # as text, because Python has no years before 1 and after 9999
    ends = values.sort().gather([0, -1]).cast(pl.String)
    return f"{ends[0]} to {ends[1]}"


def _cut(text: Any, most: int) -> str:
    text = str(text)
    return text if len(text) <= most else text[: most - 1] + "…"
