"""What a selection offers once it is fitted: the columns, in a table, in words, and others.

Only the fitted attributes are read here; how they come about is in :mod:`tamis.contract.selector`.
"""

from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from tamis._arrays import Array, Mask
from tamis._extensions import extension
from tamis._frame import collected
from tamis._namespace import is_elsewhere
from tamis.blocks.device_arrays import columns_of
from tamis.blocks.inputs import SparseColumns, check_data
from tamis.blocks.table import check_held
from tamis.contract.choice import Chosen
from tamis.contract.explain import explained
from tamis.contract.record import Record
from tamis.contract.units import Grouping
from tamis.exceptions import InvalidTable

#: Kept columns that a summary names.
MOST_NAMED = 20


class Reread(NamedTuple):
    """The table of a fit once more, as the search got it.

    ``search`` is fitted and speaks of the units of ``X``; ``labels`` are what people call these.
    """

    X: Array
    y: NDArray[Any] | None
    search: "FittedSelection"
    labels: list[Any]


class FittedSelection(SelectorMixin):
    """What people ask of a selection after its fit."""

    support_: Mask
    units_: Grouping
    choice_: Chosen
    record_: Record

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
        return name, *search._share_done(self.record_)

    def _inner_search(self) -> Any:
        """Return the search, which is inside a selector that only prepares the table."""
        return self

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
