"""Array types, kinds of targets, scaling, fingerprints and tie-breaking."""

import warnings
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from hashlib import sha256
from math import isfinite
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from tamis import _sparse
from tamis._sparse import (
    is_sparse,
    sparse_copy,
    sparse_digest,
    standardised_sparse,
    with_exponents,
)
from tamis.exceptions import InvalidTable, InvalidTarget

Array: TypeAlias = NDArray[np.float64]
Subset: TypeAlias = NDArray[np.intp]  # sorted, unique unit indices
Mask: TypeAlias = NDArray[np.bool_]

EMPTY: Subset = np.empty(0, dtype=np.intp)
EMPTY.flags.writeable = False

# Number of entries in a block of columns: 1 MB of float64 stays in the cache of one core.
BLOCK = 1 << 17
# An integer target with more distinct values than this is treated as a regression target, such as
# an age or a count. Criteria for both kinds of target have the parameter ``task`` to override this.
MOST_CLASSES = 20
# Columns are squared without scaling if their largest value is between 2**-200 and 2**200 (about
# 1e60). Sums of products of two squares then stay below 1e308 and do not underflow.
FARTHEST = 200


def target_kind(y: NDArray[Any] | None) -> str:
    """Return the kind of a target: ``"none"``, ``"classification"`` or ``"regression"``.

    >>> target_kind(np.array(["a", "b"])), target_kind(np.array([0.5, 1.5]))
    ('classification', 'regression')
    >>> target_kind(np.arange(100))
    'regression'
    """
    if y is None:
        return "none"
    if y.ndim == 1 and y.dtype.kind in "iu":  # the usual case, ten times faster than type_of_target
        return "regression" if len(np.unique(y)) > MOST_CLASSES else "classification"
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        # type_of_target casts large numbers, and warns about many classes
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        kind = type_of_target(y)
    if kind.startswith("continuous"):
        return "regression"
    if y.ndim == 2:
        kinds = {target_kind(column) for column in y.T}
        return "regression" if "regression" in kinds else "classification"
    numeric = np.issubdtype(y.dtype, np.number)
    return "regression" if numeric and len(np.unique(y)) > MOST_CLASSES else "classification"


def times_as_days(y: Any) -> Any:
    """Convert durations to days, dates to days since 1970, and exact decimals to floats.

    Other targets are returned unchanged.

    >>> times_as_days(np.array(["1970-01-02T12", "1969-12-31T00"], dtype="datetime64[h]"))
    array([ 1.5, -1. ])
    """
    times = np.asarray(y)
    if times.dtype.kind == "O" and times.size:
        if all(isinstance(value, Decimal) for value in times.flat):
            return times.astype(np.float64)
        for kind, dtype in ((date, "datetime64[us]"), (timedelta, "timedelta64[us]")):
            if all(isinstance(value, kind) for value in times.flat):
                naive = [_without_zone(value) for value in times.flat]
                times = np.array(naive, dtype=dtype).reshape(times.shape)
    if times.dtype.kind not in "mM":
        return y
    start = np.datetime64(0, "Y")  # gives durations in months and years a definite length
    days = (times if times.dtype.kind == "M" else start + times) - start.astype("datetime64[D]")
    return days / np.timedelta64(1, "D")


def _without_zone(time: Any) -> Any:
    """Convert a time with a time zone to UTC. Return other dates and durations unchanged."""
    offset = time.utcoffset() if hasattr(time, "utcoffset") else None
    return time if offset is None else time.replace(tzinfo=None) - offset


def class_codes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the sorted class labels, and the position of each row's label among them."""
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes.astype(np.intp)


class ColumnScale(NamedTuple):
    """Scaling of columns to mean 0 and standard deviation 1, which can be applied to other rows.

    Columns are first divided by 2 to the power ``exponent``. The ``deviation`` of a constant column
    is infinite, so all its values become 0.
    """

    exponent: NDArray[np.intc]
    mean: Array
    deviation: Array

    def __call__(self, X: Array) -> Array:
        """Apply the scaling to other rows of the same columns."""
        Z: Array = (np.ldexp(X, -self.exponent) - self.mean) / self.deviation
        return Z


