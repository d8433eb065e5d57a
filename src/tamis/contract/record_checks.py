"""Validation of records that are read from files."""

from collections.abc import Callable, Mapping
from typing import Any

from tamis._version import __version__
from tamis.contract.columns import COLUMNS, COUNTED_BY
from tamis.exceptions import InvalidTable

#: Maximum number of units in a valid record. No table in memory has more.
MOST_UNITS = 100_000_000
#: Entries that a record omits if they are empty.
OPTIONAL = ("units", "interactions", "ran_on")
#: Maximum depth of nested parts. Compositions have only a few levels; a damaged record may nest
#: much deeper.
DEEPEST = 20


def check_record(plain: Any, number: int, depth: int = 0) -> None:
    """Refuse an incomplete or damaged record."""
    if not isinstance(plain, Mapping):
        raise InvalidTable(f"This is not a record: it contains a {type(plain).__name__}.")
    if plain.get("format") != number:
        raise InvalidTable(
            f"tamis {__version__} cannot read this record: 'format' needs to be {number}. "
            "Use the version that wrote it, or fit again."
        )
    _need(depth <= DEEPEST, "parts", "fewer levels")
    for name, (wanted, good) in FIELDS.items():
        _need(name in plain and good(plain[name]), name, wanted)
    unknown = sorted(set(plain) - set(FIELDS) - {"format", "checksum", *OPTIONAL})
    _need(not unknown, ", ".join(map(str, unknown)), "no such entry")
    _check_trace(plain["trace"])
    n_units, n_steps = plain["trace"]["n_units"], len(plain["trace"]["value"])
    n_columns = _check_units(plain.get("units"), n_units)
    _check_pairs(plain.get("interactions", ()), n_units)
    _need(_mapping_to(_texts)(plain.get("ran_on", {})), "ran_on", "names of devices")
    names = plain["feature_names"]
    _need(names is None or len(names) == n_columns, "feature_names", f"{n_columns} names")
    # -1 means before the first step, so nothing was selected
    _need(-1 <= plain["chosen"] < max(n_steps, 1), "chosen", f"a step below {n_steps}")
    _need(n_steps > 0 or not plain["finished"], "finished", "at least one step")
    for part in plain["parts"]:
        check_record(part, number, depth + 1)


def _check_units(units: Any, n_units: int) -> int:
    """Check that groups are disjoint and that fixed units exist. Return the number of columns."""
    if units is None:
        return n_units
    lists = {"groups", "fixed"}
    known = isinstance(units, Mapping) and lists <= set(units) <= lists | {"called", "prices"}
    _need(known and all(isinstance(units[name], list) for name in lists), "units", "lists")
    _need(_text(units.get("called", "unit")), "units", "a name for units")
    for group in units["groups"]:
        pair = isinstance(group, list) and len(group) == 2
        _need(pair and _text(group[0]) and isinstance(group[1], list), "units", "named groups")
        _need(len(group[1]) > 0 and all(map(_count, group[1])), "units", "columns in each group")
    columns = [column for _, held in units["groups"] for column in held]
    n_columns = n_units + len(columns) - len(units["groups"])
    good = len(set(columns)) == len(columns) and _all_below(columns, n_columns)
    _need(good, "units", f"columns below {n_columns}, each once")
    _need(_all_below(units["fixed"], n_units), "units", f"fixed units below {n_units}")
    if "prices" in units:
        _check_prices(units["prices"], n_units)
    return n_columns


def _check_prices(prices: Any, n_units: int) -> None:
    """Check the prices of the units and their shared fees."""
    known = isinstance(prices, Mapping) and set(prices) == {"own", "fees", "full"}
    _need(known and isinstance(prices["fees"], list), "units", "prices")
    good = isinstance(prices["own"], list) and len(prices["own"]) == n_units
    _need(good and all(map(_price, [*prices["own"], prices["full"]])), "units", "prices")
    for fee in prices["fees"]:
        pair = isinstance(fee, list) and len(fee) == 2 and isinstance(fee[1], list)
        _need(pair and _price(fee[0]) and _all_below(fee[1], n_units), "units", "fees of units")


