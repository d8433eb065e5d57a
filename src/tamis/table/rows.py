"""Tables of any kind as data for :func:`tamis.evaluation.evaluate`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tamis._arrays import fingerprint
from tamis.blocks.inputs import SparseColumns
from tamis.contract import Selection
from tamis.evaluation.sources import Fixed, Rows, as_rows
from tamis.table.encoder import TableEncoder
from tamis.table.selector import TableSelector
from tamis.table.target import LabelledTable


@dataclass(frozen=True, eq=False, repr=False)
class FrameSource(Fixed):
    """A frame for all resamples. Methods and estimators encode the training rows themselves."""

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the frame's values, which identifies it in a store."""
        frame: Any = self.rows.X
        values = sha256(frame.write_ipc(None).getbuffer()).hexdigest()[:16]
        return f"{values}{fingerprint(np.zeros((1, 1)), self.rows.y)}"


@dataclass(frozen=True)
class ResampledTable:
    """Data for ``evaluate``, and the encoding that methods and estimators need to use it.

    Attributes
    ----------
    source : Fixed
        The data argument of ``evaluate``.
    task : {"classification", "regression"}
    plain : bool
        Whether all columns are numbers without missing values. ``evaluate`` scales such a table
        itself. Other tables are encoded within each resample.
    keep : sequence of str
        Columns to use although they look like an identifier or a code of the target.
    """

    source: Fixed
    task: str
    plain: bool
    keep: Sequence[str] = ()

    def method(self, method: Any) -> Any:
        """Wrap a method so that it accepts the table. Selectors of other libraries get numbers."""
        if self.plain:
            return method
        if isinstance(method, TableSelector):
            return clone(method).set_params(alerts=False)
        if isinstance(method, Selection):
            return TableSelector(method, keep=self.keep, alerts=False)
        return self.estimator(method)

    def estimator(self, estimator: Any) -> Any:
        """Wrap an estimator so that it accepts columns of the table, encoded and scaled."""
        if self.plain:
            return estimator
        return make_pipeline(TableEncoder(keep=self.keep), StandardScaler(), estimator)


def resampled(
    name: str, data: LabelledTable, *, plain: bool, keep: Sequence[str] = ()
) -> ResampledTable:
    """Return a table as data for ``evaluate``.

    Parameters
    ----------
    name : str
        Name of the data. The splits depend on it.
    data : LabelledTable
    plain : bool
        Whether all columns are numbers without missing values.
    keep : sequence of str
        Columns to use although they look like an identifier or a code of the target.
    """
    y: NDArray[Any] = data.y.astype(float) if data.task == "regression" else data.y
    assert not isinstance(data.X, SparseColumns)
    if plain:
        return ResampledTable(Fixed(name, as_rows((data.X.to_numpy(), y), name)), data.task, True)
    return ResampledTable(FrameSource(name, frame_rows(data.X, y, name)), data.task, False, keep)


def frame_rows(frame: pl.DataFrame, y: NDArray[Any], name: str) -> Rows:
    """Return a frame and its target as rows for ``evaluate``, with the checks of ``evaluate``."""
    as_rows((np.zeros((len(frame), 1)), y), name)
    rows: Any = frame
    return Rows(rows, y)
