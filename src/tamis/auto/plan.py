"""The plan of Auto: what it tries on a table of some size in the seconds that it may take.

The plan follows from rows, columns and the costs below, never from a clock: the same table gets the
same plan on every machine. Seconds are those of one core of an ordinary machine.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tamis.auto.machine import INNER_FOLDS, INNER_ROWS, WIDTHS
from tamis.auto.models import N_TREES as TREES
from tamis.auto.paths import LEAVING, N_TREES, PATHS, SCREENED
from tamis.blocks.survival import SURVIVAL

#: Rows that are looked at, at most: an error of so many is known to 0.7 %, and a forest can still
#: be asked in every fold, without which nothing but lines is seen in a long table.
MOST_ROWS = 5_000
#: Rows of a censored target that are used, at most: their pairs are compared.
MOST_CENSORED_ROWS = 2_000
#: Rows beyond which no kernel machine answers: it takes the square of their number.
MOST_MACHINE_ROWS = 2000
#: Rows below which folds are dealt anew as long as seconds are left, and how often at most: the
#: folds of few rows differ more than the candidates do, and after some their mean has settled.
FEW_ROWS, MOST_REPEATS = 200, 3
#: Share of the budget up to which folds are dealt again: costs are known to a factor, of several
#: classes to a larger one, and what is repeated repeats their error.
REPEATING = 0.55
#: Sizes at which trees answer: they take as long as all else, and care little for a column more.
#: Without the smallest a step of one column (y = x > 0), which no other model sees, would be kept
#: with four others.
TREE_SIZES = (1, 2, 5, 10, 20, 40)
#: Rows below which the sample is not cut further for a table of very many columns.
FEWEST_ROWS = 500


class Planned(NamedTuple):
    """Something that is tried, or not.

    Attributes
    ----------
    name : str
        Such as "path: forest", "model: trees", "all columns: ridge", "repeats" or, where not all
        are looked at, "rows".
    tried : bool
    seconds : float
        What it takes by the costs, on one core.
    reason : str
        Why it is tried or skipped.
    """

    name: str
    tried: bool
    seconds: float
    reason: str


class Round(NamedTuple):
    """One path through the rows that one fold leaves."""

    repeat: int
    path: str
    fold: int


class AutoPlan(NamedTuple):
    """What is tried on a table.

    ``everything`` names the models that are trained on all columns, for comparison; ``trees_at``
    are those of the sizes at which trees answer.
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
        """What is done, in this order: whoever is stopped has the first paths in all folds."""
        paths = [*self.paths[:1], ALL, *self.paths[1:]]
        return [
            Round(repeat, path, fold)
            for repeat in range(self.n_repeats)
            for path in paths
            for fold in range(self.n_folds)
        ]

    @property
    def seconds(self) -> float:
        """How long it takes, by the costs."""
        return sum(step.seconds for step in self.steps if step.tried)

    def models_at(self, size: int) -> tuple[str, ...]:
        """Models that answer for a number of columns."""
        asked = size in self.trees_at
        return tuple(model for model in self.models if model != "trees" or asked)


#: What the plan says of rows that were drawn from more.
ROWS = "rows"
#: The path that takes all columns.
ALL = "all columns"


