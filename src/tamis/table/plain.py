"""Whether a frame is numbers and nothing else, so that it needs no encoding."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from tamis._arrays import target_kind
from tamis.table.alerts import profiled
from tamis.table.frames import as_polars
from tamis.table.kinds import columns_of


def is_plain(X: Any, y: Any, keep: Sequence[str] = ()) -> bool:
    """Whether a frame holds numbers without gaps only.

    With a target also whether no column would be set aside: no identifier, no code of ``y``.
    """
    frame = as_polars(X)
    if frame.height < 2:
        return True  # too few rows, of which whoever fits the table speaks
    if any(not (dtype.is_numeric() or dtype == pl.Boolean) for dtype in frame.dtypes):
        return False
    seen = columns_of(frame)
    if seen.n_missing.any():
        return False
    if y is None:
        return True
    target = np.asarray(y)
    if target.dtype.kind == "O" and any(value is None for value in target):
        return True  # whoever reads the target says what is wrong with it
    profile = profiled(frame, seen, target, target_kind(target), keep=keep)
    return not any(why in ("identifier", "code") for why in profile.aside.values())
