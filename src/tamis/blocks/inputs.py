"""Validation of X and y. Error messages name the rows and columns at fault."""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from tamis._arrays import Array, times_as_days
from tamis._sparse import canonical
from tamis.blocks.device_arrays import as_numpy
from tamis.blocks.survival import censored_target
from tamis.exceptions import InvalidTable, InvalidTarget

#: Largest number of rows or columns that a message names. It states how many more there are.
NAMED = 5


class SparseColumns(NamedTuple):
    """A sparse table with column names, which SciPy's arrays do not have.

    Attributes
    ----------
    X : sparse array of shape (n_samples, n_features)
        CSR or CSC.
    names : list of str
        Names of the columns.

    Examples
    --------
    >>> from scipy.sparse import csc_array
    >>> from tamis.blocks.inputs import SparseColumns
    >>> from tamis.criteria import Correlation
    >>> from tamis.search import Ranking
    >>> table = SparseColumns(csc_array([[0.0, 1], [1, 0], [1, 3], [0, 0]]), ["a", "b"])
    >>> Ranking(Correlation(), n_features_to_select=1).fit(table, [0, 1, 1, 0]).columns
    ['a']
    """

    X: Any
    names: list[str]

    def take(self, columns: NDArray[np.intp]) -> "SparseColumns":
        """Return a table with only the given columns."""
        if len(columns) == len(self.names):
            return self
        return SparseColumns(self.X[:, columns], [self.names[j] for j in columns])


def check_data(
    estimator: BaseEstimator, X: "ArrayLike | SparseColumns", y: ArrayLike | None
) -> tuple[Array, NDArray[Any] | None]:
    """Return ``X`` as a column-major float64 array, and ``y``, validated by scikit-learn.

    The tags of the estimator decide whether missing values, several targets or a sparse table are
    allowed. A sparse table becomes a CSC array. Column names are set on the estimator.

    Parameters
    ----------
    estimator : estimator
        Estimator whose tags are used, and which receives ``feature_names_in_``.
    X : array, frame or sparse table of shape (n_samples, n_features)
        The table.
    y : array of shape (n_samples,) or None
        The target.
    """
    if isinstance(X, SparseColumns):
        checked = check_data(estimator, X.X, y)
        estimator.feature_names_in_ = np.array(X.names, dtype=object)
        return checked
    name = type(estimator).__name__
    X, y = as_numpy(name, X), as_numpy(name, y)
    tags: Tags = estimator.__sklearn_tags__()
    if isinstance(X, np.ma.MaskedArray):  # masked entries are missing values
        X = np.ma.filled(X.astype(np.float64), np.nan)
    censored = censored_target(name, y)
    options: dict[str, Any] = {"dtype": np.float64, "order": "F", "ensure_min_samples": 2}
    options["accept_sparse"] = "csc" if tags.input_tags.sparse else False
    allow_nan = tags.input_tags.allow_nan and not issparse(X)
    options["ensure_all_finite"] = "allow-nan" if allow_nan else True
    try:
        with np.errstate(invalid="ignore"):  # scikit-learn sums the table to find infinities
            if y is None and not tags.target_tags.required:
                return _canonical(validate_data(estimator, X, **options)), None
            options["multi_output"] = tags.target_tags.multi_output and _n_columns(y) > 1
            known = y if censored is None else censored["time"]
            table, target = validate_data(estimator, X, known, **options)
    except (ValueError, TypeError) as error:
        _explain(estimator, X, y, tags, error)
        raise
    if target.dtype.kind in "OmM":
        check_target_rows(name, target)
        target = times_as_days(target)
    return _canonical(table), (target if censored is None else censored)


def _canonical(table: Any) -> Any:
    return canonical(table) if issparse(table) else table


