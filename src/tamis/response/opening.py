"""Which engine belongs to a model: the fast one where it is known, altered copies otherwise."""

from dataclasses import replace
from typing import Any

from sklearn.pipeline import Pipeline

from tamis._arrays import Array
from tamis.exceptions import IncompatibleCriterion
from tamis.response.engine import Engine, GenericEngine, Model
from tamis.response.kernel import KernelEngine
from tamis.response.network import NetworkEngine, first_layer
from tamis.response.scaled import ScaledEngine, scaling_of
from tamis.svm.machine import kernel_machine

#: Kernel values that an engine may hold (256 MB); rows are taken in blocks beyond it.
MOST_VALUES = 32_000_000


def open_engine(model: Model, X: Array, low: Array, high: Array) -> Engine:
    """The engine of a model on the rows of ``X``, for new values between two bounds."""
    scalings, last = scaling_of(model.fitted)
    if not scalings:
        return _fast(model, X, low, high) or GenericEngine(model, X)
    scaled = [X, low, high]
    for scaling in scalings:
        scaled = [scaling(values) for values in scaled]
    engine = _fast(replace(model, fitted=last), *scaled)
    return ScaledEngine(engine, scalings) if engine else GenericEngine(model, X)


def _fast(model: Model, X: Array, low: Array, high: Array) -> Engine | None:
    plain = model.method in ("decision_function", "predict")
    if plain and (machine := kernel_machine(model.fitted)):
        return KernelEngine(machine, X, low, high)
    if layer := first_layer(model):
        return NetworkEngine(layer, X)
    return None


def is_followed(model: Model) -> bool:
    """Whether an engine knows the model, so that no altered copies are made."""
    last = scaling_of(model.fitted)[1]
    return bool(kernel_machine(last) or first_layer(replace(model, fitted=last)))


def rows_at_once(model: Model, n_rows: int) -> int:
    """How many rows an engine may have."""
    machine = kernel_machine(scaling_of(model.fitted)[1])
    if machine is None:
        return n_rows
    return min(n_rows, max(1, MOST_VALUES // max(1, len(machine.centres))))


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
