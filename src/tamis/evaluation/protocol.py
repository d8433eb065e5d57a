"""How every task of an experiment is measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import BaseEstimator

from tamis._arrays import Subset
from tamis.evaluation.columns import chooser_of
from tamis.evaluation.metrics import Metric
from tamis.exceptions import InvalidParameter


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
    sizes: str | tuple[int, ...] | Steps | Mapping[int, tuple[int, ...]]
    normalise: bool
    losses: bool = False

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
