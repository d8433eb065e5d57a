"""Selector for frames whose columns may hold text, categories, dates and missing values."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import Tags, _safe_indexing
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted, validate_data

from tamis._arrays import Array, times_as_days
from tamis._checks import BOOLEAN, Constraints
from tamis._frame import collected
from tamis.blocks.device_arrays import as_numpy
from tamis.blocks.table import is_in_blocks
from tamis.contract import Record, Selection, Trace
from tamis.contract.composition import Composed, PartRuns
from tamis.contract.explain import column_index
from tamis.contract.fit_warnings import FitWarning
from tamis.contract.record import outside_pairs
from tamis.contract.selector import Reread
from tamis.contract.steps import Event
from tamis.contract.units import Grouping
from tamis.exceptions import IncompatibleCriterion, InvalidParameter, TableAlert
from tamis.table.frames import (
    as_library,
    as_polars,
    check_names,
    is_frame,
    library_of,
    need_polars,
    need_threads,
    take,
)
from tamis.validation.held_out import weights_name

#: Explanation of each reason for excluding a column.
WHY = {
    "identifier": "it has a different value in every row, so it looks like an identifier",
    "code": "each of its values stands for one value of the target",
    "text": "it holds text, which the encoder does not take",
    "constant": "it has one value, or none, in all rows",
    "unused": "the encoder makes no numbers from it",
}


@dataclass(eq=False, repr=False)
class TableSelector(Composed):
    """Selector that encodes a frame and lets a search select among its columns.

    The frame may hold numbers with missing values, categories, dates and booleans. They are encoded
    inside ``fit``, so nothing is learnt from held-out rows.

    - Missing values are passed on if the criterion accepts NaN. Otherwise they are filled with the
      median, and an added column marks them.
    - A category is a single discrete variable if the criterion supports categories, as the
      information family does. Otherwise it becomes one column per level.
    - A date becomes its position in time, a single number. :func:`add_calendar` adds month, weekday
      and hour as separate columns.

    All numbers made from the same column are selected or dropped together. ``transform`` returns
    the original columns, in a frame of the same library. Identifiers and exact codes of the target
    are excluded with a warning.

    Parameters
    ----------
    search : Search, Then or an embedded selector
        Its ``feature_groups``, ``fixed_features`` and ``feature_costs`` refer to the columns of the
        frame.
    encoder : "auto" or transformer, default="auto"
        ``"auto"`` is a :class:`TableEncoder` whose output suits the search. Any other transformer
        must provide the input column of each output, as skrub's ``TableVectorizer`` and
        scikit-learn's ``ColumnTransformer`` do. It also receives text columns.
    keep : sequence of str, default=()
        Columns to use although they look like an identifier or a code of the target.
    alerts : bool, default=True
        Whether to look for leaks, duplicates and other findings. Without them, a fit to a wide
        table takes about a third less time. The columns that are excluded do not depend on it.

    Attributes
    ----------
    encoder_ : transformer
        The fitted encoder.
    search_ : selector
        The fitted search. Its indices refer to the encoded columns.
    kinds_ : dict of str to str
        Kind of each column.
    alerts_ : tuple of Alert
        Findings about the table.
    aside_ : dict of str to str
        Columns that were excluded, and why.

    Examples
    --------
    >>> from tamis.criteria import Importances
    >>> from tamis.datasets import make_mixed
    >>> from tamis.search import RecursiveElimination
    >>> from sklearn.linear_model import RidgeClassifier
    >>> table = make_mixed(400, random_state=0, like="incomes")
    >>> search = RecursiveElimination(Importances(RidgeClassifier()), n_features_to_select=3)
    >>> TableSelector(search).fit(table.to_frame(), table.y).columns
    ['education', 'married', 'hours']
    """

    search: Selection
    encoder: BaseEstimator | str = "auto"
    _: KW_ONLY
    keep: Sequence[str] = ()
    alerts: bool = True

    _constraints: ClassVar[Constraints] = {"alerts": BOOLEAN}
    part_names = ("search",)

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, **params: Any) -> Self:
        """Find the best columns of a frame; see :meth:`Selection.fit`."""
        try:
            super().fit(X, y, **params)
        finally:
            self.__dict__.pop("_encoding", None)
        return self

    def _read_table(
        self, X: Any, y: Any, target: Any, params: dict[str, Any]
    ) -> tuple[Any, NDArray[Any] | None, Grouping]:
        if is_in_blocks(X):
            self._check_blocks()
        Z, y, self._encoding = _encode_table(self, X, y)
        self.encoder_, profile = self._encoding.encoder, self._encoding.profile
        self.kinds_, self.alerts_, self.aside_ = profile.kinds, profile.alerts, self._encoding.aside
        return Z, y, self._encoding.outer

    def _check(self) -> None:
        if not isinstance(self.search, Selection) or isinstance(self.search, TableSelector):
            raise IncompatibleCriterion(
                f"TableSelector needs a search, not {self.search!r}. Write "
                'TableSelector(tamis.recipe("ridge-rfe")), or TableSelector(Forward(...)).'
            )
        if isinstance(self.encoder, str) and self.encoder != "auto":
            raise InvalidParameter(
                f"TableSelector needs encoder='auto' or a transformer, not {self.encoder!r}."
            )
        if isinstance(self.keep, str):
            raise InvalidParameter(
                f"TableSelector needs keep as a list of columns, not {self.keep!r}. Write "
                f"keep=[{self.keep!r}]."
            )
        self.search.check()

    def _steps(
        self, criterion: PartRuns, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Event]:
        encoding, (share,) = self._encoding, self._shares(criterion.params)
        run = criterion.begin(encoding.search, criterion.X, criterion.y, share, encoding.inner)
        return run.on(encoding.outside, done)

    def _size(self, n_units: int) -> int | None:
        """Return the number of units that the search asks for, counted in encoded units."""
        size: int | None = self.search._size(self._encoding.inner.n_units)
        return size

    @property
    def counts_places(self) -> bool:  # type: ignore[override]
        """Whether the scores of the search are ranks."""
        return bool(self.search.counts_places)

    def _inner_search(self) -> Any:
        return self.search

    def _warnings(self, criterion: Any) -> Iterator[FitWarning]:
        yield from super()._warnings(criterion)
        for alert in self.alerts_:
            if alert.grave:
                yield str(alert), TableAlert

    def _settle(self, record: Record, X: Array, y: NDArray[Any] | None) -> None:
        super()._settle(record, X, y)
        if not record.parts:
            return
        (part,) = record.parts
        self.search_ = inside = clone(self._encoding.search)
        inside.n_features_in_ = X.shape[1]
        if not len(part.trace):
            return
        self._outside = outside = self._encoding.outside
        names = getattr(self, "feature_names_in_", range(len(self.support_)))
        labels = self._encoding.outer.unit_names(names)
        inside._unit_labels = [labels[unit] for unit in outside]
        inside._settle(part, X, y)
        left_out = np.setdiff1d(np.arange(len(self.order_)), outside)
        self.order_ = np.r_[outside[inside.order_], left_out]
        self.ranking_ = np.full(len(self.order_), inside.ranking_.max() + 1)
        self.ranking_[outside] = inside.ranking_
        self.scores_ = np.full(len(self.order_), np.nan)
        self.scores_[outside] = inside.scores_
        self.interactions_ = outside_pairs(inside.interactions_, outside)

    def transform(self, X: ArrayLike) -> Any:
        """Return the selected columns unchanged, in a frame of the same library as ``X``.

        Parameters
        ----------
        X : frame of pandas, polars or pyarrow, or array of numbers
            A table with the same columns as in ``fit``.
        """
        check_is_fitted(self)
        X = collected(X)
        kept = np.flatnonzero(self.support_)
        if not is_frame(X):
            array = validate_data(
                self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan"
            )
            return array[:, kept]
        check_names(self, X, reset=False)
        library = _get_output_config("transform", self)["dense"]
        taken = take(X, kept)
        return as_library(taken, library) if library in ("pandas", "polars") else taken

    def _reasons(self) -> list[str]:
        return self.search_._reasons()

    def explain(self, column: Hashable) -> str:
        """Explain why a column was selected or not; see :meth:`Selection.explain`.

        Parameters
        ----------
        column : int or str
            Index or name of the column.
        """
        check_is_fitted(self)
        names = list(self.kinds_)
        if isinstance(column, str) and column not in names:
            return super().explain(column)
        unit = column_index(type(self).__name__, column, names, len(names))
        if (why := self.aside_.get(names[unit])) is not None:
            return f"{names[unit]!r} was left out before the search: {WHY[why]}."
        return super().explain(unit)

    def _reread(self, X: Any, y: Any) -> Reread:
        """Encode the table again in the same way as in ``fit``."""
        fresh = clone(self).set_params(alerts=False)
        Z, y, encoding = _encode_table(fresh, collected(X), y)
        names, others = (getattr(s, "feature_names_in_", None) for s in (self, fresh))
        self._check_same(len(self.support_), fresh.n_features_in_, names, others)
        self._check_same(self.search_.n_features_in_, Z.shape[1], None, None)
        labels = encoding.outer.unit_names(range(len(self.support_)) if names is None else names)
        return Reread(Z, y, self.search_, [labels[u] for u in encoding.outside])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.search.__sklearn_tags__().target_tags.required
        tags.input_tags.allow_nan = True
        return tags


def _encode_table(selector: TableSelector, X: Any, y: Any) -> Any:
    """Encode a frame. The encoding is imported lazily, so that polars stays optional."""
    need_polars()
    need_threads()
    from tamis.table.encoded_table import encode_table

    return encode_table(selector, X, y)


def to_pipeline(selection: Selection, X: Any, y: Any, estimator: Any) -> Pipeline:
    """Train a pipeline of the selected columns; see :meth:`Selection.to_pipeline`."""
    name, inside = type(selection).__name__, selection
    while isinstance(inside, TableSelector):
        inside = inside.search_
    if not selection.columns:
        raise InvalidParameter(
            f"to_pipeline needs selected columns, but {type(inside).__name__} selected none. "
            "Set n_features_to_select to select some."
        )
    models = (estimator, *(getattr(inside, name, None) for name in ("estimator_", "estimator")))
    # a forest that is not fitted has no truth value
    model = next((model for model in models if model is not None), None)
    if model is None:
        raise InvalidParameter(
            f"to_pipeline needs a model, but {type(inside).__name__} only selects columns. Write "
            "to_pipeline(estimator=...), or select without a method."
        )
    weights = None
    if X is None:
        given = getattr(selection, "_given", None)
        if given is None:
            raise InvalidParameter(
                f"to_pipeline needs the table, because {name} was loaded from a file or fitted to "
                "row blocks. Write to_pipeline(X, y)."
            )
        X, y, weights = given
    X, y, weights = (as_numpy("to_pipeline", values) for values in (X, y, weights))
    if is_frame(X) and library_of(X) == "pyarrow":  # scikit-learn cannot take its columns
        X = as_polars(X)
    y = None if y is None else np.asarray(times_as_days(y))
    weights = None if y is None else inside._row_weights(y, weights)
    pipeline = Pipeline([("columns", _columns_step(selection)), ("model", clone(model))])
    if weights is None:
        return pipeline.fit(X, y)
    used = np.flatnonzero(weights)  # solvers reject a weight of 0
    param = weights_name(pipeline)
    fit_params = {} if param is None else {param: weights[used]}
    return pipeline.fit(_safe_indexing(X, used), y[used], **fit_params)


def _columns_step(selection: Selection) -> ColumnTransformer:
    """Return a transformer that takes the selected columns of a table and encodes them.

    A search may use codes and missing values that models do not accept, so the encoder of the
    search is replaced by one with indicators of levels and filled values.
    """
    encoder: Any = "passthrough"
    if isinstance(selection, TableSelector):
        need_polars()
        from tamis.table.encoder import TableEncoder, median_imputer

        kept = selection.columns
        readings = {name: how for name, how in selection._readings.items() if name in kept}
        encoder = TableEncoder(keep=kept, readings=readings)
        if not isinstance(selection.encoder, str):
            encoder = make_pipeline(clone(selection.encoder), median_imputer())
    return ColumnTransformer(
        [("encoder", encoder, selection.columns)],
        sparse_threshold=0.0,
        verbose_feature_names_out=False,
    )
