"""The target of Auto as its models and measures read it."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Subset, class_codes
from tamis.blocks.survival import SURVIVAL


class Truth(NamedTuple):
    """Target, groups and weights of some rows.

    Attributes
    ----------
    values : array of shape (n_rows, n_outputs)
        Indicators of the classes, or the number itself; 0 for a censored target, whose models
        predict a log risk.
    codes : array of int or None
        The class of each row.
    groups : array of int or None
        Rows of one group stay together in folds.
    weights : array or None
    censored : structured array or None
        Event and time.
    """

    values: Array
    codes: NDArray[np.intp] | None
    groups: NDArray[np.intp] | None = None
    weights: Array | None = None
    censored: NDArray[Any] | None = None

    @classmethod
    def of(
        cls,
        y: NDArray[Any],
        task: str,
        groups: NDArray[np.intp] | None = None,
        weights: Array | None = None,
    ) -> "Truth":
        """Read a target."""
        if task == SURVIVAL:
            return cls(np.zeros((len(y), 1)), None, groups, weights, y)
        if task == "regression":
            return cls(np.asarray(y, dtype=float)[:, None], None, groups, weights)
        labels, codes = class_codes(y)
        return cls(np.eye(len(labels))[codes], codes, groups, weights)

    def take(self, rows: Subset) -> "Truth":
        """Return the same of some rows."""
        return Truth(*(None if of is None else of[rows] for of in self))  # type: ignore[arg-type]

    @property
    def is_one(self) -> bool:
        """Whether the rows have nothing to learn from: one value only, or no event."""
        if self.censored is not None:
            return not self.censored["event"].any()
        return bool((self.values == self.values[0]).all())

    @property
    def strata(self) -> NDArray[np.intp] | None:
        """What folds have in proportion: classes, or events."""
        if self.censored is not None:
            return self.censored["event"].astype(np.intp)
        return self.codes

    @property
    def mean(self) -> Array:
        """Prediction of the baseline: mean, class shares, or no difference in risk."""
        return np.asarray(np.average(self.values, axis=0, weights=self.weights))

    @property
    def centre(self) -> Array:
        """What predictions are stored as differences from: a number far from 0 keeps its digits."""
        if self.codes is not None:
            return np.zeros(self.values.shape[1])
        return np.asarray(self.values.mean(axis=0))
