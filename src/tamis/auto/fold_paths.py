"""The work of Auto in a single fold: order the columns, and train models on the first columns.

A unit is a single column, or a group of columns that are selected together.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import EMPTY, Array, Subset, class_codes, target_kind
from tamis._parallel import report_progress
from tamis._seeds import seed_of
from tamis.auto.held_out import BASELINE, NONE, HeldOut, pack_predictions, plain_error
from tamis.auto.machine import KernelTuning
from tamis.auto.models import estimator_of, predict_rows
from tamis.auto.orders import PATHS, PER_PRICE, Order, find_orders
from tamis.auto.plan import SIZES, AutoPlan
from tamis.auto.price_limits import PriceLimits
from tamis.auto.splits import balanced_folds
from tamis.auto.target import Truth
from tamis.blocks.survival import SURVIVAL
from tamis.contract.units import Grouping
from tamis.exceptions import RecordMismatch
from tamis.meta.conditional_test import NEIGHBOURS, HeldOutRows
from tamis.meta.inner_search import silence_search
from tamis.validation.resamples import parts_of
from tamis.validation.splits import Fold

#: Targets are rescaled if their standard deviation is outside this range. SVM solvers stop at an
#: error of 0.001, and forests stop splitting at a variance of 1e-16. Both tolerances are too coarse
#: for very small targets. For very large targets, 0.001 is less than the rounding errors, so SVM
#: solvers do not converge.
ORDINARY = 0.1, 1e6


#: Number of folds, and of conditional draws, of the test with ``confirm=True``.
CONFIRMING, N_DRAWS = 5, 20


class Work(NamedTuple):
    """Everything that the work in a fold needs, except the table and its target.

    Attributes
    ----------
    plan : AutoPlan
    task : str
    units : Grouping
        Assignment of the columns to units.
    truth : Truth
        The target divided by ``unit``.
    splits : list of pairs of arrays
        Training and test rows of each fold. The folds of the first repeat come first.
    unit : float
        Number that the target is divided by.
    priced : PriceLimits or None
        Price limits, which replace the numbers of columns.
    """

    plan: AutoPlan
    task: str
    units: Grouping
    truth: Truth
    splits: list[Fold]
    unit: float = 1.0
    priced: PriceLimits | None = None

    def round(self, X: Array, y: NDArray[Any], seed: int, index: int) -> list[Any]:
        """Order the columns and train the models in a fold.

        Return the test rows, the selected units by path and size, the candidates (path, model,
        size and position of the predictions), and the predictions. Candidates with the same columns
        and model share their predictions.
        """
        train, test = self.splits[index]
        orders = self.orders(self.plan.paths, X, y, train, seed_of(seed, "orders", index))
        own, centre = seed_of(seed, "models", index), self.truth.centre
        tunings: dict[int, KernelTuning] = {}
        entries: list[list[Any]] = [[*BASELINE, 0]]
        nothing = predict_rows(NONE, X[:, :0], self.truth, train, test, own)
        packed, shared = [pack_predictions(nothing, centre)], {}
        for path, model, size in report_progress(self.plan.candidates, len(self.plan.candidates)):
            units = np.sort(orders[path].first(size))
            key = model, units.tobytes()
            if key not in shared:
                shared[key] = len(packed)
                given = X[:, self.units.columns(units)], self.truth, train, test, own, tunings
                packed.append(pack_predictions(predict_rows(model, *given), centre))
            entries.append([path, model, size, shared[key]])
        subsets = {
            path: {str(size): order.first(size).tolist() for size in self.plan.sizes}
            for path, order in orders.items()
        }
        return [test.tolist(), subsets, entries, packed]

    def check(self, rounds: dict[str, list[Any]]) -> None:
        """Raise an error if the folds stored in a record do not match this plan."""
        for _, _, entries, _ in rounds.values():
            given = [(path, model, size) for path, model, size, _ in entries]
            if given != [BASELINE, *self.plan.candidates]:
                raise RecordMismatch(
                    "The record was made by another version of Auto, which compares other models "
                    "or numbers of columns. Resume it with that version, or call fit to start from "
                    "scratch."
                )

    def orders(
        self, paths: Sequence[str], X: Array, y: NDArray[Any], rows: Subset, seed: int
    ) -> dict[str, Order]:
        """Return the order of all units that each path finds on the given rows.

        If a search cannot use these rows, fixed units come first and the others follow by index.
        """
        rows = self._usable(y, self._resample(rows, seed))
        if not len(rows):
            everything = np.arange(self.units.n_units)
            free = np.setdiff1d(everything, self.units.fixed_units)
            order = Order(np.concatenate([self.units.fixed_units, free]))
            plain = [path.removesuffix(PER_PRICE) for path in paths]
            return self._within_limits(paths, dict.fromkeys(plain, order))
        read = as_classes(y[rows]) if self.task == "classification" else y[rows]
        sizes = SIZES if self.priced else self.plan.sizes_of[self.plan.models[0]]
        size = min(max(sizes), self.units.n_units)
        seeds = {path: seed_of(seed, path) for path in PATHS}
        plain = list(dict.fromkeys(path.removesuffix(PER_PRICE) for path in paths))
        found = find_orders(plain, X[rows], read, self.task, self.units, size, seeds)
        return self._within_limits(paths, found)

    def _within_limits(self, paths: Sequence[str], orders: dict[str, Order]) -> dict[str, Order]:
        """Return the orders of the paths, with the units selected within each price limit."""
        if self.priced is None:
            return orders
        own = {path: orders[path.removesuffix(PER_PRICE)] for path in paths}
        return {
            path: self.priced.order(order, self.units, path.endswith(PER_PRICE))
            for path, order in own.items()
        }

    def selected(
        self, path: str, size: int, X: Array, y: NDArray[Any], rows: Subset, seed: int
    ) -> Subset:
        """Return the units that a path selects on the given rows, sorted."""
        return np.sort(self.orders([path], X, y, rows, seed)[path].first(size))

    def elsewhere(
        self, path: str, model: str, size: int, X: Array, y: NDArray[Any], codes: Subset, seed: int
    ) -> list[HeldOut]:
        """Return the error in each environment of a model trained on all other environments.

        The columns are ordered again without the rows of the environment. ``codes`` holds the
        environment of each row.
        """
        found = []
        for code in range(codes.max() + 1):
            train, test = np.flatnonzero(codes != code), np.flatnonzero(codes == code)
            own = seed_of(seed, "environment", code)
            columns = self.units.columns(self.selected(path, size, X, y, train, own))
            predicted = predict_rows(model, X[:, columns], self.truth, train, test, own)
            mean = self.truth.take(train).mean
            found.append(plain_error(predicted, self.truth.take(test), mean, self.unit))
        return found

    def tests(
        self, outcome: Any, X: Array, y: NDArray[Any], tuning: KernelTuning, seed: int
    ) -> list[list[Any]]:
        """Run the selected order and model in fresh folds, for a conditional test of each unit."""
        path, model, size = outcome.path, outcome.model, outcome.size
        truth, found = self.truth, []
        given = truth.strata, len(X), truth.groups, CONFIRMING
        for fold, (train, test) in enumerate(balanced_folds(*given, seed_of(seed, "confirm"))):
            own = seed_of(seed, "confirm", fold)
            units = self.selected(path, size, X, y, train, own)
            columns = self.units.columns(units)
            estimator = estimator_of(model, len(columns), "regression", own, tuning)
            rows = HeldOutRows(
                *(X, y, train, test, self.task, self.units, estimator),
                np.random.default_rng(own),
                own,
            )
            with silence_search():
                products = rows.products(units, NEIGHBOURS, N_DRAWS, "auto")
            found.append([test, units, products])
        return found

    def _resample(self, rows: Subset, seed: int) -> Subset:
        """Resample rows in proportion to their weights, because searches do not support weights."""
        if self.truth.weights is None:
            return rows
        ends = np.cumsum(self.truth.weights[rows])
        start = np.random.default_rng(seed).random()  # systematic resampling
        marks = (np.arange(len(rows)) + start) * ends[-1] / len(rows)
        return rows[np.minimum(np.searchsorted(ends, marks, side="right"), len(rows) - 1)]

    def _usable(self, y: NDArray[Any], rows: Subset) -> Subset:
        """Return the rows that a search can use: rows of classes with at least two rows.

        The result is empty if the target is constant in these rows, or contains no event.
        """
        if self.task == SURVIVAL:
            return rows if y["event"][rows].any() else EMPTY
        if self.task == "regression":
            return rows if (y[rows] != y[rows[0]]).any() else EMPTY
        codes = class_codes(y[rows])[1]
        counts = np.bincount(codes)
        return rows[counts[codes] >= 2] if (counts >= 2).sum() >= 2 else EMPTY


def as_classes(y: NDArray[Any]) -> NDArray[Any]:
    """Return the labels, converted to strings if they would be mistaken for a numeric target.

    >>> as_classes(np.array([0.25, 0.75, 0.5, 0.25]))
    array(['c00000', 'c00002', 'c00001', 'c00000'], dtype='<U6')
    """
    if target_kind(y) == "classification":
        return y
    return np.array([f"c{code:05d}" for code in class_codes(y)[1]])


def varying_units(X: Array, units: Grouping) -> Subset:
    """Return the units in which at least one column varies."""
    varies = X.min(axis=0) < X.max(axis=0)
    found = np.zeros(units.n_units, dtype=bool)
    found[units.unit_of[varies]] = True
    return np.flatnonzero(found)


def unit_of(y: NDArray[Any], task: str) -> float:
    """Return the scale of a target: 1, or a power of two if the target is very small or very large.

    >>> unit_of(np.array([-1.0, 1.0]), "regression"), unit_of(np.array([0.0, 1e-6]), "regression")
    (1.0, 4.76837158203125e-07)
    """
    spread = float(np.std(y)) if task == "regression" else 1.0
    ordinary = not spread or ORDINARY[0] <= spread < ORDINARY[1]
    return 1.0 if ordinary else float(2.0 ** (np.frexp(spread)[1] - 1))


def sample_of(codes: Subset | None, n_rows: int, n_wanted: int, rng: np.random.Generator) -> Subset:
    """Return a sample of the rows, in ascending order and stratified by class."""
    if n_wanted >= n_rows:
        return np.arange(n_rows)
    groups = np.zeros(n_rows, dtype=np.intp) if codes is None else codes
    return parts_of(groups, (n_wanted,), rng)[0]
