"""Alerts about a table: identifiers, leaks, missing values, duplicates and other findings."""

from collections.abc import Collection, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tamis._arrays import Array, target_kind
from tamis._format import format_count, format_name, format_names, quote_for_shell
from tamis.blocks.dispatch import rows_drawn
from tamis.exceptions import InvalidTable
from tamis.table.dates import PARTS
from tamis.table.frames import as_polars
from tamis.table.kinds import (
    FEW_LEVELS,
    TableProfile,
    are_codes,
    columns_of,
    is_called_id,
    missing_codes,
    numbers,
    read_columns,
)
from tamis.table.leaks import (
    AHEAD,
    LEAKS,
    STRONG,
    copies,
    foresights,
    is_code,
    repeated_rows,
)

#: A class with fewer rows than this is reported as rare. With five folds, at least one test fold
#: would have no row of it.
RARE = 5
#: An alert is raised if the most extreme 1 % of the rows account for at least this share of the
#: target's squared deviations from its median. This happens if a value is wrong by orders of
#: magnitude. Targets with a normal, exponential or lognormal (sigma = 1) distribution stay below
#: the limit. Targets with a power-law tail, or with rare events among zeros, may exceed it. An
#: alert about such a target is justified, too.
FAR = 0.99
#: If the table has fewer rows than this, its target is not checked for extreme values.
ENOUGH = 20
#: A date column with at most this number of distinct values gets no alert, because it only labels a
#: few occasions.
FEW_DATES = 5
#: If the share of distinct values is greater than this, almost every row has its own identifier, so
#: there is no alert about repeated values.
MOST_DIFFERENT = 0.9
#: Maximum number of characters of a value that an alert quotes.
SHOWN = 40


@dataclass(frozen=True)
class Alert:
    """A finding about a table.

    Attributes
    ----------
    sort : {"identifier", "code", "text", "leak", "strong", "copies", "constant", "gaps", \
"numbers", "missing codes", "mixed", "rare classes", "far rows", "repeated rows", \
"repeated ids", "dates", "unnamed", "sample", "sheets", "encoding"}
        The kind of finding.
    columns : tuple of str
        The columns that the finding is about.
    sentence : str
        What was found, how it is handled, and how to handle it differently.
    grave : bool
        Whether the finding is serious: a column that the user may want was excluded, or a column
        may leak the target.

    Examples
    --------
    >>> import polars as pl
    >>> from tamis.table import inspect
    >>> alert, = inspect(pl.DataFrame({"a": [1, 2, None], "y": [0.1, 0.2, 0.3]}), "y").alerts
    >>> alert.columns, alert.grave
    (('a',), False)
    """

    sort: str
    columns: tuple[str, ...]
    sentence: str
    grave: bool = False

    def __str__(self) -> str:
        return self.sentence


def profiled(
    frame: pl.DataFrame,
    seen: TableProfile,
    y: NDArray[Any] | None,
    task: str,
    *,
    keep: Sequence[str] = (),
    takes_text: bool = False,
    unnamed: Iterable[str] = (),
    alerts: bool = True,
) -> TableProfile:
    """Return the kinds of a frame's columns with alerts. Columns in ``keep`` are never excluded.

    Without ``alerts``, the profile only states which columns are excluded.
    """
    frame = frame.clone()
    frame.columns = [f"x{j}" for j in range(frame.width)]  # polars uses some names as patterns
    seen = replace(seen, kind=kept_kinds(frame, seen, keep))
    y = None if task == "none" else y
    power = np.full((2, frame.width), np.nan) if y is None else foresights(frame, seen, y, task)
    codes = [
        j
        for j in np.flatnonzero(np.nan_to_num(power[0]) >= LEAKS).tolist()
        if seen.kind[j] != "identifier"
        and seen.names[j] not in keep
        and is_code(frame.to_series(j), cast(NDArray[Any], y), task)
    ]
    if not alerts:
        aside = _aside(_exclusions(seen, power[0], codes, takes_text))
        return replace(seen, power=power[0], alone=power[1], aside=aside)
    more = [
        *_readings(seen),
        *_dated(frame, seen, codes),
        *_repeated_ids(frame, seen),
        *_mixed(frame, seen),
    ]
    if y is not None:
        more += [*target_alert(y, task), *_repeated(repeated_rows(frame, seen, y), len(y))]
    copied = copies(frame, seen)
    return profile_of(
        seen, power, codes, copied, frame.height, takes_text=takes_text, more=more, unnamed=unnamed
    )


