"""The one run loop: from a table to a settled selection, for searches and all that acts like one.

A :class:`Selection` says what it checks (:meth:`~Selection._check`), to which size it walks
(:meth:`~Selection._size`) and which steps it makes (:meth:`~Selection._steps`). Validation, seeds,
callbacks, record, resume and choice are written here and in :mod:`tamis.contract.run`, once; what
it offers after a fit is in :mod:`tamis.contract.fitted_selection`.
"""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Self
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import Tags

from tamis._arrays import Array
from tamis._checks import check_parameters
from tamis._parallel import heard
from tamis._seeds import draw_seed, fix_seeds
from tamis.blocks.device_arrays import out_of_memory, place_of, warn_of_device, where_it_is
from tamis.blocks.dispatch import read_blocks
from tamis.blocks.inputs import check_data
from tamis.blocks.table import is_in_blocks, refuse_blocks, refuse_metadata
from tamis.contract.choice import Choice, Chosen, SizeLike, resolve_choice
from tamis.contract.explain import idle_kept, open_tie
from tamis.contract.fitted_selection import FittedSelection
from tamis.contract.ranks import order_of, scores_of
from tamis.contract.record import Record
from tamis.contract.run import Run
from tamis.contract.steps import Event
from tamis.contract.trace import Trace
from tamis.contract.units import Grouping, resolve_units
from tamis.exceptions import (
    DegenerateData,
    InvalidParameter,
    NotEnoughMemory,
    NothingFound,
    TiedScores,
)


