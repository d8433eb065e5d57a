"""The rule of Auto: which candidate is selected, and its loss on rows that did not select it.

A candidate is an order of the columns, a model and a number of columns. Its held-out loss is known
for every bootstrap draw of the rows, so that candidates are compared in pairs on the same rows.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Subset

#: Bootstrap draws of the rows: a standard error is then known to 5 %.
N_DRAWS = 200
#: Standard errors by which a list must beat the baseline before it is offered. Models of noise
#: predict worse than the baseline, so that fewer than 5 % of noise tables pass, by simulation.
SIGNIFICANT = 1.0
#: The same for the AUC of a rare class. The best of many models of noise has an AUC above one half:
#: about one standard error on average, by simulation.
SIGNIFICANT_AUC = 3.0


class Allowed(NamedTuple):
    """How much worse than the best candidate a smaller number of columns may be.

    Attributes
    ----------
    n_errors : float
        Standard errors of the difference, paired by rows.
    share : float
        Share of the least loss, at most.
    gain : float
        Share of the best candidate's gain over the baseline, at most: with a rare class or a weak
        signal, all of the gain may be less than a few per cent of the loss.
    """

    n_errors: float
    share: float = float("inf")
    gain: float = float("inf")

    def limit(self, least: Array, errors: Array, baseline: Array) -> Array:
        """Return how much above the least loss each candidate may be."""
        limit = self.n_errors * errors
        if np.isfinite(self.share):  # an infinite share of a loss of 0 is not a number
            limit = np.minimum(limit, self.share * least)
        if np.isfinite(self.gain):
            limit = np.minimum(limit, self.gain * np.maximum(baseline - least, 0.0))
        return np.asarray(limit)


class Draws(NamedTuple):
    """Weightings of the rows: all rows once, each bootstrap draw, and the rows it left out.

    The rows are drawn in whole groups if there are groups.
    """

    weights: Array

    @classmethod
    def of(
        cls,
        n_rows: int,
        rng: np.random.Generator,
        groups: NDArray[np.intp] | None = None,
        weights: Array | None = None,
        n_draws: int = N_DRAWS,
    ) -> "Draws":
        """Draw rows with replacement."""
        labels = np.arange(n_rows) if groups is None else groups
        n_labels = int(labels.max()) + 1
        drawn = rng.integers(n_labels, size=(n_draws, n_labels))
        counts = np.stack([np.bincount(one, minlength=n_labels) for one in drawn])[:, labels]
        every = np.concatenate([np.ones((1, n_rows)), counts, counts == 0])
        return cls(every if weights is None else every * weights)

    def part(self, losses: Array) -> "Losses":
        """Split losses of all weightings."""
        n_draws = len(self.weights) // 2
        return Losses(losses[0], losses[1 : n_draws + 1], losses[n_draws + 1 :])


class Losses(NamedTuple):
    """Losses of candidates on all rows, in each draw, and on the rows left out of each draw."""

    whole: Array
    drawn: Array
    left_out: Array

    def of(self, candidates: Subset) -> "Losses":
        """Return the losses of one candidate for each draw, which follow the draw's own choice."""
        draws = np.arange(len(self.drawn))
        return Losses(self.whole, self.drawn[draws, candidates], self.left_out[draws, candidates])

    @property
    def honest(self) -> float:
        """Mean loss on the rows left out of each draw."""
        known = self.left_out[~np.isnan(self.left_out)]
        return float(known.mean()) if len(known) else float("nan")

    @property
    def standard_error(self) -> float:
        """Standard deviation over the draws."""
        return float(np.nanstd(self.drawn, ddof=1))


def paired_errors(drawn: Array) -> Array:
    """Return the standard error of the difference of each pair of candidates.

    >>> paired_errors(np.array([[1.0, 3.0], [2.0, 3.0], [3.0, 3.0]]))
    array([[0., 1.],
           [1., 0.]])
    """
    covariance = np.atleast_2d(np.cov(drawn, rowvar=False))
    variance = np.diag(covariance)
    return np.sqrt(np.maximum(variance[:, None] + variance - 2 * covariance, 0.0))


def select_candidates(
    losses: Array, errors: Array, sizes: Subset, allowed: Allowed, baseline: Array
) -> Subset:
    """Return for each row of losses the smallest size that is allowed; there the least loss.

    Parameters
    ----------
    losses : array of shape (n_draws, n_candidates)
    errors : array of shape (n_candidates, n_candidates)
        Standard errors of the differences.
    sizes : array of int
        Of each candidate.
    allowed : Allowed
    baseline : array of shape (n_draws,)
        Loss of the baseline.

    Examples
    --------
    >>> losses, errors = np.array([[3.0, 1.1, 1.0]]), np.full((3, 3), 0.2)
    >>> sizes, baseline = np.array([1, 2, 5]), np.array([5.0])
    >>> select_candidates(losses, errors, sizes, Allowed(1.0), baseline)
    array([1])
    >>> select_candidates(losses, errors, sizes, Allowed(1.0, share=0.02), baseline)
    array([2])
    """
    best = losses.argmin(axis=1)
    least = losses.min(axis=1, keepdims=True)
    close = losses <= least + allowed.limit(least, errors[best], baseline[:, None])
    smallest = np.where(close, sizes, sizes.max() + 1).min(axis=1)
    there = close & (sizes == smallest[:, None])
    return np.asarray(np.where(there, losses, np.inf).argmin(axis=1))