def profile_of(
    seen: TableProfile,
    power: Array,
    codes: Sequence[int],
    copied: dict[int, int],
    n_rows: int,
    *,
    takes_text: bool = False,
    more: Iterable[Alert] = (),
    unnamed: Iterable[str] = (),
) -> TableProfile:
    """Return the profile with alerts added. ``codes`` lists the columns that encode the target.

    ``power`` has two rows, which are the fields of :class:`tamis.table.leaks.Strength`.
    """
    power, alone = power
    names = np.array(seen.names, dtype=object)
    left_out = _exclusions(seen, power, codes, takes_text)
    aside = _aside(left_out)
    leaks = [j for j in np.flatnonzero(np.nan_to_num(power) >= LEAKS) if names[j] not in aside]
    found = [
        *left_out,
        *_leaks(names[leaks], power[leaks]),
        *_strong(names, power, alone, {*aside, *names[leaks], *names[list(copied)]}),
        *_gaps(seen, n_rows, aside),
        *_copied(names, copied, aside),
        *more,
        *_unnamed([name for name in unnamed if name in set(seen.names) - set(aside)]),
    ]
    return replace(seen, power=power, alone=alone, aside=aside, alerts=tuple(found))


def _exclusions(
    seen: TableProfile, power: Array, codes: Sequence[int], takes_text: bool
) -> list[Alert]:
    """Return the alerts about columns that are excluded."""
    names = np.array(seen.names, dtype=object)
    ids = seen.of_kind("identifier")
    return [
        *_identifiers(names[ids].tolist(), [names[j] for j in ids if power[j] >= LEAKS]),
        *_coded(names[codes].tolist()),
        *([] if takes_text else _texts(names[seen.of_kind("text")].tolist())),
        *_constants(names[seen.of_kind("constant")].tolist()),
    ]


def _aside(left_out: Iterable[Alert]) -> dict[str, str]:
    """Return the excluded columns, and why."""
    return {name: alert.sort for alert in left_out for name in alert.columns}


def check_finite(profile: TableProfile) -> None:
    """Raise an error if a used column contains infinite values."""
    for j in profile.used:
        if n_infinite := int(profile.n_infinite[j]):
            name = profile.names[j]
            raise InvalidTable(
                f"The column {name!r} has {format_count(n_infinite, 'infinite value')}. Correct "
                f"them, or write {way_out('drop', [name])}."
            )


def kept_kinds(frame: pl.DataFrame, seen: TableProfile, keep: Sequence[str]) -> NDArray[Any]:
    """Return the kind of each column. Columns in ``keep`` become numbers or categories."""
    kind = seen.kind.copy()
    for j in seen.of_kind("identifier", "text"):
        if seen.names[j] in keep and not (dtype := frame.to_series(j).dtype).is_nested():
            kind[j] = "number" if dtype.is_numeric() else "category"
    return kind


def way_out(option: str, names: Sequence[str]) -> str:
    """Return a text that shows how to set an option for these columns, in Python and in the CLI."""
    flags = " ".join(f"--{option} {quote_for_shell(name)}" for name in names[:5])
    shown = ", ".join(map(repr, names[:5]))
    more = ", ..." if len(names) > 5 else ""
    return f"{option}=[{shown}{more}] ({flags}{' ...' if more else ''})"


def _agree(names: Sized, one: str, several: str) -> str:
    """Return the phrase ``one`` if there is a single name, otherwise the phrase ``several``."""
    return one if len(names) == 1 else several


def _left_out(sort: str, names: Sequence[str], why: str, way: str) -> Iterator[Alert]:
    if names:
        sentence = f"{format_names(names)} {_agree(names, 'is', 'are')} left out: {why}{way}"
        yield Alert(sort, tuple(names), sentence, grave=bool(way))


def _way_to_keep(names: Sequence[str]) -> str:
    return f" Write {way_out('keep', names)} to use {_agree(names, 'it', 'them')}."


def _identifiers(names: Sequence[str], predictive: Sequence[str]) -> Iterator[Alert]:
    has = _agree(names, "it has", "they have")
    looks = _agree(names, "it looks like an identifier", "they look like identifiers")
    why = f"{has} a different value in every row, so {looks}."
    if predictive:
        why += f" {format_names(predictive)} even predicts the target."
    return _left_out("identifier", names, why, _way_to_keep(names))


