"""The rule of AUTO: which candidate is kept, and what it costs on rows that took no part.

A candidate is a path, a model and a number of columns; of each there is one loss for every row,
from a model that was trained without that row on columns that were chosen without it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Subset

#: Draws of rows by which the error is corrected for having taken the best of many: 60 gave the
#: figures that are known of the rule, 200 leave a fifth of a standard error to chance.
N_DRAWS = 200
#: Draws whose sums are made at once.
AT_ONCE = 50


class Allowed(NamedTuple):
    """How far above the least loss a smaller number of columns may be.

    Attributes
    ----------
    n_errors : float
        Standard errors of the least loss.
    share : float
        Of the least loss, at most: where few rows make nearly all of the loss, its standard error
        says little, and one column would do for what five predict twice as well.
    """

    n_errors: float
    share: float = float("inf")


def kept_candidate(losses: Array, sizes: Subset, allowed: Allowed) -> int:
    """The smallest size whose loss is allowed; there the least loss.

    Parameters
    ----------
    losses : array of shape (n_rows, n_candidates)
    sizes : array of int
        Of each candidate.
    allowed : Allowed

    Examples
    --------
    >>> losses = np.array([[3.0, 1.1, 1.0], [3.0, 1.5, 1.6], [3.0, 0.9, 0.8]])
    >>> kept_candidate(losses, np.array([1, 2, 5]), Allowed(0.25))
    1
    >>> kept_candidate(losses, np.array([1, 2, 5]), Allowed(0.25, share=0.02))
    2
    """
    means, errors = losses.mean(axis=0), _errors(losses)
    return int(_kept(means[None], errors[None], sizes, allowed)[0])


def _errors(losses: Array) -> Array:
    """Standard errors of the means over rows."""
    n = len(losses)
    return (
        np.asarray(losses.std(axis=0, ddof=1) / np.sqrt(n)) if n > 1 else np.zeros(losses.shape[1])
    )


def _kept(means: Array, errors: Array, sizes: Subset, allowed: Allowed) -> Subset:
    """The candidate kept in each of some draws, whose rows these are."""
    draws = np.arange(len(means))
    best = means.argmin(axis=1)
    least = means[draws, best]
    # no share of a loss of 0 is without bound
    above = least * allowed.share if np.isfinite(allowed.share) else np.inf
    limit = least + np.minimum(allowed.n_errors * errors[draws, best], above)
    close = means <= limit[:, None]
    smallest = np.where(close, sizes, sizes.max() + 1).min(axis=1)
    there = close & (sizes == smallest[:, None])
    return np.asarray(np.where(there, means, np.inf).argmin(axis=1))


class Corrected(NamedTuple):
    """Means over draws of what the rows left out of each say.

    ``kept`` has one number for each table of losses, of the candidate that the rows drawn chose;
    ``nothing`` the same of no columns. ``rows`` has for each table the mean loss of every row over
    the draws that left it out.
    """

    kept: tuple[float, ...]
    nothing: tuple[float, ...]
    rows: tuple[Array, ...]


def corrected(
    losses: Array,
    sizes: Subset,
    allowed: Allowed,
    priced: list[tuple[Array, Array]],
    rng: np.random.Generator,
    groups: NDArray[np.intp] | None = None,
    n_draws: int = N_DRAWS,
) -> Corrected:
    """What the rule's choice costs on rows that took no part in it.

    Rows are drawn with replacement (whole groups of them, where there are some), the rule chooses
    on those drawn, and the choice is priced on the rows that were not.

    Parameters
    ----------
    losses : array of shape (n_rows, n_candidates)
        By which is chosen.
    priced : list of pairs of arrays
        Losses of the candidates, and of no columns, by which is priced.
    """
    n = len(losses)
    labels = np.arange(n) if groups is None else groups
    n_labels = int(labels.max()) + 1
    sums: list[list[float]] = []
    times, rows = np.zeros(n), [np.zeros(n) for _ in priced]
    for start in range(0, n_draws, AT_ONCE):
        drawn = rng.integers(n_labels, size=(min(AT_ONCE, n_draws - start), n_labels))
        counts = np.stack([np.bincount(one, minlength=n_labels) for one in drawn])[:, labels]
        kept = _kept(*_moments(counts.astype(float), losses), sizes, allowed)
        for count, one in zip(counts, kept, strict=True):
            out = count == 0
            if out.any():
                pairs = [(of[out, one].mean(), nothing[out].mean()) for of, nothing in priced]
                sums.append([float(number) for pair in pairs for number in pair])
                times += out
                for total, (of, _) in zip(rows, priced, strict=True):
                    total[out] += of[out, one]
    found = np.mean(sums, axis=0) if sums else np.full(2 * len(priced), np.nan)
    best = kept_candidate(losses, sizes, allowed)
    asked = times > 0  # a row that every draw holds has its loss by what is kept
    means = [
        np.where(asked, total / np.maximum(times, 1), of[:, best])
        for total, (of, _) in zip(rows, priced, strict=True)
    ]
    return Corrected(tuple(found[::2].tolist()), tuple(found[1::2].tolist()), tuple(means))


def _moments(counts: Array, losses: Array) -> tuple[Array, Array]:
    """Means of the losses and their standard errors in each draw."""
    n = counts.sum(axis=1, keepdims=True)
    centre = losses.mean(axis=0)  # squares of what is far from 0 lose their digits
    off = losses - centre
    means = counts @ off / n
    variances = np.maximum(counts @ off**2 / n - means**2, 0.0) * n / np.maximum(n - 1, 1)
    return means + centre, np.sqrt(variances / n)
