"""The plan of Auto: the column orders and the models that it tries within a time budget.

The plan depends on the size of the table and on the estimated costs below, not on measured time.
The same table therefore has the same plan on every computer. Costs are seconds on one core.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tamis.auto.machine import COSTS, INNER_FOLDS, INNER_ROWS, WIDTHS
from tamis.auto.models import BOOSTING
from tamis.auto.models import N_TREES as TREES
from tamis.auto.orders import (
    DISTINCT,
    LEAVING,
    N_TREES,
    PATHS,
    PER_PRICE,
    PERMUTATIONS,
    RANKED,
    SCREENED,
)
from tamis.blocks.survival import SURVIVAL

#: Name of the SVM in plans and records.
SVM = "machine"
#: Maximum number of rows on which models are trained.
MOST_ROWS = 50_000
#: Maximum number of rows used for a censored target. It is smaller than ``MOST_ROWS``, because rows
#: are compared in pairs.
MOST_CENSORED_ROWS = 2_000
#: Numbers of columns that are compared. Large numbers are further apart because neighbouring large
#: numbers have almost the same error.
SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 14, 20, 28, 40)
#: Range of the number of rows for which a model is used. The training time of an SVM grows with the
#: square of the number of rows, and boosting needs many rows for its histograms.
ROWS_OF = {SVM: (0, 2000), "boosting": (300, MOST_ROWS), "trees": (0, 5000)}
#: With fewer than ``FEW_ROWS`` rows, cross-validation is run up to ``MOST_REPEATS`` times. With few
#: rows, results vary more between folds than between candidates.
FEW_ROWS, MOST_REPEATS = 200, 3
#: Share of the budget up to which cross-validation is repeated. The remaining share is a reserve,
#: because repeats multiply the errors of the rough cost estimates.
REPEATING = 0.55
#: Reduced numbers of columns for a slower model. They are used if the SVM is trained at all numbers
#: of columns, if there are more than 5000 rows, or if there is no time for all numbers.
FEW_SIZES = {"trees": (1, 2, 5, 10, 20, 40), "boosting": (5, 10, 20, 40)}
#: Orders on whose lists the slower models are trained. Other models are trained on the lists of all
#: orders.
PATHS_OF = {
    "boosting": ("distinct forest", "interactions"),
    "trees": ("information", "distinct forest", "interactions"),
}
#: Largest number of columns that is selected by interactions. Other orders are better for more.
MOST_INTERACTING = 10
#: Orders that need a minimum number of rows. With few rows, comparing many candidates costs more
#: than the additional orders gain.
FEWEST_FOR = {
    "floating": 100, "distinct information": 100, "distinct forest": 100, "interactions": 50,
}  # fmt: skip
#: Further numbers of columns above 40. They are tried only for an order that ranks all columns.
WIDE_SIZES = (64, 128, 256, 512, 1024, 2048, 4096)
#: Share of the budget for the first orders and models. If they need more, the rows are halved.
BASE = 0.35
#: Steps that use compiled loops, and the time to load the loops.
COMPILED, LOADING = ("path: forest", f"model: {SVM}", "model: trees"), 0.8
#: The sample of rows is not halved below this number, even if the table has very many columns.
FEWEST_ROWS = 500
#: A regression SVM has two variables per row, and takes this many times as long to train.
SVR_TIMES = 4
#: Share of the lists of an additional order that are expected to differ from the lists of the other
#: orders. Equal lists are evaluated only once.
NEW = 0.6


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


class AutoPlan(NamedTuple):
    """The orders, models and numbers of columns that Auto tries on a table.

    ``sizes_of`` lists the numbers of columns at which each model is trained. ``wide`` lists the
    numbers above 40, which are tried with the forest order. ``everything`` lists the models that
    are trained on all columns.
    """

    n_rows: int
    n_folds: int
    n_repeats: int
    paths: tuple[str, ...]
    sizes_of: Mapping[str, tuple[int, ...]]
    wide: tuple[int, ...]
    everything: tuple[str, ...]
    n_units: int
    steps: tuple[Planned, ...]

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models."""
        return tuple(self.sizes_of)

    @property
    def sizes(self) -> tuple[int, ...]:
        """All numbers of columns, in ascending order."""
        return tuple(sorted({*self.wide}.union(*self.sizes_of.values())))

    @property
    def candidates(self) -> list[tuple[str, str, int]]:
        """The path, model and number of columns of all candidates."""
        found = [
            (path, model, size)
            for path in self.paths
            for model, sizes in self.sizes_of.items()
            if path in judged_paths(model, self.paths)
            for size in sizes
            if path != "interactions" or size <= max(MOST_INTERACTING, sizes[0])
        ]
        found += [("forest", model, size) for model in self.everything for size in self.wide]
        found += [(self.paths[0], model, self.n_units) for model in self.everything]
        return list(dict.fromkeys(found))

    @property
    def seconds(self) -> float:
        """Estimated time of all steps that are tried, in seconds."""
        return sum(step.seconds for step in self.steps if step.tried)


