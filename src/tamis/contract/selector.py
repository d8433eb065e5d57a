"""Selections: searches, and all that acts like one.

A :class:`Selection` supplies five hooks: what it refuses (:meth:`~Selection._check`), to which size
it walks (:meth:`~Selection._size`), what it learns (:meth:`~Selection._open`), which steps it makes
(:meth:`~Selection._steps`) and what a fitted one knows (:meth:`~Selection._settle`). The loop that
makes the steps is :class:`tamis.contract.run.Run`.
"""

import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any, ClassVar, NamedTuple, Self
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags, estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from tamis._arrays import Array, Mask
from tamis._checks import check_parameters
from tamis._frame import collected
from tamis._lazy import extension
from tamis._namespace import is_elsewhere
from tamis._parallel import heard
from tamis._seeds import draw_seed, fix_seeds
from tamis.blocks.device_arrays import (
    columns_of,
    out_of_memory,
    place_of,
    warn_of_device,
    where_it_is,
)
from tamis.blocks.dispatch import read_blocks
from tamis.blocks.inputs import SparseColumns, check_data
from tamis.blocks.table import check_held, is_in_blocks, refuse_blocks, refuse_metadata
from tamis.contract.choice import Choice, Chosen, SizeLike, resolve_choice
from tamis.contract.explain import explained, idle_kept, open_tie
from tamis.contract.ranks import order_of, scores_of
from tamis.contract.record import Record
from tamis.contract.run import Run, StepSource
from tamis.contract.steps import Event
from tamis.contract.trace import Trace
from tamis.contract.units import Grouping, resolve_units
from tamis.exceptions import (
    DegenerateData,
    InvalidParameter,
    InvalidTable,
    NotEnoughMemory,
    NothingFound,
    TiedScores,
)

#: Kept columns that a summary names.
MOST_NAMED = 20

#: A sentence to warn with, and its category.
Doubt = tuple[str, type[Warning]]


class Reread(NamedTuple):
    """The table of a fit once more, as the search got it.

    ``search`` is fitted and speaks of the units of ``X``; ``labels`` are what people call these.
    """

    X: Array
    y: NDArray[Any] | None
    search: "Selection"
    labels: list[Any]


