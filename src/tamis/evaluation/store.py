"""Finished tasks in one SQLite file, so that a killed experiment continues.

The file is written with a write-ahead log, one row per finished task: a process that is killed
loses what it was computing and nothing else, and two processes may share a file.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from threading import RLock
from time import monotonic, sleep
from types import TracebackType
from typing import Any, NamedTuple, Self

from tamis._frame import frame
from tamis.evaluation.outcome import Outcome, Score
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
    finished TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE IF NOT EXISTS checkpoint (
    key TEXT PRIMARY KEY,
    record TEXT NOT NULL,
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
        except (sqlite3.Error, OSError) as error:
            raise _sentence(self.path, error) from error

    def save(self, address: Address, outcome: Outcome) -> None:
        """Keep a finished task; one that another process finished first stays as it is."""
        text = json.dumps(_plain(outcome))
        row = (address.key, *address, text, outcome.seconds)
        with self._spoken():
            marks = ", ".join("?" * len(row))
            self._file.execute(
                "INSERT OR IGNORE INTO task (key, expression, data, fingerprint, realization, "
                f"seed, version, protocol, outcome, seconds) VALUES ({marks})",
                row,
            )

    def has(self, key: str) -> bool:
        """Whether a task is finished."""
        with self._spoken():
            return self._one("SELECT 1 FROM task WHERE key = ?", key) is not None

    def keys(self) -> set[str]:
        """Keys of all finished tasks."""
        with self._spoken():
            return {key for (key,) in self._file.execute("SELECT key FROM task")}

    def outcomes(self, keys: Iterable[str]) -> dict[str, Outcome]:
        """Outcomes of those of the tasks that are finished."""
        wanted, found = list(keys), {}
        with self._spoken():
            for start in range(0, len(wanted), 500):
                some = wanted[start : start + 500]
                marks = ", ".join("?" * len(some))
                query = f"SELECT key, outcome, seconds FROM task WHERE key IN ({marks})"
                for key, text, seconds in self._file.execute(query, some):
                    found[key] = self._outcome(text, seconds)
        return found

    def _outcome(self, text: str, seconds: float) -> Outcome:
        try:
            return _outcome(json.loads(text), seconds)
        except (ValueError, TypeError, KeyError) as error:
            raise _sentence(self.path, error) from error

    def checkpoint(self, key: str, record: str) -> None:
        """Keep how far an unfinished search has come."""
        with self._spoken():
            self._file.execute(
                "INSERT OR REPLACE INTO checkpoint (key, record) VALUES (?, ?)", (key, record)
            )

    def checkpointed(self, key: str) -> str | None:
        """How far an unfinished search had come, if it was kept."""
        with self._spoken():
            found: str | None = self._one("SELECT record FROM checkpoint WHERE key = ?", key)
            return found

    def checkpoints(self) -> set[str]:
        """Keys of the tasks that were stopped in the middle of a search."""
        with self._spoken():
            return {key for (key,) in self._file.execute("SELECT key FROM checkpoint")}

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


def _plain(outcome: Outcome) -> dict[str, Any]:
    plain = outcome._asdict()
    del plain["seconds"]
    return {**plain, "scores": [list(score) for score in outcome.scores]}


def _outcome(plain: dict[str, Any], seconds: float) -> Outcome:
    scores = tuple(Score(*score) for score in plain.pop("scores"))
    columns = {
        name: None if plain[name] is None else tuple(plain[name]) for name in ("order", "support")
    }
    return Outcome(**{**plain, **columns, "scores": scores, "seconds": seconds})
