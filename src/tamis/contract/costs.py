"""Prices of columns: what a subset costs, and which units still fit under a limit.

The price of a column has two parts: its own price, and fees that it shares with other columns. A
shared fee is paid once, together with the first column that needs it. So the price of a subset does
not depend on the order of its columns, and adding a column never makes it cheaper.
"""

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from io import StringIO
from math import fsum
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from tamis._arrays import Array, Mask, Subset, is_real
from tamis._format import format_number, shorten_list
from tamis.exceptions import InvalidParameter, InvalidTable, NothingToAdd

#: Relative tolerance of a price limit, so that prices of 0.1 and 0.2 fit under a limit of 0.3.
ROUNDING = 1e-9
#: Maximum number of groups with a shared fee that a step of a search tries.
MOST_GROUPS = 10
#: Largest allowed price. With this limit, sums of prices stay finite.
MOST = 1e100
#: Scores are divided by at least this price, to avoid a division by zero.
TINY = 1e-300
#: Columns of a CSV file with prices.
HEADINGS = ("name", "cost", "group", "fee", "later")


@dataclass(frozen=True)
class Prices:
    """The prices of the units of a table.

    Attributes
    ----------
    own : tuple of float
        The price of each unit without shared fees.
    fees : tuple of (fee, units)
        Fees that are paid once if a subset contains at least one of the units.
    full : float
        The price of the whole table. A limit such as "10%" is a share of it.

    Examples
    --------
    >>> prices = Prices((5.0, 3.0, 1.0), ((2.0, (0, 1)),), full=11.0)
    >>> prices.of([0]), prices.of([0, 1]), prices.of([])
    (7.0, 10.0, 0.0)
    """

    own: tuple[float, ...]
    fees: tuple[tuple[float, tuple[int, ...]], ...] = ()
    full: float = 0.0

    def of(self, units: Iterable[int]) -> float:
        """Return the price of a subset of units."""
        held = set(map(int, units))
        paid = (fee for fee, sharing in self.fees if not held.isdisjoint(sharing))
        # fsum is exact, so the order of the units does not matter
        exact = fsum([*map(self.own.__getitem__, held), *paid])
        return _rounded(exact)

    @cached_property
    def _dues(self) -> tuple[Subset, Subset]:
        """Each unit that needs a fee, and the index of the fee, as two arrays."""
        counts = [len(units) for _, units in self.fees]
        units = [unit for _, sharing in self.fees for unit in sharing]
        return np.array(units, dtype=np.intp), np.repeat(np.arange(len(counts)), counts)

    @cached_property
    def _arrays(self) -> tuple[Array, Array]:
        return np.array(self.own, dtype=float), np.array([fee for fee, _ in self.fees])

    def _members(self, subset: Subset) -> Subset:
        """Return the number of members of the subset that need each fee."""
        units, fees = self._dues
        held = np.zeros(len(self.own), dtype=bool)
        held[subset] = True
        return np.bincount(fees[held[units]], minlength=len(self.fees))

    def _with_fees(self, wanted: Subset, fees: Array) -> Array:
        """Return the price of each wanted unit with these fees."""
        units, numbers = self._dues
        due = np.bincount(units, fees[numbers], minlength=len(self.own))
        found: Array = self._arrays[0][wanted] + due[wanted]
        return found

    def added(self, subset: Subset, candidates: Subset) -> Array:
        """Return how much each candidate adds to the price of the subset."""
        return self._with_fees(candidates, self._arrays[1] * (self._members(subset) == 0))

    def shares(self, subset: Subset) -> Array:
        """Return the price of each member. Members that need the same fee share it equally."""
        return self._with_fees(subset, self._arrays[1] / np.maximum(self._members(subset), 1))

    def restricted(self, units: Subset) -> "Prices":
        """Return the prices of a table whose unit i is unit ``units[i]`` of this one."""
        position = {int(unit): index for index, unit in enumerate(units)}
        fees = []
        for fee, sharing in self.fees:
            if held := tuple(sorted(position[unit] for unit in sharing if unit in position)):
                fees.append((fee, held))
        return Prices(tuple(self.own[unit] for unit in position), tuple(fees), self.full)

    def to_dict(self) -> dict[str, Any]:
        """Return the prices as plain lists for a record."""
        fees = [[fee, list(units)] for fee, units in self.fees]
        return {"own": list(self.own), "fees": fees, "full": self.full}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the prices from the output of :meth:`to_dict`."""
        fees = tuple((fee, tuple(units)) for fee, units in plain["fees"])
        return cls(tuple(plain["own"]), fees, plain["full"])


@dataclass(frozen=True)
class Limit:
    """An upper limit for the price of a subset, under which a search adds and removes units.

    Attributes
    ----------
    prices : Prices
        The prices of the units.
    amount : float
        The greatest allowed price.
    per_price : bool
        Whether units are compared by score divided by price, instead of by score.

    Examples
    --------
    >>> limit = Limit(Prices((5.0, 3.0, 1.0)), 6.0)
    >>> limit.affordable(np.array([0]), np.array([1, 2]))
    array([2])
    """

    prices: Prices
    amount: float
    per_price: bool = False

    def allows(self, price: Any) -> Any:
        """Whether a price is within the limit, apart from rounding."""
        return price <= self.amount * (1 + ROUNDING)

    def affords(self, units: Iterable[int]) -> bool:
        """Whether a subset is within the limit."""
        return bool(self.allows(self.prices.of(units)))

    def affordable(self, subset: Subset, candidates: Subset) -> Subset:
        """Return the candidates that can be added within the limit.

        If the subset exceeds the limit, as in a backward search, all candidates are returned. If
        none can be added, :class:`NothingToAdd` is raised.
        """
        price = self.prices.of(subset)
        if not self.allows(price):
            return candidates
        found: Subset = candidates[self.allows(price + self.prices.added(subset, candidates))]
        if not len(found):
            raise NothingToAdd("No other column can be added within the price limit.")
        return found

    def fitting(self, order: Subset, held: Subset) -> Subset:
        """Return the units that can be added within the limit, tried one by one in an order.

        The units in ``held`` are already selected, and their fees are paid.
        """
        own, fees = self.prices.own, self.prices.fees
        fees_of: dict[int, list[int]] = {}
        for fee, (_, sharing) in enumerate(fees):
            for unit in sharing:
                fees_of.setdefault(unit, []).append(fee)
        price, paid = self.prices.of(held), set[int]()
        for unit in held.tolist():
            paid.update(fees_of.get(unit, ()))
        kept = []
        for unit in order.tolist():
            due = [fee for fee in fees_of.get(unit, ()) if fee not in paid]
            more = own[unit] + sum(fees[fee][0] for fee in due)
            if self.allows(price + more):
                kept.append(unit)
                price += more
                paid.update(due)
        return np.array(kept, dtype=np.intp)

    def rates(self, scores: Array, subset: Subset, candidates: Subset | None = None) -> Array:
        """Return the scores divided by prices if ``per_price`` is true, else the scores.

        The scores are the gains of the candidates or, without candidates, the losses of the members
        of the subset. Free candidates with a gain are ranked first. Free members whose removal
        would cost quality are removed last.
        """
        if not self.per_price:
            return scores
        if candidates is None:
            price = self.prices.shares(subset)
        else:
            price = self.prices.added(subset, candidates)
        free, useful = price <= 0, scores > 0
        if candidates is None:
            scores = np.where(free & useful, np.inf, scores)
        elif (free & useful).any():
            return np.where(free & useful, scores, -np.inf)
        return np.divide(scores, price, out=scores.copy(), where=useful & ~free)

    def rate(self, gain: float, subset: Subset, larger: Subset) -> float:
        """Return the gain per price of a larger subset."""
        price = self.prices.of(larger) - self.prices.of(subset)
        return gain / price if price > 0 else np.inf * np.sign(gain)

    def groups(
        self, candidates: Subset, gains: Array, unpaid: Subset | None = None
    ) -> list[Subset]:
        """Return the candidates of each fee, for the fees with the greatest gain per price.

        At most ``MOST_GROUPS`` groups are returned. If the subset ``unpaid`` is given, a group is
        returned only if no member of that subset needs its fee, and if it has at least two
        candidates.
        """
        own, fees = self.prices._arrays
        position = np.full(len(own), -1)
        position[candidates] = np.arange(len(candidates))
        units, numbers = self.prices._dues
        there = position[units] >= 0
        units, numbers = units[there], numbers[there]

        def total(values: Array | None) -> Any:
            return np.bincount(numbers, values, minlength=len(fees))

        useful = total(None) >= (1 if unpaid is None else 2)
        if unpaid is not None:
            useful &= self.prices._members(unpaid) == 0
        price = np.maximum(fees + total(own[units]), TINY)
        rates = total(np.maximum(gains, 0)[position[units]]) / price
        best = np.flatnonzero(useful)
        best = np.sort(best[np.argsort(-rates[best], kind="stable")[:MOST_GROUPS]])
        return [np.sort(units[numbers == number]) for number in best]


@dataclass(eq=False, repr=False)
class FeatureCosts(BaseEstimator):
    """Prices of the columns of a table, such as blood tests, survey questions or sensors.

    Parameters
    ----------
    prices : dict of column to float
        The price of each column if it is bought alone. Shared fees are included. Columns are given
        by name, or by index if the table has no names.
    shared : dict of name to (fee, columns), default=None
        Fees that are paid once for several columns, such as a blood sample or an exercise test.
    default : float or None, default=None
        The price of columns that are not in ``prices``. None means that every column needs a price.

    Examples
    --------
    >>> from tamis import FeatureCosts
    >>> costs = FeatureCosts({"age": 1, "chol": 7.27, "fbs": 5.20},
    ...                      shared={"blood": (2.10, ["chol", "fbs"])})
    >>> costs.of(["chol"]), costs.of(["chol", "fbs"])
    (7.27, 10.37)
    """

    prices: Mapping[Any, float]
    _: KW_ONLY
    shared: Mapping[str, tuple[float, Sequence[Any]]] | None = None
    default: float | None = None

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, default: float | None = None) -> Self:
        """Read prices from a CSV file.

        Parameters
        ----------
        path : str or path
            A file with the columns ``name`` and ``cost``, the price of a column if it is bought
            alone. The optional column ``group`` names a group that shares a fee, and the column
            ``fee`` holds the fee. Instead of ``fee``, the file may have the column ``later``: the
            price of a column if another column of the group is bought as well. The fee is then the
            smallest difference between ``cost`` and ``later`` in the group. Values are separated by
            commas, semicolons or tabs. Names that begin with a space need quotes.
        default : float or None, default=None
            The price of columns that are not in the file.
        """
        prices: dict[str, float] = {}
        fees: dict[str, list[float]] = {}
        members: dict[str, list[str]] = {}
        differ = set()
        for line, row in _read_rows(path):
            name = row["name"]
            if name in prices:
                raise InvalidTable(f"{path}, line {line}: {name!r} has two prices. Give one.")
            prices[name] = cost = _parse_price(path, line, row["cost"])
            if not (group := row.get("group")):
                continue
            members.setdefault(group, []).append(name)
            if later := row.get("later"):
                fees.setdefault(group, []).append(cost - _parse_price(path, line, later))
                differ.add(group)
            elif fee := row.get("fee"):
                fees.setdefault(group, []).append(_parse_price(path, line, fee))
        for group in members:
            found = fees.get(group, [])
            if not found or (group not in differ and len(set(found)) > 1):
                shown = f"the fees {shorten_list(found)}" if found else "no fee"
                raise InvalidTable(
                    f"{path}: the group {group!r} has {shown}. Give the same fee for all its "
                    "columns."
                )
        shared = {group: (_rounded(min(fees[group])), held) for group, held in members.items()}
        return cls(prices, shared=shared or None, default=default)

    def of(self, columns: str | int | Iterable[Any]) -> float:
        """Return the price of some columns: their own parts, and each shared fee once.

        Parameters
        ----------
        columns : str, int, or iterable of them
            The columns, as in ``prices``.
        """
        wanted = [columns] if isinstance(columns, str | int) else list(dict.fromkeys(columns))
        position = {column: index for index, column in enumerate(wanted)}
        return self.resolve(position, len(wanted), wanted).full

    def named(self) -> list[tuple[str, Any]]:
        """Return pairs of a parameter and a column, for all columns that the parameters name."""
        self._check()
        found = [("feature_costs", column) for column in self.prices]
        for group, (_, columns) in (self.shared or {}).items():
            found += [(f"feature_costs, shared[{group!r}],", column) for column in columns]
        return found

    def resolve(
        self, position: Mapping[Any, int], n_columns: int, names: Sequence[Any] | None = None
    ) -> Prices:
        """Return the prices of the columns of a table.

        Parameters
        ----------
        position : dict of column to int
            The indices of the columns. Prices and fees of other columns are left out.
        n_columns : int
            Number of columns of the table.
        names : sequence of str or None, default=None
            Names of the columns, for messages.
        """
        self._check()
        alone = np.full(n_columns, np.nan if self.default is None else float(self.default))
        for column, price in self.prices.items():
            if column in position:
                alone[position[column]] = price
        if (missing := np.isnan(alone)).any():
            raise InvalidParameter(
                f"FeatureCosts has no price for {_list_columns(missing, names)}. Add the missing "
                "prices, or write default=1.0 for all other columns."
            )
        fees = []
        for fee, columns in (self.shared or {}).values():
            if held := tuple(sorted({position[one] for one in columns if one in position})):
                fees.append((float(fee), held))
                alone[list(held)] -= fee
        if (short := alone < -ROUNDING * sum(fee for fee, _ in fees)).any():
            raise InvalidParameter(
                "FeatureCosts needs prices that include shared fees, but the price of "
                f"{_list_columns(short, names)} is less than its fees. Give the price of buying "
                "the column alone."
            )
        own = tuple(np.maximum(alone, 0.0).tolist())
        return Prices(own, tuple(fees), Prices(own, tuple(fees)).of(range(n_columns)))

    def _check(self) -> None:
        """Refuse prices, fees and groups of the wrong type."""
        if not isinstance(self.prices, Mapping):
            raise InvalidParameter(
                f"FeatureCosts needs a dictionary of columns to prices, not {self.prices!r}. Write "
                "FeatureCosts({'age': 1, 'chol': 7.27}), or FeatureCosts.read('costs.csv')."
            )
        for column, price in self.prices.items():
            _check_price(f"the price of {column!r}", price)
        if self.default is not None:
            _check_price("default", self.default)
        shared: Any = self.shared
        if not isinstance(shared, Mapping | None):
            raise InvalidParameter(
                f"FeatureCosts needs shared as a dictionary, not {self.shared!r}. Write "
                "shared={'blood': (2.10, ['chol', 'fbs'])}."
            )
        for group, given in (shared or {}).items():
            pair = isinstance(given, tuple | list) and len(given) == 2
            if not pair or isinstance(given[1], str) or not isinstance(given[1], Iterable):
                raise InvalidParameter(
                    f"FeatureCosts needs a fee and a list of columns in shared[{group!r}], not "
                    f"{given!r}. Write shared={{{group!r}: (2.10, ['chol', 'fbs'])}}."
                )
            _check_price(f"the fee of {group!r}", given[0])


def group_prices(prices: Prices, unit_of: NDArray[np.intp], n_units: int) -> Prices:
    """Return the prices of units, given the prices of columns and the unit of each column."""
    own = [0.0] * n_units
    members: list[list[float]] = [[] for _ in own]
    for unit, price in zip(unit_of.tolist(), prices.own, strict=True):
        members[unit].append(price)
    fees = tuple(
        (fee, tuple(sorted({int(unit_of[column]) for column in columns})))
        for fee, columns in prices.fees
    )
    return Prices(tuple(fsum(held) for held in members), fees, prices.full)


def format_price(price: float) -> str:
    """Return a price as text with five digits.

    >>> format_price(101.94), format_price(50.0)
    ('101.94', '50')
    """
    return format_number(price, digits=5)


def _rounded(price: float) -> float:
    """Remove the rounding error of a sum: 7.269999999999999 becomes 7.27."""
    return float(f"{price:.12g}")


def _list_columns(mask: Mask, names: Sequence[Any] | None) -> str:
    """Return the names of the columns in a mask, or their indices."""
    columns = np.flatnonzero(mask).tolist()
    return shorten_list(columns if names is None else [names[j] for j in columns])


def _check_price(what: str, price: Any) -> None:
    if not (is_real(price) and 0 <= price <= MOST):
        raise InvalidParameter(
            f"FeatureCosts needs {what} to be a number from 0 to {MOST:g}, got {price!r}."
        )


def _read_rows(path: Any) -> list[tuple[int, dict[str, str]]]:
    """Return the rows of a CSV file with prices, each with its line number."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidTable(
            f"The prices in {path} cannot be read: {error}. Give a CSV file with the columns name "
            "and cost."
        ) from error
    delimiter = max(",;\t", key=text.lstrip().partition("\n")[0].count)
    reader = csv.reader(StringIO(text), delimiter=delimiter, skipinitialspace=True)
    try:
        lines = [(reader.line_num, cells) for cells in reader if any(map(str.strip, cells))]
    except csv.Error as error:
        raise InvalidTable(
            f"{path}, line {reader.line_num}, cannot be read: {error}. Give a CSV file with the "
            "columns name and cost."
        ) from error
    headings = [cell.strip().lower() for cell in lines[0][1]] if lines else []
    counts = [headings.count(heading) for heading in HEADINGS]
    if counts[:2] != [1, 1] or max(counts) > 1:
        raise InvalidTable(
            f"{path} needs the columns name and cost, and optionally group and fee, each once; it "
            f"has {shorten_list(headings) or 'none'}."
        )
    found = []
    for line, cells in lines[1:]:
        if any(map(str.strip, cells[len(headings) :])):
            raise InvalidTable(
                f"{path}, line {line}: there are {len(cells)} values for {len(headings)} columns. "
                f"Write prices as 1000.50, and put names with {delimiter!r} in quotes."
            )
        row = dict.fromkeys(headings, "") | dict(zip(headings, cells, strict=False))
        row |= {heading: row.get(heading, "").strip() for heading in HEADINGS[1:]}
        found.append((line, row | {"name": row["name"].rstrip()}))
    return found


def _parse_price(path: Any, line: int, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidTable(
            f"{path}, line {line}: a price needs a number such as 7.27, not {text!r}."
        ) from None