def _coded(names: Sequence[str]) -> Iterator[Alert]:
    why = "each value stands for one value of the target, so there is nothing to learn."
    return _left_out("code", names, why, _way_to_keep(names))


def _texts(names: Sequence[str]) -> Iterator[Alert]:
    holds = _agree(names, "it holds", "they hold")
    why = f"{holds} text, or too many levels for the number of rows."
    way = (
        " Write TableSelector(search, encoder=...) with a text encoder, or "
        f"{way_out('keep', names)} to use each as a category."
    )
    return _left_out("text", names, why, way)


def _constants(names: Sequence[str]) -> Iterator[Alert]:
    has = _agree(names, "it has", "they have")
    return _left_out("constant", names, f"{has} one value, or none, in all rows.", "")


def _leaks(names: NDArray[Any], power: Array) -> Iterator[Alert]:
    if len(names):
        found = names[np.argsort(-power, kind="stable")].tolist()
        sentence = (
            f"{format_names(found)} alone {_agree(found, 'predicts', 'predict')} the target almost "
            f"perfectly ({100 * power.max():.0f} % fewer errors than the baseline, "
            f"cross-validated): possibly a leak. If so, write {way_out('drop', found)}."
        )
        yield Alert("leak", tuple(found), sentence, grave=True)


def _strong(
    names: NDArray[Any], power: Array, alone: Array, others: Collection[str]
) -> Iterator[Alert]:
    """Yield an alert about a column that predicts the target much better than all others."""
    free = np.array([name not in others for name in names], dtype=bool)
    share = np.where(free, np.nan_to_num(np.maximum(power, alone * np.abs(alone))), 0.0)
    order = np.argsort(-share, kind="stable")
    if free.sum() < 2 or share[order[0]] < max(STRONG, AHEAD * share[order[1]]):
        return
    name = str(names[order[0]])
    sentence = (
        f"{name!r} alone predicts the target much better than any other column "
        f"({alone[order[0]]:.2f} on a scale from 0 to 1). If it is known only after the target, "
        f"this is a leak: write {way_out('drop', [name])}."
    )
    yield Alert("strong", (name,), sentence)


def _readings(seen: TableProfile) -> Iterator[Alert]:
    """Yield alerts about text that is read as numbers, and codes read as missing values."""
    formats = {name: how.numbers for name, how in seen.readings.items() if how.numbers is not None}
    for doubtful in (False, True):
        found = {
            name: f"{how.example!r} as {how.parse(pl.Series([how.example]))[0]:.10g}"
            for name, how in formats.items()
            if how.example and how.doubtful is doubtful
        }
        more = "No value shows whether the separator is for decimals or thousands. Check this. "
        yield from _read_as("numbers", "Text read as numbers", found, more * doubtful, doubtful)
    codes = {
        name: ", ".join(
            f"{code if isinstance(code, str) else int(code)!r} ({format_count(n, 'row')})"
            for code, n in how.codes.items()
            if code != ""  # empty cells need no alert
        )
        for name, how in seen.readings.items()
    }
    found = {name: shown for name, shown in codes.items() if shown}
    numeric = any(isinstance(code, float) for how in seen.readings.values() for code in how.codes)
    yield from _read_as("missing codes", "Read as missing values", found, "", numeric)


def _read_as(
    sort: str, what: str, found: dict[str, str], more: str, grave: bool
) -> Iterator[Alert]:
    if found:
        shown = "; ".join(f"{values} in {name!r}" for name, values in list(found.items())[:5])
        others = f"; and {format_count(len(found) - 5, 'more column')}" if len(found) > 5 else ""
        sentence = (
            f"{what}: {shown}{others}. {more}Write {way_out('keep', list(found))} to use the "
            "values without changes."
        )
        yield Alert(sort, tuple(found), sentence, grave=grave)


def _gaps(seen: TableProfile, n_rows: int, aside: dict[str, str]) -> Iterator[Alert]:
    order = np.argsort(-seen.n_missing, kind="stable").tolist()
    found = [seen.names[j] for j in order if seen.n_missing[j] and seen.names[j] not in aside]
    if found:
        n_most = int(seen.n_missing[seen.names.index(found[0])])
        most, share = format_count(n_most, "missing value"), f"{100 * n_most / n_rows:.0f} %"
        first = f"{found[0]!r} has {most} ({share})"
        if len(found) > 1:
            first = f"{len(found)} columns have missing values, {found[0]!r} the most ({n_most}, "
            first += f"{share})"
        sentence = (
            f"{first}. Methods that take missing values get them unchanged. For others, numbers "
            "are filled with the median and marked, and a missing text is a category."
        )
        yield Alert("gaps", tuple(found), sentence)


