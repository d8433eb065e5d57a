"""Result files of the benchmark: one small compressed file per table."""

import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import monotonic
from typing import Any

from tamis._files import replace_bytes
from tamis.contract.record import installed_versions
from tamis.exceptions import InvalidStore

#: Results that are part of the distribution.
RESULTS = Path(__file__).parent / "results"
ENDING = ".json.gz"
FORMAT = 1
#: Distributions whose versions are stored, next to those that tamis needs.
PACKAGES = (
    *("lightgbm", "xgboost", "catboost", "mrmr_selection", "boruta", "fastcan", "fast-select"),
    *("skrebate", "mlxtend", "lassonet", "knockpy"),
)
#: Seconds between two writes of a file. An interruption loses at most this much work.
SAVE_SECONDS = 20.0


def package_versions() -> dict[str, str]:
    """Return the versions of the installed packages that results depend on."""
    found = dict(installed_versions())
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


@dataclass(frozen=True)
class CellResult:
    """The result of a method on a split of a table.

    Attributes
    ----------
    seconds : float
        Processor seconds of the selection. For a bootstrap cell, of all samples.
    sizes : list of int
        Number of columns at each step.
    scores : dict of str to list
        For each judge, the metrics at each step.
    values : list of float or None
        The share of the noise columns that are not selected, or the stability, at each step.
    failure : str
        The error message if the method failed.

    Examples
    --------
    >>> CellResult(0.25, failure="ValueError: one class").to_plain()
    {'seconds': 0.25, 'failure': 'ValueError: one class'}
    """

    seconds: float
    sizes: list[int] = field(default_factory=list)
    scores: dict[str, list[list[float]]] = field(default_factory=dict)
    values: list[float | None] = field(default_factory=list)
    failure: str = ""

    @property
    def is_capped(self) -> bool:
        """Whether the selection took more than the permitted time."""
        return self.failure.startswith("CapReached")

    def reached(self, cap: float) -> bool:
        """Return whether the selection took at least this time. Stored times are rounded."""
        return self.seconds > 0.98 * cap

    def to_plain(self) -> dict[str, Any]:
        """Return the fields that are not empty, as a dictionary."""
        plain = {name: value for name, value in asdict(self).items() if value}
        return plain | {"seconds": float(f"{self.seconds:.3g}")}


@dataclass
class TableResults:
    """All cells of a table, and the file in which they are kept.

    Attributes
    ----------
    name : str
        Name of the table.
    facts : dict
        Rows, columns, categories, classes, kinds and hash of the table, and names of the metrics.
    folder : Path
        Folder of the file.
    cells : dict of str to CellResult
        The cells, with keys of the form ``kind/split/method``.
    versions : dict of str to str
        Versions of the packages that the results depend on.

    Examples
    --------
    >>> results = TableResults("wine", {"rows": 178}, Path("results"))
    >>> results.add("error/0/mrmr", CellResult(0.1))
    >>> results.path.name, list(results.cells)
    ('wine.json.gz', ['error/0/mrmr'])
    """

    name: str
    facts: dict[str, Any]
    folder: Path
    cells: dict[str, CellResult] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=package_versions)
    _saved: float = field(default_factory=monotonic, init=False)

    @property
    def path(self) -> Path:
        """Path of the result file."""
        return self.folder / f"{self.name}{ENDING}"

    def add(self, key: str, cell: CellResult) -> None:
        """Add a cell. The file is written every few seconds."""
        self.cells[key] = cell
        if monotonic() - self._saved > SAVE_SECONDS:
            self.save()

    def save(self) -> None:
        """Write the file. The same results give the same file."""
        plain = {
            "format": FORMAT,
            "table": self.name,
            "facts": self.facts,
            "versions": self.versions,
            "cells": {key: self.cells[key].to_plain() for key in sorted(self.cells)},
        }
        text = json.dumps(plain, separators=(",", ":"))
        self.folder.mkdir(parents=True, exist_ok=True)
        replace_bytes(self.path, gzip.compress(text.encode(), mtime=0))
        self._saved = monotonic()

    def is_done(self, key: str, cap: float) -> bool:
        """Return whether a cell has a result. A failure due to a smaller cap does not count."""
        cell = self.cells.get(key)
        return cell is not None and (not cell.is_capped or cell.reached(cap))

    def capped(self, method: str, cap: float) -> CellResult | None:
        """Return a failure if the method reached the time limit on another split, else None."""
        for key, cell in self.cells.items():
            if key.endswith(f"/{method}") and cell.is_capped and cell.reached(cap):
                return cell
        return None


def open_results(name: str, facts: dict[str, Any], folder: Path) -> TableResults:
    """Return the stored results of a table, or empty ones.

    Raises
    ------
    InvalidStore
        If the file cannot be read, or belongs to another version of the table.
    """
    path = folder / f"{name}{ENDING}"
    if not path.is_file():
        return TableResults(name, facts, folder)
    found = load_results(path)
    found.versions = {**package_versions(), **found.versions}
    if found.facts["hash"] != facts["hash"]:
        raise InvalidStore(
            f"{path} has results of another version of {name} ({found.facts['rows']} rows and "
            f"{found.facts['columns']} columns; this one has {facts['rows']} and "
            f"{facts['columns']}). Write the results to another folder with --folder."
        )
    return found


def load_results(path: Path) -> TableResults:
    """Read a file that :meth:`TableResults.save` wrote.

    Parameters
    ----------
    path : Path
        The file to read.
    """
    try:
        plain = json.loads(gzip.decompress(path.read_bytes()))
        if plain["format"] != FORMAT:
            raise ValueError(f"format {plain['format']}, not {FORMAT}")
        cells = {key: CellResult(**cell) for key, cell in plain["cells"].items()}
        return TableResults(plain["table"], plain["facts"], path.parent, cells, plain["versions"])
    except (OSError, EOFError, zlib.error, ValueError, TypeError, LookupError) as error:
        raise InvalidStore(
            f"{path} is not a result file of the benchmark ({error}). Delete it and run again."
        ) from error


def stored_results(folder: Path = RESULTS) -> Iterator[TableResults]:
    """Yield the results of all tables in a folder.

    Parameters
    ----------
    folder : Path
        The default is the results in ``tamis_book``.
    """
    for path in sorted(folder.glob(f"*{ENDING}")):
        yield load_results(path)
