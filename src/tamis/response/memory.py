"""Estimates of the memory in bytes that it takes to train a model and compare its outputs."""

from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, SVR

from tamis.response.comparison import KEPT
from tamis.response.engines.base import BLOCK, ROWS_AT_ONCE
from tamis.response.engines.kernel import BATCH_SIZE, MOST_VALUES
from tamis.response.engines.network import BLOCK as HIDDEN_BLOCK
from tamis.response.perturbations import Derivative, Marginal, Permutation, Perturbation, Removal
from tamis.response.tuners import TunedModel
from tamis.svm.machine import KERNELS

#: Number of temporary arrays of a statistic, each as large as a block of changed outputs.
OF_A_BLOCK = 4
#: Typical number of interpolation nodes for a standardised column.
NODES = 10


def inner_model(estimator: Any, n_columns: int) -> Any:
    """Return the model inside a hyper-parameter search or after scalers, or None if unknown."""
    if isinstance(estimator, TunedModel):
        return estimator._model(n_columns)
    if isinstance(estimator, GridSearchCV):
        return inner_model(estimator.estimator, n_columns)
    if isinstance(estimator, Pipeline):
        steps = [step for _, step in estimator.steps[:-1] if step not in (None, "passthrough")]
        scaled = all(isinstance(step, OneToOneFeatureMixin) for step in steps)
        return inner_model(estimator.steps[-1][1], n_columns) if scaled else None
    return estimator


def training_bytes(estimator: Any, n: int, d: int) -> float | None:
    """Estimate the memory in bytes that training on n rows and d columns needs.

    Returns None for unknown estimators.

    >>> training_bytes(SVC(), 100, 10)
    24000.0
    >>> training_bytes(SVC(kernel="sigmoid"), 100, 10) is None
    True
    """
    model, cells = inner_model(estimator, d), float(n) * d
    if isinstance(model, SVC | SVR):
        followed = model.kernel in KERNELS and model.probability is not True
        return 24 * cells if followed else None
    if isinstance(model, MLPClassifier | MLPRegressor):
        hidden = _hidden(model)
        weights = np.dot([d, *hidden], [*hidden, 1])
        return float(24 * cells + 24 * n * sum(hidden) + 100 * weights)
    if type(model) in (Ridge, RidgeClassifier):  # a subclass may train differently
        return 28 * cells + 8.0 * min(n, d) ** 2
    return float(model.cost(n, d)) if hasattr(model, "cost") else None


def _hidden(network: Any) -> list[int]:
    sizes = np.atleast_1d(network.hidden_layer_sizes)
    return sizes.tolist() if sizes.dtype.kind == "i" else []  # fit rejects other sizes


def comparison_bytes(
    estimator: Any, way: Perturbation, n: int, d: int, *, n_folds: int = 1, copied: bool = False
) -> float | None:
    """Estimate the memory in bytes that training a model and comparing its outputs needs.

    ``n_folds`` is the number of models that share the rows. ``copied`` is True if a score is
    computed from altered copies of the rows. Returns None for unknown estimators.
    """
    held, cells = training_bytes(estimator, n, d), float(n) * d
    if held is None:
        return None
    if isinstance(way, Removal):
        return held + 40 * cells + 2e5
    if isinstance(way, Derivative):
        return held + 36 * (float(n) ** 2 + cells)
    if copied:
        return held + 16 * cells + 4e4
    n_points = way.n_repeats if isinstance(way, Permutation) else 1
    if isinstance(way, Marginal):
        n_points = min(n, way.n_values or n)
    rows = n // n_folds
    block = 8.0 * OF_A_BLOCK * min(rows * d * n_points, max(BLOCK, 16 * n_points))
    outputs = block + 8 * d * (rows + 2.0 * n_points)
    return max(
        held, 16 * cells + outputs + _engine_bytes(inner_model(estimator, d), n, d, n_points)
    )


def _engine_bytes(model: Any, n: int, d: int, n_points: int) -> float:
    """Estimate the memory in bytes that an engine needs."""
    if isinstance(model, SVC | SVR):
        n_terms = (
            NODES if model.kernel == "rbf" else 1 + (model.degree if model.kernel == "poly" else 1)
        )
        kernel = min(16.0 * n**2, KEPT + 16.0 * MOST_VALUES)
        return kernel + 32.0 * min(n_terms * n * d, BATCH_SIZE / 2)
    if isinstance(model, Ridge | RidgeClassifier):
        return 8.0 * n
    if isinstance(model, MLPClassifier | MLPRegressor) and len(hidden := _hidden(model)) == 1:
        return 16.0 * min(n * n_points * hidden[0], max(HIDDEN_BLOCK, n * hidden[0]))
    copies = min(n * n_points, max(ROWS_AT_ONCE, n))
    return 8.0 * copies * (1.5 * d + 10)
