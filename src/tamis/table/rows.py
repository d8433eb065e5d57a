"""A table of any kinds as :func:`tamis.evaluation.evaluate` takes its rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
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
    """A frame for every realization: methods and estimators encode their training part of it."""

    @cached_property
    def fingerprint(self) -> str:
        """Short name of the values."""
        frame: Any = self.rows.X
        values = sha256(frame.write_ipc(None).getbuffer()).hexdigest()[:16]
        return f"{values}{fingerprint(np.zeros((1, 1)), self.rows.y)}"


@dataclass(frozen=True)
class ResampledTable:
    """A table that is resampled, and how methods and estimators are made to read it.

    Attributes
    ----------
    source : Fixed
        What ``evaluate`` takes as data.
    task : {"classification", "regression"}
    plain : bool
        Whether it holds numbers without gaps, which ``evaluate`` scales itself; other tables are
        encoded inside every training part.
    keep : sequence of str
        Columns to use although they look like an identifier or a code of the target.
    """

    source: Fixed
    task: str
    plain: bool
    keep: Sequence[str] = ()

    def method(self, method: Any) -> Any:
        """A method that reads the table; one that is no selection of ours is given numbers."""
        if self.plain or isinstance(method, TableSelector):
            return method
        if isinstance(method, Selection):
            return TableSelector(method, keep=self.keep)
        return self.estimator(method)

    def estimator(self, estimator: Any) -> Any:
        """An estimator that reads columns of the table, scaled."""
        if self.plain:
            return estimator
        return make_pipeline(TableEncoder(keep=self.keep), StandardScaler(), estimator)


def resampled(
    name: str, data: LabelledTable, *, plain: bool, keep: Sequence[str] = ()
) -> ResampledTable:
    """What a table is for ``evaluate``.

    Parameters
    ----------
    name : str
        Name of the data, which the splits follow from.
    data : LabelledTable
    plain : bool
        Whether all columns are numbers without gaps.
    keep : sequence of str
        Columns to use although they look like an identifier or a code of the target.
    """
    y: NDArray[Any] = data.y.astype(float) if data.task == "regression" else data.y
    assert not isinstance(data.X, SparseColumns)
    if plain:
        return ResampledTable(Fixed(name, as_rows((data.X.to_numpy(), y), name)), data.task, True)
    return ResampledTable(FrameSource(name, frame_rows(data.X, y, name)), data.task, False, keep)


def frame_rows(frame: pl.DataFrame, y: NDArray[Any], name: str) -> Rows:
    """A frame and its target, checked as numbers are."""
    as_rows((np.zeros((len(frame), 1)), y), name)
    rows: Any = frame
    return Rows(rows, y)
