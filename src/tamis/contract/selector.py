"""Base class of all selectors.

A :class:`Selection` has five methods that subclasses override and that a fit calls, in this order:

* :meth:`~Selection._check` refuses parameters that do not fit together;
* :meth:`~Selection._size` returns the number of units to select;
* :meth:`~Selection._open` learns from the data and returns the source of the steps;
* :meth:`~Selection._steps` yields the steps;
* :meth:`~Selection._settle` sets the fitted attributes.

A unit is a column, or a group of columns that is selected as one.
"""

from abc import abstractmethod
from collections.abc import Hashable, Iterator
from html import escape
from typing import Any, ClassVar, NamedTuple, Self, cast
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from tamis._arrays import Array, Mask
from tamis._checks import check_parameters
from tamis._format import shorten_list
from tamis._frame import collected
from tamis._lazy import extension
from tamis._namespace import is_elsewhere
from tamis._seeds import Seed, draw_seed, fix_seeds
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
from tamis.contract.choice import Choice, Chosen, Context, SizeLike, resolve_choice
from tamis.contract.costs import format_price
from tamis.contract.explain import explained
from tamis.contract.fit_warnings import FitWarning, caller_level, find_warnings
from tamis.contract.ranks import order_of, scores_of
from tamis.contract.record import Record
from tamis.contract.run import (
    Run,
    StepSource,
    count_progress,
    format_progress,
    watch_steps,
)
from tamis.contract.steps import Event
from tamis.contract.trace import Trace
from tamis.contract.units import Fixed, Grouping, resolve_units
from tamis.exceptions import InvalidParameter, InvalidTable, NotEnoughMemory

#: Maximum number of selected columns that a summary lists by name.
MOST_NAMED = 20


class Reread(NamedTuple):
    """The table of a fit, read again and prepared in the same way as for the search.

    ``search`` is the fitted search. Its units are the units of ``X``, and ``labels`` are their
    names.
    """

    X: Array
    y: NDArray[Any] | None
    search: "Selection"
    labels: list[Any]


