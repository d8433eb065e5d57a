"""The target in the form that the models and measures of Auto use."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Subset, class_codes
from tamis.blocks.survival import SURVIVAL


def reads_as_numbers(y: NDArray[Any]) -> bool:
    """Return whether a target holds equally spaced real numbers, and so is read as numeric.

    >>> reads_as_numbers(np.array([1.0, 2.0, 3.0])), reads_as_numbers(np.array([1, 2, 3]))
    (True, False)
    """
    if y.dtype.kind != "f":
        return False
    values = np.unique(y)
    steps = np.diff(values)
    return len(values) > 2 and bool(np.allclose(steps, steps[0]))


def describe_target(y: NDArray[Any], task: str, given: str) -> str:
    """Return how a target was read, and how to change it.

    >>> describe_target(np.array([1.0, 2.0, 3.0]), "regression", "auto")
    "target: numbers (regression); task='classification' reads them as classes"
    """
    if task == SURVIVAL:
        return "target: survival times"
    n, numeric = len(np.unique(y)), y.dtype.kind in "iuf"
    if task == "regression":
        how = "; task='classification' reads them as classes" if given == "auto" else ""
        return f"target: numbers (regression){how}"
    how = "; task='regression' reads them as numbers" if given == "auto" and numeric else ""
    return f"target: {n} classes (classification){how}"


class Truth(NamedTuple):
    """Target, groups and weights of a set of rows.

    Attributes
    ----------
    values : array of shape (n_rows, n_outputs)
        Class indicators, or the numeric target. For a censored target, all values are 0, and models
        predict a log risk instead.
    codes : array of int or None
        The class of each row.
    groups : array of int or None
        Group of each row. Rows of the same group stay together in folds.
    weights : array or None
        Weight of each row. None means equal weights.
    censored : structured array or None
        Event and time of each row, for a censored target.
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
        """Build the target from ``y`` for the given task."""
        if task == SURVIVAL:
            return cls(np.zeros((len(y), 1)), None, groups, weights, y)
        if task == "regression":
            return cls(np.asarray(y, dtype=float)[:, None], None, groups, weights)
        labels, codes = class_codes(y)
        return cls(np.eye(len(labels))[codes], codes, groups, weights)

    def take(self, rows: Subset) -> "Truth":
        """Return the target, groups and weights of the given rows."""
        return Truth(*(None if of is None else of[rows] for of in self))  # type: ignore[arg-type]

    @property
    def is_one(self) -> bool:
        """Whether the target is constant, or contains no event."""
        if self.censored is not None:
            return not self.censored["event"].any()
        return bool((self.values == self.values[0]).all())

    @property
    def strata(self) -> NDArray[np.intp] | None:
        """Labels used to stratify folds: classes, or events of a censored target."""
        if self.censored is not None:
            return self.censored["event"].astype(np.intp)
        return self.codes

    @property
    def mean(self) -> Array:
        """Prediction of the baseline: the mean, the class shares, or a log risk of 0."""
        return np.asarray(np.average(self.values, axis=0, weights=self.weights))

    @property
    def centre(self) -> Array:
        """Value that is subtracted from predictions before they are stored in single precision."""
        if self.codes is not None:
            return np.zeros(self.values.shape[1])
        return np.asarray(self.values.mean(axis=0))