def tree_sizes(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Those of the sizes at which trees answer; the largest where it is none of them."""
    found = [size for size in sizes if size in TREE_SIZES]
    return tuple(sorted({*found, sizes[-1]}))


class Costs(NamedTuple):
    """Seconds of what can be tried on a table of some rows and units."""

    n_rows: int
    n_units: int
    n_columns: int
    n_folds: int
    sizes: tuple[int, ...]
    task: str

    @property
    def _fold_rows(self) -> int:
        return self.n_rows - self.n_rows // self.n_folds

    def walks(self, path: str) -> float:
        """Of a search in every fold, and one on all rows."""
        return (self.n_folds + 1) * self._walk(path)

    def _walk(self, path: str) -> float:
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

    def judged(self, model: str, n_paths: int = 1, sizes: Sequence[int] | None = None) -> float:
        """Of a model at some sizes, by default its own, in every fold of some paths."""
        if sizes is None:
            sizes = tree_sizes(self.sizes) if model == "trees" else self.sizes
        wide = self.n_columns / max(1, self.n_units)
        return n_paths * self.n_folds * sum(self._trained(model, size * wide) for size in sizes)

    def everything(self, model: str) -> float:
        """Of a model on all columns in every fold."""
        return self.n_folds * self._trained(model, self.n_columns)

    def _trained(self, model: str, k: float) -> float:
        n = self._fold_rows
        if model == "trees":
            return forest_seconds(n, k, TREES, self.task)
        if model == "cox":  # Newton steps of some penalties in some folds
            return 0.1 + 2e-6 * n * min(n, k)
        if model == "ridge":
            return 3e-3 + 4e-9 * n * k * min(n, k)
        inner = min(n, INNER_ROWS) * (INNER_FOLDS - 1) // INNER_FOLDS
        tunings = INNER_FOLDS * len(WIDTHS) * machine_seconds(inner, int(k))
        # of a small machine half of the time are checks, which tunings do without
        return 2 * machine_seconds(n, int(k)) + tunings


def machine_seconds(n: int, k: int) -> float:
    """Seconds of training a kernel machine: about those of its kernel matrix."""
    return 1e-9 * (1.2e6 + 0.8 * float(n) ** 2 * k)


def forest_seconds(n: int, k: float, n_trees: int, task: str) -> float:
    """Of training a forest of extremely randomised trees on some columns."""
    looked_at = np.sqrt(k) if task == "classification" else 1 + k / 3
    return float(n_trees * (8e-4 + 2.5e-8 * n * np.log2(max(n, 2)) * looked_at))


class Planning:
    """The plan on its way: what is left of the seconds, and what they were given to.

    ``repeats`` allows folds to be dealt more than once.
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
        return self.costs.walks(path) + self.costs.judged(model)

    def plan(self) -> AutoPlan:
        """Plan the first order and the linear model always; then what fits, most useful first."""
        costs = self.costs
        path, model = self.first
        self._take(f"path: {path}", self._base(), "always tried, with a linear model")
        everything = [model] if self._fits(f"{ALL}: {model}", costs.everything(model)) else []
        paths, models = [path], [model]
        if costs.task != SURVIVAL:
            self._add_others(paths, models)
        for other in models[1:]:
            if self._fits(f"{ALL}: {other}", costs.everything(other)):
                everything.append(other)
        trees_at = self._trees_at(models, len(paths))
        n_repeats = self._repeats(self.budget - self.left)
        in_order = tuple(path for path in PATHS if path in paths)
        return AutoPlan(
            costs.n_rows, costs.n_folds, n_repeats, in_order, tuple(models), tuple(everything),
            costs.sizes, trees_at, tuple(self.steps),
        )  # fmt: skip

    def _add_others(self, paths: list[str], models: list[str]) -> None:
        """Add the kernel machine, the forest's order and the forest, if they fit."""
        n_rows = self.costs.n_rows
        if n_rows > MOST_MACHINE_ROWS:
            reason = f"for at most {MOST_MACHINE_ROWS} rows, and there are {n_rows}"
            self._skip("model: machine", 0.0, reason)
        elif self._fits("model: machine", self.costs.judged("machine")):
            models.append("machine")
        in_turn = "machine" in models  # otherwise some other model must see more than a line
        if not in_turn and self._fits("model: trees", self.costs.judged("trees")):
            models.append("trees")
        judged = sum(self.costs.judged(model) for model in models)
        if self._fits("path: forest", self.costs.walks("forest") + judged):
            paths.append("forest")
        if in_turn and self._fits("model: trees", self.costs.judged("trees", len(paths))):
            models.append("trees")

    def _trees_at(self, models: list[str], n_paths: int) -> tuple[int, ...]:
        """Sizes at which trees answer: all, where nothing else sees more than a line.

        Otherwise three columns that matter only together would be kept with two others.
        """
        few = tree_sizes(self.costs.sizes)
        more = [size for size in self.costs.sizes if size not in few]
        if not more or "trees" not in models or "machine" in models:
            return few
        seconds = self.costs.judged("trees", n_paths, more)
        return self.costs.sizes if self._fits("model: trees at every size", seconds) else few

    def _fits(self, name: str, seconds: float) -> bool:
        if seconds > self.left:
            reason = f"takes about {seconds:.2g} s, and {max(0.0, self.left):.2g} s are left"
            return self._skip(name, seconds, reason)
        self._take(name, seconds, "fits into the seconds left")
        return True

    def _take(self, name: str, seconds: float, reason: str) -> None:
        self.left -= seconds
        self.steps.append(Planned(name, True, seconds, reason))

    def _skip(self, name: str, seconds: float, reason: str) -> bool:
        self.steps.append(Planned(name, False, seconds, reason))
        return False

    def _repeats(self, spent: float) -> int:
        """Return the number of times that the folds are dealt."""
        if not self.repeats:
            return 1
        if self.costs.n_rows >= FEW_ROWS:
            reason = f"repeated cross-validation is only used below {FEW_ROWS} rows"
            self._skip("repeats", 0.0, reason)
            return 1
        room = max(0.0, REPEATING * self.budget - spent)
        n_repeats = int(min(MOST_REPEATS, 1 + room // max(spent, 1e-9)))
        if n_repeats > 1:
            self._take("repeats", (n_repeats - 1) * spent, f"{n_repeats} times")
            return n_repeats
        reason = f"takes about {spent:.2g} s more, and {room:.2g} s are kept for it"
        self._skip("repeats", spent, reason)
        return 1
