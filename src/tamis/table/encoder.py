"""Encoder that turns columns of any kind into numbers, and records the source of each output."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import count
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from tamis._arrays import Array
from tamis._checks import NONE, Constraints, check_parameters, integer, one_of
from tamis.exceptions import InvalidTable
from tamis.table.alerts import kept_kinds
from tamis.table.frames import as_polars, check_names, is_frame
from tamis.table.kinds import (
    Reading,
    TableProfile,
    apply_readings,
    blocks,
    columns_of,
    days_of,
    numbers,
    read_columns,
)

#: Maximum number of indicator columns for a categorical column. The rarest levels share a column.
MOST_LEVELS = 20
#: A level is rare if it has fewer than 3 % of the rows. In small tables, the limit is at least 2
#: rows, because an indicator of a single row only identifies that row. In large tables, it is at
#: most 20 rows, because 20 rows estimate the effect of a level to within a quarter of a standard
#: deviation. Without a limit, categories with many levels would be overrated.
RARE_SHARE, FEWEST_ROWS, ENOUGH_ROWS = 0.03, 2, 20
#: Name of the indicator that rare levels share, as in scikit-learn.
RARE_LEVELS = "infrequent_sklearn"


class Levels(NamedTuple):
    """Levels of a categorical column, their codes and the names of their indicators.

    Attributes
    ----------
    code : dict of str to float
        Code of each level, in alphabetical order. If the column is encoded as indicators, rare
        levels share the last code.
    missing, other : float
        Code of missing values, and of levels that were not seen: that of the rare levels, or else
        -1 or NaN.
    names : dict of float to str
        Name of the indicator of each code. If there are only two, the first has none.
    """

    code: dict[str, float]  # without None, which skops cannot restore as a key
    missing: float
    other: float
    names: dict[float, str]

    @classmethod
    def of_codes(cls, texts: list[str | None], other: float) -> Self:
        """Return the levels of a column that is encoded as integers."""
        known = sorted({text for text in texts if text is not None})
        return cls({level: float(i) for i, level in enumerate(known)}, other, other, {})

    @classmethod
    def of_indicators(cls, texts: list[str | None], least: int, most: int | None) -> Self:
        """Return the levels of a column that is encoded as at most ``most`` indicators.

        Levels with fewer than ``least`` rows share an indicator, and so do the rarest levels if
        there are too many. This is what scikit-learn's OneHotEncoder does.
        """
        counts = Counter(texts)
        levels = sorted(counts, key=lambda level: (level is None, level or ""))
        rare = {level for level in levels if counts[level] < least}
        if most is not None and len(levels) - len(rare) >= most:
            rare = set(sorted(levels, key=counts.__getitem__)[: len(levels) - most + 1])
        common = [level for level in levels if level not in rare]
        code: dict[str | None, float] = {level: float(i) for i, level in enumerate(common)}
        names = {i: str(level) for level, i in code.items()}
        other = float(len(common)) if rare else -1.0
        if rare:
            code |= dict.fromkeys(rare, other)
            names[other] = RARE_LEVELS
        if len(names) == 2:
            del names[0.0]
        missing = code.pop(None, other)
        return cls({str(level): i for level, i in code.items()}, missing, other, names)

    def codes(self, column: pl.Series) -> Array:
        """Return the code of each row."""
        code, missing, other, _ = self
        texts = column.cast(pl.String).to_list()
        return np.array([missing if text is None else code.get(text, other) for text in texts])

    def indicators(self, column: pl.Series) -> Array:
        """Return one column for each name, with 1 in the rows that have its code."""
        return (self.codes(column)[:, None] == list(self.names)).astype(float)


@dataclass(eq=False, repr=False)
class TableEncoder(TransformerMixin, BaseEstimator):
    """Transformer that encodes a frame as numbers, with the rules of scikit-learn's encoders.

    - Missing values are filled with the median, and an added column marks them.
    - A categorical column becomes one column per level. Rare levels share a column.
    - A date becomes a number of days. :func:`add_calendar` adds month,
      weekday and hour as separate columns.
    - Text, identifiers and constant columns are left out.

    Parameters
    ----------
    max_levels : int, default=20
        Largest number of output columns for a categorical column.
    levels : {"columns", "codes"}, default="columns"
        "columns" encodes a categorical column as one indicator column per level, and rare levels
        share a column. "codes" encodes it as a single column of integers, one per level.
    gaps : {"fill", "keep"}, default="fill"
        "fill" fills missing values with the median and marks them. "keep" leaves them as NaN, even
        in columns of codes.
    keep : list of str
        Columns to use even if they look like an identifier or text. They are used as numbers or
        categories. Their values are not changed, unless ``readings`` is given.
    readings : dict of str to Reading, optional
        How to read columns with amounts, dates or codes for missing values. By default, this is
        learned from X.

    Attributes
    ----------
    kinds_ : dict of str to str
        Kind of each column of the frame.
    output_to_input_ : dict of str to str
        The input column of each output.
    coded_ : array of bool
        Mask of the outputs that are category codes.

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

    max_levels: int = MOST_LEVELS
    _: KW_ONLY
    levels: str = "columns"
    gaps: str = "fill"
    keep: Sequence[str] = ()
    readings: Mapping[str, Reading] | None = None

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn the kinds of the columns, their medians and their levels from X.

        Parameters
        ----------
        X : frame of pandas, polars or pyarrow, or array of numbers
            The table.
        y : ignored
        """
        check_parameters(self)
        frame = read_frame(self, X, reset=True)
        seen = columns_of(frame)
        self._learn(frame, replace(seen, kind=kept_kinds(frame, seen, self.keep)))
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Return the encoded columns as an array of numbers.

        Parameters
        ----------
        X : frame of pandas, polars or pyarrow, or array of numbers
            A table with the columns of the fit.
        """
        check_is_fitted(self)
        Z = self._encode(read_frame(self, X, reset=False))
        if not Z.shape[1]:
            raise ValueError("0 feature(s) are left: no column holds numbers, categories or dates.")
        return Z

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Return the names of the outputs. For a category, the level follows the column's name."""
        check_is_fitted(self)
        return np.array(list(self.output_to_input_), dtype=object)

    def _learn(self, frame: pl.DataFrame, seen: TableProfile) -> None:
        """Fit the imputer and the encoders to the columns that are used."""
        self.kinds_, asked = seen.kinds, set(seen.used)
        self._numbers, self._words, self._dates = (
            [j for j in seen.of_kind(*kinds) if j in asked]
            for kinds in (("number", "boolean"), ("category",), ("date",))
        )
        self._names = seen.names
        self._imputer = median_imputer()
        self._levels = [self._level_rule(frame.to_series(j)) for j in self._words]
        if self._fills:
            self._imputer.fit(self._numeric_values(frame))
        self._name_outputs()

    @property
    def _fills(self) -> bool:
        return self.gaps == "fill" and bool(self._numbers or self._dates)

    def _level_rule(self, column: pl.Series) -> Levels:
        texts = column.cast(pl.String).to_list()
        if self.levels == "codes":
            return Levels.of_codes(texts, np.nan if self.gaps == "keep" else -1.0)
        least = min(max(FEWEST_ROWS, int(RARE_SHARE * len(texts))), ENOUGH_ROWS)
        return Levels.of_indicators(texts, least, self.max_levels)

    def _name_outputs(self) -> None:
        """Store the name of each output and the input column that it was made from."""
        numeric = [*self._numbers, *self._dates]
        marked = self._imputer.indicator_.features_.tolist() if self._fills else []
        marks = [numeric[i] for i in marked]
        names = [self._names[j] for j in numeric] + [f"{self._names[j]}_missing" for j in marks]
        words, n_levels = [self._names[j] for j in self._words], [1] * len(self._words)
        if self.levels == "columns":
            n_levels = [len(own.names) for own in self._levels]
            words = [
                f"{word}_{level}"
                for word, own in zip(words, self._levels, strict=True)
                for level in own.names.values()
            ]
        names = distinct([*names, *words])
        origin = np.r_[numeric, marks, np.repeat(self._words, n_levels)].astype(np.intp)
        self._order = np.argsort(origin, kind="stable")
        self.origin_ = origin[self._order]
        self.coded_ = np.isin(self.origin_, self._words) & (self.levels == "codes")
        self.output_to_input_ = {names[i]: self._names[origin[i]] for i in self._order}

    def _encode(self, frame: pl.DataFrame) -> Array:
        parts = []
        if self._numbers or self._dates:
            X = self._numeric_values(frame)
            parts.append(self._imputer.transform(X) if self._fills else X)
        columns = map(frame.to_series, self._words)
        if self.levels == "codes" and self._words:
            parts.append(np.column_stack([*map(Levels.codes, self._levels, columns)]))
        else:
            parts += map(Levels.indicators, self._levels, columns)
        Z: Array = np.hstack(parts) if parts else np.empty((frame.height, 0))
        in_order = np.array_equal(self._order, np.arange(Z.shape[1]))
        return Z if in_order else np.asfortranarray(Z[:, self._order])

    def _numeric_values(self, frame: pl.DataFrame) -> Array:
        """Return the numeric columns, and the dates in days, with NaN for missing values."""
        X = np.empty((frame.height, len(self._numbers) + len(self._dates)), order="F")
        done = 0
        for block in blocks(frame.height, self._numbers):
            X[:, done : done + len(block)] = numbers(frame, block)
            done += len(block)
        for i, j in enumerate(self._dates, len(self._numbers)):
            X[:, i] = days_of(frame.to_series(j))
        return X

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def distinct(names: Iterable[str]) -> list[str]:
    """Return the names, with a number after each that occurred before.

    >>> distinct(["a_b", "c", "a_b"])
    ['a_b', 'c', 'a_b_2']
    """
    found: dict[str, None] = {}
    for name in names:
        numbered = (f"{name}_{i}" for i in count(2))
        while name in found:
            name = next(numbered)
        found[name] = None
    return list(found)


