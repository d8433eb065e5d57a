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
from tamis.auto.held_out import NONE, HeldOut, pack_predictions, plain_error
from tamis.auto.models import estimator_of, predict_rows
from tamis.auto.paths import SCREENED, path_of
from tamis.auto.plan import ALL, AutoPlan
from tamis.auto.splits import balanced_folds
from tamis.auto.target import Truth
from tamis.blocks.survival import SURVIVAL
from tamis.contract.units import Grouping
from tamis.exceptions import RecordMismatch
from tamis.meta.conditional_test import NEIGHBOURS, HeldOutRows
from tamis.meta.inner_search import unheard, walk_of, walked
from tamis.validation.resamples import parts_of
from tamis.validation.splits import Fold

#: Targets are rescaled if their standard deviation is outside this range. SVM solvers stop at an
#: error of 0.001, and forests stop splitting at a variance of 1e-16. Both limits are too coarse for
#: very small targets. For very large targets, 0.001 is below the rounding errors, so SVM solvers do
#: not converge.
ORDINARY = 0.1, 1e6


#: Number of folds, and of conditional draws, of the test with ``confirm=True``.
CONFIRMING, N_DRAWS = 5, 20


class Work(NamedTuple):
    """Everything that a round (one path in one fold) needs, except the table and its target.

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
    """

    plan: AutoPlan
    task: str
    units: Grouping
    truth: Truth
    splits: list[Fold]
    unit: float = 1.0

    def round(self, X: Array, y: NDArray[Any], seed: int, index: int) -> list[Any]:
        """Run a path in a fold.

        Return the name of the path, the test rows, the order of the units and the predictions.
        """
        repeat, path, fold = self.plan.rounds[index]
        train, test = self.splits[repeat * self.plan.n_folds + fold]
        given = X, train, test, seed_of(seed, "models", index)
        if path == ALL:
            entries = self.entries(*given, (NONE,), EMPTY)
            if self.plan.everything:
                everything = np.arange(self.units.n_units)
                entries += self.entries(*given, self.plan.everything, everything)
            return [path, test.tolist(), [], entries]
        order = self.ordered(path, X, y, train, seed_of(seed, path, index))
        entries = []
        for size in report_progress(self.plan.sizes, len(self.plan.sizes)):
            entries += self.entries(*given, self.plan.models_at(size), order[:size])
        return [path, test.tolist(), order[: self.plan.sizes[-1]].tolist(), entries]

    def entries(
        self,
        X: Array,
        train: Subset,
        test: Subset,
        seed: int,
        models: Sequence[str],
        units: Subset,
    ) -> list[list[Any]]:
        """Return, for each model, its name, the number of units and its held-out predictions."""
        X, truth = X[:, self.units.columns(np.sort(units))], self.truth
        found = [predict_rows(model, X, truth, train, test, seed) for model in models]
        return [
            [model, len(units), pack_predictions(predicted, truth.centre)]
            for model, predicted in zip(models, found, strict=True)
        ]

    def _candidates(self, path: str) -> list[tuple[str, int]]:
        """Return the model and the number of units for each entry in a round of this path."""
        if path == ALL:
            return [(NONE, 0), *((name, self.units.n_units) for name in self.plan.everything)]
        return [(name, n) for n in self.plan.sizes for name in self.plan.models_at(n)]

    def check(self, rounds: dict[str, list[Any]]) -> None:
        """Raise an error if the rounds stored in a record do not match this plan."""
        for index, (path, _, _, entries) in rounds.items():
            expected = self.plan.rounds[int(index)].path
            given = [(name, n) for name, n, *_ in entries]
            if path != expected or given != self._candidates(path):
                raise RecordMismatch(
                    "The record was made by another version of Auto, which compares other models "
                    "or numbers of columns. Resume it with that version, or call fit to start from "
                    "scratch."
                )

    def ordered(self, path: str, X: Array, y: NDArray[Any], rows: Subset, seed: int) -> Subset:
        """Return all units in the order that a path finds on the given rows.

        If a search cannot use these rows, fixed units come first and the others follow by index.
        """
        rows = self._usable(y, self._resample(rows, seed))
        if not len(rows):
            everything = np.arange(self.units.n_units)
            free = np.setdiff1d(everything, self.units.fixed_units)
            return np.concatenate([self.units.fixed_units, free])
        search, fixed = path_of(path, self.task, self.units.n_units), self.units.fixed_units
        size = min(self.plan.sizes[-1], SCREENED[path]) if walk_of(search).grows else 1
        if len(fixed):
            firsts = np.unique(self.units.unit_of, return_index=True)[1]
            search.set_params(fixed_features=firsts[fixed].tolist())
        labels = None if self.units.plain else self.units.unit_of
        read = as_classes(y[rows]) if self.task == "classification" else y[rows]
        return walked(search, X[rows], read, seed, max(size, len(fixed)), labels).order_

    def elsewhere(
        self, path: str, model: str, size: int, X: Array, y: NDArray[Any], codes: Subset, seed: int
    ) -> list[HeldOut]:
        """Return the error in each environment, of a model trained on all other environments.

        The columns are ordered again without the rows of the environment. ``codes`` holds the
        environment of each row.
        """
        found = []
        for code in range(codes.max() + 1):
            train, test = np.flatnonzero(codes != code), np.flatnonzero(codes == code)
            own = seed_of(seed, "environment", code)
            order = self.ordered(path, X, y, train, own)
            columns = self.units.columns(np.sort(order[:size]))
            predicted = predict_rows(model, X[:, columns], self.truth, train, test, own)
            mean = self.truth.take(train).mean
            found.append(plain_error(predicted, self.truth.take(test), mean, self.unit))
        return found

    def tests(
        self, outcome: Any, X: Array, y: NDArray[Any], width: float, seed: int
    ) -> list[list[Any]]:
        """Run the selected order and model in fresh folds, for a conditional test of each unit."""
        path, model, size = outcome.path, outcome.model, outcome.size
        truth, found = self.truth, []
        given = truth.strata, len(X), truth.groups, CONFIRMING
        for fold, (train, test) in enumerate(balanced_folds(*given, seed_of(seed, "confirm"))):
            own = seed_of(seed, "confirm", fold)
            units = np.sort(self.ordered(path, X, y, train, own)[:size])
            columns = self.units.columns(units)
            estimator = estimator_of(model, len(columns), "regression", own, width)
            rows = HeldOutRows(
                *(X, y, train, test, self.task, self.units, estimator),
                np.random.default_rng(own),
                own,
            )
            with unheard():
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
