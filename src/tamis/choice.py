"""Which subset of a trace is kept: the third axis beside criterion and search.

``n_features_to_select`` of a search takes an int, a fraction, ``"best"`` or one of the objects
here. A new choice is a class with :meth:`Choice.pick`.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.base import BaseEstimator

from tamis._arrays import improves, is_int, is_real
from tamis.contract import Criterion, SubsetCriterion
from tamis.exceptions import IncompatibleCriterion, InvalidParameter, NothingSelected
from tamis.trace import Trace


class Walk(Protocol):
    """The facts of a search that a choice asks for."""

    nested: ClassVar[bool]
    prices_alone: ClassVar[bool]


class Choice(BaseEstimator, ABC):
    """Rule that picks one step of a trace."""

    #: Whether each step must hold, or be held by, the step before.
    needs_nested: ClassVar[bool] = False

    def size(self, n_units: int, who: str) -> int | None:
        """Size to walk to, or None where the walk must go the whole way."""
        return None

    @abstractmethod
    def pick(self, trace: Trace) -> int:
        """Position of the step to keep."""

    def check(self, search: Walk, criterion: Criterion) -> None:
        """Refuse a search or criterion that this choice cannot work with."""
        who = type(search).__name__
        if self.needs_nested and not search.nested:
            raise IncompatibleCriterion(
                f"{type(self).__name__} reads the price of one move after the other, but {who} "
                "does not just grow or shrink a subset. Use Ranking, Forward, Backward or "
                f"RecursiveElimination, or ask {who} for a number of features."
            )


class Size(Choice):
    """The best subset of a given size."""

    def __init__(self, n_features: int):
        self.n_features = n_features

    def size(self, n_units: int, who: str) -> int:
        if not (is_int(self.n_features) and 1 <= self.n_features <= n_units):
            raise InvalidParameter(
                f"{who} needs n_features_to_select between 1 and {n_units}, the number of columns "
                f"of X, not {self.n_features!r}. Write an int in that range, a fraction such as "
                "0.5, or 'best'."
            )
        return int(self.n_features)

    def pick(self, trace: Trace) -> int:
        return _best_of(trace, np.flatnonzero(trace.sizes == self.n_features))


class Fraction(Choice):
    """The best subset of a given share of all units, rounded down but never empty."""

    def __init__(self, share: float):
        self.share = share

    def size(self, n_units: int, who: str) -> int:
        if not (is_real(self.share) and 0 < self.share <= 1):
            raise InvalidParameter(
                f"{who} needs n_features_to_select as a fraction in (0, 1], not {self.share!r}. "
                "Write an int for a number of features."
            )
        return max(1, int(n_units * self.share + 1e-9))  # 0.29 of 100 is 29

    def pick(self, trace: Trace) -> int:
        return Size(self.size(trace.n_units, "Fraction")).pick(trace)


class Best(Choice):
    """The subset of greatest value, of whatever size; of equals the smallest.

    The values were computed on the rows that chose the subsets, so they flatter: the unbiased way
    is ``GridSearchCV`` over ``n_features_to_select``, which repeats the search in every fold.
    """

    def pick(self, trace: Trace) -> int:
        return _best_of(trace, np.flatnonzero(trace.sizes > 0))

    def check(self, search: Walk, criterion: Criterion) -> None:
        judge = type(criterion).__name__
        if not isinstance(criterion, SubsetCriterion):
            raise IncompatibleCriterion(
                f"n_features_to_select='best' needs the value of each subset; {judge} only ranks "
                "features. Ask for a number of features, or use a criterion such as CrossValidated."
            )
        if search.prices_alone and not criterion.additive:
            who = type(search).__name__
            raise IncompatibleCriterion(
                f"{who} prices each feature alone and never values a subset by {judge}. Use "
                f"Forward({judge}(...), n_features_to_select='best'), or ask {who} for a number of "
                "features."
            )


class Threshold(Choice):
    """Add while the price is at least ``minimum``; remove while it is less.

    >>> from sklearn.datasets import load_iris
    >>> from tamis.criteria import Correlation
    >>> from tamis.search import Ranking
    >>> X, y = load_iris(return_X_y=True)
    >>> Ranking(Correlation(), n_features_to_select=Threshold(0.9)).fit(X, y).get_support()
    array([False, False,  True,  True])
    """

    needs_nested = True

    def __init__(self, minimum: float):
        self.minimum = minimum

    def check(self, search: Walk, criterion: Criterion) -> None:
        super().check(search, criterion)
        if not is_real(self.minimum):
            raise InvalidParameter(f"Threshold needs a finite number, not {self.minimum!r}.")

    def pick(self, trace: Trace) -> int:
        kept = -1
        for position, (moved, entered, prices) in enumerate(trace.moves()):
            adding = bool(entered.any())
            if len(moved) and (
                prices.min() < self.minimum if adding else prices.max() >= self.minimum
            ):
                break
            kept = position
        if kept < 0:
            raise NothingSelected(
                f"No feature reaches the threshold {self.minimum}: the best price is "
                f"{trace[0].prices[0]:.4g}. Lower the threshold, or ask for a number of features."
            )
        return kept


class FalseDiscovery(Choice):
    """As many features as keep the false discovery rate at ``q`` (Benjamini and Hochberg 1995).

    For ``Ranking(PValue())``: the largest k with p_(k) <= q k / d.
    """

    needs_nested = True

    def __init__(self, q: float = 0.05):
        self.q = q

    def check(self, search: Walk, criterion: Criterion) -> None:
        if not (search.prices_alone and getattr(criterion, "scores_are_log_p", False)):
            raise IncompatibleCriterion(
                f"FalseDiscovery needs the p-value of every feature; {type(search).__name__}"
                f"({type(criterion).__name__}) has none. Use Ranking(PValue(), "
                "n_features_to_select=FalseDiscovery(0.05))."
            )
        if not (is_real(self.q) and 0 < self.q < 1):
            raise InvalidParameter(f"FalseDiscovery needs a rate q in (0, 1), not {self.q!r}.")

    def pick(self, trace: Trace) -> int:
        p_values = np.exp([-prices[0] for _, _, prices in trace.moves()])
        allowed = self.q * np.arange(1, len(p_values) + 1) / trace.n_units
        passing = np.flatnonzero(p_values <= allowed)
        if not len(passing):
            raise NothingSelected(
                f"No feature passes a false discovery rate of {self.q}: the smallest p-value is "
                f"{p_values[0]:.3g}, {allowed[0]:.3g} was needed. Raise q, or ask for a number of "
                "features."
            )
        return int(passing[-1])


def resolve_choice(asked: Any, who: str) -> Choice:
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
        f"{who} needs n_features_to_select as an int, a fraction in (0, 1], 'best' or a choice "
        f"such as Threshold(0.1), not {asked!r}."
    )


def _best_of(trace: Trace, candidates: np.ndarray) -> int:
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
    equal = equal[trace.sizes[equal] == trace.sizes[equal].min()]
    return (
        int(min(equal, key=lambda i: tuple(trace[int(i)].subset)))
        if len(equal) > 1
        else int(equal[0])
    )
