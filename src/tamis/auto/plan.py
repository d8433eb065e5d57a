"""The plan of Auto: the column orders and the models that it tries within a time budget.

The plan depends on the size of the table and on the estimated costs below, not on measured time.
The same table therefore has the same plan on every computer. Costs are seconds on one core.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tamis.auto.machine import INNER_FOLDS, INNER_ROWS, WIDTHS
from tamis.auto.models import N_TREES as TREES
from tamis.auto.paths import LEAVING, N_TREES, PATHS, SCREENED
from tamis.blocks.survival import SURVIVAL

#: Maximum number of rows used. With 5000 rows, the standard error of an error rate is at most
#: 0.7 %. There is also time for a forest in every fold. A forest finds non-linear effects in tables
#: with many rows.
MOST_ROWS = 5_000
#: Maximum number of rows used for a censored target. It is smaller, because rows are compared in
#: pairs.
MOST_CENSORED_ROWS = 2_000
#: Maximum number of rows for an SVM. Its training time grows with the square of the number of rows.
MOST_SVM_ROWS = 2000
#: With fewer than ``FEW_ROWS`` rows, cross-validation is run up to ``MOST_REPEATS`` times. With few
#: rows, results vary more between folds than between candidates.
FEW_ROWS, MOST_REPEATS = 200, 3
#: Share of the budget up to which cross-validation is repeated. The remaining share is a reserve,
#: because repeats multiply the errors of the rough cost estimates.
REPEATING = 0.55
#: Numbers of columns at which a forest is trained. The list is short, because a forest takes as
#: long as all other models together. Small numbers are needed for targets such as y = (x > 0), to
#: which only a forest can be fitted well.
TREE_SIZES = (1, 2, 5, 10, 20, 40)
#: The sample of rows is not halved below this number, even if the table has very many columns.
FEWEST_ROWS = 500
#: A regression SVM has two variables per row, and takes this many times as long to train.
SVR_TIMES = 4


class Planned(NamedTuple):
    """A step of the plan, tried or skipped.

    Attributes
    ----------
    name : str
        Name of the step, such as "path: forest", "model: trees", "all columns: ridge" or "repeats".
        "rows" means that only a sample of the rows is used.
    tried : bool
        True if the step is tried, False if it is skipped.
    seconds : float
        Estimated time on one core.
    reason : str
        Why the step is tried or skipped.

    Examples
    --------
    >>> step = Planned("model: trees", False, 20.0, "needs about 20 s, and 5 s are left")
    >>> step.tried
    False
    """

    name: str
    tried: bool
    seconds: float
    reason: str


class Round(NamedTuple):
    """A unit of work: one path on the training rows of one fold."""

    repeat: int
    path: str
    fold: int


class AutoPlan(NamedTuple):
    """The orders, models and numbers of columns that Auto tries on a table.

    ``everything`` lists the models that are also trained on all columns. ``trees_at`` lists the
    numbers of columns at which a forest is trained.
    """

    n_rows: int
    n_folds: int
    n_repeats: int
    paths: tuple[str, ...]
    models: tuple[str, ...]
    everything: tuple[str, ...]
    sizes: tuple[int, ...]
    trees_at: tuple[int, ...]
    steps: tuple[Planned, ...]

    @property
    def rounds(self) -> list[Round]:
        """All rounds, sorted by path, so that a fit that is stopped early has complete paths."""
        paths = [*self.paths[:1], ALL, *self.paths[1:]]
        return [
            Round(repeat, path, fold)
            for repeat in range(self.n_repeats)
            for path in paths
            for fold in range(self.n_folds)
        ]

    @property
    def seconds(self) -> float:
        """Estimated time of all steps that are tried, in seconds."""
        return sum(step.seconds for step in self.steps if step.tried)

    def models_at(self, size: int) -> tuple[str, ...]:
        """Return the names of the models that are trained on this number of columns."""
        return tuple(model for model in self.models if model != "trees" or size in self.trees_at)


#: Name of the SVM in plans and records.
SVM = "machine"
#: Name of the step that uses only a sample of the rows.
ROWS = "rows"
#: Name of the path that uses all columns.
ALL = "all columns"


def tree_sizes(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the numbers of columns at which a forest is trained, always including the largest."""
    return tuple(sorted({*sizes} & {*TREE_SIZES, sizes[-1]}))


