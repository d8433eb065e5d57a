"""Finished tasks in one SQLite file, so that a killed experiment continues.

The file is written with a write-ahead log, one row per finished task: a process that is killed
loses what it was computing and nothing else, and two processes may share a file. Every row has a
checksum: one that a failing disk has changed is named and computed again.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from threading import RLock
from time import monotonic, sleep
from typing import Any, NamedTuple, Self

from tamis._frame import frame
from tamis.evaluation.outcome import Outcome
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


class Address(NamedTuple):
    """What a task depends on; the same address always gives the same outcome."""

    expression: str
    data: str
    fingerprint: str
    realization: int
    seed: int
    version: str
    protocol: str

    @property
    def key(self) -> str:
        """Short name of the address."""
        return sha256("\x1f".join(map(str, self)).encode()).hexdigest()[:32]


COLUMNS = ("key", *Address._fields, "outcome", "seconds")
#: Columns of each table that its checksums are of.
TABLES = {"task": COLUMNS, "checkpoint": ("key", "record")}


def checksum(*values: Any) -> str:
    """Short name of values, the same again if no bit of them has changed.

    >>> checksum("a", 1, 0.5)
    '6b812aee0d8a9d11'
    """
    return sha256("\x1f".join(map(repr, values)).encode("utf-8", "replace")).hexdigest()[:16]


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
        with self._explain_errors():
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
        # a text that is damaged is told by its checksum, and must not hide the others
        self._file.text_factory = lambda text: text.decode("utf-8", "replace")
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
    def _explain_errors(self) -> Iterator[None]:
        """SQLite's errors as sentences."""
        try:
            with self._lock:
                yield
        # of damaged files SQLite also speaks in letters that are none
        except (sqlite3.Error, OSError, UnicodeError) as error:
            raise _sentence(self.path, error) from error

    def save(self, address: Address, outcome: Outcome) -> None:
        """Keep a finished task; one that another process finished first stays as it is."""
        values = address.key, *address, outcome.to_text(), outcome.seconds
        self._insert("INSERT OR IGNORE", "task", values)

    def has(self, key: str) -> bool:
        """Whether a task is finished."""
        with self._explain_errors():
            return self._one("SELECT 1 FROM task WHERE key = ?", key) is not None

    def keys(self) -> set[str]:
        """Keys of all finished tasks."""
        with self._explain_errors():
            return {key for (key,) in self._file.execute("SELECT key FROM task")}

    def outcomes(self, keys: Iterable[str]) -> dict[str, Outcome]:
        """Outcomes of those of the tasks that are finished, and whose rows are sound."""
        wanted = set(keys)
        with self._explain_errors():
            found = {row[0]: row for _, row in self._rows("task") if row[0] in wanted}
        outcomes = {key: _outcome_of(row) for key, row in found.items()}
        return {key: outcome for key, outcome in outcomes.items() if outcome is not None}

    def drop_damaged(self) -> list[str]:
        """Delete the rows that are not as they were written, and name them.

        Their tasks are computed again by whoever needs them. A store is looked through once: what
        is written from then on is checked when it is read.
        """
        if self._looked_through:
            return []
        self._looked_through = True
        names = []
        with self._explain_errors():
            for number, row in list(self._rows("task")):
                if _outcome_of(row) is None:
                    self._file.execute("DELETE FROM task WHERE rowid = ?", (number,))
                    names.append(f"{row[1]} on {row[2]}, realization {row[4]}")
            for number, row in list(self._rows("checkpoint")):
                if not _is_sound(row):
                    self._file.execute("DELETE FROM checkpoint WHERE rowid = ?", (number,))
                    names.append(f"how far the task {str(row[0])[:8]} had come")
        return names

    def _insert(self, verb: str, table: str, values: tuple[Any, ...]) -> None:
        marks = ", ".join("?" * (len(values) + 1))
        columns = ", ".join((*TABLES[table], "checksum"))
        with self._explain_errors():
            self._file.execute(
                f"{verb} INTO {table} ({columns}) VALUES ({marks})", (*values, checksum(*values))
            )

    def _rows(self, table: str) -> Iterator[tuple[int, list[Any]]]:
        """Rows with their checksums, after the numbers of the rows."""
        columns = ", ".join(TABLES[table])
        for number, *row in self._file.execute(f"SELECT rowid, {columns}, checksum FROM {table}"):
            yield number, row

    def checkpoint(self, key: str, record: str) -> None:
        """Keep how far an unfinished search has come."""
        self._insert("INSERT OR REPLACE", "checkpoint", (key, record))

    def checkpointed(self, key: str) -> str | None:
        """How far an unfinished search had come, if it was kept and is as it was written."""
        with self._explain_errors():
            rows = [row for _, row in self._rows("checkpoint") if row[0] == key and _is_sound(row)]
        return str(rows[0][1]) if rows else None

    def checkpoints(self) -> set[str]:
        """Keys of the tasks that were stopped in the middle of a search."""
        with self._explain_errors():
            return {row[0] for _, row in self._rows("checkpoint")}

    def forget_checkpoint(self, key: str) -> None:
        """Drop the checkpoint of a search that is finished."""
        with self._explain_errors():
            self._file.execute("DELETE FROM checkpoint WHERE key = ?", (key,))

    def __len__(self) -> int:
        with self._explain_errors():
            return int(self._one("SELECT count(*) FROM task"))

    def to_frame(self) -> Any:
        """One row per finished task, as polars or pandas frame; outcomes stay JSON."""
        with self._explain_errors():
            cursor = self._file.execute("SELECT * FROM task ORDER BY data, expression, realization")
            names = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
        return frame({name: [row[i] for row in rows] for i, name in enumerate(names)})

    def close(self) -> None:
        """Close the file; the write-ahead log is folded into it by the last to close."""
        with self._explain_errors():
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Store {self.path or 'in memory'}>"


#: Why a store cannot be used, by what SQLite's message contains.
REASONS = {
    "full": "the disk is full. Make room and run again",
    "locked": f"another process has been writing for {PATIENCE:.0f} seconds. Run again later",
    "readonly": "it cannot be opened for writing ({}). Name a file that can",
    "unable to open": "it cannot be opened for writing ({}). Name a file that can",
    "not a database": "it is no store, but some other file; nothing was changed in it. Name a new "
    "file",
}


def _sentence(path: Path | None, error: Exception) -> InvalidStore:
    text = str(error).rstrip(".")
    known = "readonly" if isinstance(error, OSError) else text
    why = next((REASONS[part] for part in REASONS if part in known), None)
    if why is None:
        why = f"it is damaged ({text}). Name a new file, or restore this one from a copy"
        return InvalidStore(f"The store {path} cannot be used: {why}.")
    return InvalidStore(
        f"The store {path} cannot be used: {why.format(text)}. Finished tasks are kept."
    )


def _is_sound(row: list[Any]) -> bool:
    """Whether a row is as it was written."""
    *values, held = row
    return bool(held == checksum(*values))


def _outcome_of(row: list[Any]) -> Outcome | None:
    """The outcome of a row of a task; None where it is damaged."""
    return Outcome.from_text(*row[-3:-1]) if _is_sound(row) else None
