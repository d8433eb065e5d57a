"""The small table on which the laws are checked."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification

from tamis._arrays import Array


def make_table(
    n_samples: int = 60, n_features: int = 7, n_classes: int = 3, seed: int = 0
) -> tuple[Array, NDArray[Any]]:
    """Draw a random table and classes, without ties. Every column is slightly informative."""
    X, y = make_classification(
        n_samples,
        n_features,
        n_informative=n_features - 2,
        n_redundant=0,
        n_classes=n_classes,
        class_sep=0.7,
        random_state=seed,
    )
    return np.asfortranarray((X - X.mean(axis=0)) / X.std(axis=0)), y


def table_for(criterion: Any) -> tuple[Array, NDArray[Any]]:
    """Draw a random table with a target that the criterion accepts: classes, or else numbers."""
    X, y = make_table()
    if "classification" not in criterion.targets:
        y = y + 0.1 * X @ np.arange(1, X.shape[1] + 1)
    return X, y