def standardised(X: Array) -> Array:
    """Return columns with mean 0 and standard deviation 1, as a new column-major array.

    A column that is constant up to rounding becomes 0. NaN is ignored and stays NaN. A sparse table
    stays sparse: its columns are not centred.
    """
    if is_sparse(X):
        return standardised_sparse(X)
    scaled = np.empty(X.shape, order="F")
    for block in column_blocks(*X.shape):
        scaled_columns(X[:, block], scaled[:, block])
    return scaled


def scaled_columns(X: Array, out: Array | None = None) -> tuple[Array, ColumnScale]:
    """Return the standardised columns, written to ``out`` if it is given, and their scaling."""
    # scaled by powers of two, so that squares neither overflow nor underflow
    size = np.maximum(X.max(axis=0), -X.min(axis=0))
    missing = bool(np.isnan(size).any())
    exponent = np.frexp(np.nan_to_num(np.abs(X)).max(axis=0) if missing else size)[1]
    scaled = np.ldexp(X, -exponent, out=out)
    n_known = np.maximum((~np.isnan(scaled)).sum(axis=0), 1) if missing else len(X)
    mean = np.nansum(scaled, axis=0) / n_known if missing else scaled.mean(axis=0)
    scaled -= mean
    deviation = np.sqrt(np.nansum(scaled**2, axis=0) / n_known) if missing else scaled.std(axis=0)
    constant = deviation <= 10 * np.finfo(float).eps * np.abs(mean)
    scaled[:, constant] -= scaled[:, constant]  # 0, and NaN stays NaN
    scaled /= np.where(constant, 1.0, deviation)
    return scaled, ColumnScale(exponent, mean, np.where(constant, np.inf, deviation))


