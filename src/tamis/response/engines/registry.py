"""Which engine belongs to a model: the fast one where it is known, altered copies otherwise."""

from dataclasses import replace
from typing import Any

from sklearn.pipeline import Pipeline

from tamis._arrays import Array
from tamis.exceptions import IncompatibleCriterion
from tamis.response.engines.base import Engine, GenericEngine, Model, ScaledEngine, scaling_of
from tamis.response.engines.kernel import KernelEngine
from tamis.response.engines.network import NetworkEngine
from tamis.response.trees import TreeEngine

#: Engines that know kinds of models, asked in turn.
ENGINES: tuple[type[Engine], ...] = (KernelEngine, NetworkEngine, TreeEngine)


def open_engine(
    model: Model, X: Array, low: Array, high: Array, n_jobs: int | None = None
) -> Engine:
    """The engine of a model on the rows of ``X``, for new values between two bounds.

    ``n_jobs`` is the number of threads that it may use.

    Parameters
    ----------
    model : Model
        A trained estimator and its outputs.
    X : array of shape (n_samples, n_features)
    low, high : array of shape (n_features,)
        Between them lie the new values of each column.
    n_jobs : int or None, default=None
        Threads that the engine may use.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from tamis.response.predictions import predictions_of
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]])
    >>> model = predictions_of(Ridge().fit(X, X @ [1.0, 2.0]))
    >>> engine = open_engine(model, X, X.min(axis=0), X.max(axis=0))
    >>> [batch] = engine.batches(np.array([[0], [1]]))  # both columns, each by itself
    >>> swapped = batch.paired(X[::-1][:, [[0], [1]]])  # each receives its values in reverse
    >>> bool(np.allclose(swapped[1, :, 0], model.raw(np.c_[X[:, 0], X[::-1, 1]])))
    True
    """
    engine = _open(model, X, low, high)
    engine.n_jobs = n_jobs
    return engine


def _open(model: Model, X: Array, low: Array, high: Array) -> Engine:
    scalings, last = scaling_of(model.fitted)
    if not scalings or TreeEngine.knows(model):  # trees see to their scalers themselves
        return _fast(model, X, low, high) or GenericEngine(model, X)
    scaled = [X, low, high]
    for scaling in scalings:
        scaled = [scaling(values) for values in scaled]
    engine = _fast(replace(model, fitted=last), *scaled)
    return ScaledEngine(engine, scalings) if engine else GenericEngine(model, X)


def _fast(model: Model, X: Array, low: Array, high: Array) -> Engine | None:
    kind = _engine_of(model)
    return kind.opened(model, X, low, high) if kind else None


def _engine_of(model: Model) -> type[Engine] | None:
    """The first engine that knows a model."""
    return next((kind for kind in ENGINES if kind.knows(model)), None)


def is_followed(model: Model) -> bool:
    """Whether an engine knows the model, so that no altered copies are made."""
    return _engine_of(replace(model, fitted=scaling_of(model.fitted)[1])) is not None


def rows_at_once(model: Model, n_rows: int) -> int:
    """How many rows an engine may have."""
    model = replace(model, fitted=scaling_of(model.fitted)[1])
    kind = _engine_of(model)
    return kind.rows_at_once(model, n_rows) if kind else n_rows


def check_usable(name: str, estimator: Any) -> None:
    """Refuse a model whose input has no columns that can be perturbed."""
    last = last_step(estimator)
    if getattr(last, "kernel", None) == "precomputed" or (
        getattr(last, "metric", None) == "precomputed"
    ):
        raise IncompatibleCriterion(
            f"{name} perturbs columns, and {type(last).__name__} with a precomputed kernel sees "
            "none. Give it the columns and a kernel such as kernel='rbf'."
        )


def last_step(estimator: Any) -> Any:
    """The estimator that answers: the last one of a pipeline."""
    return last_step(estimator.steps[-1][1]) if isinstance(estimator, Pipeline) else estimator
