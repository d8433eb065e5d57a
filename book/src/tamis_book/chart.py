"""Charts of published numbers next to ours."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tamis._format import format_number
from tamis.evaluation.metrics import metric
from tamis.exceptions import InvalidParameter
from tamis.report.charts.curves import draw_curve
from tamis.report.charts.methods import SpannedNumber, draw_intervals
from tamis.report.charts.style import Palette, palette, to_altair
from tamis.report.error_curve import METRICS, ErrorCurve, MetricFormat
from tamis_book.cells import Cell, agreement_range
from tamis_book.experiment import Experiment
from tamis_book.reproduction import Reproduction


def published(
    reproduction: Reproduction,
    part: str | None = None,
    *,
    theme: str = "light",
    width: int = 420,
    height: int = 230,
) -> Any:
    """Draw the numbers of a published table next to ours, with the range in which they agree.

    Methods that were measured at several numbers of columns are drawn as lines, with a band of one
    standard error around ours. Lines of published numbers are dashed.

    Parameters
    ----------
    reproduction : Reproduction
        Result of :func:`tamis_book.reproduce`.
    part : str, optional
        Part of the table. The default is the first part.
    theme : {"light", "page"}, default="light"
        "page" uses the colour variables of a report's style sheet.
    width, height : int
        Size of the plot in pixels. If methods are not measured at several numbers of columns,
        the height depends on the number of methods.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> from tamis_book import Cell, Reproduction, published, read
    >>> hits = Cell("100", "FisherS", None, 4, 0.5, 0, 1, 30, 2, "=", None, None)
    >>> found = Reproduction(read("thesis-3.2"), (hits,), ())  # or reproduce("thesis-3.2")
    >>> [round(row["other"], 1) for row in published(found).to_dict()["data"]["values"]]
    [6.7]
    """
    if not isinstance(reproduction, Reproduction):
        raise InvalidParameter(
            "published needs the Reproduction of tamis_book.reproduce(name), not "
            f"{type(reproduction).__name__}."
        )
    parts = reproduction.parts
    if not parts or (part is not None and part not in parts):
        named = ", ".join(map(repr, parts)) or "none"
        raise InvalidParameter(f"published needs a part that was computed ({named}), not {part!r}.")
    cells = cells_of(reproduction, parts[0] if part is None else part)
    colours = palette(theme)
    return to_altair(draw_published(cells, reproduction.experiment, colours, width, height))


def cells_of(found: Reproduction, part: str) -> list[Cell]:
    """Return the cells of a part, without baselines."""
    return [cell for cell in found.cells if cell.part == part and cell.beside is None]


def draw_published(
    cells: Sequence[Cell], experiment: Experiment, colours: Palette, width: int, height: int
) -> dict[str, Any]:
    """Draw a single part of a table."""
    measure = _metric_of(experiment)
    if len({cell.size for cell in cells}) < 2:
        rows = [_spanned(cell, experiment) for cell in cells]
        return draw_intervals(rows, measure.title, colours, width)
    methods = {cell.method: [c for c in cells if c.method == cell.method] for cell in cells}
    ours = [_line(name, own, measure, printed=False) for name, own in methods.items()]
    known = {name: [c for c in own if c.published is not None] for name, own in methods.items()}
    printed = [_line(name, own, measure, printed=True) for name, own in known.items() if own]
    stepped = any(part.steps for part in experiment.parts if part.name == cells[0].part)
    across = "step" if stepped else "columns kept"
    how: dict[str, Any] = {"published": printed, "title": measure.title, "across": across}
    return draw_curve(ours, None, colours, width, height, **how)


def _metric_of(experiment: Experiment) -> MetricFormat:
    """Return the format of an experiment's numbers, which is the format of the publication."""
    if experiment.metric == "hit":
        return MetricFormat("hits", "%", greater_is_better=True, percent=True)
    known = METRICS.get(experiment.metric)
    if known is not None and known.percent and experiment.scale == 100:
        return known
    title = {"mse": "mean squared error"}.get(experiment.metric)
    title = title or (experiment.metric if known is None else known.words)
    scale = "" if experiment.scale == 1 else f" × {experiment.scale:g}"
    return MetricFormat(title + scale, "", metric(experiment.metric).greater_is_better)


def _spanned(cell: Cell, experiment: Experiment) -> SpannedNumber:
    """Return our number with its range. Hits are shown as percentages of the realizations."""
    low, high = agreement_range(experiment, cell)
    other, ours = cell.published, cell.ours
    if experiment.metric == "hit":
        low, high = (100 * each / experiment.realizations for each in (low, high))
        ours = 100 * ours / cell.n_realizations
        other = None if other is None else 100 * other / experiment.realizations
    hint = format_number(ours) + ("" if other is None else f", published {format_number(other)}")
    return SpannedNumber(cell.method, ours, low, high, other, hint)


def _line(name: str, cells: Sequence[Cell], measure: MetricFormat, *, printed: bool) -> ErrorCurve:
    """Return a line of our numbers with standard errors, or of the published numbers."""
    cells = sorted(cells, key=lambda cell: cell.size or 0)
    size = np.array([cell.size or 0 for cell in cells], dtype=np.intp)
    mean = np.array([cell.published if printed else cell.ours for cell in cells], dtype=float)
    error = np.array([cell.deviation / cell.n_realizations**0.5 for cell in cells])
    return ErrorCurve(name, size, mean, np.full(len(mean), np.nan) if printed else error, measure)
