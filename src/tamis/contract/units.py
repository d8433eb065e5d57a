"""Units: columns, or groups of columns that are selected as one.

Searches and criteria work on units. Only the table, ``support_`` and ``transform`` refer to
columns. This module turns ``feature_groups`` and ``fixed_features`` into a :class:`Grouping`. Units
are sorted by their first column. So if every group has a single column, unit j is column j.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import EMPTY, Array, Mask, Subset, is_int
from tamis._format import shorten_list
from tamis.contract.costs import FeatureCosts, Prices, group_prices
from tamis.exceptions import InvalidParameter

#: Values that ``feature_groups`` accepts: the columns of each group by name, or a label per column.
Groups: TypeAlias = Mapping[Any, Any] | Sequence[Any] | NDArray[Any] | None
#: Values that ``fixed_features`` accepts: names or indices of columns, or names of groups.
Fixed: TypeAlias = str | int | Sequence[str | int] | NDArray[Any] | None


@dataclass(frozen=True)
class Grouping:
    """The units of a table, and which of them are always selected.

    Attributes
    ----------
    n_columns : int
        Number of columns of the table.
    groups : tuple of (name, columns)
        The groups, in the order of their first columns. A column in no group is a unit of its own.
    fixed : tuple of int
        The units that every subset contains.
    called : str
        The word for a unit in messages if units have several columns. For example, a text column
        that was encoded as several columns is still called a "column".
    prices : Prices or None
        The prices of the units, or None if they have none.

    Examples
    --------
    >>> grouping = Grouping(4, (("pair", (1, 3)),), fixed=(0,))
    >>> grouping.n_units, grouping.columns(np.array([1])), grouping.unit_of
    (3, array([1, 3]), array([0, 1, 2, 1]))
    >>> [grouping.label(unit) for unit in range(3)]
    ['column 0', "'pair'", 'column 2']
    """

    n_columns: int
    groups: tuple[tuple[str, tuple[int, ...]], ...] = ()
    fixed: tuple[int, ...] = ()
    called: str = field(default="unit", compare=False, repr=False)
    prices: Prices | None = field(default=None, repr=False)

    @property
    def plain(self) -> bool:
        """Whether every unit is a single column, so that unit j is column j."""
        return all(len(columns) == 1 for _, columns in self.groups)

    @cached_property
    def unit_of(self) -> Subset:
        """The index of the unit to which each column belongs."""
        first = np.arange(self.n_columns)
        for _, columns in self.groups:
            first[list(columns)] = min(columns)
        return np.unique(first, return_inverse=True)[1].astype(np.intp)

    @property
    def n_units(self) -> int:
        """Number of units."""
        return self.n_columns - sum(len(columns) - 1 for _, columns in self.groups)

    @cached_property
    def members(self) -> tuple[Subset, ...] | None:
        """Columns of each unit, or None if every unit is a single column."""
        if self.plain:
            return None
        order = np.argsort(self.unit_of, kind="stable")
        ends = np.cumsum(np.bincount(self.unit_of))[:-1]
        return tuple(np.split(order, ends))

    @cached_property
    def names(self) -> dict[int, str]:
        """Names of the groups, by unit index."""
        return {int(self.unit_of[columns[0]]): name for name, columns in self.groups}

    @property
    def word(self) -> str:
        """The word for a unit in messages, such as "column"."""
        return "column" if self.plain else self.called

    @property
    def fixed_units(self) -> Subset:
        """The units that every subset contains, as an array."""
        return np.array(self.fixed, dtype=np.intp) if self.fixed else EMPTY

    def columns(self, units: Subset) -> Subset:
        """Return the columns of the given units, sorted."""
        if self.plain:
            return units
        wanted = np.zeros(self.n_units, dtype=bool)
        wanted[units] = True
        return np.flatnonzero(wanted[self.unit_of])

    def mask(self, units: Mask) -> Mask:
        """Convert a mask of units to a mask of columns."""
        return units if self.plain else units[self.unit_of]

    def spread(self, values: Array) -> Array:
        """Convert values per unit to values per column. A column gets the value of its unit."""
        return values if self.plain else values[self.unit_of]

    def column_order(self, order: Subset) -> Subset:
        """Convert an order of units to an order of columns.

        The columns of a unit are sorted by index.
        """
        if self.members is None:
            return order
        return np.concatenate([EMPTY, *(self.members[unit] for unit in order)])

    def restricted(self, units: Subset) -> "Grouping":
        """Return the grouping of a table that has only the columns of the given units."""
        columns = self.columns(units)
        position = np.full(self.n_columns, -1, dtype=np.intp)
        position[columns] = np.arange(len(columns))
        wanted = set(units.tolist())
        return replace(
            self,
            n_columns=len(columns),
            groups=tuple(
                (name, tuple(position[list(held)].tolist()))
                for name, held in self.groups
                if int(self.unit_of[held[0]]) in wanted
            ),
            fixed=tuple(np.flatnonzero(np.isin(units, self.fixed_units)).tolist()),
            prices=None if self.prices is None else self.prices.restricted(units),
        )

    def label(self, unit: int, feature_names: Sequence[str] | None = None) -> str:
        """Return a label for a unit: the name of its group or column, or its column index."""
        if unit in self.names:
            return repr(self.names[unit])
        column = unit if self.plain else int(self.columns(np.array([unit]))[0])
        return f"column {column}" if feature_names is None else repr(feature_names[column])

    def unit_names(self, feature_names: Sequence[Any]) -> list[Any]:
        """Return the name of the group or column of each unit."""
        if not self.groups:
            return list(feature_names)
        firsts = np.unique(self.unit_of, return_index=True)[1]
        return [self.names.get(unit, feature_names[c]) for unit, c in enumerate(firsts)]

    def to_dict(self) -> dict[str, Any] | None:
        """Return a dictionary of lists for a record.

        It is None if there are no groups, no fixed units and no prices.
        """
        if not (self.groups or self.fixed or self.prices):
            return None
        groups = [[name, list(columns)] for name, columns in self.groups]
        called = {} if self.called == "unit" else {"called": self.called}
        prices = {} if self.prices is None else {"prices": self.prices.to_dict()}
        return {"groups": groups, "fixed": list(self.fixed), **called, **prices}

    @classmethod
    def from_dict(cls, n_columns: int, plain: Mapping[str, Any] | None) -> Self:
        """Return the grouping from the output of :meth:`to_dict`."""
        if plain is None:
            return cls(n_columns)
        groups = tuple((name, tuple(columns)) for name, columns in plain["groups"])
        called = str(plain.get("called", "unit"))
        prices = Prices.from_dict(plain["prices"]) if "prices" in plain else None
        return cls(n_columns, groups, tuple(plain["fixed"]), called, prices)


def resolve_units(
    name: str,
    groups: Any,
    fixed: Any,
    n_columns: int,
    names: Sequence[str] | None = None,
    costs: Any = None,
) -> Grouping:
    """Return the grouping that ``feature_groups``, ``fixed_features`` and ``feature_costs`` define.

    Parameters
    ----------
    name : str
        Name of the selector, for error messages.
    groups : mapping of name to columns, sequence of one label per column, or None
        The groups. Columns are given by name or by index. A column with the label None (or NaN) is
        in no group.
    fixed : name, index, sequence of them, or None
        Columns or groups that are always selected.
    n_columns : int
        Number of columns of the table.
    names : sequence of str or None
        Names of the columns.
    costs : FeatureCosts or None
        Prices of the columns.

    Examples
    --------
    >>> resolve_units("Forward", {"ab": ["a", "b"]}, "c", 3, ["a", "b", "c"])
    Grouping(n_columns=3, groups=(('ab', (0, 1)),), fixed=(1,))
    >>> resolve_units("Forward", ["x", None, "x"], None, 3).groups
    (('x', (0, 2)),)
    """
    if groups is None and fixed is None and costs is None:
        return Grouping(n_columns)
    reader = _UnitReader(name, n_columns, None if names is None else list(map(str, names)))
    if groups is None:
        found: list[tuple[str, tuple[int, ...]]] = []
    elif isinstance(groups, Mapping):
        found = reader.read_mapping(groups)
    else:
        found = reader.read_labels(groups)
    reader.check_groups(found)
    grouping = Grouping(n_columns, tuple(sorted(found, key=lambda group: group[1][0])))
    return replace(
        grouping,
        fixed=() if fixed is None else reader.read_fixed(fixed, grouping),
        prices=None if costs is None else reader.read_prices(costs, grouping),
    )


class _UnitReader:
    """Reads ``feature_groups`` and ``fixed_features`` for a table with known columns."""

    def __init__(self, name: str, n_columns: int, names: list[str] | None):
        self.name, self.n_columns, self.names = name, n_columns, names
        self.position = {label: j for j, label in reversed(list(enumerate(names or ())))}

    def read_mapping(self, groups: Mapping[Any, Any]) -> list[tuple[str, tuple[int, ...]]]:
        """Return the groups from a mapping of names to columns."""
        found = []
        for label, listed in groups.items():
            where = f"feature_groups[{label!r}]"
            columns = [self.column(where, column) for column in _as_list(listed)]
            if not columns:
                raise InvalidParameter(
                    f"{self.name}: {where} has no columns. Leave that group out."
                )
            if len(set(columns)) < len(columns):
                raise InvalidParameter(
                    f"{self.name}: {where} names a column twice. Write each column once."
                )
            found.append((str(label), tuple(sorted(columns))))
        return found

    def read_labels(self, labels: Any) -> list[tuple[str, tuple[int, ...]]]:
        """Return the groups from a list with one label per column."""
        write = "Write {'name': ['column', 'other column']}, or one label for each column"
        if isinstance(labels, str) or not isinstance(labels, Iterable):
            raise InvalidParameter(
                f"{self.name} needs feature_groups as a mapping of names to columns, or as one "
                f"label per column, not {labels!r}. {write}."
            )
        given = list(labels)
        if len(given) != self.n_columns:
            raise InvalidParameter(
                f"{self.name} needs one label in feature_groups for each of the {self.n_columns} "
                f"columns of X, not {len(given)}. {write} (None for a column in no group)."
            )
        found: dict[str, list[int]] = {}
        for column, label in enumerate(given):
            if isinstance(label, Iterable) and not isinstance(label, str):
                raise InvalidParameter(
                    f"{self.name} needs labels in feature_groups that are text or numbers, not "
                    f"{label!r}. {write}."
                )
            if label is not None and label == label:  # NaN differs from itself
                found.setdefault(str(label), []).append(column)
        return [(label, tuple(columns)) for label, columns in found.items()]

    def check_groups(self, groups: list[tuple[str, tuple[int, ...]]]) -> None:
        """Refuse groups that share a column or have ambiguous names."""
        held: dict[int, str] = {}
        for label, columns in groups:
            for column in columns:
                if column in held:
                    raise InvalidParameter(
                        f"{self.name}: {self.label(column)} is in two of the feature_groups, "
                        f"{held[column]!r} and {label!r}. Keep it in one of them, or join them."
                    )
                held[column] = label
        known = set()
        for label, columns in groups:
            if label in known:
                raise InvalidParameter(
                    f"{self.name}: two of the feature_groups are called {label!r}. Give them "
                    "different names."
                )
            known.add(label)
            if self.position.get(label, columns[0]) not in columns:
                raise InvalidParameter(
                    f"{self.name}: the group {label!r} of feature_groups has the name of a "
                    "column outside it. Choose another name."
                )

    def read_fixed(self, fixed: Any, grouping: Grouping) -> tuple[int, ...]:
        """Return the units that ``fixed_features`` names."""
        units = {label: unit for unit, label in grouping.names.items()}
        found = set()
        for given in _as_list(fixed):
            if isinstance(given, str) and given in units:
                found.add(units[given])
            else:
                column = self.column("fixed_features", given, list(units))
                found.add(int(grouping.unit_of[column]) if grouping.groups else column)
        return tuple(sorted(found))

    def read_prices(self, costs: Any, grouping: Grouping) -> Prices:
        """Return the prices of the units that ``feature_costs`` defines."""
        if not isinstance(costs, FeatureCosts):
            raise InvalidParameter(
                f"{self.name} needs feature_costs as FeatureCosts, not {costs!r}. Write "
                "feature_costs=FeatureCosts({'age': 1, 'chol': 7.27})."
            )
        position = {given: self.column(where, given) for where, given in costs.named()}
        priced = [position[given] for given in costs.prices]
        if len(set(priced)) < len(priced):
            twice = next(column for column in priced if priced.count(column) > 1)
            raise InvalidParameter(
                f"{self.name}: feature_costs has two prices for "
                f"{self.label(twice).removeprefix('column ')}. Give one."
            )
        prices = costs.resolve(position, self.n_columns, self.names)
        return group_prices(prices, grouping.unit_of, grouping.n_units)

    def column(self, where: str, given: Any, groups: Sequence[str] = ()) -> int:
        """Return the index of a column that is given by name or index."""
        if isinstance(given, str):
            if given in self.position:
                return self.position[given]
            known = f"X has {shorten_list(self.names or ['no column names'])}"
            if groups:
                known += f", feature_groups has {shorten_list(groups)}"
            raise InvalidParameter(
                f"{self.name}: {where} names the column {given!r}, which does not exist: {known}."
            )
        if is_int(given) and 0 <= given < self.n_columns:
            return int(given)
        raise InvalidParameter(
            f"{self.name}: {where} needs columns by their names, or by their indices from 0 to "
            f"{self.n_columns - 1}, not {given!r}."
        )

    def label(self, column: int) -> str:
        return f"column {column if self.names is None else repr(self.names[column])}"


def _as_list(given: Any) -> list[Any]:
    """Return a single item or several items as a list."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        return [given]
    return list(given)
