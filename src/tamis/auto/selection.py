"""The selection that tries several ways and says how good the best is."""

from collections.abc import Iterator
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, class_codes, is_int, is_real, target_kind
from tamis._random import seed_of, stream
from tamis.auto.folds import groups_of
from tamis.auto.held_out import (
    AutoOutcome,
    CurvePoint,
    HeldOut,
    LostError,
    gather,
    outcome_of,
    stability_of,
)
from tamis.auto.machine import WIDTH
from tamis.auto.models import estimator_of, width_of
from tamis.auto.plan import ROWS, AutoPlan, Planned, planned
from tamis.auto.rule import Allowed
from tamis.auto.saying import reasons_of, verdict_of
from tamis.auto.truth import Truth
from tamis.auto.work import Work, sample_of, unit_of, varying_units
from tamis.choice.honest import sizes_of
from tamis.choice.rounds import InRounds, Verdict, readable_rounds
from tamis.contract import (
    TASKS,
    Choice,
    Cost,
    Fraction,
    Given,
    Grouping,
    Record,
    Size,
    check_target,
    resolve_choice,
)
from tamis.contract.drawn import rows_drawn
from tamis.evaluation.stability import Stability
from tamis.exceptions import InvalidParameter, InvalidTable, InvalidTarget

#: How much worse a smaller number of columns may be. Without the limit of 5 % one standard error
#: errs 1.13 ± 0.05 times as much on 72 splits of twelve tables, and 1.12 ± 0.05 times on 23 of
#: sixteen others: where few rows lose nearly all, it says little (of 80 rows of wbcd one column was
#: kept, which errs twice as much as seven). A third of one with the limit errs as much as a whole
#: one with it, and keeps 14.4 in place of 14.1 columns in the mean.
SIZES = {"balanced": Allowed(1.0, 0.05), "short": Allowed(1.0), "best": Allowed(0.0)}
#: The clock stops at so many times the budget, but not before so many seconds: a machine that is
#: busy or slow shall come to the same answer, and nobody shall wait for costs that were all wrong.
PATIENCE, LEAST_SECONDS = 3.0, 300.0
#: Targets span more than the first and less than the second: squares of squares, which the spread
#: of losses is made of, stay numbers.
SQUARED = 1e-75, 1e75
#: Rows without which no fold can be made that leaves two.
FEWEST = 4


def _span(y: NDArray[Any]) -> float:
    with np.errstate(over="ignore"):
        return float(np.ptp(np.asarray(y, dtype=float)))


