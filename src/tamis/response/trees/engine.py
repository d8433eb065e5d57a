"""Engine of tree ensembles, which computes the outputs for all altered columns together."""

from collections.abc import Callable, Iterator
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.pipeline import Pipeline

from tamis._arrays import Array, Subset
from tamis.compiled import thresholds
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
#: Maximum number of altered outputs in memory at a time (256 MB).
AT_ONCE = 32_000_000


class TreeEngine(Engine):
    """Engine of a tree ensemble, for the outputs of one method.

    :meth:`sums` adds up a statistic over all rows and points without storing the outputs.

    Parameters
    ----------
    ensemble : TreeEnsemble
        Trees of the model.
    method : {"predict", "predict_proba", "decision_function", "codes"}
        Method of the model whose outputs are compared.
    raw : callable
        The same method as a function of a table. It is called for rows whose predicted class
        depends on rounding.
    X : array of shape (rows, columns)
        Rows whose columns are altered.
    prepare : callable or None, default=None
        Column-wise preprocessing that a pipeline applies before the trees.
    n_jobs : int or None, default=None
        Number of threads; results do not depend on it.
    """

    min_altered = thresholds.ALTERED_ROWS

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
        """Number of threads that share the rows."""
        return self.ensemble.n_jobs

    @n_jobs.setter
    def n_jobs(self, n_jobs: int | None) -> None:
        self.ensemble.n_jobs = n_jobs

    @classmethod
    def knows(cls, model: Model) -> bool:
        return model.method in METHODS and is_tree_model(scaling_of(model.fitted)[1])

    @classmethod
    def opened(cls, model: Model, X: Array, low: Array, high: Array) -> "TreeEngine | None":
        may_miss = np.asarray(np.isnan(low) | np.isnan(high))
        prepare, last = preparation(model.fitted), scaling_of(model.fitted)[1]
        ensemble = open_trees(last, model.method, model.raw, X, may_miss=may_miss, prepare=prepare)
        return cls(ensemble, model.method, model.raw, X, prepare=prepare) if ensemble else None

    @cached_property
    def codes(self) -> Integers:
        """Codes of the unchanged rows."""
        return self._encode(self.X)

    @cached_property
    def before(self) -> tuple[Array, Array]:
        """Sums of the leaf values of the unchanged rows, and the outputs of these rows."""
        sums = self.ensemble.sums(self.codes)
        return sums, self._answers(sums, lambda some: self.X[some])

    def outputs(self) -> Array:
        return self.before[1]

    def _encode(self, values: Array) -> Integers:
        """Return the codes of a table. The last result is cached for repeated shuffles."""
        if self._table is None or self._table[0] is not values:
            new = columns_with_nan(values) & ~self.ensemble.may_miss
            if new.any():
                raise InvalidTable(
                    f"TreeEngine needs column {int(new.argmax())} without missing values, as in "
                    "the table that it was opened with. Open it with all rows."
                )
            prepared = values if self.prepare is None else self.prepare(values)
            self._table = values, self.ensemble.encode(prepared)
        return self._table[1]

    def _answers(self, sums: Array, altered: Callable[[Any], Array]) -> Array:
        """Return the outputs for sums of leaf values, of shape (..., outputs).

        If the class of a row depends on rounding, the model itself predicts it. ``altered`` builds
        the altered rows at the given indices.
        """
        found = self.answer(sums)
        if self.answer.rounds:
            doubtful = self.answer.doubtful(sums)
            if doubtful.any():
                found[doubtful] = self.raw(altered(np.nonzero(doubtful)))
        return found

    def batches(self, units: Subset) -> "Iterator[TreeBatch]":
        step = max(1, AT_ONCE // max(1, self.outputs().size))
        for first in range(0, len(units), step):
            some = np.arange(first, min(first + step, len(units)))
            yield TreeBatch(self, some, units[some])

    def sums(self, units: Subset, draw: Draw, part: FoldModel, statistic: Statistic) -> Array:
        if isinstance(draw, Centres):  # raises an error
            return super().sums(units, draw, part, statistic)
        link = part.model.link
        total, outputs = np.zeros((statistic.n_sums, len(units))), link(self.outputs())
        if isinstance(draw, Shuffle):
            size = max(1, AT_ONCE // max(1, len(self.ensemble.used) * outputs.shape[1]))
            for start in range(0, len(self.X), size):
                block = slice(start, start + size)
                rows, engine = part.rows[block], self.some(block)
                known, after = engine.shuffled(draw.table, draw.donors[rows], list(units))
                terms = statistic.terms(rows, link(after) - outputs[block], known[:, None])
                total[:, known] += np.stack([term.sum(axis=1) for term in terms])
            return total

        def add_up(found: "Segments") -> Array:
            change = link(found.sums) - outputs[found.rows]
            terms = statistic.terms(part.rows[found.rows], change, found.units)
            weighted = [term * found.weights for term in terms]
            return np.stack([np.bincount(found.units, x, minlength=len(units)) for x in weighted])

        if isinstance(draw, EveryValue):
            values, weights = draw.table, None
        else:
            values, weights = self.fill_table(units, draw.values.swapaxes(0, 1)), draw.weights.T
        grid = self.ensemble.grid(self._encode(values), list(units), weights)
        return sum(self._over_points(values, grid, list(units), add_up), total)

    def mean_outputs(self, units: Subset, points: Points, part: FoldModel) -> Array:
        values, outputs = self.fill_table(units, points.values.swapaxes(0, 1)), self.outputs()
        grid = self.ensemble.grid(self._encode(values), list(units))

        def add_up(found: "Segments") -> Array:
            """Add the changes of all rows at the start of each run, and subtract them after it."""
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
        """Return the outputs of the rows when the columns of each unit come from other rows.

        Row r takes the values in row donors[r] of the table. Returns the indices of the units that
        have a column used by the trees, and the outputs, of shape (these units, rows, outputs).
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
        """Apply a function to the segments of each row block; yield its results in row order.

        The field ``sums`` of the segments contains outputs instead of sums of leaf values.
        """

        def with_outputs(found: "Segments") -> T:
            def altered(some: Any) -> Array:
                (which,) = some
                at = [units[u] for u in found.units[which]]
                sources = grid.rows[found.slots[which]]
                return _replace_values(self.X, found.rows[which], values, sources, at)

            return function(found._replace(sums=self._answers(found.sums, altered)))

        return self.ensemble.over_segments(self.codes, self.before[0], grid, with_outputs)

    def fill_table(self, columns: Subset, values: Array) -> Array:
        """Return a table with ``values`` in the given columns and 0 in all others.

        ``columns`` has the shape (units, size), and ``values`` has (rows, units, size).
        """
        found = np.zeros((len(values), self.X.shape[1]), order="F")
        found[:, columns] = values
        return found

    def some(self, rows: slice) -> "TreeEngine":
        """Return an engine for a slice of the rows."""
        found = copy(self)
        found.X, found.codes = self.X[rows], self.codes[rows]
        found.before = self.before[0][rows], self.before[1][rows]
        return found


def preparation(fitted: Any) -> Callable[[Array], Array] | None:
    """Return a function that applies all scalers of a pipeline, or None if there are none.

    It calls the scalers themselves, so that results are exact to the last digit.
    """
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
    """Return copies of the given rows of ``X``, with the columns of one unit replaced in each.

    Copy i takes the columns units[i] from row sources[i] of ``values``.
    """
    found = X[rows]
    for row, (source, columns) in enumerate(zip(sources, units, strict=True)):
        found[row, columns] = values[source, columns]
    return found


class TreeBatch(Batch):
    """Batch of a :class:`TreeEngine`."""

    def __init__(self, engine: TreeEngine, units: Subset, columns: Subset):
        self.engine, self.units, self.columns = engine, units, columns

    def at(self, some: slice, rows: slice, points: Array) -> Array:
        engine, columns = self.engine.some(rows), self.columns[some]
        table, n_rows = engine.fill_table(columns, points.swapaxes(0, 1)), len(engine.X)
        each = (np.full(n_rows, point) for point in range(points.shape[1]))
        return np.stack([_alter(engine, table, donors, columns) for donors in each], axis=2)

    def paired(self, values: Array) -> Array:
        table = self.engine.fill_table(self.columns, values)
        return _alter(self.engine, table, np.arange(len(values)), self.columns)[:, :, None, :]


def _alter(engine: TreeEngine, table: Array, donors: Integers, columns: Subset) -> Array:
    """Return the outputs when each unit comes from donor rows, of shape (units, rows, outputs)."""
    known, outputs = engine.shuffled(table, donors, list(columns))
    found = np.repeat(engine.outputs()[None], len(columns), axis=0)
    found[known] = outputs
    return found