def median_imputer() -> SimpleImputer:
    """Return an imputer that fills missing values with the median and adds indicator columns."""
    return SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)


def read_frame(estimator: Any, X: Any, *, reset: bool) -> pl.DataFrame:
    """Return X as a polars frame, after scikit-learn's checks of names and number of columns.

    With ``reset``, the estimator learns how the values of each column are read.
    """
    if is_frame(X):
        frame = as_polars(X)
        check_names(estimator, X, reset=reset)
        if reset and getattr(estimator, "readings", None) is not None:
            estimator._readings = dict(estimator.readings)
            reset = False
        if not reset:
            return apply_readings(frame, estimator._readings)
        # a user's own encoder receives the columns unchanged
        own = not isinstance(getattr(estimator, "encoder", "auto"), str)
        keep = frame.columns if own else estimator.keep
        frame, estimator._readings = read_columns(frame, keep=keep)
        return frame
    if reset:
        estimator._readings = {}
    try:
        array = validate_data(
            estimator, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan"
        )
    except ValueError as error:
        if not str(error).startswith("could not convert"):
            raise
        raise InvalidTable(
            f"{type(estimator).__name__} needs a frame if there are text columns, and an array may "
            f"hold numbers only ({error}). Give a frame of pandas, polars or pyarrow."
        ) from error
    return pl.DataFrame(np.asfortranarray(array), schema=[f"x{j}" for j in range(array.shape[1])])
