"""The record of a selection: everything needed to report, compare, save and resume it."""

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from tamis._arrays import Array, fingerprint
from tamis._expression import write
from tamis.exceptions import InvalidParameter, InvalidTable, RecordMismatch
from tamis.trace import Trace

FORMAT = 1


@cache
def installed_versions() -> Mapping[str, str]:
    """Versions that a result may depend on."""
    names = ("tamis", "numpy", "scipy", "scikit-learn")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


@dataclass(frozen=True, repr=False)
class Record:
    """What a fitted selection did, on which data, with which seeds and versions.

    Attributes
    ----------
    expression : str
        The selector, as the expression that makes it.
    identity : str
        The expression without what does not change the result: processes and budgets.
    data : str
        Fingerprint of the data, see :func:`tamis._arrays.fingerprint`.
    n_samples : int
    feature_names : tuple of str or None
    seeds : dict
        The number used for every ``random_state`` that was not given as one.
    trace : Trace
    chosen : int
        Position in the trace of the step that was kept.
    n_evaluations : int
    finished : bool
        False when a callback, an interrupt or a budget stopped the search.
    versions : dict
    parts : tuple of Record
        The records of the searches that a composed selector ran.
    """

    expression: str
    identity: str
    data: str
    n_samples: int
    feature_names: tuple[str, ...] | None
    seeds: Mapping[str, int]
    trace: Trace
    chosen: int = 0
    n_evaluations: int = 0
    finished: bool = False
    versions: Mapping[str, str] = field(default_factory=installed_versions)
    parts: "tuple[Record, ...]" = ()

    @property
    def seconds(self) -> float:
        """Time spent in all steps."""
        return self.trace.seconds

    @classmethod
    def begin(cls, selector: BaseEstimator, X: Array, y: Any, params: Mapping[str, Any]) -> Self:
        """The record of a selector that has done nothing yet."""
        names = getattr(selector, "feature_names_in_", None)
        return cls(
            expression=write(selector, strict=False),
            identity=write(_without_means(selector), strict=False),
            data=fingerprint(X, y, **params),
            n_samples=len(X),
            feature_names=None if names is None else tuple(map(str, names)),
            seeds={},
            trace=Trace(X.shape[1]),
        )

    def check_continues(self, fresh: "Record") -> None:
        """Refuse to continue another search, or on other data."""
        if fresh.identity != self.identity:
            raise RecordMismatch(
                f"The record belongs to {self.expression}, not to {fresh.expression}. Resume it "
                "with the selector that made it, or call fit to start anew."
            )
        if fresh.data != self.data:
            raise RecordMismatch(
                f"The record was made on other data (fingerprint {self.data}, not {fresh.data}). "
                "Resume it with the same X, y and weights, or call fit to start anew."
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dictionaries."""
        plain = {k: v for k, v in vars(self).items() if k not in ("trace", "parts")}
        return {
            "format": FORMAT,
            **plain,
            "trace": self.trace.to_dict(),
            "parts": [part.to_dict() for part in self.parts],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """The record that :meth:`to_dict` wrote."""
        plain = dict(plain)
        if plain.pop("format", None) != FORMAT:
            raise InvalidTable(
                f"This is no record that tamis {version('tamis')} can read: it needs 'format': "
                f"{FORMAT}. Use the version that wrote it, or fit again."
            )
        trace = Trace.from_dict(plain.pop("trace"))
        parts = tuple(cls.from_dict(part) for part in plain.pop("parts"))
        names = plain.pop("feature_names")
        names = None if names is None else tuple(names)
        return cls(trace=trace, parts=parts, feature_names=names, **plain)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the record as JSON; an existing file is replaced only by a complete one."""
        path = Path(path)
        draft = path.with_name(path.name + ".part")
        draft.write_text(json.dumps(self.to_dict(), default=_plain) + "\n", encoding="utf-8")
        os.replace(draft, path)

    @classmethod
    def of(cls, given: Any) -> Self:
        """The record itself, or the one in a file."""
        if isinstance(given, str | os.PathLike):
            return cls.load(given)
        if not isinstance(given, cls):
            raise InvalidParameter(
                f"resume needs a record (search.record_) or the path of a saved one, not {given!r}."
            )
        return given

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what :meth:`save` wrote."""
        try:
            plain = json.loads(Path(path).read_text(encoding="utf-8"))
        except (UnicodeDecodeError, json.JSONDecodeError) as error:
            raise InvalidTable(f"{path} is no record: {error}.") from error
        if not isinstance(plain, dict):
            raise InvalidTable(f"{path} is no record: it holds a {type(plain).__name__}.")
        return cls.from_dict(plain)

    def __repr__(self) -> str:
        end = "finished" if self.finished else "stopped"
        return f"<Record of {self.expression}: {len(self.trace)} steps, {end}>"


def _without_means(selector: BaseEstimator) -> BaseEstimator:
    """The selector without the parameters that say how long and with what to compute."""
    bare = clone(selector)
    means = {"n_jobs", "max_evaluations", "max_seconds"}
    for name in bare.get_params():
        if name.split("__")[-1] in means:
            bare.set_params(**{name: None})
    return bare


def _plain(value: Any) -> Any:
    """Numpy arrays and scalars as lists and numbers."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
