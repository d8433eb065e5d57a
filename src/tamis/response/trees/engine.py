"""Tree ensembles behind the interface of engines: a model on some rows, all columns together."""

from collections.abc import Callable, Iterator
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.pipeline import Pipeline

from tamis._arrays import Array, Subset
from tamis.exceptions import InvalidTable
from tamis.response.distances import Statistic
from tamis.response.engines.base import Batch, Engine, FoldModel, Model, scaling_of
from tamis.response.perturbations import Centres, Draw, EveryValue, Points, Shuffle
from tamis.response.trees.forest import Answer, Integers
from tamis.response.trees.models import METHODS, columns_with_nan, is_tree_model, open_trees

if TYPE_CHECKING:  # both load numba
    from tamis.response.trees.ensemble import Segments, TreeEnsemble
    from tamis.response.trees.grid import Grid

T = TypeVar("T")
#: Numbers of altered outputs that are held at a time (256 MB).
AT_ONCE = 32_000_000


class TreeEngine(Engine):
    """An ensemble on the rows of a table, with the outputs of one method of its model.

    Next to the batches of every engine it adds up a statistic over all rows and all points without
    holding them (:meth:`sums`). Units are lists of columns that are altered together.

    Parameters
    ----------
    ensemble : TreeEnsemble
    method : {"predict", "predict_proba", "decision_function", "codes"}
    raw : callable
        That method of the model: it is called itself if a class depends on rounding.
    X : array of shape (rows, columns)
    prepare : callable or None, default=None
        What a pipeline makes of each column before the trees see a table.
    n_jobs : int or None, default=None
        Threads; no output depends on their number.
    """

    def __init__(
        self, ensemble: "TreeEnsemble", method: str, raw: Callable[[Array], Array], X: Array, *,
        prepare: Callable[[Array], Array] | None = None, n_jobs: int | None = None,
    ):  # fmt: skip
        self.ensemble, self.raw, self.X, self.prepare = ensemble, raw, X, prepare
        self.n_jobs = n_jobs
        self.answer = Answer(ensemble.trees, method)
        self._table: tuple[Array, Integers] | None = None
        self.n_bytes = X.nbytes + len(X) * (4 * len(ensemble.used) + 8 * ensemble.trees.n_outputs)

    @property
    def n_jobs(self) -> int | None:
        """Threads that share the rows."""
        return self.ensemble.n_jobs

    @n_jobs.setter
    def n_jobs(self, n_jobs: int | None) -> None:
        self.ensemble.n_jobs = n_jobs

    @classmethod
    def knows(cls, model: Model) -> bool:
        # classes are read off probabilities and predictions, not off decision values
        return model.method in METHODS[:3] and is_tree_model(scaling_of(model.fitted)[1])

    @classmethod
    def opened(cls, model: Model, X: Array, low: Array, high: Array) -> "TreeEngine | None":
        may_miss = np.asarray(np.isnan(low) | np.isnan(high))
        prepare, last = preparation(model.fitted), scaling_of(model.fitted)[1]
        ensemble = open_trees(last, model.method, model.raw, X, may_miss=may_miss, prepare=prepare)
        return cls(ensemble, model.method, model.raw, X, prepare=prepare) if ensemble else None

    @cached_property
    def codes(self) -> Integers:
        """Codes of the rows as they are."""
        return self._encode(self.X)

    @cached_property
    def before(self) -> tuple[Array, Array]:
        """Sums of leaves of the rows as they are, and their outputs."""
        sums = self.ensemble.sums(self.codes)
        return sums, self._answers(sums, lambda some: self.X[some])

    def outputs(self) -> Array:
        return self.before[1]

    def _encode(self, values: Array) -> Integers:
        """Codes of a table; those of the last one are kept, since shuffles come one by one."""
        if self._table is None or self._table[0] is not values:
            gone = columns_with_nan(values) & ~self.ensemble.may_miss
            if gone.any():
                raise InvalidTable(
                    f"The trees were opened for a table without missing values in column "
                    f"{int(gone.argmax())}, and one came. Open them with the whole table."
                )
            prepared = values if self.prepare is None else self.prepare(values)
            self._table = values, self.ensemble.encode(prepared)
        return self._table[1]

    def _answers(self, sums: Array, altered: Callable[[Any], Array]) -> Array:
        """Outputs for sums of shape (..., outputs); ``altered`` builds rows that are in doubt."""
        found = self.answer(sums)
        if self.answer.rounds:
            doubtful = self.answer.doubtful(sums)
            if doubtful.any():
                found[doubtful] = self.raw(altered(np.nonzero(doubtful)))
        return found

    def batches(self, units: Subset) -> "Iterator[TreeBatch]":
        """As few batches as memory allows: each is a pass over all trees."""
        step = max(1, AT_ONCE // max(1, self.outputs().size))
        for first in range(0, len(units), step):
            some = np.arange(first, min(first + step, len(units)))
            yield TreeBatch(self, some, units[some])

    def sums(self, units: Subset, draw: Draw, part: FoldModel, statistic: Statistic) -> Array:
        if isinstance(draw, Centres):  # refused
            return super().sums(units, draw, part, statistic)
        total, outputs = np.zeros((statistic.n_sums, len(units))), self.outputs()
        if isinstance(draw, Shuffle):
            size = max(1, AT_ONCE // max(1, len(self.ensemble.used) * outputs.shape[1]))
            for start in range(0, len(self.X), size):
                block = slice(start, start + size)
                rows, engine = part.rows[block], self.some(block)
                known, after = engine.shuffled(draw.table, draw.donors[rows], list(units))
                terms = statistic.terms(rows, after - outputs[block], known[:, None])
                total[:, known] += np.stack([term.sum(axis=1) for term in terms])
            return total

        def add_up(found: "Segments") -> Array:
            change = found.sums - outputs[found.rows]
            terms = statistic.terms(part.rows[found.rows], change, found.units)
            weighted = [term * found.weights for term in terms]
            return np.stack([np.bincount(found.units, x, minlength=len(units)) for x in weighted])

        if isinstance(draw, EveryValue):
            values, weights = draw.table, None
        else:
            values, weights = self.whole(units, draw.values.swapaxes(0, 1)), draw.weights.T
        grid = self.ensemble.grid(self._encode(values), list(units), weights)
        return sum(self._over_points(values, grid, list(units), add_up), total)

    def mean_outputs(self, units: Subset, points: Points, part: FoldModel) -> Array:
        values, outputs = self.whole(units, points.values.swapaxes(0, 1)), self.outputs()
        grid = self.ensemble.grid(self._encode(values), list(units))

        def add_up(found: "Segments") -> Array:
            """Sum changes over rows: plus where a run of slots begins, minus where it ends."""
            changes, n = (found.sums - outputs[found.rows]).T, grid.n_slots + 1
            return np.stack(
                [
                    np.bincount(found.slots, change, n) - np.bincount(found.behind, change, n)
                    for change in changes
                ],
                axis=1,
            )

        steps = np.zeros((grid.n_slots + 1, outputs.shape[1]))
        steps = sum(self._over_points(values, grid, list(units), add_up), steps)
        return outputs.mean(axis=0) + grid.at_points(steps, len(units)) / len(outputs)

    def shuffled(self, table: Array, donors: Integers, units: list[Subset]) -> tuple[Subset, Array]:
        """Outputs of rows whose columns of a unit are those of other rows.

        Row r takes them from row donors[r] of the table. Returns the units that have a used
        column, and outputs of shape (those units, rows, outputs); all others change nothing.
        """
        others = self._encode(table)[donors]
        known, sums = self.ensemble.changes(self.codes, others, units)
        sums += self.before[0]

        def altered(some: Any) -> Array:
            at = [units[known[u]] for u in some[0]]
            return _replace_values(self.X, some[1], table, donors[some[1]], at)

        return known, self._answers(sums, altered)

    def _over_points(
        self, values: Array, grid: "Grid", units: list[Subset], function: "Callable[[Segments], T]"
    ) -> "Iterator[T]":
        """Apply a function to segments whose sums have become outputs, in the order of rows."""

        def with_outputs(found: "Segments") -> T:
            def altered(some: Any) -> Array:
                (which,) = some
                at = [units[u] for u in found.units[which]]
                sources = grid.rows[found.slots[which]]
                return _replace_values(self.X, found.rows[which], values, sources, at)

            return function(found._replace(sums=self._answers(found.sums, altered)))

        return self.ensemble.over_segments(self.codes, self.before[0], grid, with_outputs)

    def whole(self, columns: Subset, values: Array) -> Array:
        """Put values (rows, units, size) into a table of all columns; the others are not read."""
        found = np.zeros((len(values), self.X.shape[1]), order="F")
        found[:, columns] = values
        return found

    def some(self, rows: slice) -> "TreeEngine":
        """The engine of some of the rows."""
        found = copy(self)
        found.X, found.codes = self.X[rows], self.codes[rows]
        found.before = self.before[0][rows], self.before[1][rows]
        return found


def preparation(fitted: Any) -> Callable[[Array], Array] | None:
    """Scalers of a pipeline as one function: they themselves, since trees see the last digit."""
    steps = []
    while isinstance(fitted, Pipeline):
        steps += [step for _, step in fitted.steps[:-1] if step not in (None, "passthrough")]
        fitted = fitted.steps[-1][1]

    def prepare(table: Array) -> Array:
        for step in steps:
            table = step.transform(table)
        return table

    return prepare if steps else None


def _replace_values(
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
        engine, columns = self.engine.some(rows), self.columns[some]
        table, n_rows = engine.whole(columns, points.swapaxes(0, 1)), len(engine.X)
        each = (np.full(n_rows, point) for point in range(points.shape[1]))
        return np.stack([_alter(engine, table, donors, columns) for donors in each], axis=2)

    def paired(self, values: Array) -> Array:
        table, everyone = self.engine.whole(self.columns, values), np.arange(len(values))
        return _alter(self.engine, table, everyone, self.columns)[:, :, None, :]


def _alter(engine: TreeEngine, table: Array, donors: Integers, columns: Subset) -> Array:
    """Outputs of shape (units, rows, outputs) of rows with a unit from other rows."""
    known, moved = engine.shuffled(table, donors, list(columns))
    found = np.repeat(engine.outputs()[None], len(columns), axis=0)
    found[known] = moved
    return found
