"""Ways to perturb columns, and units: the columns that are perturbed together.

A *replacement* (:class:`Marginal`, :class:`Permutation`, :class:`Zero`) keeps the trained model and
alters the rows it looks at; each alteration is a *draw* that an engine can follow without building
the altered table. :class:`Derivative` and :class:`Removal` look at the model itself.

A draw is made for units of one size, an array (units, size) of columns: the columns of a unit
change together.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from tamis._arrays import Array, Subset
from tamis._checks import (
    NONE,
    Constraints,
    check_parameters,
    check_values,
    instance_of,
    integer,
    one_of,
)
from tamis._namespace import host, namespace, rows_taken, taken
from tamis._seeds import stream


@dataclass
class Points:
    """Every row meets the same values of a unit; units differ in their values."""

    values: Array  # (units, points, size)
    weights: Array  # (units, points), each row of sum 1


class EveryValue(Points):
    """Every row meets every value that a table has.

    Points are made when an engine asks for them, since sorting can take longer than all else;
    engines that can, look at the table itself.
    """

    def __init__(self, table: Array, make: Callable[[], Points]):
        self.table, self.make = table, make

    def __getattr__(self, name: str) -> Any:
        if name not in ("values", "weights"):
            raise AttributeError(name)
        points = self.make()
        self.values, self.weights = points.values, points.weights
        return self.__dict__[name]


@dataclass(frozen=True)
class Shuffle:
    """Each row receives the values that another row of the table has."""

    table: Array
    donors: NDArray[np.intp]


@dataclass(frozen=True)
class Centres:
    """The unit is 0 in the rows and in the centres of the kernel."""


Draw: TypeAlias = Points | Shuffle | Centres


class Replacement(BaseEstimator, ABC):
    """Way to perturb a column by putting other values in its place."""

    @abstractmethod
    def draws(self, X: Array, units: Subset, seed: int) -> Iterator[Draw]:
        """Alterations of units (units, size) of ``X``, one by one; scores are averaged."""

    @property
    def n_draws(self) -> int:
        """How many there are."""
        return 1


class Marginal(Replacement):
    """Every row meets every value of the column: the exact expectation over shuffles.

    Deterministic. With ``n_values`` each column is stood for by that many of its quantiles; a unit
    of several columns, which have no common order, by that many rows, drawn.

    Parameters
    ----------
    n_values : int or None, default=None
        Number of quantiles, at the middles of equal shares; None is every value.
    """

    _constraints: ClassVar[Constraints] = {"n_values": integer(1) | NONE}

    def __init__(self, n_values: int | None = None):
        self.n_values = n_values

    def draws(self, X: Array, units: Subset, seed: int) -> Iterator[Points]:
        def make() -> Points:
            if units.shape[1] == 1:
                return self._of_columns(_sort_columns(X, units[:, 0]))
            return self._joint(host(X), units, seed)

        yield EveryValue(X, make) if self.n_values is None else make()

    def _of_columns(self, rising: Any) -> Points:
        """Values of single columns, or quantiles of columns with more than ``n_values`` of them."""
        n_samples, xp, n_values = rising.shape[0], namespace(rising), self.n_values or 0
        moves = rising[1:, :] != rising[:-1, :]
        n_distinct = 1 + host(xp.sum(xp.astype(moves, xp.int64), axis=0))
        # values that do occur: a column of whole numbers stays one
        ranks = ((np.arange(n_values) + 0.5) / max(1, n_values) * n_samples).astype(int)
        quantiles, shares = host(rows_taken(rising, ranks)), np.full(n_values, 1 / max(1, n_values))
        found = []
        for column, n in enumerate(n_distinct):
            if n_values and n > n_values:
                found.append((quantiles[:, column, None], shares))
            else:
                points, counts = np.unique(host(rising[:, column]), return_counts=True)
                found.append((points[:, None], counts / n_samples))
        return _pad_points(found)

    def _joint(self, X: Array, units: Subset, seed: int) -> Points:
        """Rows of several columns, as they occur together."""
        found = []
        for columns in units:
            points, counts = np.unique(X[:, columns], axis=0, return_counts=True)
            if self.n_values is not None and len(points) > self.n_values:
                # one draw for all units, so that no score depends on where a unit stands
                drawn = stream(seed, "values", X.shape[1]).permutation(len(X))[: self.n_values]
                points, counts = X[drawn][:, columns], np.full(self.n_values, 1.0)
            found.append((points, counts / counts.sum()))
        return _pad_points(found)


def _pad_points(found: list[tuple[Array, Array]]) -> Points:
    """Join points (points, size) and their shares; units with fewer get points of weight 0."""
    n_points = max(len(points) for points, _ in found)
    values = np.repeat([points[-1:] for points, _ in found], n_points, axis=1)
    weights = np.zeros(values.shape[:2])
    for unit, (points, shares) in enumerate(found):
        values[unit, : len(points)] = points
        weights[unit, : len(points)] = shares
    return Points(values, weights)


def _sort_columns(X: Any, columns: Subset) -> Any:
    """Some columns, each sorted, where they are."""
    if isinstance(X, np.ndarray):
        return np.sort(X.T[columns], axis=1).T
    return namespace(X).sort(taken(X, columns), axis=0)


class Permutation(Replacement):
    """The column is shuffled, uniformly over all orders (Fisher-Yates).

    Parameters
    ----------
    n_repeats : int, default=1
        Shuffles over which scores are averaged; with two or more their standard error is known.
    stop_when_sure : bool, default=False
        Whether a column is left alone once its rank is clear: at least three shuffles, and no
        other score within two standard errors of both. ``n_repeats`` is then the most.
    """

    _constraints: ClassVar[Constraints] = {"n_repeats": integer(1)}

    def __init__(self, n_repeats: int = 1, *, stop_when_sure: bool = False):
        self.n_repeats = n_repeats
        self.stop_when_sure = stop_when_sure

    def draws(self, X: Array, units: Subset, seed: int) -> Iterator[Draw]:
        # one shuffle for all units of a repeat, so that no score depends on where a unit stands
        for repeat in range(self.n_repeats):
            yield Shuffle(X, stream(seed, "shuffle", X.shape[1], repeat).permutation(X.shape[0]))

    @property
    def n_draws(self) -> int:
        return self.n_repeats


class Zero(Replacement):
    """The column is set to 0, its mean once columns are standardised.

    Parameters
    ----------
    centres : bool, default=False
        Whether a kernel machine's centres lose the column too (the reading of the appendix of the
        FSPP paper; it ranks worse). By default only the rows do.
    """

    def __init__(self, *, centres: bool = False):
        self.centres = centres

    def draws(self, X: Array, units: Subset, seed: int) -> Iterator[Draw]:
        n_units, size = units.shape
        if self.centres:
            yield Centres()
        else:
            yield Points(np.zeros((n_units, 1, size)), np.ones((n_units, 1)))


class Derivative(BaseEstimator):
    """The column is scaled by a factor v: first order at v = 1 (FSPP4).

    Parameters
    ----------
    follow : bool, default=True
        Whether the machine follows, as printed: rows and centres are scaled, and the multipliers
        go where a training would bring them. A machine that fits well makes up for the scale of a
        relevant column by its multipliers, so that every derivative is small and the order says
        little. With False the machine is kept and the rows alone are scaled, which ranks better.
    calibration : bool, default=False
        Whether the sigmoid follows too, by the implicit derivative of its two parameters.
    """

    def __init__(self, *, follow: bool = True, calibration: bool = False):
        self.follow = follow
        self.calibration = calibration


class Removal(BaseEstimator):
    """The definition: a model trained without the column, one training per column."""


Perturbation: TypeAlias = Replacement | Derivative | Removal


_WAYS: dict[str, Callable[[int, int | None], Perturbation]] = {
    "marginal": lambda n_repeats, n_values: Marginal(n_values),
    "permutation": lambda n_repeats, n_values: Permutation(n_repeats),
    "zero": lambda n_repeats, n_values: Zero(),
    "derivative": lambda n_repeats, n_values: Derivative(),
    "removal": lambda n_repeats, n_values: Removal(),
}
_CONSTRAINTS = {
    "by": one_of(*_WAYS)
    | instance_of((Replacement, Derivative, Removal), "an object such as Zero(centres=True)"),
    "n_repeats": integer(1),
    "n_values": integer(1) | NONE,
}


def resolve(name: str, by: Any, n_repeats: Any = 1, n_values: Any = None) -> Perturbation:
    """Return the way to perturb a column that the parameters of ``name`` ask for, checked."""
    check_values(name, _CONSTRAINTS, by=by, n_repeats=n_repeats, n_values=n_values)
    if isinstance(by, str):
        return _WAYS[by](n_repeats, n_values)
    check_parameters(by)
    found: Perturbation = by
    return found


class Units(NamedTuple):
    """Columns of a table that a model sees, and which of them belong together.

    ``members`` are positions among the columns, unit after unit; ``sizes`` says how many of them
    each unit has.

    >>> units = Units.of(lambda subset: np.array([4, 6, 7]) if len(subset) == 2 else
    ...                  np.array([[4, 7], [6]][subset[0]]), np.array([0, 1]))
    >>> units.without(0)
    array([6])
    >>> [(which.tolist(), columns.tolist()) for which, columns in units.by_size()]
    [([1], [[1]]), ([0], [[0, 2]])]
    """

    columns: Subset
    members: Subset
    sizes: Subset

    @classmethod
    def single(cls, columns: Subset) -> "Units":
        """Every column by itself."""
        return cls(columns, np.arange(len(columns)), np.ones(len(columns), dtype=np.intp))

    @classmethod
    def of(cls, columns_of: Callable[[Subset], Subset], subset: Subset) -> "Units":
        """The units of a subset, whose columns a function tells."""
        columns = columns_of(subset)
        if len(columns) == len(subset):
            return cls.single(columns)
        parts = [columns_of(unit) for unit in subset[:, None]]
        order = np.argsort(columns)
        members = order[np.searchsorted(columns, np.concatenate(parts), sorter=order)]
        return cls(columns, members, np.array([len(part) for part in parts]))

    def with_copies(self, n_columns: int) -> "Units":
        """The units and, behind them, those of a copy of the table, ``n_columns`` further on."""
        return Units(
            np.r_[self.columns, self.columns + n_columns],
            np.r_[self.members, self.members + len(self.columns)],
            np.r_[self.sizes, self.sizes],
        )

    @property
    def are_columns(self) -> bool:
        """Whether every unit is one column."""
        return len(self.sizes) == len(self.columns)

    @property
    def _starts(self) -> Subset:
        return np.cumsum(self.sizes) - self.sizes

    def without(self, index: int) -> Subset:
        """Columns of all units but one."""
        return np.delete(self.columns, self.positions(index))

    def positions(self, index: int) -> Subset:
        """Where the columns of a unit stand among all."""
        start = self._starts[index]
        return self.members[start : start + self.sizes[index]]

    def summed(self, values: Array) -> Array:
        """Values of the columns, along the first axis, added up for each unit."""
        if len(values) == len(self.sizes):
            return values
        return np.asarray(np.add.reduceat(values[self.members], self._starts, axis=0))

    def by_size(self) -> list[tuple[Subset, Subset]]:
        """Units of one size at a time: which they are, and positions of shape (units, size)."""
        starts, found = self._starts, []
        for size in np.unique(self.sizes):
            which = np.flatnonzero(self.sizes == size)
            found.append((which, self.members[starts[which][:, None] + np.arange(size)]))
        return found
