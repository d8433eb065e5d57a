"""Strips: small charts of a column's values in each group of rows, and sentences about them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask, Subset, class_codes
from tamis._format import format_name, format_number
from tamis.report.svg import to_small_svg

#: Largest number of classes with a line each. If there are more, the most unusual class is compared
#: with all rows.
MOST_GROUPS = 6
#: In groups with fewer rows, each row has a tick.
FEW = 40
#: Number of points in a density curve: one per 5 pixels of about 200.
GRID = 44
#: Largest number of rows for a density curve. More make no visible difference.
SAMPLE = 5000
#: Share of rows cut off at each end, so that outliers do not compress the scale.
OUTER = 0.005
#: Number of levels shown for a category.
LEVELS = 5
#: Sizes in pixels: width of a strip, margin at both ends for a dot at a median, height of a line.
WIDTH, EDGE, HEIGHTS = 212, 3, {"density": 17, "ticks": 10, "levels": 11}
NAN = float("nan")
#: Seconds in a day. Durations are shown in days.
DAY = 86_400


class Group(NamedTuple):
    """A group of rows, shown as a line of a strip."""

    name: str
    n_rows: int


class RowGroups(NamedTuple):
    """The group of each row.

    ``sort`` is "classes", "thirds" (of a numeric target), or "all" if there is a single group.
    """

    codes: Subset
    groups: tuple[Group, ...]
    sort: str

    def name(self, group: int) -> str:
        """Return the name of a group. -1 means all rows."""
        return self.groups[group].name if group >= 0 else "all rows"

    def rows(self, group: int, known: Mask) -> Mask:
        """Return a mask of the rows of a group that have a known value."""
        return known & (self.codes == group) if group >= 0 else known


class Shape(NamedTuple):
    """Values of a column in a group of rows: median, quartiles, and points to draw.

    ``points`` are on a scale from 0 to 1. They are heights of a density on a regular grid,
    positions of single rows, or shares of levels.
    """

    median: float
    low: float
    high: float
    points: tuple[float, ...]


@dataclass(frozen=True, repr=False)
class Strip:
    """Values of a column, by group of rows.

    Attributes
    ----------
    kind : {"density", "ticks", "levels"}
    groups : tuple of int
        The group of each shape. -1 means all rows.
    shapes : tuple of Shape
        Shape of each group. Medians and quartiles are in the column's own units.
    span : (float, float)
        Values at the two ends of the scale.
    levels : tuple of str
        Names of the levels, if the points are shares of levels.
    words : str
        Summary of the differences between groups.
    dates : bool
        Whether values are dates, in seconds since 1970.
    """

    kind: str
    groups: tuple[int, ...]
    shapes: tuple[Shape, ...]
    span: tuple[float, float]
    levels: tuple[str, ...]
    words: str
    dates: bool = False


def row_groups(y: NDArray[Any] | None, task: str, n_rows: int) -> RowGroups:
    """Group the rows by class, by thirds of a numeric target, or as a single group."""
    if y is None or y.ndim != 1 or task not in ("classification", "regression"):
        return RowGroups(np.zeros(n_rows, dtype=np.intp), (Group("all rows", n_rows),), "all")
    if task == "classification":
        labels, codes = class_codes(y)
        names, sort = [format_name(label) for label in labels.tolist()], "classes"
    else:
        edges = np.quantile(np.asarray(y, dtype=float), [1 / 3, 2 / 3])
        codes = np.searchsorted(edges, np.asarray(y, dtype=float), side="left").astype(np.intp)
        low, high = map(format_number, edges.tolist())
        names = [f"lower third, up to {low}", "middle third", f"upper third, above {high}"]
        sort = "thirds"
    counts = np.bincount(codes, minlength=len(names)).tolist()
    return RowGroups(codes, tuple(map(Group, names, counts)), sort)


def strip_of(values: NDArray[Any], rows: RowGroups) -> Strip | None:
    """Return the strip of a column, or None if the column has no values."""
    if values.dtype.kind in "biuf":
        return _number_strip(values.astype(float), rows)
    if values.dtype.kind in "mM":
        dates = values.dtype.kind == "M"
        times = values.astype("datetime64[s]" if dates else "timedelta64[s]")
        seconds = np.where(np.isnat(times), np.nan, times.astype(np.int64))
        return _number_strip(seconds if dates else seconds / DAY, rows, dates=dates)
    return _level_strip(values, rows)


def _number_strip(values: Array, rows: RowGroups, *, dates: bool = False) -> Strip | None:
    finite = np.isfinite(values)
    if not finite.any():
        return None
    shown: Sequence[int] = range(len(rows.groups))
    if len(shown) > MOST_GROUPS:
        parts = [values[rows.rows(group, finite)] for group in shown]
        shown = _outlier(np.array([np.median(v) if len(v) else np.nan for v in parts])), -1
    parts = [values[rows.rows(group, finite)] for group in shown]
    low, high = np.quantile(values[finite], [OUTER, 1 - OUTER]).tolist()
    if not high > low:
        low, high = low - 0.5, high + 0.5
    kind = "ticks" if max(map(len, parts)) < FEW else "density"
    shapes = tuple(_shape(part, low, high, kind) for part in parts)
    words = _number_words(shapes, shown, rows, _format_date if dates else format_number)
    return Strip(kind, tuple(shown), shapes, (low, high), (), words, dates)


def _outlier(medians: Array) -> int:
    """Return the group whose median is farthest from the median of all groups' medians."""
    return int(np.nanargmax(np.abs(medians - np.nanmedian(medians))))


