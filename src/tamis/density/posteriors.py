"""Scores of posterior probabilities from kernel sums over the classes, on any array library."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis._namespace import move, namespace


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
