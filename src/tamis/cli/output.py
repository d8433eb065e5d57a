"""Writing a ranking as CSV or JSON, completely or not at all."""

import csv
import io
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np

from tamis.cli.ranking import RankedColumns
from tamis.exceptions import InvalidParameter

ENDINGS = (".csv", ".json")
FIELDS = ("rank", "column", "score", "kept")


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
    if not os.access(path.parent, os.W_OK):
        raise InvalidParameter(
            f"{path} cannot be written: the folder {path.parent.resolve()} is protected. Choose "
            "another one."
        )
    if source is not None and path.exists() and source.exists() and path.samefile(source):
        raise InvalidParameter(f"{path} holds the data. Give another file for the result.")


def write_ranking(path: Path, ranking: RankedColumns, facts: dict[str, Any]) -> None:
    """Write the ranking; JSON also has the facts, among them the record."""
    scores = [None if math.isnan(score) else score for score in ranking.scores.tolist()]
    ranks, kept = range(1, len(ranking) + 1), ranking.kept.tolist()
    rows = zip(ranks, ranking.names, scores, kept, strict=True)
    if path.suffix.lower() == ".json":
        whole = {**facts, "ranking": [dict(zip(FIELDS, row, strict=True)) for row in rows]}
        replace_file(path, json.dumps(plain(whole), indent=1, allow_nan=False) + "\n")
        return
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(FIELDS)
    table.writerows((*row, "true" if kept else "false") for *row, kept in rows)
    replace_file(path, text.getvalue())


def replace_file(path: Path, text: str) -> None:
    """Put a complete text in place of what was there, or leave it as it was."""
    with NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as draft:
        try:
            draft.write(text)
            draft.close()
            os.chmod(draft.name, 0o666 & ~_umask())
            os.replace(draft.name, path)
        except BaseException:
            draft.close()
            Path(draft.name).unlink(missing_ok=True)
            raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


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