def _shape(values: Array, low: float, high: float, kind: str) -> Shape:
    if not len(values):
        return Shape(NAN, NAN, NAN, ())
    first, median, third = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
    scaled = (values - low) / (high - low)
    inside = np.sort(scaled[(scaled >= 0) & (scaled <= 1)])
    points = inside if kind == "ticks" else _density(scaled)
    return Shape(median, first, third, tuple(points.round(4).tolist()))


def _density(values: Array) -> Array:
    """Return a Gaussian density estimate on a regular grid from 0 to 1, with a maximum of 1."""
    if len(values) > SAMPLE:
        values = np.sort(values)[np.linspace(0, len(values) - 1, SAMPLE).astype(int)]
    spread = np.diff(np.quantile(values, [0.25, 0.75]))[0] / 1.34
    spread = min(values.std(), spread) if spread > 0 else values.std()
    # Silverman's bandwidth, or the smallest width that can be drawn
    width = max(0.9 * spread * len(values) ** -0.2, 0.012)
    away = (np.linspace(0, 1, GRID)[:, None] - values) / width
    heights = np.exp(-0.5 * away**2).sum(axis=1)
    return np.asarray(heights / max(heights.max(), 1e-300))


def _format_date(seconds: float) -> str:
    """Return the day of a number of seconds since 1970."""
    return "–" if seconds != seconds else str(np.datetime64(int(seconds), "s").astype("M8[D]"))


def _number_words(
    shapes: Sequence[Shape], shown: Sequence[int], rows: RowGroups, show: Callable[[float], str]
) -> str:
    """Describe which class stands out, or how the median changes with the target."""
    if rows.sort == "all":
        return _quartiles(shapes[0], show)
    medians = np.array([shape.median for shape in shapes])
    if not np.isfinite(medians).all():
        return ""
    first = show(medians[0])
    if rows.sort == "thirds":
        if medians[0] == medians[2]:
            return f"median {first} in the lower and the upper third"
        verb = "rises" if medians[2] > medians[0] else "falls"
        return f"{verb} with the target: median {first} to {show(medians[2])}"
    if np.ptp(medians) == 0:
        return f"the same median in all classes: {first}"
    if len(medians) == 2:
        one = 0 if shown[1] < 0 else int(medians.argmax())
        rest, other = rows.name(shown[1 - one]), medians[1 - one]
    else:
        one = _outlier(medians)
        rest, other = "others", np.median(np.delete(medians, one))
    where = "high" if medians[one] > other else "low"
    if show is _format_date:
        where = "late" if medians[one] > other else "early"
    return f"{where} in {rows.name(shown[one])}: median {show(medians[one])}, {rest} {show(other)}"


def _quartiles(shape: Shape, show: Callable[[float], str]) -> str:
    median, low, high = map(show, shape[:3])
    return f"median {median}, middle half {low} to {high}"


