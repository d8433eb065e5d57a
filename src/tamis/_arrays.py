"""Arrays at the border: aliases, kinds of target, scaling, fingerprints, and who wins a tie."""

import warnings
from collections.abc import Iterator
from datetime import date, timedelta
from hashlib import sha256
from math import isfinite
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from tamis._sparse import (
    extremes,
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

# Numbers in a block of columns: 8 MB, of which a few fit into the cache and thousands into memory.
BLOCK = 1 << 20
# Bytes of a table that share one checksum.
PIECE = 1 << 20
# An integer target with more distinct values than this is read as a real one, as ages and counts
# are; a criterion that can use both kinds takes ``task=`` to say otherwise.
MOST_CLASSES = 20
# Powers of two up to which columns are squared as they are: products of two squares of 2**200
# (about 1e60) can be added up before they pass 1e308, and those of 2**-200 do not vanish.
FARTHEST = 200


def target_kind(y: NDArray[Any] | None) -> str:
    """``"none"``, ``"classification"`` or ``"regression"``: what a target looks like.

    >>> target_kind(np.array(["a", "b"])), target_kind(np.array([0.5, 1.5]))
    ('classification', 'regression')
    >>> target_kind(np.arange(100))
    'regression'
    """
    if y is None:
        return "none"
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        # it looks whether large numbers are whole by a cast, and doubts classes that are many
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
    """A target of dates (since 1970) or durations as numbers of days; any other as it is.

    >>> times_as_days(np.array(["1970-01-02T12", "1969-12-31T00"], dtype="datetime64[h]"))
    array([ 1.5, -1. ])
    """
    times = np.asarray(y)
    if times.dtype.kind == "O" and times.size:
        for kind, dtype in ((date, "datetime64[us]"), (timedelta, "timedelta64[us]")):
            if all(isinstance(value, kind) for value in times.flat):
                naive = [_without_zone(value) for value in times.flat]
                times = np.array(naive, dtype=dtype).reshape(times.shape)
    if times.dtype.kind not in "mM":
        return y
    start = np.datetime64(0, "Y")  # durations in months and years have a length from there on
    days = (times if times.dtype.kind == "M" else start + times) - start.astype("datetime64[D]")
    return days / np.timedelta64(1, "D")


def _without_zone(time: Any) -> Any:
    """A moment in universal time, as numpy needs it; any other date or duration as it is."""
    offset = time.utcoffset() if hasattr(time, "utcoffset") else None
    return time if offset is None else time.replace(tzinfo=None) - offset


def class_codes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Sorted class labels, and for each sample the position of its label among them."""
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes.astype(np.intp)


class ColumnScale(NamedTuple):
    """What brings columns to mean 0 and standard deviation 1, for rows that come later.

    Columns are first divided by the power of two ``exponent``; ``deviation`` is infinite where a
    column is constant, which makes it 0, whatever it is in new rows.
    """

    exponent: NDArray[np.intc]
    mean: Array
    deviation: Array

    def __call__(self, X: Array) -> Array:
        """The columns of other rows, on the scale of the rows it was made from."""
        Z: Array = (np.ldexp(X, -self.exponent) - self.mean) / self.deviation
        return Z


def standardised(X: Array) -> Array:
    """Columns with mean 0 and standard deviation 1, as a new column-major array.

    A constant column becomes 0. "Constant" allows for the rounding of its mean, so that a column
    of equal large numbers is not blown up to noise. NaN stays NaN and counts for nothing. A sparse
    table stays sparse: its columns are not centred.
    """
    if is_sparse(X):
        return standardised_sparse(X)
    scaled = np.empty(X.shape, order="F")
    for block in column_blocks(*X.shape):
        scaled[:, block] = scaled_columns(X[:, block], "F")[0]
    return scaled


def scaled_columns(X: Array, order: Literal["F", "K"]) -> tuple[Array, ColumnScale]:
    """The columns as :func:`standardised` has them, laid out in ``order``, and their scale."""
    # powers of two bring columns of any size to where squares neither over- nor underflow
    size = np.abs(X).max(axis=0)
    gaps = bool(np.isnan(size).any())
    exponent = np.frexp(np.nan_to_num(np.abs(X)).max(axis=0) if gaps else size)[1]
    scaled = np.ldexp(X, -exponent, order=order)
    n_known = np.maximum((~np.isnan(scaled)).sum(axis=0), 1) if gaps else len(X)
    mean = np.nansum(scaled, axis=0) / n_known if gaps else scaled.mean(axis=0)
    scaled -= mean
    deviation = np.sqrt(np.nansum(scaled**2, axis=0) / n_known) if gaps else scaled.std(axis=0)
    constant = deviation <= 10 * np.finfo(float).eps * np.abs(mean)
    scaled[:, constant] -= scaled[:, constant]  # 0, and NaN stays NaN
    scaled /= np.where(constant, 1.0, deviation)
    return scaled, ColumnScale(exponent, mean, np.where(constant, np.inf, deviation))


def column_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Slices of columns that a temporary copy of may be made, where one of the table may not."""
    width = max(1, BLOCK // max(n_rows, 1))
    for start in range(0, n_columns, width):
        yield slice(start, start + width)


def in_range(X: Array, *, together: bool = False) -> Array:
    """``X`` with columns brought by powers of two to where squares neither over- nor underflow.

    Numbers keep all their digits, so what does not depend on the scale of a column (or, with
    ``together``, of the table) is the same to the last bit. Usual tables are returned as they are.

    >>> in_range(np.array([[1.0, 2.0**900], [3.0, 0.0]]))
    array([[1. , 0.5],
           [3. , 0. ]])
    """
    low, high = extremes(X)
    size = np.maximum(high, -low)
    if together:
        size[:] = size.max(initial=0.0)
    exponent = np.frexp(size)[1]
    exponent[np.abs(exponent) <= FARTHEST] = 0
    if is_sparse(X):
        return with_exponents(X, -exponent) if exponent.any() else X
    return np.ldexp(X, -exponent, order="F") if exponent.any() else X


def column_means(X: Array) -> Array:
    """Means of the columns, of numbers of any size: their sums may overflow.

    >>> column_means(np.array([[1.7e308, 1.0], [1.7e308, 2.0]]))
    array([1.7e+308, 1.5e+000])
    """
    digits = len(X).bit_length()  # a power of two changes no digit of a number
    means: Array = np.ldexp(np.ldexp(X, -digits).mean(axis=0), digits)
    return means


def check_range(name: str, X: Array) -> None:
    """Refuse columns so large that squares of them overflow."""
    low, high = extremes(X)
    size = np.maximum(high, -low)
    if (far := np.frexp(size)[1] > FARTHEST).any():
        column = int(far.argmax())
        raise InvalidTable(
            f"{name} squares the columns, and column {column} reaches {size[column]:.3g}, too far "
            "to be squared. Scale it, as a search does with standardize=True."
        )


def check_target_range(name: str, y: NDArray[Any]) -> None:
    """Refuse a target of numbers so large that squares of it overflow."""
    size = float(np.abs(y.astype(float)).max())
    if np.frexp(size)[1] > FARTHEST:
        raise InvalidTarget(
            f"{name} squares the target, which reaches {size:.3g}, too far to be squared. Scale "
            f"it, for example as y / {size:.0e}."
        )


def idle_columns(X: Array) -> Mask:
    """Columns that can tell nothing beside the others: constant ones, and copies of earlier ones.

    A copy may differ by rounding, as a column does that was multiplied and then standardised.

    >>> x = np.array([3.0, 1.0, 2.0])
    >>> idle_columns(np.column_stack([x, [5.0, 5.0, 5.0], -x, x * (1 + 1e-15)]))
    array([False,  True, False,  True])
    """
    low, high = extremes(X)
    gaps = np.isnan(low).any() and not is_sparse(X)
    near = in_range(_gaps_as_values(X) if gaps else X)
    if near is not X:
        X, (low, high) = near, extremes(near)
    idle, size = low == high, np.maximum(high, -low)
    # equal columns have equal sums; unequal weights give unequal columns unequal sums
    sums = np.random.default_rng(0).uniform(1, 2, X.shape[0]) @ X
    varying = np.flatnonzero(~idle)
    order = varying[np.argsort(sums[varying], kind="stable")]
    alike = np.diff(sums[order]) <= 1e-10 * X.shape[0] * size[order[1:]]
    turns = np.flatnonzero(np.diff(alike, prepend=False, append=False))
    for first, last in turns.reshape(-1, 2):
        kept: list[int] = []
        for j in np.sort(order[first : last + 1]).tolist():
            idle[j] = any(_is_copy(X, i, j, 1e-12 * size[j]) for i in kept)
            kept += [] if idle[j] else [j]
    return idle


def _is_copy(X: Array, i: int, j: int, allowed: float) -> bool:
    """Whether two columns are equal but for rounding."""
    if not is_sparse(X):
        return bool(np.abs(X[:, i] - X[:, j]).max() <= allowed)
    return sparse_copy(X, i, j, allowed)


def _gaps_as_values(X: Array) -> Array:
    """``X`` with one value beyond all others of its column where an entry is missing."""
    gone = np.isnan(X)
    low = np.where(gone, np.inf, X).min(axis=0)
    high = np.where(gone, -np.inf, X).max(axis=0)
    empty = gone.all(axis=0)
    low[empty], high[empty] = 0.0, 0.0
    # half a range farther, or the size of the only value, which may be 0; but not past all numbers
    farther = np.where(low < high, high / 2 - low / 2, np.maximum(np.abs(high), 1.0))
    with np.errstate(over="ignore"):
        beyond = np.minimum(high + farther, np.finfo(np.float64).max)
    return np.where(gone, beyond, X)


def fingerprint(X: Array, y: NDArray[Any] | None, **params: Any) -> str:
    """Short name of the data, the same wherever the same numbers and labels come from.

    Made against mistakes, not against forgery: a checksum of each piece is twice as fast as
    hashing all of it, which on a wide table would take longer than ranking the columns.

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
    numbers = np.asfortranarray(X, dtype=np.float64).T.data.cast("B")
    for start in range(0, len(numbers), PIECE):
        digest.update(crc32(numbers[start : start + PIECE]).to_bytes(4, "little"))
    return digest


def _bytes(values: NDArray[Any]) -> bytes:
    if np.issubdtype(values.dtype, np.number) or values.dtype == bool:
        return values.astype(np.float64).tobytes()
    return repr(values.tolist()).encode()


def snapped(prices: Array, noise: float = 0.0) -> Array:
    """Prices with what is only rounding removed, so that equals are equal.

    Copies of a column differ in the last bits of their prices, differently on every machine. Each
    price is cut to ten significant digits; before that, where prices are differences of values,
    to multiples of the ``noise`` which that leaves.

    >>> snapped(np.array([0.5 + 1e-15, 0.25, 3e-17]), noise=1e-13)
    array([0.5 , 0.25, 0.  ])
    """
    if noise > 0:
        near = np.abs(prices) * 1e-15 < noise  # a multiple beyond has no digit to lose
        prices = np.where(near, np.round(np.where(near, prices, 0.0) / noise) * noise, prices)
    magnitude = np.abs(prices)
    usual = (magnitude > 1e-290) & (magnitude < 1e290)
    unit = 10.0 ** (np.floor(np.log10(magnitude, where=usual, out=np.zeros(len(prices)))) - 9)
    return np.where(usual, np.round(np.where(usual, prices, 0.0) / unit) * unit, prices)


def best_first(prices: Array, noise: float = 0.0) -> NDArray[np.intp]:
    """Positions from the best price to the worst; of equals the first comes first.

    >>> best_first(np.array([1.0, 3.0, 3.0, 2.0]))
    array([1, 2, 3, 0])
    """
    return np.argsort(-snapped(prices, noise), kind="stable")


def best(prices: Array, noise: float = 0.0) -> int:
    """Position of the best price; of equals the first."""
    return int(np.argmax(snapped(prices, noise)))


def worst(prices: Array, noise: float = 0.0) -> int:
    """Position of the worst price; of equals the last, so that the first is kept.

    >>> worst(np.array([1.0, 0.0, 0.0, 2.0]))
    2
    """
    return len(prices) - 1 - int(np.argmin(snapped(prices, noise)[::-1]))


def lowest(prices: Array, count: int, noise: float = 0.0) -> tuple[NDArray[np.intp], int]:
    """Positions of the lowest prices, of equals the last ones, and how many equal the last taken.

    >>> lowest(np.array([1.0, 0.0, 2.0, 0.0, 1e-17]), 2, noise=1e-13)
    (array([4, 3]), 3)
    """
    edge = float(
        prices[prices.argmin()] if count == 1 else np.partition(prices, count - 1)[count - 1]
    )
    # what is farther away than this cannot be cut to the same digits
    reach = edge + 1e-8 * abs(edge) + 2 * noise if isfinite(edge) else edge
    near = (prices <= reach).nonzero()[0]
    if len(near) == 1:
        return near, 1
    cut = snapped(prices[near], noise)
    rising = np.lexsort((-near, cut))[:count]
    return near[rising], int(np.count_nonzero(cut == cut[rising[-1]]))


def improves(new: float, old: float) -> bool:
    """Whether ``new`` beats ``old`` by more than rounding."""
    if np.isinf(old) or np.isinf(new):
        return new > old
    return new > old + 1e-12 * max(abs(old), abs(new), 1e-300)


def is_int(value: Any) -> bool:
    """Whether a parameter is a whole number; booleans are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_real(value: Any) -> bool:
    """Whether a parameter is a finite number; booleans are not."""
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)
