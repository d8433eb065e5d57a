"""From columns of any kind to numbers, and which number comes of which column."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from tamis._arrays import Array
from tamis._checks import NONE, Constraints, check_parameters, integer, one_of
from tamis.exceptions import InvalidTable
from tamis.table.alerts import kept_kinds
from tamis.table.frames import as_polars, check_names, is_frame
from tamis.table.kinds import TableProfile, as_dates, blocks, columns_of, days_of, numbers

#: Levels of a category that have a column of their own; the rarest share one.
MOST_LEVELS = 20
#: Share of the rows below which a level is rare, in bounds: a column of one row only names a row,
#: and 20 rows tell what a level does to a quarter of a standard deviation. Many columns of few rows
#: would let a category with many levels pass for more than it says.
RARE_SHARE, FEWEST_ROWS, ENOUGH_ROWS = 0.03, 2, 20


class TableEncoder(TransformerMixin, BaseEstimator):
    """Numbers of a frame of any kinds, made by scikit-learn's parts.

    Numbers with gaps are filled with the median, beside a column that marks the gaps; categories
    become one column per level, rare levels sharing one. A date becomes its position in time, a
    number of days; :func:`add_calendar` adds month, weekday and hour as columns of their own. Text,
    identifiers and constants are left out.

    Parameters
    ----------
    max_levels : int, default=20
        Columns that one category can become at most.
    levels : {"columns", "codes"}, default="columns"
        Whether a category becomes columns, or one column of integers, none of them pooled.
    gaps : {"fill", "keep"}, default="fill"
        Whether gaps are filled and marked, or are NaN, in codes as well.
    keep : list of str
        Columns that are used although they look like an identifier or text: as numbers, or as
        categories.

    Attributes
    ----------
    kinds_ : dict of str to str
        Kind of each column of the table.
    output_to_input_ : dict of str to str
        For each output the column that it came of.
    coded_ : array of bool
        Which outputs are codes of a category.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"dose": [1.0, None, 3.0, 5.0], "site": ["a", "b", "b", "a"]})
    >>> encoder = TableEncoder().fit(frame)
    >>> encoder.get_feature_names_out().tolist()
    ['dose', 'dose_missing', 'site_b']
    >>> encoder.transform(frame)[1].tolist()
    [3.0, 1.0, 1.0]
    """

    _constraints: ClassVar[Constraints] = {
        "max_levels": integer(1) | NONE,
        "levels": one_of("columns", "codes"),
        "gaps": one_of("fill", "keep"),
    }

    def __init__(
        self,
        max_levels: int = MOST_LEVELS,
        *,
        levels: str = "columns",
        gaps: str = "fill",
        keep: Sequence[str] = (),
    ):
        self.max_levels = max_levels
        self.levels = levels
        self.gaps = gaps
        self.keep = keep

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn kinds, medians and levels.

        Parameters
        ----------
        X : frame of pandas, polars or pyarrow, or array of numbers
        y : ignored
        """
        check_parameters(self)
        frame = read_frame(self, X, reset=True)
        seen = columns_of(frame)
        self._learn(frame, replace(seen, kind=kept_kinds(frame, seen, self.keep)))
        return self

    def transform(self, X: Any) -> Array:
        """The columns as numbers.

        Parameters
        ----------
        X : frame of pandas, polars or pyarrow, or array of numbers
        """
        check_is_fitted(self)
        Z = self._encode(read_frame(self, X, reset=False))
        if not Z.shape[1]:
            raise ValueError("0 feature(s) are left: no column holds numbers, categories or dates.")
        return Z

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the outputs: that of the column, and behind it the level."""
        check_is_fitted(self)
        return np.array(list(self.output_to_input_), dtype=object)

    def _learn(self, frame: pl.DataFrame, seen: TableProfile) -> None:
        """Learn the columns that are used, of a kind that becomes numbers."""
        self.kinds_, asked = seen.kinds, set(seen.used)
        self._numbers, self._words, self._dates = (
            [j for j in seen.of_kind(*kinds) if j in asked]
            for kinds in (("number", "boolean"), ("category",), ("date",))
        )
        self._written, self._names = seen.written, seen.names
        self._imputer = median_imputer()
        self._levels = self._level_encoder(frame.height)
        if self._fills:
            self._imputer.fit(self._held(frame))
        if self._words:
            self._levels.fit(self._worded(frame))
        self._name_outputs()

    @property
    def _fills(self) -> bool:
        """Whether there are numbers whose gaps are to be filled."""
        return self.gaps == "fill" and bool(self._numbers or self._dates)

    def _level_encoder(self, n_rows: int) -> Any:
        if self.levels == "codes":
            gap = np.nan if self.gaps == "keep" else -1
            return OrdinalEncoder(
                handle_unknown="use_encoded_value", unknown_value=gap, encoded_missing_value=gap
            )
        return OneHotEncoder(
            drop="if_binary",
            min_frequency=min(max(FEWEST_ROWS, int(RARE_SHARE * n_rows)), ENOUGH_ROWS),
            max_categories=self.max_levels,
            handle_unknown="infrequent_if_exist",
            sparse_output=False,
        )

    def _name_outputs(self) -> None:
        """Which column of which name each output is, in the order of the columns."""
        held = [*self._numbers, *self._dates]
        marked = self._imputer.indicator_.features_.tolist() if self._fills else []
        gaps = [held[i] for i in marked]
        names = [self._names[j] for j in held] + [f"{self._names[j]}_missing" for j in gaps]
        words, n_levels = [self._names[j] for j in self._words], [1] * len(self._words)
        if words and self.levels == "columns":
            words, n_levels = (
                self._levels.get_feature_names_out(words),
                self._levels._n_features_outs,
            )
        names += list(words)
        origin = np.r_[held, gaps, np.repeat(self._words, n_levels)].astype(np.intp)
        self._order = np.argsort(origin, kind="stable")
        self.origin_ = origin[self._order]
        self.coded_ = np.isin(self.origin_, self._words) & (self.levels == "codes")
        self.output_to_input_ = {names[i]: self._names[origin[i]] for i in self._order}

    def _encode(self, frame: pl.DataFrame) -> Array:
        parts = []
        if self._numbers or self._dates:
            held = self._held(frame)
            parts.append(self._imputer.transform(held) if self._fills else held)
        if self._words:
            with warnings.catch_warnings():
                # that new levels count as rare ones, or as none, is what is wanted
                warnings.filterwarnings("ignore", "Found unknown categories", UserWarning)
                parts.append(self._levels.transform(self._worded(frame)))
        Z: Array = np.hstack(parts) if parts else np.empty((frame.height, 0))
        as_it_is = np.array_equal(self._order, np.arange(Z.shape[1]))
        return Z if as_it_is else np.asfortranarray(Z[:, self._order])

    def _held(self, frame: pl.DataFrame) -> Array:
        """Numbers, and the days of dates, NaN where there are gaps."""
        held = np.empty((frame.height, len(self._numbers) + len(self._dates)), order="F")
        done = 0
        for block in blocks(frame.height, self._numbers):
            held[:, done : done + len(block)] = numbers(frame, block)
            done += len(block)
        for i, j in enumerate(self._dates, len(self._numbers)):
            held[:, i] = days_of(as_dates(frame.to_series(j), self._written.get(j)))
        return held

    def _worded(self, frame: pl.DataFrame) -> NDArray[Any]:
        columns = [frame.to_series(j).cast(pl.String).to_list() for j in self._words]
        words = np.array(columns, dtype=object).T
        if self.levels == "codes":  # None would be a level like others to scikit-learn
            words[words == None] = np.nan  # noqa: E711 (entry by entry)
        return words

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def median_imputer() -> SimpleImputer:
    """Return what fills missing values with the median, beside columns that mark them."""
    return SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)


def read_frame(estimator: Any, X: Any, *, reset: bool) -> pl.DataFrame:
    """A frame of polars, after scikit-learn's checks of names and numbers of columns."""
    if is_frame(X):
        frame = as_polars(X)
        check_names(estimator, X, reset=reset)
        return frame
    try:
        array = validate_data(
            estimator, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan"
        )
    except ValueError as error:
        if not str(error).startswith("could not convert"):
            raise
        raise InvalidTable(
            f"{type(estimator).__name__} takes words in frames only, and an array of numbers "
            f"({error}). Give a frame of pandas, polars or pyarrow."
        ) from error
    return pl.DataFrame(np.asfortranarray(array), schema=[f"x{j}" for j in range(array.shape[1])])


def coded(frame: pl.DataFrame) -> Array:
    """One number per cell, whatever it holds: what tells one table from another."""
    X = np.empty(frame.shape, order="F")
    dtypes = frame.dtypes
    numeric = [j for j in range(frame.width) if dtypes[j].is_numeric()]
    for block in blocks(frame.height, numeric):
        X[:, block] = numbers(frame, block)
    for j in sorted(set(range(frame.width)) - set(numeric)):
        column = frame.to_series(j)
        if dtypes[j].is_nested() or dtypes[j] == pl.Object:
            X[:, j] = 0.0  # has no order, and no encoder of ours takes it
            continue
        if dtypes[j] == pl.Binary:
            column = column.bin.encode("hex")
        plain = column.to_physical() if dtypes[j].is_temporal() else column.cast(pl.String)
        X[:, j] = plain.rank("dense").cast(pl.Float64).to_numpy()
    return X
