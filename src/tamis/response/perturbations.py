"""Perturbations of units.

A unit is a column, or a group of columns that is selected as one and perturbed together. A
*replacement* (:class:`Marginal`, :class:`Permutation`, :class:`Zero`) keeps the trained model and
replaces values in the rows. It yields *draws*, descriptions of the new values, which an engine
evaluates without building the altered table. :class:`Derivative` and :class:`Removal` change the
model itself.

All units of a draw have the same size. They are given as an array of columns, of shape (units,
size).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
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
    """Draw that sets a unit to each of its points, in all rows."""

    values: Array  # (units, points, size)
    weights: Array  # (units, points); each row sums to 1


class EveryValue(Points):
    """Draw that sets a unit to each of its values in a table, in all rows.

    The points are computed on first use, because sorting them can dominate the run time. Some
    engines use ``table`` instead and do not need the points.
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
    """Draw that gives each row the values of another row of the table."""

    table: Array
    donors: NDArray[np.intp]


@dataclass(frozen=True)
class Centres:
    """Draw that sets a unit to 0 in the rows and in the centres of the kernel."""


Draw: TypeAlias = Points | Shuffle | Centres


class Replacement(BaseEstimator, ABC):
    """Perturbation that replaces a column by other values."""

    @abstractmethod
    def draws(self, X: Array, units: Subset, seed: int) -> Iterator[Draw]:
        """Yield draws for units of ``X``, an array of columns of shape (units, size).

        The scores of all draws are averaged.
        """

    @property
    def n_draws(self) -> int:
        """Number of draws that :meth:`draws` yields."""
        return 1


@dataclass(eq=False, repr=False)
class Marginal(Replacement):
    """Replacement of a column by all of its values in turn: the exact expectation over shuffles.

    The result is deterministic. With ``n_values``, only quantiles of a column are used. The values
    of a group of columns cannot be sorted, so randomly drawn rows are used instead.

    Parameters
    ----------
    n_values : int or None, default=None
        Number of quantiles, each at the middle of an equal share of the rows. None uses all values.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from tamis.response import Marginal, importance
    >>> X, y = load_iris(return_X_y=True)
    >>> importance(SVC().fit(X, y), X, y, by=Marginal(16)).importances_mean.round(1)
    array([0. , 0. , 0.6, 0.1])
    """

    _constraints: ClassVar[Constraints] = {"n_values": integer(1) | NONE}

    n_values: int | None = None

    def draws(self, X: Array, units: Subset, seed: int) -> Iterator[Points]:
        def make() -> Points:
            if units.shape[1] == 1:
                return self._of_columns(_sort_columns(X, units[:, 0]))
            return self._joint(host(X), units, seed)

        yield EveryValue(X, make) if self.n_values is None else make()

    def _of_columns(self, rising: Any) -> Points:
        """Return the points of single columns: all values, or quantiles if there are too many."""
        n_samples, xp, n_values = rising.shape[0], namespace(rising), self.n_values or 0
        moves = rising[1:, :] != rising[:-1, :]
        n_distinct = 1 + host(xp.sum(xp.astype(moves, xp.int64), axis=0))
        # quantiles are values that occur, so that integer columns stay integer
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
        """Return the points of groups of columns: all distinct rows, or a random sample."""
        found = []
        for columns in units:
            points, counts = np.unique(X[:, columns], axis=0, return_counts=True)
            if self.n_values is not None and len(points) > self.n_values:
                # the same rows for all units, so that scores do not depend on the order of units
                drawn = stream(seed, "values", X.shape[1]).permutation(len(X))[: self.n_values]
                points, counts = X[drawn][:, columns], np.full(self.n_values, 1.0)
            found.append((points, counts / counts.sum()))
        return _pad_points(found)


def _pad_points(found: list[tuple[Array, Array]]) -> Points:
    """Join the points of several units, padded with points of weight 0 to the same number.

    Each item contains the points of a unit, of shape (points, size), and the weights of the points.
    """
    n_points = max(len(points) for points, _ in found)
    values = np.repeat([points[-1:] for points, _ in found], n_points, axis=1)
    weights = np.zeros(values.shape[:2])
    for unit, (points, shares) in enumerate(found):
        values[unit, : len(points)] = points
        weights[unit, : len(points)] = shares
    return Points(values, weights)


def _sort_columns(X: Any, columns: Subset) -> Any:
    """Return the given columns, each sorted, on the device of the table."""
    if isinstance(X, np.ndarray):
        return np.sort(X.T[columns], axis=1).T
    return namespace(X).sort(taken(X, columns), axis=0)