class Selection(SelectorMixin, CallbackSupportMixin, BaseEstimator):
    """Selector that remembers how it came to its answer.

    Attributes
    ----------
    support_ : array of bool
        The columns that are kept.
    units_ : Grouping
        Which columns are taken or left together. Without ``feature_groups`` unit j is column j;
        ``order_``, ``ranking_``, ``scores_`` and ``trace_`` speak of units.
    unit_support_ : array of bool
        The units that are kept.
    order_ : array of int
        All units, best first: those kept by their last score (by order of entry in a search
        that only adds), then the others in the reverse order of leaving, those that never moved
        last. Of equals the lowest index is first.
    ranking_ : array of int
        1 for all kept, then by step of leaving, as in scikit-learn.
    scores_ : array of float
        The score at which a unit last entered or left; of one that never moved, the last score
        it was given; nan where it was given none, as in searches that only value whole subsets.
    choice_ : Chosen
        Which step was kept (``step``) and why, in a sentence (``reason``).
    trace_ : Trace
        The steps, see :class:`tamis.contract.steps.TracedStep`.
    columns : list of str or int
        The columns that are kept: their names where ``X`` had some, else their indices.
    n_features_, n_evaluations_ : int
        Number of columns kept; number of scores asked of the criterion.
    interactions_ : list of Interaction
        The strongest pairs of units, ``first``, ``second`` and ``information`` in nats, where the
        criterion looks at pairs; else empty.
    record_ : Record
        Everything needed to report, compare, save and resume.
    """

    #: Whether each step holds, or is held by, the step before.
    nested: ClassVar[bool] = False
    #: Whether the walk starts from nothing: the first units are known before the last.
    grows: ClassVar[bool] = True
    #: Whether each unit is scored without the others.
    scores_alone: ClassVar[bool] = False
    #: Whether the steps on the way to one size are also made on the way to another.
    extends: ClassVar[bool] = True
    #: Whether its scores are nothing but places counted down.
    counts_places: ClassVar[bool] = False
    #: Whether it selects from blocks of rows, of a table that is never held at once.
    takes_blocks: ClassVar[bool] = False

    #: Whether each step holds the best subset so far.
    holds_best: ClassVar[bool] = False

    n_features_to_select: SizeLike
    feature_groups: Any = None
    fixed_features: Any = None

    support_: Mask
    units_: Grouping
    choice_: Chosen
    record_: Record

    # -- the five hooks ---------------------------------------------------------------------------

    def _check(self) -> None:
        """Refuse parameters that do not fit together."""
        self._choice().check(self, self)

    def _size(self, n_units: int) -> int | None:
        """Number of units to walk to, None where only the data can tell."""
        return self._choice().size(n_units, type(self).__name__)

    @abstractmethod
    def _open(
        self, X: Array, y: NDArray[Any] | None, params: dict[str, Any], done: Record
    ) -> StepSource:
        """Learn the data: the source of the steps that follow those of a record."""

    @abstractmethod
    def _steps(
        self, criterion: Any, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Event]:
        """Yield the steps that follow those already done.

        ``criterion`` is what :meth:`_open` made, ``size`` the number of units asked for, or None
        where the walk must go the whole way.
        """

    def _settle(self, record: Record, X: Array, y: NDArray[Any] | None) -> None:
        """Set the fitted attributes from the steps and the one that was chosen."""
        trace = record.trace
        self.record_, self.trace_ = record, trace
        self.choice_ = Chosen(record.chosen, record.reason)
        self.n_evaluations_ = record.n_evaluations
        self.units_ = record.grouping
        self.unit_support_ = trace.mask(record.chosen)
        self.support_ = self.units_.mask(self.unit_support_)
        self.n_features_ = int(self.support_.sum())
        self.scores_ = scores_of(trace)
        self.order_, self.ranking_ = order_of(trace, record.chosen)
        self.interactions_ = list(record.interactions)

    # -- what differs between kinds of selections -------------------------------------------------

    def _choice(self) -> Choice:
        return resolve_choice(self.n_features_to_select, type(self).__name__)

    def _inner_search(self) -> "Selection":
        """The search, which is inside a selector that only prepares the table."""
        return self

    def _unsized(self) -> Self:
        """Forget the number of features that is asked for."""
        if "n_features_to_select" in self.get_params(deep=False):
            self.set_params(n_features_to_select=None)
        return self

    def _check_target(self, y: NDArray[Any] | None) -> None:
        """Refuse a target that cannot be used."""

    def _check_blocks(self) -> None:
        """Refuse a table in blocks of rows, where nothing can be learnt from it."""
        refuse_blocks(type(self).__name__)

    def _common(self, done: Record, size: int | None) -> int:
        """How many of the steps of a record a walk to another size makes too."""
        return len(done.trace)

    def _seeded(self, seeds: dict[str, int] | None) -> tuple[Self, dict[str, int]]:
        """A clone whose random parts have numbers for seeds, and these numbers."""
        work = clone(self)
        root = draw_seed(getattr(self, "random_state", None))
        return work, fix_seeds(work, seeds, root=root)

    def _way(self, record: Record) -> tuple[float, float | None, str]:
        """How far a search is and has to go, None if that is not known, and its state."""
        trace = record.trace
        if not len(trace):  # the first part of a composition, or a model in training
            return 0, None, f"part {len(record.parts)}" if record.parts else "training"
        n_units, first, last = trace.n_units, int(trace.sizes[0]), int(trace.sizes[-1])
        # a ranking ranks all, whatever is asked
        target = None if self.scores_alone else self._choice().size(n_units, "")
        state = f"{last} of {n_units} {record.grouping.word}s"
        if first > n_units / 2:  # it began with everything
            return n_units - last, max(n_units - (target or 1), 1), state
        return last, target or n_units, state

    def _doubts(self, criterion: Any) -> Iterator[Doubt]:
        """An empty answer, a tie that decided it, and columns kept that tell nothing."""
        if not self.n_features_:
            yield f"{type(self).__name__} keeps no column: {self.choice_.reason}", NothingFound
            return
        if tie := open_tie(self):
            yield tie, TiedScores
        if idle := idle_kept(self, criterion):
            yield idle, DegenerateData

    @property
    def takes_categories(self) -> bool:
        """Whether ``categories`` of its criteria may name columns of codes without an order."""
        return False

    @property
    def _takes_metadata(self) -> bool:
        return False

    def check(self) -> None:
        """Refuse parameters that cannot work, before any data are seen."""
        check_parameters(self)
        self._check()

    # -- how a fit runs ---------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: ArrayLike, y: ArrayLike | None = None, **params: Any) -> Self:
        """Find the best columns of ``X``.

        Parameters
        ----------
        X : array, pandas or polars frame of shape (n_samples, n_features)
            NaN, and a sparse array (CSR, CSC, or :class:`SparseColumns`, whose columns have names),
            where the criterion takes them.
            A tensor of torch or an array of CuPy that is on a device, or any under scikit-learn's
            ``array_api_dispatch``: kernels are computed where it is, and ``transform`` answers
            there.
            For criteria that learn from row blocks, a table larger than memory: the path of a
            Parquet file or folder, a source of :mod:`tamis.blocks`, or a Dask collection.
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Classes (of any type) or real numbers, as the criterion needs; dates and durations are
            numbers of days; a censored target is a structured array of event and time, or two
            columns, time and event.
        **params
            Per-row metadata (``sample_weight``, ``groups``) for the criterion: routed by requests
            when scikit-learn's metadata routing is enabled, passed on as they are otherwise.
            ``target`` is the name of the target where ``X`` is a path that holds it.
        """
        done = params.pop("_record", None)
        if place := place_of(X):
            warn_of_device(self, place.name)
        with where_it_is(type(self).__name__, X, y, params) as (X, y, params):
            self._forget()
            self.check()
            target = params.pop("target", None)
            if target is not None and not is_in_blocks(X):
                raise InvalidParameter(
                    f"{type(self).__name__} needs target={target!r} where X is a path or a source "
                    f"of row blocks, not {type(X).__name__}. Give the target as y, or write "
                    "tamis.select(frame, target=...)."
                )
            table, values, grouping = self._read_table(X, y, target, params)
            run = Run(self, table, values, params, done, grouping)
            try:
                with self._watched(run) as watch:
                    for _ in run:
                        if watch():
                            break
                if run.ended:
                    run.settled()
                self.trace_, self.record_ = run.trace, run.record
            except BaseException as error:  # the steps made are kept, also after an interrupt
                self.trace_, self.record_ = run.trace, run.record
                if not isinstance(error, RuntimeError | MemoryError):
                    raise
                if told := out_of_memory(self, error, len(run.trace)):
                    raise NotEnoughMemory(told) from error
                raise
            if len(run.trace):
                self._settle(self.record_, run.X, run.y)
            if run.ended:
                for message, category in self._doubts(run.context.criterion):
                    warn(message, category, stacklevel=_caller_level())
        return self

    def resume(
        self, X: ArrayLike, y: ArrayLike | None = None, *, record: "Record | str", **params: Any
    ) -> Self:
        """Go on from a record, or the file of one, on the same data.

        A selection that was stopped ends as an undisturbed ``fit`` would have. With another
        ``n_features_to_select`` the record is extended: its steps are kept and the walk goes on to
        the new size. Otherwise only ``n_jobs`` and budgets may differ from the selection that made
        the record. Functions have no expression: that ``Scored`` holds the same one is not checked.
        """
        self.fit(X, y, **params, _record=Record.of(record))
        return self

    def _read_table(
        self, X: Any, y: Any, target: Any, params: dict[str, Any]
    ) -> tuple[Any, NDArray[Any] | None, Grouping]:
        """Table and target, checked, and the units of the table.

        Of a table in blocks of rows the labels stand for the target.
        """
        if not is_in_blocks(X):
            X, y = check_data(self, X, y)
            return X, y, self._grouping(X)
        refuse_metadata(type(self).__name__, params)
        self._check_blocks()
        table = read_blocks(type(self).__name__, X, y, target)
        self.n_features_in_ = table.shape[1]
        if table.names is not None:
            self.feature_names_in_ = np.array(table.names, dtype=object)
        return table, table.labels.values, self._grouping(table)

    def _grouping(self, X: Any) -> Grouping:
        """The units of a table."""
        return resolve_units(
            type(self).__name__,
            self.feature_groups,
            self.fixed_features,
            X.shape[1],
            getattr(self, "feature_names_in_", None),
        )

    @contextmanager
    def _watched(self, run: Run) -> Iterator[Callable[[], bool]]:
        """What to call after each step: it reports the step, and returns whether to stop."""
        context = self._init_callback_context(max_subtasks=None)
        has_callbacks, tell = bool(getattr(self, "_skl_callbacks", [])), heard()

        def watch() -> bool:
            if has_callbacks:
                self.trace_, self.record_ = run.trace, run.record
                task = context.subcontext(task_name="step")
                task.call_on_fit_task_begin(estimator=self)
                return bool(task.call_on_fit_task_end(estimator=self))
            if tell is not None:
                done, total, _ = self._inner_search()._way(run.record)
                if total is not None:
                    tell(int(done), int(total))
            return False

        context.call_on_fit_task_begin(estimator=self)
        yield watch if has_callbacks or tell is not None else bool  # which is always false
        context.call_on_fit_task_end(estimator=self)

    def _forget(self) -> None:
        """Drop what an earlier fit found, so that nothing of it outlives one that fails."""
        for name in [n for n in vars(self) if n.endswith("_") and not n.startswith("_")]:
            delattr(self, name)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = False
        return tags

    # -- the columns ------------------------------------------------------------------------------

    @property
    def columns(self) -> list[Any]:
        """The columns that are kept, in the order of the table: names where known, else indices."""
        check_is_fitted(self)
        kept = np.flatnonzero(self.support_)
        names = getattr(self, "feature_names_in_", None)
        return (kept if names is None else names[kept]).tolist()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "support_")

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self)
        return self.support_

    def transform(self, X: ArrayLike) -> Any:
        """The columns that are kept.

        Parameters
        ----------
        X : array, pandas or polars frame of shape (n_samples, n_features)
            Of a tensor the columns stay where it is. Sparse where the selection was made from such
            a table; of :class:`SparseColumns` the
            columns are found by their names.
        """
        X = collected(X)
        if isinstance(X, SparseColumns):
            return self._taken(X)
        check_held(type(self).__name__, X)
        if is_elsewhere(X):
            return columns_of(X, self._get_support_mask(), type(self).__name__)
        with np.errstate(invalid="ignore"):  # infinity is looked for by a sum, which may overflow
            return super().transform(X)

    def _taken(self, table: SparseColumns) -> SparseColumns:
        """The columns that are kept, of a sparse table whose columns have the names of the fit."""
        check_is_fitted(self)
        if list(getattr(self, "feature_names_in_", ())) != table.names:
            raise InvalidTable(
                f"{type(self).__name__} needs a table whose columns are those that it was fitted "
                f"to; got {len(table.names)} others. Give the same columns in the same order."
            )
        return table.take(np.flatnonzero(self.support_))

    # -- in words ---------------------------------------------------------------------------------

    def progress(self) -> tuple[str, float | None, str]:
        """Return how far a fit is, for a progress bar; also during the fit.

        Returns
        -------
        name : str
            The search.
        share : float or None
            Its share that is done, None if it is not known.
        state : str
            The newest step, such as "3 of 13 columns".
        """
        search: Any = self._inner_search()
        name, criterion = type(search).__name__, getattr(search, "criterion", None)
        name = name if criterion is None else f"{name}({type(criterion).__name__})"
        done, total, state = search._way(self.record_)
        return name, min(done / total, 1.0) if total else None, state

    def explain(self, column: Any) -> str:
        """Say in words when a column was looked at, what it scored, and what won in its place.

        Parameters
        ----------
        column : int or str
            Its index, its name where ``X`` had names, or the name of a group of columns; a column
            shares the story of its group.
        """
        check_is_fitted(self)
        return explained(self, column)

    def summary(self) -> str:
        """What is kept, and why so many, in lines of plain words."""
        check_is_fitted(self)
        names, n_columns = self.columns, len(self.support_)
        shown = ", ".join(str(name) for name in names[:MOST_NAMED])
        more = ", ..." if len(names) > MOST_NAMED else ""
        verb = "is" if len(names) == 1 else "are"
        lines = [
            f"{len(names)} of {n_columns} columns {verb} kept" + (f": {shown}{more}" * bool(names))
        ]
        return "\n".join(lines + self._reasons())

    def _reasons(self) -> list[str]:
        """Lines that say why so many are kept."""
        lines = [self.choice_.reason, self.record_.places]
        return [line for line in lines if line]

    def report(self, X: Any, y: Any = None, **facts: Any) -> Any:
        """All that there is to say of the selection, as a page that can be saved and sent on.

        Parameters
        ----------
        X, y : array or frame
            The table of the fit, and its target.
        **facts
            More to tell, see :func:`tamis.report.report`: ``results`` of resamples, ``source``,
            ``target``, ``descriptions``.

        Returns
        -------
        tamis.report.Report
            ``save("report.html")`` writes the page. Needs the extra ``app``.
        """
        check_is_fitted(self)
        check_held("report", X)
        return extension("report")(self, X, y, **facts)

    def _html_repr(self) -> str:
        """In a notebook: the answer, then the diagram that all estimators have."""
        diagram = str(estimator_html_repr(self))
        if not hasattr(self, "choice_"):
            return diagram
        first, *others = (escape(line) for line in self.summary().split("\n"))
        said = "".join(f"<div>{line}</div>" for line in others)
        return f"<div><div><b>{first}</b></div>{said}</div>{diagram}"

    # -- other columns in their place -------------------------------------------------------------

    def substitutes(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        estimator: Any = None,
        max_loss: float | None = None,
        min_correlation: float = 0.7,
        n_candidates: int = 3,
        n_folds: int = 5,
        random_state: Any = None,
        n_jobs: int | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Any:
        """For each column kept, the columns left out that could stand in its place.

        A swap is judged by the criterion, and by what an estimator loses on rows left out, fold by
        fold. These rows took part in the selection: compare the swaps, do not quote them.

        Parameters
        ----------
        X : array, pandas or polars frame of shape (n_samples, n_features)
            The table of the fit.
        y : array of shape (n_samples,)
            Its target.
        estimator : estimator or None, default=None
            What predicts; None is a ridge regression (on indicators of the classes).
        max_loss : float or None, default=None
            How much the mean squared loss (for classes that of the probabilities) may rise; None is
            one standard error of the loss of the kept columns, which is in doubt anyway.
        min_correlation : float, default=0.7
            A candidate has at least this absolute correlation with the column; of a category or a
            group it is the greatest that a sum of its columns has.
        n_candidates : int, default=3
            How many candidates are tried for each column, those most alike.
        n_folds : int, default=5
            Folds of the rows.
        random_state : int, generator or None, default=None
            Seed of the folds, and of an estimator and a criterion that draw.
        n_jobs : int or None, default=None
            Swaps at the same time; the result does not depend on it.
        sample_weight : array of shape (n_samples,) or None, default=None
            Weights of the rows, as of the fit: the criterion, where it takes some, and the
            estimator are trained with them, and losses are averaged by them. How alike columns are
            is counted over all rows of a weight above 0.

        Returns
        -------
        tamis.meta.substitutes.Substitutes
            A table of :class:`tamis.meta.substitutes.Substitute`, with ``to_frame()``.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from tamis.criteria import Scatter
        >>> from tamis.search import Forward
        >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        >>> found = Forward(Scatter("J3"), n_features_to_select=3).fit(X, y)
        >>> found.columns
        ['worst radius', 'worst texture', 'worst concave points']
        >>> found.substitutes(X, y, random_state=0).of("worst radius")
        ['worst perimeter', 'worst area', 'mean radius']
        """
        check_is_fitted(self)
        return extension("substitutes")(
            self,
            X,
            y,
            estimator=estimator,
            max_loss=max_loss,
            min_correlation=min_correlation,
            n_candidates=n_candidates,
            n_folds=n_folds,
            random_state=random_state,
            n_jobs=n_jobs,
            sample_weight=sample_weight,
        )

    def _reread(self, X: Any, y: Any) -> Reread:
        """The table of the fit once more; another is refused."""
        check_held(type(self).__name__, X)
        fresh = clone(self)
        table, target = check_data(fresh, X, y)
        names, others = (getattr(s, "feature_names_in_", None) for s in (self, fresh))
        self._check_same(len(self.support_), table.shape[1], names, others)
        width = range(table.shape[1])
        labels = self.units_.unit_names(width if names is None else names)
        return Reread(table, target, self, labels)

    def _check_same(self, n_columns: int, n_given: int, names: Any, others: Any) -> None:
        """Refuse a table whose columns are not those of the fit."""
        known = names is not None and others is not None
        if n_columns != n_given or (known and list(names) != list(others)):
            raise InvalidTable(
                f"{type(self).__name__} needs the table that it was fitted to, of {n_columns} "
                f"columns; this one has {n_given}, or others. Give the same columns in the same "
                "order."
            )


def _caller_level() -> int:
    """Stack level of the first caller outside tamis and scikit-learn, to whom a warning speaks."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(("tamis.", "sklearn.")):
        level, frame = level + 1, frame.f_back
    return level