class Costs(NamedTuple):
    """Estimated time of each step of a plan, in seconds.

    A unit is a single column, or a group of columns that are selected together.
    """

    n_rows: int
    n_units: int
    n_columns: int
    n_folds: int
    sizes: tuple[int, ...]
    task: str

    @property
    def _fold_rows(self) -> int:
        return self.n_rows - self.n_rows // self.n_folds

    def search_seconds(self, path: str) -> float:
        """Return the time of a search on each fold and once on all rows."""
        return (self.n_folds + 1) * self._one_search(path)

    def _one_search(self, path: str) -> float:
        n, d = self._fold_rows, min(self.n_columns, SCREENED[path])
        if path == "cox":
            return 5e-8 * n * self.n_columns
        if path == "forest":
            held = [d]
            while held[-1] > 1:
                held.append(int(held[-1] * (1 - LEAVING)))
            return sum(forest_seconds(n, k, N_TREES, self.task) for k in held)
        screening = 1e-8 * self.n_rows * self.n_columns
        return screening + 8.6e-3 + (130 + 8 * self.sizes[-1]) * 1e-9 * n * d

    def model_seconds(
        self, model: str, n_paths: int = 1, sizes: Sequence[int] | None = None
    ) -> float:
        """Return the total time of training a model in all folds, at each size of each path.

        The default ``sizes`` are those at which the model is trained.
        """
        if sizes is None:
            sizes = tree_sizes(self.sizes) if model == "trees" else self.sizes
        wide = self.n_columns / max(1, self.n_units)
        seconds = sum(self._training_seconds(model, size * wide) for size in sizes)
        return n_paths * self.n_folds * seconds

    def all_columns_seconds(self, model: str) -> float:
        """Return the time of a model that is trained on all columns in all folds."""
        return self.n_folds * self._training_seconds(model, self.n_columns)

    def _training_seconds(self, model: str, k: float) -> float:
        n = self._fold_rows
        if model == "trees":
            return forest_seconds(n, k, TREES, self.task)
        if model == "cox":  # Newton steps for several penalties and folds
            return 0.1 + 2e-6 * n * min(n, k)
        if model == "ridge":
            return 3e-3 + 4e-9 * n * k * min(n, k)
        inner = min(n, INNER_ROWS) * (INNER_FOLDS - 1) // INNER_FOLDS
        tunings = INNER_FOLDS * len(WIDTHS) * svm_seconds(inner, k, self.task)
        return svm_seconds(n, k, self.task) + tunings


def svm_seconds(n: int, k: float, task: str) -> float:
    """Return the time to train an SVM on ``k`` columns: its kernel matrix, and the solver."""
    steps = 15 * (1 if task == "classification" else SVR_TIMES)
    return 1e-9 * (5e5 + float(n) ** 2 * (steps + 0.2 * k))


def forest_seconds(n: int, k: float, n_trees: int, task: str) -> float:
    """Return the time to train a forest of extremely randomised trees on ``k`` columns."""
    n_candidates = np.sqrt(k) if task == "classification" else 1 + k / 3
    return float(n_trees * (2e-5 + 1.5e-8 * n * np.log2(max(n, 2)) * n_candidates))