def _explain(estimator: BaseEstimator, X: Any, y: Any, tags: Tags, error: Exception) -> None:
    """Raise an error that names the rows or columns at fault, if any can be found."""
    name = type(estimator).__name__
    if y is not None:
        check_target_rows(name, y)
        _check_finite(name, y, error)
    if _n_columns(y) > 1 and not tags.target_tags.multi_output:
        raise InvalidTarget(
            f"{name} takes one target, but y should be a 1d array and has {_n_columns(y)} columns. "
            f"Give one of them{_taking_several(estimator)}."
        ) from error
    message = (
        _about_rows(name, X)
        or _about_columns(estimator, X, tags)
        or _about_entries(estimator, X, tags)
    )
    if message:
        raise InvalidTable(message) from error


def _about_rows(name: str, X: Any) -> str:
    """Return the message for a table with fewer than two rows, or an empty string."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) != 2 or shape[0] >= 2:
        return ""
    return (
        f"{name} needs a table of at least 2 rows, but X has {shape[0]} sample(s). Check the file "
        "or the filter that its rows come from."
    )


def _about_columns(estimator: Any, X: Any, tags: Tags) -> str:
    """Return the message for columns that are not numeric or unique, or an empty string."""
    name = type(estimator).__name__
    if issparse(X) and not tags.input_tags.sparse:
        if _criterion_takes(estimator, "input_tags", "sparse"):
            return f"{name} needs a dense table, but X is sparse. Write X.toarray()."
        return (
            f"{name} needs a dense table, but X is sparse. Use a criterion that takes sparse ones "
            "(Correlation, FisherScore, PValue, MRMR, CrossValidated, ...), or X.toarray()."
        )
    if not hasattr(X, "columns"):
        return ""
    names = list(getattr(X, "column_names", X.columns))
    if not names:
        return f"{name} needs columns to choose among, but X has none."
    twice = [column for column, count in Counter(names).items() if count > 1]
    if twice:
        return (
            f"X has more than one column called {_some(list(map(repr, twice)))}. Give every column "
            "a unique name."
        )
    other = [j for j in range(len(names)) if not _holds_numbers(X, j)]
    if not other:
        return ""
    return (
        f"{name} needs numbers, but X has {len(other)} column(s) of another kind: "
        f"{_some([repr(names[j]) for j in other])}. Write tamis.select(X, y) or "
        f"TableSelector({name}(...)), which encode them, or leave them out."
    )


def _holds_numbers(X: Any, j: int) -> bool:
    column = X.iloc[:, j] if hasattr(X, "iloc") else X[:, j] if hasattr(X, "rows") else X.column(j)
    values = np.asarray(column)
    if values.dtype.kind in "mM":
        return False
    try:
        values.astype(np.float64)
    except (ValueError, TypeError):
        return False
    return True


def missing_rows(y: Any) -> NDArray[np.intp]:
    """Return the indices of the rows in which the target is missing (NaN, NaT or None).

    >>> missing_rows([1.0, float("nan"), 2.0])
    array([1])
    """
    for method in ("isna", "is_null"):  # pandas, polars
        if hasattr(y, method) and len(found := np.flatnonzero(_any_of_row(getattr(y, method)()))):
            return found
    values = np.asarray(y) if not issparse(y) else np.zeros(0)
    if values.dtype.kind in "fmM":
        return np.flatnonzero(_any_of_row(values != values))
    if values.dtype.kind != "O":
        return np.zeros(0, dtype=np.intp)
    lost = [value is None or (isinstance(value, float) and value != value) for value in values.flat]
    return np.flatnonzero(_any_of_row(np.array(lost, dtype=bool).reshape(values.shape)))


def _any_of_row(mask: Any) -> NDArray[np.bool_]:
    mask = np.asarray(mask, dtype=bool)
    return mask.any(axis=1) if mask.ndim == 2 else np.atleast_1d(mask)


def _n_columns(y: Any) -> int:
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    return int(shape[1]) if len(shape) == 2 else 1


def check_target_rows(name: str, y: Any) -> None:
    """Refuse a target with missing values, and name their rows."""
    if len(rows := missing_rows(y)):
        raise InvalidTarget(
            f"{name} needs a target in every row, but y is missing (NaN) in {len(rows)} row(s): "
            f"{_some(rows.tolist())}. Leave these rows out of X and y."
        )


def _check_finite(name: str, y: Any, error: Exception) -> None:
    """Refuse a target with infinite values, and name their rows."""
    values = np.asarray(y) if not issparse(y) else np.zeros(0)
    if values.dtype.kind == "f" and len(rows := np.flatnonzero(_any_of_row(np.isinf(values)))):
        raise InvalidTarget(
            f"{name} needs a number in every row, but y is infinity in {len(rows)} row(s): "
            f"{_some(rows.tolist())}. Leave these rows out of X and y."
        ) from error


def _about_entries(estimator: BaseEstimator, X: Any, tags: Tags) -> str:
    """Return the message for missing values or infinity in a table, or an empty string."""
    if issparse(X):
        X = X.tocoo()
    try:
        values = np.asarray(X.data if issparse(X) else X)
        values = values.astype(np.float64, casting="safe" if values.dtype.kind == "c" else "unsafe")
    except (ValueError, TypeError):
        return ""
    if values.ndim != (1 if issparse(X) else 2):
        return ""
    name, allowed = type(estimator).__name__, tags.input_tags.allow_nan and not issparse(X)
    missing, infinite = np.isnan(values), np.isinf(values)
    if missing.any() and not allowed:
        bad, what, remedy = missing, f"{missing.sum()} missing value(s) (NaN)", _imputing(estimator)
    elif infinite.any():
        bad, what, remedy = infinite, "infinity or values too large", "Replace these entries."
    else:
        return ""
    columns = np.flatnonzero(_count_by_column(X, bad)).tolist()
    where = _some([_column_name(X, j) for j in columns])
    return f"{name} needs a number in every entry, but X has {what} in column(s) {where}. {remedy}"


def _count_by_column(X: Any, bad: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the number of entries of each column that the mask ``bad`` marks."""
    if not issparse(X):
        return np.asarray(bad.sum(axis=0))
    return np.bincount(X.coords[1][bad], minlength=X.shape[1])


