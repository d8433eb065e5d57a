"""Checkpoints of long selections, so that an interrupted task resumes at its last step.

This works for any estimator that supports scikit-learn's callbacks, has a ``record_`` after every
step, and has a method ``resume(X, y, record=...)``. Other estimators start from scratch.
"""

import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from tamis._parallel import Notice
from tamis.contract import Record
from tamis.evaluation.store import Store
from tamis.exceptions import TamisError


@dataclass(frozen=True)
class Bookmark:
    """Where the checkpoint of a task is stored, and how often it is written.

    Attributes
    ----------
    key : str
        Key of the task in the store.
    every : float
        Minimum time between two writes, in seconds.
    path : Path or None
        File of the store, or None if the store is in the memory of the calling process.
    file : tuple
        Host, device and inode, which together identify the file of the store.
    begun : bool
        Whether the store had a checkpoint when the task was sent. Workers of a cluster ignore this
        and always look for a checkpoint, because another worker may have started the task.
    """

    key: str
    every: float
    path: Path | None
    file: tuple[Any, ...]
    begun: bool

    @classmethod
    def of(cls, key: str, every: float, store: Store, begun: bool) -> "Bookmark":
        """Return the bookmark of a task in the given store."""
        path = None if store.path is None else store.path.absolute()
        return cls(key, every, path, () if path is None else _identity(path), begun)


def _identity(path: Path) -> tuple[Any, ...]:
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return socket.gethostname(), found.st_dev, found.st_ino


@dataclass
class StoreKeeper:
    """Keeps the checkpoint of a task in a store on this machine.

    It has the same interface as ``Notice``.
    """

    path: Path
    key: str

    def read(self) -> str | None:
        """Return the last record, possibly written by another process, or None if there is none."""
        with Store(self.path) as store:
            return store.checkpointed(self.key)

    def post(self, record: str) -> None:
        """Write a record to the store."""
        with Store(self.path) as store:
            store.checkpoint(self.key, record)

    def remove(self) -> None:
        """Do nothing, because the process that saves the outcome removes the record."""


#: An object that keeps a checkpoint: in the store, or in the scheduler of a cluster. The scheduler
#: keeps running if a worker is lost.
Keeper = StoreKeeper | Notice


def keepers_of(bookmark: Bookmark) -> list[Keeper]:
    """Return the objects that may keep records of a task. Write to the first, and read from all.

    The store is included only on the computer that has its file, because SQLite does not support
    network file systems.
    """
    keepers: list[Keeper] = []
    if bookmark.path is not None and bookmark.file and _identity(bookmark.path) == bookmark.file:
        keepers.append(StoreKeeper(bookmark.path, bookmark.key))
    if Notice.possible():
        keepers.append(Notice(f"tamis-{bookmark.key}"))
    return keepers


class CheckpointCallback:
    """Callback that saves the record of an estimator at intervals."""

    def __init__(self, estimator: Any, keeper: Keeper, every: float):
        self.estimator, self.keeper, self.every = estimator, keeper, every
        self.last = monotonic()

    def setup(self, estimator: Any, context: Any) -> None:
        """Do nothing before the fit."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing after the fit."""

    def on_fit_task_begin(self, estimator: Any, context: Any, **more: Any) -> None:
        """Do nothing before a step."""

    def on_fit_task_end(self, estimator: Any, context: Any, **more: Any) -> bool:
        """Save the record after a step if the interval has passed.

        Return False, so that the fit continues.
        """
        record = getattr(estimator, "record_", None)
        if estimator is self.estimator and record is not None:
            now = monotonic()
            if now - self.last >= self.every:
                self.last = now
                self.keeper.post(json.dumps(record.to_dict(), default=_plain))
        return False


def fit(method: Any, X: Any, y: Any, bookmark: Bookmark | None) -> None:
    """Fit the method, starting from its checkpoint if there is one."""
    able = hasattr(method, "resume") and hasattr(method, "set_callbacks")
    keepers = keepers_of(bookmark) if able and bookmark is not None else []
    if bookmark is None or not keepers:
        method.fit(X, y)
        return
    method.set_callbacks(CheckpointCallback(method, keepers[0], bookmark.every))
    readable = keepers if bookmark.begun or Notice.possible() else []
    records = [_parse_record(keeper.read()) for keeper in readable]
    found = [record for record in records if record is not None]
    # use the record with the most steps, which may come from another computer
    record = max(found, key=lambda record: len(record.trace), default=None)
    if record is None or not _resume(method, X, y, record):
        method.fit(X, y)
    for keeper in keepers:
        keeper.remove()


def _resume(method: Any, X: Any, y: Any, record: Record) -> bool:
    """Resume a method from a record, and return whether that succeeded."""
    try:
        method.resume(X, y, record=record)
    except (TamisError, ValueError, TypeError, LookupError):
        return False
    return True


def _parse_record(text: str | None) -> Record | None:
    """Return the record parsed from a text, or None if it is missing or unreadable."""
    try:
        return None if text is None else Record.from_dict(json.loads(text))
    except (TamisError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def _plain(value: Any) -> Any:
    """Convert numpy arrays and scalars to lists and numbers."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
