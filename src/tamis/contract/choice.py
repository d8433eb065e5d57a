"""Which subset of a trace is kept: the third axis beside criterion and search.

``n_features_to_select`` of a search takes an int, a fraction, ``"best"`` or one of the objects
here and in :mod:`tamis.choice`. A new choice is a class with :meth:`Choice.pick`.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from tamis._arrays import Array, Subset, improves, is_int, is_real
from tamis.contract.criterion import SubsetCriterion
from tamis.contract.trace import Trace
from tamis.contract.units import Grouping
from tamis.exceptions import IncompatibleCriterion, InvalidParameter


class Walker(Protocol):
    """The facts of a selection that a choice asks for."""

    nested: ClassVar[bool]
    scores_alone: ClassVar[bool]


class Context(NamedTuple):
    """What a choice may look at beside the trace.

    Attributes
    ----------
    criterion : Criterion or None
        Fitted; None for selections without one.
    X, y : array or None
        The data as the selection got them.
    grouping : Grouping or None
        Which columns of X belong to which unit of the trace; None where unit j is column j.
    """

    criterion: Any = None
    X: Array | None = None
    y: NDArray[Any] | None = None
    grouping: Grouping | None = None

    def columns(self, units: Subset) -> Subset:
        """Columns of X that some units of the trace have."""
        return units if self.grouping is None else self.grouping.columns(units)


class Choice(BaseEstimator, ABC):
    """Rule that picks one step of a trace."""

    #: Whether each step must hold, or be held by, the step before.
    needs_nested: ClassVar[bool] = False

    def size(self, n_units: int, name: str) -> int | None:
        """Size to walk to, or None where the walk must go the whole way."""
        return None

    @abstractmethod
    def pick(self, trace: Trace, context: Context = Context()) -> int:  # noqa: B008 (immutable)
        """Position of the step to keep."""

    def check(self, search: Walker, criterion: Any) -> None:
        """Refuse a search or criterion that this choice cannot work with."""
        name = type(search).__name__
        if self.needs_nested and not search.nested:
            raise IncompatibleCriterion(
                f"{type(self).__name__} reads the score of one move after the other, but {name} "
                "does not just grow or shrink a subset. Use Ranking, Forward, Backward or "
                f"RecursiveElimination, or ask {name} for a number of features."
            )


#: What ``n_features_to_select`` takes.
SizeLike: TypeAlias = "int | float | str | Choice"


class Size(Choice):
    """The best subset of a given size."""

    def __init__(self, n_features: int):
        self.n_features = n_features

    def size(self, n_units: int, name: str) -> int:
        if not (is_int(self.n_features) and 1 <= self.n_features <= n_units):
            raise InvalidParameter(
                f"{name} needs n_features_to_select between 1 and {n_units}, the number of columns "
                f"of X, not {self.n_features!r}. Write an int in that range, a fraction such as "
                "0.5, or 'best'."
            )
        return int(self.n_features)

    def pick(self, trace: Trace, context: Context = Context()) -> int:  # noqa: B008
        return _best_of(trace, np.flatnonzero(trace.sizes == self.n_features))


class Fraction(Choice):
    """The best subset of a given share of all units, rounded down but never empty."""

    def __init__(self, share: float):
        self.share = share

    def size(self, n_units: int, name: str) -> int:
        if not (is_real(self.share) and 0 < self.share <= 1):
            raise InvalidParameter(
                f"{name} needs n_features_to_select as a fraction in (0, 1], not {self.share!r}. "
                "Write an int for a number of features."
            )
        return max(1, int(n_units * self.share + 1e-9))  # 0.29 of 100 is 29

    def pick(self, trace: Trace, context: Context = Context()) -> int:  # noqa: B008
        return Size(self.size(trace.n_units, "Fraction")).pick(trace)


class Best(Choice):
    """The subset of greatest value, of whatever size; of equals the smallest.

    The values were computed on the rows that chose the subsets, so they flatter: the unbiased way
    is ``GridSearchCV`` over ``n_features_to_select``, which repeats the search in every fold.
    """

    def pick(self, trace: Trace, context: Context = Context()) -> int:  # noqa: B008
        return _best_of(trace, np.flatnonzero(trace.sizes > 0))

    def check(self, search: Walker, criterion: Any) -> None:
        scored_by = type(criterion).__name__
        if not isinstance(criterion, SubsetCriterion):
            raise IncompatibleCriterion(
                f"n_features_to_select='best' needs the value of each subset; {scored_by} only "
                "ranks features. Ask for a number of features, or use a criterion such as "
                "CrossValidated."
            )
        if search.scores_alone and not criterion.additive:
            name = type(search).__name__
            raise IncompatibleCriterion(
                f"{name} scores each feature alone and never values a subset by {scored_by}. Use "
                f"Forward({scored_by}(...), n_features_to_select='best'), or ask {name} for a "
                "number of features."
            )


def resolve_choice(asked: Any, name: str) -> Choice:
    """The choice meant by a value of ``n_features_to_select``."""
    if isinstance(asked, Choice):
        return asked
    if isinstance(asked, str) and asked == "best":
        return Best()
    if is_int(asked):
        return Size(int(asked))
    if is_real(asked):
        return Fraction(float(asked))
    raise InvalidParameter(
        f"{name} needs n_features_to_select as an int, a fraction in (0, 1], 'best' or a choice "
        f"such as Threshold(0.1), not {asked!r}."
    )


def _best_of(trace: Trace, candidates: NDArray[np.intp]) -> int:
    """Position of the greatest value; of equals the smallest, then lexicographically first, set.

    A walk that was stopped early may hold no candidate, and a criterion that only ranks gives no
    values: the last one stands.
    """
    if not len(candidates):
        return len(trace) - 1
    values = trace.values[candidates]
    if np.isnan(values).all():
        return int(candidates[-1])
    top = float(np.nanmax(values))
    known = np.where(np.isnan(values), -np.inf, values)
    equal = candidates[[not improves(top, value) for value in known]]
    sizes = trace.sizes[equal]
    equal = equal[sizes == sizes.min()]
    return (
        int(min(equal, key=lambda i: tuple(trace[int(i)].subset)))
        if len(equal) > 1
        else int(equal[0])
    )
