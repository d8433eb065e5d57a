"""What was asked of ``evaluate``: methods by name, and how every task is measured."""

import pickle
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin

from tamis._arrays import Subset
from tamis._expression import write
from tamis.evaluation.columns import chooser_of, fitted_before
from tamis.evaluation.metrics import Metric, as_metrics
from tamis.exceptions import InvalidParameter, InvalidSpec, SelectedOutside


@dataclass(frozen=True)
class Steps:
    """Where a search is measured: after these steps of its trace, however many columns they hold.

    A method that adds several columns at a time, such as the next of every class, is measured at
    the subsets that it really held. After its last step it stays where it is.

    Parameters
    ----------
    numbers : sequence of int
        Counted from 1.

    Examples
    --------
    >>> Steps([1, 2, 4])
    Steps(numbers=(1, 2, 4))
    """

    numbers: Sequence[int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", tuple(int(k) for k in self.numbers))
        if min(self.numbers, default=0) < 1:
            raise InvalidParameter(f"Steps needs numbers of at least 1, not {list(self.numbers)}.")

    def subsets(self, fitted: Any) -> list[tuple[Subset, str]]:
        """Columns held after each of the steps, and the name of the step."""
        trace = getattr(chooser_of(fitted), "trace_", None)
        if trace is None:
            raise InvalidParameter(
                f"sizes=Steps(...) needs a method that keeps its steps in trace_, which "
                f"{type(fitted).__name__} does not. Write sizes=[1, 2, 4]."
            )
        return [(trace[min(k, len(trace)) - 1].subset, f"step {k}") for k in self.numbers]


@dataclass(frozen=True, eq=False)
class Protocol:
    """How every task of an experiment is measured."""

    estimators: Mapping[str, BaseEstimator]
    metrics: Mapping[str, Metric]
    sizes: Any
    normalise: bool
    losses: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", _checked_sizes(self.sizes))
        if not isinstance(self.losses, bool):
            raise InvalidParameter(f"evaluate needs losses=True or False, not {self.losses!r}.")
        if self.sizes == "best" and not (self.of_predictions and self.estimators):
            raise InvalidParameter(
                "sizes='best' needs a metric of predictions, such as 'error', and estimators."
            )

    @classmethod
    def of(
        cls, estimators: Any, metrics: Any, sizes: Any, normalise: bool, losses: bool
    ) -> "Protocol":
        """Read the arguments of :func:`tamis.evaluation.evaluate`."""
        trained = {} if estimators is None else name_estimators(estimators, "estimators")
        return cls(trained, as_metrics(metrics), sizes, normalise, losses)

    def at(self, realization: int) -> "Protocol":
        """How the tasks of one realization are measured, where each has sizes of its own."""
        if not isinstance(self.sizes, Mapping):
            return self
        return replace(self, sizes=self.sizes.get(realization, ()))

    @property
    def of_predictions(self) -> list[Metric]:
        """The metrics that need a trained estimator."""
        return [item for item in self.metrics.values() if item.function is not None]

    @property
    def reads_predictions(self) -> bool:
        """Whether anything that is asked for needs a trained estimator."""
        return self.losses or bool(self.of_predictions)

    def facts(self, durable: bool) -> dict[str, Any]:
        """What outcomes depend on, but for sizes; ``durable`` as of :func:`identify`."""
        facts = {
            "estimators": {n: identify(e, durable) for n, e in self.estimators.items()},
            "metrics": [item.identity for item in self.metrics.values()],
            "normalise": self.normalise,
        }
        # left out otherwise, so that addresses stay what they were
        return facts | {"losses": True} if self.losses else facts


def _checked_sizes(sizes: Any) -> Any:
    if isinstance(sizes, str) and sizes not in ("all", "own", "best"):
        raise InvalidParameter(
            "evaluate needs sizes='all', 'own', 'best', a list of numbers or Steps([1, 2, 4]), "
            f"not {sizes!r}."
        )
    if isinstance(sizes, str | Steps):
        return sizes
    if isinstance(sizes, Mapping):
        return {int(i): _checked_sizes(several) for i, several in sizes.items()}
    numbers = tuple(int(k) for k in sizes)
    if min(numbers, default=1) < 1:
        raise InvalidParameter(f"evaluate needs sizes of at least 1, not {min(numbers)}.")
    return numbers


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


def name_estimators(what: Any, role: str) -> dict[str, Any]:
    """Estimators by name, an array of columns standing for a selection made elsewhere."""
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
    if not isinstance(item, list | tuple | np.ndarray) or not len(item) or hasattr(item[0], "fit"):
        return False
    array = np.asarray(item)
    return array.ndim == 1 and array.dtype.kind in "iub"


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


def identify(method: BaseEstimator, durable: bool) -> str:
    """Text that tells a method from any other; ``durable`` where a store outlives this call."""
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
