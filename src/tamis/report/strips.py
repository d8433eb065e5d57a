"""Values of a column by groups of rows: small charts, and sentences about them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask, Subset, class_codes
from tamis._format import format_name, format_number
from tamis.report.svg import to_small_svg

#: Classes that have lines of their own; of more, one is named in words and compared with the rest.
MOST_GROUPS = 6
#: Rows of every group below which each row has a tick: more would run together.
FEW = 40
#: Points of a density: a curve of 200 pixels has a corner every 5.
GRID = 44
#: Rows of which a density is made at most: more do not change what can be seen.
SAMPLE = 5000
#: Share of rows that is cut off at the ends, so that an outlier does not squeeze all others.
OUTER = 0.005
#: Levels of a category that are shown.
LEVELS = 5
#: Pixels: width of a strip, the margin that the dot of a median at either end needs, and height of
#: a line of each kind.
WIDTH, EDGE, HEIGHTS = 212, 3, {"density": 17, "ticks": 10, "levels": 11}
NAN = float("nan")


class Group(NamedTuple):
    """Rows whose values one line of a strip shows."""

    name: str
    n_rows: int


class RowGroups(NamedTuple):
    """The group of each row.

    ``sort`` is "classes", "thirds" of a real target, or "all" if there is one group.
    """

    codes: Subset
    groups: tuple[Group, ...]
    sort: str

    def name(self, group: int) -> str:
        """Return what a group is called; -1 stands for all other rows."""
        return self.groups[group].name if group >= 0 else "others"

    def rows(self, group: int, known: Mask) -> Mask:
        """Return the rows of a group in which a value is known."""
        return known & (self.codes == group) if group >= 0 else known


class Shape(NamedTuple):
    """Values of one group of rows, on a scale from 0 to 1.

    ``points`` are heights of a density on an even grid, positions of rows, or shares of levels.
    """

    median: float
    low: float
    high: float
    points: tuple[float, ...]


@dataclass(frozen=True, repr=False)
class Strip:
    """Values of a column, group by group.

    Attributes
    ----------
    kind : {"density", "ticks", "levels"}
    groups : tuple of int
        The group of each shape; -1 stands for all other rows.
    shapes : tuple of Shape
        Medians and quartiles are in the column's own units.
    span : (float, float)
        Values at the ends of the scale.
    levels : tuple of str
        Names of the levels that ``points`` are shares of.
    words : str
        The finding as a sentence.
    """

    kind: str
    groups: tuple[int, ...]
    shapes: tuple[Shape, ...]
    span: tuple[float, float]
    levels: tuple[str, ...]
    words: str


def row_groups(y: NDArray[Any] | None, task: str, n_rows: int) -> RowGroups:
    """Return the classes, the thirds of a real target, or all rows together."""
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
    """Return what is drawn and said of a column; None if it has no values."""
    if values.dtype.kind in "biuf":
        return _number_strip(values.astype(float), rows)
    if values.dtype.kind in "mM":
        days = values.astype("datetime64[s]" if values.dtype.kind == "M" else "timedelta64[s]")
        seconds = np.where(np.isnat(days), np.nan, days.astype(np.int64))
        return _number_strip(seconds, rows, with_words=False)
    return _level_strip(values, rows)


def _number_strip(values: Array, rows: RowGroups, with_words: bool = True) -> Strip | None:
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
    words = _number_words(shapes, shown, rows) if with_words else ""
    return Strip(kind, tuple(shown), shapes, (low, high), (), words)


def _outlier(medians: Array) -> int:
    """Return the group whose median is farthest from the middle of all medians."""
    return int(np.nanargmax(np.abs(medians - np.nanmedian(medians))))


def _shape(values: Array, low: float, high: float, kind: str) -> Shape:
    if not len(values):
        return Shape(NAN, NAN, NAN, ())
    first, median, third = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
    place = (values - low) / (high - low)
    inside = np.sort(place[(place >= 0) & (place <= 1)])
    points = inside if kind == "ticks" else _density(place)
    return Shape(median, first, third, tuple(points.round(4).tolist()))


def _density(place: Array) -> Array:
    """Return a Gaussian kernel estimate on an even grid from 0 to 1, its top at 1."""
    if len(place) > SAMPLE:
        place = np.sort(place)[np.linspace(0, len(place) - 1, SAMPLE).astype(int)]
    spread = np.diff(np.quantile(place, [0.25, 0.75]))[0] / 1.34
    spread = min(place.std(), spread) if spread > 0 else place.std()
    # Silverman's width, not narrower than can be drawn
    width = max(0.9 * spread * len(place) ** -0.2, 0.012)
    away = (np.linspace(0, 1, GRID)[:, None] - place) / width
    heights = np.exp(-0.5 * away**2).sum(axis=1)
    return np.asarray(heights / max(heights.max(), 1e-300))


def _number_words(shapes: Sequence[Shape], shown: Sequence[int], rows: RowGroups) -> str:
    """Return which class stands out, or how the median moves with the target."""
    if rows.sort == "all":
        return _quartiles(shapes[0])
    medians = np.array([shape.median for shape in shapes])
    if not np.isfinite(medians).all():
        return ""
    first = format_number(medians[0])
    if rows.sort == "thirds":
        if medians[0] == medians[2]:
            return f"median {first} in the lower and the upper third"
        verb = "rises" if medians[2] > medians[0] else "falls"
        return f"{verb} with the target: median {first} to {format_number(medians[2])}"
    if np.ptp(medians) == 0:
        return f"the same median in all classes: {first}"
    if len(medians) == 2:
        one = 0 if shown[1] < 0 else int(medians.argmax())
        rest, other = rows.name(shown[1 - one]), medians[1 - one]
    else:
        one = _outlier(medians)
        rest, other = "others", np.median(np.delete(medians, one))
    where = "high" if medians[one] > other else "low"
    median = format_number(medians[one])
    return f"{where} in {rows.name(shown[one])}: median {median}, {rest} {format_number(other)}"


def _quartiles(shape: Shape) -> str:
    median, low, high = map(format_number, shape[:3])
    return f"median {median}, middle half {low} to {high}"


def _level_strip(values: NDArray[Any], rows: RowGroups) -> Strip | None:
    """Return shares of the most frequent levels of a category, group by group."""
    known = np.array([v is not None and v == v for v in values.tolist()])
    texts = np.array([format_name(v) for v in values.tolist()])
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
    else:  # the level whose share differs most, where it is most and least frequent
        level = int(np.ptp(share, axis=0).argmax())
        ends = [int(share[:, level].argmax()), int(share[:, level].argmin())]
        most, least = (f"{100 * share[k, level]:.0f} % in {rows.name(shown[k])}" for k in ends)
        words = f"“{top[level]}”: {most}, {least}"
    shapes = tuple(Shape(NAN, NAN, NAN, tuple(line.round(4).tolist())) for line in share)
    return Strip("levels", tuple(shown), shapes, (0.0, 1.0), tuple(top.tolist()), words)


def strip_svg(strip: Strip, rows: RowGroups) -> Any:
    """Draw a strip with one line for each of its groups, top to bottom."""
    height, several = HEIGHTS[strip.kind], len(rows.groups) > 1
    labels, body = [], ""
    for place, (group, shape) in enumerate(zip(strip.groups, strip.shapes, strict=True)):
        words = _quartiles(shape)
        if strip.kind == "levels":
            pairs = zip(strip.levels, shape.points, strict=True)
            words = ", ".join(f"{level} {100 * share:.0f} %" for level, share in pairs)
        labels.append(f"{rows.name(group)}: {words}" if several else words)
        colour = group if group >= 0 and len(rows.groups) <= MOST_GROUPS else place
        line = {"density": _density_svg, "ticks": _ticks_svg, "levels": _levels_svg}[strip.kind]
        body += line(shape, (place + 1) * height, height, f"var(--c{colour})", strip.span)
    tall = len(strip.shapes) * height + EDGE
    return to_small_svg(WIDTH, tall, "; ".join(labels), body)


def _x(place: float) -> str:
    pixels = EDGE + min(max(place, 0.0), 1.0) * (WIDTH - 2 * EDGE)
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
    """Draw a light line, a tick for each row, and the dot of the median."""
    middle = base - height / 2
    marks = "".join(f"M{_x(point)} {base - height + 2}v{height - 4}" for point in shape.points)
    line = f'<path d="M{_x(0)} {middle:g}H{_x(1)}" stroke="var(--rule)"/>'
    ticks = f'<path d="{marks}" stroke="{colour}" stroke-opacity=".8" stroke-width="1.2"/>'
    return line + ticks + _dot(shape, middle, colour, span)


def _levels_svg(
    shape: Shape, base: int, height: int, colour: str, span: tuple[float, float]
) -> str:
    """Draw shares one after the other, ever lighter; the rest is left empty."""
    body, left = "", 0.0
    for k, share in enumerate(shape.points):
        width = max(float(_x(left + share)) - float(_x(left)) - 0.8, 0)
        box = f'x="{_x(left)}" y="{base - height + 2}" width="{width:.1f}" height="{height - 3}"'
        body += f'<rect {box} fill="{colour}" opacity="{1 / (1 + 0.7 * k):.2f}"/>'
        left += share
    return body