def column_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Yield slices of columns that are small enough for temporary copies."""
    width = max(1, BLOCK // max(n_rows, 1))
    for start in range(0, n_columns, width):
        yield slice(start, start + width)


def in_range(X: Array, *, together: bool = False) -> Array:
    """Scale columns by powers of two so that squares neither overflow nor underflow.

    With ``together``, all columns are scaled by the same power. The scaling is exact: results that
    do not depend on the scale stay the same to the last bit. Tables in the usual range are returned
    unchanged.

    >>> in_range(np.array([[1.0, 2.0**900], [3.0, 0.0]]))
    array([[1. , 0.5],
           [3. , 0. ]])
    """
    low, high = extremes(X)
    size = np.maximum(high, -low)
    if together:
        size[:] = size.max(initial=0.0)
    return _divided(X, size)


def _divided(X: Array, size: Array) -> Array:
    """Divide columns by powers of two if their ``size``, the largest magnitude, is unusual."""
    exponent = np.frexp(size)[1]
    exponent[np.abs(exponent) <= FARTHEST] = 0
    if not exponent.any():
        return X
    if is_sparse(X):
        return with_exponents(X, -exponent)
    return np.ldexp(X, -exponent, order="F")


def column_means(X: Array) -> Array:
    """Return the means of the columns, even if their sums would overflow.

    >>> column_means(np.array([[1.7e308, 1.0], [1.7e308, 2.0]]))
    array([1.7e+308, 1.5e+000])
    """
    digits = len(X).bit_length()  # scaling by a power of two is exact
    means: Array = np.ldexp(np.ldexp(X, -digits).mean(axis=0), digits)
    return means


def extremes(X: Any) -> tuple[Array, Array]:
    """Return the minimum and maximum of each column of a sparse or dense table."""
    if is_sparse(X):
        return _sparse.extremes(X)
    low, high = np.empty((2, X.shape[1]))
    for block in column_blocks(*X.shape):
        low[block], high[block] = X[:, block].min(axis=0), X[:, block].max(axis=0)
    return low, high


def check_range(name: str, X: Array) -> None:
    """Refuse columns with numbers so large that their squares overflow."""
    low, high = extremes(X)
    size = np.maximum(high, -low)
    if (far := np.frexp(size)[1] > FARTHEST).any():
        column = int(far.argmax())
        raise InvalidTable(
            f"{name} squares the columns, but column {column} reaches {size[column]:.3g}, which is "
            "too large. Scale it, as a search does with standardize=True."
        )


def check_target_range(name: str, y: NDArray[Any]) -> None:
    """Refuse a target with numbers so large that their squares overflow."""
    size = float(np.abs(y.astype(float)).max())
    if np.frexp(size)[1] > FARTHEST:
        raise InvalidTarget(
            f"{name} squares the target, but it reaches {size:.3g}, which is too large. Scale it, "
            f"for example as y / {size:.0e}."
        )


def idle_columns(X: Array) -> Mask:
    """Return a mask of the columns that are constant or duplicates of earlier ones, up to rounding.

    >>> x = np.array([3.0, 1.0, 2.0])
    >>> idle_columns(np.column_stack([x, [5.0, 5.0, 5.0], -x, x * (1 + 1e-15)]))
    array([False,  True, False,  True])
    """
    low, high = extremes(X)
    if np.isnan(low).any() and not is_sparse(X):
        X = _fill_missing(X)
        low, high = extremes(X)
    near = _divided(X, np.maximum(high, -low))
    if near is not X:
        X, (low, high) = near, extremes(near)
    idle, size = low == high, np.maximum(high, -low)
    # equal columns have equal weighted sums. The weights are random, so different columns almost
    # always have different sums.
    sums = np.random.default_rng(0).uniform(1, 2, X.shape[0]) @ X
    varying = np.flatnonzero(~idle)
    order = varying[np.argsort(sums[varying], kind="stable")]
    alike = np.diff(sums[order]) <= 1e-10 * X.shape[0] * size[order[1:]]
    turns = np.flatnonzero(np.diff(alike, prepend=False, append=False))
    for first, last in turns.reshape(-1, 2):
        kept: list[int] = []
        for j in np.sort(order[first : last + 1]).tolist():
            idle[j] = any(_is_duplicate(X, i, j, 1e-12 * size[j]) for i in kept)
            kept += [] if idle[j] else [j]
    return idle


def _is_duplicate(X: Array, i: int, j: int, allowed: float) -> bool:
    """Whether two columns are equal up to rounding."""
    if not is_sparse(X):
        return bool(np.abs(X[:, i] - X[:, j]).max() <= allowed)
    return sparse_copy(X, i, j, allowed)


def _fill_missing(X: Array) -> Array:
    """Replace missing values by a value above all other values of the column."""
    gone = np.isnan(X)
    low = np.where(gone, np.inf, X).min(axis=0)
    high = np.where(gone, -np.inf, X).max(axis=0)
    empty = gone.all(axis=0)
    low[empty], high[empty] = 0.0, 0.0
    # missing values are placed above the maximum, at a distance of half the range. If all values
    # are equal, the distance is their magnitude. high / 2 - low / 2 does not overflow.
    farther = np.where(low < high, high / 2 - low / 2, np.maximum(np.abs(high), 1.0))
    with np.errstate(over="ignore"):
        beyond = np.minimum(high + farther, np.finfo(np.float64).max)
    return np.where(gone, beyond, X)


def fingerprint(X: Array, y: NDArray[Any] | None, **params: Any) -> str:
    """Return a short fingerprint of the data, which depends only on the numbers and labels.

    It detects mistakes, not forgery. It hashes checksums of blocks of the table, which is twice as
    fast as hashing the table itself. Hashing a wide table would take longer than ranking its
    columns.

    >>> fingerprint(np.eye(3), np.array([0, 1, 1]))
    '670f3da700f5b29d'
    """
    digest = sparse_digest(X) if is_sparse(X) else _dense_digest(X)
    for values in (y, *(np.asarray(params[name]) for name in sorted(params))):
        if values is not None:
            digest.update(_bytes(values))
    return digest.hexdigest()[:16]


def _dense_digest(X: Array) -> Any:
    digest = sha256(str(X.shape).encode())
    for block in column_blocks(*X.shape):
        numbers = np.asfortranarray(X[:, block], dtype=np.float64).T.data.cast("B")
        digest.update(crc32(numbers).to_bytes(4, "little"))
    return digest


def _bytes(values: NDArray[Any]) -> bytes:
    if np.issubdtype(values.dtype, np.number) or values.dtype == bool:
        return values.astype(np.float64).tobytes()
    return repr(values.tolist()).encode()


def snapped(scores: Array, noise: float = 0.0) -> Array:
    """Round scores so that ties are exact.

    The scores of duplicate columns may differ in the last bits, and these bits differ between
    computers. Each score is therefore rounded to ten significant digits. Scores that are
    differences between values are first rounded to multiples of their rounding error ``noise``.

    >>> snapped(np.array([0.5 + 1e-15, 0.25, 3e-17]), noise=1e-13)
    array([0.5 , 0.25, 0.  ])
    """
    if noise > 0:
        near = np.abs(scores) * 1e-15 < noise  # for larger scores this would change nothing
        scores = np.where(near, np.round(np.where(near, scores, 0.0) / noise) * noise, scores)
    magnitude = np.abs(scores)
    usual = (magnitude > 1e-290) & (magnitude < 1e290)
    unit = 10.0 ** (np.floor(np.log10(magnitude, where=usual, out=np.zeros(len(scores)))) - 9)
    return np.where(usual, np.round(np.where(usual, scores, 0.0) / unit) * unit, scores)


def tied(scores: Array, position: int, noise: float = 0.0) -> NDArray[np.intp]:
    """Return the positions of the scores that equal the one at ``position`` after rounding.

    >>> tied(np.array([0.5, 0.25, 0.5 + 1e-15]), 0)
    array([0, 2])
    """
    score = float(scores[position])
    if not isfinite(score):
        return (scores == score).nonzero()[0]
    reach = 1e-8 * abs(score) + 2 * noise  # scores that differ by more cannot be tied
    near = ((scores >= score - reach) & (scores <= score + reach)).nonzero()[0]
    if len(near) == 1:
        return near
    cut = snapped(scores[near], noise)
    return near[cut == cut[near == position]]


def best_first(scores: Array) -> NDArray[np.intp]:
    """Return the positions of the scores, from the best to the worst. Ties keep their order.

    >>> best_first(np.array([1.0, 3.0, 3.0, 2.0]))
    array([1, 2, 3, 0])
    """
    return np.argsort(-snapped(scores), kind="stable")


def best(scores: Array, noise: float = 0.0) -> int:
    """Return the position of the best score. Ties go to the first position."""
    return int(np.argmax(snapped(scores, noise)))


def lowest(scores: Array, count: int, noise: float = 0.0) -> tuple[NDArray[np.intp], int]:
    """Return the positions of the ``count`` lowest scores, and the number tied with the last one.

    Ties go to the last position, so that searches keep the first of several tied columns. The
    number of ties includes the last score itself.

    >>> lowest(np.array([1.0, 0.0, 2.0, 0.0, 1e-17]), 2, noise=1e-13)
    (array([4, 3]), 3)
    """
    edge = float(
        scores[scores.argmin()] if count == 1 else np.partition(scores, count - 1)[count - 1]
    )
    # scores above this cannot be tied after rounding
    reach = edge + 1e-8 * abs(edge) + 2 * noise if isfinite(edge) else edge
    near = (scores <= reach).nonzero()[0]
    if len(near) == 1:
        return near, 1
    cut = snapped(scores[near], noise)
    rising = np.lexsort((-near, cut))[:count]
    return near[rising], int(np.count_nonzero(cut == cut[rising[-1]]))


def improves(new: float, old: float) -> bool:
    """Whether ``new`` is greater than ``old`` by more than a rounding error."""
    if np.isinf(old) or np.isinf(new):
        return new > old
    return new > old + 1e-12 * max(abs(old), abs(new), 1e-300)


def is_int(value: Any) -> bool:
    """Whether a parameter is an integer. Booleans are not treated as integers."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_real(value: Any) -> bool:
    """Whether a parameter is a finite number. Booleans are not treated as numbers."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)
    except OverflowError:  # an int above the largest float
        return False
