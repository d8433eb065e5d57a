"""The rule by which Auto selects a candidate, and bootstrap estimates of its loss.

A candidate is an order of the columns, a model and a number of columns. Its held-out loss is
computed for every bootstrap draw of the rows, so that candidates are compared on the same rows.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Subset

#: Number of bootstrap draws of the rows. With 200, a standard error is accurate to about 5 %.
N_DRAWS = 200
#: Number of standard errors by which a selection must beat the baseline. One is enough, because
#: models trained on noise predict worse than the baseline. Fewer than 5 % of simulated tables of
#: pure noise pass this test.
SIGNIFICANT = 1.0
#: Number of standard errors by which the AUC of a rare class must exceed 0.5. It is greater than
#: ``SIGNIFICANT``, because the best of many models trained on noise has an AUC above 0.5.
SIGNIFICANT_AUC = 3.0


#: A difference between neighbouring sizes is smoothed unless it exceeds this number of standard
#: errors.
STEEP = 2.0


class Allowed(NamedTuple):
    """Limits for how much worse than the best candidate a smaller candidate may be.

    All three limits must be met. A smaller candidate has fewer columns.

    Attributes
    ----------
    n_errors : float
        Limit in standard errors of the paired difference between the two losses.
    share : float
        Limit as a share of the lowest loss.
    gain : float
        Limit as a share of the best candidate's gain over the baseline. It is needed for a rare
        class or a weak signal, where the whole gain may be only a few per cent of the loss.
    floor : float
        Minimum of the limit ``share``, as a share of the gain. If the lowest loss is almost 0, a
        share of it would be too strict.
    most : float
        Maximum number of columns. It is ignored if all candidates have more.
    """

    n_errors: float
    share: float = float("inf")
    gain: float = float("inf")
    floor: float = 0.0
    most: float = float("inf")

    def limit(self, least: Array, errors: Array, baseline: Array) -> Array:
        """Return how far the loss of each candidate may exceed the lowest loss."""
        limit, gain = self.n_errors * errors, np.maximum(baseline - least, 0.0)
        if np.isfinite(self.share):  # infinity times a loss of 0 is NaN
            limit = np.minimum(limit, np.maximum(self.share * least, self.floor * gain))
        if np.isfinite(self.gain):
            limit = np.minimum(limit, self.gain * gain)
        return np.asarray(limit)


class Draws(NamedTuple):
    """Weights that select rows: first all rows, then each bootstrap draw, then the rows outside it.

    All rows of a group are drawn together.
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
        """Draw rows or groups with replacement, and return the row weights of each draw."""
        labels = np.arange(n_rows) if groups is None else groups
        n_labels = int(labels.max()) + 1
        drawn = rng.integers(n_labels, size=(n_draws, n_labels))
        counts = np.stack([np.bincount(one, minlength=n_labels) for one in drawn])[:, labels]
        every = np.concatenate([np.ones((1, n_rows)), counts, counts == 0])
        return cls(every if weights is None else every * weights)

    def part(self, losses: Array) -> "Losses":
        """Split the losses: on all rows, on each draw, and on the rows outside each draw."""
        n_draws = len(self.weights) // 2
        return Losses(losses[0], losses[1 : n_draws + 1], losses[n_draws + 1 :])


class Losses(NamedTuple):
    """Losses of candidates on all rows, on each bootstrap draw, and on the rows outside it."""

    whole: Array
    drawn: Array
    left_out: Array

    def of(self, candidates: Subset) -> "Losses":
        """Return the losses of one candidate per bootstrap draw.

        ``candidates`` holds the index of the candidate that each draw selects.
        """
        draws = np.arange(len(self.drawn))
        return Losses(self.whole, self.drawn[draws, candidates], self.left_out[draws, candidates])

    @property
    def honest(self) -> float:
        """Mean loss on the rows outside each bootstrap draw. It is not biased by the selection."""
        known = self.left_out[~np.isnan(self.left_out)]
        return float(known.mean()) if len(known) else float("nan")

    @property
    def standard_error(self) -> float:
        """Standard error of the loss: its standard deviation across the bootstrap draws."""
        return float(np.nanstd(self.drawn, ddof=1))


def neighbours_of(curves: Sequence[Any], sizes: Subset) -> NDArray[np.intp]:
    """Return the candidates with the next smaller and the next larger size on the same curve.

    A candidate without a neighbour on one side is its own neighbour.

    Parameters
    ----------
    curves : sequence
        The curve of each candidate: its order and model.
    sizes : array of int
        Number of columns of each candidate.

    Examples
    --------
    >>> neighbours_of(["a", "a", "a", "b"], np.array([1, 2, 5, 9])).tolist()
    [[0, 1], [0, 2], [1, 2], [3, 3]]
    """
    found = np.repeat(np.arange(len(sizes)), 2).reshape(-1, 2)
    by_curve: dict[Any, list[int]] = {}
    for candidate in np.argsort(sizes, kind="stable").tolist():
        by_curve.setdefault(curves[candidate], []).append(candidate)
    for held in by_curve.values():
        found[held[1:], 0] = held[:-1]
        found[held[:-1], 1] = held[1:]
    return found


def smooth(losses: Array, errors: Array, neighbours: NDArray[np.intp]) -> Array:
    """Smooth the losses of candidates along their curves.

    Each loss is moved towards those of its two neighbours, by a quarter of the difference.
    Differences of more than two standard errors are ignored, so that a steep curve keeps its bend.

    Parameters
    ----------
    losses : array of shape (n_draws, n_candidates)
    errors : array of shape (n_candidates, n_candidates)
        Standard errors of the differences between candidates.
    neighbours : array of shape (n_candidates, 2)

    Examples
    --------
    >>> smooth(np.array([[5.0, 1.0, 2.0]]), np.ones((3, 3)), np.array([[0, 1], [0, 2], [1, 2]]))
    array([[5.  , 1.25, 1.75]])
    """
    own, found = np.arange(losses.shape[1]), losses.copy()
    for near in neighbours.T:
        difference = losses[:, near] - losses
        found += np.where(np.abs(difference) <= STEEP * errors[own, near], difference / 4, 0.0)
    return found


def paired_errors(drawn: Array) -> Array:
    """Return the standard error of the difference between each pair of candidates.

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
    """Return, for each draw, the index of the smallest candidate that ``allowed`` accepts.

    If several accepted candidates have this size, the one with the lowest loss is returned.

    Parameters
    ----------
    losses : array of shape (n_draws, n_candidates)
    errors : array of shape (n_candidates, n_candidates)
        Standard errors of the differences between candidates.
    sizes : array of int
        Number of columns of each candidate.
    allowed : Allowed
    baseline : array of shape (n_draws,)
        Loss of the baseline in each draw.

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
