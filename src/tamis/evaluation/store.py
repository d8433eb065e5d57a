"""Store of finished tasks in a SQLite file, so that an interrupted evaluation can continue.

The file has one row per finished task. It uses a write-ahead log, so an interrupted process loses
only its current task, and several processes can share a file. Every row has a checksum. Damaged
rows are reported and computed again.
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

# "tami" in ASCII, which marks a SQLite file as a store of tamis
APPLICATION = 0x74616D69
FORMAT = 2
#: Seconds to wait while another process is writing.
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
    """Everything that a task depends on. Tasks with the same address have the same outcome."""

    expression: str
    data: str
    fingerprint: str
    realization: int
    seed: int
    version: str
    protocol: str

    @property
    def key(self) -> str:
        """Hash of the address, which is the key of the task in a store."""
        return sha256("\x1f".join(map(str, self)).encode()).hexdigest()[:32]


COLUMNS = ("key", *Address._fields, "outcome", "seconds")
#: Columns of each table that are included in its checksums.
TABLES = {"task": COLUMNS, "checkpoint": ("key", "record")}


def checksum(*values: Any) -> str:
    """Return a short hash of the values.

    >>> checksum("a", 1, 0.5)
    '6b812aee0d8a9d11'
    """
    return sha256("\x1f".join(map(repr, values)).encode("utf-8", "replace")).hexdigest()[:16]


class Store:
    """Store of finished tasks.

    Parameters
    ----------
    path : str, path or None
        The file, which is created if it does not exist. None keeps everything in memory.

    Examples
    --------
    >>> with Store(None) as store:
    ...     len(store)
    0
    """

    def __init__(self, path: str | os.PathLike[str] | None):
        self.path = None if path is None else Path(path)
        self._lock = RLock()
        self._is_checked = False
        with self._explain_errors():
            self._open()

    def _open(self) -> None:
        """Open the file, and retry if it is busy.

        If several connections start a write-ahead log at the same time, SQLite does not wait. Only
        one connection succeeds, and the others get an error.
        """
        if self.path is not None and not self.path.parent.is_dir():
            raise InvalidStore(
                f"The store {self.path} cannot be created: {self.path.parent} is not a folder."
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
        # the threads of a parallel run use the connection one at a time, under the lock
        self._file = sqlite3.connect(
            ":memory:" if self.path is None else self.path,
            timeout=PATIENCE,
            isolation_level=None,
            check_same_thread=False,
        )
        # checksums detect damaged texts, so decoding must not raise an error here
        self._file.text_factory = lambda text: text.decode("utf-8", "replace")
        try:
            self._begin()
        except BaseException:
            self._file.close()
            raise

    def _begin(self) -> None:
        """Check that the file is a store, or create the tables in an empty one."""
        self._file.execute("BEGIN")  # atomic, because another process may be creating the file
        empty = self._one("SELECT count(*) FROM sqlite_master") == 0
        ours, form = self._one("PRAGMA application_id"), self._one("PRAGMA user_version")
        self._file.execute("COMMIT")
        if not empty and ours != APPLICATION:
            raise InvalidStore(
                f"{self.path} is a database of another program and was not changed. Name a new "
                "file as the store."
            )
        if not empty and form != FORMAT:
            raise InvalidStore(
                f"{self.path} was written by another version of tamis (format {form}, not "
                f"{FORMAT}) and was not changed. Name a new file as the store."
            )
        # with these settings, a system crash may lose the last rows but does not damage the file
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
        """Turn errors of SQLite into errors of tamis with a readable message."""
        try:
            with self._lock:
                yield
        # messages about damaged files may contain invalid characters
        except (sqlite3.Error, OSError, UnicodeError) as error:
            raise _sentence(self.path, error) from error

    def save(self, address: Address, outcome: Outcome) -> None:
        """Save a finished task, unless another process has already saved it."""
        values = address.key, *address, outcome.to_text(), outcome.seconds
        self._insert("INSERT OR IGNORE", "task", values)

    def has(self, key: str) -> bool:
        """Return whether the task with this key is finished."""
        with self._explain_errors():
            return self._one("SELECT 1 FROM task WHERE key = ?", key) is not None

    def keys(self) -> set[str]:
        """Return the keys of all finished tasks."""
        with self._explain_errors():
            return {key for (key,) in self._file.execute("SELECT key FROM task")}

    def outcomes(self, keys: Iterable[str]) -> dict[str, Outcome]:
        """Return the outcomes of those tasks in ``keys`` that are finished and undamaged."""
        wanted = set(keys)
        with self._explain_errors():
            found = {row[0]: row for _, row in self._rows("task") if row[0] in wanted}
        outcomes = {key: _outcome_of(row) for key, row in found.items()}
        return {key: outcome for key, outcome in outcomes.items() if outcome is not None}

    def drop_damaged(self) -> list[str]:
        """Delete damaged rows, and return their descriptions.

        A store is checked only once. Rows that are written later are checked when they are read.
        """
        if self._is_checked:
            return []
        self._is_checked = True
        names = []
        with self._explain_errors():
            for number, row in list(self._rows("task")):
                if _outcome_of(row) is None:
                    self._file.execute("DELETE FROM task WHERE rowid = ?", (number,))
                    names.append(f"{row[1]} on {row[2]}, realization {row[4]}")
            for number, row in list(self._rows("checkpoint")):
                if not _is_sound(row):
                    self._file.execute("DELETE FROM checkpoint WHERE rowid = ?", (number,))
                    names.append(f"the checkpoint of task {str(row[0])[:8]}")
        return names

    def _insert(self, verb: str, table: str, values: tuple[Any, ...]) -> None:
        marks = ", ".join("?" * (len(values) + 1))
        columns = ", ".join((*TABLES[table], "checksum"))
        with self._explain_errors():
            self._file.execute(
                f"{verb} INTO {table} ({columns}) VALUES ({marks})", (*values, checksum(*values))
            )

    def _rows(self, table: str) -> Iterator[tuple[int, list[Any]]]:
        """Yield the number and the values of each row of a table. The last value is a checksum."""
        columns = ", ".join(TABLES[table])
        for number, *row in self._file.execute(f"SELECT rowid, {columns}, checksum FROM {table}"):
            yield number, row

    def checkpoint(self, key: str, record: str) -> None:
        """Save the record of an unfinished selection as its checkpoint."""
        self._insert("INSERT OR REPLACE", "checkpoint", (key, record))

    def checkpointed(self, key: str) -> str | None:
        """Return the record of an unfinished selection, or None if it is missing or damaged."""
        with self._explain_errors():
            rows = [row for _, row in self._rows("checkpoint") if row[0] == key and _is_sound(row)]
        return str(rows[0][1]) if rows else None

    def checkpoints(self) -> set[str]:
        """Return the keys of the tasks that have checkpoints."""
        with self._explain_errors():
            return {row[0] for _, row in self._rows("checkpoint")}

    def forget_checkpoint(self, key: str) -> None:
        """Delete the checkpoint of a task."""
        with self._explain_errors():
            self._file.execute("DELETE FROM checkpoint WHERE key = ?", (key,))

    def __len__(self) -> int:
        with self._explain_errors():
            return int(self._one("SELECT count(*) FROM task"))

    def to_frame(self) -> Any:
        """Return a polars or pandas frame with one row per finished task. Outcomes are JSON."""
        with self._explain_errors():
            cursor = self._file.execute("SELECT * FROM task ORDER BY data, expression, realization")
            names = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
        return frame({name: [row[i] for row in rows] for i, name in enumerate(names)})

    def close(self) -> None:
        """Close the connection. The last one to close merges the write-ahead log into the file."""
        with self._explain_errors():
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Store {self.path or 'in memory'}>"


#: Reasons why a store cannot be used. The key is a part of SQLite's error message.
REASONS = {
    "full": "the disk is full. Free some space and run again",
    "locked": f"another process has been writing for {PATIENCE:.0f} seconds. Run again later",
    "readonly": "it cannot be opened for writing ({}). Name a file that can",
    "unable to open": "it cannot be opened for writing ({}). Name a file that can",
    "not a database": "it is not a store and was not changed. Name a new file",
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
    """Return whether a row matches its checksum."""
    *values, held = row
    return bool(held == checksum(*values))


def _outcome_of(row: list[Any]) -> Outcome | None:
    """Return the outcome stored in a task's row, or None if it is damaged."""
    return Outcome.from_text(*row[-3:-1]) if _is_sound(row) else None
