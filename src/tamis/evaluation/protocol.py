"""The arguments of ``evaluate``: methods by name, and the settings for measuring every task."""

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
from tamis.evaluation.metrics import Metric
from tamis.exceptions import InvalidParameter, InvalidSpec, SelectedOutside


@dataclass(frozen=True)
class Steps:
    """Steps of a search at which the selected subset is measured.

    Use it for a method that adds several columns in a step, for example one for each class. The
    number of columns at a step may then differ between realizations. A number beyond the last step
    of a search refers to the last step.

    Parameters
    ----------
    numbers : sequence of int
        Numbers of the steps, starting at 1.

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
        """Return the subset after each step, and the label of the step."""
        trace = getattr(chooser_of(fitted), "trace_", None)
        if trace is None:
            raise InvalidParameter(
                f"sizes=Steps(...) needs a method with trace_, and {type(fitted).__name__} has "
                "none. Write sizes=[1, 2, 4]."
            )
        return [(trace[min(k, len(trace)) - 1].subset, f"step {k}") for k in self.numbers]


@dataclass(frozen=True, eq=False)
class Protocol:
    """Settings by which every task of an experiment is measured."""

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
                "sizes='best' needs estimators, and a metric of their predictions, such as 'error'."
            )

    def at(self, realization: int) -> "Protocol":
        """Return the protocol for a single realization, with the sizes of that realization."""
        if not isinstance(self.sizes, Mapping):
            return self
        return replace(self, sizes=self.sizes.get(realization, ()))

    @property
    def of_predictions(self) -> list[Metric]:
        """Metrics that need a trained estimator."""
        return [item for item in self.metrics.values() if item.function is not None]

    @property
    def reads_predictions(self) -> bool:
        """Whether metrics or losses need a trained estimator."""
        return self.losses or bool(self.of_predictions)

    def facts(self, durable: bool) -> dict[str, Any]:
        """Return everything that outcomes depend on, except sizes.

        For ``durable`` see :func:`identify`.
        """
        facts = {
            "estimators": {n: identify(e, durable) for n, e in self.estimators.items()},
            "metrics": [item.identity for item in self.metrics.values()],
            "normalise": self.normalise,
        }
        # losses are omitted if False, so that addresses are the same as in older versions
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


@dataclass(eq=False, repr=False)
class Columns(SelectorMixin, BaseEstimator):
    """A selection made in advance: the given columns, in the given order."""

    columns: list[int]

    def fit(self, X: Any, y: Any = None) -> "Columns":
        """Check that the columns exist in X."""
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
    """Return estimators by name. Arrays of column indices become :class:`Columns`."""
    if isinstance(what, Mapping):
        found = {str(name): _estimator(item, role) for name, item in what.items()}
    else:
        several = what if isinstance(what, list) and not _is_columns(what) else [what]
        made = [_estimator(item, role) for item in several]
        found = {write(item, strict=False): item for item in made}
        if len(found) < len(made):
            raise InvalidParameter(
                f"evaluate needs different names for the {role}, but two of them are written "
                f"alike. Write {role}={{'one': ..., 'other': ...}}."
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
    """Warn if a selection was not made on the training rows."""
    if isinstance(method, Columns) or fitted_before(method):
        warnings.warn(
            f"{name} was fitted before the rows were split, perhaps with the test rows, so its "
            "scores are optimistic. Pass the unfitted method, which is then fitted to the training "
            "rows of every realization.",
            SelectedOutside,
            stacklevel=3,
        )


def identify(method: BaseEstimator, durable: bool) -> str:
    """Return a text that identifies a method.

    ``durable`` means that the text is saved in a store. It must then identify the same method in
    later processes.
    """
    text = write(method, strict=False)
    try:
        write(method)
        if not fitted_before(method):
            return text
    except InvalidSpec:
        pass
    try:
        return f"{text} #{sha256(pickle.dumps(method)).hexdigest()[:16]}"
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        if not durable:
            return f"{text} {id(method)}"
        raise InvalidParameter(
            f"The results of {text} cannot be kept in a store, because part of this method cannot "
            f"be pickled ({error}). Use named functions instead of lambdas, or leave out store."
        ) from error
