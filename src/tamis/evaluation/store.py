"""Finished tasks in one SQLite file, so that a killed experiment continues.

The file is written with a write-ahead log, one row per finished task: a process that is killed
loses what it was computing and nothing else, and two processes may share a file. Every row has a
checksum: one that a failing disk has changed is named and computed again.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from time import monotonic, sleep
from types import TracebackType
from typing import Any, Self

from tamis._frame import frame
from tamis.evaluation.outcome import Outcome
from tamis.evaluation.row import Address, checksum, outcome_of, written
from tamis.exceptions import InvalidStore

# "tami" in ASCII: tells our files from other people's
APPLICATION = 0x74616D69
FORMAT = 2
#: Seconds to wait for another process that is writing.
PATIENCE = 60.0

SCHEMA = """
CREATE TABLE IF NOT EXISTS task (
    key TEXT PRIMARY KEY,
    expression TEXT NOT NULL,
    data TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    realization INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    version TEXT NOT NULL,
    protocol TEXT NOT NULL,
    outcome TEXT NOT NULL,
    seconds REAL NOT NULL,
    checksum TEXT NOT NULL,
    finished TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE IF NOT EXISTS checkpoint (
    key TEXT PRIMARY KEY,
    record TEXT NOT NULL,
    checksum TEXT NOT NULL,
    saved TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);
"""

COLUMNS = ("key", *Address._fields, "outcome", "seconds")
TEXTS = set(COLUMNS) - {"realization", "seed", "seconds"}


class Store:
    """One experiment's finished tasks.

    Parameters
    ----------
    path : str, path or None
        The file, made if it is not there; None keeps everything in memory.

    Examples
    --------
    >>> with Store(None) as store:
    ...     len(store)
    0
    """

    def __init__(self, path: str | os.PathLike[str] | None):
        self.path = None if path is None else Path(path)
        self._lock = RLock()
        self._looked_through = False
        with self._spoken():
            self._open()

    def _open(self) -> None:
        """Open the file; again while others are doing the same.

        SQLite does not wait when several connections begin a write-ahead log at the same time: all
        but one are told at once that the file is busy.
        """
        if self.path is not None and not self.path.parent.is_dir():
            raise InvalidStore(
                f"The store {self.path} cannot be made: {self.path.parent} is no folder."
            )
        give_up = monotonic() + PATIENCE
        while True:
            try:
                return self._connect()
            except sqlite3.OperationalError as error:
                busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
                if not busy or monotonic() > give_up:
                    raise
            sleep(0.01)

    def _connect(self) -> None:
        # tasks are handed out from the threads of a parallel run, one at a time under the lock
        self._file = sqlite3.connect(
            ":memory:" if self.path is None else self.path,
            timeout=PATIENCE,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._begin()
        except BaseException:
            self._file.close()
            raise

    def _begin(self) -> None:
        """Recognise the file as ours, or make an empty one ours."""
        self._file.execute("BEGIN")  # one look: another process may be making the file just now
        empty = self._one("SELECT count(*) FROM sqlite_master") == 0
        ours, form = self._one("PRAGMA application_id"), self._one("PRAGMA user_version")
        self._file.execute("COMMIT")
        if not empty and ours != APPLICATION:
            raise InvalidStore(
                f"{self.path} is a database of another program; nothing was changed in it. Name a "
                "new file as the store."
            )
        if not empty and form != FORMAT:
            raise InvalidStore(
                f"{self.path} was written by another version of tamis (format {form}, not "
                f"{FORMAT}); nothing was changed in it. Name a new file as the store."
            )
        # a crash of the machine may cost the last rows, never the file
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = NORMAL")
        self._file.execute("BEGIN IMMEDIATE")
        for statement in SCHEMA.split(";"):
            self._file.execute(statement)
        self._file.execute(f"PRAGMA application_id = {APPLICATION}")
        self._file.execute(f"PRAGMA user_version = {FORMAT}")
        self._file.execute("COMMIT")

    def _one(self, statement: str, *values: Any) -> Any:
        found = self._file.execute(statement, values).fetchone()
        return None if found is None else found[0]

    @contextmanager
    def _spoken(self) -> Iterator[None]:
        """SQLite's errors as sentences."""
        try:
            with self._lock:
                yield
        # of damaged files SQLite also speaks in letters that are none
        except (sqlite3.Error, OSError, UnicodeError) as error:
            raise _sentence(self.path, error) from error

    def save(self, address: Address, outcome: Outcome) -> None:
        """Keep a finished task; one that another process finished first stays as it is."""
        values = (address.key, *address, written(outcome), outcome.seconds)
        row = (*values, checksum(*values))
        with self._spoken():
            marks = ", ".join("?" * len(row))
            self._file.execute(
                f"INSERT OR IGNORE INTO task ({', '.join(COLUMNS)}, checksum) VALUES ({marks})", row
            )

    def has(self, key: str) -> bool:
        """Whether a task is finished."""
        with self._spoken():
            return self._one("SELECT 1 FROM task WHERE key = ?", key) is not None

    def keys(self) -> set[str]:
        """Keys of all finished tasks."""
        with self._spoken():
            found = self._file.execute("SELECT CAST(key AS BLOB) FROM task")
            return {_text(key) for (key,) in found}

    def outcomes(self, keys: Iterable[str]) -> dict[str, Outcome]:
        """Outcomes of those of the tasks that are finished, and whose rows are sound."""
        wanted, found = list(keys), {}
        with self._spoken():
            for start in range(0, len(wanted), 500):
                some = wanted[start : start + 500]
                marks = ", ".join("?" * len(some))
                for row in self._rows(f"WHERE key IN ({marks})", some):
                    if (outcome := _sound(row)) is not None:
                        found[row[1]] = outcome
        return found

    def drop_damaged(self) -> list[str]:
        """Delete the rows that are not as they were written, and name them.

        Their tasks are computed again by whoever needs them. A store is looked through once: what
        is written from then on is checked when it is read.
        """
        if self._looked_through:
            return []
        self._looked_through = True
        with self._spoken():
            damaged = [row for row in self._rows() if _sound(row) is None]
            for row in damaged:
                self._file.execute("DELETE FROM task WHERE rowid = ?", (row[0],))
            lost = [row for row in self._checkpoints() if row[3] != checksum(row[1], row[2])]
            for row in lost:
                self._file.execute("DELETE FROM checkpoint WHERE rowid = ?", (row[0],))
        return [
            *(f"{row[2]} on {row[3]}, realization {row[5]}" for row in damaged),
            *(f"how far the task {row[1][:8]} had come" for row in lost),
        ]

    def _rows(self, where: str = "", values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows with their numbers, texts decoded one by one: a bad one must not hide the rest."""
        columns = ", ".join(f"CAST({c} AS BLOB)" if c in TEXTS else c for c in COLUMNS)
        query = f"SELECT rowid, {columns}, CAST(checksum AS BLOB) FROM task {where}"
        found = self._file.execute(query, values).fetchall()
        return [tuple(_text(v) if isinstance(v, bytes) else v for v in row) for row in found]

    def _checkpoints(self, where: str = "", *values: Any) -> list[tuple[Any, ...]]:
        query = (
            "SELECT rowid, CAST(key AS BLOB), CAST(record AS BLOB), CAST(checksum AS BLOB) "
            f"FROM checkpoint {where}"
        )
        found = self._file.execute(query, values).fetchall()
        return [(row[0], *map(_text, row[1:])) for row in found]

    def checkpoint(self, key: str, record: str) -> None:
        """Keep how far an unfinished search has come."""
        with self._spoken():
            self._file.execute(
                "INSERT OR REPLACE INTO checkpoint (key, record, checksum) VALUES (?, ?, ?)",
                (key, record, checksum(key, record)),
            )

    def checkpointed(self, key: str) -> str | None:
        """How far an unfinished search had come, if it was kept and is as it was written."""
        with self._spoken():
            for _, found, record, held in self._checkpoints("WHERE key = ?", key):
                if held == checksum(found, record):
                    return str(record)
        return None

    def checkpoints(self) -> set[str]:
        """Keys of the tasks that were stopped in the middle of a search."""
        with self._spoken():
            return {row[1] for row in self._checkpoints()}

    def forget_checkpoint(self, key: str) -> None:
        """Drop the checkpoint of a search that is finished."""
        with self._spoken():
            self._file.execute("DELETE FROM checkpoint WHERE key = ?", (key,))

    def __len__(self) -> int:
        with self._spoken():
            return int(self._one("SELECT count(*) FROM task"))

    def to_frame(self) -> Any:
        """One row per finished task, as polars or pandas frame; outcomes stay JSON."""
        with self._spoken():
            cursor = self._file.execute("SELECT * FROM task ORDER BY data, expression, realization")
            names = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
        return frame({name: [row[i] for row in rows] for i, name in enumerate(names)})

    def close(self) -> None:
        """Close the file; the write-ahead log is folded into it by the last to close."""
        with self._spoken():
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Store {self.path or 'in memory'}>"


def _sentence(path: Path | None, error: Exception) -> InvalidStore:
    text = str(error).rstrip(".")
    if "full" in text:
        why = "the disk is full. Make room and run again"
    elif "locked" in text:
        why = f"another process has been writing for {PATIENCE:.0f} seconds. Run again later"
    elif "readonly" in text or "unable to open" in text or isinstance(error, OSError):
        why = f"it cannot be opened for writing ({text}). Name a file that can"
    elif "not a database" in text:
        why = "it is no store, but some other file; nothing was changed in it. Name a new file"
    else:
        why = f"it is damaged ({text}). Name a new file, or restore this one from a copy"
        return InvalidStore(f"The store {path} cannot be used: {why}.")
    return InvalidStore(f"The store {path} cannot be used: {why}. Finished tasks are kept.")


def _text(value: Any) -> str:
    """The text of bytes, whatever they are; what is no text is told from it by its checksum."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else repr(value)


def _sound(row: tuple[Any, ...]) -> Outcome | None:
    """The outcome of a row that is as it was written; None where it is damaged."""
    _, *values, held = row
    if held != checksum(*values):
        return None
    try:
        return outcome_of(values[-2], values[-1])
    except ValueError:
        return None
