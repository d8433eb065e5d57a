"""Choice of the engine for a model: a fast engine if there is one, else the generic engine."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from tamis._arrays import Array
from tamis.exceptions import IncompatibleCriterion
from tamis.response.engines.base import Engine, GenericEngine, Model, ScaledEngine, scaling_of
from tamis.response.engines.kernel import KernelEngine
from tamis.response.engines.network import NetworkEngine
from tamis.response.trees import TreeEngine

#: Fast engines, in order of preference.
ENGINES: tuple[type[Engine], ...] = (KernelEngine, NetworkEngine, TreeEngine)


def open_engine(
    model: Model, X: Array, low: Array, high: Array, n_jobs: int | None = None, *,
    n_altered: float = np.inf,
) -> Engine:  # fmt: skip
    """Return the fastest engine for a model on the rows of ``X``.

    Parameters
    ----------
    model : Model
        Trained estimator with its outputs.
    X : array of shape (n_samples, n_features)
        Rows whose columns are replaced.
    low, high : array of shape (n_features,)
        Lowest and highest new value of each column.
    n_jobs : int or None, default=None
        Number of threads of the engine.
    n_altered : float, default=inf
        Total number of altered rows to predict, if it is known.

    Returns
    -------
    Engine

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from tamis.response.predictions import predictions_of
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]])
    >>> model = predictions_of(Ridge().fit(X, X @ [1.0, 2.0]))
    >>> engine = open_engine(model, X, X.min(axis=0), X.max(axis=0))
    >>> [batch] = engine.batches(np.array([[0], [1]]))  # two units of one column each
    >>> swapped = batch.paired(X[::-1][:, [[0], [1]]])  # the values of each column in reverse
    >>> bool(np.allclose(swapped[1, :, 0], model.raw(np.c_[X[:, 0], X[::-1, 1]])))
    True
    """
    (scalings, last), scaled = scaling_of(model.fitted), [X, low, high]
    if TreeEngine.knows(model):  # this engine applies the scalers itself
        scalings, last = [], model.fitted
    for scaling in scalings:
        scaled = [scaling(values) for values in scaled]
    inner = replace(model, fitted=last)
    kind = _engine_of(inner)
    engine = kind.opened(inner, *scaled) if kind and n_altered >= kind.min_altered else None
    if engine is None:
        engine = GenericEngine(model, X)
    elif scalings:
        engine = ScaledEngine(engine, scalings)
    engine.n_jobs = n_jobs
    return engine


def _engine_of(model: Model) -> type[Engine] | None:
    """Return the first fast engine that supports a model, or None if there is none."""
    return next((kind for kind in ENGINES if kind.knows(model)), None)


def is_followed(model: Model) -> bool:
    """Return whether a fast engine supports the model."""
    return _engine_of(replace(model, fitted=scaling_of(model.fitted)[1])) is not None


def rows_at_once(model: Model, n_rows: int) -> int:
    """Return the largest number of rows for which an engine fits into memory."""
    model = replace(model, fitted=scaling_of(model.fitted)[1])
    kind = _engine_of(model)
    return kind.rows_at_once(model, n_rows) if kind else n_rows


def check_usable(name: str, estimator: Any) -> None:
    """Raise an error for a model with a precomputed kernel, which has no columns to perturb."""
    last = last_step(estimator)
    if "precomputed" in (getattr(last, "kernel", None), getattr(last, "metric", None)):
        raise IncompatibleCriterion(
            f"{name} needs a model of columns, but {type(last).__name__} has a precomputed kernel. "
            "Train it on the columns with a kernel such as kernel='rbf'."
        )


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself."""
    return last_step(estimator.steps[-1][1]) if isinstance(estimator, Pipeline) else estimator
