"""Censored targets of survival analysis: a time and an event indicator for every row."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.exceptions import InvalidTarget

#: Name of this kind of target.
SURVIVAL = "survival"
#: Type of a censored target. As in scikit-survival, the event comes first, then the time.
CENSORED = np.dtype([("event", bool), ("time", np.float64)])


def censored_target(name: str, y: Any) -> NDArray[Any] | None:
    """Return a validated array of event and time, or None if ``y`` is not a structured array.

    >>> y = np.array([(True, 3.0), (False, 5.0)], dtype=[("died", bool), ("days", float)])
    >>> censored_target("CoxScore", y)["time"]
    array([3., 5.])
    """
    fields = getattr(getattr(y, "dtype", None), "names", None)
    if fields is None:
        return None
    if len(fields) != 2 or y.dtype[0].kind not in "bui" or y.ndim != 1:
        raise InvalidTarget(
            f"{name} needs a censored target with two fields, whether the event happened and the "
            f"time, as scikit-survival's Surv makes it, but y has the fields {', '.join(fields)}."
        )
    return _check_censored(name, y[fields[0]], y[fields[1]])


def censored_columns(name: str, y: NDArray[Any]) -> NDArray[Any]:
    """Convert two columns, the time and the event (0 or 1), to a censored target.

    Parameters
    ----------
    name : str
        Name of the caller, for error messages.
    y : array of shape (n_samples, 2)
        The time and the event of each row.

    Examples
    --------
    >>> censored_columns("CoxScore", np.array([[3.0, 1], [5.0, 0]]))["event"]
    array([ True, False])
    """
    if y.ndim != 2 or y.shape[1] != 2:
        raise InvalidTarget(
            f"{name} needs a time and an event for each row: a structured array, as "
            "scikit-survival's Surv makes it, or two columns, np.column_stack([time, event]); y "
            f"has the shape {y.shape}."
        )
    return _check_censored(name, y[:, 1], y[:, 0])


def _check_censored(name: str, event: NDArray[Any], time: NDArray[Any]) -> NDArray[Any]:
    """Validate event and time, and return them as a single structured array."""
    target = np.empty(len(time), dtype=CENSORED)
    try:
        target["time"], happened = time.astype(float), event.astype(float)
    except (ValueError, TypeError) as error:
        raise InvalidTarget(f"{name} needs time and event as numbers ({error}).") from error
    if not np.isfinite(target["time"]).all():
        rows = np.flatnonzero(~np.isfinite(target["time"]))
        raise InvalidTarget(
            f"{name} needs a time in every row, but it is missing or infinite in {len(rows)} "
            f"row(s), the first of them row {rows[0]}. Leave these rows out of X and y."
        )
    if not np.isin(happened, (0, 1)).all():
        odd = happened[~np.isin(happened, (0, 1))][0]
        raise InvalidTarget(
            f"{name} needs the event as 1 if it happened and 0 if the row was censored, but it is "
            f"{odd:g} in one row. Of two columns, the first is the time and the second the event."
        )
    target["event"] = happened == 1
    if not target["event"].any():
        raise InvalidTarget(
            f"{name} needs a row in which the event happened, but all {len(target)} are censored. "
            "Check which column is the event: 1 is an event."
        )
    return target
