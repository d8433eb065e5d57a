"""Parzen windows: their width, and scores of the posterior probabilities that they give."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from tamis._arrays import Array
from tamis._checks import number, one_of
from tamis._namespace import move, namespace
from tamis._seeds import stream

#: Widths tried: 2^-3 to 2^3 in steps of the square root of 2.
WIDTHS: Array = 2.0 ** np.arange(-3, 3.5, 0.5)
#: What a width may be.
WIDTH = number(above=0) | one_of("likelihood")
# Rows of distances held at a time: a few megabytes for ten thousand samples.
_ROWS = 256


def log_density(points: Array, centres: Array, sigma: float, weights: Array | None = None) -> Array:
    r"""Logarithm of the Gaussian kernel density at the points.

    .. math:: p(x) = \sum_i a_i (2\pi\sigma^2)^{-d/2} \exp(-\|x - x_i\|^2 / 2\sigma^2)

    with weights :math:`a_i = 1/N` where none are given.

    >>> float(np.exp(log_density(np.zeros((1, 1)), np.array([[0.0], [0.0]]), 1.0))[0])
    0.3989422804014327
    """
    d = points.shape[1]
    logs = np.empty(len(points))
    for first in range(0, len(points), _ROWS):
        rows = slice(first, first + _ROWS)
        exponents = cdist(points[rows], centres, "sqeuclidean") / (-2 * sigma**2)
        logs[rows] = logsumexp(exponents, axis=1, b=weights)
    if weights is None:
        logs -= np.log(len(centres))
    return logs - d * np.log(sigma) - d / 2 * np.log(2 * np.pi)


def held_out_likelihood(
    X: Array, widths: Array = WIDTHS, *, n_folds: int = 5, seed: int = 0
) -> Array:
    """Mean log density of the samples left out of each fold, for each width.

    The likelihood of samples that are centres themselves would be greatest for no width at all.
    When each width is the last one divided by the square root of 2, one exponential serves all:
    the kernel of a width is the square of the kernel of the next greater one.
    """
    n, d = X.shape
    falling = np.argsort(widths)[::-1]
    halving = np.allclose(widths[falling][:-1] / widths[falling][1:], np.sqrt(2))
    folds = _folds(X, min(n_folds, n), seed)
    left = n - np.bincount(folds)[folds]
    sums = np.zeros(len(widths))
    for first in range(0, n, _ROWS):
        rows = slice(first, first + _ROWS)
        distances = cdist(X[rows], X, "sqeuclidean")
        distances[folds[rows, None] == folds] = np.inf
        least = distances.min(axis=1)
        distances -= least[:, None]
        kernel = np.empty_like(distances)
        for index, sigma in zip(falling, widths[falling], strict=True):
            if halving and index != falling[0]:
                np.square(kernel, out=kernel)
            else:
                np.exp(distances / (-2 * sigma**2), out=kernel)
            logs = np.log(kernel.sum(axis=1)) - least / (2 * sigma**2) - np.log(left[rows])
            sums[index] += logs.sum()
    return sums / n - d * np.log(widths) - d / 2 * np.log(2 * np.pi)


def _folds(X: Array, n_folds: int, seed: int) -> NDArray[np.intp]:
    """Fold of each sample: drawn by the samples' norms, so that their order does not matter."""
    folds = np.empty(len(X), dtype=np.intp)
    by_norm = np.argsort((X**2).sum(axis=1), kind="stable")
    folds[by_norm] = stream(seed, "folds").permutation(len(X)) % n_folds
    return folds


def best_width(X: Array, *, n_folds: int = 5, seed: int = 0) -> float:
    """Width of the greatest held-out likelihood; of equals the greatest.

    Constant columns, whose density would ask for no width at all, are left out.
    """
    varies = X.min(axis=0) < X.max(axis=0)
    X = X[:, varies] if varies.any() and not varies.all() else X
    likelihood = held_out_likelihood(X, n_folds=n_folds, seed=seed)
    close = likelihood >= likelihood.max() - 1e-12 * max(1.0, abs(likelihood.max()))
    return float(WIDTHS[np.flatnonzero(close)[-1]])


def width_cost(n_samples: int) -> float:
    """Estimate the bytes held while a width is chosen: kernels of some rows at a time."""
    return 24.0 * n_samples * min(n_samples, _ROWS)


class PosteriorScore(ABC):
    """Sums over samples of a score of their posterior probabilities.

    Parameters
    ----------
    codes : array of int
        The class of each sample.
    counts : array
        How many samples each class has.
    others : bool
        Whether sums leave the sample itself out, so that its class has one less.
    like : array
        Where the sums are.
    """

    def __init__(self, codes: NDArray[np.intp], counts: Array, others: bool, like: Any):
        own = codes[:, None] == np.arange(len(counts))
        self.own = move(own.astype(float), like)
        fewer = np.maximum(counts - 1, 1) if others else counts
        self.more = move(np.where(own, np.log(counts / fewer), 0.0), like)

    def of_base(self, rows: slice, logs: Any) -> Any:
        """Sum of the scores of some samples."""
        return namespace(logs).sum(self.values(rows, self._normed(rows, logs)))

    def of_logs(self, rows: slice, before: Any, after: Any) -> Any:
        """Its change from the logarithms of all sums."""
        return self.of_base(rows, after) - self.of_base(rows, before)

    def of_ratios(self, rows: slice, logs: Any, ratios: list[Any]) -> Any:
        """Its change from that of each sum relative to itself, for several columns."""
        posterior = namespace(logs).exp(self._normed(rows, logs))
        shares = [posterior[:, k][:, None] for k in range(len(ratios))]
        total = shares[0] * ratios[0]
        for share, ratio in zip(shares[1:], ratios[1:], strict=True):
            total += share * ratio
        return self.changes(rows, shares, ratios, total)

    def _normed(self, rows: slice, logs: Any) -> Any:
        """Logarithms of the posterior probabilities."""
        xp = namespace(logs)
        logs = logs + self.more[rows, :]
        top = xp.max(logs, axis=1, keepdims=True)
        return logs - (top + xp.log(xp.sum(xp.exp(logs - top), axis=1, keepdims=True)))

    @abstractmethod
    def values(self, rows: slice, posterior: Any) -> Any:
        """Score of each sample from the logarithms of its posterior probabilities."""

    @abstractmethod
    def changes(self, rows: slice, shares: list[Any], ratios: list[Any], total: Any) -> Any:
        """Changes summed over samples; the total is that of all classes, weighted by shares."""


class ObservedClass(PosteriorScore):
    """Logarithm of the posterior probability of the sample's own class."""

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
    """Minus the entropy of the posterior probabilities."""

    def values(self, rows: slice, posterior: Any) -> Any:
        xp = namespace(posterior)
        p = xp.exp(posterior)
        return xp.sum(xp.where(p > 0, p * posterior, xp.zeros_like(p)), axis=1)

    def changes(self, rows: slice, shares: list[Any], ratios: list[Any], total: Any) -> Any:
        """Σ_k p' log p' - p log p with p' = p (1 + ratio) / (1 + total)."""
        xp = namespace(total)
        change = xp.zeros_like(total)
        for share, ratio in zip(shares, ratios, strict=True):
            grown = xp.log1p(ratio) - xp.log1p(total)  # log p' - log p
            there = xp.where(share > 0, share, xp.ones_like(share))
            change += share * (xp.expm1(grown) * xp.log(there) + xp.exp(grown) * grown)
        return xp.sum(change, axis=0)