class Planning:
    """Builds a plan, and spends the time budget on the most useful steps first.

    ``repeats`` states whether cross-validation may be repeated.
    """

    def __init__(
        self,
        n_rows: int,
        n_units: int,
        n_columns: int,
        *,
        budget: float,
        n_folds: int,
        sizes: tuple[int, ...],
        task: str,
        repeats: bool = True,
    ):
        self.steps: list[Planned] = []
        self.budget, self.left, self.repeats = budget, float(budget), repeats
        most = MOST_CENSORED_ROWS if task == SURVIVAL else MOST_ROWS
        self.costs = Costs(min(n_rows, most), n_units, n_columns, n_folds, sizes, task)
        self.first = ("cox", "cox") if task == SURVIVAL else ("information", "ridge")
        while self._base() > budget / 2 and self.costs.n_rows >= 2 * FEWEST_ROWS:
            self.costs = self.costs._replace(n_rows=self.costs.n_rows // 2)
        if self.costs.n_rows < n_rows:
            drawn = f"{self.costs.n_rows} of {n_rows}, drawn at random"
            self.steps.append(Planned(ROWS, True, 0.0, drawn))

    def _base(self) -> float:
        path, model = self.first
        return self.costs.search_seconds(path) + self.costs.model_seconds(model)

    def plan(self) -> AutoPlan:
        """Return the plan.

        It always has one order and a linear model. Further steps are added if the budget allows.
        """
        costs = self.costs
        path, model = self.first
        self._take(f"path: {path}", self._base(), "always tried, with a linear model")
        everything = self._fit_all_columns([model])
        paths, models = [path], [model]
        if costs.task != SURVIVAL:
            self._add_others(paths, models)
        everything += self._fit_all_columns(models[1:])
        trees_at = self._trees_at(models, len(paths))
        n_repeats = self._repeats(self.budget - self.left)
        in_order = tuple(path for path in PATHS if path in paths)
        return AutoPlan(
            costs.n_rows, costs.n_folds, n_repeats, in_order, tuple(models), tuple(everything),
            costs.sizes, trees_at, tuple(self.steps),
        )  # fmt: skip

    def _fit_all_columns(self, models: Sequence[str]) -> list[str]:
        seconds = self.costs.all_columns_seconds
        return [model for model in models if self._fits(f"{ALL}: {model}", seconds(model))]

    def _add_others(self, paths: list[str], models: list[str]) -> None:
        """Add the SVM, the order by forest importance and the forest as a model.

        Each is added only if it fits into the time left.
        """
        n_rows = self.costs.n_rows
        if n_rows > MOST_SVM_ROWS:
            reason = f"only used for at most {MOST_SVM_ROWS} rows, and {n_rows} are used"
            self._skip(f"model: {SVM}", 0.0, reason)
        elif self._fits(f"model: {SVM}", self.costs.model_seconds(SVM)):
            models.append(SVM)
        has_svm = SVM in models  # if False, the forest is the only non-linear model and comes first
        if not has_svm and self._fits("model: trees", self.costs.model_seconds("trees")):
            models.append("trees")
        judged = sum(self.costs.model_seconds(model) for model in models)
        if self._fits("path: forest", self.costs.search_seconds("forest") + judged):
            paths.append("forest")
        if has_svm and self._fits("model: trees", self.costs.model_seconds("trees", len(paths))):
            models.append("trees")

    def _trees_at(self, models: list[str], n_paths: int) -> tuple[int, ...]:
        """Return the numbers of columns at which a forest is trained.

        If the forest is the only non-linear model and the budget allows it, all numbers are
        returned. Otherwise it is a short list without 3 and 4, and an interaction of three columns
        would be selected together with two irrelevant columns.
        """
        few = tree_sizes(self.costs.sizes)
        more = [size for size in self.costs.sizes if size not in few]
        if not more or "trees" not in models or SVM in models:
            return few
        seconds = self.costs.model_seconds("trees", n_paths, more)
        return self.costs.sizes if self._fits("model: trees at every size", seconds) else few

    def _fits(self, name: str, seconds: float) -> bool:
        if seconds > self.left:
            reason = f"needs about {seconds:.2g} s, and {max(0.0, self.left):.2g} s are left"
            return self._skip(name, seconds, reason)
        self._take(name, seconds, "fits into the time left")
        return True

    def _take(self, name: str, seconds: float, reason: str) -> None:
        self.left -= seconds
        self.steps.append(Planned(name, True, seconds, reason))

    def _skip(self, name: str, seconds: float, reason: str) -> bool:
        self.steps.append(Planned(name, False, seconds, reason))
        return False

    def _repeats(self, spent: float) -> int:
        """Return how many times cross-validation is run within the budget."""
        if not self.repeats:
            return 1
        if self.costs.n_rows >= FEW_ROWS:
            self._skip("repeats", 0.0, f"only used below {FEW_ROWS} rows")
            return 1
        room = max(0.0, REPEATING * self.budget - spent)
        n_repeats = int(min(MOST_REPEATS, 1 + room // max(spent, 1e-9)))
        if n_repeats > 1:
            self._take("repeats", (n_repeats - 1) * spent, f"{n_repeats} times")
            return n_repeats
        reason = f"needs about {spent:.2g} s more, and {room:.2g} s are left for repeats"
        self._skip("repeats", spent, reason)
        return 1
