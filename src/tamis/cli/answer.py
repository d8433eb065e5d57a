"""The folder of an answer: the kept columns, the ranking, the record and a page to send on."""

import shlex
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from tamis._files import replace_text
from tamis.cli.output import check_place, nearest_folder, safe_name, write_ranking
from tamis.cli.ranking import RankedColumns
from tamis.contract import Selection, SparseColumns
from tamis.datasets.memory import check_fits
from tamis.exceptions import InvalidParameter, TamisError
from tamis.table.sources import STDIN
from tamis.table.target import LabelledTable

#: What a folder holds; nothing else in it is ever touched.
SELECTED, RANKING, RECORD, PAGE = "selected.csv", "ranking.csv", "record.json", "report.html"
#: Whole numbers up to here are the same as floats.
WHOLE = 2**53


class AnswerParts(NamedTuple):
    """What there is to write of a selection."""

    selection: Selection
    data: LabelledTable
    ranking: RankedColumns
    page: Callable[[Path], None]


def folder_name(file: Path) -> Path:
    """The folder beside which nobody is asked: ``tamis-`` and the name of the table.

    >>> str(folder_name(Path("data/genes.csv.gz")))
    'tamis-genes'
    """
    name = "stdin" if str(file) == STDIN else file.name.split(".")[0] or file.name
    return Path(f"tamis-{name}")


def free_folder(folder: Path) -> Path:
    """The folder, or the first with a number behind it that is not there."""
    number, free = 1, folder
    while free.exists():
        number += 1
        free = folder.with_name(f"{folder.name}-{number}")
    return free


def check_folder(folder: Path, force: bool, resume: Path | None) -> None:
    """Refuse a folder that could not be written, or that holds another answer."""
    check_place(folder)
    own = resume is not None and resume.resolve().parent == folder.resolve()
    if folder.is_dir() and any(folder.iterdir()) and not (force or own):
        raise InvalidParameter(
            f"{folder} is there already, and is kept. Write --force to replace the answer in it, "
            "or --folder with another name."
        )


def write_folder(folder: Path, answer: AnswerParts, *, safe: bool) -> None:
    """Write all files into a folder, or none."""
    try:
        with TemporaryDirectory(prefix=f".{folder.name}.", dir=nearest_folder(folder)) as draft:
            _write_into(Path(draft), answer, safe)
            folder.mkdir(parents=True, exist_ok=True)
            for name in (SELECTED, RANKING, RECORD, PAGE):
                (Path(draft) / name).replace(folder / name)
    except (OSError, TamisError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(cause, OSError):  # a sentence of its own
            raise
        raise InvalidParameter(
            f"{folder} cannot be written: {cause.strerror or cause}. Nothing of it is left; make "
            "room, or write --folder with another place."
        ) from error


def _write_into(folder: Path, answer: AnswerParts, safe: bool) -> None:
    names, columns = selected_columns(answer.selection, answer.data)
    names = [safe_name(name) for name in names] if safe else names
    # the names stand in a row of their own: an apostrophe may make two of them equal
    head = pl.DataFrame({str(j): [name] for j, name in enumerate(names)})
    body = pl.DataFrame({str(j): column for j, column in enumerate(columns)})
    rows = "".join(part.write_csv(include_header=False) for part in (head, body))
    replace_text(folder / SELECTED, rows)
    write_ranking(folder / RANKING, answer.ranking, dict, safe=safe)
    answer.selection.record_.save(folder / RECORD)
    answer.page(folder / PAGE)


def selected_columns(
    selection: Selection, data: LabelledTable
) -> tuple[list[str], list[pl.Series]]:
    """Names and values of the kept columns as they are in the table, and of the target."""
    kept = np.flatnonzero(selection.support_)
    if isinstance(data.X, SparseColumns):
        frame = dense_frame(data.X.take(kept))
    else:
        frame = data.X[:, kept.tolist()]
    fields = data.y.dtype.names  # of a censored target the event and the time
    target = {data.target: data.y} if fields is None else {name: data.y[name] for name in fields}
    columns = [*frame.get_columns(), *(pl.Series(name, y) for name, y in target.items())]
    names = [name if name not in frame.columns else f"{name} (target)" for name in target]
    return [*frame.columns, *names], [_whole(column) for column in columns]


def dense_frame(table: SparseColumns) -> pl.DataFrame:
    """A sparse table with all its zeros, where they fit into memory."""
    n_rows, n_columns = table.X.shape
    check_fits("The table, its zeros included,", 8 * n_rows * n_columns)
    return pl.DataFrame(table.X.toarray(order="F"), schema=table.names)


def _whole(column: pl.Series) -> pl.Series:
    """Whole numbers without a point, as they most often came."""
    if not column.dtype.is_float() or not len(column):
        return column
    known = column.drop_nulls().drop_nans()
    if len(known) < len(column) and column.is_nan().any():
        return column
    if bool(((known == known.round()) & (known.abs() < WHOLE)).all()):
        return column.cast(pl.Int64)
    return column


def command_of(words: dict[str, Any], command: str = "select") -> str:
    """The command line that asks for the same, as a shell takes it.

    Parameters
    ----------
    words : dict
        Values by option, "" for what has none; None, False and empty ones are left out. True is an
        option without a value, a tuple one that is given again and again.
    command : str
    """
    line = ["tamis", command]
    for option, value in words.items():
        for one in value if isinstance(value, tuple) else (value,):
            if one is None or one is False:
                continue
            line += [option] * bool(option)
            line += [] if one is True else [str(one)]
    return shlex.join(line)
