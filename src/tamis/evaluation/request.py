"""What was asked of :func:`tamis.evaluation.evaluate`, checked and named."""

import pickle
import warnings
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin

from tamis._expression import write
from tamis.evaluation.columns import fitted_before
from tamis.evaluation.metrics import Metric, as_metrics
from tamis.evaluation.protocol import Protocol, Steps
from tamis.exceptions import InvalidParameter, InvalidSpec, SelectedOutside


class Columns(SelectorMixin, BaseEstimator):
    """A selection made elsewhere: these columns, in this order."""

    def __init__(self, columns: list[int]):
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> "Columns":
        """Look up the columns."""
        n_columns = np.shape(X)[1]
        if self.columns and not 0 <= min(self.columns) <= max(self.columns) < n_columns:
            raise InvalidParameter(
                f"The given columns must be numbers from 0 to {n_columns - 1}, not {self.columns}."
            )
        self.order_ = np.array(self.columns, dtype=np.intp)
        self.support_ = np.isin(np.arange(n_columns), self.order_)
        return self

    def _get_support_mask(self) -> Any:
        return self.support_


def named(what: Any, role: str) -> dict[str, Any]:
    """Estimators by name, an array of columns standing for a selection made elsewhere."""
    if what is None and role == "estimators":
        return {}
    if isinstance(what, Mapping):
        found = {str(name): _estimator(item, role) for name, item in what.items()}
    else:
        several = what if isinstance(what, list) and not _is_columns(what) else [what]
        made = [_estimator(item, role) for item in several]
        found = {write(item, strict=False): item for item in made}
        if len(found) < len(made):
            raise InvalidParameter(
                f"evaluate needs a name for each of the {role}, and two of them read alike. Write "
                f"{role}={{'one': ..., 'other': ...}}."
            )
    if not found and role == "methods":
        raise InvalidParameter("evaluate needs at least one method.")
    return found


def _estimator(item: Any, role: str) -> Any:
    if role == "methods" and _is_columns(item):
        array = np.asarray(item)
        return Columns((np.flatnonzero(array) if array.dtype == bool else array).tolist())
    if not hasattr(item, "fit") or isinstance(item, type):
        raise InvalidParameter(
            f"evaluate needs scikit-learn estimators as {role}, not {item!r}. Write SVC() or a "
            "dictionary of names and estimators."
        )
    return item


def _is_columns(item: Any) -> bool:
    if not isinstance(item, list | tuple | np.ndarray):
        return False
    array = np.asarray(item) if len(item) and not hasattr(item[0], "fit") else np.empty(0)
    return array.ndim == 1 and array.dtype.kind in "iub" and len(array) > 0


def protocol_of(
    estimators: Any, metrics: Any, sizes: Any, normalise: bool, losses: bool = False
) -> Protocol:
    """How every task is measured."""
    if isinstance(sizes, str):
        if sizes not in ("all", "own", "best"):
            raise InvalidParameter(
                "evaluate needs sizes='all', 'own', 'best', a list of numbers or Steps([1, 2, 4]), "
                f"not {sizes!r}."
            )
    elif isinstance(sizes, Mapping):
        sizes = {int(i): _numbers(several) for i, several in sizes.items()}
    elif not isinstance(sizes, Steps):
        sizes = _numbers(sizes)
    if not isinstance(losses, bool):
        raise InvalidParameter(f"evaluate needs losses=True or False, not {losses!r}.")
    trained = named(estimators, "estimators")
    protocol = Protocol(trained, as_metrics(metrics), sizes, normalise, losses)
    if sizes == "best" and not (protocol.of_predictions and protocol.estimators):
        raise InvalidParameter(
            "sizes='best' needs a metric of predictions, such as 'error', and estimators."
        )
    return protocol


def _numbers(sizes: Any) -> tuple[int, ...]:
    numbers = tuple(int(k) for k in sizes)
    if min(numbers, default=1) < 1:
        raise InvalidParameter(f"evaluate needs sizes of at least 1, not {min(numbers)}.")
    return numbers


def warn_if_outside(name: str, method: Any) -> None:
    """Warn of a selection that was not made inside the training parts."""
    if isinstance(method, Columns) or fitted_before(method):
        warnings.warn(
            f"{name} was fitted outside: its columns were chosen before the rows were split, "
            "perhaps by looking at the test rows too, so its scores flatter. Give the unfitted "
            "method, which is then fitted inside every training part.",
            SelectedOutside,
            stacklevel=3,
        )


def expression_of(method: BaseEstimator, durable: bool) -> str:
    """Text that tells a method from any other, where the store outlives this call."""
    text = write(method, strict=False)
    try:
        write(method)
        if not fitted_before(method):
            return text
    except InvalidSpec:
        pass
    if not durable:
        return f"{text} {id(method)}"
    try:
        return f"{text} #{sha256(pickle.dumps(method)).hexdigest()[:16]}"
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise InvalidParameter(
            f"{text} holds something that cannot be told from others of its kind ({error}), so a "
            "store would mix them up. Use named functions, or leave store out."
        ) from error


def metric_text(item: Metric) -> str:
    """Name of a metric, and of the function behind it where it is the user's own."""
    if not callable(item.function) or not hasattr(item.function, "__qualname__"):
        return item.name
    return f"{item.name} {item.function.__module__}.{item.function.__qualname__}"