def _copied(names: NDArray[Any], found: dict[int, int], aside: dict[str, str]) -> Iterator[Alert]:
    copies = {names[j]: names[i] for j, i in found.items() if names[j] not in aside}
    if copies:
        shown = ", ".join(f"{copy!r} of {first!r}" for copy, first in list(copies.items())[:5])
        more = f" and {len(copies) - 5} more" if len(copies) > 5 else ""
        what = _agree(copies, "column is a duplicate", "columns are duplicates")
        sentence = (
            f"{len(copies)} {what}, with equal values or a one-to-one code: {shown}{more}. One "
            f"column of each kind is enough: write {way_out('drop', list(copies))}."
        )
        yield Alert("copies", tuple(copies), sentence)


def _mixed(frame: pl.DataFrame, seen: TableProfile) -> Iterator[Alert]:
    found = np.flatnonzero(seen.mixed).tolist()
    if found:
        column = frame.to_series(found[0]).drop_nulls().cast(pl.String)
        odd = format_name(column.filter(column.cast(pl.Float64, strict=False).is_null())[0], SHOWN)
        names = [seen.names[j] for j in found]
        sentence = (
            f"{format_names(names)} {_agree(names, 'mixes', 'mix')} numbers and text, such as "
            f"{odd!r} in {names[0]!r}: read as text. Correct the file if numbers were meant."
        )
        yield Alert("mixed", tuple(names), sentence, grave=True)


def _dated(frame: pl.DataFrame, seen: TableProfile, codes: Sequence[int]) -> Iterator[Alert]:
    """Yield an alert about dates: how they are used, and which folds respect the time order."""
    names = [
        seen.names[j]
        for j in seen.of_kind("date")
        if seen.n_levels[j] > FEW_DATES
        and j not in codes
        and frame.to_series(j).dtype not in (pl.Duration, pl.Time)
    ]
    if names:
        used = _agree(names, "is used as its position", "are used as their positions")
        asked = any(f"{name}_{part}" in seen.names for name in names for part in PARTS)
        parts = "" if asked else "; write --calendar for month, weekday and hour as columns"
        sentence = (
            f"{format_names(names)} {used} in time{parts}. If rows depend on time, errors on random"
            f" folds are optimistic: write --cv time:{quote_for_shell(names[0])} for folds in time "
            "order."
        )
        yield Alert("dates", tuple(names), sentence)


def _repeated_ids(frame: pl.DataFrame, seen: TableProfile) -> Iterator[Alert]:
    """Yield an alert if rows share an identifier, because such rows must stay in the same fold."""
    found = {}
    called = [j for j in seen.of_kind("number") if is_called_id(seen.names[j])]
    texts = [j for j in seen.of_kind("category", "text") if seen.n_levels[j] > FEW_LEVELS]
    for j in sorted([*called, *texts]):
        column = frame.to_series(j)
        if column.dtype.is_nested() or column.dtype in (pl.Object, pl.Binary):
            continue
        column = column.drop_nulls()
        n_values = column.n_unique()
        if not FEW_LEVELS < n_values <= MOST_DIFFERENT * len(column):
            continue
        if seen.kind[j] == "number":
            values = numbers(frame, [j])
            shares_id = not (np.isfinite(values) & (np.floor(values) != values)).any()
        else:
            shares_id = is_called_id(seen.names[j]) or are_codes(column.cast(pl.String))
        if shares_id:
            found[seen.names[j]] = n_values
    if found:
        first, *others = found
        also = f" (also {format_names(others)})" if others else ""
        sentence = (
            f"{first!r} looks like an identifier that rows share: {found[first]} values in "
            f"{frame.height} rows{also}. Rows with the same value should stay in the same fold: "
            f"write --groups {quote_for_shell(first)}."
        )
        yield Alert("repeated ids", tuple(found), sentence)


def _repeated(n_repeated: int, n_rows: int) -> Iterator[Alert]:
    if n_repeated:
        sentence = (
            f"{n_repeated} of {n_rows} rows repeat{'s' * (n_repeated == 1)} an earlier one, "
            "including the target. Held-out rows then have duplicates among the training rows, so "
            "errors are underestimated. If these rows are duplicates, keep one of each."
        )
        yield Alert("repeated rows", (), sentence)