class Selection(SelectorMixin, CallbackSupportMixin, BaseEstimator):
    """Selector that records its search path.

    Attributes
    ----------
    support_ : array of bool
        Mask of the selected columns.
    units_ : Grouping
        The columns of each unit. Without ``feature_groups`` unit j is column j. ``order_``,
        ``ranking_``, ``scores_`` and ``trace_`` refer to units, not columns.
    unit_support_ : array of bool
        Mask of the selected units.
    order_ : array of int
        All units, best first. The selected units come first. If the search only adds, they are in
        order of entry. Otherwise the units that a later step removed follow the others, the last
        removed first, and the others are in order of their last score. After the selected units
        come units that were added later, then removed units, the last removed first, then units
        that never moved. Ties go to the lowest index.
    ranking_ : array of int
        Rank of each unit. All selected units have rank 1, as in scikit-learn. The earlier a unit
        was removed, the higher its rank.
    scores_ : array of float
        The score of each unit when it was last added or removed. A unit that never moved has the
        last score that was computed for it. Its score is NaN if there is none, for example in a
        search that only scores whole subsets.
    choice_ : Chosen
        The selected step (``step``), and a sentence that explains why (``reason``).
    trace_ : Trace
        The steps of the search, each a :class:`tamis.contract.steps.TracedStep`.
    columns : list of str or int
        The selected columns, by name if ``X`` had names, else by index.
    n_features_, n_evaluations_ : int
        Number of selected columns, and number of scores that the criterion computed.
    cost_ : float
        Price of the selected columns, if ``feature_costs`` was given.
    interactions_ : list of Interaction
        The strongest pairs of units, with ``first``, ``second`` and ``information`` in nats. Empty
        unless the criterion scores pairs.
    record_ : Record
        Everything needed to report, compare, save and resume the search.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from tamis.contract import Entries, Scores, Selection
    >>> class ByVariance(Selection):
    ...     def __init__(self, n_features_to_select=1):
    ...         self.n_features_to_select = n_features_to_select
    ...     def _open(self, X, y, params, done):
    ...         source = SimpleNamespace(n_evaluations=X.shape[1], parts=(), criterion=None)
    ...         source.scores = X.var(axis=0)
    ...         return source
    ...     def _steps(self, source, n_units, size, done):
    ...         yield Entries(np.argsort(-source.scores), Scores(np.arange(n_units), source.scores))
    >>> ByVariance().fit(load_iris().data).order_
    array([2, 0, 3, 1])
    """

    #: Whether the search path is nested: each subset contains the previous one, or is part of it.
    nested: ClassVar[bool] = False
    #: Whether the search starts from the empty set. The first units are then known early.
    grows: ClassVar[bool] = True
    #: Whether each unit is scored independently of the others.
    scores_alone: ClassVar[bool] = False
    #: Whether searches for different sizes make the same steps. A record can then be extended to a
    #: different size.
    extends: ClassVar[bool] = True
    #: Whether the scores are only ranks, without a meaning of their own.
    counts_places: ClassVar[bool] = False
    #: Whether the selection works on row blocks, without the whole table in memory.
    takes_blocks: ClassVar[bool] = False
    #: Whether the search can add and remove units under a price limit.
    takes_limit: ClassVar[bool] = True
    #: Whether each step contains the best subset found so far.
    holds_best: ClassVar[bool] = False

    n_features_to_select: SizeLike
    feature_groups: Any = None
    fixed_features: Fixed = None
    feature_costs: Any = None

    support_: Mask
    units_: Grouping
    choice_: Chosen
    record_: Record

    # -- the five hooks ---------------------------------------------------------------------------

    def _check(self) -> None:
        """Refuse parameters that do not fit together."""
        self._choice().check(self, self)

    def _size(self, n_units: int) -> int | None:
        """Return the number of units to select, or None if it depends on the data."""
        return self._choice().size(n_units, type(self).__name__)

    @abstractmethod
    def _open(
        self, X: Array, y: NDArray[Any] | None, params: dict[str, Any], done: Record
    ) -> StepSource:
        """Learn from the data, and return the source of the steps that follow those in ``done``."""

    @abstractmethod
    def _steps(
        self, criterion: Any, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Event]:
        """Yield the steps that follow the steps in the trace ``done``.

        ``criterion`` is the return value of :meth:`_open`. ``size`` is the number of units to
        select, or None if the search has to visit every size.
        """

    def _settle(self, record: Record, X: Array, y: NDArray[Any] | None) -> None:
        """Set the fitted attributes from the steps and the chosen step in the record."""
        trace = record.trace
        self.record_, self.trace_ = record, trace
        self.choice_ = Chosen(record.chosen, record.reason)
        self.n_evaluations_ = record.n_evaluations
        self.units_ = record.grouping
        self.unit_support_ = trace.mask(record.chosen)
        self.support_ = self.units_.mask(self.unit_support_)
        self.n_features_ = int(self.support_.sum())
        if self.units_.prices is not None:
            self.cost_ = self.units_.prices.of(np.flatnonzero(self.unit_support_))
        self.scores_ = scores_of(trace)
        self.order_, self.ranking_ = order_of(trace, record.chosen)
        self.interactions_ = list(record.interactions)

    def _guided(
        self, source: Any, size: int | None, done: Trace, context: Context
    ) -> Iterator[Event]:
        """Yield the steps, under the guidance of the choice."""
        return self._choice().guided_steps(self, source, size, done, context)

    # -- what subclasses may change ----------------------------------------------------------------

    def _choice(self) -> Choice:
        return resolve_choice(self.n_features_to_select, type(self).__name__)

    def _inner_search(self) -> "Selection":
        """Return the inner search if the selector only prepares the table, else the selector."""
        return self

    def _unsized(self) -> Self:
        """Set ``n_features_to_select`` to None in place, if it is a parameter."""
        if "n_features_to_select" in self.get_params(deep=False):
            self.set_params(n_features_to_select=None)
        return self

    def _check_target(self, y: NDArray[Any] | None) -> None:
        """Refuse a target that does not suit the criterion."""

    def _check_blocks(self) -> None:
        """Refuse row blocks if the selection cannot learn from them."""
        refuse_blocks(type(self).__name__)

    def _n_common(self, done: Record, size: int | None) -> int:
        """Return the number of recorded steps that a search for the given size would repeat."""
        return len(done.trace)

    def _seeded(self, seeds: dict[str, int] | None) -> tuple[Self, dict[str, int]]:
        """Return a clone with an int for every ``random_state``, and a dictionary of these ints."""
        work = clone(self)
        root = draw_seed(getattr(self, "random_state", None))
        return work, fix_seeds(work, seeds, root=root)

    def _progress(self, record: Record) -> tuple[float, float | None, str]:
        """Return the amount of work done, the total amount (None if unknown), and a status text."""
        size = None
        if len(record.trace) and not self.scores_alone:  # a ranking scores all units for any size
            size = self._choice().size(record.trace.n_units, "")
        return count_progress(record, size)

    def _warnings(self, criterion: Any) -> Iterator[FitWarning]:
        """Yield warnings about an empty selection, a decisive tie, or uninformative columns."""
        return find_warnings(self, criterion)

    @property
    def takes_categories(self) -> bool:
        """Whether the criteria of the selection accept columns of category codes."""
        return False

    @property
    def _takes_metadata(self) -> bool:
        return False

    def check(self) -> None:
        """Raise an error if the parameters cannot work, before any data are read."""
        check_parameters(self)
        self._check()

    # -- how a fit runs ---------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: ArrayLike, y: ArrayLike | None = None, **params: Any) -> Self:
        """Select the best columns of ``X``.

        Parameters
        ----------
        X : array, pandas or polars frame of shape (n_samples, n_features)
            The table. It may hold NaN, or be sparse (CSR, CSC, :class:`SparseColumns`), if the
            criterion accepts that. Torch tensors and CuPy arrays are processed on their own device,
            and so is any array under scikit-learn's ``array_api_dispatch``. If the criterion can
            learn from row blocks, ``X`` may be larger than memory: the path of a Parquet file or
            folder, a source from :mod:`tamis.blocks`, or a Dask collection.
        y : array of shape (n_samples,) or (n_samples, n_targets)
            The target: classes of any type, or numbers, depending on the criterion. Dates and
            durations are converted to days. A censored target is a structured array of event and
            time, or an array with two columns, time and event.
        **params
            Per-row metadata for the criterion (``sample_weight``, ``groups``). They follow
            scikit-learn's metadata routing if it is enabled. ``target`` is the name of the target
            column if ``X`` is a path.
        """
        done, given = params.pop("_record", None), (X, y, params.get("sample_weight"))
        self._given: tuple[Any, Any, Any] | None = None
        if place := place_of(X):
            warn_of_device(self, place.name)
        with where_it_is(type(self).__name__, X, y, params) as (X, y, params):
            self._forget()
            self.check()
            target = params.pop("target", None)
            if target is not None and not is_in_blocks(X):
                raise InvalidParameter(
                    f"{type(self).__name__} takes target={target!r} only if X is a path or "
                    f"row blocks, not {type(X).__name__}. Pass the target as y, or write "
                    "tamis.select(frame, target=...)."
                )
            table, values, grouping = self._read_table(X, y, target, params)
            run = Run(self, table, values, params, done, grouping)
            try:
                with watch_steps(self, run) as watch:
                    for _ in run:
                        if watch():
                            break
                if run.ended:
                    run.settled()
                self.trace_, self.record_ = run.trace, run.record
            except BaseException as error:  # keep the steps made so far, even after an interrupt
                self.trace_, self.record_ = run.trace, run.record
                if not isinstance(error, RuntimeError | MemoryError):
                    raise
                if message := out_of_memory(self, error, len(run.trace)):
                    raise NotEnoughMemory(message) from error
                raise
            if len(run.trace):
                self._settle(self.record_, run.X, run.y)
            self._given = None if is_in_blocks(X) else given
            if run.ended:
                for message, category in self._warnings(run.context.criterion):
                    warn(message, category, stacklevel=caller_level())
        return self

    def resume(
        self, X: ArrayLike, y: ArrayLike | None = None, *, record: "Record | str", **params: Any
    ) -> Self:
        """Continue a fit on the same data from a record or from a saved record.

        The result is the same as after an uninterrupted ``fit``. If ``n_features_to_select``
        differs, the search keeps the recorded steps and continues to the new size.
        All other parameters must be the same as in the recorded search, except ``n_jobs`` and
        budgets. Functions are not compared, so make sure that ``Scored`` gets the same function.

        Parameters
        ----------
        X, y : array or frame
            The data of the recorded fit.
        record : Record, str or path
            A record (``search.record_``), or the path of a saved record.
        **params
            As for ``fit``.
        """
        self.fit(X, y, **params, _record=Record.of(record))
        return self

    def _read_table(
        self, X: Any, y: Any, target: Any, params: dict[str, Any]
    ) -> tuple[Any, NDArray[Any] | None, Grouping]:
        """Return the validated table, the target, and the units of the table."""
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
        """Return the units of a table."""
        return resolve_units(
            type(self).__name__,
            self.feature_groups,
            self.fixed_features,
            X.shape[1],
            getattr(self, "feature_names_in_", None),
            self.feature_costs,
        )

    def _forget(self) -> None:
        """Delete the results of an earlier fit, so that none are left if this fit fails."""
        for name in [n for n in vars(self) if n.endswith("_") and not n.startswith("_")]:
            delattr(self, name)

    # -- the columns ------------------------------------------------------------------------------

    @property
    def columns(self) -> list[Any]:
        """The selected columns in table order, by name if ``X`` had names, else by index."""
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
        """Return the selected columns of ``X``.

        Parameters
        ----------
        X : array, pandas or polars frame of shape (n_samples, n_features)
            Tensors are indexed on their own device. ``X`` may be sparse if the table of the fit
            was. :class:`SparseColumns` must have the same column names as in the fit.
        """
        X = collected(X)
        if isinstance(X, SparseColumns):
            check_is_fitted(self)
            if list(getattr(self, "feature_names_in_", ())) != X.names:
                raise InvalidTable(
                    f"{type(self).__name__} needs the columns that it was fitted to; got "
                    f"{len(X.names)} others. Give the same columns in the same order."
                )
            return X.take(np.flatnonzero(self.support_))
        check_held(type(self).__name__, X)
        if is_elsewhere(X):
            return columns_of(X, self._get_support_mask(), type(self).__name__)
        with np.errstate(invalid="ignore"):  # scikit-learn sums the table to find infinities
            return super().transform(X)

    # -- reports ----------------------------------------------------------------------------------

    def progress(self) -> tuple[str, float | None, str]:
        """Return the progress of a fit, for a progress bar. It can be called during the fit.

        Returns
        -------
        name : str
            The name of the search.
        share : float or None
            The share of the work that is done, or None if it is unknown.
        state : str
            The newest step, such as "3 of 13 columns".
        """
        return format_progress(self._inner_search(), self.record_)

    def explain(self, column: Hashable) -> str:
        """Explain why a column was selected or not.

        The text states when the column was scored, and which columns scored better.

        Parameters
        ----------
        column : int or str
            The index or name of a column, or the name of a group of columns. For a column in a
            group, the group is explained.
        """
        check_is_fitted(self)
        return explained(self, column)

    def summary(self) -> str:
        """Return the selected columns and the reason for their number, as a few lines of text."""
        check_is_fitted(self)
        names = self.columns
        verb = "is" if len(names) == 1 else "are"
        line = f"{len(names)} of {len(self.support_)} columns {verb} kept"
        line += f": {shorten_list(names, MOST_NAMED)}" if names else ""
        return "\n".join([line, *self._reasons()])

    def _reasons(self) -> list[str]:
        """Return lines that explain the number of selected columns."""
        lines = [self.choice_.reason, *self.describe_price(), self.record_.places]
        return [line for line in lines if line]

    def describe_price(self) -> list[str]:
        """Return a sentence about the price of the selection in a list, which may be empty."""
        prices = self.units_.prices
        if prices is None or self._choice().guides:  # the reason of the choice has the price
            return []
        return [f"price: {format_price(self.cost_)}; all columns: {format_price(prices.full)}"]

    def report(self, X: ArrayLike, y: ArrayLike | None = None, **facts: Any) -> Any:
        """Return a report of the selection: an HTML page that can be saved and shared.

        Parameters
        ----------
        X, y : array or frame
            The table of the fit, and its target.
        **facts
            Additional content such as ``results`` of resamples, ``source``, ``target`` and
            ``descriptions``. See :func:`tamis.report.report`.

        Returns
        -------
        tamis.report.Report
            ``save("report.html")`` writes the page. It needs the extra ``app``.
        """
        check_is_fitted(self)
        check_held("report", X)
        return extension("report")(self, X, y, **facts)

    def to_pipeline(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        estimator: BaseEstimator | None = None,
    ) -> Pipeline:
        """Return a fitted pipeline that predicts the target from the selected columns.

        The pipeline takes the same kind of table as ``fit``: an array, or a frame with at least the
        selected columns, in any order. It encodes their categories, dates and missing values, so it
        can be saved and used without any other step. Unseen categories count as rare ones.

        After an automatic selection, the model is the one whose error it reports
        (``estimator_``), trained on all rows. Other methods only select columns, so they need an
        ``estimator``.

        Parameters
        ----------
        X, y : array or frame, optional
            Table and target for the training. By default, those of ``fit`` are used. The selector
            keeps a reference to them until it is pickled.
        estimator : estimator, optional
            The model to train.

        Returns
        -------
        sklearn.pipeline.Pipeline
            Its steps are ``columns``, which selects and encodes, and ``model``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> from tamis.criteria import Scatter
        >>> from tamis.search import Forward
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> search = Forward(Scatter("J3"), n_features_to_select=2).fit(X, y)
        >>> search.to_pipeline(estimator=SVC()).predict(X[search.columns].head(2)).tolist()
        [0, 0]
        """
        check_is_fitted(self)
        return cast(Pipeline, extension("to_pipeline")(self, X, y, estimator))

    def _row_weights(self, y: NDArray[Any], weights: Array | None) -> Array | None:
        """Return the row weights for training a final model, given the weights of ``fit``."""
        return weights

    def __getstate__(self) -> dict[str, Any]:
        return {name: x for name, x in super().__getstate__().items() if name != "_given"}

    def _html_repr(self) -> str:
        """Return the summary and scikit-learn's estimator diagram as HTML, for notebooks."""
        diagram = str(estimator_html_repr(self))
        if not hasattr(self, "choice_"):
            return diagram
        first, *others = (escape(line) for line in self.summary().split("\n"))
        rest = "".join(f"<div>{line}</div>" for line in others)
        return f"<div><div><b>{first}</b></div>{rest}</div>{diagram}"

    def substitutes(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        estimator: BaseEstimator | None = None,
        max_loss: float | None = None,
        min_correlation: float = 0.7,
        n_candidates: int = 3,
        n_folds: int = 5,
        random_state: Seed = None,
        n_jobs: int | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Any:
        """Find, for each selected column, the columns that could replace it.

        Each swap is evaluated with the criterion and with the cross-validated loss of an estimator.
        The selection was made on the same rows, so the losses are optimistic. Use them to compare
        swaps, not as error estimates.

        Parameters
        ----------
        X : array, pandas or polars frame of shape (n_samples, n_features)
            The table of the fit.
        y : array of shape (n_samples,)
            The target of the fit.
        estimator : estimator or None, default=None
            The model that predicts the target. None means ridge regression (on class indicators for
            classification).
        max_loss : float or None, default=None
            The largest increase of the mean squared loss (Brier score for classes) that a swap may
            cause. None means one standard error of the loss with the selected columns.
        min_correlation : float, default=0.7
            Minimum absolute correlation between a candidate and the column. For a categorical
            column or a group, it is the largest correlation that a linear combination of the
            indicators or columns can have.
        n_candidates : int, default=3
            Maximum number of candidates per column. The most similar columns are used.
        n_folds : int, default=5
            Number of folds.
        random_state : int, generator or None, default=None
            Seed of the folds, and of a random estimator or criterion.
        n_jobs : int or None, default=None
            Number of swaps to evaluate in parallel. The result does not depend on it.
        sample_weight : array of shape (n_samples,) or None, default=None
            Weights of the rows, as for the fit. The estimator and the mean loss use them, and so
            does the criterion if it accepts weights. Correlations ignore weights, but leave out
            rows with weight 0.

        Returns
        -------
        tamis.meta.substitutes.Substitutes
            The swaps, each a :class:`tamis.meta.substitutes.Substitute`. ``to_frame()`` returns
            them as a data frame.

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
        """Read the table of the fit again. Refuse a different table."""
        check_held(type(self).__name__, X)
        fresh = clone(self)
        table, target = check_data(fresh, X, y)
        names, others = (getattr(s, "feature_names_in_", None) for s in (self, fresh))
        self._check_same(len(self.support_), table.shape[1], names, others)
        width = range(table.shape[1])
        labels = self.units_.unit_names(width if names is None else names)
        return Reread(table, target, self, labels)

    def _check_same(self, n_columns: int, n_given: int, names: Any, others: Any) -> None:
        """Refuse a table whose columns differ from those of the fit."""
        known = names is not None and others is not None
        if n_columns != n_given or (known and list(names) != list(others)):
            raise InvalidTable(
                f"{type(self).__name__} needs the table that it was fitted to, with {n_columns} "
                f"columns; this one has {n_given} or different columns. Give the same columns in "
                "the same order."
            )
