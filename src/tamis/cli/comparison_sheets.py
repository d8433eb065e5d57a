"""A comparison as sheets: one row per method, and the scores at every number of columns."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from tamis._wording import counted
from tamis.cli.contest import GUESS, Rules
from tamis.cli.sheets import Sheet, Value
from tamis.evaluation import Standing, Standings
from tamis.spec import write
from tamis.table import Alert

#: Metrics that are shares, which people read in percent.
SHARES = ("error", "ber")
SPOKEN = {"ber": "balanced error", "rmse": "RMSE", "mse": "mean squared error", "auc": "AUC"}
#: The least p-value that is printed.
LEAST = 0.001


class Failed(NamedTuple):
    """A method that could not be used at all (``times`` 0), or failed in some resamples."""

    method: str
    times: int
    sentence: str


class Compared(NamedTuple):
    """What was compared on one table."""

    data: str
    target: str
    rules: Rules
    failed: tuple[Failed, ...]
    alerts: Sequence[Alert]


def heading(one: Compared, standing: Standings) -> list[str]:
    rules, n_rows = one.rules, one.rules.shape[0]
    n_train = round(rules.plan.train * n_rows)
    n = len(rules.plan)
    return [
        f"{one.data}: {rules.spoken}",
        f"{counted(n, 'resample')}: chosen and trained on {n_train} rows, measured on the other "
        f"{n_rows - n_train}",
        f"{spoken_metric(standing)} of {write(rules.estimator, strict=False)}",
    ]


def spoken_metric(standing: Standings) -> str:
    """The metric as people call it, with its unit."""
    name = SPOKEN.get(standing.metric, standing.metric)
    return f"{name} %" if standing.metric in SHARES else name


def with_error(mean: float, error: float, standing: Standings) -> str:
    """``12.3 ± 1.4``; an error of nothing, or none, is not written."""
    if not math.isfinite(mean):
        return "–"
    scale = 100 if standing.metric in SHARES else 1
    decimals = 1 if standing.metric in SHARES else _decimals(mean)
    number = _rounded(scale * mean, decimals)
    if not math.isfinite(error) or error == 0:
        return number
    return f"{number} ± {_rounded(scale * error, decimals)}"


def _decimals(value: float) -> int:
    """So many that a number has three digits."""
    return 2 if value == 0 else min(2 - math.floor(math.log10(abs(value))), 300)


def _rounded(value: float, decimals: int) -> str:
    """A number with so many decimals; those far from one with a power of ten."""
    if -2 <= decimals <= 6:
        return f"{value:.{max(decimals, 0)}f}"
    return f"{value:.2e}"


def with_curves(rows: Sequence[Standing]) -> list[Standing]:
    """Methods with a curve."""
    return [row for row in rows if row.curve]


def curve_sheet(rows: Sequence[Standing], standing: Standings) -> Sheet:
    """Sizes by methods; the best of each method has a star."""
    shown = with_curves(rows)
    sizes = sorted({point.size for row in shown for point in row.curve})
    cells = {
        (point.size, row.method): with_error(point.mean, point.error, standing)
        + (" *" if point.size == row.size else "")
        for row in shown
        for point in row.curve
    }
    return Sheet(
        f"{spoken_metric(standing)} by number of columns ± one standard error; * the best",
        ["columns", *(row.method for row in shown)],
        [[size, *(cells.get((size, row.method)) for row in shown)] for size in sizes],
    )


def summary_sheet(rows: Sequence[Standing], standing: Standings, failed: Sequence[Failed]) -> Sheet:
    """One row per method, the best first; methods without any score last."""
    best = rows[0].method if rows else None
    made: list[list[Value]] = [
        [
            row.method,
            "0" if row.method == GUESS else spoken_size(row.size),
            spoken_size(row.enough) if row.curve else None,
            with_error(row.mean, row.error, standing),
            None if row.method == best else spoken_p(row.p_value),
            _spoken_stability(row),
            spoken_seconds(row.seconds),
        ]
        for row in rows
    ]
    made += [
        [one.method, "failed", *[None] * 5]
        for one in failed
        if one.method not in {row.method for row in rows}
    ]
    return Sheet(
        f"{spoken_metric(standing)} of each method at its best number of columns",
        [
            "method",
            "columns",
            "enough",
            spoken_metric(standing),
            "p",
            "stability",
            "per fit",
        ],
        made,
    )


def spoken_size(size: float) -> str:
    """A number of columns, or the mean of several."""
    return f"{size:.0f}" if size == round(size) else f"{size:.1f}"


def spoken_p(p: float) -> str:
    """A p-value with two digits.

    >>> spoken_p(0.0312), spoken_p(0.00001), spoken_p(1.0)
    ('0.031', '< 0.001', '1')
    """
    if math.isnan(p):
        return "–"
    return f"< {LEAST:g}" if p < LEAST else f"{p:.2g}"


def spoken_seconds(seconds: float) -> str:
    """A time of a fit.

    >>> spoken_seconds(0.00042), spoken_seconds(0.0312), spoken_seconds(12.3), spoken_seconds(600)
    ('0.4 ms', '31 ms', '12 s', '10 min')
    """
    if seconds < 0.001:
        return f"{1000 * seconds:.1f} ms"
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"


def _spoken_stability(row: Standing) -> str | None:
    if row.stability is None:
        return None
    one = row.stability
    low, high = max(one.low, -1.0), min(one.high, 1.0)
    # the zero is added because rounding may leave a minus before nothing
    return f"{one.nogueira + 0.0:.2f} ({low + 0.0:.2f} to {high + 0.0:.2f})"
