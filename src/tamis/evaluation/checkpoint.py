"""Long selections keep how far they have come, so that a killed one continues in its middle.

Nothing here knows what a search is: an estimator that takes scikit-learn's callbacks, shows its
``record_`` at every step and has ``resume(X, y, record=...)`` is continued, any other starts anew.
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
    """Where a task keeps how far it has come.

    Attributes
    ----------
    key : str
        The task.
    every : float
        Seconds between two writes.
    path : Path or None
        The store, None where it is in the memory of the calling process.
    file : tuple
        What tells the file of the store, and the machine it is on, from any other.
    begun : bool
        Whether the store had a record of the task when it was handed out. Workers of a cluster
        look anyway: a task may have been another's in between.
    """

    key: str
    every: float
    path: Path | None
    file: tuple[Any, ...]
    begun: bool

    @classmethod
    def of(cls, key: str, every: float, store: Store, begun: bool) -> "Bookmark":
        """The bookmark of a task whose outcome goes to the store."""
        path = None if store.path is None else store.path.absolute()
        return cls(key, every, path, () if path is None else _identity(path), begun)


def _identity(path: Path) -> tuple[Any, ...]:
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return socket.gethostname(), found.st_dev, found.st_ino


class StoreKeeper:
    """Keeps records in the store, whose file is on this machine; used as a ``Notice`` is."""

    def __init__(self, path: Path, key: str):
        self.path, self.key = path, key

    def read(self) -> str | None:
        """What was kept last, by whichever process had the task before."""
        with Store(self.path) as store:
            return store.checkpointed(self.key)

    def post(self, record: str) -> None:
        """Write into the store."""
        with Store(self.path) as store:
            store.checkpoint(self.key, record)

    def remove(self) -> None:
        """Do nothing: the process that saves the outcome removes the record after that."""


#: The store, or the scheduler of a cluster, which outlives its workers.
Keeper = StoreKeeper | Notice


def keepers_of(bookmark: Bookmark) -> list[Keeper]:
    """Who can keep the records of a task where it runs: the first does, the others may have.

    SQLite is not made for network file systems: the store is written to on its own machine only,
    by the processes of the call or by workers of a cluster.
    """
    keepers: list[Keeper] = []
    if bookmark.path is not None and bookmark.file and _identity(bookmark.path) == bookmark.file:
        keepers.append(StoreKeeper(bookmark.path, bookmark.key))
    if Notice.possible():
        keepers.append(Notice(f"tamis-{bookmark.key}"))
    return keepers


class CheckpointCallback:
    """Callback that hands the record of an estimator to a keeper, now and then."""

    def __init__(self, estimator: Any, keeper: Keeper, every: float):
        self.estimator, self.keeper, self.every = estimator, keeper, every
        self.last = monotonic()

    def setup(self, estimator: Any, context: Any) -> None:
        """Called before the fit."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Called after the fit."""

    def on_fit_task_begin(self, estimator: Any, context: Any, **more: Any) -> None:
        """Called before a step."""

    def on_fit_task_end(self, estimator: Any, context: Any, **more: Any) -> bool:
        """Called after a step: keep the record, if it is time; never stop."""
        record = getattr(estimator, "record_", None)
        if estimator is self.estimator and record is not None:
            now = monotonic()
            if now - self.last >= self.every:
                self.last = now
                self.keeper.post(json.dumps(record.to_dict(), default=_plain))
        return False


def fit(method: Any, X: Any, y: Any, bookmark: Bookmark | None) -> None:
    """Fit the method, from where it was stopped if that was kept."""
    able = hasattr(method, "resume") and hasattr(method, "set_callbacks")
    keepers = keepers_of(bookmark) if able and bookmark is not None else []
    if bookmark is None or not keepers:
        method.fit(X, y)
        return
    method.set_callbacks(CheckpointCallback(method, keepers[0], bookmark.every))
    seen = keepers if bookmark.begun or Notice.possible() else []
    kept = [_record_of(keeper.read()) for keeper in seen]
    found = [record for record in kept if record is not None]
    # what went furthest, perhaps on another machine
    record = max(found, key=lambda record: len(record.trace), default=None)
    if record is None or not _resume(method, X, y, record):
        method.fit(X, y)
    for keeper in keepers:
        keeper.remove()


def _resume(method: Any, X: Any, y: Any, record: Record) -> bool:
    """Whether the method could go on from a record."""
    try:
        method.resume(X, y, record=record)
    except (TamisError, ValueError, TypeError, LookupError):
        return False
    return True


def _record_of(text: str | None) -> Record | None:
    """The record that was kept; None where there is none, or it cannot be read."""
    try:
        return None if text is None else Record.from_dict(json.loads(text))
    except (TamisError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def _plain(value: Any) -> Any:
    """Numpy arrays and scalars as lists and numbers."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
