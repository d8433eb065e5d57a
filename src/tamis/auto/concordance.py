"""Harrell's concordance: how well risk scores order censored times."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tamis._arrays import Array
from tamis.blocks.survival import censored_columns
from tamis.exceptions import InvalidParameter

#: Number of events that are compared with all later rows in one matrix operation.
BLOCK = 256
#: Sums of integers and of halves of integers are exact in single precision below this limit.
EXACT = 1 << 23


def concordance(
    risk: ArrayLike, y: Any, weights: ArrayLike | None = None, folds: ArrayLike | None = None
) -> float:
    """Return the share of comparable pairs in which the row with the earlier event has more risk.

    Two rows are comparable if the earlier of the two times is an event. At equal times, an event
    comes before a censored row, and two events are not comparable. A pair with equal risks adds one
    half instead of 1.

    Parameters
    ----------
    risk : array of shape (n_samples,)
        Predicted risks; a greater risk means an earlier event. Only their order matters.
    y : structured array of event and time, or array of shape (n_samples, 2) of time and event
    weights : array of shape (n_samples,), optional
        Weights of the rows. The weight of a pair is the product of the weights of its two rows.
    folds : array of shape (n_samples,), optional
        Label of each row. Only rows with the same label are compared, because the risks of two
        models have no common scale.

    Returns
    -------
    concordance : float
        1 if all pairs are in order, 0.5 for a constant risk, NaN if no pair is comparable.

    Examples
    --------
    >>> y = np.array([(True, 1.0), (True, 2.0), (False, 3.0)], dtype=[("e", bool), ("t", float)])
    >>> concordance([2.0, 0.5, 0.5], y)
    0.8333333333333334
    """
    risks = np.asarray(risk, dtype=float).reshape(-1, 1)
    rows = np.ones((1, len(y))) if weights is None else np.atleast_2d(np.asarray(weights, float))
    return float(concordances(risks, y, rows, folds)[0, 0])


def concordances(risks: Array, y: Any, weights: Array, folds: ArrayLike | None = None) -> Array:
    """Return the :func:`concordance` of several risk scores for several weightings of the rows.

    Parameters
    ----------
    risks : array of shape (n_samples, n_candidates)
    y : structured array of event and time, or array of shape (n_samples, 2) of time and event
    weights : array of shape (n_draws, n_samples)
        Weights of the rows in each draw, for example their counts in bootstrap samples.
    folds : array of shape (n_samples,), optional
        Label of each row. Only rows with the same label are compared.

    Returns
    -------
    concordances : array of shape (n_draws, n_candidates)
        NaN for draws without comparable pairs and for candidates with missing risks.
    """
    event, time = _event_and_time(y)
    weights = _checked_weights(weights, len(time))
    if len(risks) != len(time):
        raise InvalidParameter(
            f"concordance needs one risk for each of {len(time)} rows, but got {len(risks)}."
        )
    labels = np.zeros(len(time), dtype=np.intp) if folds is None else np.asarray(folds)
    right = np.zeros((len(weights), risks.shape[1]))
    pairs = np.zeros((len(weights), 1))
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        rows = rows[np.lexsort((~event[rows], time[rows]))]
        _add_pairs(right, pairs, risks[rows], event[rows], time[rows], weights[:, rows])
    found = np.divide(right, pairs, out=np.full_like(right, np.nan), where=pairs > 0)
    found[:, np.isnan(risks).any(axis=0)] = np.nan
    return found


def _add_pairs(
    right: Array, pairs: Array, risks: Array, event: Any, time: Array, weights: Array
) -> None:
    """Add up the weights of comparable pairs in ``pairs``, and of correct ones in ``right``.

    Rows are sorted by time, with events before censored rows at equal times.
    """
    first, last = np.searchsorted(time, time, "left"), np.searchsorted(time, time, "right")
    counts = np.append(0, np.cumsum(event))
    after = first + counts[last] - counts[first]  # first row to compare with an event
    earlier = np.flatnonzero(event)
    later_rows = np.arange(len(time))
    for start in range(0, len(earlier), BLOCK):
        rows = earlier[start : start + BLOCK]
        later = later_rows[after[rows[0]] :]
        if not len(later):
            break
        comparable = (later >= after[rows][:, None]).astype(weights.dtype)
        left, others = weights[:, rows], weights[:, later]
        pairs[:, 0] += _summed(left, others @ comparable.T)
        for c in range(risks.shape[1]):
            mine, theirs = risks[rows, c][:, None], risks[later, c]
            ordered = np.add(mine > theirs, mine >= theirs, dtype=weights.dtype)
            ordered *= comparable
            right[:, c] += _summed(left, others @ ordered.T) / 2


def _summed(left: Array, products: Array) -> Array:
    """Multiply two matrices element by element, and sum each row in double precision."""
    return np.einsum("ij,ij->i", left, products, dtype=np.float64)


def _event_and_time(y: Any) -> tuple[NDArray[np.bool_], Array]:
    """Return the events (as bool) and the times of a censored target. All rows may be censored."""
    y = np.asarray(y)
    if y.dtype.names is None:
        if y.ndim != 2 or y.shape[1] != 2:
            censored_columns("concordance", y)  # raises
        return y[:, 1] == 1, y[:, 0].astype(float)
    event, time = y.dtype.names
    return y[event].astype(bool), y[time].astype(float)


def _checked_weights(weights: Array, n_rows: int) -> Array:
    """Check the weights and return them in a form in which sums are accurate.

    Integers with small sums are returned in single precision, which is exact. All other weights are
    divided by the largest weight in their row.
    """
    if weights.ndim != 2 or weights.shape[1] != n_rows:
        raise InvalidParameter(
            f"concordance needs weights for each of {n_rows} rows, but got the shape "
            f"{weights.shape}."
        )
    if not ((weights >= 0) & (weights < np.inf)).all():
        raise InvalidParameter("concordance needs weights that are finite and at least 0.")
    if (weights == np.rint(weights)).all() and weights.sum(axis=1).max(initial=0.0) < EXACT:
        return weights.astype(np.float32)
    greatest = weights.max(axis=1, keepdims=True)
    return np.divide(weights, greatest, out=np.zeros(weights.shape), where=greatest > 0)
