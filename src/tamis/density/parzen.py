"""Parzen windows: choice of their width, and scores of the posterior probabilities."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from tamis._arrays import Array
from tamis._checks import number, one_of
from tamis._namespace import move, namespace
from tamis._seeds import stream

#: Candidate widths: 2^-3 to 2^3 in steps of the square root of 2.
WIDTHS: Array = 2.0 ** np.arange(-3, 3.5, 0.5)
#: Number of folds for the choice of a width.
N_FOLDS = 5
#: Constraint on the parameter that sets a width. Its square must be a positive finite number.
WIDTH = number(least=1e-150, most=1e150) | one_of("likelihood")
# Number of rows of the distance matrix that are in memory at a time. For ten thousand samples they
# take a few megabytes.
_ROWS = 256


def held_out_likelihood(X: Array, *, seed: int = 0) -> Array:
    """Return the mean log density of the held-out samples of all folds, for each of ``WIDTHS``.

    Only the kernel of the largest width is computed. The kernel of a width is the square of the
    kernel of the next larger width.
    """
    n, d = X.shape
    folds = _folds(X, min(N_FOLDS, n), seed)
    left = n - np.bincount(folds)[folds]
    sums = np.zeros(len(WIDTHS))
    for first in range(0, n, _ROWS):
        rows = slice(first, first + _ROWS)
        distances = cdist(X[rows], X, "sqeuclidean")
        distances[folds[rows, None] == folds] = np.inf
        least = distances.min(axis=1)
        kernel = np.exp((distances - least[:, None]) / (-2 * WIDTHS[-1] ** 2))
        for index, sigma in reversed(list(enumerate(WIDTHS))):
            logs = np.log(kernel.sum(axis=1)) - least / (2 * sigma**2) - np.log(left[rows])
            sums[index] += logs.sum()
            np.square(kernel, out=kernel)
    return sums / n - d * np.log(WIDTHS) - d / 2 * np.log(2 * np.pi)


def _folds(X: Array, n_folds: int, seed: int) -> NDArray[np.intp]:
    """Return a random fold for each sample, which does not depend on the order of the samples."""
    folds = np.empty(len(X), dtype=np.intp)
    by_norm = np.argsort((X**2).sum(axis=1), kind="stable")
    folds[by_norm] = stream(seed, "folds").permutation(len(X)) % n_folds
    return folds


def best_width(X: Array, *, seed: int = 0) -> float:
    """Return the width with the largest held-out likelihood. Ties go to the largest width.

    Constant columns are left out, because their likelihood would be largest for a width of 0.
    """
    varies = X.min(axis=0) < X.max(axis=0)
    X = X[:, varies] if varies.any() and not varies.all() else X
    likelihood = held_out_likelihood(X, seed=seed)
    close = likelihood >= likelihood.max() - 1e-12 * max(1.0, abs(likelihood.max()))
    return float(WIDTHS[np.flatnonzero(close)[-1]])


def width_cost(n_samples: int) -> float:
    """Estimate the memory in bytes that the choice of a width needs, for a block of kernel rows."""
    return 24.0 * n_samples * min(n_samples, _ROWS)


class PosteriorScore(ABC):
    """Score of posterior probabilities, summed over samples.

    Parameters
    ----------
    codes : array of int
        Class of each sample.
    counts : array
        Number of samples in each class.
    others : bool
        Whether kernel sums leave the sample itself out, so that its class has one sample fewer.
    like : array
        Any array on the device on which scores are computed.
    """

    def __init__(self, codes: NDArray[np.intp], counts: Array, others: bool, like: Any):
        own = codes[:, None] == np.arange(len(counts))
        self.own = move(own.astype(float), like)
        fewer = np.maximum(counts - 1, 1) if others else counts
        self.more = move(np.where(own, np.log(counts / fewer), 0.0), like)

    def of_base(self, rows: slice, logs: Any) -> Any:
        """Return the sum of the scores of a slice of samples, given the logs of kernel sums."""
        return namespace(logs).sum(self.values(rows, self._normed(rows, logs)))

    def of_ratios(self, rows: slice, logs: Any, ratios: list[Any]) -> Any:
        """Return the change of the sum of scores when each of several columns is altered.

        ``ratios`` has the relative changes of the kernel sums: for each class, an array of shape
        (samples, columns).
        """
        posterior = namespace(logs).exp(self._normed(rows, logs))
        shares = [posterior[:, k][:, None] for k in range(len(ratios))]
        total = shares[0] * ratios[0]
        for share, ratio in zip(shares[1:], ratios[1:], strict=True):
            total += share * ratio
        return self.changes(rows, shares, ratios, total)

    def _normed(self, rows: slice, logs: Any) -> Any:
        """Return the logarithms of the posterior probabilities."""
        xp = namespace(logs)
        logs = logs + self.more[rows, :]
        top = xp.max(logs, axis=1, keepdims=True)
        return logs - (top + xp.log(xp.sum(xp.exp(logs - top), axis=1, keepdims=True)))

    @abstractmethod
    def values(self, rows: slice, posterior: Any) -> Any:
        """Return the score of each sample, given its log posterior probabilities."""

    @abstractmethod
    def changes(self, rows: slice, shares: list[Any], ratios: list[Any], total: Any) -> Any:
        """Return the change of the score when each column is altered, summed over samples.

        ``shares`` are the posterior probabilities of each class, and ``total`` is the mean of the
        ratios weighted by them.
        """


class ObservedClass(PosteriorScore):
    """Logarithm of the posterior probability of the class that a sample belongs to."""

    def values(self, rows: slice, posterior: Any) -> Any:
        xp = namespace(posterior)
        return xp.sum(xp.where(self.own[rows, :] > 0, posterior, xp.zeros_like(posterior)), axis=1)

    def changes(self, rows: slice, shares: list[Any], ratios: list[Any], total: Any) -> Any:
        xp = namespace(total)
        own = self.own[rows, 0][:, None] * ratios[0]
        for k in range(1, len(ratios)):
            own += self.own[rows, k][:, None] * ratios[k]
        return xp.sum(xp.log1p(own) - xp.log1p(total), axis=0)


class ExpectedClass(PosteriorScore):
    """Negative entropy of the posterior probabilities."""

    def values(self, rows: slice, posterior: Any) -> Any:
        xp = namespace(posterior)
        p = xp.exp(posterior)
        return xp.sum(xp.where(p > 0, p * posterior, xp.zeros_like(p)), axis=1)

    def changes(self, rows: slice, shares: list[Any], ratios: list[Any], total: Any) -> Any:
        """Return Σ_k p' log p' - p log p with p' = p (1 + ratio) / (1 + total)."""
        xp = namespace(total)
        change = xp.zeros_like(total)
        for share, ratio in zip(shares, ratios, strict=True):
            grown = xp.log1p(ratio) - xp.log1p(total)  # log p' - log p
            positive = xp.where(share > 0, share, xp.ones_like(share))
            change += share * (xp.expm1(grown) * xp.log(positive) + xp.exp(grown) * grown)
        return xp.sum(change, axis=0)