class Selection(FittedSelection, CallbackSupportMixin, BaseEstimator):
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
        The steps, see :class:`tamis.contract.TracedStep`.
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
    #: Whether ``categories`` of its criteria may name columns of codes, whose values have no order.
    takes_categories: ClassVar[bool] = False
    #: Whether it selects from blocks of rows, of a table that is never held at once.
    takes_blocks: ClassVar[bool] = False

    n_features_to_select: SizeLike
    feature_groups: Any = None
    fixed_features: Any = None

    # -- what a subclass says ---------------------------------------------------------------------

    @abstractmethod
    def _steps(
        self, criterion: Any, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Event]:
        """Yield the steps that follow those already done.

        ``criterion`` is what :meth:`_open` made, ``size`` the number of units asked for, or None
        where the walk must go the whole way.
        """

    @abstractmethod
    def _open(self, X: Array, y: NDArray[Any] | None, params: dict[str, Any], done: Record) -> Any:
        """Learn the data: the :class:`StepSource` of the steps that follow those of a record."""

    def _share_done(self, record: Record) -> tuple[float | None, str]:
        """Return the share of a search that is done, None if it is not known, and its state."""
        if len(record.trace):
            return self._share_of_steps(record.trace, record.grouping)
        # the first part of a composition, or a model in training
        return None, f"part {len(record.parts)}" if record.parts else "training"

    def _share_of_steps(self, trace: Trace, grouping: Grouping) -> tuple[float | None, str]:
        """Return the share of a search that some steps have done, and its state."""
        n_units, first, last = trace.n_units, int(trace.sizes[0]), int(trace.sizes[-1])
        # a ranking ranks all, whatever is asked
        target = None if self.scores_alone else self._choice().size(n_units, "")
        if first > n_units / 2:  # it began with everything
            share = (n_units - last) / max(n_units - (target or 1), 1)
        else:
            share = last / (target or n_units)
        return min(share, 1.0), f"{last} of {n_units} {grouping.word}s"

    def _check(self) -> None:
        """Refuse parameters that cannot work, before any data are seen."""
        self._choice().check(self, self)

    def _check_target(self, y: NDArray[Any] | None) -> None:
        """Refuse a target that cannot be used."""

    def _check_blocks(self) -> None:
        """Refuse a table in blocks of rows, where nothing can be learnt from it."""
        refuse_blocks(type(self).__name__)

    def _afford(self, X: Array, y: NDArray[Any] | None) -> None:
        """Refuse a table that does not fit into memory."""

    def _size(self, n_units: int) -> int | None:
        """Number of units to walk to, None where only the data can tell."""
        return self._choice().size(n_units, type(self).__name__)

    def _complete(self, trace: Trace) -> bool:
        """Whether a walk that ended has nothing left to do."""
        return True

    def _common(self, done: Record, size: int | None) -> int:
        """How many of the steps of a record a walk to another size makes too."""
        return len(done.trace)

    def _unsized(self, bare: Any) -> Any:
        """A clone without the number of features that is asked for."""
        return bare.set_params(n_features_to_select=None)

    def _grouping(self, X: Array) -> Grouping:
        """The units of a table."""
        return resolve_units(
            type(self).__name__,
            self.feature_groups,
            self.fixed_features,
            X.shape[1],
            getattr(self, "feature_names_in_", None),
        )

    def _seeded(self, seeds: dict[str, int] | None) -> tuple[Self, dict[str, int]]:
        """A clone whose random parts have numbers for seeds, and these numbers."""
        work = clone(self)
        root = draw_seed(getattr(self, "random_state", None))
        return work, fix_seeds(work, seeds, root=root)

    def _enough(self, run: Run) -> bool:
        """Whether the walk may end before it is through."""
        return run.choice.enough(run.trace, run.context)

    def _picked(self, run: Run) -> Chosen:
        """The step to keep, and why."""
        return self._choice().pick(run.trace, run.context)

    def _choice(self) -> Choice:
        return resolve_choice(self.n_features_to_select, type(self).__name__)

    @property
    def _takes_metadata(self) -> bool:
        return False

    # -- what it offers ---------------------------------------------------------------------------

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
            For criteria that take parts, a table larger than memory: the path of a Parquet file or
            folder, a source of :mod:`tamis.blocks`, or a collection of Dask.
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Classes (of any type) or real numbers, as the criterion needs; dates and durations are
            numbers of days; a censored target is a structured array of event and time, or two
            columns, time and event.
        **params
            Per-row metadata (``sample_weight``, ``groups``) for the criterion: routed by requests
            when scikit-learn's metadata routing is enabled, passed on as they are otherwise.
            ``target`` is the name of the target where ``X`` is a path that holds it.
        """
        with self._where_it_is(X, y, params) as given:
            self._run(*given, None)
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
        with self._where_it_is(X, y, params) as given:
            self._run(*given, Record.of(record))
        return self

    # -- how a fit runs ---------------------------------------------------------------------------

    def _where_it_is(self, X: Any, y: Any, params: dict[str, Any]) -> Any:
        """What the run loop reads, on the host, while kernels are computed where the table is."""
        if place := place_of(X):
            warn_of_device(self, place.name)
        return where_it_is(type(self).__name__, X, y, params)

    @with_callbacks
    def _run(self, X: Any, y: Any, params: dict[str, Any], done: Record | None) -> None:
        self._forget()
        check_parameters(self)
        self._check()
        target = params.pop("target", None)
        if is_in_blocks(X):
            refuse_metadata(type(self).__name__, params)
        X, y = self._table_and_target(X, y, target)
        self._follow(Run(self, X, y, params, done, self._grouping(X)))

    def _table_and_target(self, X: Any, y: Any, target: Any) -> tuple[Any, NDArray[Any] | None]:
        """Table and target, checked; of a table in blocks of rows the labels stand for the target.

        This is where paths, sources and collections of Dask come in.
        """
        if not is_in_blocks(X):
            if target is not None:
                raise InvalidParameter(
                    f"{type(self).__name__} needs target={target!r} where X is a path or a source "
                    f"of row blocks, not {type(X).__name__}. Give the target as y, or write "
                    "tamis.select(frame, target=...)."
                )
            return check_data(self, X, y)
        self._check_blocks()
        table = read_blocks(type(self).__name__, X, y, target)
        self.n_features_in_ = table.shape[1]
        if table.names is not None:
            self.feature_names_in_ = np.array(table.names, dtype=object)
        return table, table.labels.values

    def _follow(self, run: Run) -> None:
        """Walk to the end, or to where a callback says stop, and keep what was found.

        An exception loses nothing: the steps made are in ``record_`` before it goes on its way.
        """
        try:
            self._consume(run)
            if run.ended:
                run.settled()
            self.trace_, self.record_ = run.trace, run.record
        except BaseException as error:  # a finally clause would lose all to an interrupt inside it
            self.trace_, self.record_ = run.trace, run.record
            if not isinstance(error, RuntimeError | MemoryError):
                raise
            if told := out_of_memory(self, error, len(run.trace)):
                raise NotEnoughMemory(told) from error
            raise
        if len(run.trace):
            self._settle(self.record_, run.X, run.y)
        if run.ended:
            self._say_doubts(run)

    def _say_doubts(self, run: Run) -> None:
        """Warn of an empty answer, a tie that decided it, and columns kept that tell nothing."""
        if not self.n_features_:
            self._say_nothing_found()
            return
        if tie := open_tie(self):
            warn(tie, TiedScores, stacklevel=6)
        if idle := idle_kept(self, run.context.criterion):
            warn(idle, DegenerateData, stacklevel=6)

    def _say_nothing_found(self) -> None:
        name = type(self).__name__
        warn(f"{name} keeps no column: {self.choice_.reason}", NothingFound, stacklevel=7)

    def _consume(self, run: Run) -> None:
        """Take each event of the run; stop where a callback asks for it."""
        context = self._init_callback_context(max_subtasks=None)
        watched, tell = bool(getattr(self, "_skl_callbacks", [])), heard()
        context.call_on_fit_task_begin(estimator=self)
        for _ in run:
            if not watched:
                if tell is not None:
                    tell(*run.way)
                continue
            self.trace_, self.record_ = run.trace, run.record
            task = context.subcontext(task_name="step")
            task.call_on_fit_task_begin(estimator=self)
            if task.call_on_fit_task_end(estimator=self):
                break
        context.call_on_fit_task_end(estimator=self)

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

    def _forget(self) -> None:
        """Drop what an earlier fit found, so that nothing of it outlives one that fails."""
        for name in [n for n in vars(self) if n.endswith("_") and not n.startswith("_")]:
            delattr(self, name)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = False
        return tags