def judged_paths(model: str, paths: Sequence[str]) -> list[str]:
    """Return the orders on whose lists a model is trained, with at least one order."""
    wanted = PATHS_OF.get(model, paths)
    if "distinct forest" not in paths:
        wanted = (*wanted, "forest")
    return [path for path in paths if path.removesuffix(PER_PRICE) in wanted] or [paths[0]]


#: Name of the step that uses only a sample of the rows.
ROWS = "rows"
#: Start of the name of a step that trains a model on all columns.
ALL = "all columns"


class Costs(NamedTuple):
    """Estimated time of each step of a plan, in seconds.

    A unit is a single column, or a group of columns that are selected together. ``n_classes`` is 1
    for a numeric target.
    """

    n_rows: int
    n_units: int
    n_columns: int
    n_folds: int
    sizes: tuple[int, ...]
    n_classes: int

    @property
    def _fold_rows(self) -> int:
        return self.n_rows - self.n_rows // self.n_folds

    def search_seconds(self, path: str) -> float:
        """Return the time of a search on each fold and once on all rows."""
        n, d = self._fold_rows, min(self.n_columns, SCREENED.get(path, self.n_columns))
        if path in DISTINCT:
            return 0.0
        if path == "cox":
            seconds = 5e-8 * n * self.n_columns
        elif path == "floating":
            seconds = 1e-9 * n * (d * min(d, 500) / 5 + 8 * self.n_columns) + 2e-4 * self.sizes[-1]
        elif path == "interactions":
            return (self.n_folds + sum(PERMUTATIONS) / 4) * (1e-2 + 2e-9 * n * d**2)
        elif path == "forest":
            held = [d]
            while held[-1] > 1:
                held.append(int(held[-1] * (1 - LEAVING)))
            seconds = sum(self.forest_seconds(n, k, N_TREES) for k in held)
        else:
            screening = 1e-8 * self.n_rows * self.n_columns
            seconds = screening + 8.6e-3 + (130 + 8 * min(d, RANKED)) * 1e-9 * n * d
        return (self.n_folds + 1) * seconds

    def model_seconds(self, model: str, n_paths: int, sizes: Sequence[int]) -> float:
        """Return the total time of training a model in all folds, at each size of each path."""
        wide = self.n_columns / max(1, self.n_units)
        seconds = 0.0
        for size in sizes:
            n_lists = 1 + NEW * (n_paths - 1) * max(0.0, 1 - size / self.n_units)
            seconds += n_lists * self.training_seconds(model, size * wide)
        if model == SVM:
            digits = {int(size).bit_length() for size in sizes}
            seconds += sum(self._tuning_seconds(2.0**digit) for digit in digits)
        return self.n_folds * seconds

    def all_columns_seconds(self, model: str) -> float:
        """Return the time of a model that is trained on all columns in all folds."""
        tuning = self._tuning_seconds(self.n_columns) if model == SVM else 0.0
        return self.n_folds * (tuning + self.training_seconds(model, self.n_columns))

    def training_seconds(self, model: str, k: float) -> float:
        """Return the time to train a model on ``k`` columns."""
        n = self._fold_rows
        if model == "trees":
            return self.forest_seconds(n, k, TREES)
        if model == "boosting":
            n_trees = BOOSTING["max_iter"] * (1 if self.n_classes <= 2 else self.n_classes)
            leaves = min(BOOSTING["max_leaf_nodes"], n / 20)
            return n_trees * (1.5e-5 * leaves + 1.5e-6 * leaves * k + 4e-9 * n * k + 2e-8 * n)
        if model == "cox":  # Newton steps for several penalties and folds
            return 0.1 + 2e-6 * n * min(n, k)
        if model == "ridge":
            return 3e-3 + 4e-9 * n * k * min(n, k)
        return self._svm_seconds(n, k)

    def _tuning_seconds(self, k: float) -> float:
        inner = min(self._fold_rows, INNER_ROWS) * (INNER_FOLDS - 1) // INNER_FOLDS
        return INNER_FOLDS * (len(WIDTHS) + len(COSTS) - 1) * self._svm_seconds(inner, k)

    def _svm_seconds(self, n: int, k: float) -> float:
        """Return the time to train an SVM: its kernel matrix, and the solver."""
        steps = 15 * (SVR_TIMES if self.n_classes == 1 else 1)
        n_pairs = max(1, self.n_classes * (self.n_classes - 1) / 2)
        return 1e-9 * (5e5 + 2e5 * n_pairs + float(n) ** 2 * (steps + 0.2 * k))

    def forest_seconds(self, n: int, k: float, n_trees: int) -> float:
        """Return the time to train a forest of extremely randomised trees on ``k`` columns."""
        n_candidates = 1 + k / 3 if self.n_classes == 1 else np.sqrt(k)
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
        n_classes: int = 2,
        repeats: bool = True,
    ):
        self.steps: list[Planned] = []
        self.budget, self.left, self.repeats = budget, float(budget), repeats
        self.task = task
        most = MOST_CENSORED_ROWS if task == SURVIVAL else MOST_ROWS
        n_classes = n_classes if task == "classification" else 1
        self.costs = Costs(min(n_rows, most), n_units, n_columns, n_folds, sizes, n_classes)
        first = ("cox",) if task == SURVIVAL else ("information", "floating")
        self.paths = [path for path in first if n_rows >= FEWEST_FOR.get(path, 0)]
        self.sizes_of = {"cox" if task == SURVIVAL else "ridge": sizes}
        while self._base() > BASE * budget and self.costs.n_rows >= 2 * FEWEST_ROWS:
            self.costs = self.costs._replace(n_rows=self.costs.n_rows // 2)
        if self.costs.n_rows < n_rows:
            drawn = f"{self.costs.n_rows} of {n_rows}, drawn at random"
            self.steps.append(Planned(ROWS, True, 0.0, drawn))

    def _base(self) -> float:
        """Return the time of the first orders, with the models that suit the number of rows."""
        seconds = sum(self.costs.search_seconds(path) for path in self.paths)
        for model, sizes in self.sizes_of.items():
            seconds += self.costs.model_seconds(model, len(self.paths), sizes)
        if self.task != SURVIVAL and self.costs.n_rows > ROWS_OF["trees"][1]:
            seconds += self.costs.model_seconds("boosting", 1, self._sizes_at("boosting")[-1])
        return seconds

    def _sizes_at(self, model: str) -> list[tuple[int, ...]]:
        """Return the numbers of columns at which a model may be trained, the preferred ones first.

        Without an SVM, boosting is the main model for effects that are not linear.
        """
        every, n_rows = self.costs.sizes, self.costs.n_rows
        alone = n_rows > ROWS_OF[SVM][1]
        few = FEW_SIZES["trees" if alone else model] if model in FEW_SIZES else every
        thin = tuple(size for size in every if size in (*few, every[-1]))
        return [every, thin] if alone and n_rows <= ROWS_OF["trees"][1] else [thin]

    def plan(self) -> AutoPlan:
        """Return the plan.

        It always has the first orders with a linear model. Further steps are added if the budget
        allows.
        """
        costs = self.costs
        (linear,) = self.sizes_of
        for path in self.paths:
            self._take(f"path: {path}", costs.search_seconds(path), "always tried")
        seconds = costs.model_seconds(linear, len(self.paths), costs.sizes)
        self._take(f"model: {linear}", seconds, "always tried")
        everything = [linear] if self._fits_all_columns(linear) else []
        if self.task != SURVIVAL:
            self._add_paths()
            for model in (SVM, "boosting", "trees"):
                if self._add_model(model) and self._fits_all_columns(model):
                    everything.append(model)
        wide = self._wide_sizes(everything)
        n_repeats = self._repeats(self.budget - self.left)
        in_order = tuple(path for path in PATHS if path in self.paths)
        return AutoPlan(
            costs.n_rows, costs.n_folds, n_repeats, in_order, self.sizes_of, wide,
            tuple(everything), costs.n_units, tuple(self.steps),
        )  # fmt: skip

    def _add_paths(self) -> None:
        """Add the order by forest importance, interactions, and orders without near-duplicates."""
        (linear,) = self.sizes_of
        judged = NEW * self.costs.model_seconds(linear, 1, self.costs.sizes)
        further = [path for path in PATHS if path not in (*self.paths, "cox")]
        for path in further:
            seconds = self.costs.search_seconds(path) + judged
            if DISTINCT.get(path, "information") not in self.paths:
                self._skip(f"path: {path}", 0.0, f"needs the order by {DISTINCT[path]}")
            elif self.costs.n_rows < (fewest := FEWEST_FOR.get(path, 0)):
                self._skip(f"path: {path}", 0.0, f"only used for at least {fewest} rows")
            elif path == "interactions" and self.costs.n_columns > SCREENED[path]:
                reason = f"only used for at most {SCREENED[path]} columns"
                self._skip(f"path: {path}", 0.0, reason)
            elif self._fits(f"path: {path}", seconds, 0.5):
                self.paths.append(path)

    def _add_model(self, model: str) -> bool:
        """Add a model at all sizes or at a few, and return whether it was added."""
        costs, (fewest, most) = self.costs, ROWS_OF[model]
        name = f"model: {model}"
        if not fewest <= costs.n_rows <= most:
            bound = f"at most {most}" if costs.n_rows > most else f"at least {fewest}"
            return self._skip(
                name, 0.0, f"only used for {bound} rows, but there are {costs.n_rows}"
            )
        n_paths = len(judged_paths(model, self.paths))
        for sizes in self._sizes_at(model):
            seconds = costs.model_seconds(model, n_paths, sizes)
            if seconds <= self.left:
                break
        if not self._fits(name, seconds):
            return False
        self.sizes_of[model] = sizes
        return True

    def _wide_sizes(self, models: Sequence[str]) -> tuple[int, ...]:
        """Return numbers of columns above 40, if there are more columns and the budget allows."""
        costs = self.costs
        sizes = [size for size in WIDE_SIZES if costs.sizes[-1] < size < costs.n_units]
        if "forest" not in self.paths or not sizes or not models:
            return ()
        seconds = sum(costs.model_seconds(model, 1, sizes) for model in models)
        return tuple(sizes) if self._fits("long lists", seconds) else ()

    def _fits_all_columns(self, model: str) -> bool:
        return self._fits(f"{ALL}: {model}", self.costs.all_columns_seconds(model))

    def _fits(self, name: str, seconds: float, share: float = 1.0) -> bool:
        """Add a step if it takes at most a share of the time left. Return whether it was added."""
        compiled = name in COMPILED
        seconds += LOADING * (compiled and not any(step.name in COMPILED for step in self._tried))
        if seconds > share * self.left:
            left = max(0.0, share * self.left)
            reason = f"needs about {seconds:.2g} s, but {left:.2g} s are left for it"
            return self._skip(name, seconds, reason)
        self._take(name, seconds, "fits into the time left")
        return True

    @property
    def _tried(self) -> list[Planned]:
        return [step for step in self.steps if step.tried]

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
        reason = f"needs about {spent:.2g} s more, but {room:.2g} s are left for repeats"
        self._skip("repeats", spent, reason)
        return 1