def _check_pairs(pairs: Any, n_units: int) -> None:
    """Check the interactions: pairs of units, each with a number and an optional p-value."""
    _need(isinstance(pairs, list | tuple), "interactions", "a list")
    for pair in pairs:
        good = isinstance(pair, list | tuple) and len(pair) in (3, 4)
        good = good and _all_below(pair[:2], n_units) and type(pair[2]) in (int, float)
        good = good and all(p is None or type(p) is float for p in pair[3:])
        _need(good, "interactions", "pairs of units")


def _check_trace(trace: Mapping[str, Any]) -> None:
    """Check the lengths of the columns of a trace and the ranges of their numbers."""
    n_units: Any = trace.get("n_units")
    _need(_count(n_units) and 1 <= n_units <= MOST_UNITS, "n_units", "a number of units")
    for name in ("state", "params"):
        _need(isinstance(trace.get(name), Mapping), name, "a dictionary")
    lists = (*COLUMNS, "start", "given", "given_at")
    for name in lists:
        _need(isinstance(trace.get(name), list), name, "a list")
    unknown = set(trace) - {"n_units", "state", "params", *lists}
    _need(not unknown, ", ".join(sorted(map(str, unknown))), "no such column")
    for name in ("given", "given_at"):
        _need(len(trace[name]) == n_units, name, f"{n_units} numbers")
    n_steps = len(trace["value"])
    for counts in ("n_moved", "n_scored"):
        _need(_all_below(trace[counts], n_units + 1), counts, "counts of units")
    lengths = n_steps, sum(trace["n_moved"]), sum(trace["n_scored"])
    for name, kind in COLUMNS.items():
        length = lengths[COUNTED_BY[name]]
        _need(len(trace[name]) == length, name, f"{length} entries")
        _need(all(map(_number if kind is float else _count, trace[name])), name, "numbers")
    _need(all(map(_number, trace["given"])), "given", "numbers")
    for name in ("start", "moved", "candidate"):
        _need(_all_below(trace[name], n_units), name, f"units below {n_units}")
    good = all(n == -1 or _all_below([n], max(n_steps, 1)) for n in trace["given_at"])
    _need(good, "given_at", "steps of the trace")
    good = all(_text(step) and step.isdecimal() and int(step) < n_steps for step in trace["params"])
    _need(good, "params", "steps of the trace")


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _all_below(values: Any, end: int) -> bool:
    return all(_count(value) and value < end for value in values)


def _number(value: Any) -> bool:
    return value is None or type(value) in (int, float) or value in ("inf", "-inf")


def _price(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < float("inf")


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_text, value))


def _mapping_to(good: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return a check for dictionaries with text keys whose values pass the check ``good``."""
    return lambda value: (
        isinstance(value, Mapping)
        and all(_text(name) and good(held) for name, held in value.items())
    )


def _need(good: bool, name: str, wanted: str) -> None:
    if not good:
        raise InvalidTable(
            f"This is a damaged record: its {name!r} needs {wanted}. Start the search again."
        )


#: Entries of a record. Each has a description for messages and a function that checks its value.
FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "expression": ("a text", _text),
    "identity": ("a text", _text),
    "walk": ("a text", _text),
    "data": ("a text", _text),
    "n_samples": ("a count", _count),
    "feature_names": ("a list of names", lambda value: value is None or _texts(value)),
    "seeds": ("seeds", _mapping_to(_count)),
    "trace": ("a dictionary", lambda value: isinstance(value, Mapping)),
    "chosen": ("a step", lambda value: type(value) is int),
    "n_evaluations": ("a count", _count),
    "reason": ("a text", _text),
    "finished": ("true or false", lambda value: isinstance(value, bool)),
    "versions": ("versions", _mapping_to(_text)),
    "parts": ("a list", lambda value: isinstance(value, list | tuple)),
}
