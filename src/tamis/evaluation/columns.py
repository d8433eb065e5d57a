"""Which columns an estimator of any library chose, read from what it holds after ``fit``."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from tamis._arrays import Subset
from tamis.contract.units import Grouping


def fitted_before(method: Any) -> bool:
    """Whether a part of the method was fitted beforehand and will stay so."""
    values = [method, *method.get_params().values()] if hasattr(method, "get_params") else [method]
    return any(
        isinstance(value, FrozenEstimator) or getattr(value, "prefit", False) is True
        for value in values
    )


def chosen_columns(fitted: Any) -> tuple[Subset | None, Subset | None]:
    """Columns best first, and those kept, of a fitted estimator; None where it chooses none.

    Of a pipeline without a predictor the first step is asked, which sees the original columns. A
    method that only has a support has it for an order too.
    """
    chooser = chooser_of(fitted)
    if chooser is None:
        return None, None
    support = _support(chooser)
    for name, rank in (("order_", None), ("ranking_", 1), ("scores_", -1)):
        found = getattr(chooser, name, None)
        if found is not None and np.ndim(found) == 1:
            values = np.asarray(found)
            order = (values if rank is None else _sorted(rank * values)).astype(np.intp)
            units = getattr(chooser, "units_", None)  # what our own selections order
            if isinstance(units, Grouping):
                order = units.column_order(order)
            return order, support
    return support, support


def seen_columns(fitted: Any) -> Subset | None:
    """The columns that the first step of a pipeline passes on; None where it chooses none."""
    steps = getattr(fitted, "steps", None)
    return chosen_columns(steps[0][1])[1] if isinstance(steps, list) else None


def _sorted(values: NDArray[Any]) -> Subset:
    """Positions of ascending values, nan last."""
    return np.argsort(np.where(np.isnan(values), np.inf, values), kind="stable")


def _support(chooser: Any) -> Subset | None:
    mask = getattr(chooser, "support_", None)
    if mask is None and hasattr(chooser, "get_support"):
        mask = chooser.get_support()
    if mask is None:
        return None
    mask = np.asarray(mask)
    return np.flatnonzero(mask) if mask.dtype == bool else mask.astype(np.intp)


def chooser_of(fitted: Any) -> Any:
    """The estimator, if it chooses columns and is not itself a predictor made of steps."""
    if isinstance(getattr(fitted, "steps", None), list):  # a pipeline
        return None if hasattr(fitted, "predict") else chooser_of(fitted.steps[0][1])
    if any(hasattr(fitted, mark) for mark in ("order_", "ranking_", "get_support")):
        return fitted
    # a support vector machine keeps the numbers of rows under the same name
    mask = getattr(fitted, "support_", None)
    return fitted if mask is not None and np.asarray(mask).dtype == bool else None
