"""What a person should know of a table before anything is selected from it."""

from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tamis._arrays import Array, target_kind
from tamis._format import format_count, format_names, quote_for_shell
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
    numbers,
)
from tamis.table.leaks import LEAKS, copies, foresights, is_code, repeated_rows

#: Rows below which a class is called rare: five folds could not each have one of it.
RARE = 5
#: Share of the squares about the median that one row in a hundred holds where a value is wrong by
#: orders of magnitude; draws that are normal, exponential or lognormal (deviation 1) stay below it,
#: those with tails of a power, and rare events among zeros, need not: of these it is as true.
FAR = 0.99
#: Rows below which a target may look anyhow.
ENOUGH = 20
#: Values up to which dates only name a few occasions.
FEW_DATES = 5
#: Share of different values above which an identifier hardly repeats.
MOST_DIFFERENT = 0.9


@dataclass(frozen=True)
class Alert:
    """One thing to know.

    Attributes
    ----------
    sort : {"identifier", "code", "text", "leak", "copies", "constant", "gaps", "mixed", \
"rare classes", "far rows", "repeated rows", "repeated ids", "dates", "unnamed", "sample"}
    columns : tuple of str
        The columns it is about.
    sentence : str
        What was found, what is done about it, and what to write where that is not wanted.
    grave : bool
        Whether columns are left out that somebody may have wanted, or may betray the target.
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
) -> TableProfile:
    """Profile the features of a table; ``keep`` are never left out."""
    seen = replace(seen, kind=kept_kinds(frame, seen, keep))
    y = None if task == "none" else y
    power = np.full(frame.width, np.nan) if y is None else foresights(frame, seen, y, task)
    codes = [
        j
        for j in np.flatnonzero(np.nan_to_num(power) >= LEAKS).tolist()
        if seen.kind[j] != "identifier"
        and seen.names[j] not in keep
        and is_code(frame.to_series(j), cast(NDArray[Any], y), task)
    ]
    more = [*_dated(frame, seen, codes), *_repeated_ids(frame, seen), *_mixed(frame, seen)]
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
    """Profile a table by what was found in it; ``codes`` are those of the target."""
    names = np.array(seen.names, dtype=object)
    ids = seen.of_kind("identifier")
    left_out = [
        *_identifiers(names[ids].tolist(), [names[j] for j in ids if power[j] >= LEAKS]),
        *_coded(names[codes].tolist()),
        *([] if takes_text else _texts(names[seen.of_kind("text")].tolist())),
        *_constants(names[seen.of_kind("constant")].tolist()),
    ]
    aside = {name: alert.sort for alert in left_out for name in alert.columns}
    leaks = [j for j in np.flatnonzero(np.nan_to_num(power) >= LEAKS) if names[j] not in aside]
    found = [
        *left_out,
        *_leaks(names[leaks], power[leaks]),
        *_gaps(seen, n_rows, aside),
        *_copied(names, copied, aside),
        *more,
        *_unnamed([name for name in unnamed if name in set(seen.names) - set(aside)]),
    ]
    return replace(seen, power=power, aside=aside, alerts=tuple(found))


def check_finite(profile: TableProfile) -> None:
    """Refuse infinite values in a column that is used, and count them."""
    used = set(profile.used)
    found = [j for j in np.flatnonzero(profile.n_infinite).tolist() if j in used]
    if found:
        name, count = profile.names[found[0]], int(profile.n_infinite[found[0]])
        raise InvalidTable(
            f"The column {name!r} has {format_count(count, 'infinite value')}. Correct them, or "
            f"write {way_out('drop', [name])}."
        )


def kept_kinds(frame: pl.DataFrame, seen: TableProfile, keep: Sequence[str]) -> NDArray[Any]:
    """Kinds, where identifiers that are to be kept are the numbers or categories they look like."""
    kind = seen.kind.copy()
    for j in seen.of_kind("identifier", "text"):
        if seen.names[j] in keep and not (dtype := frame.to_series(j).dtype).is_nested():
            kind[j] = "number" if dtype.is_numeric() else "category"
    return kind


def way_out(option: str, names: Sequence[str]) -> str:
    """What to write for these columns, in Python and on the command line."""
    words = " ".join(f"--{option} {quote_for_shell(name)}" for name in names[:5])
    shown = ", ".join(map(repr, names[:5]))
    more = ", ..." if len(names) > 5 else ""
    return f"{option}=[{shown}{more}] ({words}{' ...' if more else ''})"


def _agree(names: Sized, one: str, several: str) -> str:
    """Return the words that agree with one name, or with several."""
    return one if len(names) == 1 else several


def _left_out(
    sort: str, names: Sequence[str], why: str, instead: str = "", purpose: str = ""
) -> Iterator[Alert]:
    if names:
        purpose = purpose or f"to use {_agree(names, 'it', 'them')}"
        sentence = (
            f"{format_names(names)} {_agree(names, 'is', 'are')} left out: {why} Write {instead}"
            f"{way_out('keep', names)} {purpose}."
        )
        yield Alert(sort, tuple(names), sentence, grave=True)


def _identifiers(names: Sequence[str], sorted_with: Sequence[str]) -> Iterator[Alert]:
    why = (
        f"{_agree(names, 'it has', 'they have')} another value in every row, as an identifier has."
    )
    if sorted_with:
        why += f" {format_names(sorted_with)} even foretells the target."
    return _left_out("identifier", names, why)


def _coded(names: Sequence[str]) -> Iterator[Alert]:
    why = "each value stands for one value of the target, so that nothing would be learnt."
    return _left_out("code", names, why)


def _texts(names: Sequence[str]) -> Iterator[Alert]:
    held = _agree(names, "it holds", "they hold")
    why = f"{held} text, or more levels than rows could tell apart."
    instead = "TableSelector(search, encoder=...) with an encoder of texts, or "
    return _left_out("text", names, why, instead, "to take each as a category")


def _constants(names: Sequence[str]) -> Iterator[Alert]:
    if names:
        sentence = (
            f"{format_names(names)} {_agree(names, 'has', 'have')} one value, or none, in all rows:"
            " left out."
        )
        yield Alert("constant", tuple(names), sentence)


def _leaks(names: NDArray[Any], power: Array) -> Iterator[Alert]:
    if len(names):
        held = names[np.argsort(-power, kind="stable")].tolist()
        sentence = (
            f"{format_names(held)} {_agree(held, 'foretells', 'foretell')} the target almost alone "
            f"({100 * power.max():.0f} % of the errors are gone, cross-validated): a leak, perhaps."
            f" If so, write {way_out('drop', held)}."
        )
        yield Alert("leak", tuple(held), sentence, grave=True)


def _gaps(seen: TableProfile, n_rows: int, aside: dict[str, str]) -> Iterator[Alert]:
    holes = [j for j in np.flatnonzero(seen.n_missing) if seen.names[j] not in aside]
    if holes:
        holes.sort(key=lambda j: -seen.n_missing[j])
        held, n_most = [seen.names[j] for j in holes], int(seen.n_missing[holes[0]])
        most, share = format_count(n_most, "gap"), f"{100 * n_most / n_rows:.0f} %"
        first = f"{held[0]!r} has {most} ({share})"
        if len(held) > 1:
            first = f"{len(held)} columns have gaps, {held[0]!r} the most ({most}, {share})"
        sentence = (
            f"{first}: a search that takes gaps gets them as they are; for others they are filled "
            "with the median and marked, and in words they are a level."
        )
        yield Alert("gaps", tuple(held), sentence)


def _copied(names: NDArray[Any], found: dict[int, int], aside: dict[str, str]) -> Iterator[Alert]:
    held = {names[j]: names[i] for j, i in found.items() if names[j] not in aside}
    if held:
        shown = ", ".join(f"{copy!r} of {first!r}" for copy, first in list(held.items())[:5])
        more = f" and {len(held) - 5} more" if len(held) > 5 else ""
        n_columns = format_count(len(held), "column")
        sentence = (
            f"{n_columns} {_agree(held, 'repeats', 'repeat')} another, {shown}{more}: taken last."
        )
        yield Alert("copies", tuple(held), sentence)


def _mixed(frame: pl.DataFrame, seen: TableProfile) -> Iterator[Alert]:
    found = np.flatnonzero(seen.mixed).tolist()
    if found:
        column = frame.to_series(found[0]).drop_nulls().cast(pl.String)
        odd = column.filter(column.cast(pl.Float64, strict=False).is_null())[0]
        held = [seen.names[j] for j in found]
        sentence = (
            f"{format_names(held)} {_agree(held, 'mixes', 'mix')} numbers and words, such as "
            f"{odd!r} in {held[0]!r}: read as words. Correct the file where numbers were meant."
        )
        yield Alert("mixed", tuple(held), sentence, grave=True)


def _dated(frame: pl.DataFrame, seen: TableProfile, codes: Sequence[int]) -> Iterator[Alert]:
    """Tell how dates that vary are used, and which folds respect them."""
    held = [
        seen.names[j]
        for j in seen.of_kind("date")
        if seen.n_levels[j] > FEW_DATES
        and j not in codes
        and frame.to_series(j).dtype not in (pl.Duration, pl.Time)
    ]
    if held:
        used = _agree(held, "is used as its position", "are used as their positions")
        asked = any(f"{name}_{part}" in seen.names for name in held for part in PARTS)
        parts = "" if asked else "; write --calendar for month, weekday and hour as columns"
        sentence = (
            f"{format_names(held)} {used} in time{parts}. If rows depend on time, errors of random "
            f"folds are optimistic: write --cv time:{quote_for_shell(held[0])} for folds in order "
            "of time."
        )
        yield Alert("dates", tuple(held), sentence)


def _repeated_ids(frame: pl.DataFrame, seen: TableProfile) -> Iterator[Alert]:
    """Name identifiers that several rows share, which must stay in one fold."""
    found = {}
    called = {j for j in seen.of_kind("number", "category", "text") if is_called_id(seen.names[j])}
    for j in sorted({*seen.of_kind("category", "text"), *called}):
        held = frame.to_series(j)
        if held.dtype.is_nested() or held.dtype in (pl.Object, pl.Binary):
            continue
        held = held.drop_nulls()
        n_values = held.n_unique()
        if not FEW_LEVELS < n_values <= MOST_DIFFERENT * len(held):
            continue
        if seen.kind[j] == "number":
            values = numbers(frame, [j])
            shares_id = not (np.isfinite(values) & (np.floor(values) != values)).any()
        else:
            shares_id = j in called or are_codes(held.cast(pl.String))
        if shares_id:
            found[seen.names[j]] = n_values
    if found:
        first, *others = found
        also = f" (also {format_names(others)})" if others else ""
        sentence = (
            f"{first!r} looks like an identifier that rows share: {found[first]} values in "
            f"{frame.height} rows{also}. Rows of one value should stay in one fold: write --groups "
            f"{quote_for_shell(first)}."
        )
        yield Alert("repeated ids", tuple(found), sentence)


def _repeated(n_repeated: int, n_rows: int) -> Iterator[Alert]:
    if n_repeated:
        sentence = (
            f"{n_repeated} of {n_rows} rows repeat{'s' * (n_repeated == 1)} an earlier one, the "
            "target included. A row that is left out to measure errors is then known from its "
            "copies, and the errors are too small. Leave each row in once, if they are copies."
        )
        yield Alert("repeated rows", (), sentence)


def target_alert(y: NDArray[Any], task: str) -> Iterator[Alert]:
    """Warn about rare classes, or about rows that make up nearly all the variance of a target.

    >>> print(*target_alert(np.r_[np.arange(1.0, 31.0), 1e12], "regression"))
    The target is 1e+12 in row 31, where its median is 16: 1 of 31 rows makes up 100 % of its \
