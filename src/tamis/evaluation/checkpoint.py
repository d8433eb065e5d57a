"""Long searches keep how far they have come, so that a killed one continues in its middle.

Nothing here knows what a search is: an estimator that takes scikit-learn's callbacks, shows its
``record_`` at every step and has ``resume(X, y, record=...)`` is continued, any other starts anew.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from tamis.contract import Record
from tamis.evaluation.store import Store
from tamis.exceptions import TamisError


@dataclass(frozen=True)
class Bookmark:
    """Where a task keeps how far it has come, and what it kept the last time.

    Attributes
    ----------
    path : Path
        The store.
    key : str
        The task.
    record : str or None
        What was kept before.
    every : float
        Seconds between two writes.
    """

    path: Path
    key: str
    record: str | None
    every: float


class CheckpointCallback:
    """Callback that writes the record of an estimator into a store, now and then."""

    def __init__(self, estimator: Any, bookmark: Bookmark):
        self.estimator, self.bookmark, self.last = estimator, bookmark, monotonic()

    def setup(self, estimator: Any, context: Any) -> None:
        """Called before the fit."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Called after the fit."""

    def on_fit_task_begin(self, estimator: Any, context: Any, **more: Any) -> None:
        """Called before a step."""

    def on_fit_task_end(self, estimator: Any, context: Any, **more: Any) -> bool:
        """Called after a step: write, if it is time; never stop."""
        record = getattr(estimator, "record_", None)
        if estimator is self.estimator and record is not None:
            now = monotonic()
            if now - self.last >= self.bookmark.every:
                self.last = now
                text = json.dumps(record.to_dict(), default=_plain)
                with Store(self.bookmark.path) as store:
                    store.checkpoint(self.bookmark.key, text)
        return False


def fit(method: Any, X: Any, y: Any, bookmark: Bookmark | None) -> None:
    """Fit the method, from where it was stopped if that was kept."""
    if bookmark is None or not (hasattr(method, "resume") and hasattr(method, "set_callbacks")):
        method.fit(X, y)
        return
    method.set_callbacks(CheckpointCallback(method, bookmark))
    record = _record_of(bookmark.record)
    if record is not None:
        try:
            method.resume(X, y, record=record)
            return
        except (TamisError, ValueError, TypeError, LookupError):
            pass  # what was kept cannot be used: start anew
    method.fit(X, y)


def _record_of(text: str | None) -> Record | None:
    """The record that was kept; None where there is none, or it cannot be read."""
    try:
        return None if text is None else Record.from_dict(json.loads(text))
    except (TamisError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def _plain(value: Any) -> Any:
    """Numpy arrays and scalars as lists and numbers."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