@dataclass(eq=False, repr=False)
class Permutation(Replacement):
    """Replacement of a column by a random shuffle of it.

    Parameters
    ----------
    n_repeats : int, default=1
        Number of shuffles. Scores are averaged over them.
    stop_when_sure : bool, default=False
        Whether to stop shuffling a column once its rank is clear. After at least three shuffles, a
        rank is clear if the score differs from the next higher and lower scores by more than two
        standard errors of the difference. ``n_repeats`` is then the maximum.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from tamis.response import Permutation, importance
    >>> X, y = load_iris(return_X_y=True)
    >>> found = importance(SVC().fit(X, y), X, y, by=Permutation(3), random_state=0)
    >>> found.importances.shape
    (4, 3)
    """

    _constraints: ClassVar[Constraints] = {"n_repeats": integer(1)}

    n_repeats: int = 1
    _: KW_ONLY
    stop_when_sure: bool = False

    def draws(self, X: Array, units: Subset, seed: int) -> Iterator[Draw]:
        # the same shuffle for all units, so that scores do not depend on the order of units
        for repeat in range(self.n_repeats):
            yield Shuffle(X, stream(seed, "shuffle", X.shape[1], repeat).permutation(X.shape[0]))

    @property
    def n_draws(self) -> int:
        return self.n_repeats


@dataclass(eq=False, repr=False, kw_only=True)
class Zero(Replacement):
    """Replacement of a column by 0, which is its mean if columns are standardised.

    Parameters
    ----------
    centres : bool, default=False
        Set the column to 0 in the centres of an SVM as well, as in the appendix of the FSPP paper.
        The resulting ranking of the columns is worse than with False.

    Examples
    --------
    >>> from tamis.response import Zero
    >>> Zero(centres=True)
    Zero(centres=True)
    """

    centres: bool = False

    def draws(self, X: Array, units: Subset, seed: int) -> Iterator[Draw]:
        n_units, size = units.shape
        if self.centres:
            yield Centres()
        else:
            yield Points(np.zeros((n_units, 1, size)), np.ones((n_units, 1)))


@dataclass(eq=False, repr=False, kw_only=True)
class Derivative(BaseEstimator):
    """Derivative of an SVM's outputs with respect to a scale factor of the column (FSPP4).

    Parameters
    ----------
    follow : bool, default=True
        Include the change of the SVM that retraining would cause, as published. Retraining
        compensates for the scale of a relevant column, so all derivatives are small and rank
        columns poorly. With False, the SVM is fixed and only the rows are scaled. This ranks
        columns better than with True.
    calibration : bool, default=False
        Include the change of the sigmoid that calibrates probabilities.

    Examples
    --------
    >>> from tamis.response import Derivative
    >>> Derivative(follow=False)
    Derivative(follow=False)
    """

    follow: bool = True
    calibration: bool = False


class Removal(BaseEstimator):
    """Removal of a column: for each column, a new model is trained without it.

    Examples
    --------
    >>> from tamis.response import Removal
    >>> Removal()
    Removal()
    """


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
    """Check the parameters of the class or function ``name``, and return the perturbation."""
    check_values(name, _CONSTRAINTS, by=by, n_repeats=n_repeats, n_values=n_values)
    if isinstance(by, str):
        return _WAYS[by](n_repeats, n_values)
    check_parameters(by)
    found: Perturbation = by
    return found


class Units(NamedTuple):
    """Columns of a model, grouped into units.

    ``members`` contains the positions of the units' columns among ``columns``, one unit after the
    other. ``sizes`` contains the number of columns of each unit.

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
        """Return one unit for each column."""
        return cls(columns, np.arange(len(columns)), np.ones(len(columns), dtype=np.intp))

    @classmethod
    def of(cls, columns_of: Callable[[Subset], Subset], subset: Subset) -> "Units":
        """Return the units of a subset. ``columns_of`` returns the columns of given units."""
        columns = columns_of(subset)
        if len(columns) == len(subset):
            return cls.single(columns)
        parts = [columns_of(unit) for unit in subset[:, None]]
        order = np.argsort(columns)
        members = order[np.searchsorted(columns, np.concatenate(parts), sorter=order)]
        return cls(columns, members, np.array([len(part) for part in parts]))

    def with_copies(self, n_columns: int) -> "Units":
        """Return the units, followed by the same units of a copy of the table.

        The copy follows the ``n_columns`` columns of the table.
        """
        return Units(
            np.r_[self.columns, self.columns + n_columns],
            np.r_[self.members, self.members + len(self.columns)],
            np.r_[self.sizes, self.sizes],
        )

    @property
    def are_columns(self) -> bool:
        """Whether every unit is a single column."""
        return len(self.sizes) == len(self.columns)

    @property
    def _starts(self) -> Subset:
        return np.cumsum(self.sizes) - self.sizes

    def without(self, index: int) -> Subset:
        """Return the columns of all units except the given one."""
        return np.delete(self.columns, self.positions(index))

    def positions(self, index: int) -> Subset:
        """Return the positions of a unit's columns among ``columns``."""
        start = self._starts[index]
        return self.members[start : start + self.sizes[index]]

    def summed(self, values: Array) -> Array:
        """Sum the values of the columns of each unit. Columns are the first axis of ``values``."""
        if len(values) == len(self.sizes):
            return values
        return np.asarray(np.add.reduceat(values[self.members], self._starts, axis=0))

    def by_size(self) -> list[tuple[Subset, Subset]]:
        """Group the units by size.

        Returns, for each size, the indices of the units and the positions of their columns, of
        shape (units, size).
        """
        starts, found = self._starts, []
        for size in np.unique(self.sizes):
            which = np.flatnonzero(self.sizes == size)
            found.append((which, self.members[starts[which][:, None] + np.arange(size)]))
        return found
