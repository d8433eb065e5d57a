"""A selection from a frame of any kinds, in terms of its own columns."""

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted, validate_data

from tamis._arrays import Array
from tamis._frame import collected
from tamis.blocks.table import is_in_blocks
from tamis.contract import Record, Selection, Trace
from tamis.contract.composition import Composed, PartRuns
from tamis.contract.explain import column_index
from tamis.contract.record import outside_pairs
from tamis.contract.selector import Doubt, Reread
from tamis.contract.steps import Event
from tamis.contract.units import Grouping
from tamis.exceptions import IncompatibleCriterion, InvalidParameter, TableAlert
from tamis.table.frames import (
    as_library,
    check_names,
    is_frame,
    need_polars,
    need_threads,
    take,
)

#: What is said of a column that the search never saw, by the reason it was left out for.
WHY = {
    "identifier": "it has another value in every row, as an identifier has",
    "code": "each of its values stands for one value of the target",
    "text": "it holds text, which the encoder does not take",
    "constant": "it has one value, or none, in all rows",
    "unused": "the encoder makes nothing of it",
}


class TableSelector(Composed):
    """Let a search choose among the columns of a frame of any kinds.

    Numbers with gaps, categories, dates and booleans are encoded inside ``fit``, so that nothing is
    learnt from rows that are held out. A search whose criterion takes NaN gets gaps as they are,
    and one whose criterion takes categories, as the information family does, each as one discrete
    variable; for the others gaps are filled and marked, and a category has a column for each level.
    A date is used as its position in time, one number; :func:`add_calendar` adds month, weekday and
    hour as columns of their own.
    All numbers that come of one column are taken or left together, and ``transform`` gives the
    original columns back, as a frame of the library that came in. Identifiers and exact codes of
    the target are left out, and a warning says so.

    Parameters
    ----------
    search : Search, Then or an embedded selector
        Its ``feature_groups`` and ``fixed_features`` speak of the columns of the frame.
    encoder : "auto" or transformer, default="auto"
        What makes numbers: a :class:`TableEncoder` that makes what the search takes, or a
        transformer that says which of its outputs come of which column, as skrub's
        ``TableVectorizer`` and scikit-learn's ``ColumnTransformer`` do. It is offered text as well.
    keep : sequence of str, default=()
        Columns to use although they look like an identifier or a code of the target.

    Attributes
    ----------
    encoder_ : transformer
        The fitted encoder.
    search_ : selector
        The fitted search, which counts the columns of numbers.
    kinds_ : dict of str to str
        Kind of each column.
    alerts_ : tuple of Alert
        What to know of the table.
    aside_ : dict of str to str
        Columns that the search was not offered, and why.

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

    part_names = ("search",)

    def __init__(self, search: Any, encoder: Any = "auto", *, keep: Sequence[str] = ()):
        self.search = search
        self.encoder = encoder
        self.keep = keep

    # -- the frame and what is offered of it ------------------------------------------------------

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, **params: Any) -> Self:
        """Find the best columns of a frame; see :meth:`Selection.fit`."""
        try:
            super().fit(X, y, **params)
        finally:
            self.__dict__.pop("_offered", None)
        return self

    def _read_table(
        self, X: Any, y: Any, target: Any, params: dict[str, Any]
    ) -> tuple[Any, NDArray[Any] | None, Grouping]:
        if is_in_blocks(X):
            self._check_blocks()
        self._offered = offered = _reader().offered(self, X, y)
        self.encoder_, profile = offered.encoder, offered.profile
        self.kinds_, self.alerts_, self.aside_ = profile.kinds, profile.alerts, offered.aside
        return offered.codes, offered.y, offered.outer

    # -- what a selection says --------------------------------------------------------------------

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

    def _open(
        self, X: Array, y: NDArray[Any] | None, params: dict[str, Any], done: Record
    ) -> PartRuns:
        return PartRuns(self._offered.Z, y, params, done)

    def _steps(
        self, criterion: PartRuns, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Event]:
        offered, (share,) = self._offered, self._shares(criterion.params)
        run = criterion.begin(offered.search, criterion.X, criterion.y, share, offered.inner)
        return run.on(offered.outside, done)

    def _size(self, n_units: int) -> int | None:
        """As the search counts what it is offered."""
        size: int | None = self.search._size(self._offered.inner.n_units)
        return size

    @property
    def counts_places(self) -> bool:  # type: ignore[override]
        """As the search does."""
        return bool(self.search.counts_places)

    def _inner_search(self) -> Any:
        return self.search

    def _doubts(self, criterion: Any) -> Iterator[Doubt]:
        yield from super()._doubts(criterion)
        for alert in self.alerts_:
            if alert.grave:
                yield str(alert), TableAlert

    def _settle(self, record: Record, X: Array, y: NDArray[Any] | None) -> None:
        super()._settle(record, X, y)
        if not record.parts:
            return
        (part,) = record.parts
        self.search_ = clone(self._offered.search)
        self.search_.n_features_in_ = self._offered.Z.shape[1]
        if not len(part.trace):
            return
        inside, outside = self.search_, self._offered.outside
        inside._settle(part, self._offered.Z, y)
        left_out = np.setdiff1d(np.arange(len(self.order_)), outside)
        self.order_ = np.r_[outside[inside.order_], left_out]
        self.ranking_ = np.full(len(self.order_), inside.ranking_.max() + 1)
        self.ranking_[outside] = inside.ranking_
        self.scores_ = np.full(len(self.order_), np.nan)
        self.scores_[outside] = inside.scores_
        self.interactions_ = outside_pairs(inside.interactions_, outside)

    # -- what it offers ---------------------------------------------------------------------------

    def transform(self, X: ArrayLike) -> Any:
        """The columns that are kept, as they are, in a frame of the library of ``X``.

        Parameters
        ----------
        X : frame of pandas, polars or pyarrow, or array of numbers
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
        """Those of the search inside, which counts the columns of the table."""
        return self.search_._reasons()

    def explain(self, column: Any) -> str:
        """Say in words what became of a column; see :meth:`Selection.explain`.

        Parameters
        ----------
        column : int or str
        """
        check_is_fitted(self)
        names = list(self.kinds_)
        if isinstance(column, str) and column not in names:
            return super().explain(column)
        unit = column_index(type(self).__name__, column, names, len(names))
        if (why := self.aside_.get(names[unit])) is not None:
            return f"{names[unit]!r} was not offered to the search: {WHY[why]}."
        return super().explain(unit)

    def _reread(self, X: Any, y: Any) -> Reread:
        """The numbers of the table of the fit once more."""
        fresh = clone(self)
        offered = _reader().offered(fresh, collected(X), y)
        names, others = (getattr(s, "feature_names_in_", None) for s in (self, fresh))
        self._check_same(len(self.support_), fresh.n_features_in_, names, others)
        n_numbers = offered.Z.shape[1]
        self._check_same(self.search_.n_features_in_, n_numbers, None, None)
        labels = offered.outer.unit_names(range(len(self.support_)) if names is None else names)
        return Reread(offered.Z, offered.y, self.search_, [labels[u] for u in offered.outside])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.search.__sklearn_tags__().target_tags.required
        tags.input_tags.allow_nan = True
        return tags


def _reader() -> Any:
    """Return the module that reads frames, imported lazily so that polars stays optional."""
    need_polars()
    need_threads()
    from tamis.table import encoded_table

    return encoded_table
