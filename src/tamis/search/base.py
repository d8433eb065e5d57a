"""The meeting of a search with scikit-learn: one ``fit`` for all searches."""

import logging
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from time import perf_counter
from typing import Any, ClassVar, Self, TypeAlias
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import Tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from tamis._arrays import Array, Subset, standardised
from tamis._random import draw_seed, fix_seeds
from tamis.choice import Choice, resolve_choice
from tamis.contract import (
    BackwardCriterion,
    Criterion,
    ForwardCriterion,
    SubsetCriterion,
    check_data,
    check_target,
)
from tamis.exceptions import (
    DegenerateData,
    IncompatibleCriterion,
    InvalidPrice,
    NothingSelected,
    NothingToAdd,
)
from tamis.record import Record
from tamis.selection import Selection
from tamis.trace import Step, Trace

log = logging.getLogger("tamis")

#: Metadata of ``fit`` go to the ``fit`` of the parts; a pipeline calls ``fit_transform``.
FITTING = MethodMapping().add(caller="fit", callee="fit").add(caller="fit_transform", callee="fit")

Size: TypeAlias = "int | float | str | Choice"

#: What each capability lets a criterion do, and who has it, for messages.
SPOKEN = {
    ForwardCriterion: ("the gain of adding a feature", "only prices additions", "Forward"),
    BackwardCriterion: (
        "the loss of removing a feature",
        "only prices removals",
        "RecursiveElimination",
    ),
    SubsetCriterion: ("the value of a subset", "values any subset", "FloatingForward"),
}


class Judge:
    """A fitted criterion that counts the prices asked of it, and refuses NaN."""

    def __init__(self, criterion: Criterion, n_evaluations: int = 0):
        self.criterion: Any = criterion
        self.n_evaluations = n_evaluations
        self.has_value = isinstance(criterion, SubsetCriterion)

    def gain(self, subset: Subset, candidates: Subset) -> Array:
        """What adding each candidate brings."""
        return self._priced(self.criterion.gain(subset, candidates), candidates)

    def loss(self, subset: Subset) -> Array:
        """What removing each member costs."""
        return self._priced(self.criterion.loss(subset), subset)

    def value(self, subset: Subset) -> float:
        """Value of a subset, nan where the criterion only ranks."""
        return float(self.values([subset])[0]) if self.has_value else float("nan")

    def values(self, subsets: list[Subset]) -> Array:
        """Values of many subsets."""
        return self._priced(self.criterion.values(subsets), subsets)

    def bounds(self, subsets: list[Subset], size: int) -> Array:
        """The most that a subset of ``size`` inside each subset can be worth."""
        return self._priced(self.criterion.bounds(subsets, size), subsets)

    def start(self, subset: Subset) -> float:
        """Value from which a forward walk starts: known beforehand, so not counted."""
        return float(self.criterion.value(subset)) if self.has_value else float("nan")

    def noise(self, value: float) -> float:
        """What rounding leaves in a price that is a difference of values of this size."""
        if not self.has_value or self.criterion.additive or not np.isfinite(value):
            return 0.0
        return 1e-13 * abs(value)

    def shunning(self, prices: Array, units: Subset) -> Array:
        """Prices to choose by: units that can tell nothing come last, and leave first."""
        idle = self.criterion.idle_[units]
        return np.where(idle, -np.inf, prices) if idle.any() and not idle.all() else prices

    def errors(self, subset: Subset) -> Array:
        """Standard errors of the last prices, empty where they are not known."""
        errors = self.criterion.errors(subset)
        return np.empty(0) if errors is None else errors

    def _priced(self, prices: Array, things: Any) -> Array:
        prices = np.asarray(prices, dtype=float)
        self.n_evaluations += len(things)
        if np.isnan(prices).any():
            place = int(np.flatnonzero(np.isnan(prices))[0])
            raise InvalidPrice(
                f"{type(self.criterion).__name__} answered NaN for feature(s) {things[place]}. No "
                "NaN may decide a search: look for a failing estimator or a degenerate column."
            )
        return prices