def _column_name(X: Any, j: int) -> str:
    names = getattr(X, "column_names", getattr(X, "columns", None))
    return str(j) if names is None else repr(names[j])


def _some(things: list[Any]) -> str:
    """Return the first few items as text, and the number of the others."""
    rest = len(things) - NAMED
    first = ", ".join(str(thing) for thing in things[:NAMED])
    return first + (f" and {rest} more" if rest > 0 else "")


def _taking_several(estimator: Any) -> str:
    """Return advice for an estimator that does not accept several targets."""
    if _criterion_takes(estimator, "target_tags", "multi_output"):
        return ""
    return (
        ", or use a criterion that takes several: Correlation, MutualInformation, HSIC, or "
        "CrossValidated and Importances of an estimator that does"
    )


def _criterion_takes(estimator: Any, tags: str, tag: str) -> bool:
    """Return whether the inner search accepts data that the estimator itself refuses."""
    inner = getattr(estimator, "search", None)
    return inner is not None and bool(getattr(getattr(inner.__sklearn_tags__(), tags), tag))


def _imputing(estimator: Any) -> str:
    """Return advice for an estimator that does not accept missing values."""
    if _criterion_takes(estimator, "input_tags", "allow_nan"):
        return f"Impute them, make_pipeline(SimpleImputer(), {type(estimator).__name__}(...))."
    criterion = getattr(getattr(estimator, "search", estimator), "criterion", estimator)
    model = getattr(criterion, "estimator", None)
    others = "MRMR or CrossValidated(HistGradientBoostingClassifier())"
    if model is None:
        name = type(estimator).__name__
        return (
            f"Impute them, make_pipeline(SimpleImputer(), {name}(...)), or use a criterion that "
            f"takes NaN, such as {others}."
        )
    outer, inner = type(criterion).__name__, type(model).__name__
    return (
        f"Impute them in the model, {outer}(make_pipeline(SimpleImputer(), {inner}(...))), or "
        f"use an estimator that takes NaN, such as HistGradientBoostingClassifier."
    )
