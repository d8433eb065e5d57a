"""What a person should know of a table before anything is selected from it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis._format import format_count, format_names, quote_for_shell
from tamis.contract.drawn import rows_drawn
from tamis.table.dates import PARTS
from tamis.table.kinds import FEW_LEVELS, SeenColumns, are_codes, is_called_id, numbers
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
#: Kinds that no search is offered, unless an encoder of the user's takes them.
LEFT_OUT = ("identifier", "text", "constant")


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


@dataclass(frozen=True)
class TableProfile:
    """Kinds of all columns of a frame, what they foretell, and what to know of them.

    Attributes
    ----------
    columns : SeenColumns
    power : array of float
        How much of the errors of a constant guess a column does away with alone; nan: not asked.
    aside : dict of str to str
        Columns that no search is offered, and why.
    alerts : tuple of Alert
    """

    columns: SeenColumns
    power: Array
    aside: dict[str, str]
    alerts: tuple[Alert, ...]

    @property
    def kinds(self) -> dict[str, str]:
        """Kind of each column by its name."""
        return dict(zip(self.columns.names, self.columns.kind.tolist(), strict=True))

    @property
    def used(self) -> list[int]:
        """Indices of the columns that a search is offered."""
        return [j for j, name in enumerate(self.columns.names) if name not in self.aside]


def profiled(
    frame: pl.DataFrame,
    seen: SeenColumns,
    y: NDArray[Any] | None,
    task: str,
    *,
    keep: Sequence[str] = (),
    takes_text: bool = False,
    unnamed: Iterable[str] = (),
) -> TableProfile:
    """What there is to know of the features of a table; ``keep`` are never left out."""
    seen = replace(seen, kind=kept_kinds(frame, seen, keep))
    y = None if task == "none" else y
    power = foresights(frame, seen, y, task) if y is not None else np.full(frame.width, np.nan)
    names = np.array(seen.names, dtype=object)
    codes = [j for j in _codes(frame, seen, power, y, task) if names[j] not in keep]
    more = [
        _dated(frame, seen, codes),
        _repeated_ids(frame, seen),
        _mixed(frame, names, np.flatnonzero(seen.mixed)),
        None if y is None else target_alert(y, task),
        None if y is None else _repeated(repeated_rows(frame, seen, y), len(y)),
    ]
    copied = copies(frame, seen)
    return profile_of(
        seen, power, codes, copied, frame.height, takes_text=takes_text, more=more, unnamed=unnamed
    )


def profile_of(
    seen: SeenColumns,
    power: Array,
    codes: Sequence[int],
    copied: dict[int, int],
    n_rows: int,
    *,
    takes_text: bool = False,
    more: Sequence[Alert | None] = (),
    unnamed: Iterable[str] = (),
) -> TableProfile:
    """What is left out and what is said, by what was found; ``codes`` are those of the target."""
    names = np.array(seen.names, dtype=object)
    ids = seen.of_kind("identifier")
    left_out = [
        _identifiers(names[ids].tolist(), [names[j] for j in ids if power[j] >= LEAKS]),
        _coded(names[codes].tolist()),
        None if takes_text else _texts(names[seen.of_kind("text")].tolist()),
        _constants(names[seen.of_kind("constant")]),
    ]
    aside = {name: alert.sort for alert in left_out if alert for name in alert.columns}
    leaks = [j for j in np.flatnonzero(np.nan_to_num(power) >= LEAKS) if names[j] not in aside]
    found = [
        *left_out,
        _leaks(names[leaks], power[leaks]),
        _gaps(seen, n_rows, aside),
        _copied(names, copied, aside),
        *more,
        _unnamed([name for name in unnamed if name in set(seen.names) - set(aside)]),
    ]
    return TableProfile(seen, power, aside, tuple(alert for alert in found if alert is not None))


def kept_kinds(frame: pl.DataFrame, seen: SeenColumns, keep: Sequence[str]) -> NDArray[Any]:
    """Kinds, where identifiers that are to be kept are the numbers or categories they look like."""
    kind = seen.kind.copy()
    for j in seen.of_kind("identifier", "text"):
        if seen.names[j] in keep and not (dtype := frame.to_series(j).dtype).is_nested():
            kind[j] = "number" if dtype.is_numeric() else "category"
    return kind


def _codes(
    frame: pl.DataFrame, seen: SeenColumns, power: Array, y: NDArray[Any] | None, task: str
) -> list[int]:
    """Columns that are the target under other names."""
    if y is None:
        return []
    suspects = np.flatnonzero(np.nan_to_num(power) >= LEAKS).tolist()
    return [
        j for j in suspects if seen.kind[j] != "identifier" and is_code(frame.to_series(j), y, task)
    ]


def way_out(option: str, names: Sequence[str]) -> str:
    """What to write for these columns, in Python and on the command line."""
    words = " ".join(f"--{option} {quote_for_shell(name)}" for name in names[:5])
    shown = ", ".join(map(repr, names[:5]))
    more = ", ..." if len(names) > 5 else ""
    return f"{option}=[{shown}{more}] ({words}{' ...' if more else ''})"


def _left_out(
    sort: str, names: Sequence[str], why: tuple[str, str], instead: str = "", for_use: str = ""
) -> Alert | None:
    """Columns that are left out; ``why`` speaks of one, and of many."""
    if not len(names):
        return None
    one = len(names) == 1
    for_use = for_use or f"to use {'it' if one else 'them'}"
    return Alert(
        sort,
        tuple(names),
        f"{format_names(names)} {'is' if one else 'are'} left out: {why[not one]} Write {instead}"
        f"{way_out('keep', names)} {for_use}.",
        grave=True,
    )


def _identifiers(names: Sequence[str], sorted_with: Sequence[str]) -> Alert | None:
    betrays = f" {format_names(sorted_with)} even foretells the target." if sorted_with else ""
    what = f"another value in every row, as an identifier has.{betrays}"
    return _left_out("identifier", names, (f"it has {what}", f"they have {what}"))


def _coded(names: Sequence[str]) -> Alert | None:
    why = "each value stands for one value of the target, so that nothing would be learnt."
    return _left_out("code", names, (why, why))


def _texts(names: Sequence[str]) -> Alert | None:
    what = "text, or more levels than rows could tell apart."
    instead = "TableSelector(search, encoder=...) with an encoder of texts, or "
    why = f"it holds {what}", f"they hold {what}"
    return _left_out("text", names, why, instead, "to take each as a category")


def _constants(names: NDArray[Any]) -> Alert | None:
    if not len(names):
        return None
    held = names.tolist()
    return Alert(
        "constant",
        tuple(held),
        f"{format_names(held)} {'has' if len(held) == 1 else 'have'} one value, or none, in all "
        "rows: left out.",
    )


def _leaks(names: NDArray[Any], power: Array) -> Alert | None:
    if not len(names):
        return None
    held = names[np.argsort(-power, kind="stable")].tolist()
    return Alert(
        "leak",
        tuple(held),
        f"{format_names(held)} foretell{'s' * (len(held) == 1)} the target almost alone "
        f"({100 * power.max():.0f} % of the errors are gone, cross-validated): a leak, perhaps. If "
        f"so, write {way_out('drop', held)}.",
        grave=True,
    )


def _gaps(seen: SeenColumns, n_rows: int, aside: dict[str, str]) -> Alert | None:
    holes = [j for j in np.flatnonzero(seen.n_missing) if seen.names[j] not in aside]
    if not holes:
        return None
    worst = sorted(holes, key=lambda j: -seen.n_missing[j])
    held = [seen.names[j] for j in worst]
    share = f"{100 * seen.n_missing[worst[0]] / n_rows:.0f} %"
    n_most = format_count(int(seen.n_missing[worst[0]]), "gap")
    first = f"{held[0]!r} has {n_most} ({share})"
    if len(held) > 1:
        first = f"{len(held)} columns have gaps, {held[0]!r} the most ({n_most}, {share})"
    return Alert(
        "gaps",
        tuple(held),
        f"{first}: a search that takes gaps gets them as they are; for others they are filled with "
        "the median and marked, and in words they are a level.",
    )


def _copied(names: NDArray[Any], found: dict[int, int], aside: dict[str, str]) -> Alert | None:
    held = {names[j]: names[i] for j, i in found.items() if names[j] not in aside}
    if not held:
        return None
    shown = ", ".join(f"{copy!r} of {first!r}" for copy, first in list(held.items())[:5])
    more = f" and {len(held) - 5} more" if len(held) > 5 else ""
    return Alert(
        "copies",
        tuple(held),
        f"{format_count(len(held), 'column')} "
        f"repeat{'s' * (len(held) == 1)} another, {shown}{more}: taken last.",
    )


def _mixed(frame: pl.DataFrame, names: NDArray[Any], found: NDArray[np.intp]) -> Alert | None:
    if not len(found):
        return None
    column = frame.to_series(int(found[0])).drop_nulls().cast(pl.String)
    odd = column.filter(column.cast(pl.Float64, strict=False).is_null())[0]
    held = names[found].tolist()
    return Alert(
        "mixed",
        tuple(held),
        f"{format_names(held)} mix{'es' * (len(held) == 1)} numbers and words, such as {odd!r} in "
        f"{held[0]!r}: read as words. Correct the file where numbers were meant.",
        grave=True,
    )


def _dated(frame: pl.DataFrame, seen: SeenColumns, codes: Sequence[int]) -> Alert | None:
    """Dates that vary: how they are used, and the folds that respect them."""
    held = [
        seen.names[j]
        for j in seen.of_kind("date")
        if seen.n_levels[j] > FEW_DATES
        and j not in codes
        and frame.to_series(j).dtype not in (pl.Duration, pl.Time)
    ]
    if not held:
        return None
    used = "is used as its position" if len(held) == 1 else "are used as their positions"
    asked = any(f"{name}_{part}" in seen.names for name in held for part in PARTS)
    parts = "" if asked else "; write --calendar for month, weekday and hour as columns"
    return Alert(
        "dates",
        tuple(held),
        f"{format_names(held)} {used} in time{parts}. If rows depend on time, errors of random "
        f"folds are optimistic: write --cv time:{quote_for_shell(held[0])} for folds in "
        "order of time.",
    )


def _repeated_ids(frame: pl.DataFrame, seen: SeenColumns) -> Alert | None:
    """Identifiers that several rows share, which folds should not part."""
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
    if not found:
        return None
    first, n_values = next(iter(found.items()))
    others = f" (also {format_names(list(found)[1:])})" if len(found) > 1 else ""
    return Alert(
        "repeated ids",
        tuple(found),
        f"{first!r} looks like an identifier that rows share: {n_values} values in {frame.height} "
        f"rows{others}. Rows of one value should stay in one fold: write --groups "
        f"{quote_for_shell(first)}.",
    )


def _repeated(n_repeated: int, n_rows: int) -> Alert | None:
    if not n_repeated:
        return None
    return Alert(
        "repeated rows",
        (),
        f"{n_repeated} of {n_rows} rows repeat{'s' * (n_repeated == 1)} an earlier one, the target "
        "included. A row that is left out to measure errors is then known from its copies, and the "
        "errors are too small. Leave each row in once, if they are copies.",
    )


def rare_classes(y: NDArray[Any]) -> Alert | None:
    """Classes of few rows."""
    classes, counts = np.unique(y, return_counts=True)
    few = counts < RARE
    if not few.any() or not len(classes):
        return None
    shown = ", ".join(
        f"{str(label)!r} ({n})"
        for label, n in list(zip(classes[few], counts[few], strict=True))[:5]
    )
    if few.all():
        return Alert(
            "rare classes",
            (),
            f"All {len(classes)} classes have fewer than {RARE} rows: {shown}. That is too few to "
            "learn from. If they are dates or quantities, give them as numbers.",
        )
    return Alert(
        "rare classes",
        (),
        f"{few.sum()} of {len(classes)} classes {'has' if few.sum() == 1 else 'have'} fewer than "
        f"{RARE} rows: {shown}. What tells them apart rests on those.",
    )


def target_alert(y: NDArray[Any], task: str) -> Alert | None:
    """What to know of a target: rare classes, or rows beside which the others hardly count."""
    return rare_classes(y) if task == "classification" else far_rows(y)


def far_rows(y: NDArray[Any]) -> Alert | None:
    """Rows of a real target so far from the others that they make up nearly all its variance.

    >>> print(far_rows(np.r_[np.arange(1.0, 31.0), 1e12]))
    The target is 1e+12 in row 31, where its median is 16: 1 of 31 rows makes up 100 % of its \