class Search(MetaEstimatorMixin, CallbackSupportMixin, Selection):
    """Selector that explores subsets by the prices of a criterion.

    A subclass stores its parameters and implements :meth:`_walk`.

    Parameters
    ----------
    criterion : Criterion
        The judge. It is cloned and fitted; the one given is never changed.
    n_features_to_select : int, float, "best" or Choice, default=0.5
        How many columns are kept: a number, a fraction of all, the subset of greatest value, or a
        choice such as ``Threshold(0.1)``.
    standardize : bool, default=True
        Whether the criterion sees columns of mean 0 and standard deviation 1; ``y`` is never
        scaled, and ``transform`` always gives the original columns.
    """

    #: The weakest capability this search can walk with; of several, any one.
    needs: ClassVar[tuple[type[Criterion], ...]]
    #: Whether each step holds, or is held by, the step before.
    nested: ClassVar[bool] = False
    #: Whether each feature is priced without the others.
    prices_alone: ClassVar[bool] = False

    def __init__(
        self, criterion: Any, *, n_features_to_select: Size = 0.5, standardize: bool = True
    ):
        self.criterion = criterion
        self.n_features_to_select = n_features_to_select
        self.standardize = standardize

    @abstractmethod
    def _walk(
        self, criterion: Judge, n_units: int, target: int | None, done: Trace
    ) -> Iterator[Step]:
        """Yield the steps that follow those already done.

        ``target`` is the size asked for, or None where the walk must go the whole way.
        """

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, **params: Any) -> Self:
        """Search for the best columns of ``X``.

        Parameters
        ----------
        X : array, pandas or polars frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Classes (of any type) or real numbers, as the criterion needs.
        **params
            Per-row metadata (``sample_weight``, ``groups``) for the criterion: routed by requests
            when scikit-learn's metadata routing is enabled, passed on as they are otherwise.
        """
        return self._run(X, y, params, None)

    def resume(
        self, X: ArrayLike, y: ArrayLike | None = None, *, record: "Record | str", **params: Any
    ) -> Self:
        """Continue a search that was stopped, from its record or the file of it, on the same data.

        The result is the one that an undisturbed ``fit`` would have given. Only ``n_jobs`` and
        budgets may differ from the search that made the record. Functions have no expression: that
        ``Scored`` holds the same one is not checked.
        """
        return self._run(X, y, params, record)

    @with_callbacks
    def _run(self, X: Any, y: Any, params: dict[str, Any], record: Any) -> Self:
        self._forget()
        self._check()
        done = None if record is None else Record.of(record)
        X, y = check_data(self, X, y)
        check_target(self.criterion, y)
        target = self._size(X.shape[1])
        params = {name: value for name, value in params.items() if value is not None}
        fresh = Record.begin(self, X, y, params)
        if done is not None:
            done.check_continues(fresh)
            if done.finished:
                self._settle(done)
                return self
        work = clone(self)
        seeds = fix_seeds(
            work,
            None if done is None else dict(done.seeds),
            root=draw_seed(getattr(self, "random_state", None)),
        )
        work.criterion.fit(standardised(X) if self.standardize else X, y, **self._routed(params))
        self._follow(work, target, replace(done or fresh, seeds=seeds, finished=False))
        return self

    def _follow(self, work: Self, target: int | None, record: Record) -> None:
        """Walk to the end, or to where a callback says stop, and keep what was found.

        An exception loses nothing: the steps made are in ``record_`` before it goes on its way.
        """
        judge = Judge(work.criterion, record.n_evaluations)
        trace = Trace.from_dict(record.trace.to_dict())
        for step in trace:
            judge.criterion.use(step.params)
        ended = False
        try:
            walk = work._walk(judge, trace.n_units, target, trace)
            ended = self._consume(walk, trace, record, judge)
        except NothingToAdd:
            if target is not None:
                raise
            ended = True
        finally:
            self.trace_ = trace
            self.record_ = replace(
                record,
                trace=trace,
                chosen=max(0, len(trace) - 1),
                n_evaluations=judge.n_evaluations,
                finished=ended and self._complete(trace),
            )
        if len(trace):
            chosen = self._picked(trace) if ended else len(trace) - 1
            self._settle(replace(self.record_, chosen=chosen))
            if ended:
                warn_of_idle(
                    type(self).__name__, np.flatnonzero(self.support_ & judge.criterion.idle_)
                )

    def _complete(self, trace: Trace) -> bool:
        """Whether a walk that ended has nothing left to do."""
        return True

    def _picked(self, trace: Trace) -> int:
        """Position of the step to keep, which must hold something."""
        chosen = resolve_choice(self.n_features_to_select, type(self).__name__).pick(trace)
        if not trace.sizes[chosen]:
            raise NothingSelected(
                f"{type(self).__name__} found no subset that {type(self.criterion).__name__} can "
                "value: each one holds columns that are constant or depend on each other. Drop "
                "those columns, or give the criterion a ridge where it has one."
            )
        return chosen

    def _consume(self, walk: Iterable[Step], trace: Trace, record: Record, judge: Judge) -> bool:
        """Append each step to the trace; False when a callback asked to stop."""
        context = self._init_callback_context(max_subtasks=None)
        watched = bool(getattr(self, "_skl_callbacks", []))
        context.call_on_fit_task_begin(estimator=self)
        before = perf_counter()
        stop = False
        for step in walk:
            trace.append(step._replace(seconds=perf_counter() - before))
            log.debug("%s: step %d, %d units", type(self).__name__, len(trace), len(step.subset))
            if watched:
                so_far, n_asked = len(trace) - 1, judge.n_evaluations
                self.record_ = replace(record, trace=trace, chosen=so_far, n_evaluations=n_asked)
                stop = self._report(context, trace)
            if stop:
                break
            before = perf_counter()
        context.call_on_fit_task_end(estimator=self)
        return not stop

    def _report(self, context: Any, trace: Trace) -> bool:
        """Tell the callbacks of the newest step; ``trace_`` and ``record_`` are up to date."""
        self.trace_ = trace
        task = context.subcontext(task_name="step")
        task.call_on_fit_task_begin(estimator=self)
        return bool(task.call_on_fit_task_end(estimator=self))

    def _check(self) -> None:
        """Whether search, criterion and choice fit together, before any work."""
        check_capability(self, self.criterion)
        self.criterion.check()
        resolve_choice(self.n_features_to_select, type(self).__name__).check(self, self.criterion)

    def _size(self, n_units: int) -> int | None:
        """Number of units to walk to, None where that is the whole way."""
        who = type(self).__name__
        return resolve_choice(self.n_features_to_select, who).size(n_units, who)

    @property
    def _takes_metadata(self) -> bool:
        return self.criterion.takes_metadata

    def _routed(self, params: dict[str, Any]) -> dict[str, Any]:
        if not get_config()["enable_metadata_routing"]:
            return params
        return dict(process_routing(self, "fit", **params).criterion.fit) if params else {}

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata given to ``fit`` go to the criterion's ``fit``."""
        return MetadataRouter(owner=self).add(criterion=self.criterion, method_mapping=FITTING)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = bool(getattr(self.criterion, "needs_target", True))
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = False
        return tags


