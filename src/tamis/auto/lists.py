"""The lists of columns that Auto reports, and the columns that a selected column stands for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from tamis._arrays import Array, Mask, Subset
from tamis.auto.held_out import HeldOut, LostError
from tamis.auto.orders import DUPLICATE, correlated_units
from tamis.contract.units import Grouping


@dataclass(frozen=True)
class ColumnList:
    """A list of columns, the model that predicts with it, and its error.

    Attributes
    ----------
    columns : list
        The columns in table order, by name if ``X`` had names, else by index.
    support : array of bool
        Mask of the columns.
    size : int
        Number of units (columns or groups).
    order, model : str
        The column order and the model; see :class:`Auto`.
    error : HeldOut
        Error on held-out rows, corrected for the selection.
    lost : LostError
        Difference from the error of the list with the lowest loss, on the same rows.
    estimator : estimator
        The model, not yet trained.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.auto import Auto
    >>> auto = Auto(budget=1, random_state=0).fit(*load_iris(return_X_y=True))
    >>> auto.short_.size <= auto.best_.size
    True
    """

    columns: list[Any]
    support: Mask
    size: int
    order: str
    model: str
    error: HeldOut
    lost: LostError
    estimator: BaseEstimator

    @property
    def loss(self) -> float:
        """Loss on held-out rows, corrected for the selection."""
        return self.error.loss


def similar_units(X: Array, units: Grouping, selected: Subset) -> dict[int, list[int]]:
    """Return the units that each selected unit stands for, the most similar first.

    A unit that is not selected is assigned to the selected unit with which it has the largest
    absolute correlation, if this is above 0.9. A unit is a single column, or a group of columns.
    """
    others = np.setdiff1d(np.arange(units.n_units), selected)
    if not len(others) or not len(selected):
        return {}
    found = correlated_units(X, units, others, selected).T
    closest, most = found.argmax(axis=0), found.max(axis=0)
    similar: dict[int, list[int]] = {}
    for other in np.argsort(-most, kind="stable"):
        if most[other] > DUPLICATE:
            similar.setdefault(int(selected[closest[other]]), []).append(int(others[other]))
    return {unit: similar[unit] for unit in selected.tolist() if unit in similar}


def named(units: Grouping, names: Sequence[Any] | None) -> list[Any]:
    """Return the name of each unit, or the index of its first column if there are no names."""
    return units.unit_names(range(units.n_columns) if names is None else list(names))
