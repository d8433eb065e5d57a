"""Values of a column by groups of rows: shapes to draw and words to read."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask, Subset, class_codes
from tamis.contract import SparseColumns
from tamis.plot.correlating import numbers_of, values_of
from tamis.plot.style import figure, harmless
from tamis.report.facts import Group, Shape, Strip

#: Classes that have lines of their own; of more, one is named in words and set against the rest.
MOST_GROUPS = 6
#: Rows of every group below which each row has a tick: more would run together.
FEW = 40
#: Points of a density: a curve of 200 pixels has a corner every 5.
GRID = 44
#: Rows of which a density is made at most: more do not change what can be seen.
SAMPLE = 5000
#: Share of rows that is cut off at the ends, so that a stray one does not squeeze all others.
OUTER = 0.005
#: Levels of a category that are told apart.
LEVELS = 5


class RowGroups(NamedTuple):
    """Which group each row belongs to.

    ``sort`` is "classes", "thirds" of a real target, or "all" where rows are not told apart.
    """

    codes: Subset
    groups: tuple[Group, ...]
    sort: str

    @property
    def many(self) -> bool:
        """Whether there are too many for a line each."""
        return len(self.groups) > MOST_GROUPS


def row_groups(y: NDArray[Any] | None, task: str, n_rows: int) -> RowGroups:
    """Classes, the thirds of a real target, or all rows together."""
    if task == "classification" and y is not None and y.ndim == 1:
        labels, codes = class_codes(y)
        counts = np.bincount(codes, minlength=len(labels))
        named = zip(labels.tolist(), counts.tolist(), strict=True)
        return RowGroups(codes, tuple(Group(harmless(k), n) for k, n in named), "classes")
    if task == "regression" and y is not None and y.ndim == 1:
        return _thirds(np.asarray(y, dtype=float))
    return RowGroups(np.zeros(n_rows, dtype=np.intp), (Group("all rows", n_rows),), "all")


def _thirds(y: Array) -> RowGroups:
    edges = np.quantile(y, [1 / 3, 2 / 3])
    codes = np.searchsorted(edges, y, side="left").astype(np.intp)
    counts = np.bincount(codes, minlength=3).tolist()
    low, high = (figure(float(edge)) for edge in edges)
    names = (f"lower third, up to {low}", "middle third", f"upper third, above {high}")
    return RowGroups(
        codes, tuple(Group(*pair) for pair in zip(names, counts, strict=True)), "thirds"
    )


def column_of(X: Any, column: int) -> NDArray[Any]:
    """One column of a table of any kind: numbers, or what it holds."""
    if isinstance(X, SparseColumns) or not hasattr(X, "columns"):
        return numbers_of(X, np.array([column]))[:, 0]
    return np.asarray(values_of(X, list(X.columns)[column]))


def strip_of(values: NDArray[Any], rows: RowGroups) -> Strip | None:
    """What is drawn and said of a column; None where there is nothing."""
    if values.dtype.kind in "biuf":
        return _numbers(values.astype(float), rows)
    if values.dtype.kind in "mM":
        days = values.astype("datetime64[s]" if values.dtype.kind == "M" else "timedelta64[s]")
        empty = np.isnat(days)
        return _numbers(np.where(empty, np.nan, days.astype(np.int64)), rows, said=False)
    return _levels(values, rows)


def _numbers(values: Array, rows: RowGroups, said: bool = True) -> Strip | None:
    finite = np.isfinite(values)
    if not finite.any():
        return None
    medians = _medians(values, finite, rows)
    shown: Sequence[int] = range(len(rows.groups))
    if rows.many:
        shown = (_standing_out(medians), -1)
    masks = [_rows_of(rows, group, finite) for group in shown]
    low, high = np.quantile(values[finite], [OUTER, 1 - OUTER]).tolist()
    if not high > low:
        low, high = low - 0.5, high + 0.5
    ticks = max(int(mask.sum()) for mask in masks) < FEW
    shapes = tuple(_shape(values[mask], low, high, ticks) for mask in masks)
    words = _words(shapes, shown, rows) if said else ""
    kind = "ticks" if ticks else "density"
    return Strip(kind, tuple(shown), shapes, (low, high), (), words)


def _rows_of(rows: RowGroups, group: int, finite: Mask) -> Mask:
    return finite & (rows.codes == group if group >= 0 else True)


def _medians(values: Array, finite: Mask, rows: RowGroups) -> Array:
    found = np.full(len(rows.groups), np.nan)
    for group in range(len(rows.groups)):
        mine = values[finite & (rows.codes == group)]
        found[group] = np.median(mine) if len(mine) else np.nan
    return found


def _standing_out(medians: Array) -> int:
    """The group whose median is farthest from the middle of all medians."""
    away = np.abs(medians - np.nanmedian(medians))
    return int(np.nanargmax(away))


def _shape(values: Array, low: float, high: float, ticks: bool) -> Shape:
    if not len(values):
        nan = float("nan")
        return Shape(nan, nan, nan, ())
    quarters = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
    place = (values - low) / (high - low)
    points = np.sort(place[(place >= 0) & (place <= 1)]) if ticks else _density(place)
    return Shape(quarters[1], quarters[0], quarters[2], tuple(points.round(4).tolist()))


def _density(place: Array) -> Array:
    """A Gaussian kernel estimate on an even grid from 0 to 1, its top at 1 (Silverman's width)."""
    if len(place) > SAMPLE:
        place = np.sort(place)[np.linspace(0, len(place) - 1, SAMPLE).astype(int)]
    spread = np.diff(np.quantile(place, [0.25, 0.75]))[0] / 1.34
    spread = min(place.std(), spread) if spread > 0 else place.std()
    width = max(0.9 * spread * len(place) ** -0.2, 0.012)  # not narrower than can be drawn
    away = (np.linspace(0, 1, GRID)[:, None] - place) / width
    heights = np.exp(-0.5 * away**2).sum(axis=1)
    return np.asarray(heights / max(heights.max(), 1e-300))


def _words(shapes: Sequence[Shape], shown: Sequence[int], rows: RowGroups) -> str:
    medians = np.array([shape.median for shape in shapes])
    if rows.sort == "all":
        shape = shapes[0]
        said = f"median {figure(shape.median)}, middle half {figure(shape.low)}"
        return f"{said} to {figure(shape.high)}"
    if not np.isfinite(medians).all():
        return ""
    if rows.sort == "thirds":
        if medians[0] == medians[2]:
            return f"median {figure(medians[0])} in the lower and the upper third"
        verb = "rises" if medians[2] > medians[0] else "falls"
        return f"{verb} with the target: median {figure(medians[0])} to {figure(medians[2])}"
    if np.ptp(medians) == 0:
        return f"the same median in all classes: {figure(medians[0])}"
    return _standing_words(medians, shown, rows)


def _standing_words(medians: Array, shown: Sequence[int], rows: RowGroups) -> str:
    """Which class stands out, and its median beside that of the others."""
    if rows.many:
        first, rest, other = 0, "others", medians[1]
    elif len(medians) == 2:
        first = int(medians.argmax())
        rest, other = rows.groups[shown[1 - first]].name, medians[1 - first]
    else:
        first = _standing_out(medians)
        rest, other = "others", np.median(np.delete(medians, first))
    where = "high" if medians[first] > other else "low"
    name = rows.groups[shown[first]].name
    return f"{where} in {name}: median {figure(medians[first])}, {rest} {figure(other)}"


def _levels(values: NDArray[Any], rows: RowGroups) -> Strip | None:
    """Shares of the most frequent levels of a category, group by group."""
    known = np.array([v is not None and v == v for v in values.tolist()])
    texts = np.array([harmless(v) for v in values.tolist()])
    if not known.any():
        return None
    names, counts = np.unique(texts[known], return_counts=True)
    top = names[np.argsort(-counts, kind="stable")][:LEVELS]
    shown: Sequence[int] = range(len(rows.groups))
    share = _shares(texts, top, known, rows, shown)
    if rows.many:
        shown = (int(np.abs(share - share.mean(axis=0)).max(axis=1).argmax()), -1)
        share = _shares(texts, top, known, rows, shown)
    nan = float("nan")
    shapes = tuple(Shape(nan, nan, nan, tuple(line.round(4).tolist())) for line in share)
    words = _level_words(share, top, shown, rows)
    return Strip("levels", tuple(shown), shapes, (0.0, 1.0), tuple(top.tolist()), words)


def _shares(
    texts: NDArray[Any], top: NDArray[Any], known: Mask, rows: RowGroups, shown: Sequence[int]
) -> Array:
    lines = []
    for group in shown:
        mine = texts[_rows_of(rows, group, known)]
        lines.append([(mine == level).mean() if len(mine) else 0.0 for level in top])
    return np.array(lines)


def _level_words(share: Array, top: Any, shown: Sequence[int], rows: RowGroups) -> str:
    """The level whose share differs most, where it is most and least frequent."""
    if len(share) == 1:
        return f"most often “{top[0]}”, {100 * share[0, 0]:.0f} %"
    level = int(np.ptp(share, axis=0).argmax())
    most, least = int(share[:, level].argmax()), int(share[:, level].argmin())
    names = [rows.groups[g].name if g >= 0 else "others" for g in shown]
    return (
        f"“{top[level]}”: {100 * share[most, level]:.0f} % in {names[most]}, "
        f"{100 * share[least, level]:.0f} % in {names[least]}"
    )