def warn_of_idle(name: str, kept: Subset) -> None:
    """Say that columns were kept which tell nothing."""
    if len(kept):
        some = ", ".join(map(str, kept[:5])) + (", ..." if len(kept) > 5 else "")
        warn(
            f"{name} keeps {len(kept)} column(s) that are constant or copies of others ({some}): "
            "they tell nothing. Ask for fewer features, or drop them.",
            DegenerateData,
            stacklevel=5,
        )


def check_capability(search: Search, criterion: Any) -> None:
    """Refuse a criterion that the search cannot walk with, and say what to write instead."""
    who = type(search).__name__
    if isinstance(criterion, search.needs):
        return
    wanted = " or ".join(SPOKEN[need][0] for need in search.needs)
    if not isinstance(criterion, Criterion):
        raise IncompatibleCriterion(
            f"{who} needs a criterion that gives {wanted}, not {criterion!r}. Wrap an estimator as "
            f"{who}(CrossValidated(estimator)) or a function of (X, y) as {who}(Scored(function))."
        )
    judge = type(criterion).__name__
    _, can, instead = next(SPOKEN[c] for c in SPOKEN if isinstance(criterion, c))
    raise IncompatibleCriterion(
        f"{who} needs {wanted}; {judge} {can}. Use {instead}({judge}(...)), or "
        f"{who}(CrossValidated(estimator))."
    )
