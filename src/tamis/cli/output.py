"""Writing a ranking as CSV or JSON, completely or not at all."""

import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tamis._files import can_write, replace_text
from tamis.cli.ranking import RankedColumns
from tamis.exceptions import InvalidParameter

ENDINGS = (".csv", ".json")
#: How a cell begins that spreadsheets run, or read without its first character.
FORMULA = re.compile(r"[=+\-@\x00-\x1f\x7f-\x9f]")


def check_output(path: Path | None, source: Path | None, endings: Sequence[str] = ENDINGS) -> None:
    """Refuse a file that could not be written, before any work."""
    if path is None:
        return
    if path.suffix.lower() not in endings:
        raise InvalidParameter(
            f"{path} should end in {' or '.join(endings)}, which says how to write it."
        )
    if path.is_dir():
        raise InvalidParameter(f"{path} is a folder. Give the name of a file.")
    if not path.parent.is_dir():
        raise InvalidParameter(
            f"{path} cannot be written: there is no folder {path.parent}. Make it first."
        )
    if not can_write(path.parent):
        raise InvalidParameter(
            f"{path} cannot be written: the folder {path.parent.resolve()} is protected. Choose "
            "another one."
        )
    if source is not None and path.exists() and source.exists() and path.samefile(source):
        raise InvalidParameter(f"{path} holds the data. Give another file for the result.")


def nearest_folder(folder: Path) -> Path:
    """A folder, or the lowest above it that is there: the others are made with it."""
    return next(path for path in (folder, *folder.absolute().parents) if path.exists())


def check_place(folder: Path) -> None:
    """Refuse a folder that could not be made or written, before any work.

    Folders above it that are missing are made with it, by every command alike.
    """
    above = nearest_folder(folder)
    if not above.is_dir():
        raise InvalidParameter(f"{above} is a file. Write --folder with another name.")
    if not can_write(above):
        raise InvalidParameter(
            f"{folder} cannot be written: the folder {above.resolve()} is protected. Write "
            "--folder with a place elsewhere."
        )


def write_ranking(
    path: Path, ranking: RankedColumns, facts: Callable[[], dict[str, Any]], *, safe: bool = True
) -> None:
    """Write the ranking; JSON also has the facts, among them the record.

    ``safe`` puts an apostrophe before a name that a spreadsheet would take for a formula, in CSV.
    """
    if path.suffix.lower() == ".json":
        replace_file(path, f"{ranking_json(ranking, facts)}\n")
        return
    names = [safe_name(name) for name in ranking.names] if safe else ranking.names
    columns = _columns(ranking, names)
    replace_file(path, pl.DataFrame(columns).write_csv())


def ranking_json(ranking: RankedColumns, facts: Callable[[], dict[str, Any]]) -> str:
    """The facts and the ranking as JSON."""
    columns = _columns(ranking, ranking.names)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return json.dumps(plain({**facts(), "ranking": rows}), indent=1, allow_nan=False)


def _columns(ranking: RankedColumns, names: Sequence[str]) -> dict[str, Sequence[Any]]:
    return {
        "rank": range(1, len(ranking) + 1),
        "column": names,
        "score": [None if math.isnan(score) else score for score in ranking.scores.tolist()],
        "kept": ranking.kept.tolist(),
    }


def safe_name(name: str) -> str:
    """The name with an apostrophe before it where a spreadsheet would take it for a formula."""
    return f"'{name}" if FORMULA.match(name) else name


def replace_file(path: Path, text: str) -> None:
    """Put a complete text in place of what was there, or leave it as it was."""
    try:
        replace_text(path, text)
    except OSError as error:
        raise InvalidParameter(
            f"{path} cannot be written: {error.strerror or error}. Nothing of it is left; make "
            "room, or choose another folder."
        ) from error


def plain(value: Any) -> Any:
    """Numbers, texts, lists and dictionaries that JSON knows.

    NaN is left out of dictionaries, where it stands for "not known", and null elsewhere.
    """
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if not _is_nan(v)}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
