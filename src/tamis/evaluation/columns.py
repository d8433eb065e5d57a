"""The selected columns of a fitted estimator, read from its attributes, for any library."""

from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from tamis._arrays import Subset
from tamis.contract.units import Grouping


def fitted_before(method: Any) -> bool:
    """Return whether the method has a fitted part that will not be fitted again."""
    values = [method, *method.get_params().values()] if hasattr(method, "get_params") else [method]
    return any(
        isinstance(value, FrozenEstimator) or getattr(value, "prefit", False) is True
        for value in values
    )


def chosen_columns(fitted: Any) -> tuple[Subset | None, Subset | None]:
    """Return the order of the columns, best first, and the selected columns.

    Both are None if the estimator does not select columns. A pipeline without a predictor is
    represented by its first step, because that step receives the original columns. If an estimator
    has selected columns but no order, the selected columns are also returned as the order.
    """
    chooser = chooser_of(fitted)
    if chooser is None:
        return None, None
    support = _support(chooser)
    for name, rank in (("order_", None), ("ranking_", 1), ("scores_", -1)):
        found = getattr(chooser, name, None)
        if found is not None and np.ndim(found) == 1:
            values = np.asarray(found)
            rising = values if rank is None else np.argsort(rank * values, kind="stable")
            order = rising.astype(np.intp)  # NaN is last
            units = getattr(chooser, "units_", None)  # selections of tamis rank units, not columns
            if isinstance(units, Grouping):
                order = units.column_order(order)
            return order, support
    return support, support


def seen_columns(fitted: Any) -> Subset | None:
    """Return the columns that the first step of a pipeline selects, or None if it selects none."""
    steps = getattr(fitted, "steps", None)
    return chosen_columns(steps[0][1])[1] if isinstance(steps, list) else None


def _support(chooser: Any) -> Subset | None:
    mask = getattr(chooser, "support_", None)
    if mask is None and hasattr(chooser, "get_support"):
        mask = chooser.get_support()
    if mask is None:
        return None
    mask = np.asarray(mask)
    return np.flatnonzero(mask) if mask.dtype == bool else mask.astype(np.intp)


def chooser_of(fitted: Any) -> Any:
    """Return the part of an estimator that selects columns.

    It is None if no part does, or if the estimator is a pipeline that predicts.
    """
    if isinstance(getattr(fitted, "steps", None), list):  # a pipeline
        return None if hasattr(fitted, "predict") else chooser_of(fitted.steps[0][1])
    if any(hasattr(fitted, mark) for mark in ("order_", "ranking_", "get_support")):
        return fitted
    # the ``support_`` of an SVM holds row indices
    mask = getattr(fitted, "support_", None)
    return fitted if mask is not None and np.asarray(mask).dtype == bool else None
