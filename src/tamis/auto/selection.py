"""Auto: the selection that tries several orders of the columns and several models."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils.class_weight import compute_class_weight

from tamis._arrays import Array, Subset, class_codes, is_int, target_kind
from tamis._checks import Constraints, check_parameters, number, one_of
from tamis._seeds import Seed, seed_of, stream
from tamis.auto.candidate_choice import Allowed
from tamis.auto.fold_paths import Work, as_classes, sample_of, unit_of, varying_units
from tamis.auto.held_out import (
    NO_OUTCOME,
    AutoOutcome,
    HeldOut,
    decide,
    gather,
    stability_of,
)
from tamis.auto.lists import ColumnList, named, similar_units
from tamis.auto.machine import KernelTuning
from tamis.auto.measures import Measures, check_scoring, measures_of
from tamis.auto.models import estimator_of, tuning_of
from tamis.auto.orders import LEVEL, Order, has_interaction
from tamis.auto.plan import ROWS, SIZES, AutoPlan, Planned, Planning
from tamis.auto.price_limits import PriceLimits, cheapest_price
from tamis.auto.sentences import reasons_of, verdict_of
from tamis.auto.splits import balanced_folds, check_cv, make_splits
from tamis.auto.target import Truth, describe_target, reads_as_numbers
from tamis.blocks.dispatch import rows_drawn
from tamis.blocks.survival import SURVIVAL
from tamis.choice import CostLimit
from tamis.choice.front import PricedList, undominated
from tamis.contract import Choice, Record
from tamis.contract.choice import Fraction, Size, resolve_choice
from tamis.contract.costs import FeatureCosts, format_price
from tamis.contract.criterion import TASKS, check_target
from tamis.contract.embedded import Given
from tamis.contract.units import Fixed, Grouping, Groups
from tamis.exceptions import InvalidParameter, InvalidTable, InvalidTarget
from tamis.meta.conditional_test import pool_tests, read_tests
from tamis.meta.invariant_selection import check_environments
from tamis.meta.repeats import InRounds, Verdict, readable_rounds
from tamis.validation.splits import Fold, read_row_weights
from tamis.validation.stability import Stability

#: Limits for how much worse a smaller candidate may be, for each value of ``size``.
RULES = {
    "best": Allowed(0.0),
    "balanced": Allowed(2.0, 0.05, 0.2, 0.01, SIZES[-1]),
    "short": Allowed(3.0, 0.15, 0.2, 0.02, SIZES[-1]),
}
#: A fit is stopped after ``PATIENCE`` times the budget, but not before ``LEAST_SECONDS`` seconds.
#: The limit is generous, so that a busy or slow computer returns the same result.
PATIENCE, LEAST_SECONDS = 3.0, 300.0
#: Allowed range of a target's values. Outside it, the fourth powers that standard errors need
#: overflow or underflow.
SQUARED = 1e-75, 1e75
#: Minimum number of rows, which is enough for two folds of two rows each.
FEWEST = 4
#: Orders that are finally computed again on all rows, and the maximum number of table entries for
#: this. It is fast for these orders, because their statistics are sums over rows.
ADDED_UP, MOST_VALUES = ("information", "floating", "distinct information"), 10**7
#: Maximum number of rows for the permutation test of interactions.
TESTED_ROWS = 5_000


class OwnTable:
    """Table and target that are not sent to other processes."""

    def __init__(self, X: Any = None, y: Any = None):
        self.X, self.y = X, y

    def __reduce__(self) -> Any:
        return OwnTable, ()


@dataclass(eq=False, repr=False)
class Auto(InRounds):
    """Select the smallest set of columns that predicts about as well as the best one.

    In each fold, the columns are ordered in several ways: by joint mutual information with the
    target (forward selection with JMI, corrected for chance), by the importances of a forest of
    extremely randomised trees (recursive elimination), and by a floating search for the best
    least-squares fit. In two more orders, by joint mutual information and by the forest,
    near-duplicates (absolute correlation above 0.9) come last. If a pair of columns has a
    significant interaction, there is also an order by interactions.

    A ridge regression, an RBF SVM, a forest and gradient boosting are trained on the first 1, 2, 3,
    4, 5, 6, 8, 10, 14, 20, 28 and 40 columns of the orders, and predict the held-out rows. For
    ``best_``, models are also trained on more columns of the forest order and on all columns. For a
    censored target, the columns are ordered by the Cox score, and the model is a Cox regression
    with a ridge penalty. The loss is then the negative log partial likelihood within test folds,
    and the concordance is reported as well.

    Auto selects the smallest number of columns whose loss is close to the lowest loss. The
    difference must meet three limits:

    * two standard errors of the difference (paired by rows);
    * 5 % of the lowest loss, or 1 % of the best candidate's gain over the baseline;
    * a fifth of that gain. The baseline uses no columns.

    Losses are first smoothed over neighbouring numbers of columns. Two further lists come from the
    same losses: ``best_`` has the lowest loss, and ``short_`` has fewer columns than the default.

    The loss is the mean squared error, or the Brier score for classes. Finally, the best order at
    that number is computed again on all rows.

    The reported error comes from held-out rows and is corrected for the selection among many
    candidates. For this correction, the rule is applied to bootstrap draws of the rows, and the
    selected candidate is measured on the rows outside the draw. If this error is not significantly
    below the error of the baseline (at the 5 % level), nothing is selected and a warning is issued.
    If candidates are compared by a score that depends on ranks, such as AUC, this test uses the
    squared loss.

    The orders and models that are tried depend on the size of the table, on ``budget`` and on
    estimated costs, not on measured time. The result is therefore the same on every computer.
    ``plan_`` lists them.

    Parameters
    ----------
    budget : float, default=35
        Time that the plan may take, in estimated seconds on one core. Mutual information with ridge
        regression is always tried. If a fit takes more than three times the budget and more than
        five minutes, it is stopped, and only the completed folds are used.
    size : {"balanced", "short", "best"}, default="balanced"
        Which list is selected. "balanced" is the rule described above. "short" allows larger
        differences: three standard errors, and 15 % of the loss or 2 % of the gain. "best" selects
        the candidate with the lowest loss.
    n_features_to_select : int, float or None, default=None
        Number or share of columns to select. If it is given, Auto chooses only the order and the
        model. By default, the rule above also chooses the number.
    scoring : str, scorer or None, default=None
        The score by which candidates are compared: "roc_auc", "roc_auc_ovr", "average_precision",
        "neg_log_loss", "neg_brier_score", "r2", "neg_mean_squared_error" or
        "neg_mean_absolute_error". The default is the squared loss. Any other score of scikit-learn,
        such as "accuracy" or "f1", is only reported. Candidates are then compared by the squared
        loss, because a score that counts rows is too coarse to compare similar candidates.
    cv : int, splitter or list of (train, test), default=5
        Number of folds, a splitter of scikit-learn, or the splits themselves. A number means
        stratified folds; with fewer than 200 rows, the cross-validation is run up to three times.
        For rows in time order write ``TimeSeriesSplit()``.
    class_weight : dict, "balanced" or None, default=None
        Weight of the rows of each class, in training and in all errors.
    task : {"auto", "classification", "regression"}, default="auto"
        How ``y`` is interpreted. "auto" reads equally spaced floating-point numbers as a numeric
        target.
    confirm : bool, default=False
        Whether to test the columns given all others, see
        :class:`~tamis.meta.ConditionalTest`. The selected order and model run again in fresh folds.
        q-values are corrected over all columns. This is not a test of the selected list, which was
        chosen on the same rows.
    feature_groups, fixed_features
        Columns that are selected or dropped together, and units (columns or groups) that are always
        selected; see :class:`tamis.search.Forward`.
    feature_costs : FeatureCosts or None, default=None
        Prices of the columns. ``cost_`` is the price of the selection. Prices change the selection
        only if ``cost_limit`` is given.
    cost_limit : float, str or None, default=None
        The greatest price of the selected columns, or a share of the full price such as "10%".
        Price limits then replace the numbers of columns: 2.5, 5, 10, 20, 35, 50, 70 and 100 % of
        the full price, and this limit. Within each limit, the first columns of an order that fit
        are selected, at most 40. Further orders sort the columns by 1 / rank, divided by the price.
        The rule above then selects the lowest price limit instead of the smallest number.
    random_state : int, generator or None, default=None
        Seed of the folds, the models and the bootstrap draws.
    n_jobs : int or None, default=None
        Number of processes, for rankings of the columns and for cross-validation folds. The result
        does not depend on it.

    Attributes
    ----------
    plan_ : list of Planned
        The steps that were tried or skipped: ``name``, ``tried``, estimated ``seconds``,
        ``reason``.
    path_, model_ : str or None
        The selected order ("information", "forest", "floating", "distinct information",
        "distinct forest", "interactions" or "cox") and model ("ridge", ``"machine"`` for the SVM,
        "trees" for the forest, "boosting" or "cox").
    estimator_ : estimator
        The model, not yet trained, for the selected columns.
    best_, short_ : ColumnList or None
        The list with the lowest loss, and the short list, for any value of ``size``. None if
        nothing is selected or ``n_features_to_select`` was given.
    stands_for_ : dict of column to list of columns
        For each selected column, the columns that are not selected and have an absolute correlation
        above 0.9 with it, the most similar first. Each column is listed only once, with the
        selected column that is most similar to it.
    error_, error_all_, error_guess_ : HeldOut
        Errors on held-out rows of the selected columns, of all columns with the best model, and of
        the baseline. The first two are corrected as described above. ``error_all_`` is None if
        models on all columns were skipped. It equals ``error_`` if all columns are selected.
    significant_ : bool
        Whether the selected columns beat the baseline at the 5 % level. It can be False only if
        ``n_features_to_select`` was given.
    error_lost_ : LostError or None
        Difference between the errors of the selected columns and of all columns, with the standard
        error of paired differences. None if all columns are selected.
    curve_ : list of CurvePoint
        Loss and standard error of every order, model and number of columns. The loss of the
        selected candidate is optimistic, because it was selected by this loss.
    curve_all_ : CurvePoint or None
        Loss and standard error of the best model on all columns.
    stability_ : Stability or None
        Stability of the selected columns across folds, by Nogueira's index. None if all columns are
        selected.
    lists_, fold_lists_ : dict of int to array, dict of int to list of arrays
        The units (columns or groups) that the selected order selects on all rows and in each fold,
        for each number that was compared.
    n_rows_ : int
        Number of rows that were used.
    stopped_ : bool
        Whether the time limit stopped the fit early.
    front_ : list of PricedList
        With ``cost_limit``, the lists that are better than all cheaper lists, with their prices.
        ``loss`` is the error rate for classes, the root mean squared error for numbers, or the loss
        of a censored target, corrected as described above. ``blind_loss`` is the same error if the
        orders per price are not used.
    environment_errors_ : dict of label to HeldOut
        If ``fit`` got ``environments``: the error in each environment of a model that was trained
        on all other environments. The columns are ordered again without that environment.
    p_values_, q_values_, effects_, effect_errors_, found_in_ : array or None
        The conditional test of each unit, with ``confirm=True``; see
        :class:`~tamis.meta.ConditionalTest`.

    Examples
    --------
    >>> from tamis.auto import Auto
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 12))
    >>> y = X[:, 4] + X[:, 9] + rng.normal(size=300)
    >>> auto = Auto(budget=0.5, random_state=0).fit(X, y)
    >>> auto.columns, auto.path_, auto.model_
    ([4, 9], 'floating', 'ridge')
    >>> bool(auto.error_.loss < auto.error_guess_.loss)
    True
    """

    _constraints: ClassVar[Constraints] = {
        "budget": number(above=0),
        "size": one_of("balanced", "short", "best"),
        "confirm": one_of(True, False),
    }
    targets: ClassVar[frozenset[str]] = TASKS | {SURVIVAL}
    counts_places: ClassVar[bool] = True
    row_labels: ClassVar[tuple[str, ...]] = ("groups", "environments")
    fewer: ClassVar[str] = "Then(Ranking(Correlation(), n_features_to_select={}), Auto())"

    budget: float = 35
    _: KW_ONLY
    size: str = "balanced"
    n_features_to_select: Any = None
    scoring: str | Callable[..., Any] | None = None
    cv: int | BaseCrossValidator | Iterable[Any] = 5
    class_weight: dict[Any, float] | str | None = None
    confirm: bool = False
    task: str = "auto"
    feature_groups: Groups = None
    fixed_features: Fixed = None
    feature_costs: FeatureCosts | None = None
    cost_limit: float | str | None = None
    random_state: Seed = None
    n_jobs: int | None = None

    # -- checks -----------------------------------------------------------------------------------

    def _check(self) -> None:
        check_cv(self.cv)
        check_scoring(self.scoring)
        asked = self._given_size
        if asked is not None and not isinstance(asked, Size | Fraction):
            raise InvalidParameter(
                f"Auto needs n_features_to_select as a number, a share or None, not "
                f"{self.n_features_to_select!r}. Leave it out, write Auto(size='best'), or name a "
                "method."
            )
        if self.cost_limit is None:
            return
        check_parameters(CostLimit(self.cost_limit))
        if asked is not None:
            raise InvalidParameter(
                "Auto needs either n_features_to_select or cost_limit, got both. Leave one of them "
                "out."
            )

    def _check_units(self, grouping: Grouping) -> None:
        if self.cost_limit is not None:
            CostLimit(self.cost_limit).check_units(grouping)

    @property
    def _given_size(self) -> Choice | None:
        if self.n_features_to_select is None:
            return None
        return resolve_choice(self.n_features_to_select, type(self).__name__)

    def _size(self, n_units: int) -> int | None:
        asked = self._given_size
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
                "Auto needs a target, and y is None. Pass y, or name a method that needs no target."
            )
        if len(y) < FEWEST:
            raise InvalidTable(
                f"Auto needs at least {FEWEST} rows for cross-validation, got {len(y)} sample(s). "
                "Name a method, such as 'correlation'."
            )
        if y.ndim > 1:
            raise InvalidTarget(
                f"Auto needs one target, but y has {y.shape[1]} columns. Run a selection "
                "for each, or name a method that takes several, such as "
                "'RecursiveElimination(Importances(Ridge()))'."
            )
        if kind == "regression" and (y == y[0]).all():
            raise InvalidTarget(
                f"Auto needs a target that varies, but y is {y[0]!r} in all rows. Check the target "
                "column."
            )
        with np.errstate(over="ignore"):
            spread = np.ptp(np.asarray(y, dtype=float)) if kind == "regression" else 1.0
        if not SQUARED[0] < spread < SQUARED[1]:
            raise InvalidTarget(
                "Auto needs y on a scale whose squares neither overflow nor underflow, but y spans "
                f"{spread:.3g}. Convert y to other units."
            )

    def cost(self, n_samples: int, n_features: int) -> float | None:
        """Estimate the memory in bytes for copies of the rows that are used."""
        plan = self._plan(n_samples, n_features, n_features, "classification")
        whole = min(n_samples * n_features, MOST_VALUES) if plan.n_rows < n_samples else 0
        return 8.0 * (6 * plan.n_rows * n_features + 4 * whole)

    # -- the plan and its folds -------------------------------------------------------------------

    def _plan(
        self, n_rows: int, n_units: int, n_columns: int, task: str, n_classes: int = 2
    ) -> AutoPlan:
        asked = self._size(n_units)
        fixed = len(self._units.fixed)
        sizes = sorted({min(size, n_units) for size in SIZES}) if asked is None else [asked]
        planning = Planning(
            n_rows,
            n_units,
            n_columns,
            budget=self.budget,
            n_folds=self._n_folds(n_rows),
            sizes=tuple(size for size in sizes if size > fixed) or (max(fixed, sizes[-1]),),
            task=task,
            n_classes=n_classes,
            repeats=is_int(self.cv),
        )
        plan = planning.plan()
        return plan if asked is None else plan._replace(wide=())

    def _n_folds(self, n_rows: int) -> int:
        cv: Any = self.cv
        if is_int(cv):
            return int(min(cv, n_rows // 2))
        if isinstance(cv, list | tuple):
            return len(cv)
        try:
            groups = self._row_codes("groups")
            return int(cv.get_n_splits(np.zeros((n_rows, 1)), None, groups))
        except (TypeError, ValueError):  # cv needs the target; 5 is enough to estimate the time
            return 5

    def _open(
        self, X: Array, y: NDArray[Any] | None, params: dict[str, Any], done: Record
    ) -> Given:
        params = dict(params)
        weights = params.pop("sample_weight", None)
        self._weights = read_row_weights("Auto", weights, len(X), FEWEST)
        given = super()._open(X, y, params, done)
        self._check_further(y)
        return given

    def _check_further(self, y: NDArray[Any] | None) -> None:
        """Refuse environments or a test for targets and weights that they do not support."""
        environments = self._labels["environments"]
        if environments is not None:
            check_environments("Auto", environments)
        asked = [("environments", environments is not None), ("confirm", self.confirm)]
        names = [name for name, given in asked if given]
        if names and y is not None and y.dtype.names is not None:
            raise InvalidTarget(
                f"Auto needs a target of classes or numbers for {names[0]}, but y is censored. "
                f"Leave {names[0]} out."
            )
        if self.confirm and (self._weights is not None or self.class_weight is not None):
            raise InvalidParameter(
                "Auto cannot use weights with confirm=True. Leave out confirm or the weights."
            )

    def _stages(
        self, X: Array, y: NDArray[Any] | None, seed: int, state: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        assert y is not None
        self._begun, self._stopped = perf_counter(), False
        units = self._units
        self._offered = varying_units(X, units)
        if not len(self._offered):
            yield {"rounds": {}, "rest": []}
            return
        task = self._task(y)
        columns = units.columns(self._offered)
        strata = Truth.of(y, task).strata
        n_classes = 1 if strata is None else len(np.unique(strata))
        offered, priced = units.restricted(self._offered), None
        if self.cost_limit is not None:
            priced = PriceLimits.of(self.cost_limit, offered)
            if not priced.most:
                yield {"rounds": {}, "rest": []}
                return
        plan = self._plan(len(X), len(self._offered), len(columns), task, n_classes)
        rows = sample_of(strata, len(X), plan.n_rows, stream(seed, "rows"))
        X, n_rows = X[:, columns] if len(columns) < X.shape[1] else X, len(X)
        self._whole = OwnTable(X, y) if len(rows) < n_rows else OwnTable()
        X, y = (X[rows], y[rows]) if len(rows) < n_rows else (X, y)
        if "interactions" in plan.paths and "rest" not in state:
            step = max(1, len(X) // TESTED_ROWS)
            read = as_classes(y[::step]) if task == "classification" else y[::step]
            if not has_interaction(X[::step], read, task, seed_of(seed, "interactions")):
                plan = without_interactions(plan)
        unit = unit_of(y, task)
        truth = self._truth(y if unit == 1 else y / unit, task, rows)
        splits = self._splits(plan, y, truth, rows, n_rows, seed)
        plan = plan._replace(n_folds=len(splits) // plan.n_repeats)
        self._rows = rows
        plan = plan if priced is None else priced.planned(plan)
        self._work = Work(plan, task, offered, truth, splits, unit, priced)
        self._measures = self._choose_measures(y, truth)
        if "rest" not in state:  # the record of a finished fit contains its result
            with readable_rounds(self):
                self._work.check(state.get("rounds", {}))
        for stage in super()._stages(X, y if unit == 1 else y / unit, seed, state):
            yield _without_predictions(stage) if "rest" in stage else stage
        self._whole = OwnTable()

    def _task(self, y: NDArray[Any]) -> str:
        if y.dtype.names is not None:
            return SURVIVAL
        if self.task != "auto":
            return self.task
        return "regression" if reads_as_numbers(y) else target_kind(y)

    def _truth(self, y: NDArray[Any], task: str, rows: Any) -> Truth:
        """Return the target with groups and weights. The weights include class weights."""
        groups = self._row_codes("groups")
        groups = None if groups is None else class_codes(groups[rows])[1]
        weights = None if self._weights is None else self._weights[rows]
        if self.class_weight is not None and task != "classification":
            raise InvalidParameter(
                "Auto needs classes for class_weight, but y is numeric. Leave class_weight out."
            )
        return Truth.of(y, task, groups, self._row_weights(y, weights))

    def _row_weights(self, y: NDArray[Any], weights: Array | None) -> Array | None:
        if self.class_weight is not None:
            labels, codes = class_codes(y)
            try:
                by_class = compute_class_weight(
                    self.class_weight, classes=labels, y=y, sample_weight=weights
                )
            except ValueError as error:
                raise InvalidParameter(f"Auto cannot use class_weight: {error}") from error
            weights = by_class[codes] * (1.0 if weights is None else weights)
        if weights is not None:  # scaled to a mean of 1, so that penalties keep their meaning
            weights = weights / weights.mean()
        return weights

    def _choose_measures(self, y: NDArray[Any], truth: Truth) -> Measures:
        if truth.codes is None:
            return measures_of(self.scoring, self._work.task, None, None)
        counts = np.bincount(truth.codes, truth.weights)
        return measures_of(self.scoring, self._work.task, class_codes(y)[0], counts)

    def _splits(
        self, plan: AutoPlan, y: NDArray[Any], truth: Truth, rows: Any, n_rows: int, seed: int
    ) -> list[Fold]:
        """Return the folds of every repeat, or the splits of a user's ``cv``."""
        if not is_int(self.cv):
            return make_splits(self.cv, y, truth.groups, rows, n_rows, seed_of(seed, "folds"))
        given = truth.strata, len(y), truth.groups, plan.n_folds
        return [
            fold
            for repeat in range(plan.n_repeats)
            for fold in balanced_folds(*given, seed_of(seed, "folds", repeat))
        ]

    def _n_rounds(self) -> int:
        return len(self._work.splits)

    def _round(self, X: Array, y: NDArray[Any] | None, seed: int, index: int) -> list[Any]:
        assert y is not None
        # the data were checked before, and checks take half the time of a small SVM
        with config_context(assume_finite=True, skip_parameter_validation=True):
            return self._work.round(X, y, seed, index)

    def _usable(self, found: dict[str, list[Any]]) -> dict[str, list[Any]] | None:
        """Return the completed folds if the time limit is reached, else None."""
        if perf_counter() - self._begun <= max(PATIENCE * self.budget, LEAST_SECONDS):
            return None
        n = next(index for index in range(len(found) + 1) if str(index) not in found)
        if n == self._n_rounds() or n < 2:
            return None
        self._stopped = True
        return {str(index): found[str(index)] for index in range(n)}

    def _rest(
        self, X: Array, y: NDArray[Any] | None, seed: int, found: list[list[Any]]
    ) -> list[Any]:
        """Return the selection, its error, and the order of all columns computed on all rows."""
        assert y is not None
        work = self._work
        with readable_rounds(self):
            predicted = gather(found, work.truth, work.plan.n_units, work.unit)
        truth = work.truth._replace(values=work.unit * work.truth.values)
        asked = None
        if self.n_features_to_select is not None:
            asked = min(self._size(len(self._offered)) or 1, work.units.n_units)
            asked = max(asked, len(work.units.fixed))
        rng = stream(seed, "draws")
        most = None if work.priced is None else work.priced.most
        outcome = decide(predicted, truth, self._measures, RULES, self.size, rng, asked, most)
        paths = {outcome.path, *(one.path for one in outcome.lists.values())}
        if work.priced is not None:
            paths = {*work.plan.paths}
        orders = self._final_orders(sorted(paths), X, y, seed_of(seed, "all"))
        # the order is reported even if nothing is selected
        order = orders[outcome.path].completed(outcome.size)
        selected = np.sort(orders[outcome.path].first(outcome.size))
        lists: dict[str, Any] = {}
        for name, one in outcome.lists.items():
            units = np.sort(orders[one.path].first(one.size))
            columns = work.units.columns(units)
            tuning = tuning_of(one.model, X[:, columns], work.truth, seed_of(seed, "width"))
            lists[name] = [self._offered[units].tolist(), len(columns), list(tuning)]
        facts: dict[str, Any] = {
            "n_rows": len(X),
            "lists": lists,
            "stopped": self._stopped,
            "task": work.task,
            "target": describe_target(y, work.task, self.task),
            "seed": seed_of(seed, "estimator"),
            "stands_for": [
                [int(self._offered[unit]), self._offered[others].tolist()]
                for unit, others in similar_units(X, work.units, selected).items()
            ],
        }
        facts |= self._further(outcome, X, y, seed)
        facts |= self._of_sizes(outcome, orders)
        if work.priced is not None:
            outcome = _sized(outcome, orders, work.priced)
        drawn = rows_drawn()
        steps = [] if drawn is None else [[ROWS, True, 0.0, str(drawn)]]
        steps += [list(step) for step in work.plan.steps]
        return [self._offered[order].tolist(), outcome.to_dict(), steps, facts]

    def _final_orders(
        self, paths: list[str], X: Array, y: NDArray[Any], seed: int
    ) -> dict[str, Order]:
        """Return orders on the rows in use, or on all rows if that is fast."""
        work, whole = self._work, self._whole
        if whole.X is None or work.truth.weights is not None:
            return work.orders(paths, X, y, np.arange(len(X)), seed)
        step = -(-whole.X.size // MOST_VALUES)
        own = [path for path in paths if path in ADDED_UP]
        rest = [path for path in paths if path not in ADDED_UP]
        rows = np.arange(0, len(whole.X), step)
        found = work.orders(own, whole.X, whole.y, rows, seed)
        return found | work.orders(rest, X, y, np.arange(len(X)), seed)

    def _of_sizes(self, outcome: AutoOutcome, orders: dict[str, Order]) -> dict[str, Any]:
        """Return the lists of the selected order by size, and the lists of the price front.

        With price limits, lists are looked up by the position of their limit. If several limits
        give the same number of units, the list with the lowest loss is used.
        """
        mine = orders[outcome.path]

        def listed(order: Order, size: int) -> list[int]:
            units: list[int] = self._offered[order.first(size)].tolist()
            return units

        if self._work.priced is None:
            sizes = self._work.plan.sizes
            numbers = {str(size): size for size in sizes}
            return {"by_size": {n: listed(mine, int(n)) for n in numbers}, "numbers": numbers}
        points = [point for point in outcome.curve if point.path == outcome.path]
        points.sort(key=lambda point: (point.loss, point.size), reverse=True)
        numbers = {str(len(mine.first(point.size))): point.size for point in points}
        return {
            "by_size": {n: listed(mine, number) for n, number in numbers.items()},
            "numbers": numbers,
            "limit": outcome.size,
            "front": [
                [listed(orders[point.path], point.size), *point[2:]] for point in outcome.front
            ],
        }

    def _further(
        self, outcome: AutoOutcome, X: Array, y: NDArray[Any], seed: int
    ) -> dict[str, Any]:
        """Return the error in each environment and the conditional tests, if requested."""
        found: dict[str, Any] = {}
        work, chosen = self._work, (outcome.path, outcome.model, outcome.size)
        if (environments := self._labels["environments"]) is not None and outcome.size:
            labels, codes = environments
            errors = work.elsewhere(*chosen, X, y, codes[self._rows], seed)
            pairs = zip(labels.tolist(), errors, strict=True)
            found["environments"] = [[label, *error] for label, error in pairs]
        if self.confirm and outcome.size:
            tuning = tuning_of(outcome.model, X, work.truth, seed_of(seed, "width"))
            products = work.tests(outcome, X, y, tuning, seed)
            products = [[rows, self._offered[units], R] for rows, units, R in products]
            given = self._units.n_units, len(X), 1, work.truth.groups
            found["tests"] = pool_tests(products, *given)
        return found

    # -- the result -------------------------------------------------------------------------------

    def _standing(self, n_units: int, found: list[list[Any]], rest: list[Any]) -> Array:
        scores = np.zeros(n_units)
        nothing: list[Any] = [[], None, [], {}]  # if no column varies
        numbers, plain, steps, facts = rest or nothing
        order: Subset = np.array(numbers, dtype=np.intp)
        scores[order] = np.arange(len(order), 0, -1.0)
        self._outcome = None if plain is None else AutoOutcome.from_dict(plain)
        outcome = self._outcome or NO_OUTCOME
        self.plan_ = [Planned(*step) for step in steps]
        self.n_rows_, self.stopped_ = facts.get("n_rows", 0), facts.get("stopped", False)
        self.significant_, self.error_lost_ = outcome.found, outcome.lost
        self.error_: HeldOut | None = outcome.error
        self.error_all_, self.error_guess_ = outcome.error_all, outcome.error_guess
        self.curve_, self.curve_all_ = outcome.curve, outcome.curve_all
        self.environment_errors_ = {
            label: HeldOut(*numbers) for label, *numbers in facts.get("environments", ())
        }
        self._set_tests(facts.get("tests"))
        self._target = facts.get("target", "")
        self.path_: str | None = None
        self.model_: str | None = None
        self.estimator_: Any = None
        self.stability_: Stability | None = None
        self.best_: ColumnList | None = None
        self.short_: ColumnList | None = None
        self.stands_for_: dict[Any, list[Any]] = {}
        self.front_: list[PricedList] = self._front(facts.get("front", ()))
        self.lists_: dict[int, Subset] = {}
        self.fold_lists_: dict[int, list[Subset]] = {}
        if outcome.size:
            self.path_, self.model_ = outcome.path, outcome.model
            lists = {name: self._list(name, facts) for name in outcome.lists}
            self.estimator_ = lists[self.size].estimator
            if self.n_features_to_select is None:
                self.best_, self.short_ = lists["best"], lists["short"]
            offered = np.sort(order)
            if outcome.size < len(offered):
                number = facts.get("limit", outcome.size)
                self.stability_ = stability_of(found, outcome.path, number, offered, n_units)
            names = self._unit_names()
            self.stands_for_ = {
                names[unit]: [names[other] for other in others]
                for unit, others in facts["stands_for"]
            }
            folds = [one[1][outcome.path] for one in found]
            self.lists_ = {int(n): np.array(units) for n, units in facts["by_size"].items()}
            self.fold_lists_ = {
                int(n): [offered[np.array(fold[str(number)], dtype=np.intp)] for fold in folds]
                for n, number in facts["numbers"].items()
            }
        return scores

    def _front(self, points: Any) -> list[PricedList]:
        """Return the lists of the price front from the facts in a record."""
        prices, names, found = self._units.prices, self._unit_names(), []
        for units, loss, error, blind in points:
            assert prices is not None
            columns = tuple(names[unit] for unit in sorted(units))
            found.append(PricedList(prices.of(units), loss, error, columns, blind))
        return undominated(found)

    def _unit_names(self) -> list[Any]:
        if self._unit_labels is not None:
            return self._unit_labels
        return named(self._units, getattr(self, "feature_names_in_", None))

    def _list(self, name: str, facts: dict[str, Any]) -> ColumnList:
        """Return one of the lists from the facts in a record."""
        assert self._outcome is not None
        units, n_columns, tuning = facts["lists"][name]
        found = self._outcome.lists[name]
        given = str(facts["task"]), int(facts["seed"]), KernelTuning(*tuning)
        support = np.zeros(self._units.n_columns, dtype=bool)
        support[self._units.columns(np.array(units, dtype=np.intp))] = True
        columns, names = np.flatnonzero(support), getattr(self, "feature_names_in_", None)
        return ColumnList(
            (columns if names is None else names[columns]).tolist(),
            support,
            found.size,
            found.path,
            found.model,
            found.error,
            found.lost,
            estimator_of(found.model, int(n_columns), *given),
        )

    def _set_tests(self, numbers: list[Any] | None) -> None:
        found: Any = [None] * 5 if numbers is None else read_tests(numbers)
        self.p_values_, self.q_values_, self.effects_, self.effect_errors_, self.found_in_ = found

    def _verdict(self, scores: Array) -> Verdict:
        if self._outcome is None:
            return Verdict(0, self._nothing())
        asked = self.n_features_to_select is not None
        return verdict_of(self._outcome, self.size, asked, self._counted, self._limit_text)

    def _nothing(self) -> str:
        """Return the reason if no column was compared, for example because all are constant."""
        if self.cost_limit is None:
            return "every column has the same value in all rows."
        least = format_price(cheapest_price(self._units))
        return f"no column that varies fits within {self._limit_text}; the cheapest costs {least}."

    @property
    def _limit_text(self) -> str:
        """The price limit as text. It is empty without a limit."""
        if self.cost_limit is None:
            return ""
        assert self._units.prices is not None
        return CostLimit(self.cost_limit).describe(self._units.prices)

    def _reasons(self) -> list[str]:
        return reasons_of(self)


def _without_predictions(stage: dict[str, Any]) -> dict[str, Any]:
    """Return a finished stage with only the columns that the selected order selects in each fold.

    The predictions for held-out rows are needed until the selection is made. They take megabytes.
    """
    path = stage["rest"][1]["path"]
    rounds = {
        index: [[], {path: subsets[path]}, [], []]
        for index, (_, subsets, *_) in stage["rounds"].items()
    }
    return {**stage, "rounds": rounds}


def _sized(outcome: AutoOutcome, orders: dict[str, Order], priced: PriceLimits) -> AutoOutcome:
    """Replace positions of price limits by numbers of units in all sizes of an outcome."""

    def sized(one: Any) -> Any:
        return one._replace(size=len(orders[one.path].first(one.size)))

    prices = priced.asked.prices
    amounts = [*(limit.amount for limit in priced.limits), prices.of(range(len(prices.own)))]
    curve = [sized(point._replace(limit=amounts[point.size - 1])) for point in outcome.curve]
    whole = outcome.curve_all
    return sized(outcome)._replace(
        curve=curve,
        curve_all=None if whole is None else sized(whole),
        lists={name: sized(one) for name, one in outcome.lists.items()},
        front=(),
    )


def without_interactions(plan: AutoPlan) -> AutoPlan:
    """Return a plan in which the order by interactions is skipped."""
    name = "path: interactions"
    reason = f"no interaction passes the permutation test at {LEVEL:g}"
    steps = (step._replace(tried=False, reason=reason) if step.name == name else step
             for step in plan.steps)  # fmt: skip
    paths = tuple(path for path in plan.paths if path != "interactions")
    return plan._replace(paths=paths, steps=tuple(steps))