variance, and what is selected rests on it. If it is wrong, correct it or leave it out; if not, \
take logarithms.
    """
    return _rare_classes(y) if task == "classification" else _far_rows(y)


def _rare_classes(y: NDArray[Any]) -> Iterator[Alert]:
    classes, counts = np.unique(y, return_counts=True)
    few = np.flatnonzero(counts < RARE)
    if len(few):
        shown = ", ".join(f"{str(classes[k])!r} ({counts[k]})" for k in few[:5])
        sentence = (
            f"{len(few)} of {len(classes)} classes {_agree(few, 'has', 'have')} fewer than {RARE} "
            f"rows: {shown}. What tells them apart rests on those."
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
    middle = float(np.median(values))
    with np.errstate(over="ignore", invalid="ignore"):
        off = np.abs(values / 2 - middle / 2)  # halves: two ends of all numbers may be compared
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
    # rows of a draw are numbered otherwise than those of the files
    where = f"row {first[0] + 1}" if rows_drawn() is None else "one of the rows drawn"
    instead = "; if not, take logarithms" if values.min() > 0 else ""
    sentence = (
        f"The target is {values[first[0]]:.3g} in {where}, where its median is {middle:.3g}: {n} "
        f"of {len(y)} rows make{'s' * (n == 1)} up {100 * shares[n - 1]:.0f} % of its variance, "
        f"and what is selected rests on {it}. If {it_is} wrong, correct {it} or leave {it} out"
        f"{instead}."
    )
    yield Alert("far rows", (), sentence)


def _unnamed(names: list[str]) -> Iterator[Alert]:
    if names:
        sentence = (
            f"{format_names(names)} had no name in the file. Name the column there, or write "
            f"{way_out('drop', names)}."
        )
        yield Alert("unnamed", tuple(names), sentence)


def is_plain(X: Any, y: Any, keep: Sequence[str] = ()) -> bool:
    """Whether a frame holds numbers without missing values only, and needs no encoding.

    With a target also whether no column would be left out: no identifier, no code of ``y``.
    """
    frame = as_polars(X)
    if frame.height < 2:
        return True  # which the search refuses
    if not all(dtype.is_numeric() or dtype == pl.Boolean for dtype in frame.dtypes):
        return False
    seen = columns_of(frame)
    target = np.asarray(y)
    if seen.n_missing.any() or y is None:
        return not seen.n_missing.any()
    if target.dtype.kind == "O" and any(value is None for value in target):
        return True  # which the search refuses
    profile = profiled(frame, seen, target, target_kind(target), keep=keep)
    return not {"identifier", "code"}.intersection(profile.aside.values())