variance, and what is selected rests on it. If it is wrong, correct it or leave it out; if not, \
take logarithms.
    """
    if len(y) < ENOUGH:
        return None
    values = np.asarray(y, dtype=float)
    middle = float(np.median(values))
    with np.errstate(over="ignore", invalid="ignore"):
        off = np.abs(values / 2 - middle / 2)  # halves: two ends of all numbers may be compared
    largest = off.max()
    if not 0 < largest < np.inf:
        return None
    squares = (off / largest) ** 2
    first = np.argsort(-squares, kind="stable")[: max(1, len(y) // 100)]
    shares = squares[first].cumsum() / squares.sum()
    if shares[-1] < FAR:
        return None
    n = int(np.argmax(shares >= FAR)) + 1
    return _far(values, int(first[0]), middle, n, float(shares[n - 1]))


def _far(values: Array, row: int, middle: float, n: int, share: float) -> Alert:
    one, it, is_wrong = (n == 1, "it", "it is") if n == 1 else (False, "them", "they are")
    # rows of a draw are numbered otherwise than those of the files
    where = f"row {row + 1}" if rows_drawn() is None else "one of the rows drawn"
    instead = "; if not, take logarithms" if values.min() > 0 else ""
    return Alert(
        "far rows",
        (),
        f"The target is {values[row]:.3g} in {where}, where its median is {middle:.3g}: {n} of "
        f"{len(values)} rows make{'s' * one} up {100 * share:.0f} % of its variance, and what is "
        f"selected rests on {it}. If {is_wrong} wrong, correct {it} or leave {it} out{instead}.",
    )


def _unnamed(names: list[str]) -> Alert | None:
    if not names:
        return None
    return Alert(
        "unnamed",
        tuple(names),
        f"{format_names(names)} had no name in the file. Name the column there, or write "
        f"{way_out('drop', names)}.",
    )
