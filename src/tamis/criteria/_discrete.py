"""Columns as small integers, and the information they share."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from tamis._arrays import Array

Codes = NDArray[np.int32]


def discretised(X: Array, n_bins: int) -> Codes:
    """Each column cut into at most ``n_bins`` bins of equal frequency, equal values together.

    A column with at most ``n_bins`` distinct values keeps them as codes.

    >>> discretised(np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 7.0], [4.0, 7.0]]), 2).T
    array([[0, 0, 1, 1],
           [0, 0, 1, 1]], dtype=int32)
    """
    ordered = np.sort(X, axis=0)
    fresh = np.diff(ordered, axis=0) > 0
    few = fresh.sum(axis=0) < n_bins
    codes = np.zeros(X.shape, dtype=np.int32, order="F")
    # a bin begins at these places of the sorted column; equal values fall on one side together
    for start in (np.arange(1, n_bins) * len(X)) // n_bins:
        codes += ordered[start] <= X
    for column in np.flatnonzero(few):
        codes[:, column] = np.unique(X[:, column], return_inverse=True)[1]
    return codes


def information_with(codes: NDArray[np.intp], columns: Codes) -> Array:
    """Mutual information of one coded variable with each coded column, in nats."""
    n_samples, n_columns = columns.shape
    onehot = (codes == np.arange(codes.max() + 1)[:, None]).astype(float)
    # counts[k, b, j]: samples of code k with column j in bin b
    counts = np.stack([onehot @ (columns == b) for b in range(columns.max() + 1)], axis=1)
    joint = xlogy(counts, counts).sum(axis=(0, 1))
    margin = counts.sum(axis=0)
    rows = counts.sum(axis=1)[:, 0]
    information = joint - xlogy(margin, margin).sum(axis=0) - xlogy(rows, rows).sum()
    return np.maximum(information / n_samples + np.log(n_samples), 0.0).reshape(n_columns)
