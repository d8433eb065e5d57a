"""Tree ensembles behind the interface of engines: a model on some rows, all columns together."""

from collections.abc import Callable, Iterator
from copy import copy
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.pipeline import Pipeline

from tamis._arrays import Array, Subset
from tamis.exceptions import InvalidTable
from tamis.folds.rows import Rows
from tamis.response.distances import Statistic, TotalVariation
from tamis.response.engine import Batch, Engine, Model
from tamis.response.perturbations import Draw, EveryValue, Points, Shuffle
from tamis.response.scaled import scaling_of
from tamis.response.trees.forest import Integers
from tamis.response.trees.links import Answer
from tamis.response.trees.opening import (
    METHODS,
    columns_with_nan,
    is_tree_model,
    open_trees,
)

if TYPE_CHECKING:  # both load numba
    from tamis.response.trees.ensemble import Segments, TreeEnsemble
    from tamis.response.trees.grid import Grid

#: Numbers of altered outputs that are held at a time (256 MB).
AT_ONCE = 32_000_000

#: What a statistic makes of rows, units and outputs, of shape (rows, sums), to be added up.
Terms: TypeAlias = Callable[[Integers, Integers, Array], Array]


class TreeEngine(Engine):
    """An ensemble on the rows of a table, answering as one method of its model does.

    Beside the batches of every engine it adds up what a statistic makes of all rows and all points
    without holding them (:meth:`excess`, :meth:`absolute`, :meth:`excess_of_shuffle`). Units are
    lists of columns that are altered together, by default each column by itself.

    Parameters
    ----------
    ensemble : TreeEnsemble
    method : {"predict", "predict_proba", "decision_function", "codes"}
    raw : callable
        That method of the model: where a class hangs on rounding, it is asked itself.
    X : array of shape (rows, columns)
    prepare : callable or None, default=None
        What a pipeline makes of each column before the trees see a table.
    n_jobs : int or None, default=None
        Threads; the answer does not depend on their number.
    """

    def __init__(
        self, ensemble: "TreeEnsemble", method: str, raw: Callable[[Array], Array], X: Array, *,
        prepare: Callable[[Array], Array] | None = None, n_jobs: int | None = None,
    ):  # fmt: skip
        self.ensemble, self.raw, self.X, self.n_jobs = ensemble, raw, X, n_jobs
        self.prepare = prepare
        self.answer = Answer(ensemble.trees, method)
        self._table: tuple[Array, Integers] | None = None
        self.codes = self._encode(X)
        self.sums = ensemble.sums(self.codes, n_jobs)
        self.n_bytes = X.nbytes + self.codes.nbytes + self.sums.nbytes
        self._outputs: Array | None = None

    @classmethod
    def knows(cls, model: Model) -> bool:
        # classes are read off probabilities and predictions, not off decision values
        return model.method in METHODS[:3] and is_tree_model(scaling_of(model.fitted)[1])

    @classmethod
    def opened(cls, model: Model, X: Array, low: Array, high: Array) -> "TreeEngine | None":
        may_miss = np.asarray(np.isnan(low) | np.isnan(high))
        prepare = preparation(model.fitted)
        last = scaling_of(model.fitted)[1]
        ensemble = open_trees(last, model.method, model.raw, X, may_miss=may_miss, prepare=prepare)
        return cls(ensemble, model.method, model.raw, X, prepare=prepare) if ensemble else None

    def _encode(self, values: Array) -> Integers:
        """Codes of a table; those of the last one are kept, since shuffles come one by one."""
        if self._table is None or self._table[0] is not values:
            self._table = values, self._encoded(values)
        return self._table[1]

    def _encoded(self, values: Array) -> Integers:
        """Codes of a table; a missing value where none was announced has none."""
        gone = columns_with_nan(values) & ~self.ensemble.may_miss
        if gone.any():
            raise InvalidTable(
                f"The trees were opened for a table without missing values in column "
                f"{int(gone.argmax())}, and one came. Open them with the whole table."
            )
        return self.ensemble.encode(values if self.prepare is None else self.prepare(values))

    def outputs(self) -> Array:
        """Outputs of the rows as they are."""
        if self._outputs is None:
            self._outputs = self._answers(self.sums, lambda some: self.X[some])
        return self._outputs

    def _answers(self, sums: Array, altered: Callable[[Any], Array]) -> Array:
        """Answers for sums of shape (..., outputs); ``altered`` builds rows that are in doubt."""
        found = self.answer(sums)
        if self.answer.rounds:
            doubtful = self.answer.doubtful(sums)
            if doubtful.any():
                found[doubtful] = self.raw(altered(np.nonzero(doubtful)))
        return found

    def batches(self, units: Subset) -> "Iterator[TreeBatch]":
        """As few batches as memory allows: each is a pass over all trees."""
        step = max(1, AT_ONCE // max(1, self.sums.size))
        for first in range(0, len(units), step):
            some = np.arange(first, min(first + step, len(units)))
            yield TreeBatch(self, some, units[some])

    def excess_of(
        self, units: Subset, draw: Draw, rows: Rows, statistic: Statistic, scales: Array | None
    ) -> Array | None:
        def terms(own: Integers, whose: Integers, outputs: Array) -> Array:
            return statistic.terms(rows[own], outputs, None if scales is None else scales[whose])

        whole, half = isinstance(statistic, TotalVariation), 2 - (self.sums.shape[1] == 1)
        if isinstance(draw, Shuffle):
            donors = draw.donors[rows]
            if whole:
                return self.absolute_of_shuffle(draw.table, donors, list(units))[:, None] / half
            return self.excess_of_shuffle(terms, draw.table, donors, list(units))
        if isinstance(draw, EveryValue):
            values, weights = draw.table, None
        elif isinstance(draw, Points):
            values, weights = self.whole(units, draw.values.swapaxes(0, 1)), draw.weights.T
        else:
            return None
        if whole:
            return self.absolute(values, weights, list(units))[:, None] / half
        return self.excess(terms, values, weights, list(units))

    # ------------------------------------------------------------------ rows with another value

    def shuffled(
        self, table: Array, donors: Integers, units: list[Subset] | None = None
    ) -> tuple[Subset, Array]:
        """Outputs of rows whose columns of a unit are those of other rows.

        Row r takes them from row donors[r] of the table. Answers the units that have a used
        column, and outputs of shape (those units, rows, outputs); all others change nothing.
        """
        units, others = self._units(units), self._encode(table)[donors]
        known, sums = self.ensemble.changes(self.codes, others, units, self.n_jobs)
        sums += self.sums

        def altered(some: Any) -> Array:
            at = [units[known[u]] for u in some[0]]
            return _replaced(self.X, some[1], table, donors[some[1]], at)

        return known, self._answers(sums, altered)

    def excess_of_shuffle(
        self, terms: Terms, table: Array, donors: Integers, units: list[Subset] | None = None
    ) -> Array:
        """The excess of sums of terms over rows that have met another row, see :meth:`excess`."""
        units, before = self._units(units), self.outputs()
        found = np.zeros((len(units), _n_sums(terms, before)))
        for start, known, after in self._shuffled_blocks(table, donors, units):
            shape = after.shape[:2]
            rows = np.broadcast_to(np.arange(start, start + shape[1]), shape).ravel()
            whose = np.repeat(known, shape[1])
            moved = terms(rows, whose, after.reshape(len(rows), -1))
            moved = moved - terms(rows, whose, before[rows])
            found[known] += moved.reshape(*shape, -1).sum(axis=1)
        return found

    def absolute_of_shuffle(
        self, table: Array, donors: Integers, units: list[Subset] | None = None
    ) -> Array:
        """Sums over rows and outputs of |output after - output before|, of shape (units,)."""
        units, before = self._units(units), self.outputs()
        found = np.zeros(len(units))
        for start, known, after in self._shuffled_blocks(table, donors, units):
            after -= before[start : start + after.shape[1]]
            found[known] += np.abs(after, out=after).sum(axis=(1, 2))
        return found

    def _shuffled_blocks(
        self, table: Array, donors: Integers, units: list[Subset]
    ) -> Iterator[tuple[int, Subset, Array]]:
        """The first row of a block, and what :meth:`shuffled` answers for its rows."""
        size = max(1, AT_ONCE // max(1, len(self.ensemble.used) * self.sums.shape[1]))
        for start in range(0, len(self.X), size):
            part = self.some(slice(start, start + size))
            yield start, *part.shuffled(table, donors[start : start + size], units)

    # -------------------------------------------------------------------- rows with every value

    def grid(
        self, values: Array, weights: Array | None = None, units: list[Subset] | None = None
    ) -> "Grid":
        """Rows of values as points of the units, by default of each column."""
        return self.ensemble.grid(self._encode(values), weights, units)

    def over_points(
        self, values: Array, grid: "Grid", units: list[Subset],
        function: "Callable[[Segments], Any]",
    ) -> Iterator[Any]:  # fmt: skip
        """``function`` of segments whose sums have become outputs."""

        def answered(found: "Segments") -> Any:
            def altered(some: Any) -> Array:
                (which,) = some
                source = grid.rows if found.by_slot else grid.alternatives.rows
                at = [units[u] for u in found.units[which]]
                return _replaced(self.X, found.rows[which], values, source[found.where[which]], at)

            return function(found._replace(sums=self._answers(found.sums, altered)))

        yield from self.ensemble.over_segments(self.codes, self.sums, grid, answered, self.n_jobs)

    def excess(
        self, terms: Terms, values: Array, weights: Array | None = None,
        units: list[Subset] | None = None,
    ) -> Array:  # fmt: skip
        """How far sums of terms over the rows and the points of a unit exceed those as they are.

        sum over rows i and points q of w_q (terms_i(outputs of i at q) - terms_i(outputs of i)),
        of shape (units, sums). Units without a used column have exactly 0.

        Parameters
        ----------
        terms : callable
            Of indices of rows, indices of units, and outputs: what is added up, of shape
            (indices, sums).
        values : array of shape (points, columns)
            Each row is a point of every unit.
        weights : array of shape (points, units) or None
            By default one share for each point.
        """
        units, before = self._units(units), self.outputs()

        def summed(found: "Segments") -> Array:
            moved = terms(found.rows, found.units, found.sums)
            moved = moved - terms(found.rows, found.units, before[found.rows])
            return np.stack(
                [
                    np.bincount(found.units, column * found.weights, minlength=len(units))
                    for column in moved.T
                ],
                axis=1,
            )

        return self._added(summed, values, weights, units, _n_sums(terms, before))

    def absolute(
        self, values: Array, weights: Array | None = None, units: list[Subset] | None = None
    ) -> Array:
        """Sums over rows, points and outputs of w_q |output of i at q - output of i|.

        The most common of all excesses, by a compiled loop; of shape (units,).
        """
        from tamis.compiled import tree_points

        units, before = self._units(units), self.outputs()

        def summed(found: "Segments") -> Array:
            total = np.zeros((len(units), 1))
            tree_points.add_absolute(
                found.rows, found.units, found.weights, found.sums, before, total[:, 0]
            )
            return total

        return self._added(summed, values, weights, units, 1)[:, 0]

    def _added(
        self, function: "Callable[[Segments], Array]", values: Array, weights: Array | None,
        units: list[Subset], n_sums: int,
    ) -> Array:  # fmt: skip
        grid = self.grid(values, weights, units)
        total = np.zeros((len(units), n_sums))
        for part in self.over_points(values, grid, units, function):
            total += part
        return total

    # -------------------------------------------------------------------------- point by point

    def at(self, points: Array, units: list[Subset] | None = None) -> Array:
        """Outputs of rows at each point of each unit, of shape (units, rows, points, outputs)."""
        from tamis.compiled import tree_points

        units = self._units(units)
        found = np.repeat(self.outputs()[None], len(units), axis=0)
        found = np.repeat(found[:, :, None], len(points), axis=2)

        def fill(segments: "Segments", first: Integers, count: Integers) -> None:
            tree_points.fill_runs(found, segments.units, segments.rows, first, count, segments.sums)

        order = self._over_numbered(points, units, fill)
        for unit, point in enumerate(order):
            found[unit][:, point] = found[unit].copy()
        return found

    def effects(self, points: Array, units: list[Subset] | None = None) -> Array:
        """Mean outputs over the rows at each point of each unit, (units, points, outputs)."""
        units, before = self._units(units), self.outputs()
        n_points = len(points) + 1
        found = np.zeros((len(units) * n_points, before.shape[1]))

        def add(segments: "Segments", first: Integers, count: Integers) -> Array:
            moved, at = segments.sums - before[segments.rows], segments.units * n_points + first
            return np.stack(
                [
                    np.bincount(at, column, minlength=len(found))
                    - np.bincount(at + count, column, minlength=len(found))
                    for column in moved.T
                ],
                axis=1,
            )

        order = self._over_numbered(points, units, add, found)
        steps = found.reshape(len(units), n_points, -1)
        means = np.cumsum(steps, axis=1)[:, :-1] / len(before) + before.mean(axis=0)
        for unit, point in enumerate(order):
            means[unit][point] = means[unit].copy()
        return means

    def _over_numbered(
        self, points: Array, units: list[Subset],
        function: "Callable[[Segments, Integers, Integers], Any]", total: Array | None = None,
    ) -> Integers:  # fmt: skip
        """``function`` of segments with their first point and the number of their points.

        Points of a unit are numbered so that those of a segment are neighbours; answers which point
        has each number, and adds up what the function answers.
        """
        from tamis.response.trees.grid import numbered

        grid = self.grid(points, np.ones((len(points), len(units))), units)
        order, starts = numbered(grid, len(units))

        def counted(segments: "Segments") -> Any:
            first = (grid.before if segments.by_slot else starts)[segments.where]
            count = segments.weights
            return function(segments, first.astype(np.int64), count.astype(np.int64))

        for part in self.over_points(points, grid, units, counted):
            if total is not None:
                total += part
        return order

    def _units(self, units: list[Subset] | None) -> list[Subset]:
        if units is not None:
            return units
        return list(np.arange(self.ensemble.trees.n_columns)[:, None])

    def whole(self, columns: Subset, values: Array) -> Array:
        """Values (rows, units, size) in a table of all columns; nobody looks at the others."""
        found = np.zeros((len(values), self.X.shape[1]), order="F")
        found[:, columns] = values
        return found

    def some(self, rows: slice) -> "TreeEngine":
        """The engine of some of the rows."""
        found = copy(self)
        found.X, found.codes, found.sums = self.X[rows], self.codes[rows], self.sums[rows]
        found._outputs = self.outputs()[rows]
        return found


def preparation(fitted: Any) -> Callable[[Array], Array] | None:
    """What the scalers of a pipeline make of a table, by themselves: trees tell the last digit."""
    steps = []
    while isinstance(fitted, Pipeline):
        steps += [step for _, step in fitted.steps[:-1] if step not in (None, "passthrough")]
        fitted = fitted.steps[-1][1]

    def prepare(table: Array) -> Array:
        for step in steps:
            table = step.transform(table)
        return table

    return prepare if steps else None


def _n_sums(terms: Terms, outputs: Array) -> int:
    """How many sums there are, from nothing."""
    nobody = np.empty(0, dtype=np.int64)
    return int(terms(nobody, nobody, outputs[:0]).shape[1])


def _replaced(
    X: Array, rows: Integers, values: Array, sources: Integers, units: list[Subset]
) -> Array:
    """Copies of some rows, each with the values of one unit from a row of another table."""
    found = X[rows]
    for row, (source, columns) in enumerate(zip(sources, units, strict=True)):
        found[row, columns] = values[source, columns]
    return found


class TreeBatch(Batch):
    """Some units of an engine."""

    def __init__(self, engine: TreeEngine, units: Subset, columns: Subset):
        self.engine, self.units, self.columns = engine, units, columns

    def at(self, some: slice, rows: slice, points: Array) -> Array:
        columns = self.columns[some]
        table = self.engine.whole(columns, points.swapaxes(0, 1))
        return self.engine.some(rows).at(table, list(columns))

    def paired(self, values: Array) -> Array:
        table, everyone = self.engine.whole(self.columns, values), np.arange(len(values))
        known, moved = self.engine.shuffled(table, everyone, list(self.columns))
        found = np.repeat(self.engine.outputs()[None], len(self.columns), axis=0)
        found[known] = moved
        return found[:, :, None, :]
