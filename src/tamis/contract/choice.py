"""Base class of choices, the rules that decide which subset of a search path is selected.

The parameter ``n_features_to_select`` of a search is an int, a fraction, ``"best"`` or a choice.
Choices are defined here and in :mod:`tamis.choice`. To add one, subclass :class:`Choice` and
implement :meth:`Choice.pick`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from tamis._arrays import Array, Subset, improves, is_int, is_real
from tamis._checks import check_parameters
from tamis._format import format_count
from tamis.contract.criterion import SubsetCriterion
from tamis.contract.steps import Event
from tamis.contract.trace import Trace
from tamis.contract.units import Grouping
from tamis.exceptions import IncompatibleCriterion, InvalidParameter

if TYPE_CHECKING:
    from tamis.contract.criterion import Criterion


class Walker(Protocol):
    """The attributes of a selection that a choice reads."""

    nested: ClassVar[bool]
    scores_alone: ClassVar[bool]
    takes_limit: ClassVar[bool]


class Context(NamedTuple):
    """Information that a choice may use in addition to the trace.

    Attributes
    ----------
    criterion : Criterion or None
        The fitted criterion, or None if the selection has no criterion.
    X, y : array or None
        The data of the fit.
    grouping : Grouping or None
        The columns of X that belong to each unit of the trace, or None if unit j is column j.

    Examples
    --------
    >>> from tamis.contract import Context
    >>> Context().counted(3)
    '3 columns'
    """

    criterion: Any = None
    X: Array | None = None
    y: NDArray[Any] | None = None
    grouping: Grouping | None = None

    def columns(self, units: Subset) -> Subset:
        """Return the columns of X that belong to the given units."""
        return units if self.grouping is None else self.grouping.columns(units)

    def counted(self, n: Any) -> str:
        """Return a number of units as text, such as "3 columns"."""
        return format_count(n, "column" if self.grouping is None else self.grouping.word)

    def flattering(self, too_good: float) -> str:
        """Return a sentence which warns that a score is optimistic.

        For a cross-validated score, the sentence also quotes ``too_good``, the number by which the
        score typically exceeds the true value.
        """
        if not hasattr(self.criterion, "fold_scores"):
            return FLATTERS
        return f"{FLATTERS[:-1]}: on pure noise such an accuracy is {too_good:g} too high."

    @property
    def beside_fixed(self) -> str:
        """A sentence stating that the reason does not apply to the fixed units.

        The text is empty if no unit is fixed.
        """
        fixed = self.grouping is not None and bool(self.grouping.fixed)
        return " This does not apply to the fixed features." if fixed else ""


class Chosen(NamedTuple):
    """The step that a choice selects, and the reason.

    Attributes
    ----------
    step : int
        Position of the step in the trace.
    reason : str
        A sentence that explains the decision and qualifies its numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.criteria import FisherScore
    >>> from tamis.search import Ranking
    >>> Ranking(FisherScore(), n_features_to_select=2).fit(*load_iris(return_X_y=True)).choice_
    Chosen(step=1, reason='2 columns, as asked.')
    """

    step: int
    reason: str


class Choice(BaseEstimator, ABC):
    """Rule that picks one step of a trace.

    A subclass implements :meth:`pick`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.contract import Choice, Chosen
    >>> from tamis.criteria import FisherScore
    >>> from tamis.search import Ranking
    >>> class FirstStep(Choice):
    ...     def pick(self, trace, context=None):
    ...         return Chosen(0, "The first step.")
    >>> ranking = Ranking(FisherScore(), n_features_to_select=FirstStep())
    >>> ranking.fit(*load_iris(return_X_y=True)).get_support(indices=True)
    array([2])
    """

    #: Whether the search path must be nested: each subset contains the previous one, or is part of
    #: it.
    needs_nested: ClassVar[bool] = False
    #: Whether the choice works with a table in row blocks.
    takes_blocks: ClassVar[bool] = True
    #: Whether the choice changes the steps of the search. The search path need not be nested then,
    #: and may end with the empty subset.
    guides: ClassVar[bool] = False

    def size(self, n_units: int, name: str) -> int | None:
        """Return the number of units to select, or None if the search must visit every size."""
        return None

    @abstractmethod
    def pick(self, trace: Trace, context: Context = Context()) -> Chosen:  # noqa: B008 (immutable)
        """Return the step to select and the reason."""

    def check_units(self, grouping: Grouping) -> None:
        """Refuse a table whose units do not suit the choice."""

    def guided_steps(
        self, search: Any, source: Any, size: int | None, done: Trace, context: Context
    ) -> Iterator[Event]:
        """Yield the steps that follow the trace ``done``. By default, the search makes them."""
        found: Iterator[Event] = search._steps(source, done.n_units, size, done)
        return found

    def enough(self, trace: Trace, context: Context) -> bool:
        """Whether the search may stop here because later steps cannot change the choice."""
        return False

    def check(self, search: Walker, criterion: "Criterion") -> None:
        """Refuse invalid parameters, and a search or criterion that does not suit the choice."""
        check_parameters(self)
        name = type(search).__name__
        if self.needs_nested and not search.nested:
            raise IncompatibleCriterion(
                f"{type(self).__name__} compares the scores of successive moves, but {name} both "
                "adds and removes features. Use Ranking, Forward, Backward or "
                f"RecursiveElimination, or ask {name} for a number of features."
            )


#: Types that ``n_features_to_select`` accepts.
SizeLike: TypeAlias = int | float | str | Choice


@dataclass(eq=False, repr=False)
class Size(Choice):
    """The best subset of a given size.

    Parameters
    ----------
    n_features : int
        Number of units.

    Examples
    --------
    >>> from tamis.contract import Step
    >>> trace = Trace.of(2, [Step(np.array([1]), 0.7), Step(np.array([0, 1]), 0.6)])
    >>> Size(2).pick(trace)
    Chosen(step=1, reason='2 columns, as asked.')
    """

    n_features: int

    def size(self, n_units: int, name: str) -> int:
        if not (is_int(self.n_features) and 1 <= self.n_features <= n_units):
            raise InvalidParameter(
                f"{name} needs n_features_to_select between 1 and {n_units}, the number of columns "
                f"of X, not {self.n_features!r}. Write an int in that range, a fraction such as "
                "0.5, or 'best'."
            )
        return int(self.n_features)

    def pick(self, trace: Trace, context: Context = Context()) -> Chosen:  # noqa: B008
        index = best_of(trace, np.flatnonzero(trace.sizes == self.n_features))
        return Chosen(index, f"{context.counted(self.n_features)}, as asked.")


@dataclass(eq=False, repr=False)
class Fraction(Choice):
    """The best subset with a given share of all units.

    Parameters
    ----------
    share : float
        Share of the units to select, in (0, 1]. A unit is a column, or a group of columns that is
        selected as a whole. The number of selected units is rounded down, but is at least 1.

    Examples
    --------
    >>> Fraction(0.29).size(100, "Forward")
    29
    """

    share: float

    def size(self, n_units: int, name: str) -> int:
        if not (is_real(self.share) and 0 < self.share <= 1):
            raise InvalidParameter(
                f"{name} needs n_features_to_select as a fraction in (0, 1], not {self.share!r}. "
                "Write an int for a number of features."
            )
        return max(1, int(n_units * self.share + 1e-9))  # so that 0.29 * 100 gives 29, not 28

    def pick(self, trace: Trace, context: Context = Context()) -> Chosen:  # noqa: B008
        size = self.size(trace.n_units, "Fraction")
        reason = f"{size} of {context.counted(trace.n_units)}, a share of {self.share:g} as asked."
        return Chosen(Size(size).pick(trace).step, reason)


class Best(Choice):
    """The subset of any size with the greatest value. Ties go to the smallest subset.

    The value was computed on the data used for selection, so it is optimistic. For an unbiased
    estimate use ``GridSearchCV`` over ``n_features_to_select``, which repeats the search in every
    fold.

    Examples
    --------
    >>> from tamis.contract import Step
    >>> trace = Trace.of(2, [Step(np.array([1]), 0.7), Step(np.array([0, 1]), 0.6)])
    >>> Best().pick(trace).step
    0
    """

    def pick(self, trace: Trace, context: Context = Context()) -> Chosen:  # noqa: B008
        index = best_of(trace, np.flatnonzero(trace.sizes > 0))
        size, value = trace.sizes[index], trace.values[index]
        reason = f"{context.counted(size)} {have(size)} the greatest value of the search path"
        return Chosen(index, f"{reason}, {value:.4g}; {context.flattering(TOO_GOOD)}")

    def check(self, search: Walker, criterion: "Criterion") -> None:
        check_values("n_features_to_select='best'", search, criterion, "'best'")


#: If the classes are pure noise, the best cross-validated accuracy on a search path exceeds the
#: true accuracy by about this much.
TOO_GOOD = 0.15
#: Added to the reason of a choice if it quotes a score from the search path.
FLATTERS = "it was computed on the data used for selection, so it is optimistic."


def have(n: Any) -> str:
    """Return "has" for 1 and "have" for any other number."""
    return "has" if n == 1 else "have"


def describe_search(search: Walker, criterion: Any) -> str:
    """Return the names of a search and of its criterion as text for messages.

    >>> from tamis.criteria import PValue
    >>> from tamis.search import Forward
    >>> describe_search(Forward(PValue()), PValue())
    'Forward(PValue)'
    """
    name = type(search).__name__
    return name if criterion is search else f"{name}({type(criterion).__name__})"


def check_values(name: str, search: Walker, criterion: Any, written: str) -> None:
    """Refuse a search and criterion that do not compute a value for each subset on the path."""
    scored_by = type(criterion).__name__
    if not isinstance(criterion, SubsetCriterion):
        raise IncompatibleCriterion(
            f"{name} needs the value of each subset; {scored_by} only ranks features. Ask for a "
            "number of features, or use a criterion such as CrossValidated."
        )
    if search.scores_alone and not criterion.additive:
        searched_by = type(search).__name__
        raise IncompatibleCriterion(
            f"{searched_by} scores each feature alone and never scores a subset with {scored_by}. "
            f"Use Forward({scored_by}(...), n_features_to_select={written}), or ask "
            f"{searched_by} for a number of features."
        )


def resolve_choice(asked: Any, name: str) -> Choice:
    """Return the choice for a value of ``n_features_to_select``.

    Parameters
    ----------
    asked : int, float, "best" or Choice
        The value.
    name : str
        Name of the selector, for error messages.
    """
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


def best_of(trace: Trace, candidates: NDArray[np.intp]) -> int:
    """Return the step with the greatest value among the candidate steps.

    Ties go to the smallest subset, then to the lexicographically first one. The last step is
    returned if there are no candidates (the search was stopped early) or no values (the criterion
    only ranks).
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
    if len(equal) == 1:  # the usual case, without rebuilding subsets
        return int(equal[0])
    return int(min(equal, key=lambda i: tuple(trace[int(i)].subset)))


def gains_until(trace: Trace, chosen: int) -> int | None:
    """Return the size of a smaller subset that is at least as good as the chosen one.

    This is the size of the best subset up to the chosen step. Ties go to the smallest size. Return
    None if the chosen subset is better than every smaller one before it, or if values are unknown.
    """
    if chosen < 0:
        return None
    sizes, values = trace.sizes[: chosen + 1], trace.values[: chosen + 1]
    passed = np.flatnonzero(sizes > 0)
    smaller = values[(sizes > 0) & (sizes < sizes[chosen])]
    if (
        not len(smaller)
        or np.isnan(values[passed]).any()
        or improves(values[chosen], smaller.max())
    ):
        return None
    size = int(sizes[best_of(trace, passed)])
    return size if size < sizes[chosen] else None