class Auto(InRounds):
    """Try several ways to order the columns, and keep the shortest list that predicts as well.

    The columns are ordered in two ways, inside each of some folds: by the information that they
    share with the target (JMI, forward), and by a forest of extremely randomised trees
    (elimination). On the first 1, 2, 3, 4, 5, 7, 10, 14, 20, 28 and 40 columns of each a ridge
    regression, an RBF machine (whose width inner folds choose) and a forest are trained, which
    answer for the rows that the fold left out. Kept is the smallest number whose mean squared loss
    (for classes that of the probabilities, the Brier score) is within one standard error of the
    least, and at most 5 % above it, with the path and the model that lose least there; that path is
    then walked once more on all rows.

    Rule, models and paths were picked on twelve tables; of the paths, those that were left out (the
    sensitivity of a kernel machine, the information of pairs) had no better error on splits of
    these tables that had not been looked at before.

    The error that is said comes from rows that took no part in the choosing, corrected for having
    taken the best of many: rows are drawn with replacement, the rule chooses on them, and its
    choice is asked for the rows that were not drawn. Where that is no better than a guess without
    columns, nothing is kept, with a warning.

    What is tried follows from the size of the table and ``budget``, by a table of costs and not by
    a clock, so that the answer is the same on every machine; ``plan_`` tells it.

    Parameters
    ----------
    budget : float, default=60
        Seconds of one core that the plan may fill. Information with ridge regression is always
        tried. A clock stops after three times as long, and not before five minutes, with the orders
        that are through.
    size : {"balanced", "short", "best"}, default="balanced"
        How much worse a smaller number of columns may be: one standard error and 5 % at most,
        one standard error, or nothing.
    n_features_to_select : int, float or None, default=None
        The number of columns (or the share of them) to keep, if it is known: order and model are
        then chosen at that number.
    n_folds : int, default=5
    task : {"auto", "classification", "regression"}, default="auto"
        How to read ``y``.
    feature_groups, fixed_features
        Columns that are taken or left together, and units that always stay; see
        :class:`tamis.search.Forward`.
    random_state : int, generator or None, default=None
    n_jobs : int or None, default=None
        Orders and folds at the same time; the result does not depend on it.

    Attributes
    ----------
    plan_ : list of Planned
        What was tried or skipped (``name``, ``tried``, ``seconds`` by the costs, ``reason``).
    path_, model_ : str or None
        What was kept: "information" or "forest", with "ridge", "machine" or "trees".
    estimator_ : estimator
        The model, not yet trained, for the columns that are kept.
    error_, error_all_, error_guess_ : HeldOut
        On rows left out: of the columns kept, corrected as said above; of all columns with the best
        model, corrected likewise (None where that was skipped, and ``error_`` where all are kept);
        of a guess without columns.
    error_lost_ : LostError or None
        How much worse the kept columns are than all, with the standard error of the differences
        row by row; None where all are kept.
    curve_ : list of CurvePoint
        Mean squared loss and its standard error of every path, model and size. Of what was kept it
        is a little too small: it was chosen by it.
    curve_all_ : CurvePoint or None
        The same of all columns, with the model that loses least there.
    stability_ : Stability or None
        How far the folds agree on the columns, by Nogueira's index; None where all are kept.
    n_rows_ : int
        How many of the rows were looked at.
    stopped_ : bool
        Whether the clock cut the plan short.

    Examples
    --------
    >>> from tamis.auto import Auto
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 12))
    >>> y = X[:, 4] + X[:, 9] + rng.normal(size=300)
    >>> auto = Auto(budget=0.5, random_state=0).fit(X, y)
    >>> auto.columns, auto.path_, auto.model_
    ([4, 9], 'information', 'ridge')
    >>> bool(auto.error_.loss < auto.error_guess_.loss)
    True
    """

    targets: ClassVar[frozenset[str]] = TASKS
    counts_places: ClassVar[bool] = True
    fewer: ClassVar[str] = "Then(Ranking(Correlation(), n_features_to_select={}), Auto())"
    quick: ClassVar[str] = "correlation"

    path_: str | None
    model_: str | None
    error_: HeldOut | None
    error_all_: HeldOut | None
    error_guess_: HeldOut | None
    error_lost_: LostError | None
    stability_: Stability | None

    def __init__(
        self,
        budget: float = 60,
        *,
        size: str = "balanced",
        n_features_to_select: Any = None,
        n_folds: int = 5,
        task: str = "auto",
        feature_groups: Any = None,
        fixed_features: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.budget = budget
        self.size = size
        self.n_features_to_select = n_features_to_select
        self.n_folds = n_folds
        self.task = task
        self.feature_groups = feature_groups
        self.fixed_features = fixed_features
        self.random_state = random_state
        self.n_jobs = n_jobs

    # -- what is refused --------------------------------------------------------------------------

    def _check(self) -> None:
        if not (is_real(self.budget) and self.budget > 0):
            raise InvalidParameter(f"Auto needs a budget of seconds above 0, not {self.budget!r}.")
        if self.size not in SIZES:
            raise InvalidParameter(
                f"Auto needs size='balanced', 'short' or 'best', not {self.size!r}. Write "
                "n_features_to_select=5 for a number of columns."
            )
        if not (is_int(self.n_folds) and self.n_folds >= 2):
            raise InvalidParameter(f"Auto needs n_folds of at least 2, not {self.n_folds!r}.")
        asked = self._asked
        if asked is not None and not isinstance(asked, Size | Fraction):
            raise InvalidParameter(
                f"Auto needs n_features_to_select as a number, a share or None, not "
                f"{self.n_features_to_select!r}. Leave it out, write Auto(size='best'), or name a "
                "method for it."
            )

    @property
    def _asked(self) -> Choice | None:
        """The number of columns, where somebody knows it."""
        if self.n_features_to_select is None:
            return None
        return resolve_choice(self.n_features_to_select, type(self).__name__)

    def _unsized(self, bare: Any) -> Any:
        # as of whoever is asked for a number: the sentence that refuses another one names it
        return bare.set_params(n_features_to_select=None)

    def _size(self, n_units: int) -> int | None:
        asked = self._asked
        if isinstance(asked, Size) and not (
            is_int(asked.n_features) and 1 <= asked.n_features <= n_units
        ):
            raise InvalidParameter(
                f"Auto needs n_features_to_select between 1 and {n_units}, the number of columns "
                f"of X, not {asked.n_features!r}. Write an int in that range, a fraction such as "
                "0.5, or leave it out."
            )
        return None if asked is None else asked.size(n_units, type(self).__name__)

    def _check_target(self, y: NDArray[Any] | None) -> None:
        kind = check_target(self, y)
        if y is None:
            raise InvalidTarget(
                "Auto compares predictions with a target, and there is none. Give y, or name a "
                "method that does without."
            )
        if len(y) < FEWEST:
            raise InvalidTable(
                f"Auto needs at least {FEWEST} rows to leave some out, and there are {len(y)} "
                "sample(s). Name a method, such as 'correlation'."
            )
        if kind == "regression" and y.ndim == 1 and (y == y[0]).all():
            raise InvalidTarget(
                f"Auto needs a target that varies, but y is {y[0]!r} in all rows. Check the target "
                "column."
            )
        if kind == "regression" and not SQUARED[0] < (spread := _span(y)) < SQUARED[1]:
            raise InvalidTarget(
                f"Auto squares errors, and y spans {spread:.3g}, of which the square is no number. "
                "Give y in other units."
            )

    def cost(self, n_samples: int, n_features: int) -> Cost | None:
        """By the plan: what it takes, and copies of the table's rows that are looked at."""
        plan = self._planned(n_samples, n_features, n_features, "classification")
        return Cost(1e9 * plan.seconds, 6 * 8.0 * plan.n_rows * n_features)

    # -- the plan and its rounds ------------------------------------------------------------------

    def _planned(self, n_rows: int, n_units: int, n_columns: int, task: str) -> AutoPlan:
        asked = self._size(n_units)
        fixed = 0 if self._units is None else len(self._units.fixed)
        sizes = sizes_of(n_units)[1:] if asked is None else [asked]
        return planned(
            n_rows,
            n_units,
            n_columns,
            budget=self.budget,
            n_folds=min(self.n_folds, n_rows // 2),
            sizes=tuple(size for size in sizes if size > fixed) or (max(fixed, sizes[-1]),),
            task=task,
        )

    def _open(
        self, X: Array, y: NDArray[Any] | None, params: dict[str, Any], done: Record
    ) -> Given:
        params = dict(params)
        self._groups = groups_of(params.pop("groups", None), len(X))
        return super()._open(X, y, params, done)

    def _stages(
        self, X: Array, y: NDArray[Any] | None, seed: int, state: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        assert y is not None
        self._begun, self._stopped = perf_counter(), False
        units = Grouping(X.shape[1]) if self._units is None else self._units
        self._offered = varying_units(X, units)
        if not len(self._offered):
            yield {"rounds": {}, "rest": []}
            return
        task = target_kind(y) if self.task == "auto" else self.task
        columns = units.columns(self._offered)
        plan = self._planned(len(X), len(self._offered), len(columns), task)
        codes = class_codes(y)[1] if task == "classification" else None
        rows = sample_of(codes, len(X), plan.n_rows, stream(seed, "rows"))
        groups = None if self._groups is None else class_codes(self._groups[rows])[1]
        unit = unit_of(y, task)
        self._work = Work(plan, task, units.restricted(self._offered), groups, unit)
        if "rest" not in state:  # what is through has its answer, whatever was compared for it
            with readable_rounds(self):
                self._work.check(state.get("rounds", {}))
        X = X[:, columns] if len(columns) < X.shape[1] else X
        X, y = (X[rows], y[rows]) if len(rows) < len(X) else (X, y)
        yield from super()._stages(X, y if unit == 1 else y / unit, seed, state)

    def _n_rounds(self) -> int:
        return len(self._work.plan.rounds)

    def _round(self, X: Array, y: NDArray[Any] | None, seed: int, index: int) -> list[Any]:
        assert y is not None
        return self._work.round(X, y, seed, index)

    def _usable(self, found: dict[str, list[Any]]) -> dict[str, list[Any]] | None:
        """The rounds of paths that are through all folds, where the clock has run out."""
        if perf_counter() - self._begun <= max(PATIENCE * self.budget, LEAST_SECONDS):
            return None
        n_folds = self._work.plan.n_folds
        n = next(index for index in range(len(found) + 1) if str(index) not in found)
        n -= n % n_folds
        if n == self._n_rounds() or n < 2 * n_folds:  # one path, and all columns beside it
            return None
        self._stopped = True
        return {str(index): found[str(index)] for index in range(n)}

    def _rest(
        self, X: Array, y: NDArray[Any] | None, seed: int, found: list[list[Any]]
    ) -> list[Any]:
        """What is kept, its error, and the order of all columns by its path on all rows."""
        assert y is not None
        work, asked = self._work, self.n_features_to_select is not None
        with readable_rounds(self):
            losses = gather(found, len(X))
        rng = stream(seed, "draws")
        outcome = outcome_of(losses, SIZES[self.size], rng, work.groups, asked)
        # where nothing is kept, the order is what there is to see
        order = work.ordered(outcome.path, X, y, np.arange(len(X)), seed_of(seed, "all"))
        columns = work.units.columns(np.sort(order[: outcome.size]))
        truth = Truth.of(y, work.task, work.groups)
        facts = {
            "n_rows": len(X),
            "n_columns": len(columns),
            "width": width_of(outcome.model, X[:, columns], truth, seed_of(seed, "width")),
            "stopped": self._stopped,
            "task": work.task,
            "seed": seed_of(seed, "estimator"),
        }
        drawn = rows_drawn()
        steps = [] if drawn is None else [[ROWS, True, 0.0, str(drawn)]]
        steps += [list(step) for step in work.plan.steps]
        return [self._offered[order].tolist(), outcome.to_dict(), steps, facts]

    # -- what is read from them -------------------------------------------------------------------

    def _standing(self, n_units: int, found: list[list[Any]], rest: list[Any]) -> Array:
        scores = np.zeros(n_units)
        self._outcome: AutoOutcome | None = None
        self.plan_: list[Planned] = []
        self.path_ = self.model_ = self.estimator_ = self.stability_ = None
        self.error_ = self.error_all_ = self.error_guess_ = self.error_lost_ = None
        self.curve_: list[CurvePoint] = []
        self.curve_all_: CurvePoint | None = None
        self.n_rows_, self.stopped_ = 0, False
        if rest:
            order, outcome, steps, facts = rest
            scores[np.array(order, dtype=np.intp)] = np.arange(len(order), 0, -1.0)
            self.plan_ = [Planned(*step) for step in steps]
            self._read(told := AutoOutcome.from_dict(outcome), facts)
            if told.size:
                offered = np.sort(np.array(order, dtype=np.intp))
                self.stability_ = stability_of(found, told.path, told.size, offered, n_units)
        return scores

    def _read(self, outcome: AutoOutcome, facts: dict[str, Any]) -> None:
        """Set what is known of the answer."""
        self._outcome = outcome
        self.n_rows_, self.stopped_ = int(facts["n_rows"]), bool(facts["stopped"])
        self.error_, self.error_all_ = outcome.error, outcome.error_all
        self.error_guess_, self.curve_ = outcome.error_guess, outcome.curve
        self.error_lost_, self.curve_all_ = outcome.lost, outcome.curve_all
        if not outcome.size:
            return
        self.path_, self.model_ = outcome.path, outcome.model
        n_columns, task = int(facts["n_columns"]), str(facts["task"])
        given = int(facts["seed"]), float(facts.get("width", WIDTH))  # older records have no width
        self.estimator_ = estimator_of(outcome.model, n_columns, task, *given)

    def _verdict(self, scores: Array) -> Verdict:
        if self._outcome is None:
            return Verdict(0, "every column has one value in all rows.")
        asked = self.n_features_to_select is not None
        return verdict_of(self._outcome, self.size, asked, self._counted)

    def _reasons(self) -> list[str]:
        """Its error, and what was tried or skipped."""
        return reasons_of(self)