def target_alert(y: NDArray[Any], task: str) -> Iterator[Alert]:
    """Yield an alert about rare classes, or about extreme values of a numeric target.

    Values are extreme if a few rows account for nearly all of the variance.

    >>> print(*target_alert(np.r_[np.arange(1.0, 31.0), 1e12], "regression"))
    The target is 1e+12 in row 31, but its median is 16: 1 of 31 rows makes up 100 % of its \
variance and decides what is selected. If it is wrong, correct it or leave it out; if not, take \
logarithms.
    """
    return _rare_classes(y) if task == "classification" else _far_rows(y)


def _rare_classes(y: NDArray[Any]) -> Iterator[Alert]:
    classes, counts = np.unique(y, return_counts=True)
    few = np.flatnonzero(counts < RARE)
    if len(few):
        shown = ", ".join(f"{str(classes[k])!r} ({counts[k]})" for k in few[:5])
        sentence = (
            f"{len(few)} of {len(classes)} classes {_agree(few, 'has', 'have')} fewer than {RARE} "
            f"rows: {shown}. Findings about them are based on these few rows."
        )
        if len(few) == len(classes):
            sentence = (
                f"All {len(classes)} classes have fewer than {RARE} rows: {shown}. That is too few "
                "to learn from. If they are dates or quantities, give them as numbers."
            )
        yield Alert("rare classes", (), sentence)


def _far_rows(y: NDArray[Any]) -> Iterator[Alert]:
    if len(y) < ENOUGH:
        return
    values = np.asarray(y, dtype=float)
    if codes := missing_codes(values):
        shown = ", ".join(f"{code:.0f} ({format_count(n, 'row')})" for code, n in codes.items())
        sentence = (
            f"The target is {shown}, far from its other values. It is used as a number. If it is "
            "a code for missing values, remove these rows."
        )
        yield Alert("missing codes", (), sentence, grave=True)
    middle = float(np.median(values))
    with np.errstate(over="ignore", invalid="ignore"):
        off = np.abs(values / 2 - middle / 2)  # halves, so that their difference cannot overflow
    largest = off.max()
    if not 0 < largest < np.inf:
        return
    squares = (off / largest) ** 2
    first = np.argsort(-squares, kind="stable")[: max(1, len(y) // 100)]
    shares = squares[first].cumsum() / squares.sum()
    if shares[-1] < FAR:
        return
    n = int(np.argmax(shares >= FAR)) + 1
    it, it_is = ("it", "it is") if n == 1 else ("them", "they are")
    # in a sample of the rows, row numbers differ from those in the file
    where = f"row {first[0] + 1}" if rows_drawn() is None else "one of the rows drawn"
    instead = "; if not, take logarithms" if values.min() > 0 else ""
    sentence = (
        f"The target is {values[first[0]]:.3g} in {where}, but its median is {middle:.3g}: {n} "
        f"of {len(y)} rows make{'s' * (n == 1)} up {100 * shares[n - 1]:.0f} % of its variance "
        f"and decide{'s' * (n == 1)} what is selected. If {it_is} wrong, correct {it} or leave "
        f"{it} out{instead}."
    )
    yield Alert("far rows", (), sentence)


def _unnamed(names: list[str]) -> Iterator[Alert]:
    if names:
        sentence = (
            f"{format_names(names)} {_agree(names, 'has', 'have')} no name in the file. Add a name "
            f"there, or write {way_out('drop', names)}."
        )
        yield Alert("unnamed", tuple(names), sentence)


def is_plain(X: Any, y: Any, keep: Sequence[str] = ()) -> bool:
    """Return whether a frame can be used without encoding.

    All columns must be numbers without missing values. If ``y`` is given, no column may be an
    identifier or a one-to-one code of ``y``.
    """
    frame = as_polars(X)
    if frame.height < 2:
        return True  # the search will reject it
    if any(isinstance(dtype, pl.String) for dtype in frame.dtypes):
        return False
    frame, readings = read_columns(frame, keep=keep)
    if readings or not all(dtype.is_numeric() or dtype == pl.Boolean for dtype in frame.dtypes):
        return False
    seen = columns_of(frame)
    target = np.asarray(y)
    if seen.n_missing.any() or y is None:
        return not seen.n_missing.any()
    if target.dtype.kind == "O" and any(value is None for value in target):
        return True  # the search will reject it
    profile = profiled(frame, seen, target, target_kind(target), keep=keep)
    return not {"identifier", "code"}.intersection(profile.aside.values())
