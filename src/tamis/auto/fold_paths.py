"""The work of Auto: a path through the training rows of a fold, and models on its first columns."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import EMPTY, Array, Subset, class_codes, target_kind
from tamis._parallel import told
from tamis._seeds import seed_of
from tamis.auto.held_out import NONE, pack_predictions
from tamis.auto.models import answers
from tamis.auto.paths import SCREENED, path_of
from tamis.auto.plan import ALL, AutoPlan
from tamis.auto.target import Truth
from tamis.blocks.survival import SURVIVAL
from tamis.contract.units import Grouping
from tamis.exceptions import RecordMismatch
from tamis.meta.inner_search import walk_of, walked
from tamis.validation.resamples import parts_of
from tamis.validation.splits import Fold

#: Standard deviations of a target that models are given as they are. Solvers stop at a thousandth
#: of a unit, and trees at squares of 1e-16: at 0.03 losses of a machine were 4 % off, at 0.0001 it
#: answered one number. Far above, that thousandth is below rounding, and solvers do not end.
AS_IT_IS = 0.1, 1e6


class Work(NamedTuple):
    """What rounds need besides the table and its target.

    Attributes
    ----------
    plan : AutoPlan
    task : str
    units : Grouping
        Of the columns.
    truth : Truth
        The target, in multiples of ``unit``.
    splits : list of pairs of arrays
        Training and test rows, fold after fold and repeat after repeat.
    unit : float
    """

    plan: AutoPlan
    task: str
    units: Grouping
    truth: Truth
    splits: list[Fold]
    unit: float = 1.0

    def round(self, X: Array, y: NDArray[Any], seed: int, index: int) -> list[Any]:
        """One path in one fold: its name, the test rows, its order, and their predictions."""
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
        for size in told(self.plan.sizes, len(self.plan.sizes)):
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
        """Return for each model its name, the number of units, and its held-out predictions."""
        X, truth = X[:, self.units.columns(np.sort(units))], self.truth
        found = [answers(model, X, truth, train, test, seed) for model in models]
        return [
            [model, len(units), pack_predictions(predicted, truth.centre)]
            for model, predicted in zip(models, found, strict=True)
        ]

    def answered(self, index: int) -> tuple[str, list[tuple[str, int]]]:
        """The path of a round, and the model and number of units of each of its entries."""
        path = self.plan.rounds[index].path
        if path == ALL:
            whole = [(name, self.units.n_units) for name in self.plan.everything]
            return path, [(NONE, 0), *whole]
        return path, [(name, n) for n in self.plan.sizes for name in self.plan.models_at(n)]

    def check(self, rounds: dict[str, list[Any]]) -> None:
        """Refuse rounds of a record that compare something else than this plan does."""
        for index, (path, _, _, entries) in rounds.items():
            if (path, [(name, n) for name, n, *_ in entries]) != self.answered(int(index)):
                raise RecordMismatch(
                    "The record was made by another version of Auto, whose rounds compare other "
                    "models or numbers of columns. Resume it with that version, or call fit to "
                    "start anew."
                )

    def ordered(self, path: str, X: Array, y: NDArray[Any], rows: Subset, seed: int) -> Subset:
        """All units in the order of a path through some rows; by index where those tell nothing."""
        rows = self._telling(y, self._resampled(rows, seed))
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

    def _resampled(self, rows: Subset, seed: int) -> Subset:
        """Return the rows as often as their weights demand: the orders take no weights."""
        if self.truth.weights is None:
            return rows
        ends = np.cumsum(self.truth.weights[rows])
        start = np.random.default_rng(seed).random()  # systematic resampling
        marks = (np.arange(len(rows)) + start) * ends[-1] / len(rows)
        return rows[np.minimum(np.searchsorted(ends, marks, side="right"), len(rows) - 1)]

    def _telling(self, y: NDArray[Any], rows: Subset) -> Subset:
        """Return the rows that a search can learn from: those of classes with several rows.

        None if all are of one class, have one value, or if there is no event.
        """
        if self.task == SURVIVAL:
            return rows if y["event"][rows].any() else EMPTY
        if self.task == "regression":
            return rows if (y[rows] != y[rows[0]]).any() else EMPTY
        codes = class_codes(y[rows])[1]
        counts = np.bincount(codes)
        return rows[counts[codes] >= 2] if (counts >= 2).sum() >= 2 else EMPTY


def as_classes(y: NDArray[Any]) -> NDArray[Any]:
    """Labels that everybody reads as classes: of many numbers a search would make a regression.

    >>> as_classes(np.array([0.25, 0.75, 0.5, 0.25]))
    array(['c00000', 'c00002', 'c00001', 'c00000'], dtype='<U6')
    """
    if target_kind(y) == "classification":
        return y
    return np.array([f"c{code:05d}" for code in class_codes(y)[1]])


def varying_units(X: Array, units: Grouping) -> Subset:
    """Units with a column that has more than one value."""
    varies = X.min(axis=0) < X.max(axis=0)
    found = np.zeros(units.n_units, dtype=bool)
    found[units.unit_of[varies]] = True
    return np.flatnonzero(found)


def unit_of(y: NDArray[Any], task: str) -> float:
    """What a target's standard deviation is a few times of: 1 but for very small and large ones.

    It is a power of two, which takes no digit away.

    >>> unit_of(np.array([-1.0, 1.0]), "regression"), unit_of(np.array([0.0, 1e-6]), "regression")
    (1.0, 4.76837158203125e-07)
    """
    spread = float(np.std(y)) if task == "regression" else 1.0
    ordinary = not spread or AS_IT_IS[0] <= spread < AS_IT_IS[1]
    return 1.0 if ordinary else float(2.0 ** (np.frexp(spread)[1] - 1))


def sample_of(codes: Subset | None, n_rows: int, n_wanted: int, rng: np.random.Generator) -> Subset:
    """Rows that stand for all, ascending, with the classes in proportion."""
    if n_wanted >= n_rows:
        return np.arange(n_rows)
    groups = np.zeros(n_rows, dtype=np.intp) if codes is None else codes
    return parts_of(groups, (n_wanted,), rng)[0]
