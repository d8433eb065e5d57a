"""Statistics of sparse tables, which are never converted to dense tables.

Tables are canonical CSC arrays: sorted row indices, no duplicates, no stored zeros.
"""

from hashlib import sha256
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, issparse

Array: TypeAlias = NDArray[np.float64]


def is_sparse(X: Any) -> bool:
    """Whether a table is sparse."""
    return bool(issparse(X))


def canonical(X: Any) -> Any:
    """Return a sparse table as a canonical CSC array of float64.

    >>> from scipy.sparse import csr_array
    >>> canonical(csr_array([[0.0, 2.0], [1.0, 0.0]])).indices
    array([1, 0], dtype=int32)
    """
    made = csc_array(X, dtype=np.float64)
    if not made.has_canonical_format or (made.data == 0).any():
        made = made.copy()
        made.sum_duplicates()
        made.eliminate_zeros()
    return made


def entry_columns(X: Any) -> NDArray[np.intp]:
    """Return the column of every stored entry."""
    return np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))


def extremes(X: Any) -> tuple[Array, Array]:
    """Return the minimum and maximum of each column of a sparse table."""
    low, high = (getattr(X, name)(axis=0).toarray().ravel() for name in ("min", "max"))
    return low, high


def moments(X: Any) -> tuple[Array, Array]:
    """Return the mean of each column, and the sum of squares around it."""
    n_rows, columns = X.shape[0], entry_columns(X)
    mean = np.bincount(columns, X.data, minlength=X.shape[1]) / n_rows
    squares = np.bincount(columns, (X.data - mean[columns]) ** 2, minlength=X.shape[1])
    return mean, squares + (n_rows - np.diff(X.indptr)) * mean**2


def class_moments(X: Any, codes: NDArray[np.intp]) -> tuple[Array, Array]:
    """Return the mean and variance of each column in each class."""
    count = np.bincount(codes)[:, None]
    shape = len(count), X.shape[1]
    cells = codes[X.indices] * shape[1] + entry_columns(X)

    def sum_cells(values: Array) -> Array:
        sums: Any = np.bincount(cells, values, minlength=shape[0] * shape[1])
        return np.asarray(sums.reshape(shape), dtype=np.float64)

    mean = sum_cells(X.data) / count
    absent = count - sum_cells(np.ones(X.nnz))
    squares = sum_cells((X.data - mean.ravel()[cells]) ** 2) + absent * mean**2
    return mean, squares / count


def with_exponents(X: Any, exponents: Any) -> Any:
    """Multiply each column by a power of two. The power itself may exceed the range of a float."""
    entries = np.ldexp(X.data, exponents[entry_columns(X)]), X.indices, X.indptr
    return csc_array(entries, shape=X.shape)


def with_factors(X: Any, factors: Array) -> Any:
    """Multiply each column by a factor."""
    drops = bool((factors == 0).any())
    entries = X.data * factors[entry_columns(X)], X.indices, X.indptr
    # copy the data if a factor is 0, because zeros are removed in place
    made = csc_array(entries, shape=X.shape, copy=drops)
    if drops:
        made.eliminate_zeros()
    return made


def standardised_sparse(X: Any) -> Any:
    """Scale columns to standard deviation 1 without centring. Constant columns become 0."""
    low, high = extremes(X)
    size = np.maximum(high, -low)
    exponent = np.frexp(size)[1]
    # scaled by powers of two, so that squares neither overflow nor underflow
    near = with_exponents(X, -exponent)
    mean, squares = moments(near)
    deviation = np.sqrt(squares / X.shape[0])
    constant = (deviation <= 10 * np.finfo(float).eps * np.abs(mean)) | (low == high)
    return with_factors(near, np.where(constant, 0.0, 1 / np.where(constant, 1.0, deviation)))


def sparse_copy(X: Any, i: int, j: int, allowed: float) -> bool:
    """Whether two columns have entries in the same rows that are equal up to rounding."""
    one, other = (slice(X.indptr[k], X.indptr[k + 1]) for k in (i, j))
    if not np.array_equal(X.indices[one], X.indices[other]):
        return False
    return bool(np.abs(X.data[one] - X.data[other]).max() <= allowed)


def sparse_digest(X: Any) -> Any:
    """Return a hash object with the data of a sparse table, for its fingerprint."""
    digest = sha256(f"sparse {X.shape}".encode())
    for part, kind in ((X.indptr, np.int64), (X.indices, np.int64), (X.data, np.float64)):
        digest.update(part.astype(kind).tobytes())
    return digest
