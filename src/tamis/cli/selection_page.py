"""The page of a selection: what it says, what is measured and tried out for it."""

import warnings
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from tamis.auto import Auto
from tamis.choice import HonestSize
from tamis.cli.answer import dense_frame
from tamis.cli.counting import counted_bar
from tamis.cli.request import Request
from tamis.cli.trying import tried_out
from tamis.contract import SURVIVAL, Selection
from tamis.evaluation import Results
from tamis.exceptions import InvalidParameter
from tamis.table import Alert
from tamis.table.target import LabelledTable

#: How often a method that does not measure itself is repeated for a page: enough for two digits.
RESAMPLES = 20


def write_page(
    asked: Request,
    data: LabelledTable,
    selection: Selection,
    alerts: Sequence[Alert],
    path: Path,
) -> None:
    """Write the page of a selection."""
    from tamis.report import report, write_report

    X = data.X if isinstance(data.X, pl.DataFrame) else dense_frame(data.X)
    results = _resampled(asked, X, data, selection)
    told = report(
        selection,
        X,
        data.y,
        results=results,
        source=asked.spoken,
        target=data.target,
        task=data.task,
        alerts=alerts,
        command=asked.command(),
        **tried_out(selection, X, data, seed=asked.seed, n_jobs=asked.n_jobs, quiet=asked.quiet),
    )
    write_report(told, path)


def _resampled(
    asked: Request, X: pl.DataFrame, data: LabelledTable, selection: Selection
) -> Results | None:
    """What the method does on rows it has not seen, where nothing else tells it."""
    from tamis.report import resampled

    measured = isinstance(getattr(selection, "search_", selection), Auto | HonestSize)
    units = selection.units_
    by_name = not units.plain or bool(len(units.fixed))  # which the numbers alone do not have
    own = measured or by_name
    n = asked.resamples if asked.resamples is not None else 0 if own else RESAMPLES
    if n == 0 or data.task == SURVIVAL or not selection.support_.any():
        return None
    if by_name:
        raise InvalidParameter(
            "--resamples needs columns that are taken one by one, and --group or --fixed ties "
            "some. Leave it out."
        )
    bar = counted_bar("repeating the selection", "resamples", quiet=asked.quiet)
    with bar as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said at the selection itself
        return resampled(
            selection, X, data.y, n, n_jobs=asked.n_jobs, seed=asked.seed, progress=progress
        )