def _level_strip(values: NDArray[Any], rows: RowGroups) -> Strip | None:
    """Return a strip with the shares of a category's most frequent levels, by group."""
    known = np.array([v is not None and v == v for v in values.tolist()])
    # as objects: an array of text would give every row the width of the longest one
    texts = np.array([format_name(v) for v in values.tolist()], dtype=object)
    if not known.any():
        return None
    names, counts = np.unique(texts[known], return_counts=True)
    top = names[np.argsort(-counts, kind="stable")][:LEVELS]

    def shares(groups: Sequence[int]) -> Array:
        parts = [texts[rows.rows(group, known)] for group in groups]
        return np.array(
            [[(part == level).sum() / max(len(part), 1) for level in top] for part in parts]
        )

    shown: Sequence[int] = range(len(rows.groups))
    share = shares(shown)
    if len(shown) > MOST_GROUPS:
        shown = int(np.abs(share - share.mean(axis=0)).max(axis=1).argmax()), -1
        share = shares(shown)
    if len(share) == 1:
        words = f"most often “{top[0]}”, {100 * share[0, 0]:.0f} %"
    else:  # the level whose share differs most between groups
        level = int(np.ptp(share, axis=0).argmax())
        ends = [int(share[:, level].argmax()), int(share[:, level].argmin())]
        most, least = (f"{100 * share[k, level]:.0f} % in {rows.name(shown[k])}" for k in ends)
        words = f"“{top[level]}”: {most}, {least}"
    shapes = tuple(Shape(NAN, NAN, NAN, tuple(line.round(4).tolist())) for line in share)
    return Strip("levels", tuple(shown), shapes, (0.0, 1.0), tuple(top.tolist()), words)


def strip_svg(strip: Strip, rows: RowGroups) -> Any:
    """Draw a strip with one line per group, from top to bottom."""
    height, several = HEIGHTS[strip.kind], len(rows.groups) > 1
    labels, body = [], ""
    for position, (group, shape) in enumerate(zip(strip.groups, strip.shapes, strict=True)):
        words = _quartiles(shape, _format_date if strip.dates else format_number)
        if strip.kind == "levels":
            pairs = zip(strip.levels, shape.points, strict=True)
            words = ", ".join(f"{level} {100 * share:.0f} %" for level, share in pairs)
        labels.append(f"{rows.name(group)}: {words}" if several else words)
        colour = group if group >= 0 and len(rows.groups) <= MOST_GROUPS else position
        line = {"density": _density_svg, "ticks": _ticks_svg, "levels": _levels_svg}[strip.kind]
        body += line(shape, (position + 1) * height, height, f"var(--c{colour})", strip.span)
    tall = len(strip.shapes) * height + EDGE
    return to_small_svg(WIDTH, tall, "; ".join(labels), body)


def _x(share: float) -> str:
    """Return the pixel coordinate of a position between 0 and 1."""
    pixels = EDGE + min(max(share, 0.0), 1.0) * (WIDTH - 2 * EDGE)
    return f"{pixels:.1f}".removesuffix(".0")


def _dot(shape: Shape, y: float, colour: str, span: tuple[float, float]) -> str:
    if shape.median != shape.median:
        return ""
    x = _x((shape.median - span[0]) / (span[1] - span[0]))
    edge = 'stroke="var(--bg)" stroke-width="1"'
    return f'<circle cx="{x}" cy="{y:g}" r="3" fill="{colour}" {edge}/>'


def _density_svg(
    shape: Shape, base: int, height: int, colour: str, span: tuple[float, float]
) -> str:
    if not shape.points:
        return ""
    corners = " ".join(
        f"{_x(k / (GRID - 1))} {base - (height - 3) * point:.1f}"
        for k, point in enumerate(shape.points)
    )
    style = f'fill="{colour}" fill-opacity=".28" stroke="{colour}" stroke-width="1.2"'
    path = f'<path d="M{_x(0)} {base}L{corners}L{_x(1)} {base}Z" {style}/>'
    return path + _dot(shape, base, colour, span)


def _ticks_svg(shape: Shape, base: int, height: int, colour: str, span: tuple[float, float]) -> str:
    """Draw a light line, a tick for each row, and a dot at the median."""
    middle = base - height / 2
    marks = "".join(f"M{_x(point)} {base - height + 2}v{height - 4}" for point in shape.points)
    line = f'<path d="M{_x(0)} {middle:g}H{_x(1)}" stroke="var(--rule)"/>'
    ticks = f'<path d="{marks}" stroke="{colour}" stroke-opacity=".8" stroke-width="1.2"/>'
    return line + ticks + _dot(shape, middle, colour, span)


def _levels_svg(
    shape: Shape, base: int, height: int, colour: str, span: tuple[float, float]
) -> str:
    """Draw stacked shares of levels from dark to light. The remaining width is left empty."""
    body, left = "", 0.0
    for k, share in enumerate(shape.points):
        width = max(float(_x(left + share)) - float(_x(left)) - 0.8, 0)
        box = f'x="{_x(left)}" y="{base - height + 2}" width="{width:.1f}" height="{height - 3}"'
        body += f'<rect {box} fill="{colour}" opacity="{1 / (1 + 0.7 * k):.2f}"/>'
        left += share
    return body
